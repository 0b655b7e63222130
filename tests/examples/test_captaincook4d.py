"""The example of docs/own-benchmark.md: on the public annotation, and on a made one with videos and speech."""

import csv
import hashlib
import json
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from stepline import plans
from stepline.benchmark import Job
from stepline.benchmarks.segments.recognition import Segment
from stepline.config import validate
from stepline.datasets.demo import script
from stepline.fetch import fetch_release
from tests.benchmarks.segments.conftest import predicted, segment
from tests.benchmarks.segments.test_planted import accuracy, bank, drawn, without_times
from tests.conftest import ROOT, made_once, snakemake
from tests.docs.conftest import cut, environment
from tests.workflow.runs import by_entry

EXAMPLE = ROOT / "examples/captaincook4d"
SECONDS = {"1_1": 48, "1_2": 44, "1_3": 38, "1_4": 43}
"""The made recordings of a recipe: the first seconds of one video of the demo."""
SPLITS = {"train": ["1_1", "1_2"], "val": ["1_3"], "test": ["1_4"]}
STATISTICS = "statistics"


def configuration(example: Path, **options: Any) -> list[str]:
    """Return the words of a run that names the example."""
    return ["--config", f"benchmarks={{captaincook4d: {example}}}", f"captaincook4d={json.dumps(options)}"]


def test_it_is_short() -> None:
    lines = sum(path.read_text().count("\n") for suffix in ("py", "yaml") for path in EXAMPLE.rglob(f"*.{suffix}"))
    assert lines <= 150


@pytest.fixture(scope="session")
def public(real_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the tables of the public annotation are computed, without videos."""

    def compute(folder: Path) -> None:
        (folder / "config.yaml").write_text("{}\n")
        tables = [f"results/captaincook4d/{name}.csv" for name in ("table1", "table2")]
        words = ["--cores", "1", *tables, *configuration(EXAMPLE)]
        done = snakemake(*words, folder=folder, STEPLINE_MIRROR=str(real_data))
        assert done.returncode == 0, done.stderr

    return made_once(tmp_path_factory, "captaincook4d", compute)


class TestPublicAnnotation:
    @pytest.mark.slow
    @pytest.mark.parametrize(("entry", "right"), [("most-frequent", 126), ("uniform-order", 397), ("time-prior", 454)])
    def test_blind_baselines_have_the_known_accuracy(self, public: Path, entry: str, right: int) -> None:
        """8.17, 25.75 and 29.44 % of 1,542 segments of 109 recordings."""
        row = by_entry(public, "results/captaincook4d/table1.csv")[entry, "accuracy"]
        assert float(row["value"]) == pytest.approx(100 * right / 1542, abs=1e-4)
        assert (row["n_videos"], row["n_samples"], row["split"]) == ("109", "1542", "test")

    @pytest.mark.slow
    def test_error_and_normal_steps_are_apart(self, public: Path) -> None:
        rows = by_entry(public, "results/captaincook4d/table1.csv")
        for entry in ("most-frequent", "uniform-order", "time-prior"):
            whole, normal, error = (float(rows[entry, name]["value"]) for name in ("accuracy", "normal", "error"))
            assert (937 * normal + 605 * error) / 1542 == pytest.approx(whole, abs=1e-3)

    @pytest.mark.slow
    def test_counts_stand_beside_the_papers(self, public: Path) -> None:
        rows = by_entry(public, "results/captaincook4d/table2.csv")
        found = {
            name: (rows[STATISTICS, name]["value"], rows[STATISTICS, name]["status"])
            for name in ("videos", "segments", "hours")
        }
        assert found == {"videos": ("384", "exact"), "segments": ("5413", "differs"), "hours": ("94.4845", "exact")}

    @pytest.mark.slow
    def test_a_line_that_needs_videos_says_how_to_bring_them(self, public: Path) -> None:
        rows = by_entry(public, "results/captaincook4d/table1.csv")
        for entry in ("tfidf", "linear", "nearest"):
            row = rows[entry, "accuracy"]
            assert (row["status"], row["note"]) == ("needs", "needs videos:captaincook4d")
            assert row["command"].startswith('install -D -t "$STEPLINE_MIRROR/captaincook4d/videos" VIDEOS/*.mp4 && ')


def annotation() -> dict[str, Any]:
    """Return the files of a small release, in the form of the public ones: the demo's recording of soup, four times."""
    soup = script()["recordings"]["soup"]
    spans, start_s = [], 0.0
    for clip in soup["clips"]:
        spans.append((start_s, start_s + clip["duration_s"], clip["label"]))
        start_s += clip["duration_s"]
    steps: dict[str, Any] = {}
    for video, seconds in SECONDS.items():
        listed = [
            {"step_id": label, "start_time": first_s, "end_time": end_s, "has_errors": number % 3 == 0}
            for number, (first_s, end_s, label) in enumerate(spans)
            if label > 0 and end_s <= seconds
        ]
        omitted = {"step_id": 1, "start_time": -1.0, "end_time": -1.0, "has_errors": True}
        steps[video] = {"recording_id": video, "steps": [*listed, omitted]}
    lengths = "".join(f"{video},{seconds}\n" for video, seconds in SECONDS.items())
    return {
        "annotation_json/step_annotations.json": json.dumps(steps),
        "annotation_json/step_idx_description.json": json.dumps(
            {number: step["caption"] for number, step in enumerate(soup["steps"], 1)}
        ),
        "metadata/video_information.csv": f"recording_id,duration(sec)\n{lengths}",
        "data_splits/recordings_data_split_combined.json": json.dumps(SPLITS),
    }


def written(folder: Path, files: dict[str, Any]) -> Path:
    """Return a copy of the example that lists these files of a mirror, which are written."""
    example = Path(shutil.copytree(EXAMPLE, folder / "example"))
    with open(EXAMPLE / "files.csv", newline="", encoding="utf-8") as file:
        listed = [row for row in csv.DictReader(file) if row["path"] in files]
    with open(example / "files.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, listed[0])
        writer.writeheader()
        for row in listed:
            content = files[row["path"]].encode()
            place = folder / "mirror/captaincook4d" / row["path"]
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
            writer.writerow(row | {"sha256": hashlib.sha256(content).hexdigest(), "size": len(content)})
    return example


@pytest.fixture(scope="session")
def made(demo_mirror: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which tables and report are computed on one core; each job reads only what it declares."""
    pytest.importorskip("torch")

    def compute(folder: Path) -> None:
        written(folder, annotation())
        videos = folder / "mirror/captaincook4d/videos"
        videos.mkdir()
        for video, seconds in SECONDS.items():
            cut(demo_mirror / "demo/videos/soup.mp4", videos / f"{video}.mp4", seconds=seconds)
        (folder / "work").mkdir()
        (folder / "work/config.yaml").write_text("{}\n")
        done = run(folder)
        assert done.returncode == 0, done.stderr

    return made_once(tmp_path_factory, "captaincook4d-made", compute)


def run(folder: Path) -> subprocess.CompletedProcess[str]:
    targets = [f"results/captaincook4d/{name}" for name in ("table1.csv", "table2.csv", "report.html")]
    words = ["--cores", "1", *targets, *configuration(folder / "example")]
    return snakemake(*words, folder=folder / "work", traced=True, STEPLINE_MIRROR=str(folder / "mirror"))


class TestMadeAnnotation:
    @pytest.mark.slow
    def test_heads_and_speech_beat_blind_baselines(self, made: Path) -> None:
        rows = by_entry(made / "work", "results/captaincook4d/table1.csv")
        value = {entry: float(row["value"]) for (entry, metric), row in rows.items() if metric == "accuracy"}
        assert value["linear"] > 90 > value["most-frequent"]
        assert value["nearest"] > 90
        assert value["tfidf"] > 50
        assert rows["linear", "accuracy"]["seeds"] == "0;1;2"
        assert {row["inputs"] for (entry, _), row in rows.items() if entry == "tfidf"} == {"segment;speech"}

    @pytest.mark.slow
    def test_nothing_is_left_to_do_and_the_page_is_there(self, made: Path) -> None:
        assert "Nothing to be done" in run(made).stderr
        page = (made / "work/results/captaincook4d/report.html").read_text()
        assert "CaptainCook4D" in page
        assert "Nearest mean" in page

    @pytest.mark.slow
    def test_a_timeline_has_sound_speech_and_steps_and_no_shots(self, made: Path) -> None:
        words = ["stepline", "show", "captaincook4d", "1_4", "--entry", "linear"]
        known = environment(STEPLINE_MIRROR=str(made / "mirror"))
        done = subprocess.run(words, cwd=made / "work", env=known, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        page = (made / "work" / done.stdout.strip()).read_text()
        assert {*re.findall('"kind":"([a-z]+)"', page)} == {"wave", "spans", "strip"}
        assert not {"shots", "thumbnails"} & {path.name for path in (made / "work/datasets/captaincook4d").iterdir()}


PLANTED = [("nearest", "video"), ("nearest", "segment")]
RECIPES = {"1": {"10": "wash", "20": "cut"}, "2": {"20": "cut", "11": "fry", "21": "stir"}}
"""The steps of each recipe, by number; one of them is in both."""


def recorded(rng: np.random.Generator) -> dict[str, list[Segment]]:
    """Return the segments of recordings of the two recipes, in an order that is drawn; the last one has an error."""
    found = {}
    for number in range(12):
        recipe = str(1 + number % 2)
        named = {name: step for step, name in RECIPES[recipe].items()}
        order = rng.permutation([*named]).tolist()
        listed = drawn(f"{recipe}_{number}", order, rng)
        parts = ["normal"] * (len(order) - 1) + ["error"]
        found[f"{recipe}_{number}"] = [
            replace(each, procedure=recipe, part=part) for each, part in zip(listed, parts, strict=True)
        ]
    return found


def study(recordings: dict[str, list[Segment]], monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the plan of a release of recordings: eight of train, two of val and two of test."""
    numbers = {name: step for steps in RECIPES.values() for step, name in steps.items()}
    omitted = {"step_id": 10, "start_time": -1.0, "end_time": -1.0, "has_errors": True}
    annotated = {
        video: {
            "steps": [
                omitted,
                *(
                    {
                        "step_id": int(numbers[each.step]),
                        "start_time": each.start_s,
                        "end_time": each.end_s,
                        "has_errors": each.part == "error",
                    }
                    for each in listed
                ),
            ]
        }
        for video, listed in recordings.items()
    }
    lengths = "".join(f"{video},{listed[0].duration_s}\n" for video, listed in recordings.items())
    videos = [*recordings]
    files = {
        "annotation_json/step_annotations.json": json.dumps(annotated),
        "annotation_json/step_idx_description.json": json.dumps({step: name for name, step in numbers.items()}),
        "metadata/video_information.csv": f"recording_id,duration(sec)\n{lengths}",
        "data_splits/recordings_data_split_combined.json": json.dumps(
            {"train": videos[:8], "val": videos[8:10], "test": videos[10:]}
        ),
    }
    example = written(Path.cwd(), files)
    monkeypatch.setenv("STEPLINE_MIRROR", "mirror")
    made = plans.plan(validate({"benchmarks": {"captaincook4d": str(example)}, "captaincook4d": {}}), "captaincook4d")
    fetch_release(made.released, RELEASE)
    return made


RELEASE = "recordings-combined"


def test_a_release_is_read_with_its_recipes_errors_and_without_omitted_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    recordings = recorded(np.random.default_rng(1))
    made, numbers = study(recordings, monkeypatch), {name: n for steps in RECIPES.values() for n, name in steps.items()}
    expected = {
        split: [replace(each, step=numbers[each.step]) for video in videos for each in recordings[video]]
        for split, videos in zip(SPLITS, ([*recordings][:8], [*recordings][8:10], [*recordings][10:]), strict=True)
    }
    assert {split: made.checked_segments(RELEASE, split) for split in SPLITS} == expected
    assert made.texts(RELEASE) == {"10": "wash", "20": "cut", "11": "fry", "21": "stir"}
    videos = {video.id: (video.split, video.duration_s) for video in made.datasets["captaincook4d"].videos()}
    assert videos == {each.video: (split, each.duration_s) for split, segments in expected.items() for each in segments}


def test_a_mean_is_of_directions_and_compared_by_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of step 10 it is at 45 degrees, between 0 and 90; step 20 is at 17, and the segment at 40."""
    made = study(recorded(np.random.default_rng(0)), monkeypatch)
    nearest = made.method(made.entries["nearest"].kind)()
    train = [segment(step, procedure="1") for step in ("10", "10", "20")]
    rows = np.array([[10.0, 0.0], [0.0, 1.0], [1.0, 0.3]])
    of = SimpleNamespace(used={"train": train}.get, pooled=lambda _: rows, steps={"1": ["10", "20"]})
    nearest.fit(of, 0, Path("fit"))
    of.pooled = lambda _: np.array([[4.0, 3.4]])
    assert [*nearest.recognise(of, train[:1], Path("fit"))] == ["10"]


@pytest.mark.parametrize(("kind", "word"), PLANTED)
def test_a_head_learns_what_is_in_one_input_alone(kind: str, word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = {}
    rng = np.random.default_rng(0)
    recordings = recorded(rng)
    made = study(recordings, monkeypatch)
    listed = [each for segments in recordings.values() for each in segments]
    for blind in (False, True):
        if blind and word == "segment":
            without_times(type(made), monkeypatch)
        of = made.inputs(Job(release=RELEASE, entry=made.entries[kind]))
        vars(of)["banks"] = [bank(listed, blind=blind and word == "video", rng=rng)]
        found[blind] = accuracy(of)
        assert all({*each.steps} <= {*RECIPES[each.video[0]]} for each in predicted(of, Path("fit")))
    assert found[False] == 100
    assert found[True] <= 40  # two of five by chance
