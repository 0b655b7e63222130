"""Opening of banks by the names of the configuration."""

import difflib
from collections.abc import Collection, Iterable
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

from stepline import paths
from stepline.backbones.named import slug
from stepline.datasets import shards as shard_file
from stepline.errors import StoreError
from stepline.features import objects
from stepline.features.bank import Bank
from stepline.features.store import read
from stepline.io import read_json
from stepline.paths import Location, located

if TYPE_CHECKING:
    from stepline.footage import Footage


def open_bank(name_or_folder: str | Path, dataset: str | None = None, *, root: str | Path = ".") -> Bank:
    """Open the features of a dataset.

    name_or_folder: a name as in the configuration: of a backbone (``histogram``, ``timm:vit_base_patch16_224``), a
    backbone of your own, or imported features. It opens the configured spec, which the workflow's last plan wrote to
    ``features/<backbone>/current.json``, or else the only spec with the dataset. ``<backbone>/<spec>``, or the folder
    ``features/<backbone>/<spec>``, opens any spec; if a folder has no ``spec.json``, only its name counts.
    dataset: may be omitted if there is only one. root: the work folder, or the ``s3://BUCKET[/PREFIX]`` of its
    ``features.store``, which has no ``current.json``. Raises StoreError if there is no such bank, with a list of the
    existing ones, and as ``Bank.open`` does.
    """
    remote = str(root).startswith("s3://")
    stores = (_remote_stores if remote else _local_stores)(name_or_folder, dataset, root)
    return Bank.open(stores, read(stores[0]).spec)


def _local_stores(name_or_folder: str | Path, dataset: str | None, root: str | Path) -> list[Location]:
    folder = _spec_folder(name_or_folder, dataset, root)
    shards = _shards(folder)
    datasets = {shard.parent.name for shard in shards}
    chosen = folder / (dataset or _only(folder, datasets, "dataset"))
    listed = {*shard_file.read(Path(root, paths.shards(chosen.name))).values()}
    stores: list[Location] = sorted(
        shard for shard in shards if shard.parent == chosen and (not listed or shard.name in listed)
    )
    if not stores and any(folder.glob(f"manifests/{chosen.name}.*.json")):
        raise StoreError(
            f"{chosen} has records, but no features: run `snakemake`, or for object storage give its root="
        )
    if not stores:
        raise _empty(chosen, datasets)
    return stores


def _spec_folder(name_or_folder: str | Path, dataset: str | None, root: str | Path) -> Path:
    """Return the folder of the named spec, of the configured spec, or of the only spec with the dataset."""
    places, found = _places(name_or_folder, root), spec_folders(name_or_folder, root=root)
    if found and found[0] in places:
        return found[0]
    current = paths.current_specs("").name
    backbone = found[0].parent if found else next((place for place in places if (place / current).exists()), places[1])
    noted = backbone / current
    known: dict[str, str] = read_json(noted) if noted.exists() else {}
    configured = {spec for name, spec in known.items() if dataset in (None, name)}
    if len(configured) == 1:
        folder = backbone / configured.pop()
        if folder not in found:
            others = f", or name one of {', '.join(sorted(path.name for path in found))}" if found else ""
            raise StoreError(f"{folder}, the configured spec, holds no features yet: run `snakemake`{others}")
        return folder
    if not found:
        place = backbone.parent
        records = [*place.glob("*/spec.json"), *place.glob("*/*/spec.json")]
        raise _empty(backbone, {path.relative_to(place).parts[0] for path in records if _shards(path.parent)})
    holding = [path.name for path in found if any(dataset in (None, shard.parent.name) for shard in _shards(path))]
    return backbone / _only(backbone, holding or [path.name for path in found], "spec")


def _shards(folder: Path) -> list[Path]:
    """Return the shards of all datasets in the folder of a spec."""
    return [path.parent.parent for path in folder.glob("*/[0-9]*/features/zarr.json")]


def _remote_stores(name_or_folder: str | Path, dataset: str | None, root: str | Path) -> list[Location]:
    parts: list[str] = []
    for name, what in zip_longest(Path(_folder_name(name_or_folder)).parts, ("backbone", "spec", "dataset")):
        here = "/".join([str(root), *parts])
        found = [each for each in objects.folders(here) if each != "manifests"]
        asked = dataset if what == "dataset" and dataset else name
        if asked and asked not in found:
            raise _empty(f"{here}/{asked}", found)
        if what == "spec" and dataset:
            found = [each for each in found if dataset in objects.folders(f"{here}/{each}")] or found
        parts.append(asked or _only(here, found, what))
    shards = [each for each in objects.folders("/".join([str(root), *parts])) if each.isdecimal()]
    if not shards:
        raise _empty("/".join([str(root), *parts]), ())
    return [located(Path("features", *parts, shard), str(root)) for shard in shards]


def open_named(footage: "Footage", name: str) -> Bank:
    """Open the named features of a benchmark's dataset; raise StoreError as ``Bank.open`` does."""
    stores = footage.stores(name)
    backbone = footage.is_backbone(name)
    return Bank.open(stores, footage.pipeline.features.spec_of(name) if backbone else read(stores[0]).spec)


def spec_folders(name_or_folder: str | Path, *, root: str | Path = ".") -> list[Path]:
    """Return the folders ``features/<backbone>/<spec>`` that match a name or a folder, see ``open_bank``."""
    for folder in _places(name_or_folder, root):
        found = [folder] if (folder / "spec.json").exists() else [path.parent for path in folder.glob("*/spec.json")]
        if found:
            return found
    return []


def _places(name_or_folder: str | Path, root: str | Path) -> tuple[Path, Path]:
    """Return the two folders that a name or a folder may mean, see ``open_bank``."""
    return Path(root, name_or_folder), Path(root, "features", _folder_name(name_or_folder))


def _folder_name(name_or_folder: str | Path) -> str:
    """Return the folder below ``features``; the folder of a model by name (``timm:...``) is its slug."""
    name = str(name_or_folder).removeprefix("features/")
    return slug(name) if ":" in name else name


def _empty(folder: str | Path, existing: Iterable[str]) -> StoreError:
    """Return the error for a folder without features; existing: the names of folders next to it that have some."""
    place, _, name = str(folder).rpartition("/")
    close = difflib.get_close_matches(name, names := sorted(existing), n=1)
    hint = f"did you mean {close[0]!r}? " if close else ""
    return StoreError(
        f"{folder} holds no features of videos: {hint}{place or '.'} has {', '.join(names) or 'none'}; `snakemake` "
        "computes the features that the configuration names"
    )


def _only(folder: str | Path, found: Collection[str], what: str) -> str:
    """Return the only name."""
    if not found:
        raise _empty(folder, ())
    if len(found) > 1:
        raise StoreError(f"{folder} has more than one {what}: name one of {', '.join(sorted(found))}")
    return next(iter(found))
