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
from stepline.media.timeline import described
from stepline.progress import progress
from stepline.spec import Orientation


def prepare(
    availability: Path,
    folder: Path,
    manifest: Path,
    *,
    limits: Limits,
    damaged: str = "partial",
    orientation: Orientation = "upright",
) -> None:
    """Make ``folder/<video>/`` of every present video of ``availability`` and say in ``manifest`` what became of each.

    The folder holds what ``one_pass`` writes. A video that cannot be read, within the limits, is ``failed`` with its
    reason; one that is damaged has its ``gaps``, or is ``failed`` where ``damaged`` is ``skip``. A folder made from the
    same spans of the same file is kept. In the manifest ``sha256`` is the record's ``identity``.
    """
    sweep(folder)
    videos: dict[str, dict[str, Any]] = {}
    records = read_availability(availability)
    for video, record in progress(records.items(), what="media", unit="videos"):
        if record.status != "present":
            videos[video] = {"status": record.status, "reason": record.reason}
            continue
        source = record.identity(orientation)
        try:
            made = _known(record, source, folder / video)
            if made is None:
                made = _prepare(record, source, folder / video, limits, damaged, orientation)
            if made.get("gaps") and damaged == "skip":
                raise MediaError(described(made["gaps"]))
            videos[video] = made
        except MediaError as error:
            videos[video] = {"status": "failed", "reason": str(error), "sha256": source}
    write_manifest(manifest, videos)


def _known(record: Record, source: str, folder: Path) -> dict[str, Any] | None:
    done = folder / "media.json"
    if not done.is_file():
        return None
    known: dict[str, Any] = read_json(done)
    same = (known["sha256"], known["spans"], known["revision"]) == (source, record.spans, REVISION)
    return known if same and all((folder / file).is_file() for file in _files(known)) else None


def _prepare(
    record: Record, source: str, folder: Path, limits: Limits, damaged: str, orientation: Orientation
) -> dict[str, Any]:
    path = Path(record.path)
    if not path.is_file():
        raise MediaError(f"{path}: no such file")
    made: dict[str, Any] = {"status": "present", "reason": "", "sha256": source, "spans": record.spans}
    made["revision"] = REVISION
    about: dict[str, Any] = {"duration_s": record.duration_s, "damaged": damaged, "orientation": orientation}
    with atomic_dir(folder) as part:
        made |= one_pass(path, part, record.spans, limits=limits, **about)
        if (sound := part / "audio.wav").exists():
            made["audio_sha256"] = sha256_file(sound)
        write_sealed(part / "media.json", made)
    return made


def _files(made: dict[str, Any]) -> list[str]:
    """Return what stands beside the record of a video."""
    return ["scores.parquet", *(["audio.wav"] if made["audio"]["status"] == "present" else [])]
