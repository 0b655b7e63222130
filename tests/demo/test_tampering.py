"""What is changed on purpose is noticed, by the check of the stage that it concerns and by no other."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

av = pytest.importorskip("av")
pytest.importorskip("cv2")
pytest.importorskip("scenedetect")

from stepline import config, paths  # noqa: E402
from stepline.backbones.histogram import HistogramSpec  # noqa: E402
from stepline.benchmarks.spacewalk.samples import write_samples  # noqa: E402
from stepline.datasets.schema import SPLITS  # noqa: E402
from stepline.datasets.studies import study  # noqa: E402
from stepline.features.extract import Work, extract  # noqa: E402
from stepline.fetch import fetch_release, fetch_videos  # noqa: E402
from stepline.io import read_json, write_json  # noqa: E402
from stepline.media.prepare import prepare  # noqa: E402
from stepline.plans import pipeline  # noqa: E402
from stepline.shots import detect  # noqa: E402
from tests.demo import truth as checks  # noqa: E402
from tests.media.clips import LIMITS  # noqa: E402

pytestmark = pytest.mark.slow

VIDEO = "bicycle"
SHARD = "000"
CONFIG = config.validate({"demo": {}})
DEMO = study("demo")


@pytest.fixture
def one(truth: dict[str, Any]) -> dict[str, Any]:
    return {**truth, "videos": {VIDEO: truth["videos"][VIDEO]}}


@pytest.fixture
def work(mirror: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A work folder, and a mirror of its own whose files may be replaced."""
    own = tmp_path / "mirror"
    for path in mirror.rglob("*.*"):
        target = own / path.relative_to(mirror)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.symlink_to(path)
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("STEPLINE_MIRROR", str(own))
    return folder


def fetch_one() -> Path:
    """Download the videos, and keep one of them for the stages that follow."""
    fetch_videos(pipeline(CONFIG, "demo"), SHARD)
    path = paths.availability("demo", SHARD)
    records = read_json(path)
    write_json(path, {"videos": {VIDEO: records["videos"][VIDEO]}})
    return path


def watch() -> None:
    availability = fetch_one()
    prepare(availability, paths.media("demo"), paths.manifest(paths.media("demo"), SHARD), limits=LIMITS)
    detect(
        paths.manifest(paths.media("demo"), SHARD),
        paths.media("demo"),
        paths.shots("demo"),
        paths.manifest(paths.shots("demo"), SHARD),
        detector="content",
        threshold=27,
        min_shot_s=0.6,
    )
    spec = HistogramSpec()
    extract(
        availability,
        [Work(spec=spec, folder=paths.features("demo", SHARD, spec))],
        paths.features_manifest("demo", SHARD, spec),
        lock=paths.features_lock("demo", SHARD),
        limits=LIMITS,
        options={"device": "cpu", "batch_size": None, "decoders": 1},
    )


def listen() -> None:
    from stepline.asr.transcribe import transcribe

    prepare(fetch_one(), paths.media("demo"), paths.manifest(paths.media("demo"), SHARD), limits=LIMITS)
    folder = paths.transcripts("demo", "pocketsphinx")
    media = paths.manifest(paths.media("demo"), SHARD)
    transcribe(media, paths.media("demo"), folder, paths.manifest(folder, SHARD), engine="pocketsphinx")


def sample() -> None:
    fetch_release(DEMO, "demo")
    for task in DEMO.tasks["demo"]:
        for split in SPLITS:
            write_samples(DEMO, DEMO.load("demo"), task, split, paths.samples("demo", "demo", task, split))


def remake(path: Path, order: list[int] | None = None, *, silent: bool = False) -> None:
    """Encode a video of the mirror again, its frames in another order or without its sound."""
    with av.open(str(path)) as source:
        pictures = list(source.decode(video=0))
    with av.open(str(path)) as source:
        sound = np.concatenate([frame.to_ndarray() for frame in source.decode(audio=0)], axis=1)
    path.unlink()
    with av.open(str(path), "w") as target:
        picture = target.add_stream("libx264", rate=25, options={"preset": "veryfast", "crf": "20"})
        picture.width, picture.height, picture.pix_fmt = pictures[0].width, pictures[0].height, "yuv420p"
        voice = target.add_stream("aac", rate=48000, layout="mono")
        for i, frame in enumerate(order or range(len(pictures))):
            shown = pictures[frame]
            shown.pts, shown.time_base, shown.pict_type = i, Fraction(1, 25), av.video.frame.PictureType.NONE
            target.mux(picture.encode(shown))
        target.mux(picture.encode(None))
        spoken = av.AudioFrame.from_ndarray(sound * (not silent), format="fltp", layout="mono")
        spoken.sample_rate, spoken.pts, spoken.time_base = 48000, 0, Fraction(1, 48000)
        target.mux(voice.encode(spoken))
        target.mux(voice.encode(None))


def test_the_recording_as_built_passes(work: Path, one: dict[str, Any]) -> None:
    watch()
    fetch_release(DEMO, "demo")
    for check in (checks.check_videos, checks.check_shots, checks.check_features, checks.check_steps):
        check(work, one)


def test_silenced_audio_is_noticed(work: Path, one: dict[str, Any]) -> None:
    """That the words of recordings as built pass is seen in the whole run."""
    pytest.importorskip("pocketsphinx")
    remake(work.parent / f"mirror/demo/videos/{VIDEO}.mp4", silent=True)
    listen()
    with pytest.raises(AssertionError, match="sentences were not heard"):
        checks.check_words(work, one)
    with pytest.raises(AssertionError, match="sha256"):
        checks.check_videos(work, one)


def test_two_swapped_clips_are_noticed(work: Path, one: dict[str, Any]) -> None:
    shots = one["videos"][VIDEO]["shots"]
    clips = [list(range(shot["start_frame"], shot["end_frame"])) for shot in shots]
    clips[0], clips[1] = clips[1], clips[0]
    remake(work.parent / f"mirror/demo/videos/{VIDEO}.mp4", [frame for clip in clips for frame in clip])
    watch()
    for check, message in (
        (checks.check_videos, "sha256"),
        (checks.check_shots, "were not found"),
        (checks.check_features, "nearest to their step's preview"),
    ):
        with pytest.raises(AssertionError, match=message):
            check(work, one)


def test_two_swapped_videos_are_noticed(work: Path, truth: dict[str, Any]) -> None:
    videos = work.parent / "mirror/demo/videos"
    first, second = videos / "bicycle.mp4", videos / "soup.mp4"
    first.rename(videos / "other.mp4")
    second.rename(first)
    (videos / "other.mp4").rename(second)
    fetch_videos(pipeline(CONFIG, "demo"), SHARD)
    for video in ("bicycle", "soup"):
        with pytest.raises(AssertionError, match=f"{video}: .*(sha256|wrong duration)"):
            checks.check_videos(work, {**truth, "videos": {video: truth["videos"][video]}})
    checks.check_videos(work, {**truth, "videos": {"camp": truth["videos"]["camp"]}})


def test_shuffled_captions_are_noticed(work: Path, one: dict[str, Any]) -> None:
    path = work.parent / "mirror/demo/release/steps.json"
    steps = read_json(path)
    captions = [step["caption"] for step in steps[VIDEO]]
    for step, caption in zip(steps[VIDEO], [captions[0], *captions[2:], captions[1]], strict=True):
        step["caption"] = caption
    path.unlink()
    write_json(path, steps)
    fetch_release(DEMO, "demo")
    with pytest.raises(AssertionError, match=f"{VIDEO}, step 1: caption"):
        checks.check_steps(work, one)


def test_swapped_labels_are_noticed(work: Path, truth: dict[str, Any]) -> None:
    sample()
    checks.check_samples(work, truth)
    path = work.parent / "mirror/demo/release/annotation.json"
    annotation = read_json(path)
    for segment in annotation[VIDEO]:
        segment["label"] = {1: 2, 2: 1}.get(segment["label"], segment["label"])
    path.unlink()
    write_json(path, annotation)
    sample()
    with pytest.raises(AssertionError, match=f"{VIDEO}: sample .* has label"):
        checks.check_samples(work, truth)
