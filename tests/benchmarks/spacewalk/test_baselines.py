"""What the benchmark's numbers are worth: methods that see no content, and who may see the list of samples."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import kendalltau

from stepline.benchmarks.spacewalk.inputs import SpacewalkInputs
from stepline.benchmarks.spacewalk.items import Item
from stepline.benchmarks.spacewalk.kinds import KINDS
from stepline.benchmarks.spacewalk.methods.baselines import (
    equal_segments,
    linear_after_preview,
    linear_in_time,
    sample_rank,
)
from stepline.datasets.schema import Recording, Segment, Split, Step
from stepline.datasets.studies import RETRIEVAL, STEP_RECOGNITION
from stepline.metrics.accuracy import accuracy
from stepline.metrics.average_precision import average_precision
from tests.benchmarks.spacewalk.conftest import MadeUp, chooser_of, fit, real_inputs, segments_of


def mean_accuracy(entry: str, release: str, split: Split = "test", fits: Sequence[Path] = ()) -> float:
    inputs = real_inputs(entry, release)
    method = chooser_of(inputs, None, [*fits])
    values = []
    for video, items in inputs.items(split).items():
        n_classes = 2 if items[0].candidates_s else len(inputs.annotation.recordings[video].steps)
        for _, chosen, _ in method(video, items):
            values.append(accuracy(np.array([item.label for item in items]), chosen, n_classes=n_classes))
    return 100 * float(np.mean(values))


def test_linear_in_time_scores_12_98_on_v2(in_spacewalk: Path) -> None:
    assert mean_accuracy("2a-linear-in-time", "v2") == pytest.approx(12.975, abs=1e-6)


def mean_map(entry: str, release: str, fits: list[Path]) -> float:
    inputs = real_inputs(entry, release)
    method = chooser_of(inputs, None, fits)
    values = []
    for video, items in inputs.items("test").items():
        labels = np.array([item.label for item in items])
        ((_, _, scores),) = method(video, items)
        assert scores is not None
        values.append(np.mean([average_precision(scores[:, k], labels == k) for k in range(1, scores.shape[1])]))
    return 100 * float(np.mean(values))


def test_linear_after_the_preview_has_a_map_of_31_36_on_v2(in_spacewalk: Path) -> None:
    assert mean_accuracy("2a-linear-after-preview", "v2") == pytest.approx(8.43, abs=0.005)
    assert mean_map("2a-linear-after-preview", "v2", []) == pytest.approx(31.36, abs=0.005)


@pytest.mark.long
@pytest.mark.slow
def test_order_alone_has_a_map_of_31_20_on_v2(in_spacewalk: Path, tmp_path: Path) -> None:
    numpy_files = pytest.importorskip("safetensors.numpy")
    path = tmp_path / "fit"
    fit(real_inputs("2a-order-alone", "v2"), None, 0, path)
    state = numpy_files.load_file(path)
    (row,) = state["chosen"]
    chosen = {"window_s": 0, "scale": 0.3, "stay": 0.5, "reach": 0.15, "back": 0.005, "irrelevant": -0.2}
    assert {name: state[name][row] for name in chosen} == chosen
    assert mean_accuracy("2a-order-alone", "v2", fits=[path]) == pytest.approx(9.29, abs=0.005)
    assert mean_map("2a-order-alone", "v2", [path]) == pytest.approx(31.20, abs=0.005)


def test_steps_first_occur_in_the_order_of_the_preview(in_spacewalk: Path) -> None:
    """By Kendall's tau between the animations' times and the steps' first occurrence."""
    release = real_inputs("2a-random", "v2").annotation
    taus: dict[Split, list[float]] = {"train": [], "val": [], "test": []}
    for recording in release.recordings.values():
        first: dict[int, float] = {}
        for segment in recording.segments:
            first.setdefault(segment.label, segment.start_s)
        shown = [step.animation_s[0] for step in recording.steps[1:] if step.animation_s]
        assert len(shown) == recording.n_steps
        done = [first[label] for label in range(1, len(recording.steps))]
        taus[recording.split].append(kendalltau(shown, done).statistic)
    assert min(taus["test"]) == pytest.approx(0.937, abs=5e-4)
    assert min(taus["val"]) == pytest.approx(0.964, abs=5e-4)
    assert min(taus["train"]) == pytest.approx(0.833, abs=5e-4)
    assert {max(each) for each in taus.values()} == {1.0}


@pytest.mark.parametrize(("split", "value"), [("test", 67.32), ("val", 69.03), ("train", 52.04)])
def test_a_samples_rank_alone_scores_as_the_papers_humans(in_spacewalk: Path, split: Split, value: float) -> None:
    assert mean_accuracy("2a-sample-rank", "v2", split) == pytest.approx(value, abs=0.005)


@pytest.mark.parametrize(("release", "value"), [("v0", 51.15), ("v1", 51.64)])
def test_equal_segments_score_above_50(in_spacewalk: Path, release: str, value: float) -> None:
    assert mean_accuracy("2b-equal-segments", release) == pytest.approx(value, abs=0.005)


def test_random_and_constant_predictions_on_v2(in_spacewalk: Path) -> None:
    inputs = real_inputs("2a-random", "v2")
    guesses, irrelevant, constant = [], [], []
    for video, items in inputs.items("test").items():
        labels = np.array([item.label for item in items])
        n_classes = len(inputs.annotation.recordings[video].steps)
        guesses.append(accuracy(labels, np.full(len(items), -1), n_classes=n_classes))
        irrelevant.append(accuracy(labels, np.zeros(len(items), np.int64), n_classes=n_classes))
        steps = range(1, n_classes)
        constant.append(np.mean([average_precision(np.zeros(len(items)), labels == k) for k in steps]))
    assert 100 * np.mean(guesses) == pytest.approx(4.22, abs=0.005)
    assert 100 * np.mean(irrelevant) == pytest.approx(4.24, abs=0.005)
    assert 100 * np.mean(constant) == pytest.approx(4.22, abs=0.005)
    assert mean_accuracy("2a-random", "v2") == pytest.approx(4.22, abs=0.005)


def recording() -> Recording:
    """Four steps between 10 s and 50 s of a minute at 10 frames a second."""
    segments = segments_of((-1, 100), (1, 200), (3, 200), (-1, 100))
    step = Step(caption="", transcript="", animation_s=None)
    return Recording(video="v", split="test", duration_s=60.0, segments=segments, steps=(step,) * 5)


def items(*frames: int) -> list[Item]:
    return [Item(id=rank, frame=frame, t_s=frame / 10, label=1) for rank, frame in enumerate(frames)]


def test_linear_in_time_runs_from_the_first_to_the_last_labelled_frame() -> None:
    assert linear_in_time(recording(), items(100, 199, 200, 300, 399, 499)).tolist() == [1, 1, 2, 3, 3, 4]


def test_linear_in_time_on_one_labelled_frame_begins_there() -> None:
    segments = segments_of((-1, 100), (1, 1), (-1, 499))
    assert linear_in_time(replace(recording(), segments=segments), items(100, 100)).tolist() == [1, 1]


def test_linear_in_time_ends_at_the_last_labelled_frame_itself() -> None:
    """With 5 labelled frames and K = 4, u = 0, 1/4, 1/2, 3/4, 1."""
    segments = (Segment(start_s=10, end_s=10.5, start_frame=100, end_frame=105, label=1),)
    steps = linear_in_time(replace(recording(), segments=segments), items(100, 101, 102, 103, 104))
    assert steps.tolist() == [1, 2, 3, 4, 4]


def test_linear_after_the_preview_is_nearest_to_the_step_in_whose_part_it_is() -> None:
    """Of four steps in the 40 s after a preview of 20 s: the middles of their parts are at 25, 35, 45 and 55 s."""
    shown = Step(caption="", transcript="", animation_s=(12.0, 20.0))
    previewed = replace(recording(), steps=(*recording().steps[:-1], shown))
    scores = linear_after_preview(previewed, items(200, 250, 400, 600))
    assert scores.tolist() == [
        [-0.125, -0.375, -0.625, -0.875],
        [0.0, -0.25, -0.5, -0.75],
        [-0.375, -0.125, -0.125, -0.375],
        [-0.875, -0.625, -0.375, -0.125],
    ]
    assert linear_after_preview(recording(), items(75)).argmax() == 0


def test_linear_after_the_preview_knows_neither_the_labelled_part_nor_other_samples() -> None:
    unlabelled = replace(recording(), segments=())
    assert linear_after_preview(unlabelled, items(100, 200))[1:].tolist() == (
        linear_after_preview(recording(), items(200)).tolist()
    )


def test_sample_rank_reads_nothing_but_the_place_in_the_list() -> None:
    frames = items(*range(100, 108))
    assert sample_rank(recording(), frames).tolist() == [1, 1, 2, 2, 3, 3, 4, 4]
    assert sample_rank(recording(), frames[::-1]).tolist() == [1, 1, 2, 2, 3, 3, 4, 4]


def test_equal_segments_guesses_where_both_or_none_share_the_part() -> None:
    def item(*times_s: float) -> Item:
        return Item(id=0, frame=0, t_s=times_s[0], label=0, candidates_s=times_s[1:])

    asked = [item(5, 7, 12), item(15, 22, 11), item(5, 6, 4), item(5, 12, 25)]
    assert equal_segments(recording(), asked, parts=6).tolist() == [0, 1, -1, -1]


WHOLE: dict[str, object] = {"contexts": "unlimited"}
WORDS: dict[str, object] = {"contexts": [6.0], "encoder": "tfidf"}
SENTENCES = [{"table": table, "contexts": [6.0], "encoder": "minilm"} for table in ("2a", "2b")]
FUSED = {"text": "2a-tfidf-zero-shot", "video": "2a-histogram-zero-shot"}
SEEN: dict[str, list[dict[str, object]]] = {
    "random": [{}, {"table": "2b"}],
    **{kind: [WHOLE] for kind in ("linear-in-time", "linear-after-preview", "sample-rank")},
    "equal-segments": [WHOLE | {"table": "2b", "settings": {"parts": 6}}],
    "tfidf": [
        WORDS | {"table": table, "settings": {"fit": fit}} for table in ("2a", "2b") for fit in ("video", "train")
    ],
    "tfidf-stems": [WORDS | {"settings": {"fit": "video"}}],
    "tw-finch": [WHOLE | {"table": "2b", "modality": "V", "encoder": "histogram", "settings": {"segments": 6}}],
    "zero-shot": [*SENTENCES, *(each | {"modality": "V", "encoder": "histogram"} for each in SENTENCES)],
    "sentences": [*SENTENCES],
    "last-layer": [*SENTENCES],
    "late-fusion": [{"modality": "V+L", "settings": FUSED, "contexts": [6.0]}],
}


@pytest.mark.parametrize(("kind", "fields"), [(kind, fields) for kind, each in SEEN.items() for fields in each])
def test_only_a_method_that_says_so_sees_the_list_of_samples(
    made_up: MadeUp, kind: str, fields: dict[str, object], tmp_path: Path
) -> None:
    """With half of the samples away, a method that does not see the list says the same of the others."""
    inputs = made_up.inputs({"kind": kind, "inputs": []} | fields)
    fits = []
    if inputs.entry.trained:
        numpy_files = pytest.importorskip("safetensors.numpy")
        rng = np.random.default_rng(0)
        retrieval = inputs.entry.task == RETRIEVAL
        size, maps = (6, ("query.", "candidate.")) if retrieval else (12, ("",))
        for seed in inputs.entry.seeds:
            fits.append(tmp_path / f"{seed}.safetensors")
            state = {f"{each}weight": rng.standard_normal((size, size)) for each in maps}
            state |= {f"{each}bias": rng.standard_normal(size) for each in maps}
            numpy_files.save_file({k: v.astype(np.float32) for k, v in state.items()}, fits[-1])
    method = chooser_of(inputs, 4.0 if inputs.entry.kind.windowed else None, fits)
    same = []
    for number, (video, listed) in enumerate(inputs.items("test").items()):
        assert inputs.entry.task == STEP_RECOGNITION or listed[0].candidates_s
        kept = np.sort(np.random.default_rng(number).permutation(len(listed))[: len(listed) // 2])
        part = method(video, [listed[i] for i in kept])
        for (_, chosen, scores), (_, chosen_of_part, scores_of_part) in zip(method(video, listed), part, strict=True):
            same.append(np.array_equal(chosen[kept], chosen_of_part))
            if scores is None:
                assert scores_of_part is None
            else:
                assert scores_of_part is not None
                np.testing.assert_allclose(scores[kept], scores_of_part, rtol=1e-5, atol=1e-7)
    assert all(same) != ("sample_list" in inputs.entry.sees)


@pytest.mark.parametrize(("kind", "fields"), [(kind, fields) for kind, each in SEEN.items() for fields in each])
def test_a_method_reads_train_and_val_where_it_says_so_and_nowhere_else(
    made_up: MadeUp, kind: str, fields: dict[str, object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if KINDS[kind].options:
        pytest.importorskip("torch")
    inputs = made_up.inputs({"kind": kind, "inputs": []} | fields, last_layer={"seeds": [0], "epochs": 1})
    read: list[Split] = []
    recordings = SpacewalkInputs.recordings
    monkeypatch.setattr(
        SpacewalkInputs, "recordings", lambda self, split: read.append(split) or recordings(self, split)
    )
    context_s, fits = 4.0 if inputs.entry.kind.windowed else None, [tmp_path / "fit"]
    if inputs.entry.trained:
        fit(inputs, context_s, 0, *fits)
    chooser_of(inputs, context_s, fits)("d", inputs.items("test")["d"])
    assert {*read} == {*inputs.entry.sees} & {"train", "val"}
