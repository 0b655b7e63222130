"""Records of jobs that list a file which no longer exists, or whose sound is damaged."""

import os
from collections.abc import Callable, Iterator
from functools import cache, partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from stepline import paths
from stepline.aside import sweep
from stepline.availability import read_manifest
from stepline.media.wav import doubtful
from stepline.pipeline import Pipeline
from stepline.remembered import remembered

Made = dict[str, dict[str, Any]]
"""The content of a record, by video."""


class Listed(NamedTuple):
    """The files that a record lists. files: returns their paths. folders: contain all of them.

    damaged: returns the reason of each file that exists and must be written again.
    """

    files: Callable[[Made], Iterator[str]]
    folders: list[str]
    damaged: Callable[[Made], Iterator[str]] = lambda _: iter(())


def forget_lost(pipeline: Pipeline, *, looks: bool) -> Iterator[str]:
    """Remove each record that ``lost`` yields, so that its job runs again; yield a line on each.

    The job keeps the existing files. The leftovers of killed processes next to them are removed. looks: whether no job
    runs; then a record that this account may not remove stays.
    """
    for record, reason in lost(pipeline, _swept_names):
        try:
            Path(record).unlink(missing_ok=True)  # another run may begin at the same time
        except OSError:
            if not looks:
                raise
            yield f"{reason}: a run removes {record} and runs its job again, which is not listed here"
        else:
            yield f"{reason}: the job of {record} runs again"


def _swept_names(folder: str) -> frozenset[str]:
    sweep(Path(folder))
    return _names(folder)


def _names(folder: str) -> frozenset[str]:
    return frozenset(os.listdir(folder)) if os.path.isdir(folder) else frozenset()


def lost(pipeline: Pipeline, names: Callable[[str], frozenset[str]] = _names) -> Iterator[tuple[str, str]]:
    """Yield each record that lists a file which no longer exists or must be written again, with the reason.

    Stores on object storage are not checked here but by `stepline verify`. Raises StoreError if a record is damaged.
    names: returns the names of the files in a folder.
    """
    names = cache(names)
    for shard in pipeline.videos.all_shards:
        records = {record: listed for record, listed in _records(pipeline, shard) if os.path.exists(record)}
        watched = [*records, *(folder for listed in records.values() for folder in listed.folders)]
        yield from remembered(f"{pipeline.name}/lost/{shard}", watched, partial(_lost, records, names)).items()


def _records(pipeline: Pipeline, shard: str) -> Iterator[tuple[str, Listed]]:
    """Yield the record of each job of a shard with local files, and the files that it lists."""
    name, members = pipeline.name, [video.id for video in pipeline.videos.members(shard)]
    folders = paths.media(name), paths.shots(name), pipeline.speech.folder, paths.thumbnails(name)
    of_media, of_shots, of_speech, of_pictures = (os.fspath(paths.manifest(folder, shard)) for folder in folders)
    media, shots, speech, pictures = map(os.fspath, folders)
    videos = os.fspath(paths.videos(name))

    def sound(made: Made) -> Iterator[str]:
        for video, of in _present(made).items():
            wav = ["audio.wav"] if of["audio"]["status"] == "present" else []
            yield from (f"{media}/{video}/{file}" for file in ("media.json", "scores.parquet", *wav))

    def doubted(made: Made) -> Iterator[str]:
        for video, of in _present(made).items():
            wav = f"{media}/{video}/audio.wav"
            if reason := doubtful(Path(wav), of["audio"]):
                yield f"{wav} {reason}"

    def beside(folder: str, *suffixes: str) -> Listed:
        return Listed(lambda made: (f"{folder}/{video}{end}" for video in _present(made) for end in suffixes), [folder])

    def shown(made: Made) -> Iterator[str]:
        return (file for of in _present(made).values() for file in of["pictures"].values())

    every = Listed(lambda made: (f"{videos}/{video}.json" for video in made), [videos])
    yield os.fspath(paths.availability(name, shard)), every
    of_stages = {
        "media": (of_media, Listed(sound, [f"{media}/{video}" for video in members], doubted)),
        "shots": (of_shots, beside(shots, ".csv", ".parquet")),
        "speech": (of_speech, beside(speech, ".json", ".parquet")),
        "pictures": (of_pictures, Listed(shown, [f"{pictures}/{video}" for video in members])),
    }
    wanted = {*pipeline.demand.stages, *(["media"] if pipeline.demand.media else [])}
    yield from (of_stages[stage] for stage in of_stages if stage in wanted)
    for backbone in pipeline.features.computed:
        store = pipeline.features.store(backbone, shard)
        if isinstance(store, Path):
            spec = pipeline.features.spec_of(backbone)
            manifest = os.fspath(paths.features_manifest(name, shard, spec))
            clips = pipeline.features.describes_clips(backbone)
            yield manifest, _of_store(store, paths.spec_record(spec), clips=clips)


def _of_store(store: Path, spec: Path, *, clips: bool) -> Listed:
    def files(made: Made) -> Iterator[str]:
        yield from (os.fspath(spec), f"{store}/index.parquet", f"{store}/features/zarr.json")
        if clips:
            yield f"{store}/clips.parquet"
        if any(of.get("n_rows") for of in made.values()):
            yield f"{store}/features/c/0/0"

    return Listed(files, [os.fspath(spec), *(f"{store}{part}" for part in ("", "/features", "/features/c/0"))])


def _present(made: Made) -> Made:
    return {video: of for video, of in made.items() if of["status"] == "present"}


def _lost(records: dict[str, Listed], names: Callable[[str], frozenset[str]]) -> dict[str, str]:
    """Return the first reason why a file of a record must be written again, for each record that has one."""
    lost = {}
    for record, listed in records.items():
        try:
            made = read_manifest(Path(record))
        except FileNotFoundError:  # another run has just removed it
            continue
        gone = (file for file in listed.files(made) if os.path.basename(file) not in names(os.path.dirname(file)))
        reasons = chain((f"{file} no longer exists" for file in gone), listed.damaged(made))
        if first := next(reasons, ""):
            lost[record] = first
    return lost
