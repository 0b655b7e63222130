import shutil
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

av = pytest.importorskip("av")
cv2 = pytest.importorskip("cv2")

from stepline.datasets.demo import FPS, photograph, script, videos  # noqa: E402
from stepline.demo import build as builder  # noqa: E402
from stepline.errors import MissingError  # noqa: E402
from stepline.io import read_json, sha256_file  # noqa: E402

pytestmark = pytest.mark.slow


def files(mirror):
    return {str(path.relative_to(mirror)): path for path in sorted(mirror.rglob("*")) if path.is_file()}


def test_a_rebuild_gives_the_same_bytes(mirror, truth, tmp_path, monkeypatch):
    """One recording is encoded again; the others are taken from the first build."""
    encode = builder._encode

    def encode_one(path, recording, sound):
        [name] = [name for name, each in script()["recordings"].items() if each is recording]
        if name == "garden":
            encode(path, recording, sound)
        else:
            shutil.copyfile(mirror / f"demo/videos/{name}.mp4", path)

    monkeypatch.setattr(builder, "_encode", encode_one)
    builder.build(tmp_path / "mirror", tmp_path / "truth.json")
    assert {name: sha256_file(path) for name, path in files(tmp_path / "mirror").items()} == truth["sha256"]
    assert (tmp_path / "truth.json").read_bytes() == (mirror.parent / "truth.json").read_bytes()


def test_a_finished_build_is_kept_and_a_changed_one_is_made_again(mirror, truth, tmp_path, monkeypatch):
    made = []

    def encode(path: Path, recording, sound):
        made.append(recording)
        path.write_bytes(sound.tobytes())

    monkeypatch.setattr(builder, "_encode", encode)
    monkeypatch.setattr(builder, "_sound", lambda name, _: np.frombuffer(name.encode(), np.uint8))
    builder.build(mirror, mirror.parent / "truth.json")
    assert not made
    for change in ("nothing is there", "a file is another", "the truth is of other inputs"):
        if change == "a file is another":
            (tmp_path / "demo/release/steps.json").write_text("{}")
        if change == "the truth is of other inputs":
            monkeypatch.setattr(builder.stepline, "__version__", "another")
        made.clear()
        builder.build(tmp_path, tmp_path / "truth.json")
        assert len(made) == len(truth["videos"]), change
        made.clear()
        builder.build(tmp_path, tmp_path / "truth.json")
        assert not made, change


def test_the_release_is_consistent(mirror, truth):
    release = mirror / "demo/release"
    annotation, steps, split = (read_json(release / f"{name}.json") for name in ("annotation", "steps", "split"))
    assert [len(split[part]) for part in ("train", "val", "test")] == [2, 1, 2]
    assert (
        sorted(video for part in split.values() for video in part)
        == sorted(annotation)
        == sorted(steps)
        == sorted(truth["videos"])
    )
    for video in videos():
        segments = annotation[video.id]
        assert segments[0]["video_start"] == 0
        assert segments[-1]["video_end"] == video.duration_s
        assert segments[-1]["video_end"] - segments[-1]["video_start"] >= 1
        assert [segments[0]["label"], segments[-1]["label"]] == [-1, -1]
        for before, after in pairwise(segments):
            assert (before["video_end"], before["frame_end"]) == (after["video_start"], after["frame_start"])
            assert before["label"] != after["label"]
        for segment in segments:
            assert segment["frame_start"] == round(segment["video_start"] * FPS)
            assert segment["frame_end"] == round(segment["video_end"] * FPS)
        assert {segment["label"] for segment in segments} == set(range(-1, len(steps[video.id])))
        assert [step["index"] for step in steps[video.id]] == list(range(len(steps[video.id])))
        assert steps[video.id][0] == {"index": 0, "caption": "Irrelevant", "transcript": script()["irrelevant"]}
        animations = [(step["animation_start"], step["animation_end"]) for step in steps[video.id][1:]]
        assert animations[0][0] == 0
        assert animations[-1][1] == segments[0]["video_end"]
        assert all(before[1] == after[0] for before, after in pairwise(animations))


def test_the_videos_are_as_long_as_the_script_says(mirror):
    for video in videos():
        with av.open(str(mirror / video.path)) as container:
            picture, voice = container.streams.video[0], container.streams.audio[0]
            assert (picture.codec.name, picture.width, picture.height) == ("h264", 320, 180)
            assert (voice.codec.name, voice.layout.name) == ("aac", "mono")
            assert picture.average_rate == FPS
            assert picture.frames == round(video.duration_s * FPS)
            assert float(voice.duration * voice.time_base) == pytest.approx(video.duration_s, abs=0.05)


def test_the_camera_moves_within_its_photograph_and_elsewhere_than_in_the_preview():
    for name, footage in script()["footage"].items():
        height, width, _ = cv2.imread(str(photograph(name))).shape
        windows = [move[i : i + 3] for move in footage.values() for i in (0, 3)]
        for x, y, wide in windows:
            assert x >= 0 <= y, name
            assert x + wide <= width, name
            assert y + wide * 9 / 16 <= height, name
        assert len({*map(tuple, windows)}) == 4, name


def test_the_camera_always_moves_a_cut_is_far_more_and_a_step_is_not_its_preview_again(mirror, truth):
    with av.open(str(mirror / "demo/videos/garden.mp4")) as container:
        frames = np.stack([frame.to_ndarray(format="gray") for frame in container.decode(video=0)])
    moved = np.array([np.abs(after.astype(int) - before).mean() for before, after in pairwise(frames)])
    cuts = [shot["start_frame"] - 1 for shot in truth["videos"]["garden"]["shots"][1:]]
    assert np.delete(moved, cuts).min() > 0.3
    assert np.delete(moved, cuts).max() < moved[cuts].min() / 2
    opening, first, *_ = truth["videos"]["garden"]["labels"]
    assert (opening["start_frame"], first["label"]) == (0, 1)
    assert np.abs(frames[first["start_frame"]].astype(int) - frames[0]).mean() > 10


def test_the_sentences_lie_in_their_clips_and_do_not_overlap(truth):
    for video, true in truth["videos"].items():
        cuts = [shot["start_s"] for shot in true["shots"]][1:]
        for before, after in pairwise(true["words"]):
            assert before["end_s"] + 0.3 <= after["start_s"], video
        for sentence in true["words"]:
            assert not [cut for cut in cuts if sentence["start_s"] <= cut <= sentence["end_s"]], sentence["text"]


def test_the_committed_narration_is_small():
    narration = Path(builder.__file__).parent / "narration"
    assert {path.stem for path in narration.iterdir()} == set(script()["recordings"])
    assert sum(path.stat().st_size for path in narration.iterdir()) <= 400_000


def test_without_the_footage_the_error_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "skimage", None)
    with pytest.raises(MissingError, match=r"scikit-image: pip install -c constraints.txt -e '.\[media\]'$"):
        builder.build(tmp_path, tmp_path / "truth.json")
    assert not list(tmp_path.iterdir())
