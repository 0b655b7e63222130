"""Pooled rows: one vector for each shot or segment, from the rows of another bank."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any, Literal

from stepline import paths
from stepline.availability import read_manifest, write_manifest
from stepline.backbones.registry import DOT
from stepline.datasets.segments import ROUNDED_S, known_ends_s
from stepline.errors import ConfigError, MissingError, StoreError
from stepline.features import store
from stepline.features.bank import Bank
from stepline.features.store import Clips, Damaged
from stepline.features.unit import unit
from stepline.features.zarr_file import Rows
from stepline.io import canonical_json, read_json, write_json
from stepline.media.timeline import described
from stepline.paths import Location
from stepline.shots import Detection
from stepline.shots import found as shots_in
from stepline.spec import Spec

By = Literal["shot", "segment"]
HOP_S = 1.0
"""The hop in the index, which has no meaning for listed clips."""


@dataclass(frozen=True, kw_only=True)
class PooledSpec(Spec):
    """The settings of pooled rows.

    source: ``<name>/<id>`` of the spec of the rows. by: what a row stands for, a ``shot`` or a ``segment``. spans: the
    options of the detection of shots, or the sha256 of the file of segments. how: the mean of the rows in the span.
    similarity: with ``cosine``, the vector is then scaled to length 1. crops: always 1. placement: rows are listed
    clips.
    """

    label: str = "mean"
    revision: int = 1
    source: str
    by: By
    spans: dict[str, Any] = field(default_factory=dict)
    how: str = "mean"
    similarity: str
    crops: int = 1
    placement: str = "spans"
    dimension: int
    dtype: str = "float32"

    @classmethod
    def of(cls, bank: Bank, by: By) -> "PooledSpec":
        """Return the spec of the pooled rows of a bank, without ``spans``.

        Raises ConfigError if its rows are pooled already or are listed clips, and MissingError if it has no video.
        """
        record = bank.spec
        if not bank:
            raise MissingError(f"{record['name']} has no features of a video: run `snakemake`")
        if "source" in record:
            raise ConfigError(f"{record['name']} has pooled rows: pool those of {record['source']} instead")
        if bank.clips:
            raise ConfigError(f"{record['name']} has rows of listed clips: only rows of seconds can be pooled")
        source = next(_folder(held.location) for held in bank.stores.values()).parents[1]
        by_dot = record.get("architecture") in DOT and not record.get("normalise")
        return cls(
            name=f"{source.parent.name}.{by}",
            source=f"{source.parent.name}/{source.name}",
            by=by,
            similarity="dot product" if by_dot else "cosine",
            dimension=bank.dimension,
        )


@dataclass
class Pooled:
    """The result of ``pool``. kept, computed: numbers of videos. left: the reasons of the videos without rows."""

    folder: Path
    kept: int = 0
    computed: int = 0
    left: dict[str, str] = field(default_factory=dict)


def ends_s(bank: Bank, dataset: str) -> dict[str, float]:
    """Return the end of each video of a bank: its duration by its header, or the end of its last row.

    The last row decides if the duration is not known, or if the row begins more than ``ROUNDED_S`` after it.
    """
    known, found = known_ends_s(dataset), {}
    for video in bank:
        last, clips = bank.blocks[video][-1], bank.clips.get(video, ())
        start_s = max([start_s for start_s, _ in clips] or [last.t0_s + (last.length - 1) * last.hop_s])
        end_s = max([end_s for _, end_s in clips] or [start_s + last.hop_s])
        found[video] = end_s if start_s > known.get(video, 0.0) + ROUNDED_S else known.get(video, end_s)
    return found


def of_shots(bank: Bank, dataset: str, detection: Detection) -> dict[str, Clips]:
    """Return the shots of each video; raise MissingError if a video has none that were found with these options."""
    found: dict[str, Clips] = {}
    for shard, videos in _shards(bank).items():
        path = paths.manifest(paths.media(dataset), shard)
        media = read_manifest(path) if path.exists() else {}
        for video in videos:
            file = paths.shots(dataset) / f"{video}.parquet"
            shots = shots_in(media[video], file, detection) if video in media else None
            if shots is None:
                raise MissingError(
                    f"{video} of {dataset} has no shots that were found with the configured options: run `snakemake` "
                    "with the stage `shots`"
                )
            found[video] = shots
    return found


def pool(bank: Bank, spec: PooledSpec, dataset: str, spans: Mapping[str, Clips], store_at: str | None = None) -> Pooled:
    """Write the pooled rows of a bank's videos.

    spans: [start_s, end_s) by video. A span without a row inside gets the nearest row, as in ``Bank.window``; a span in
    the gap of a damaged video gets no row. Sums are float64. The rows of a video are kept if its spans and its rows in
    the bank are as before. store_at: ``features.store`` of the configuration. Raises StoreError if rows cannot be read.
    """
    made = Pooled(paths.spec_record(spec).parent)
    for shard, videos in _shards(bank).items():
        found = {video: _with_rows(bank, video, spans.get(video, ())) for video in videos}
        keys = {video: _key(bank, video, each) for video, each in found.items() if each}
        location = paths.located(paths.features(dataset, shard, spec), store_at)
        made.computed += _write(bank, spec, location, found, keys)
        records: dict[str, dict[str, Any]] = {}
        for video in videos:
            reason = described(bank.damaged[video].gaps) if video in bank.damaged else ""
            if video in keys:
                more = {"n_rows": len(found[video]), "source_sha256": keys[video]}
                records[video] = {"status": "present", "reason": reason, **more}
            else:
                made.left[video] = (
                    (reason or "it has no features") if spans.get(video) else "no segment of it is listed"
                )
                records[video] = {"status": "failed", "reason": made.left[video]}
        write_manifest(paths.features_manifest(dataset, shard, spec), records, spec=spec.record())
        made.kept += len(keys)
    made.kept -= made.computed
    write_json(paths.spec_record(spec), spec.record())
    current = paths.current_specs(spec.name)
    write_json(current, (read_json(current) if current.exists() else {}) | {dataset: spec.id})
    return made


def _write(
    bank: Bank, spec: PooledSpec, location: Location, spans: Mapping[str, Clips], keys: Mapping[str, str]
) -> int:
    """Write a store with the videos of ``keys``, unless it is as it should be; return how many videos were computed."""
    old = _stored(location, spec)
    before = {video: blocks[0].source_sha256 for video, blocks in old.blocks.items()} if old else None
    if before == keys:
        return 0
    same = {video for video, key in keys.items() if before and before.get(video) == key}
    bank.fetch(keys.keys() - same)
    rows = {video: old[video] if old and video in same else _vectors(bank, spec, video, spans[video]) for video in keys}
    damaged = {
        video: Damaged(keys[video], each.spans, each.gaps) for video, each in bank.damaged.items() if video in keys
    }
    clips = {video: spans[video] for video in keys}
    store.write(location, spec, rows, HOP_S, sources=keys, clips=clips, damaged=damaged)
    return len(keys) - len(same)


def check_current(pooled: Bank, source: Bank, dataset: str) -> None:
    """Raise StoreError, with the command that pools them again, if rows of ``source`` changed after pooling."""
    for video, blocks in pooled.blocks.items():
        clips = list(pooled.clips[video])
        if video not in source.blocks or blocks[0].source_sha256 != _key(source, video, clips):
            spec = pooled.spec
            spans = "--segments FILE" if spec["by"] == "segment" else "--by shot"
            command = f"stepline bank pool {spec['source'].partition('/')[0]} {dataset} {spans}"
            raise StoreError(f"the features of {video} changed after they were pooled: run `{command}`")


def _shards(bank: Bank) -> dict[str, list[str]]:
    """Return the sorted videos of each shard."""
    names = sorted((_folder(held.location).name, video) for video, held in bank.stores.items())
    return {shard: [video for _, video in group] for shard, group in groupby(names, key=lambda each: each[0])}


def _folder(location: Location) -> Path:
    return location.folder if isinstance(location, paths.Remote) else location


def _with_rows(bank: Bank, video: str, spans: Clips) -> list[tuple[float, float]]:
    """Return the different spans of a video that have a row."""
    if not bank.length(video):
        return []
    return [span for span in dict.fromkeys(spans) if bank.shows(video, *span)]


def _key(bank: Bank, video: str, spans: Clips) -> str:
    """Return the sha256 of what determines a video's pooled rows, apart from the spec."""
    rows = [[each.sha256, each.t0_s, each.hop_s, each.start_s, str(each.end_s)] for each in bank.blocks[video]]
    gaps = bank.damaged[video].gaps if video in bank.damaged else []
    by = [rows, list(bank.clips.get(video, ())), gaps, [(float(start_s), float(end_s)) for start_s, end_s in spans]]
    return hashlib.sha256(canonical_json(by).encode()).hexdigest()


def _stored(location: Location, spec: PooledSpec) -> Bank | None:
    """Return the existing pooled rows, or None if there are none that can be read."""
    try:
        bank = Bank.open([location], spec)
        bank.fetch()
    except StoreError:
        return None
    return bank


def _vectors(bank: Bank, spec: PooledSpec, video: str, spans: Clips) -> Rows:
    """Return the (n, D) float64 vectors of the spans of a video."""
    means = bank.means([video] * len(spans), *zip(*spans, strict=True))
    return unit(means) if spec.similarity == "cosine" else means
