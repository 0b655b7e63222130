"""Fetch releases, videos and weights, and delete videos after use. Only this module and `download` download files."""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from urllib.parse import urljoin

from stepline import paths
from stepline.asr import weights as recognisers
from stepline.availability import Record, check_video_id, read_availability, write_availability, write_manifest
from stepline.backbones.weights import (
    DIGESTS,
    WEIGHTS,
    File,
    absent,
    check,
    how_to_get,
    how_to_put,
    locate,
    parts,
    present,
    trusted,
    weights_of,
)
from stepline.datasets import shards
from stepline.datasets.release import Released, ReleaseFile, how_to_bring
from stepline.datasets.schema import Video
from stepline.download import DownloadOptions, GoneError, fetch_file, fetch_video, remove_leftovers, remove_video
from stepline.errors import DownloadError, MissingError, ReleaseError
from stepline.io import read_json, sha256_file, write_bytes, write_json
from stepline.media.headers import Headers
from stepline.media.process import Limits
from stepline.mirror import Wanted, find, mirror_root
from stepline.needs import Need
from stepline.pipeline import Pipeline, how_to_fill, media_params
from stepline.progress import progress

log = logging.getLogger(__name__)


def fetch_release(study: Released, release: str) -> Path:
    """Fetch all files of a release into its folder and return the path of its ``release.json``, with their sha256.

    A release that Stepline builds instead of fetching must already exist in the folder.
    Raises ReleaseError, one line that names the file, if a file is absent, truncated or different.
    """
    folder = study.folder(release)
    files = {}
    listed = study.release_files(release)
    if not listed:
        if not (folder / "release.json").exists():
            bring = how_to_bring(study.name, release)
            raise ReleaseError(f"{folder} holds no release, and there is none to download: run `{bring}`")
        return folder / "release.json"
    for file in progress(listed, what=f"{study.name} {release}", unit="files"):
        files[file.path] = _fetch_release_file(file, folder / file.path)
    manifest = folder / "release.json"
    write_json(manifest, {"study": study.name, "release": release, "files": files})
    return manifest


def _fetch_release_file(file: ReleaseFile, path: Path) -> str:
    pinned = file.wanted.sha256
    if pinned and path.exists() and sha256_file(path) == pinned:
        return pinned
    held = file.find()
    if held is not None:
        write_bytes(path, held.read_bytes())
    elif file.url:
        try:
            fetch_file(file.url, path, sha256=pinned, size=file.wanted.size)
        except DownloadError as error:
            raise ReleaseError(f"{file.wanted.path} is required: {error}{_near_miss(file)}") from None
    else:
        raise ReleaseError(f"{file.wanted.path} is required{_near_miss(file)}")
    return sha256_file(path)


def _near_miss(file: ReleaseFile) -> str:
    """Return what the mirror has instead of a file: at its path, or with its name in a folder of the release."""
    root = mirror_root()
    if root is None:
        otherwise = ", or repeat when the network is available" if file.url else ""
        return f"; set STEPLINE_MIRROR to a folder that contains it{otherwise}"
    *_, folder = file.wanted.path.split("/")[:-1][:2]
    alike = (path for path in sorted(root.rglob(Path(file.path).name)) if folder in path.parent.parts)
    for path in (root / file.wanted.path, *alike):
        if path.is_file():
            size = path.stat().st_size
            if not file.wanted.sha256:
                return f"; the mirror has it as {path.relative_to(root)}: move it to {file.wanted.path}"
            problem = f"{size} of {file.wanted.size} bytes" if size != file.wanted.size else "another sha256"
            return f"; the mirror's {path.relative_to(root)} has {problem}: replace it"
    return f"; the mirror {root} does not contain it (sha256 {file.wanted.sha256 or 'not known'})"


def fetch_videos(pipeline: Pipeline, shard: str) -> list[Record]:
    """Fetch the videos of a shard, write the shard's record of their availability and return the records.

    The workflow waits for the shard's record. Raises MissingError if ``strict`` is set and a video is absent.
    """
    records = bring_videos(pipeline, shard)
    write_availability(paths.availability(pipeline.name, shard), records)
    _refuse_absent(pipeline, records)
    return records


def _refuse_absent(pipeline: Pipeline, records: Sequence[Record]) -> None:
    absent = [record for record in records if record.status != "present"]
    if pipeline.config["strict"] and absent:
        raise MissingError(f"{len(absent)} of {len(records)} videos are absent; {absent[0].video}: {absent[0].reason}")


def bring_videos(pipeline: Pipeline, shard: str) -> list[Record]:
    """Fetch the videos of a shard and return their records; save the list of shards if any is new.

    Each video also has a record next to it. Unlike the shard's record, which the workflow removes before the job and
    after a failure, it survives an interrupted run. Videos that were deleted after use are fetched again if a result
    from them is missing.
    """
    options = DownloadOptions(**pipeline.config["download"])
    videos = pipeline.videos
    known = shards.read(paths.shards(pipeline.name))
    if known != (listed := known | videos.shards):
        shards.write(paths.shards(pipeline.name), listed)
    again, stamps, needed, spans = videos.again(shard), videos.stamps(shard), videos.needed(shard), videos.spans()
    records = []
    with Headers(Limits(**pipeline.config["media"]["limits"])) as headers:
        bring = partial(fetch_video, folder=paths.videos(pipeline.name), options=options, headers=headers, again=needed)
        for video in progress(videos.members(shard), what=f"{pipeline.name} shard {shard}", unit="videos"):
            asked = {"spans": spans.get(video.id, []), "stamp": stamps[video.id]}
            records.append(_bring(video, paths.videos(pipeline.name), partial(bring, **asked)))
            if records[-1].status != "present":
                log.warning("%s: %s: %s", video.id, records[-1].status, records[-1].reason)
    remove_leftovers(paths.videos(pipeline.name), records)
    if again:
        write_json(paths.fetches(pipeline.name, shard), {"again": again})
    return records


def _bring(video: Video, folder: Path, bring: Callable[[Video], Record]) -> Record:
    memory = folder / f"{check_video_id(video.id)}.json"
    before = read_availability(memory).get(video.id) if memory.exists() else None
    record = written = bring(video)
    if before is not None and not (before.kept or video.file) and record.status in ("gone", "failed"):
        reason = f"deleted after use, and cannot be fetched again: {record.reason}"
        record = replace(before, reason=reason, attempts=record.attempts)
    if record != written:
        write_availability(memory, [record])
    return record


def drop_videos(pipeline: Pipeline, shard: str) -> None:
    """Delete a shard's videos after everything is computed from them. Links are deleted, their targets are kept.

    Raises MissingError if a result from the videos is still missing.
    """
    wanted = [path for path in pipeline.drop_inputs(shard) if not path.exists()]
    if wanted:
        raise MissingError(f"{wanted[0]} must first be computed from the videos of {pipeline.name}, shard {shard}")
    folder, dropped = paths.videos(pipeline.name), {}
    for video in pipeline.videos.members(shard):
        memory = folder / f"{video.id}.json"
        record = read_availability(memory)[video.id]
        if record.status == "present":
            write_availability(memory, [replace(record, kept=False)])
            remove_video(folder, record)
        dropped[video.id] = {"status": record.status, "reason": record.reason}
    write_manifest(paths.dropped(pipeline.name, shard), dropped, by=media_params(pipeline.config))


def items(
    weights: Iterable[str], releases: Iterable[tuple[Released, str]], pipelines: Iterable[Pipeline]
) -> dict[str, Callable[[], str]]:
    """Return a function for each item to fetch, by the item's name. It fetches the item and returns a short summary.

    weights: names. releases: pairs of a study and a release name. pipelines: of the data sets whose videos are wanted.
    """
    found: dict[str, Callable[[], str]] = {f"weights/{name}": partial(_weights_line, name) for name in weights}
    found |= {f"{study.name}/{release}": partial(release_line, study, release) for study, release in releases}
    wanted = [pipeline for pipeline in pipelines if pipeline.demand.wants_videos]
    return found | {f"{pipeline.name}/videos": partial(videos_line, pipeline) for pipeline in wanted}


def release_line(study: Released, release: str) -> str:
    """Fetch a release and return its number of files as text."""
    return f"{len(read_json(fetch_release(study, release))['files'])} files"


def videos_line(pipeline: Pipeline) -> str:
    """Fetch all videos of a data set and return a text: how many are present, and why each of the others is not.

    Only the workflow writes the records of shards. If a record is outdated, the job of its shard runs again in the next
    run.
    """
    if not pipeline.videos.all_shards:
        raise ReleaseError(f"{pipeline.name} lists no videos yet: run `stepline fetch {pipeline.dataset.listed_by}`")
    records = []
    for shard in pipeline.videos.all_shards:
        came = bring_videos(pipeline, shard)
        known = paths.availability(pipeline.name, shard)
        if known.exists() and _outcome(read_availability(known).values()) != _outcome(came):
            write_json(paths.fetches(pipeline.name, shard), {"again": pipeline.videos.again(shard) + 1})
        records += came
    _refuse_absent(pipeline, records)
    return summary(records)


def _outcome(records: Iterable[Record]) -> set[tuple[str, str, str]]:
    return {(record.video, record.status, record.sha256) for record in records}


def summary(records: Sequence[Record]) -> str:
    """Return the number of present videos, and a line on each of the others."""
    absent = [f"\n  {r.video}: {r.status}: {r.reason}" for r in records if r.status != "present"]
    return f"{len(records) - len(absent)} of {len(records)} videos{''.join(absent)}"


def _weights_line(name: str) -> str:
    command = how_to_fill(Need("weights", name))
    if not command.startswith("stepline fetch ") and not (name in WEIGHTS and locate(name)):
        return f"needs `{command}`"
    fetch_weights(name)
    return "there"


def fetch_weights(name: str) -> None:
    """Fetch the weights of a backbone or of Whisper into ``weights/``, unless they are there or in the mirror.

    A file with a pinned digest, or without a URL, is linked from the mirror if it is there. The content behind other
    URLs may change, so these files are trusted on first use: ``sha256.json`` next to them stores their digests, which
    `locate` checks from then on. Raises ConfigError if the name is unknown, MissingError if a file cannot be downloaded
    without an account, and StoreError if a file differs from the published or the first downloaded one.
    """
    engine, _, model = name.partition("/")
    if engine == "whisper" and model in recognisers.WHISPER:
        if recognisers.locate(engine, model) is None:
            url, sha256 = recognisers.WHISPER[model]
            fetch_file(url, Path("weights", engine, f"{model}.pt"), sha256=sha256)
        return
    weights = weights_of(name)
    if locate(name) is not None:
        return
    folder = Path("weights", weights.name)
    known = trusted(folder)
    by_hand = f"{weights.by_hand or f'get it from {weights.origin}'}, then "
    missing = [file for file in weights.files if not present(folder, file)]
    for file in missing:
        wanted = Wanted(path=f"weights/{weights.name}/{file.name}", sha256=file.sha256, size=file.size)
        if (file.sha256 or not file.url) and (held := find(wanted)):
            folder.mkdir(parents=True, exist_ok=True)
            (folder / file.name).unlink(missing_ok=True)
            (folder / file.name).symlink_to(held)
        elif not file.url:
            raise MissingError(f"{file.name} of {name} cannot be downloaded: {by_hand}`{how_to_get(name)}`")
    for file in missing:
        try:
            _fetch_weight(file, folder, known)
        except DownloadError as error:
            if file.optional and isinstance(error, GoneError):
                continue
            put = how_to_put(name, [each.name for each in absent(name)])
            raise DownloadError(f"{error}; or {by_hand}`{put}`") from None
    check(name, folder)
    there = [each for file in weights.files for each in present(folder, file)]
    write_json(folder / DIGESTS, {each: sha256_file(folder / each) for each in there})


def _fetch_weight(file: File, folder: Path, known: Mapping[str, str]) -> None:
    """Fetch a file, or the index that the repository has in its place and its files.

    known: the sha256 of earlier downloads.
    """

    def bring(name: str) -> None:
        if not (folder / name).is_file():
            url = file.url if name == file.name else urljoin(file.url, name)
            fetch_file(url, folder / name, sha256=file.sha256 or known.get(name, ""), size=file.size)

    index = folder / file.instead
    try:
        if not (file.instead and index.is_file()):
            bring(file.name)
    except GoneError:
        if not file.instead:
            raise
        bring(file.instead)
    for part in parts(index) if file.instead else []:
        bring(part)
