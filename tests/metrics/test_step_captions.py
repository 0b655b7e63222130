from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from stepline.errors import MissingError
from stepline.metrics import bert_score, entailment, meteor, spice, step_captions
from stepline.metrics.captions import bleu, meteor_stem, rouge_l, tokenise
from stepline.metrics.step_captions import SCORERS, TOKENS, WEIGHTS, missing
from stepline.needs import Need

REFERENCES = [
    *("Take large binder clip", "Preheat the oven to 350°F.", "Don't stir; let it rest!"),
    *("Add 1/2 cup of sugar (white)", "Cut the rope"),
]
CANDIDATES = [
    *("take the large clip", "preheat the oven", "let it rest, do not stir"),
    *("Add a cup of sugar, and stir.", ""),
]


@pytest.fixture(autouse=True)
def _own_process(monkeypatch: pytest.MonkeyPatch) -> None:
    step_captions._process.cache_clear()
    monkeypatch.setattr(step_captions.atexit, "register", lambda *_: None)


def test_cider_is_that_of_coco_caption() -> None:
    """Values computed with pycocoevalcap 1.2 and its PTBTokenizer, in Java."""
    found = SCORERS["cider"](REFERENCES, CANDIDATES)
    segments = [2.056801220209499, 3.264572709057866, 3.708333333333333, 2.5288899068801074, 0]
    assert found.segments == pytest.approx(segments, abs=1e-12)
    assert found.corpus == pytest.approx(2.311719433896161, abs=1e-12)


def test_the_others_on_tokens_are_those_of_their_names() -> None:
    references, candidates = ([tokenise(text.lower()) for text in texts] for texts in (REFERENCES, CANDIDATES))
    groups = [[tokens] for tokens in references]
    for name, expected in (
        ("bleu4", bleu(groups, candidates, 4)),
        ("rouge_l", rouge_l(groups, candidates)),
        ("meteor_stem", meteor_stem(groups, candidates)),
    ):
        found = SCORERS[name](REFERENCES, CANDIDATES)
        assert (found.corpus, found.segments.tolist()) == (expected.corpus, expected.segments.tolist()), name


METEOR = """
import os, pathlib
with open(pathlib.Path(__file__).with_name("saw"), "a") as file:
    print("started", file=file, flush=True)
    for line in sys.stdin:
        command, *fields = line.rstrip("\\n").split(" ||| ")
        print(*fields, sep="|", file=file, flush=True)
        print(*([*fields, 0.25] if command == "EVAL" else [len(fields[-1])]), sep="\\n", flush=True)
"""
"""It scores by the candidate's length, and the corpus by its own rule."""


def test_one_meteor_is_asked_for_tokens_in_lower_case(a_java: Callable[[str], None], tmp_path: Path) -> None:
    a_java(METEOR)
    for _ in range(2):
        found = SCORERS["meteor"](["Don't stir; (ever)!", "Rest, M&Ms."], ["STIR it", "M&Ms"])
    step_captions._process().__exit__(None, None, None)
    assert found.segments.tolist() == [7, 6]
    assert found.corpus == 0.25
    said = ["do n't stir -lrb- ever -rrb-|stir it", "rest m & ms|m & ms", "7|6"]
    assert (tmp_path / "bin/saw").read_text().splitlines() == ["started", *said, *said]


@pytest.mark.parametrize(
    ("metric", "module", "texts"),
    [
        ("spice", spice, (["do n't stir -lrb- ever -rrb-"], ["stir it"])),
        ("bert_score", bert_score, (["don't stir; (ever)!"], ["stir it."])),
        ("entailment", entailment, (["don't stir; (ever)!"], ["stir it."])),
    ],
)
def test_the_others_are_means_of_texts_in_lower_case(
    metric: str, module: object, texts: tuple[list[str], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """SPICE reads tokens, as in coco-caption; networks read the texts."""

    def score(references: Sequence[str], candidates: Sequence[str]) -> np.ndarray:
        assert ([*references], [*candidates]) == (texts[0] * 2, texts[1] * 2)
        return np.array([1.0, 0.5])

    monkeypatch.setattr(module, metric, score)
    found = SCORERS[metric](["Don't stir; (ever)!"] * 2, ["STIR it."] * 2)
    assert found.segments.tolist() == [1, 0.5]
    assert found.corpus == 0.75
    monkeypatch.setattr(module, metric, lambda *_: np.zeros(0))
    with pytest.raises(ValueError, match="no segments to score"):
        SCORERS[metric]([], [])


def test_what_is_absent_is_named_and_nothing_is_scored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = Need("java"), Need("package", "pycocoevalcap")
    torch = Need("package", "torch"), Need("package", "transformers")
    monkeypatch.setenv("PATH", str(tmp_path))
    for module in (meteor, spice):
        monkeypatch.setattr(module, "packaged", lambda *_: None)
    monkeypatch.setattr("stepline.metrics.transformer.find_spec", lambda _: None)
    assert {metric: missing(metric) for metric in SCORERS} == {
        "meteor": java,
        **dict.fromkeys(("cider", "bleu4", "rouge_l", "meteor_stem"), ()),
        "spice": (*java, Need("weights", "corenlp")),
        "bert_score": (*torch, Need("weights", "roberta-large")),
        "entailment": (*torch, Need("weights", "nli-deberta-v3-base")),
    }
    assert [Need("weights", name) in missing(metric) for name, metric in WEIGHTS.items()] == [True] * 3
    for metric in SCORERS.keys() - TOKENS.keys():
        with pytest.raises(MissingError, match="needs"):
            SCORERS[metric](["a"], ["a"])


def test_segments_that_cannot_be_scored_are_refused() -> None:
    with pytest.raises(ValueError, match="no segments to score"):
        SCORERS["cider"]([], [])
    with pytest.raises(ValueError, match="1 segments of references and 2 candidates"):
        SCORERS["cider"](["a"], ["a", "b"])
