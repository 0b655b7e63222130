"""Records of jobs that list files of which one is gone."""

import os
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

from stepline import paths
from stepline.availability import read_manifest
from stepline.pipeline import Pipeline
from stepline.remembered import remembered

Files = Callable[[str, dict[str, Any]], list[str]]
"""Returns the files of a present video, by its id and what a job's record says of it."""


def forget_lost(pipeline: Pipeline) -> Iterator[tuple[Path, str]]:
    """Remove each record that lists a file which is gone, so that its job runs again; yield the record and that file.

    The job keeps what is there. The record of a store on object storage stays: `stepline verify` looks at those. Raises
    StoreError where a record is damaged.
    """
    listed = cache(_names)
    for shard in pipeline.videos.all_shards:
        per_video, stores = dict(_per_video(pipeline, shard)), dict(_stores(pipeline, shard))
        folders = [folder for _, all_folders in per_video.values() for folder in all_folders]
        watched = [
            *map(os.fspath, [*per_video, *stores]),
            *folders,
            *(file for all_files in stores.values() for file in all_files),
        ]
        found = partial(_lost, {record: files for record, (files, _) in per_video.items()}, stores, listed)
        for record, file in remembered(f"{pipeline.name}/lost/{shard}", watched, found).items():
            Path(record).unlink()
            yield Path(record), file


def _per_video(pipeline: Pipeline, shard: str) -> Iterator[tuple[Path, tuple[Files, list[str]]]]:
    """Yield the record of each job of a shard that writes files per video: which ones, and the folders they are in."""
    name, members = pipeline.name, [video.id for video in pipeline.videos.members(shard)]
    videos, media, pictures = map(os.fspath, (paths.videos(name), paths.media(name), paths.thumbnails(name)))
    shots, said = os.fspath(paths.shots(name)), os.fspath(pipeline.speech.folder)

    def sound(video: str, made: dict[str, Any]) -> list[str]:
        wav = ["audio.wav"] if made["audio"]["status"] == "present" else []
        return [f"{media}/{video}/{file}" for file in ("media.json", "scores.parquet", *wav)]

    def of(folder: str, *suffixes: str) -> Files:
        return lambda video, _: [f"{folder}/{video}{suffix}" for suffix in suffixes]

    yield paths.availability(name, shard), (of(videos, ".json"), [videos])
    yield paths.manifest(paths.media(name), shard), (sound, [f"{media}/{video}" for video in members])
    yield paths.manifest(paths.shots(name), shard), (of(shots, ".csv", ".parquet"), [shots])
    yield paths.manifest(pipeline.speech.folder, shard), (of(said, ".json", ".parquet"), [said])
    yield (
        paths.manifest(paths.thumbnails(name), shard),
        (lambda _, made: list(made["pictures"].values()), [f"{pictures}/{video}" for video in members]),
    )


def _stores(pipeline: Pipeline, shard: str) -> Iterator[tuple[Path, list[str]]]:
    """Yield the record of each store of a shard that stands here, and the store's files."""
    features = pipeline.features
    for backbone in features.computed:
        spec, store = features.spec_of(backbone), features.store(backbone, shard)
        if isinstance(store, Path):
            clips = ["clips.parquet"] if features.describes_clips(backbone) else []
            files = [
                paths.spec_record(spec),
                *(store / file for file in ("features/zarr.json", "index.parquet", *clips)),
            ]
            yield paths.features_manifest(pipeline.name, shard, spec), list(map(os.fspath, files))


def _lost(
    per_video: dict[Path, Files], stores: dict[Path, list[str]], listed: Callable[[str], frozenset[str]]
) -> dict[str, str]:
    """Return the first file that is gone of each record that lists one."""
    wanted = {record: files for record, files in stores.items() if record.exists()}
    for record, files in per_video.items():
        if record.exists():
            present = {video: made for video, made in read_manifest(record).items() if made["status"] == "present"}
            wanted[record] = [file for video, made in present.items() for file in files(video, made)]
    lost = {}
    for record, all_files in wanted.items():
        gone = (file for file in all_files if os.path.basename(file) not in listed(os.path.dirname(file)))
        if first := next(gone, ""):
            lost[os.fspath(record)] = first
    return lost


def _names(folder: str) -> frozenset[str]:
    return frozenset(os.listdir(folder)) if os.path.isdir(folder) else frozenset()
