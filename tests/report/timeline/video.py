"""A data set of one video as the stages leave it behind, from facts alone."""

import io
import wave
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import PIL.Image

from stepline import paths
from stepline.asr import transcript
from stepline.asr.transcript import Sentence
from stepline.availability import Record, write_availability, write_manifest
from stepline.backbones.histogram import HistogramSpec
from stepline.config import validate
from stepline.features import store
from stepline.io import write_table
from stepline.pipeline import Pipeline
from stepline.report.summary import summarise_shard
from stepline.report.timeline.track import Track
from stepline.report.timeline.write import write_timeline

HERE = {"status": "present", "reason": ""}


def made_up(
    *,
    duration_s: float,
    shots: int,
    sentences: Sequence[Sentence],
    segments: str = "",
    video: str = "a",
    path: str = "",
    codec: str = "h264",
    gaps: Sequence[tuple[float, float, str]] = (),
    url: str = "",
) -> Pipeline:
    """Write what there is of the only video of the data set ``mine``, its shots of equal length, and return it."""
    import pyarrow as pa

    path = path or f"clips/{video}.mp4"
    for file in (Path(f"clips/{video}.mp4"), Path(path)):
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(file.read_bytes() if file.exists() else b"x")
    given: dict[str, object] = {"videos": "clips"}
    if url:
        Path("list.csv").write_text(f"video,url\n{video},{url}\n")
        given = {"kind": "list", "videos": "list.csv"}
    if segments:
        Path("segments.csv").write_text(segments)
        given |= {"segments": "segments.csv"}
    pipeline = Pipeline.of(validate({"datasets": {"mine": given}}), "mine")
    record = Record(video=video, status="present", source=path, path=path, codec=codec, duration_s=duration_s)
    write_availability(paths.availability("mine", "000"), [record])
    facts = {"duration_s": duration_s, "fps": 25.0, "width": 64, "height": 48, "codec": codec, "n_frames": 1}
    made = HERE | facts | {"audio": HERE, "sha256": "0" * 64, "gaps": list(gaps)}
    write_manifest(paths.manifest(paths.media("mine"), "000"), {video: made})
    edges = np.linspace(0, duration_s, shots + 1).round(3).tolist()
    write_table(paths.shots("mine") / f"{video}.parquet", pa.table({"start_s": edges[:-1], "end_s": edges[1:]}))
    write_manifest(paths.manifest(paths.shots("mine"), "000"), {video: HERE | {"n_shots": shots}})
    transcript.write(pipeline.speech.folder / f"{video}.parquet", sentences)
    said = {video: HERE | {"n_sentences": len(sentences)}}
    write_manifest(paths.manifest(pipeline.speech.folder, "000"), said, **pipeline.speech.record)
    _write_pictures(video, shots)
    _write_sound(video, duration_s)
    spec, rows = pipeline.features.spec_of("histogram"), _rows(duration_s, shots)
    store.write(paths.features("mine", "000", spec), spec, {video: rows}, 1.0)
    write_manifest(paths.features_manifest("mine", "000", spec), {video: HERE | {"n_rows": len(rows)}})
    return pipeline


def timeline(pipeline: Pipeline, *tracks: Track) -> Path:
    """Write the timeline of the video and return it."""
    return write_timeline(pipeline, summarise_shard(pipeline, "000")["a"], tracks)


def _write_pictures(video: str, shots: int) -> None:
    pictures = {}
    for shot in range(shots):
        content = io.BytesIO()
        colour = (37 * shot % 256, 91 * shot % 256, 151 * shot % 256)
        PIL.Image.new("RGB", (160, 90), colour).save(content, "JPEG", quality=75)
        file = paths.thumbnails("mine") / video / f"00000000-{shot:08d}.jpg"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.getvalue())
        pictures[str(shot)] = str(file)
    write_manifest(paths.manifest(paths.thumbnails("mine"), "000"), {video: HERE | {"pictures": pictures}})


def _write_sound(video: str, duration_s: float) -> None:
    samples = np.arange(int(duration_s * 2000))
    loud = (8000 * np.abs(np.sin(samples / 9000)) * np.sin(samples / 3)).astype(np.int16)
    file = paths.media("mine") / video / "audio.wav"
    file.parent.mkdir(parents=True, exist_ok=True)
    with wave.open(str(file), "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(2000)
        sound.writeframes(loud.tobytes())


def _rows(duration_s: float, shots: int) -> np.ndarray:
    random = np.random.default_rng(3)
    of_shot = random.random((shots, HistogramSpec().dimension))
    place = np.minimum(np.arange(int(duration_s)) * shots // max(int(duration_s), 1), shots - 1)
    return (of_shot[place] + 0.1 * random.random((len(place), of_shot.shape[1]))).astype(np.float32)
