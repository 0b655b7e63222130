"""The media stage: each video is probed, scored and its audio cut out, once."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from stepline.availability import Record, read_availability, write_manifest
from stepline.io import atomic_dir, read_json, sha256_file, write_json
from stepline.media import REVISION
from stepline.media.audio import write_wav
from stepline.media.decode import MediaError, frames, probe
from stepline.media.scores import ContentScore
from stepline.progress import progress


def prepare(availability: Path, folder: Path, manifest: Path) -> None:
    """Make ``folder/<video>/`` of every present video of ``availability`` and say in ``manifest`` what became of each.

    ``scores.parquet`` has a line per frame: frame, pts (in units of the metadata's ``time_base``), t_s, content_val.
    ``audio.wav`` is 16 kHz mono; absent where the video has no readable audio, as ``audio`` says. A video that cannot
    be read whole is ``failed`` with its reason. A folder made from the same file is kept.
    """
    videos: dict[str, dict[str, Any]] = {}
    records = read_availability(availability)
    for video, record in progress(records.items(), what="media", unit="videos"):
        if record.status != "present":
            videos[video] = {"status": record.status, "reason": record.reason}
            continue
        try:
            videos[video] = _prepare(_with_digest(record), folder / video)
        except MediaError as error:
            videos[video] = {
                "status": "failed",
                "reason": str(error),
                "sha256": record.sha256,
            }
    write_manifest(manifest, videos)


def _with_digest(record: Record) -> Record:
    if not Path(record.path).is_file():
        raise MediaError(f"{record.path}: no such file")
    return record if record.sha256 else replace(record, sha256=sha256_file(record.path))


def _prepare(record: Record, folder: Path) -> dict[str, Any]:
    done = folder / "media.json"
    if done.is_file():
        known: dict[str, Any] = read_json(done)
        if (known["sha256"], known["revision"]) == (record.sha256, REVISION):
            return known
    path = Path(record.path)
    header = probe(path)
    with atomic_dir(folder) as part:
        duration_s, n_frames = _write_scores(path, part / "scores.parquet")
        made = {
            "status": "present",
            "reason": "",
            "sha256": record.sha256,
            "revision": REVISION,
            "duration_s": round(duration_s, 6),
            "fps": header.fps,
            "width": header.width,
            "height": header.height,
            "n_frames": n_frames,
            "has_audio": header.has_audio,
            "audio": _write_audio(path, part / "audio.wav", header.start_s),
        }
        write_json(part / "media.json", made)
    return made


def _write_scores(path: Path, target: Path) -> tuple[float, int]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    score = ContentScore()
    pts, t_s, content_val = [], [], []
    for frame in frames(path):
        pts.append(frame.pts)
        t_s.append(frame.t_s)
        content_val.append(score(frame.bgr()))
    columns = {
        "frame": pa.array(range(len(pts)), pa.int64()),
        "pts": pts,
        "t_s": t_s,
        "content_val": content_val,
    }
    table = pa.table(columns).replace_schema_metadata({"time_base": str(frame.time_base)})
    pq.write_table(table, target)
    return frame.end_s, len(pts)


def _write_audio(path: Path, target: Path, start_s: Fraction) -> dict[str, str]:
    try:
        write_wav(path, target, start_s=start_s)
    except MediaError as error:
        target.unlink()
        return {
            "status": "missing" if str(error) == "no audio stream" else "failed",
            "reason": str(error),
        }
    return {"status": "present", "reason": ""}
