from types import SimpleNamespace

import numpy as np
import pytest

from stepline.benchmarks.spacewalk.inputs import SpacewalkInputs
from stepline.benchmarks.spacewalk.items import Item
from stepline.benchmarks.spacewalk.methods import Chooser, Outcome, late_fusion
from tests.benchmarks.spacewalk.conftest import MadeUp, chooser_of

ENTRY = {
    "kind": "late-fusion",
    "modality": "V+L",
    "contexts": [6.0],
    "inputs": ["window", "val"],
    "settings": {"text": "2a-tfidf-zero-shot", "video": "2a-histogram-zero-shot"},
}


def scorer(inputs: SpacewalkInputs, *, knows: bool, factor: float = 1.0, offset: float = 0.0) -> Chooser:
    """Return scores of noise, in which the true label is far above where the method knows it."""

    def method(video: str, items: list[Item]) -> list[Outcome]:
        labels = np.array([item.label for item in items])
        rng = np.random.default_rng([len(video), int(knows)])
        scores = rng.standard_normal((len(items), inputs.annotation.recordings[video].n_steps + 1))
        scores[np.arange(len(items)), labels] += 8.0 * knows
        scaled = np.asarray(factor * scores + offset, np.float32)
        return [(0, scaled.argmax(axis=1), scaled)]

    return method


def fused(inputs: SpacewalkInputs, monkeypatch: pytest.MonkeyPatch, text: Chooser, video: Chooser) -> Chooser:
    methods = {"2a-tfidf-zero-shot": text, "2a-histogram-zero-shot": video}
    monkeypatch.setattr(late_fusion, "chooser", lambda part, context_s: methods[part.entry.id])
    return chooser_of(inputs, 6.0, [])


@pytest.mark.parametrize("vision", [True, False])
def test_the_weight_is_that_of_the_side_that_is_right_on_val(
    made_up: MadeUp, monkeypatch: pytest.MonkeyPatch, vision: bool
) -> None:
    inputs = made_up.inputs(ENTRY)
    method = fused(inputs, monkeypatch, scorer(inputs, knows=not vision), scorer(inputs, knows=vision))
    ((_, chosen, _),) = method("d", inputs.items("test")["d"])
    assert chosen.tolist() == [item.label for item in inputs.items("test")["d"]]
    weight = float(method.selection.split()[3].rstrip(","))  # type: ignore[attr-defined]
    assert 0.2 < weight < 1 if vision else weight == 0  # of equal ones the least of vision


def test_all_recordings_of_val_count(made_up: MadeUp, monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = made_up.inputs(ENTRY)
    inputs._items["val"] = inputs.items("train")
    monkeypatch.setattr(SpacewalkInputs, "recordings", lambda self, split: ["a", "b"])
    asked: list[str] = []
    score = scorer(inputs, knows=True)
    fused(inputs, monkeypatch, lambda video, items: asked.append(video) or score(video, items), score)
    assert asked == ["a", "b"]


def test_a_recording_of_val_counts_as_much_as_another_with_more_samples(
    made_up: MadeUp, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Text is right on the one with 40 samples, vision on the two with 4."""
    inputs = made_up.inputs(ENTRY)
    train, val = inputs.items("train"), inputs.items("val")
    inputs._items["val"] = {"a": train["a"], "b": train["b"][::10], "c": val["c"][::10]}
    monkeypatch.setattr(SpacewalkInputs, "recordings", lambda self, split: ["a", "b", "c"])

    def right_on(videos: str) -> Chooser:
        def method(video: str, items: list[Item]) -> list[Outcome]:
            n = inputs.annotation.recordings[video].n_steps + 1
            told = (np.array([item.label for item in items]) - (video not in videos)) % n
            return [(0, told, np.eye(n, dtype=np.float32)[told])]

        return method

    method = fused(inputs, monkeypatch, right_on("a"), right_on("bc"))
    assert method.selection.startswith("weight of vision 0.6, ")  # type: ignore[attr-defined]


def test_vision_may_count_alone(made_up: MadeUp, monkeypatch: pytest.MonkeyPatch) -> None:
    """Text says another label, vision the right one a little more than that."""
    inputs = made_up.inputs(ENTRY)

    def side(right: float) -> Chooser:
        def method(video: str, items: list[Item]) -> list[Outcome]:
            n = inputs.annotation.recordings[video].n_steps + 1
            labels = np.array([item.label for item in items])
            scores = np.asarray(np.eye(n)[(labels - 1) % n] + right * np.eye(n)[labels], np.float32)
            return [(0, scores.argmax(axis=1), scores)]

        return method

    method = fused(inputs, monkeypatch, side(0.0), side(1.01))
    assert method.selection.startswith("weight of vision 1, ")  # type: ignore[attr-defined]


def test_recordings_without_the_features_of_a_side_are_left_out(made_up: MadeUp) -> None:
    inputs = made_up.inputs(ENTRY)
    assert inputs.recordings("test") == ["d", "e"]
    vars(inputs.parts[2])["bank"] = SimpleNamespace(videos={"c", "e"})
    assert inputs.recordings("test") == ["e"]


def test_each_sides_scores_are_standardised_by_sample(made_up: MadeUp, monkeypatch: pytest.MonkeyPatch) -> None:
    inputs, items = made_up.inputs(ENTRY), made_up.inputs(ENTRY).items("test")["d"]
    text, video = scorer(inputs, knows=False), scorer(inputs, knows=True)
    ((_, _, scores),) = fused(inputs, monkeypatch, text, video)("d", items)
    louder = scorer(inputs, knows=True, factor=1000.0, offset=50.0)
    ((_, _, same),) = fused(inputs, monkeypatch, text, louder)("d", items)
    assert scores is not None
    assert same is not None
    np.testing.assert_allclose(same, scores, atol=1e-3)


def test_what_has_no_score_is_in_the_middle_and_what_says_nothing_counts_nothing() -> None:
    scores = np.array([[np.nan, 1, 3], [5, 5, 5]], np.float32)
    assert late_fusion._standardised(scores).tolist() == [[0, -1, 1], [0, 0, 0]]
