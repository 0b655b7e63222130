from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from stepline import paths  # noqa: E402
from stepline.backbones.histogram import HistogramSpec  # noqa: E402
from stepline.benchmarks.spacewalk.features import Features  # noqa: E402
from stepline.benchmarks.spacewalk.inputs import SpacewalkInputs  # noqa: E402
from stepline.benchmarks.spacewalk.methods import lfb as method  # noqa: E402
from stepline.benchmarks.spacewalk.methods.lfb import _clips, _SegmentFeatures  # noqa: E402
from stepline.errors import StoreError  # noqa: E402
from stepline.features import store  # noqa: E402
from stepline.features.bank import Bank  # noqa: E402
from stepline.features.text import TextStore, encode_texts  # noqa: E402
from stepline.models import lfb  # noqa: E402
from stepline.models.context import average, concatenation  # noqa: E402
from stepline.models.linear import apply_linear  # noqa: E402
from tests.benchmarks.spacewalk.conftest import MadeUp, TinyEncoder, TinyInputs, chooser_of, fit  # noqa: E402

CONTEXT_S = 36.0
ENTRY: dict[str, object] = {
    "table": "A8",
    "kind": "lfb",
    "modality": "V+L",
    "encoder": "internvideo-seconds",
    "setting": "last-layer",
    "contexts": [CONTEXT_S],
    "inputs": ["window", "train"],
}


class SegmentInputs(TinyInputs):
    """With embeddings of segments, too."""

    def embeddings(self, video: str) -> TextStore:
        super().embeddings(video)
        encode_texts(self.text(video).segments(12.0), TinyEncoder(), Path("tiny", video), what=video)
        return TextStore(Path("tiny", video), TinyEncoder.spec)


@pytest.fixture(autouse=True)
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is small is fast; six numbers a block are not to be split into eight heads."""
    monkeypatch.setattr(lfb, "LATENT", 8)
    monkeypatch.setattr(lfb, "HEADS", 2)


def inputs(made_up: MadeUp, head: str, **changes: object) -> SpacewalkInputs:
    last_layer = {"epochs": 2, "batch_size": 16, "learning_rate": 0.01, "seeds": [0, 1]}
    settings = {"settings": {"head": head, "steps": "2a-histogram-zero-shot"}}
    mine = made_up.inputs(ENTRY | settings | changes, SegmentInputs, last_layer=last_layer)
    mine.benchmark.config["features"]["device"] = "cpu"
    rows = {
        video: np.random.default_rng(len(video)).random((int(recording.duration_s), 6)).astype(np.float32)
        for video, recording in mine.annotation.recordings.items()
    }
    folder = paths.features("demo", "seconds", HistogramSpec())
    store.write(folder, HistogramSpec(), rows, 1)
    mine.__dict__["bank"] = Bank.open([folder], HistogramSpec())
    mine.__dict__["parts"] = (mine, mine)
    return mine


@pytest.mark.parametrize("normalise", ["block", "none"])
def test_a_segment_is_its_clip_and_twice_the_text_of_its_12_s(made_up: MadeUp, normalise: str) -> None:
    mine = inputs(made_up, "avg")
    mine.options["normalise"] = normalise
    bank = _SegmentFeatures(mine).bank("d")
    text, embedded = mine.text("d"), mine.embeddings("d")
    assert bank.shape == (int(mine.annotation.recordings["d"].duration_s), 18)
    for second in (0, 7, 31):
        blocks = [mine.bank["d"][second], *[embedded([text.between(second, second + 12)])[0]] * 2]
        if normalise == "block":
            blocks = [block / np.linalg.norm(block) for block in blocks]
        np.testing.assert_allclose(bank[second : second + 1][0], np.concatenate(blocks), rtol=1e-5)


def test_segments_of_video_alone_need_no_text(made_up: MadeUp) -> None:
    mine = inputs(made_up, "avg", modality="V")
    assert _SegmentFeatures(mine).bank("d").shape[1] == 6


def test_steps_are_those_of_the_entry_that_is_named(made_up: MadeUp) -> None:
    mine = inputs(made_up, "avg", modality="V")
    other = made_up.inputs({"kind": "zero-shot", "modality": "V", "encoder": "histogram"})
    mine.__dict__["parts"] = (mine, other)
    np.testing.assert_array_equal(_SegmentFeatures(mine).steps("d"), Features(other).steps("d"))


@pytest.mark.parametrize(("head", "pool"), [("avg", average), ("cat", concatenation)])
def test_pooled_heads_are_a_last_layer_on_what_is_pooled(made_up: MadeUp, head: str, pool: Any, tmp_path: Path) -> None:
    mine = inputs(made_up, head)
    fits = [tmp_path / "0", tmp_path / "1"]
    for seed, path in enumerate(fits):
        fit(mine, CONTEXT_S, seed, path)
    items = mine.items("test")["d"]
    outcomes = chooser_of(mine, CONTEXT_S, fits)("d", items)
    features = _SegmentFeatures(mine)
    pooled = pool(features.bank("d"), np.array([item.t_s for item in items]), CONTEXT_S)
    for (seed, chosen, scores), path in zip(outcomes, fits, strict=True):
        assert seed == fits.index(path)
        assert scores is not None
        np.testing.assert_allclose(scores[:, 1:], apply_linear(path, pooled) @ features.steps("d")[1:].T, rtol=1e-5)
        assert np.isnan(scores[:, 0]).all()
        assert np.array_equal(chosen, scores[:, 1:].argmax(axis=1) + 1)
    assert not np.array_equal(outcomes[0][2], outcomes[1][2])


@pytest.mark.parametrize(("head", "rate"), [("nl", 1e-3), ("tf", 1e-4)])
def test_heads_that_attend_are_fitted_with_their_own_options(
    made_up: MadeUp, head: str, rate: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(
        method, "fit_lfb", lambda *args, **options: (asked.append((args, options)), lfb.fit_lfb(*args, **options))
    )
    mine = inputs(made_up, head)
    fit(mine, CONTEXT_S, 1, tmp_path / "fit")
    (((name, train, val, _), options),) = asked
    expected = {
        "epochs": 2,
        "batch_size": 512,
        "learning_rate": rate,
        "seed": 1,
        "device": "cpu",
        "context_s": CONTEXT_S,
    }
    assert (name, options) == (head, expected)
    items = [item for video in ("a", "b") for item in mine.items("train")[video] if item.label]
    assert train.label.tolist() == [item.label for item in items]
    assert train.times_s.tolist() == [item.t_s for item in items]
    assert np.bincount(train.owner).tolist() == [sum(i.label > 0 for i in mine.items("train")[v]) for v in ("a", "b")]
    assert len(val.banks) == 1
    items = [item for item in mine.items("val")["c"] if item.label]
    assert (val.label.tolist(), val.times_s.tolist()) == ([i.label for i in items], [i.t_s for i in items])


@pytest.mark.parametrize("head", ["nl", "tf"])
def test_each_seed_of_a_head_that_attends_answers_by_its_own_fit(made_up: MadeUp, head: str, tmp_path: Path) -> None:
    mine, fits = inputs(made_up, head), [tmp_path / "0", tmp_path / "1"]
    for seed, path in enumerate(fits):
        fit(mine, CONTEXT_S, seed, path)
    items, features = mine.items("test")["e"], _SegmentFeatures(mine)
    outcomes = chooser_of(mine, CONTEXT_S, fits)("e", items)
    times_s = np.array([item.t_s for item in items])
    for seed, (found, chosen, scores) in enumerate(outcomes):
        mapped = lfb.apply_lfb(head, fits[seed], features.bank("e"), times_s, context_s=CONTEXT_S)  # type: ignore[arg-type]
        assert found == seed
        assert scores is not None
        np.testing.assert_allclose(scores[:, 1:], mapped @ features.steps("e")[1:].T, rtol=1e-5)
        assert np.array_equal(chosen, np.nan_to_num(scores, nan=-np.inf).argmax(axis=1))
    assert not np.allclose(outcomes[0][2][:, 1:], outcomes[1][2][:, 1:])  # type: ignore[index]


def test_features_of_parts_of_a_recording_are_one_line(made_up: MadeUp) -> None:
    mine = inputs(made_up, "avg", modality="V")

    def partial() -> None:
        raise StoreError("d has features of only parts of it")

    mine.__dict__["bank"] = SimpleNamespace(check_whole=partial, videos=mine.bank.videos)
    with pytest.raises(StoreError, match="parts of it"):
        _SegmentFeatures(mine).bank("d")


def test_labels_are_matched_with_their_own_steps_and_irrelevant_is_left_out(made_up: MadeUp) -> None:
    mine = inputs(made_up, "avg", modality="V")
    clips = _clips(_SegmentFeatures(mine), "train")
    assert clips.label.min() == 1
    for video, steps in zip(mine.recordings("train"), clips.steps, strict=True):
        np.testing.assert_array_equal(steps, _SegmentFeatures(mine).steps(video)[1:])


def test_the_description_of_irrelevant_stands_in_the_place_of_its_video_too(made_up: MadeUp) -> None:
    mine = inputs(made_up, "avg")
    described = mine.embeddings("d")([mine.text("d").step_texts()[0][0]])[0]
    blocks = Features(mine).steps("d")[0].reshape(3, 6)
    np.testing.assert_allclose(blocks, np.tile(described / np.linalg.norm(described), (3, 1)), rtol=1e-5)
