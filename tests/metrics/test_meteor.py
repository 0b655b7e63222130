import importlib.util
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from stepline.errors import MissingError, SteplineError
from stepline.metrics.dense_captions import similarity, summarisation
from stepline.metrics.meteor import Meteor, missing
from stepline.needs import Need
from tests.metrics.test_captions import CANDIDATES, REFERENCES
from tests.metrics.test_dense_captions import PREDICTED, TRUTH


@pytest.mark.slow
def test_it_is_that_of_pycocoevalcap() -> None:
    """Values computed with pycocoevalcap 1.2, those of dense captions with densevid's evaluate2018 too.

    One process for all, as it takes seconds to start: also for roles, and for what its lines cannot hold.
    """
    if needs := missing():
        pytest.skip(f"METEOR needs {' and '.join(map(str, needs))}")
    first, second = [" ".join(REFERENCES[0][0])], [" ".join(CANDIDATES[0])]
    with Meteor() as meteor:
        found = meteor.score(REFERENCES, CANDIDATES)
        dense = summarisation(TRUTH, PREDICTED, {"METEOR": meteor.score})["METEOR"]
        swapped = similarity(first, second, meteor.score)
        usual = similarity(first, second, meteor.score, swapped=False)
        odd = meteor.score([[["mix", "|||", "well\nnow"]], [[]], [["mix"]]], [["mix", "well", "now"], ["mix"], []])
    expected = [0.3245314051956351, 0.42817451916790616, 0.32253203916506945, 0]
    assert found.corpus == pytest.approx(0.3027648033772879, abs=1e-12)
    assert found.segments == pytest.approx(expected, abs=1e-12)
    assert dense == pytest.approx([0.24256471650779646, 0.2733391073129989, 0, 0], abs=1e-12)
    assert swapped == pytest.approx(np.array([[0.35630371059940363]]), abs=1e-12)
    assert usual == pytest.approx(np.array([expected[:1]]), abs=1e-12)
    assert odd.segments.tolist() == [1, 0, 0]


ECHO = """
for line in sys.stdin:
    sys.stderr.write("warning " * 100)
    command, *fields = line.rstrip("\\n").split(" ||| ")
    print(*([*fields, 0.5] if command == "EVAL" else [len(fields[-1])]), sep="\\n", flush=True)
"""


def test_many_segments_do_not_block_and_keep_their_order(a_java: Callable[[str], None]) -> None:
    """Lines, answers and complaints of more than a pipe holds. This Java scores by the candidate's length."""
    a_java(ECHO)
    n = 3000
    with Meteor() as meteor:
        found = meteor.score([[["salt"] * 30]] * n, [["x" * (1 + i % 500)] for i in range(n)])
        assert meteor.score([[["salt"], ["pepper"]]], [["ab", "|||", "c"]]).segments.tolist() == [4]
    assert found.corpus == 0.5
    assert found.segments.tolist() == [1 + i % 500 for i in range(n)]


def test_it_is_asked_as_by_coco_caption_and_gone_after_the_block(a_java: Callable[[str], None], tmp_path: Path) -> None:
    """Even one that goes on without input."""
    noted = "import os, time\nopen('id', 'w').write(str(os.getpid()))\nopen('words', 'w').write(' '.join(sys.argv))"
    a_java(f"{noted}\n{ECHO}\ntime.sleep(5)\nopen('late', 'w')")
    with Meteor() as meteor:
        meteor.score([[["a"]]], [["a"]])
    assert (tmp_path / "words").read_text().endswith("meteor-1.5.jar - - -stdio -l en -norm")
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "id").read_text()), 0)
    assert not (tmp_path / "late").exists()


@pytest.mark.parametrize(
    "lines",
    [
        "sys.exit(COMPLAINT)",
        "sys.stdin.readline(); sys.exit(COMPLAINT)",
        "import os; sys.stdin.readline(); os.close(0); print(1, flush=True); sys.exit(COMPLAINT)",
    ],
)
def test_a_process_that_dies_is_an_error_of_one_line(a_java: Callable[[str], None], lines: str) -> None:
    a_java(lines.replace("COMPLAINT", "'a warning\\nOutOfMemoryError: Java heap space\\n\\tat Meteor.main\\n'"))
    line = "METEOR's Java process ended with status 1: OutOfMemoryError: Java heap space"
    with Meteor() as meteor, pytest.raises(SteplineError, match=f"^{line}$"):
        meteor.score([[["a" * 100]]] * 3000, [["b" * 100]] * 3000)


def test_what_lacks_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert missing() == (Need("java"), Need("package", "pycocoevalcap"))
    with pytest.raises(MissingError, match="METEOR needs java and package:pycocoevalcap"), Meteor():
        pass
