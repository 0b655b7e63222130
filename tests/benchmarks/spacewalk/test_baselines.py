"""What the benchmark's numbers are worth: methods that see no content, and who may see the list of samples."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from stepline.benchmarks.spacewalk.entries import KINDS
from stepline.benchmarks.spacewalk.items import Item
from stepline.benchmarks.spacewalk.methods import make_method
from stepline.benchmarks.spacewalk.methods.baselines import equal_segments, linear_in_time, sample_rank
from stepline.datasets.schema import Recording, Segment, Split, Step
from stepline.datasets.studies import RETRIEVAL, STEP_RECOGNITION
from stepline.metrics.accuracy import accuracy
from stepline.metrics.average_precision import average_precision
from tests.benchmarks.spacewalk.conftest import MadeUp, real_material


def mean_accuracy(entry: str, release: str, split: Split = "test") -> float:
    material = real_material(entry, release)
    method = make_method(material, None, [])
    values = []
    for video, items in material.items(split).items():
        n_classes = 2 if items[0].candidates_s else len(material.release.recordings[video].steps)
        for _, chosen, _ in method(video, items):
            values.append(accuracy(np.array([item.label for item in items]), chosen, n_classes=n_classes))
    return 100 * float(np.mean(values))


def test_linear_in_time_scores_12_98_on_v2(in_spacewalk: Path) -> None:
    assert mean_accuracy("2a-linear-in-time", "v2") == pytest.approx(12.975, abs=1e-6)


@pytest.mark.parametrize(("split", "value"), [("test", 67.32), ("val", 69.03), ("train", 52.04)])
def test_a_samples_rank_alone_scores_as_the_papers_humans(in_spacewalk: Path, split: Split, value: float) -> None:
    assert mean_accuracy("2a-sample-rank", "v2", split) == pytest.approx(value, abs=0.005)


@pytest.mark.parametrize(("release", "value"), [("v0", 51.15), ("v1", 51.64)])
def test_equal_segments_score_above_50(in_spacewalk: Path, release: str, value: float) -> None:
    assert mean_accuracy("2b-equal-segments", release) == pytest.approx(value, abs=0.005)


def test_random_and_constant_predictions_on_v2(in_spacewalk: Path) -> None:
    material = real_material("2a-random", "v2")
    guesses, irrelevant, constant = [], [], []
    for video, items in material.items("test").items():
        labels = np.array([item.label for item in items])
        n_classes = len(material.release.recordings[video].steps)
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
    edges, labels = (0, 100, 300, 500, 600), (-1, 1, 3, -1)
    segments = tuple(
        Segment(start_s=a / 10, end_s=b / 10, start_frame=a, end_frame=b, label=label)
        for a, b, label in zip(edges, edges[1:], labels, strict=False)
    )
    step = Step(caption="", transcript="", animation_s=None)
    return Recording(video="v", split="test", duration_s=60.0, segments=segments, steps=(step,) * 5)


def items(*frames: int) -> list[Item]:
    return [Item(id=rank, frame=frame, t_s=frame / 10, label=1) for rank, frame in enumerate(frames)]


def test_linear_in_time_runs_from_the_first_to_the_last_labelled_frame() -> None:
    assert linear_in_time(recording(), items(100, 199, 200, 300, 399, 499)).tolist() == [1, 1, 2, 3, 3, 4]


def test_linear_in_time_on_one_labelled_frame_begins_there() -> None:
    edges, labels = (0, 100, 101, 600), (-1, 1, -1)
    segments = tuple(
        Segment(start_s=a / 10, end_s=b / 10, start_frame=a, end_frame=b, label=label)
        for a, b, label in zip(edges, edges[1:], labels, strict=False)
    )
    assert linear_in_time(replace(recording(), segments=segments), items(100, 100)).tolist() == [1, 1]


def test_linear_in_time_ends_at_the_last_labelled_frame_itself() -> None:
    """With 5 labelled frames and K = 4, u = 0, 1/4, 1/2, 3/4, 1."""
    segments = (Segment(start_s=10, end_s=10.5, start_frame=100, end_frame=105, label=1),)
    steps = linear_in_time(replace(recording(), segments=segments), items(100, 101, 102, 103, 104))
    assert steps.tolist() == [1, 2, 3, 4, 4]


def test_sample_rank_reads_nothing_but_the_place_in_the_list() -> None:
    frames = items(*range(100, 108))
    assert sample_rank(recording(), frames).tolist() == [1, 1, 2, 2, 3, 3, 4, 4]
    assert sample_rank(recording(), frames[::-1]).tolist() == [1, 1, 2, 2, 3, 3, 4, 4]


def test_equal_segments_guesses_where_both_or_none_share_the_part() -> None:
    def item(*times_s: float) -> Item:
        return Item(id=0, frame=0, t_s=times_s[0], label=0, candidates_s=times_s[1:])

    asked = [item(5, 7, 12), item(15, 22, 11), item(5, 6, 4), item(5, 12, 25)]
    assert equal_segments(recording(), asked, parts=6).tolist() == [0, 1, -1, -1]


SEEN: dict[str, list[dict[str, object]]] = {
    "random": [{}, {"table": "2b"}],
    "linear-in-time": [{"contexts": "unlimited", "inputs": ["annotated_span"]}],
    "sample-rank": [{"contexts": "unlimited", "inputs": ["sample_list"]}],
    "equal-segments": [{"table": "2b", "contexts": "unlimited", "inputs": ["recording"], "settings": {"parts": 6}}],
    "tfidf": [
        {
            "table": table,
            "encoder": "tfidf",
            "settings": {"fit": fit},
            "contexts": [6.0],
            "inputs": ["window", seen],
        }
        for table in ("2a", "2b")
        for fit, seen in (("video", "recording"), ("train", "train"))
    ],
    "tfidf-stems": [
        {"encoder": "tfidf", "settings": {"fit": "video"}, "contexts": [6.0], "inputs": ["window", "recording"]}
    ],
    "tw-finch": [
        {
            "table": "2b",
            "modality": "V",
            "encoder": "histogram",
            "contexts": "unlimited",
            "inputs": ["recording"],
            "settings": {"segments": 6},
        }
    ],
    "zero-shot": [
        {"table": table, "contexts": [6.0]} | encoder
        for table in ("2a", "2b")
        for encoder in ({"encoder": "minilm"}, {"modality": "V", "encoder": "histogram"})
    ],
    "sentences": [{"table": table, "encoder": "minilm", "contexts": [6.0]} for table in ("2a", "2b")],
    "last-layer": [
        {"table": table, "encoder": "minilm", "contexts": [6.0], "inputs": ["window", "train"]}
        for table in ("2a", "2b")
    ],
    "late-fusion": [
        {
            "modality": "V+L",
            "settings": {"text": "2a-tfidf-zero-shot", "video": "2a-histogram-zero-shot"},
            "contexts": [6.0],
            "inputs": ["window", "train"],
        }
    ],
}


ASKED_ELSEWHERE = {"llm", "lfb", "hmm", "all-layer"}
"""In tests of their own, in ``methods``."""


def test_every_computed_kind_is_asked() -> None:
    assert SEEN.keys() == KINDS.keys() - {"reference"} - ASKED_ELSEWHERE


@pytest.mark.parametrize(("kind", "fields"), [(kind, fields) for kind, each in SEEN.items() for fields in each])
def test_only_a_method_that_says_so_sees_the_list_of_samples(
    made_up: MadeUp, kind: str, fields: dict[str, object], tmp_path: Path
) -> None:
    """With half of the samples away, a method that does not see the list says the same of the others."""
    material = made_up.material({"kind": kind} | fields)
    fits = []
    if material.entry.trained:
        numpy_files = pytest.importorskip("safetensors.numpy")
        rng = np.random.default_rng(0)
        retrieval = material.entry.task == RETRIEVAL
        size, maps = (6, ("query.", "candidate.")) if retrieval else (12, ("",))
        for seed in material.entry.seeds:
            fits.append(tmp_path / f"{seed}.safetensors")
            state = {f"{each}weight": rng.standard_normal((size, size)) for each in maps}
            state |= {f"{each}bias": rng.standard_normal(size) for each in maps}
            numpy_files.save_file({k: v.astype(np.float32) for k, v in state.items()}, fits[-1])
    method = make_method(material, material.entry.windows(material.study_config)[0], fits)
    same = []
    for number, (video, listed) in enumerate(material.items("test").items()):
        assert material.entry.task == STEP_RECOGNITION or listed[0].candidates_s
        kept = np.sort(np.random.default_rng(number).permutation(len(listed))[: len(listed) // 2])
        part = method(video, [listed[i] for i in kept])
        for (_, chosen, scores), (_, chosen_of_part, scores_of_part) in zip(method(video, listed), part, strict=True):
            same.append(np.array_equal(chosen[kept], chosen_of_part))
            if scores is None:
                assert scores_of_part is None
            else:
                assert scores_of_part is not None
                np.testing.assert_allclose(scores[kept], scores_of_part, rtol=1e-5, atol=1e-7)
    assert all(same) != ("sample_list" in material.entry.inputs)
