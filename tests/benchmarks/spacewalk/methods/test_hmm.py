import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stepline.benchmarks.spacewalk.inputs import SpacewalkInputs
from stepline.benchmarks.spacewalk.items import Item
from stepline.benchmarks.spacewalk.methods import hmm
from stepline.datasets.schema import Segment
from stepline.errors import ConfigError, StoreError
from tests.benchmarks.spacewalk.conftest import MadeUp, at, chooser_of, fit, predict

safetensors = pytest.importorskip("safetensors.numpy")

SETTING = {"window_s": 6.0, "scale": 20.0, "stay": 0.5, "reach": 0.25, "back": 0.02, "irrelevant": 0.2}
CHOICES = {
    "window_s": (6.0, 4.0),
    "scale": (20.0, 5.0, 60.0),
    "stay": (0.5, 1.0),
    "reach": (0.25,),
    "back": (0.02, 0.2),
    "irrelevant": (0.2,),
}


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A grid and choices that suit recordings of a minute."""
    monkeypatch.setattr(hmm, "STEP_S", 1.0)
    monkeypatch.setattr(hmm, "CHOICES", CHOICES)


def entry(scorer: str = "2a-tfidf-zero-shot") -> dict[str, object]:
    return {"kind": "hmm", "contexts": "unlimited", "inputs": ["recording", "train"], "settings": {"scorer": scorer}}


@pytest.fixture
def fitted(made_up: MadeUp, tmp_path: Path) -> tuple[SpacewalkInputs, Path]:
    inputs, path = made_up.inputs(entry()), tmp_path / "fit.safetensors"
    fit(inputs, None, 0, path)
    return inputs, path


def test_removed_samples_change_nothing_of_those_left(fitted: tuple[SpacewalkInputs, Path]) -> None:
    inputs, path = fitted
    method, items = chooser_of(inputs, None, [path]), inputs.items("test")["d"]
    ((_, chosen, scores),) = method("d", items)
    ((_, fewer, their_scores),) = method("d", items[::2])
    assert np.array_equal(fewer, chosen[::2])
    assert scores is not None
    assert their_scores is not None
    assert np.array_equal(their_scores, scores[::2])
    assert np.isfinite(scores).all()
    assert scores.shape == (40, inputs.annotation.recordings["d"].n_steps + 1)


def test_the_labelled_part_is_not_known(fitted: tuple[SpacewalkInputs, Path]) -> None:
    inputs, path = fitted
    recording, items = inputs.annotation.recordings["d"], inputs.items("test")["d"]
    end = round(10 * recording.duration_s)
    unlabelled = Segment(start_s=0, end_s=recording.duration_s, start_frame=0, end_frame=end, label=-1)
    recordings = {**inputs.annotation.recordings, "d": replace(recording, segments=(unlabelled,))}
    blind = at(inputs, None)
    vars(blind)["annotation"] = replace(inputs.annotation, recordings=recordings)
    seen, unseen = (chooser_of(each, None, [path])("d", items) for each in (inputs, blind))
    assert np.array_equal(seen[0][2], unseen[0][2])  # type: ignore[arg-type]


def test_fitting_never_reads_samples_of_test(made_up: MadeUp, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    items, text = SpacewalkInputs.items, SpacewalkInputs.text
    monkeypatch.setattr(SpacewalkInputs, "items", lambda self, split: read.append(split) or items(self, split))
    monkeypatch.setattr(SpacewalkInputs, "text", lambda self, video: read.append(video) or text(self, video))
    fit(made_up.inputs(entry()), None, 0, tmp_path / "fit")
    assert {*read} == {"train", "val", "a", "b", "c"}


def test_the_checkpoint_has_all_that_was_tried_and_the_best_of_it(
    fitted: tuple[SpacewalkInputs, Path], tmp_path: Path
) -> None:
    inputs, path = fitted
    state = safetensors.load_file(path)
    n = len(state["scale"])
    assert n == len({*zip(*(state[name].tolist() for name in CHOICES), strict=True)}) > 5
    assert [state[name][0] for name in CHOICES] == [values[0] for values in CHOICES.values()]
    two, one = (
        state[f"accuracy_{split}"] + state[f"map_{split}"] for split in ("train", "val")
    )  # means over two recordings and over one
    assert state["chosen"].tolist() == [int(np.argmax(2 * two + one))]

    setting = {name: float(state[name][state["chosen"][0]]) for name in CHOICES}
    method, items = chooser_of(inputs, None, [path]), inputs.items("val")["c"]
    ((_, chosen, _),) = method("c", items)
    right = np.mean([item.label == label for item, label in zip(items, chosen, strict=True)])
    assert state["accuracy_val"][state["chosen"][0]] == pytest.approx(100 * right)
    assert ", ".join(f"{name} {value:g}" for name, value in setting.items()) in method.selection

    fit(inputs, None, 0, tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == path.read_bytes()


def test_the_scorer_sees_windows_of_the_chosen_length(made_up: MadeUp, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float] = []
    monkeypatch.setattr(hmm, "chooser", lambda _, window_s: asked.append(window_s))
    tried = {name: np.array([value, 4.0]) for name, value in SETTING.items()}
    safetensors.save_file(tried | {"chosen": np.array([1])}, "fit")
    chooser_of(made_up.inputs(entry()), None, [Path("fit")])
    assert asked == [4.0]


def test_the_order_alone_is_decoded_without_text(
    made_up: MadeUp, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SpacewalkInputs, "text", None)
    inputs, path = made_up.inputs({"kind": "order-alone", "contexts": "unlimited"}), tmp_path / "fit"
    fit(inputs, None, 0, path)
    state = safetensors.load_file(path)
    assert (state["window_s"] == 0).all()
    assert len(state["scale"]) > 3
    method, items = chooser_of(inputs, None, [path]), inputs.items("test")["d"]
    assert "3 of 3 training and validation recordings: window_s 0, scale " in method.selection  # type: ignore[attr-defined]
    fewer = made_up.inputs({"kind": "order-alone", "contexts": "unlimited"})
    fewer.options["subset"] = {"videos": ["a", "c", "d"]}
    assert "2 of 3 training and" in chooser_of(fewer, None, [path]).selection  # type: ignore[attr-defined]
    ((_, chosen, scores),) = method("d", items)
    recording = inputs.annotation.recordings["d"]
    zero = np.zeros((len(hmm.times_s(recording)), recording.n_steps))
    (decoded,) = hmm.decode([zero], [{name: float(state[name][state["chosen"][0]]) for name in CHOICES}])
    np.testing.assert_allclose(scores, decoded[hmm.rows(recording, items)], rtol=1e-6)  # type: ignore[arg-type]
    assert np.array_equal(chosen, scores.argmax(axis=1))  # type: ignore[union-attr]


def test_the_order_alone_of_one_step_at_two_times_is_as_by_hand() -> None:
    """Before is left in half of the cases, four times as often for the step as for after.

    So the states are (1, 0, 0), then (1/2, 2/5, 1/10), and the labels, each over its sum, (5/8, 0), then (3/8, 1).
    """
    setting = SETTING | {"stay": 1 / (2 * np.log(2)), "irrelevant": 0.0}
    (decoded,) = hmm.decode([np.zeros((2, 1))], [setting])
    np.testing.assert_allclose(np.exp(decoded), [[1, 0], [3 / 11, 8 / 11]], atol=1e-12)


def test_a_planted_order_is_recovered_from_noise() -> None:
    """Every step's score is a little higher in its own part; alone that is noise."""
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2, 3, 4, 5, 6, 0], 60)
    scores = rng.standard_normal((len(labels), 6))
    for step in range(1, 7):
        scores[labels == step, step - 1] += 1.0
    (decoded,) = hmm.decode([scores], [SETTING | {"scale": 30.0}])
    inside = labels > 0
    assert (scores.argmax(axis=1) + 1 == labels)[inside].mean() < 0.5
    assert (decoded.argmax(axis=1) == labels)[inside].mean() > 0.9
    assert (decoded.argmax(axis=1) == labels).mean() > 0.85
    np.testing.assert_allclose(np.exp(decoded).sum(axis=1), 1)


def test_a_labels_posterior_is_divided_by_its_expected_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """With times 2 s apart, of which each has its share of the evidence of a minute."""
    monkeypatch.setattr(hmm, "STEP_S", 2.0)
    rng = np.random.default_rng(1)
    scores = rng.standard_normal((30, 3))
    (decoded,) = hmm.decode([scores], [SETTING])
    leave = 1 - np.exp(-3 / (0.5 * 30))
    matrix = hmm.transitions(3, leave=leave, reach=0.25, back=0.02)
    outside = np.full((30, 1), 0.2)
    states = np.exp(hmm.log_posteriors(np.eye(5)[0], matrix, 40 / 60 * np.hstack([outside, scores, outside])))
    labels = np.hstack([states[:, :1] + states[:, -1:], states[:, 1:-1]])
    expected = labels / labels.sum(axis=0)
    np.testing.assert_allclose(np.exp(decoded), expected / expected.sum(axis=1, keepdims=True), atol=1e-9)


def test_the_grid_begins_after_the_preview_and_samples_take_their_nearest_time(
    made_up: MadeUp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hmm, "STEP_S", 2.0)
    recording = made_up.release.recordings["a"]  # three steps, their animations at 5 to 8, 10 to 13 and 15 to 18 s
    grid = hmm.times_s(recording)
    assert grid[0] == 18
    assert grid[-1] <= recording.duration_s - 2 < grid[-1] + 2
    assert (np.diff(grid) == 2).all()
    items = [Item(id=0, frame=0, t_s=t_s, label=0) for t_s in (2.0, 18.9, 19.1, 30.0, 1e6)]
    assert hmm.rows(recording, items).tolist() == [0, 0, 1, 6, len(grid) - 1]


def test_scores_are_standardised_by_step_and_those_that_say_nothing_are_zero(made_up: MadeUp) -> None:
    recording = made_up.release.recordings["a"]
    raw = np.random.default_rng(0).random((len(hmm.times_s(recording)), 4)).astype(np.float32)
    raw[:, 0], raw[:, 2] = np.nan, 0.7
    asked: list[tuple[str, list[float]]] = []

    def method(video: str, items: list[Item]) -> list[tuple[int, np.ndarray, np.ndarray]]:
        asked.append((video, [item.t_s for item in items]))
        return [(0, raw.argmax(axis=1), raw)]

    seen = hmm.evidence(method, recording)
    assert asked == [("a", hmm.times_s(recording).tolist())]
    assert (seen[:, 1] == 0).all()
    np.testing.assert_allclose(seen[:, [0, 2]].mean(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(seen[:, [0, 2]].std(axis=0), 1)
    np.testing.assert_allclose(seen[:, 0], (raw[:, 1] - raw[:, 1].mean()) / raw[:, 1].std(), atol=1e-5)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])  # the small grid is that of all examples
@given(st.integers(0, 2**32 - 1), st.integers(1, 4))
def test_climbing_asks_and_takes_what_one_value_after_the_other_does(seed: int, n_values: int) -> None:
    """With few different values, so that many settings are equal."""

    def value(setting: hmm.Setting) -> int:
        return random.Random(f"{seed} {setting}").randrange(n_values)

    asked: dict[str, None] = {}
    best = {name: values[0] for name, values in CHOICES.items()}
    before = None
    while best != before:
        before = best
        for name, values in CHOICES.items():
            tried = [best, *({**best, name: each} for each in values)]
            asked |= dict.fromkeys(map(str, tried))
            best = max(tried, key=value)
    together: dict[str, None] = {}

    def values_of(settings: Sequence[hmm.Setting]) -> list[float]:
        together.update(dict.fromkeys(map(str, settings)))
        return [value(setting) for setting in settings]

    assert hmm.climb(values_of, CHOICES) == best
    assert [*together] == [*asked]


def test_settings_are_measured_by_the_metrics_of_the_study() -> None:
    """Of four samples, two are answered right. The sample of step 1 has the second rank, that of step 2 the first."""
    items = [Item(id=n, frame=n, t_s=n, label=label) for n, label in enumerate((0, 1, 0, 2))]
    scores = np.array([[0.1, 0.9, 0.2], [0.35, 0.8, 0.0], [0.31, 0.1, 0.3], [0.5, 0.2, 0.4]])
    assert hmm._metrics(scores, items) == pytest.approx((50, 75))


@pytest.mark.parametrize("seed", range(3))
def test_a_fit_is_that_of_one_setting_after_the_other(
    made_up: MadeUp, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """On random scores of the steps, each setting alone is worth what the checkpoint says."""
    inputs, path, rng = made_up.inputs(entry()), tmp_path / "fit", np.random.default_rng(seed)
    recordings = inputs.annotation.recordings
    scores = {
        (video, window_s): rng.standard_normal((len(hmm.times_s(each)), each.n_steps))
        for video, each in recordings.items()
        for window_s in CHOICES["window_s"]
    }
    monkeypatch.setattr(hmm, "_score", lambda _, window_s: window_s)
    monkeypatch.setattr(hmm, "evidence", lambda window_s, recording: scores[recording.video, window_s])
    fit(inputs, None, 0, path)
    state = safetensors.load_file(path)
    found = []
    for setting in ({name: float(state[name][row]) for name in CHOICES} for row in range(len(state["scale"]))):
        values = []
        for split in hmm.SEEN:
            for video, items in inputs.items(split).items():
                (decoded,) = hmm.decode([scores[video, setting["window_s"]]], [setting])
                values.append(hmm._metrics(decoded[hmm.rows(recordings[video], items)], items))
        found.append([*np.mean(values[:2], axis=0), *values[2]])
    names = [f"{metric}_{split}" for split in hmm.SEEN for metric in ("accuracy", "map")]
    assert np.array_equal(np.array(found), np.column_stack([state[name] for name in names]))
    assert state["chosen"].tolist() == [int(np.argmax(np.array(found) @ [2, 2, 1, 1]))]


@pytest.mark.parametrize(
    "scorer", ["2a-minilm-last-layer", "2a-minilm-zero-shot", "2a-random", "2a-sample-rank", "2a-linear-in-time"]
)
def test_what_cannot_score_any_window_is_no_scorer(made_up: MadeUp, scorer: str) -> None:
    with pytest.raises(ConfigError, match=rf"mine\.settings\.scorer: '{scorer}' is not allowed"):
        hmm.scorer(made_up.inputs(entry(scorer)))


@pytest.mark.parametrize("scorer", ["2a-minilm-sentences", "2a-histogram-zero-shot"])
def test_sentences_and_seconds_score_any_window(made_up: MadeUp, scorer: str) -> None:
    inputs = made_up.inputs(entry(scorer))
    assert hmm.scorer(inputs).entry.id == scorer


def test_a_damaged_checkpoint_is_named(fitted: tuple[SpacewalkInputs, Path]) -> None:
    inputs, path = fitted
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(StoreError, match=str(path)):
        chooser_of(inputs, None, [path])


def test_test_recordings_alone_are_predicted_and_no_threshold_is_looked_for(
    fitted: tuple[SpacewalkInputs, Path],
) -> None:
    inputs, path = fitted
    made, about = predict(inputs, None, [path], path.with_name("predictions"))
    assert [(each.split, each.video, len(each.ids)) for each in made] == [("test", "d", 40), ("test", "e", 40)]
    assert about["needs"] == []
    said = "highest mean of accuracy and mAP over 3 of 3 training and validation recordings: window_s "
    assert str(about["selection"]).startswith(said)


def test_irrelevant_is_answered_where_it_is_likeliest(
    fitted: tuple[SpacewalkInputs, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs, path = fitted
    monkeypatch.setattr(hmm, "decode", lambda scores, _: [-np.tile(np.arange(scores[0].shape[1] + 1.0), (99, 1))])
    ((_, chosen, _),) = chooser_of(inputs, None, [path])("d", inputs.items("test")["d"])
    assert {*chosen.tolist()} == {0}
