"""Find and remove files in the work folder that no configuration needs."""

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from filelock import Timeout

from stepline import paths, remembered
from stepline.aside import PREFIX, is_left, remove_left
from stepline.backbones.registry import spec_of, towers
from stepline.backbones.sentence import MODELS
from stepline.config import Config
from stepline.errors import MissingError, SteplineError, StoreError
from stepline.features.specs import noted
from stepline.lock import acquire
from stepline.pipeline import Pipeline
from stepline.plans import configured, pipeline

ROOTS = ("features", "datasets", "results", ".stepline", "answers", "weights")
"""The folders that are searched, unless they are links. Links inside them are not followed."""
SPECS = "features with specs that are not configured"
GONE = "files of videos that are no longer listed"
KILLED = "files left by killed processes"
MEMORY = "caches of data sets and installations that no longer exist"


@dataclass(frozen=True)
class Leftover:
    """Files and folders that can be removed together. size: in bytes."""

    group: str
    paths: tuple[Path, ...]
    size: int
    reason: str


@dataclass
class Found:
    """Files that can be removed, and notes on folders that were not searched."""

    leftovers: list[Leftover] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(self, group: str, reason: str, *found: Path) -> None:
        """Add files and folders that can be removed together."""
        self.leftovers.append(Leftover(group, found, sum(map(_size, found)), reason))


def find(configs: Sequence[Config]) -> Found:
    """Return the files and folders that none of the configurations needs.

    Features are kept if the last plan of their data set or one of the configurations names their spec, if no plan names
    a spec for them (imported features), or if they are on object storage.
    """
    found = Found()
    pipelines = _pipelines(configs, found)
    for name in ROOTS:
        if Path(name).is_symlink():
            found.notes.append(f"{name} is a link: not searched")
    if stores := sorted({store for config in configs if (store := config["features"]["store"])}):
        found.notes.append(f"features on {', '.join(stores)} are not searched")
    else:
        _specs(configs, pipelines, found)
    _gone(pipelines, found)
    for part in sorted(_hidden()):
        if is_left(part):
            found.add(KILLED, "its process has ended", part)
    _memory(pipelines, found)
    return found


def remove(leftovers: Sequence[Leftover]) -> None:
    """Remove files and folders; raise StoreError if a job that uses a shard's videos is running."""
    with ExitStack() as held:
        for lock in sorted(_files(Path("features/.locks"), ".lock")):
            try:
                held.enter_context(acquire(lock, timeout=0))
            except Timeout:
                shard = lock.name.removesuffix(".lock").removesuffix(".all")
                raise StoreError(
                    f"a job of shard {shard} is running: run `stepline gc --delete` after it ends"
                ) from None
        for each in leftovers:
            for path in each.paths:
                if not os.path.lexists(path):  # removed with its folder
                    continue
                if each.group == KILLED:
                    remove_left(path)
                elif path.is_dir() and not path.is_symlink():
                    shutil.rmtree(path)
                else:
                    path.unlink(missing_ok=True)


def _pipelines(configs: Sequence[Config], found: Found) -> dict[str, list[Pipeline]]:
    """Return the pipelines of each data set, one for each configuration that contains it."""
    pipelines: dict[str, list[Pipeline]] = {}
    for config in configs:
        for name in configured(config):
            pipelines.setdefault(name, [])
            try:
                made = pipeline(config, name)
            except SteplineError as error:
                if "has no videos of its own" not in str(error):
                    found.notes.append(f"{name} is not searched: {error}")
                continue
            pipelines[name].append(made)
    return pipelines


def _specs(configs: Sequence[Config], pipelines: Mapping[str, Sequence[Pipeline]], found: Found) -> None:
    wanted = _wanted(pipelines)
    for backbone in _folders(Path("features")):
        encoder = _encoder(backbone.name, configs)
        current = noted(backbone.name)
        for folder in _folders(backbone):
            if not (folder / "spec.json").is_file():
                continue
            datasets = [each for each in _folders(folder) if each.name != "manifests"]
            other = {}
            for each in datasets:
                kept = {*encoder, *wanted.get((backbone.name, each.name), ())}
                kept |= {current[each.name]} if each.name in current else set()
                if kept and folder.name not in kept:
                    other[each] = f"{each.name} is configured with {', '.join(sorted(kept))}"
            if other and len(other) == len(datasets):
                found.add(SPECS, "; ".join(other.values()), folder)
                continue
            for each, reason in other.items():
                records = _files(folder / "manifests", ".json")
                found.add(SPECS, reason, each, *(path for path in records if path.stem.rpartition(".")[0] == each.name))


def _wanted(pipelines: Mapping[str, Sequence[Pipeline]]) -> dict[tuple[str, str], set[str]]:
    """Return the ids of the configured specs by backbone and data set."""
    wanted: dict[tuple[str, str], set[str]] = {}
    for made in (each for all_made in pipelines.values() for each in all_made):
        for spec in map(made.features.spec_of, made.features.computed):
            wanted.setdefault((spec.name, made.name), set()).add(spec.id)
    return wanted


def _encoder(name: str, configs: Sequence[Config]) -> set[str]:
    """Return the ids of the configured specs of a text encoder; an empty set for a backbone or an unknown spec."""
    if name not in {*MODELS, *towers()}:
        return set()
    try:
        return {spec_of(name, config).id for config in configs}
    except MissingError:
        return set()


def _gone(pipelines: Mapping[str, Sequence[Pipeline]], found: Found) -> None:
    for name, all_made in pipelines.items():
        if not all_made:
            continue
        try:
            videos = [video for made in all_made for video in made.dataset.videos()]
        except SteplineError as error:
            found.notes.append(f"the videos of {name} are not checked: {error}")
            continue
        listed = {video.id for video in videos}
        files: dict[str, list[Path]] = {}
        for folder in (paths.media(name), paths.thumbnails(name)):
            for each in _folders(folder):
                files.setdefault(each.name, []).append(each)
        engines = _folders(Path("datasets", name, "transcripts"))
        for folder in (paths.shots(name), *engines):
            for suffix in (".csv", ".parquet", ".json"):
                for file in _files(folder, suffix):
                    files.setdefault(file.name.removesuffix(suffix), []).append(file)
        for video in sorted(files.keys() - listed - {"manifests"}):
            found.add(GONE, f"{video} is no longer a video of {name}", *files[video])


def _hidden() -> Iterator[Path]:
    """Yield the hidden temporary files and folders that writers create."""
    for root in ROOTS:
        if Path(root).is_symlink():
            continue
        for folder, folders, files in os.walk(root):
            hidden = [name for name in (*folders, *files) if name.startswith(PREFIX)]
            folders[:] = [name for name in folders if name not in hidden]
            yield from (Path(folder, name) for name in hidden)


def _memory(pipelines: Mapping[str, Sequence[Pipeline]], found: Found) -> None:
    for folder in _folders(remembered.FOLDER):
        if folder.name not in pipelines and not Path("datasets", folder.name).exists():
            found.add(MEMORY, f"there is no data set {folder.name}", folder)
    for folder in _folders(remembered.FOLDER.parent):
        link = folder / "stepline"
        if folder.name.startswith("package-") and link.is_symlink() and not link.exists():
            found.add(MEMORY, f"{os.readlink(link)} is gone", folder)


def _folders(parent: Path) -> list[Path]:
    """Return the folders in a folder, without hidden ones; nothing if the path contains a link."""
    return [Path(each) for each in _entries(parent) if each.is_dir(follow_symlinks=False) and each.name[0] != "."]


def _files(parent: Path, suffix: str) -> list[Path]:
    files = [each for each in _entries(parent) if each.is_file(follow_symlinks=False)]
    return [Path(each) for each in files if each.name.endswith(suffix) and each.name[0] != "."]


def _entries(parent: Path) -> "list[os.DirEntry[str]]":
    if any(each.is_symlink() for each in (parent, *parent.parents)) or not parent.is_dir():
        return []
    with os.scandir(parent) as entries:
        return sorted(entries, key=lambda entry: entry.name)


def _size(path: Path) -> int:
    if path.is_symlink() or not path.is_dir():
        return path.lstat().st_size
    return sum(os.lstat(os.path.join(folder, file)).st_size for folder, _, files in os.walk(path) for file in files)
