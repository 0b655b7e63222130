"""The media stage: each video is probed, scored and its audio cut out, once."""

from pathlib import Path
from typing import Any

from stepline.aside import sweep
from stepline.availability import Record, read_availability, write_manifest
from stepline.io import atomic_dir, read_json, sha256_file, write_sealed
from stepline.media import REVISION
from stepline.media.decode import MediaError
from stepline.media.one_pass import one_pass
from stepline.media.process import Limits
from stepline.progress import progress


def prepare(availability: Path, folder: Path, manifest: Path, *, limits: Limits) -> None:
    """Make ``folder/<video>/`` of every present video of ``availability`` and say in ``manifest`` what became of each.

    The folder holds what ``one_pass`` writes. A video that cannot be read, within the limits, is ``failed`` with its
    reason. A folder made from the same spans of the same file is kept.
    """
    sweep(folder)
    videos: dict[str, dict[str, Any]] = {}
    records = read_availability(availability)
    for video, record in progress(records.items(), what="media", unit="videos"):
        if record.status != "present":
            videos[video] = {"status": record.status, "reason": record.reason}
            continue
        try:
            videos[video] = _prepare(record, folder / video, limits)
        except MediaError as error:
            videos[video] = {"status": "failed", "reason": str(error), "sha256": record.sha256}
    write_manifest(manifest, videos)


def _prepare(record: Record, folder: Path, limits: Limits) -> dict[str, Any]:
    done = folder / "media.json"
    if done.is_file():
        known: dict[str, Any] = read_json(done)
        same = (known["sha256"], known["spans"], known["revision"]) == (record.sha256, record.spans, REVISION)
        if same and all((folder / file).is_file() for file in _files(known)):
            return known
    path = Path(record.path)
    if not path.is_file():
        raise MediaError(f"{path}: no such file")
    source = {"sha256": record.sha256, "spans": record.spans, "revision": REVISION}
    made: dict[str, Any] = {"status": "present", "reason": "", **source}
    with atomic_dir(folder) as part:
        made |= one_pass(path, part, record.spans, limits=limits, duration_s=record.duration_s)
        if (sound := part / "audio.wav").exists():
            made["audio_sha256"] = sha256_file(sound)
        write_sealed(part / "media.json", made)
    return made


def _files(made: dict[str, Any]) -> list[str]:
    """Return what stands beside the record of a video."""
    return ["scores.parquet", *(["audio.wav"] if made["audio"]["status"] == "present" else [])]
