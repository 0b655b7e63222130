"""Finding damage in stores, so that only the features of damaged videos are recomputed."""

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NamedTuple

from stepline import paths
from stepline.errors import StoreError
from stepline.features import objects, store
from stepline.features.store import Part
from stepline.io import read_json, write_json
from stepline.lock import acquire
from stepline.paths import Location, located


class Checked(NamedTuple):
    """A store and its damaged videos; None if the store cannot be read at all."""

    location: Location
    damaged: list[str] | None


def verify(spec_folder: Path, store_at: str | None = None) -> Iterator[Checked]:
    """Check the stores in a folder ``features/<backbone>/<spec>``, and schedule damaged rows for the next run.

    store_at: ``features.store`` of the configuration. A file next to the store's path in the work folder counts how
    often damage was found, and this count is a parameter of the shard's job. So the next run of the workflow recomputes
    the rows of damaged videos and their results, and keeps the others. Damaged videos are removed from their store. An
    unreadable store is left as it is, and that run replaces it. Raises StoreError if there is no such folder, and
    StorageError if object storage fails.
    """
    if not (spec_folder / "spec.json").exists():
        raise StoreError(f"{spec_folder} is not a folder features/<backbone>/<spec>")
    for folder in _folders(spec_folder, of_stores=store_at is None):
        location = located(folder, store_at)
        checked = _check(location)
        if checked.damaged != []:
            lock = spec_folder.parents[1] / paths.features_lock(folder.parent.name, folder.name).relative_to("features")
            lock.parent.mkdir(exist_ok=True)
            with acquire(lock):
                store.send(location)
                checked = _check(location)
                if checked.damaged != []:
                    _count(folder)
                if checked.damaged:
                    _drop(location, checked.damaged)
        yield checked


def _folders(spec_folder: Path, *, of_stores: bool) -> list[Path]:
    """Return the folders of shards that have a manifest and, if stores are local, all existing ones."""
    recorded = (path.stem.rpartition(".") for path in (spec_folder / "manifests").glob("*.json"))
    found = {spec_folder / data / shard for data, _, shard in recorded if "." not in data}
    if of_stores:
        found |= {path for path in spec_folder.glob("*/*") if path.is_dir() and path.name.isdecimal()}
    return sorted(found)


def _count(folder: Path) -> None:
    path = folder.with_name(f"{folder.name}.damages.json")
    write_json(path, {"found": 1 + (read_json(path)["found"] if path.exists() else 0)})


def _check(location: Location) -> Checked:
    import zarr

    try:
        held = store.read(location)
        with store.damage_is_one_line(location, "extract"):  # other readers check the shard's checksum
            path = f"{location}/features"
            features = path if isinstance(location, Path) else objects.zarr_store(path)
            zarr.open_array(features, mode="r", zarr_format=3)[:1]
    except StoreError:
        return Checked(location, None)
    store.fetch([(held, [block for blocks in held.blocks.values() for block in blocks])], check=False)
    damaged = {
        block.video
        for blocks in held.blocks.values()
        for block in blocks
        if store.digest(held.rows_of(block)) != block.sha256
    }
    return Checked(location, sorted(damaged))


def _drop(location: Location, videos: Collection[str]) -> None:
    """Rewrite the store without some videos."""
    held = store.read(location)
    kept = {video: blocks for video, blocks in held.blocks.items() if video not in videos}
    store.fetch([(held, [block for blocks in kept.values() for block in blocks])])
    parts = {
        video: [Part(held.rows_of(block), block.t0_s, block.start_s, block.end_s) for block in blocks]
        for video, blocks in kept.items()
    }
    sources = {video: blocks[0].source_sha256 for video, blocks in kept.items()}
    clips = {video: list(held.clips[video]) for video in kept} if held.clips else None
    hop_s = next(blocks[0].hop_s for blocks in held.blocks.values())
    in_part = {video: each for video, each in held.damaged.items() if video in kept}
    store.write(location, held.spec, parts, hop_s, sources=sources, clips=clips, damaged=in_part)
