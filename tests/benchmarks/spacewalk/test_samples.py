import csv
import hashlib
import json
import random
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepline.benchmarks.spacewalk.samples import retrieval, step_recognition, write_samples
from stepline.datasets.schema import Recording, Release, Step
from stepline.datasets.studies import RETRIEVAL, STEP_RECOGNITION, study
from stepline.errors import ReleaseError
from stepline.io import sha256_file, write_json
from tests.benchmarks.spacewalk.conftest import segments_of

COMMITS = {"v0": "6b227ae", "v1": "b6ef8ca", "v2": "63c3968"}
RETRIEVAL_TRAIN = "c91906c47d347b4799255c9f84fcdc90af971a6b9ea0384cf5130a31c0f2e4e1"
FILES = {
    release: [(task, split) for task in tasks for split in ("train", "val", "test")]
    for release, tasks in (("v0", (STEP_RECOGNITION, RETRIEVAL)), ("v1", (STEP_RECOGNITION, RETRIEVAL)))
} | {"v2": [(STEP_RECOGNITION, split) for split in ("train", "val", "test")]}
FILES["v0"].remove((RETRIEVAL, "train"))  # never released, and drawn without a seed


def released(real_data: Path) -> dict[tuple[str, str], tuple[int, str]]:
    with open(real_data / "spacewalk/SHA256SUMS_upstream.csv", newline="", encoding="utf-8") as file:
        return {(row["commit"], row["path"]): (int(row["bytes"]), row["sha256"]) for row in csv.DictReader(file)}


@pytest.mark.parametrize(
    ("release", "task", "split"), [(release, *file) for release, files in FILES.items() for file in files]
)
def test_spacewalk_samples_have_the_released_sha256(
    spacewalk_folder: Path, real_data: Path, release: str, task: str, split: str
) -> None:
    content = (spacewalk_folder / f"results/spacewalk/samples/{release}/{task}/{split}.json").read_bytes()
    size, sha256 = released(real_data)[COMMITS[release], f"tasks/{task}/{split}.json"]
    assert (len(content), hashlib.sha256(content).hexdigest()) == (size, sha256)


def test_spacewalk_retrieval_train_sha256_is_that_of_the_released_blob(spacewalk_folder: Path) -> None:
    content = (spacewalk_folder / f"results/spacewalk/samples/v1/{RETRIEVAL}/train.json").read_bytes()
    assert hashlib.sha256(content).hexdigest() == RETRIEVAL_TRAIN
    blob = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
    assert blob.startswith("5a511253")


def test_the_command_line_writes_each_sample_file_and_no_other(spacewalk_folder: Path) -> None:
    folder = spacewalk_folder / "results/spacewalk/samples"
    written = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert written == {f"{release}/{task}/{split}.json" for release, files in FILES.items() for task, split in files}


def test_released_samples_that_changed_since_they_were_fetched_are_one_line(tmp_path: Path) -> None:
    v0, path = study("spacewalk"), f"tasks/{RETRIEVAL}/test.json"
    file = v0.folder("v0") / path
    write_json(file, {"v": []})
    write_json(v0.folder("v0") / "release.json", {"files": {path: sha256_file(file)}})
    release = Release(study="spacewalk", name="v0", fps=30.0, recordings={}, splits={})
    write_samples(v0, release, RETRIEVAL, "test", tmp_path / "test.json")
    assert (tmp_path / "test.json").read_bytes() == file.read_bytes()
    file.write_bytes(b"{}")
    with pytest.raises(
        ReleaseError, match=f"^{file} has changed since it was fetched: run `stepline fetch spacewalk/v0"
    ):
        write_samples(v0, release, RETRIEVAL, "test", tmp_path / "again.json")
    assert not (tmp_path / "again.json").exists()


@pytest.mark.parametrize("release", ["v1", "v2"])
def test_a_class_that_has_fewer_frames_than_its_share_is_capped(spacewalk_folder: Path, release: str) -> None:
    content = (spacewalk_folder / f"results/spacewalk/samples/{release}/{STEP_RECOGNITION}/train.json").read_bytes()
    counts = Counter(item["label"] for item in json.loads(content)["12022021"])
    assert counts[14] == {"v1": 37, "v2": 36}[release]
    assert sorted(set(counts.values()) - {counts[14]}) == [54, 55]


def made_up(lengths: list[int], labels: list[int]) -> Release:
    segments = segments_of(*zip(labels, lengths, strict=True))
    steps = tuple(Step(caption=str(k), transcript="", animation_s=None) for k in range(max(labels) + 1))
    recording = Recording(video="v", split="train", duration_s=segments[-1].end_s, segments=segments, steps=steps)
    return Release(
        study="demo",
        name="demo",
        fps=10.0,
        recordings={"v": recording},
        splits={"train": ("v",), "val": (), "test": ()},
    )


@st.composite
def recordings(draw: st.DrawFn) -> Release:
    """Segments with all labels 0..K at least once; neighbours differ; the first and the last are unavailable."""
    n_labels = draw(st.integers(2, 6))
    extra = draw(st.lists(st.integers(-1, n_labels - 1), max_size=8))
    labels = draw(st.permutations([*range(n_labels), *extra]))
    labels = [-1, *labels, -1]
    labels = [label for label, before in zip(labels, [None, *labels], strict=False) if label != before]
    lengths = draw(st.lists(st.integers(1, 120), min_size=len(labels), max_size=len(labels)))
    return made_up(lengths, labels)


def label_at(release: Release, frame: int) -> int:
    (label,) = [s.label for s in release.recordings["v"].segments if s.start_frame <= frame < s.end_frame]
    return label


def segment_at(release: Release, frame: int) -> int:
    (number,) = [i for i, s in enumerate(release.recordings["v"].segments) if s.start_frame <= frame < s.end_frame]
    return number


@given(recordings(), st.integers(1, 300))
def test_step_samples_are_balanced_sorted_and_rightly_labelled(release: Release, n: int) -> None:
    items = step_recognition(release, "train", n=n)["v"]
    recording = release.recordings["v"]
    frames = Counter[int]()
    for s in recording.segments:
        frames[s.label] += s.end_frame - s.start_frame
    available = {label: frames[label] for label in range(len(recording.steps))}
    counts = Counter(item["label"] for item in items)

    assert len(items) == min(n, sum(available.values()))
    assert all(label_at(release, item["frame_index"]) == item["label"] for item in items)
    assert [item["id"] for item in items] == list(range(len(items)))
    assert [item["frame_index"] for item in items] == sorted(item["frame_index"] for item in items)
    assert all(item["timestamp"] == item["frame_index"] / release.fps for item in items)
    assert all(counts[label] <= available[label] for label in available)
    free = [counts[label] for label in available if counts[label] < available[label]]
    full = [counts[label] for label in available if counts[label] == available[label]]
    if free:
        assert max(free) - min(free) <= 1
        assert free == sorted(free, reverse=True)  # the remainder goes to the lowest labels
        assert max(full, default=0) <= max(free) + 1


@given(recordings(), st.integers(1, 100), st.integers(1, 25), st.integers(0, 12))
def test_retrieval_samples_have_the_geometry(release: Release, n: int, min_distance: int, boundary: int) -> None:
    items = retrieval(release, n=n, min_distance=min_distance, boundary=boundary)["train"]["v"]
    segments = release.recordings["v"].segments
    assert len(items) <= n
    assert [item["id"] for item in items] == list(range(len(items)))
    for item in items:
        query, candidates = item["query_frame_index"], item["candidate_frame_indices"]
        positive, negative = candidates[item["label"]], candidates[1 - item["label"]]
        assert abs(query - positive) == abs(query - negative) >= min_distance
        assert (query - positive) == -(query - negative)
        own, other = segment_at(release, query), segment_at(release, negative)
        assert segment_at(release, positive) == own
        assert abs(own - other) == 1
        assert min(segments[own].label, segments[other].label) >= 0
        if own < other:
            assert segments[own].end_frame - query > boundary
        else:
            assert query - segments[own].start_frame >= boundary
        for frame in (positive, negative):
            segment = segments[segment_at(release, frame)]
            assert frame - segment.start_frame >= boundary
            assert segment.end_frame - 1 - frame >= boundary


@given(recordings(), st.integers(1, 25), st.integers(0, 12))
@settings(max_examples=50)
def test_retrieval_ends_where_no_more_samples_can_be_drawn(release: Release, min_distance: int, boundary: int) -> None:
    """Each pair of segments gives at most two samples for each query that fits, and no pair is drawn for ever."""
    items = retrieval(release, n=10**5, min_distance=min_distance, boundary=boundary)["train"]["v"]
    labelled = [s.end_frame - s.start_frame for s in release.recordings["v"].segments if s.label >= 0]
    assert len(items) <= 4 * sum(labelled)


def test_valid_queries_are_those_found_by_trying_all() -> None:
    """The closed form of the allowed queries against the rule itself, query by query."""
    from stepline.benchmarks.spacewalk.samples import _Geometry

    rng = random.Random(0)
    for _ in range(300):
        own, other = rng.randint(1, 60), rng.randint(1, 60)
        min_distance, boundary = rng.randint(1, 20), rng.randint(0, 8)
        allowed = [
            x
            for x in range(own)
            if x + boundary < own
            and max(min_distance, own + boundary - x) <= min(x - boundary, own + other - 1 - x - boundary)
        ]
        assert list(_Geometry(own, other, min_distance, boundary).queries()) == allowed


def test_pairs_with_an_irrelevant_segment_are_drawn_rarely() -> None:
    release = made_up([50, 400, 400, 400, 50], [-1, 1, 2, 0, -1])
    items = retrieval(release, n=300, min_distance=30, boundary=15)["train"]["v"]
    irrelevant = [item for item in items if segment_at(release, max(item["candidate_frame_indices"])) == 3]
    assert len(irrelevant) < 20 < len(items) == 300
