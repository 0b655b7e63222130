"""Finding damage in stores, so that only damaged videos are done again."""

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NamedTuple

from filelock import FileLock

from stepline import paths
from stepline.errors import StoreError
from stepline.features import store
from stepline.features.store import Part
from stepline.io import read_json, write_json


class Checked(NamedTuple):
    """A store and its damaged videos; None where it cannot be read at all."""

    folder: Path
    damaged: list[str] | None


def verify(spec_folder: Path) -> Iterator[Checked]:
    """Read the stores in a folder ``features/<backbone>/<spec>``, and see that what is damaged is done again.

    Damage is counted beside the store, and the count is a parameter of the shard's job: so the next run of the workflow
    makes the damaged videos' rows and what is made from them, and keeps the others. Damaged videos are taken out of
    their store; one that cannot be read is left to that run, which makes it anew. Raises StoreError where there is no
    such folder.
    """
    if not (spec_folder / "spec.json").exists():
        raise StoreError(f"{spec_folder} is no folder features/<backbone>/<spec>")
    for folder in _stores(spec_folder):
        checked = _check(folder)
        if checked.damaged != []:
            lock = spec_folder.parents[1] / paths.features_lock(folder.parent.name, folder.name).relative_to("features")
            lock.parent.mkdir(exist_ok=True)
            with FileLock(lock):
                checked = _check(folder)
                if checked.damaged != []:
                    _count(folder)
                if checked.damaged:
                    _drop(folder, checked.damaged)
        yield checked


def _stores(spec_folder: Path) -> list[Path]:
    """Return the stores that are there, and those of which there is a record."""
    there = {path for path in spec_folder.glob("*/*") if path.is_dir() and path.name.isdecimal()}
    recorded = (path.stem.rpartition(".") for path in (spec_folder / "manifests").glob("*.json"))
    return sorted(there | {spec_folder / data / shard for data, _, shard in recorded if "." not in data})


def _count(folder: Path) -> None:
    path = folder.with_name(f"{folder.name}.damages.json")
    write_json(path, {"found": 1 + (read_json(path)["found"] if path.exists() else 0)})


def _check(folder: Path) -> Checked:
    import zarr

    try:
        held = store.read(folder)
        with store.damage_is_one_line(folder, "extract"):
            zarr.open_array(folder / "features", mode="r")[:1]  # other readers go by the shard's checksum
    except StoreError:
        return Checked(folder, None)
    damaged = {
        block.video
        for blocks in held.blocks.values()
        for block in blocks
        if store.digest(held.rows[block.offset : block.offset + block.length]) != block.sha256
    }
    return Checked(folder, sorted(damaged))


def _drop(folder: Path, videos: Collection[str]) -> None:
    """Write the store anew without some videos."""
    held = store.read(folder)
    kept = {video: blocks for video, blocks in held.blocks.items() if video not in videos}
    parts = {
        video: [
            Part(held.rows[block.offset : block.offset + block.length], block.t0_s, block.start_s, block.end_s)
            for block in blocks
        ]
        for video, blocks in kept.items()
    }
    sources = {video: blocks[0].source_sha256 for video, blocks in kept.items()}
    clips = {video: list(held.clips[video]) for video in kept} if held.clips else None
    hop_s = next(blocks[0].hop_s for blocks in held.blocks.values())
    store.write(folder, held.spec, parts, hop_s, sources=sources, clips=clips)
