"""The joint model as a method: what it sees, that it learns what is planted, and what its options change."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("tokenizers")

from stepline.benchmarks.hirest.inputs import HirestInputs
from stepline.benchmarks.hirest.kinds import Found
from stepline.benchmarks.hirest.methods.joint import JointMethod, Seen
from stepline.benchmarks.hirest.score import values
from tests.benchmarks.hirest.conftest import inputs, predicted

SMALL = {"init": "random", "layers": 1, "hidden": 48, "seeds": [0], "epochs": 2}


def fitted(
    entry: str = "joint", path: Path = Path("fit.safetensors"), **joint: Any
) -> tuple[HirestInputs, list[Found]]:
    of = inputs(entry, joint={**SMALL, **joint})
    JointMethod().fit(of, 0, path)
    return of, predicted(of, path)


@pytest.mark.usefixtures("banks")
def test_it_predicts_moments_of_all_pairs_and_steps_and_captions_of_annotated_ones() -> None:
    of, made = fitted()
    assert [each.video for each in made] == [pair.video for pair in of.evaluated]
    for pair, each in zip(of.evaluated, made, strict=True):
        assert each.moment is not None
        assert (each.segments is not None) == (each.sentences is not None) == bool(pair.steps)
        assert len(each.sentences or ()) == len(pair.steps)
    found = values(of, made)
    assert {"val_r_05", "test_507_r_05", "val_recall_05", "test_507_recall_05"} <= found.keys()


@pytest.mark.usefixtures("banks")
def test_what_is_seen_of_a_pair() -> None:
    of = inputs("joint", joint=SMALL)
    (example, *_), pair = (seen := Seen(of)).examples(of.used("train")), of.used("train")[0]
    n = round(pair.duration_s)
    assert example.features.shape == (n, 32)
    assert np.linalg.norm(example.features, axis=1) == pytest.approx(1, abs=1e-5)
    spoken = of.subtitles[pair.video]
    assert example.speech is not None
    said = spoken[2]
    assert (example.speech[int(said.start_s)] == seen.sentences[said.text]).all()
    assert not example.speech[int(said.end_s)].any()
    assert example.moment == tuple(map(int, pair.bounds_s))
    assert example.steps[0] == (int(pair.steps[0].start_s), int(pair.steps[0].end_s))
    assert [seen.words.decode(each) for each in example.captions] == [s.caption.strip().lower() for s in pair.steps]
    silent = inputs("joint-silent", joint=SMALL)
    assert Seen(silent).examples(silent.used("train"))[0].speech is None
    assert len(silent.used("test")) > len(of.used("test"))
