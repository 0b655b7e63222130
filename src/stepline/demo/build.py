"""Build the demo study from its script, its narration and photographs in the package scikit-image.

Each recording begins with a preview, one narrated clip per step, like the animations that open a spacewalk broadcast.
Then the steps follow in order, with repetitions and Irrelevant parts. In each clip a camera moves over a photograph.
Clips are joined by hard cuts.
"""

import hashlib
from collections.abc import Iterator
from fractions import Fraction
from importlib.resources import files
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import av
import cv2
import numpy as np
import numpy.typing as npt

import stepline
from stepline.datasets.demo import photograph, script
from stepline.datasets.schema import SPLITS
from stepline.io import atomic_path, read_json, sha256_file, write_json
from stepline.progress import progress
from stepline.spec import digest

AUDIO_RATE = 48000
"""The sample rate of decoded Opus, in Hz."""
NOISE = 0.0005
"""Amplitude of the added room noise, -66 dB: a real recording is never digitally silent."""


def build(mirror: Path, truth: Path) -> None:
    """Write the study into ``mirror``/demo and its ground truth into the file ``truth``.

    ``mirror``/demo gets ``release/{annotation,steps,split}.json`` and ``videos/<id>.mp4``: 320x180 at 25 fps, H.264,
    and AAC mono at 48 kHz. The same machine and package versions produce the same bytes. ``truth`` contains the
    ``sha256`` of the files and, by video, ``shots``, ``words`` (one item per sentence), ``labels`` and ``steps``. No
    stage reads it. If it already describes the existing files, nothing is written.
    Raises MissingError if scikit-image is not installed.
    """
    inputs = _inputs()
    if _finished(mirror, truth, inputs):
        return
    recordings = script()["recordings"]
    videos = {name: _truth(recording) for name, recording in recordings.items()}
    cv2.setNumThreads(0)  # a frame is too small to be worth threads
    folder = mirror / "demo"
    for name, recording in progress(recordings.items(), what="demo", unit="videos", total=len(recordings)):
        with atomic_path(folder / "videos" / f"{name}.mp4") as part:
            _encode(part, recording, _sound(name, recording))
    release = {
        "annotation": {name: [_annotation(label) for label in video["labels"]] for name, video in videos.items()},
        "steps": {name: [_step(*step) for step in enumerate(video["steps"])] for name, video in videos.items()},
        "split": {part: [name for name in recordings if recordings[name]["split"] == part] for part in SPLITS},
    }
    for name, content in release.items():
        write_json(folder / "release" / f"{name}.json", content)
    made = sorted(path for kind in ("release", "videos") for path in (folder / kind).iterdir())
    sha256 = {str(path.relative_to(mirror)): sha256_file(path) for path in made}
    write_json(truth, {"inputs": inputs, "sha256": sha256, "videos": videos})


def _inputs() -> str:
    package = files("stepline.demo")
    sound = [hashlib.sha256(_opus(name).read_bytes()).hexdigest() for name in script()["recordings"]]
    photographs = [sha256_file(photograph(name)) for name in script()["footage"]]
    versions = [stepline.__version__, av.__version__, cv2.__version__, np.__version__]
    return digest([script(), sound, photographs, package.joinpath("build.py").read_text(encoding="utf-8"), versions])


def _finished(mirror: Path, truth: Path, inputs: str) -> bool:
    if not truth.exists():
        return False
    known = read_json(truth)
    return bool(known["inputs"] == inputs) and all(
        (mirror / path).is_file() and sha256_file(mirror / path) == sha256 for path, sha256 in known["sha256"].items()
    )


def _opus(name: str) -> Path:
    return Path(str(files("stepline.demo").joinpath(f"narration/{name}.opus")))


def _truth(recording: dict[str, Any]) -> dict[str, Any]:
    fps, clips = script()["fps"], recording["clips"]
    ends = [round(end * fps) for end in accumulate(clip["duration_s"] for clip in clips)]
    shots = [
        {"start_s": start / fps, "end_s": end / fps, "start_frame": start, "end_frame": end}
        for start, end in pairwise([0, *ends])
    ]
    preview = [shot for shot, clip in zip(shots, clips, strict=True) if "step" in clip]
    opening = {**preview[0], "end_s": preview[-1]["end_s"], "end_frame": preview[-1]["end_frame"], "label": -1}
    done = [{**shot, "label": clip["label"]} for shot, clip in zip(shots, clips, strict=True) if "step" not in clip]
    words = [
        {
            "text": sentence["text"],
            "start_s": round(shot["start_s"] + sentence["at_s"], 3),
            "end_s": round(shot["start_s"] + sentence["at_s"] + sentence["length_s"], 3),
        }
        for shot, clip in zip(shots, clips, strict=True)
        for sentence in clip["say"]
    ]
    steps = [
        {
            "caption": step["caption"],
            "transcript": " ".join(sentence["text"] for sentence in clip["say"]),
            "animation_s": [shot["start_s"], shot["end_s"]],
        }
        for step, clip, shot in zip(recording["steps"], clips, preview, strict=False)
    ]
    irrelevant = {"caption": "Irrelevant", "transcript": script()["irrelevant"], "animation_s": None}
    return {"shots": shots, "words": words, "labels": [opening, *done], "steps": [irrelevant, *steps]}


def _annotation(label: dict[str, Any]) -> dict[str, Any]:
    return {
        "video_start": label["start_s"],
        "video_end": label["end_s"],
        "frame_start": label["start_frame"],
        "frame_end": label["end_frame"],
        "label": label["label"],
    }


def _step(index: int, step: dict[str, Any]) -> dict[str, Any]:
    item = {"index": index, "caption": step["caption"], "transcript": step["transcript"]}
    if step["animation_s"] is not None:
        item["animation_start"], item["animation_end"] = step["animation_s"]
    return item


def _sound(name: str, recording: dict[str, Any]) -> npt.NDArray[np.float32]:
    with av.open(str(_opus(name))) as container:
        spoken = np.concatenate([frame.to_ndarray()[0] for frame in container.decode(audio=0)])
    seconds = sum(clip["duration_s"] for clip in recording["clips"])
    sound: npt.NDArray[np.float32]
    sound = np.random.default_rng(0).uniform(-NOISE, NOISE, round(seconds * AUDIO_RATE)).astype(np.float32)
    start_s = 0.0
    for clip in recording["clips"]:
        for sentence in clip["say"]:
            first, n = round(sentence["offset_s"] * AUDIO_RATE), round(sentence["length_s"] * AUDIO_RATE)
            at = round((start_s + sentence["at_s"]) * AUDIO_RATE)
            sound[at : at + n] += spoken[first : first + n]
        start_s += clip["duration_s"]
    return sound


def _frames(recording: dict[str, Any]) -> Iterator[av.VideoFrame]:
    for clip in recording["clips"]:
        shown = clip.get("step", clip["label"])
        if shown > 0:
            name = recording["steps"][shown - 1]["footage"]
        else:
            name = recording["irrelevant_footage" if shown == 0 else "tail_footage"]
        move = script()["footage"][name]["preview" if "step" in clip else "recording"]
        yield from _footage(name, move, round(clip["duration_s"] * script()["fps"]))


def _footage(name: str, move: list[int], n: int) -> Iterator[av.VideoFrame]:
    picture, size = np.asarray(cv2.imread(str(photograph(name))), np.uint8), (script()["width"], script()["height"])
    for x, y, width in np.linspace(move[:3], move[3:], n):
        scale = width / size[0]
        window = np.array([[scale, 0, x], [0, scale, y]])
        shown = cv2.warpAffine(picture, window, size, flags=cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP)
        frame = np.asarray(cv2.cvtColor(shown, cv2.COLOR_BGR2YUV_I420), np.uint8)
        yield av.VideoFrame.from_ndarray(frame, format="yuv420p")


def _encode(path: Path, recording: dict[str, Any], sound: npt.NDArray[np.float32]) -> None:
    fps = script()["fps"]
    per_frame = AUDIO_RATE // fps
    # Slower presets use x264's macroblock tree, which reads memory that it has not set: the bytes would vary.
    options = {"preset": "superfast", "crf": "28", "threads": "2"}
    with av.open(str(path), "w", format="mp4", options={"fflags": "+bitexact"}) as container:
        picture = container.add_stream("libx264", rate=fps, options=options)
        picture.width, picture.height, picture.pix_fmt = script()["width"], script()["height"], "yuv420p"
        voice = container.add_stream("aac", rate=AUDIO_RATE, layout="mono", options={"b": "64k"})
        for stream in (picture, voice):
            stream.codec_context.flags |= av.codec.context.Flags.bitexact
        for i, frame in enumerate(_frames(recording)):
            frame.pts, frame.time_base, frame.pict_type = i, Fraction(1, fps), av.video.frame.PictureType.NONE
            container.mux(picture.encode(frame))
            samples = sound[None, i * per_frame : (i + 1) * per_frame]
            spoken = av.AudioFrame.from_ndarray(np.ascontiguousarray(samples), format="fltp", layout="mono")
            spoken.sample_rate, spoken.pts, spoken.time_base = AUDIO_RATE, i * per_frame, Fraction(1, AUDIO_RATE)
            container.mux(voice.encode(spoken))
        container.mux(picture.encode(None))
        container.mux(voice.encode(None))
