"""Fetching: a release, the videos of a study, the weights of a backbone. All network work is here and in `download`."""

import logging
from pathlib import Path

from stepline import paths
from stepline.availability import Record, write_availability
from stepline.backbones.weights import DIGESTS, WEIGHTS, how_to_get, locate
from stepline.config import Config
from stepline.datasets import shards
from stepline.datasets.spacewalk import ReleaseFile
from stepline.datasets.studies import Study
from stepline.download import DownloadOptions, fetch_file, fetch_video
from stepline.errors import ConfigError, DownloadError, MissingError, ReleaseError
from stepline.io import read_json, sha256_file, write_bytes, write_json
from stepline.mirror import find, mirror_root
from stepline.progress import progress

log = logging.getLogger(__name__)


def fetch_release(study: Study, release: str) -> Path:
    """Bring all files of a release into its folder and return its ``release.json``, which lists their sha256.

    Raises ReleaseError, one line that names the file, where one is absent, truncated or another one.
    """
    folder = study.folder(release)
    files = {}
    listed = study.release_files(release)
    for file in progress(listed, what=f"{study.name} {release}", unit="files"):
        files[file.path] = _fetch_release_file(file, folder / file.path)
    manifest = folder / "release.json"
    write_json(manifest, {"study": study.name, "release": release, "files": files})
    return manifest


def _fetch_release_file(file: ReleaseFile, path: Path) -> str:
    pinned = file.wanted.sha256
    if pinned and path.exists() and sha256_file(path) == pinned:
        return pinned
    held = find(file.wanted)
    if held is not None:
        write_bytes(path, held.read_bytes())
    elif file.url:
        try:
            fetch_file(file.url, path, sha256=pinned, size=file.wanted.size)
        except DownloadError as error:
            raise ReleaseError(f"{file.wanted.path} is required: {error}{_near_miss(file)}") from None
    else:
        place = mirror_root() or "(STEPLINE_MIRROR is unset)"
        raise ReleaseError(f"{file.wanted.path} is required, and the mirror {place} does not hold it")
    return sha256_file(path)


def _near_miss(file: ReleaseFile) -> str:
    root = mirror_root()
    if root is None:
        return "; set STEPLINE_MIRROR to a folder that holds it, or repeat when the network is there"
    _, release, *_ = file.wanted.path.split("/")
    for path in sorted(root.rglob(Path(file.path).name)):
        if release in path.parts and path.is_file():
            size = path.stat().st_size
            problem = f"{size} of {file.wanted.size} bytes" if size != file.wanted.size else "another checksum"
            return f"; the mirror's {path.relative_to(root)} has {problem}: replace it"
    return f"; the mirror {root} does not hold it (sha256 {file.wanted.sha256})"


def fetch_videos(study: Study, shard: str, config: Config) -> None:
    """Bring the videos of a shard and record what became of each; write the shards down where they are new.

    Each video's record also stands beside it, where it survives a kill and the workflow, which removes the shard's
    before its job and after a failure. Raises MissingError where ``strict`` and one is absent.
    """
    options = DownloadOptions(**config["download"])
    of = study.shards(config["shard_hours"])
    shards.write(Path("datasets", study.name, "shards.csv"), of)
    records: list[Record] = []
    videos = [video for video in study.videos() if of[video.id] == shard]
    for video in progress(videos, what=f"{study.name} shard {shard}", unit="videos"):
        records.append(fetch_video(video, Path("datasets", study.name, "videos"), options))
        if records[-1].status != "present":
            log.warning("%s: %s: %s", video.id, records[-1].status, records[-1].reason)
    write_availability(paths.availability(study.name, shard), records)
    absent = [record for record in records if record.status != "present"]
    if config["strict"] and absent:
        raise MissingError(f"{len(absent)} of {len(records)} videos are absent; {absent[0].video}: {absent[0].reason}")


def fetch_weights(name: str) -> None:
    """Bring the weights of a backbone to ``weights/<name>/``, unless they are there or in the mirror.

    Their addresses move with the hub, so trust is on first use: ``sha256.json`` beside them holds what came, and
    `locate` checks it ever after. Raises ConfigError where the name is unknown, MissingError where nobody offers them
    without an account, StoreError where they are no longer what came.
    """
    if name not in WEIGHTS:
        raise ConfigError(f"weights {name!r} are not known; choose from {', '.join(WEIGHTS)}")
    weights = WEIGHTS[name]
    if locate(name) is not None:
        return
    if not weights.urls:
        raise MissingError(f"{name} cannot be downloaded: get it from {weights.origin}, then {how_to_get(name)}")
    folder = Path("weights", name)
    known = read_json(folder / DIGESTS) if (folder / DIGESTS).exists() else {}
    for file, url in zip(weights.files, weights.urls, strict=True):
        if not (folder / file).exists():
            fetch_file(url, folder / file, sha256=known.get(file, ""))
    write_json(folder / DIGESTS, {file: sha256_file(folder / file) for file in weights.files})
