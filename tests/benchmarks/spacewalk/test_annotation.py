"""`stepline annotation`: the worked example of its page, and what can go wrong."""

import csv
import json
import re
from pathlib import Path

import pytest

from stepline import cli, paths
from stepline.asr import transcript
from stepline.asr.transcript import Sentence
from stepline.availability import Record, write_availability, write_manifest
from stepline.benchmarks.spacewalk.benchmark import Spacewalk
from stepline.config import load
from stepline.datasets import shards, spacewalk
from stepline.io import sha256_file, write_json
from stepline.plans import plan

PAGE = (Path(__file__).parents[3] / "docs/annotation.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"`(\w+\.csv)`:\n\n```csv\n(.*?)```", PAGE, re.DOTALL))
CLIPS = Path("datasets/mine/annotation/clips.csv")
RELEASE = Path("datasets/mine/release")


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, list[str], str]:
    code = cli.main(["--configfile", "mine.yaml", "annotation", *arguments])
    said = capsys.readouterr()
    return code, said.out.splitlines(), said.err.strip()


def build(capsys: pytest.CaptureFixture[str], *more: str) -> tuple[int, list[str], str]:
    files = ["--labels", "labels.csv", "--steps", "steps.csv", "--split", "split.csv"]
    return run(capsys, "build", "mine", *files, *more)


@pytest.fixture(autouse=True)
def example() -> None:
    """The page's data set, as the pipeline leaves it."""
    Path("mine.yaml").write_text("datasets: {mine: {videos: videos}}\n")
    Path("videos").mkdir()
    Path("videos/tea.mp4").touch()
    for name, content in FILES.items():
        Path(name).write_text(content, encoding="utf-8")
    CLIPS.parent.mkdir(parents=True)
    Path("clips.csv").rename(CLIPS)
    said = [Sentence("First the water.", 0.5, 1.5), Sentence("Then we pour.", 2.0, 3.5), Sentence("Hello.", 4.0, 5.0)]
    transcript.write(paths.transcripts("mine", "pocketsphinx") / "tea.parquet", said)
    write_availability(paths.availability("mine", "000"), [Record(video="tea", status="present", fps=25.0)])


def test_the_worked_example(capsys: pytest.CaptureFixture[str]) -> None:
    code, lines, error = build(capsys)
    assert (code, error) == (0, "")
    assert lines == [
        "datasets/mine/release: 1 recordings, 3 segments of 4 labelled clips",
        "results/mine/annotation/agreement.md: 3.00 labels per clip, annotator pairs agree on 58.3%, alpha 0.500",
    ]
    shown = re.findall(r"```json\n(.*?)\n```", PAGE, re.DOTALL)
    assert [(RELEASE / "data/annotation.json").read_text()] == shown
    steps = json.loads((RELEASE / "data/steps.json").read_bytes())["tea"]
    assert [step["transcript"] for step in steps] == [
        "A chat, or anything else that is no step.",
        "First the water.",
        "Then we pour.",
    ]
    assert spacewalk.load(RELEASE, study="mine", name="release", fps=25.0).splits["test"] == ("tea",)


def test_clips_after_the_end_of_the_video_are_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    records = [Record(video="tea", status="present", fps=25.0, duration_s=10.0)]
    write_availability(paths.availability("mine", "000"), records)
    line = (
        "4 of 6 clips end after the end of their video, the first in line 4: tea ends at 10.0 s; times are in seconds"
    )
    assert build(capsys) == (2, [], f"error: {CLIPS}: {line}")
    assert not RELEASE.exists()


def test_the_tables_of_the_worked_example(capsys: pytest.CaptureFixture[str]) -> None:
    build(capsys)
    folder = Path("results/mine/annotation")
    with open(folder / "agreement.csv", newline="", encoding="utf-8") as file:
        tea, whole = csv.DictReader(file)
    assert whole == tea | {"video": "all"}
    assert tea == {
        "video": "tea",
        "annotators": "3",
        "clips": "4",
        "annotations": "12",
        "annotations_per_clip": "3.0000",
        "least": "3",
        "unsure": "0.0833",
        "tied": "1",
        "undecided": "0",
        "unanimous": "0.5000",
        "pairwise": "0.5833",  # 1, 0, 1/3, 1
        "alpha": "0.5000",  # observed (0 + 2 + 2 + 0) / 11, expected 1 - (12 + 6 + 12) / 110 = 8 / 11
        "human_accuracy": "0.7500",  # ann 4 of 4, bo 3, cy 2
        "in_animation": "0",
        "labelled_s": "16.0000",
        "segments": "3",
        "mean_clip_s": "4.0000",
        "mean_segment_s": "5.3333",
        "median_clip_s": "4.0000",
        "median_segment_s": "4.5000",
    }
    assert (folder / "labels.csv").read_text().splitlines() == [
        "video,clip,start_s,end_s,label,votes",
        "tea,0,0.0,4.0,-1,",
        "tea,1,4.0,9.0,1,1:3",
        "tea,2,9.0,12.0,1,0:1 1:1 unsure:1",
        "tea,3,12.0,15.5,0,0:2 2:1",
        "tea,4,15.5,20.0,2,2:3",
        "tea,5,20.0,22.0,-1,",
    ]
    assert (folder / "segments.csv").read_text() == (
        "video,start_s,end_s,label\ntea,4.0,12.0,1\ntea,12.0,15.5,0\ntea,15.5,20.0,2\n"
    )
    with open(folder / "durations.csv", newline="", encoding="utf-8") as file:
        bins = {row["from_s"]: (row["to_s"], row["clips"], row["segments"]) for row in csv.DictReader(file)}
    assert (bins["2"], bins["5"], bins["5000"]) == (("5", "3", "2"), ("10", "1", "1"), ("", "0", "0"))
    assert "| tea | 3 | 4 | 12 | 3.0000 |" in (folder / "agreement.md").read_text()


def test_the_order_of_lines_never_matters(capsys: pytest.CaptureFixture[str]) -> None:
    def made() -> dict[str, str]:
        assert build(capsys)[0] == 0
        files = [*RELEASE.rglob("*.json"), *Path("results/mine").rglob("*.*")]
        return {str(path): sha256_file(path) for path in files}

    first = made()
    for name in ("labels.csv", "steps.csv"):
        head, *lines = Path(name).read_text().splitlines()
        Path(name).write_text("\n".join([head, *reversed(lines), ""]))
    assert made() == first


def test_clips_are_shots(capsys: pytest.CaptureFixture[str]) -> None:
    CLIPS.unlink()
    absent = "error: datasets/mine/annotation/clips.csv is absent: run `stepline annotation clips mine`"
    assert build(capsys) == (2, [], absent)
    assert run(capsys, "clips", "mine") == (
        2,
        [],
        "error: datasets/mine/shots contains no shots of mine: run `snakemake` first",
    )
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    Path("videos/cake.mp4").touch()
    paths.shots("mine").mkdir(parents=True)
    shots = {"shot": [0, 1, 2], "start_s": [0.0, 3.0, 4.5], "end_s": [3.0, 4.5, 9.0]}
    pq.write_table(pa.table(shots), paths.shots("mine") / "tea.parquet")
    code, lines, _ = run(capsys, "clips", "mine", "--segment-s", "5")
    assert (code, lines) == (0, [f"{CLIPS}: 3 clips of 1 videos", "without shots: cake"])
    assert CLIPS.read_text() == (
        "video,clip,segment,start_s,end_s\ntea,0,0,0.0,3.0\ntea,1,0,3.0,4.5\ntea,2,1,4.5,9.0\n"
    )


def test_labels_in_an_animation_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    with open("labels.csv", "a", encoding="utf-8") as file:
        file.write("tea,0,ann,1\n")
    _, lines, _ = build(capsys)
    assert lines[-1] == "1 labelled clips overlap an animation, which models are given as a step"


@pytest.mark.parametrize(
    ("name", "old", "new", "line"),
    [
        ("labels.csv", "4,cy,2", "4,cy,3", "labels.csv, line 13: label '3' must be 1 to 2, 0 or irrelevant, or unsure"),
        (
            *("labels.csv", ",2\n", ",1\n"),
            "no clip of tea has the label step 2: remove it from the steps and renumber the others",
        ),
        (
            *("steps.csv", "tea,2,4\n", "tea,2,\n"),
            "steps.csv, line 4: step 2 of tea has no animation: give its start and end in seconds",
        ),
        ("split.csv", "tea", "cake", "split.csv, line 2: 'cake' is not a video with clips"),
        (
            *(str(CLIPS), "tea,2,0,9.0,", "tea,2,0,8.0,"),
            f"{CLIPS}, line 4: a clip must start at 9 s, the end of the last clip of tea, or later, and end",
        ),
    ],
)
def test_what_is_wrong_is_one_line(
    name: str, old: str, new: str, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    content = Path(name).read_text()
    assert old in content
    Path(name).write_text(content.replace(old, new))
    assert build(capsys) == (2, [], f"error: {line}")
    assert not RELEASE.exists()


def test_without_transcript_split_or_frame_rate_nothing_is_guessed(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, error = run(capsys, "build", "mine", "--labels", "labels.csv", "--steps", "steps.csv")
    assert code == 2
    assert error == "error: no video of mine has a split: give --split a CSV file with the columns video,split"
    write_availability(paths.availability("mine", "000"), [Record(video="tea", status="failed")])
    assert build(capsys)[2] == (
        "error: the videos do not share one frame rate (none): give --fps that of the frame indices"
    )
    assert build(capsys, "--fps", "10")[0] == 0
    assert json.loads((RELEASE / "release.json").read_bytes())["fps"] == 10
    (paths.transcripts("mine", "pocketsphinx") / "tea.parquet").unlink()
    assert build(capsys, "--fps", "10")[2].startswith(
        "error: datasets/mine/transcripts/pocketsphinx/tea.parquet is absent"
    )


def test_the_split_of_a_list_of_addresses_counts(capsys: pytest.CaptureFixture[str]) -> None:
    Path("mine.yaml").write_text("datasets: {mine: {kind: list, videos: list.csv}}\n")
    Path("list.csv").write_text(
        "video,url,split\nnew,https://example.org/n.mp4,train\ntea,https://example.org/t.mp4,val\n"
    )
    code, *_ = run(capsys, "build", "mine", "--labels", "labels.csv", "--steps", "steps.csv")
    assert code == 0
    assert json.loads((RELEASE / "tasks/split.json").read_bytes()) == {"train": [], "val": ["tea"], "test": []}


def test_a_release_goes_out_and_comes_back(capsys: pytest.CaptureFixture[str]) -> None:
    assert build(capsys)[0] == 0
    first = {path: sha256_file(path) for path in sorted(RELEASE.rglob("*.json"))}
    folder = Path("datasets/demo/demo")
    for path in first:
        (folder / path.relative_to(RELEASE)).parent.mkdir(parents=True, exist_ok=True)
        (folder / path.relative_to(RELEASE)).write_text(path.read_text().replace("tea", "soup"))
    write_json(folder / "release.json", {"files": {name: sha256_file(folder / name) for name in listed()}})
    code, lines, _ = run(capsys, "labels", "demo", "demo", "out")
    assert (code, lines) == (0, ["out: 1 recordings"])
    for path in Path("out").iterdir():
        path.write_text(path.read_text().replace("soup", "tea"))
    out = [f"--{name}=out/{name}.csv" for name in ("clips", "labels", "steps", "split")]
    assert run(capsys, "build", "mine", *out)[0] == 0
    assert {path: sha256_file(path) for path in sorted(RELEASE.rglob("*.json"))} == first


def test_the_benchmark_runs_on_it(capsys: pytest.CaptureFixture[str]) -> None:
    build(capsys)
    study = {
        "text_encoders": ["tfidf"],
        "video_encoders": [],
        "contexts_s": {"step_recognition": [2], "intra-video_retrieval": [1]},
    }
    samples = {"per_video": 9, "min_distance_s": 0.4, "boundary_s": 0.2}
    write_json("mine.yaml", {"datasets": {"mine": {"videos": "videos", "study": study, "samples": samples}}})
    shards.write(paths.shards("mine"), {"tea": "000"})
    write_manifest(paths.manifest(paths.transcripts("mine", "pocketsphinx"), "000"), {"tea": {"status": "present"}})

    def stage(*arguments: str) -> None:
        code = cli.main(["--configfile", "mine.yaml", *arguments])
        assert code == 0, capsys.readouterr().err

    stage("samples", "mine", "--release", "release")
    planned = plan(load("mine.yaml"), "mine")
    assert isinstance(planned, Spacewalk)
    for job in planned.jobs("table2"):
        for verb in ("predict", "score"):
            stage(verb, "mine", "--release", "release", "--entry", job.entry.id, "--context", job.context)
    stage("table", "mine")
    with open("results/mine/table2.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    made = [row for row in rows if row["value"]]
    found = {(row["table"], row["method"], row["metric"]): (float(row["value"]), row["release"]) for row in made}
    assert found["2a", "Random", "accuracy"] == (33.3333, "release")
    assert found["2b", "Random", "accuracy"] == (50.0, "release")
    assert ("2a", "TF-IDF", "map") in found
    assert all(row["paper"] == "" for row in rows)
    missing = [(row["method"], row["note"], row["command"]) for row in rows if not row["value"]]
    assert "TF-IDF (train)" in {method for method, *_ in missing}
    assert all("needs split:" in note and command == "" for _, note, command in missing)


def test_samples_that_segments_are_too_short_for_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    build(capsys)
    Path("mine.yaml").write_text("datasets: {mine: {videos: videos, study: {}}}\n")
    code = cli.main(["--configfile", "mine.yaml", "samples", "mine", "--release", "release"])
    assert code == 2
    assert capsys.readouterr().err.strip() == (
        "error: tea of mine has no samples of intra-video_retrieval: its segments are too short; "
        "lower datasets.mine.samples.min_distance_s and boundary_s"
    )


def listed() -> list[str]:
    return list(json.loads((RELEASE / "release.json").read_bytes())["files"])
