"""Import of features from other code's files into a bank."""

import hashlib
import mmap
import re
from collections.abc import Callable, Container, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from math import inf
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from stepline import paths
from stepline.availability import check_video_id, write_manifest
from stepline.backbones import checkpoint
from stepline.backbones.registry import FRAME_BACKBONES, presets, towers
from stepline.backbones.sentence import MODELS
from stepline.datasets.folder import named
from stepline.datasets.segments import ROUNDED_S
from stepline.errors import ConfigError, ReleaseError, StoreError
from stepline.features import hdf5_file, store
from stepline.features.bank import AbsentError
from stepline.features.zarr_file import Rows
from stepline.io import read_json, sha256_file, write_json
from stepline.media.decode import MediaError
from stepline.media.process import Decoder, Limits
from stepline.pickled import Stub, parse
from stepline.spec import Spec

SHARD = "000"
"""The only shard of an imported bank."""
KEY = "frames_features"
"""The key of the rows in a dictionary, as in the files of P3IV (Zhao et al., 2022)."""
INDEX = "export.json"
"""Next to the arrays of an export: what their rows stand for."""
NAMED = 5
"""The number of unknown names that are printed."""
HDF5 = Limits(memory_mb=8192, least_s=3600, s_per_video_s=0)
"""The limits of the process that reads HDF5 files, for each dataset."""
LONGEST = 300
"""The number of characters that are printed of a text in a file."""
ROUNDED = 0.01
"""The part of a video's length by which two readers of its frame rate may differ."""
CLIP_HOPS = 4
"""The length of a clip in hops up to which rows may end before their video, as only whole clips have a row."""


@dataclass(frozen=True, kw_only=True)
class ImportedSpec(Spec):
    """The identity of an imported bank. files_sha256: of the lines ``<video> <sha256 of its file>``, sorted by id."""

    label: str = "imported"
    revision: int = 1
    hop_s: float
    dimension: int
    dtype: str
    files_sha256: str


class Folder(Mapping[str, Rows]):
    """Users' features by video: (T, D) float16 or float32, read on access. files: the file of each video."""

    def __init__(
        self,
        path: Path,
        *,
        prefix: str = "",
        suffix: str = "",
        key: str = KEY,
        ids: Mapping[str, str] | None = None,
        videos: Container[str] | None = None,
    ) -> None:
        """Find the ``.npy``, ``.pt`` and HDF5 files in the folder ``path``, or use the one file ``path``.

        A video's id is the name of its file without the extension, or of its HDF5 dataset, without the parts at its
        ends that the regular expressions ``prefix`` and ``suffix`` match; names that do not match are left out. With
        ``ids``, a mapping from names to ids, names that are not in it are left out. With ``videos``, the ids of listed
        videos, the rest of a name may also be the video's file name, with or without its suffix; names of other videos
        are left out and listed in ``unknown``. key: of the rows in dictionaries.
        Raises StoreError if nothing is found, or if an id is not allowed or found twice.
        """
        self.files: dict[str, Path] = {}
        self.skipped = 0
        self.unknown: list[str] = []
        self._read: dict[str, Callable[[], Any]] = {}
        try:
            name = re.compile(f"(?:{prefix})(?P<stepline_id>.+?)(?:{suffix})")
        except re.error as error:
            raise ConfigError(f"prefix {prefix!r} or suffix {suffix!r} is not a regular expression: {error}") from None
        for file, stem, read in _found(path, key, Decoder(HDF5)):
            match = name.fullmatch(stem)
            given = (match["stepline_id"] if match else None) if ids is None else ids.get(stem)
            if given is None:
                self.skipped += 1
                continue
            video = _checked(file, given) if videos is None else named(given, videos)
            if video is None:
                self.unknown.append(given)
                continue
            if video in self.files:
                raise StoreError(f"{video} is in {self.files[video]} and in {file}: remove one of them")
            self.files[video], self._read[video] = file, read
        if not self.files:
            such = "as --prefix, --suffix say" if ids is None else f"such as {next(iter(ids), '')}.npy"
            raise StoreError(
                f"{path}: {self.strangers}: name the features by the ids or the files of the videos"
                if self.unknown
                else f"{path} holds no features: give .npy, .pt, .h5 or .hdf5 files, named {such}"
            )

    @property
    def strangers(self) -> str:
        """A text with the number and the first of the ``unknown`` names."""
        first = ", ".join(map(repr, self.unknown[:NAMED])) + (", ..." if len(self.unknown) > NAMED else "")
        return f"{len(self.unknown)} of {len(self.unknown) + len(self.files)} names are of no listed video ({first})"

    def __getitem__(self, video: str) -> Rows:
        """Return the rows; raise StoreError, naming the file, if they are not finite (T, D) floats.

        Raises AbsentError if there is no such video.
        """
        if video not in self.files:
            raise AbsentError(f"{video} has no features among the files given")
        file, rows = self.files[video], self._read[video]()
        if not isinstance(rows, np.ndarray) or rows.dtype.kind != "f" or rows.ndim != 2 or not rows.size:
            form = f"{rows.dtype} {rows.shape}" if isinstance(rows, np.ndarray) else type(rows).__name__
            raise StoreError(f"{file}: the features of {video} must be a (T, D) array of floats, not {form}")
        dtype = np.float16 if rows.dtype.itemsize == 2 else np.float32
        with np.errstate(all="ignore"):
            cast = np.asarray(rows, dtype)
        bad = ~np.isfinite(cast).all(axis=1)
        if bad.any():
            row = bad.argmax()
            what = "too large for float32" if np.isfinite(rows[row]).all() else "not finite"
            raise StoreError(f"{file}: the features of {video} are {what} in row {row}")
        return cast

    def __contains__(self, video: object) -> bool:
        return video in self.files

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self.files))

    def __len__(self) -> int:
        return len(self.files)


def import_folder(
    folder: Folder,
    name: str,
    dataset: str,
    hop_s: float,
    *,
    store_at: str | None = None,
    ends_s: Mapping[str, float] = MappingProxyType({}),
    say: Callable[[str], object] = print,
) -> Path:
    """Write users' features as the bank ``features/<name>/imported-<hash>``, and return this folder.

    hop_s: seconds from row to row. store_at: ``features.store`` of the configuration; records are always written to the
    work folder. Rows are stored as float16 if all files are float16, otherwise as float32; float64 is rounded to
    float32. ends_s: the ends of videos, where they are known. ``say`` gets one line if rows end before the end of their
    video, with a tolerance of ``ROUNDED`` of its length but at least ``ROUNDED_S``, and of ``CLIP_HOPS`` hops.
    Raises ConfigError if a name is not allowed, or is already used by a backbone or text encoder of Stepline, and
    StoreError if files are invalid or differ in D, or if rows end after the end of their video, with the same tolerance
    but of one hop.
    """
    for what, given in (("name", name), ("dataset", dataset)):
        if not re.fullmatch("[a-z0-9][a-z0-9_.-]*", given):
            raise ConfigError(f"{what} {given!r} is not allowed: use lower-case letters, digits, '_', '-' and '.'")
    if name in {*FRAME_BACKBONES, *presets(), *towers(), *MODELS}:
        raise ConfigError(f"name {name!r} is already used by a backbone or text encoder of Stepline: choose another")
    check_hop(hop_s)
    digests = {file: sha256_file(file) for file in set(folder.files.values())}
    sources = {video: digests[folder.files[video]] for video in folder}
    dtypes, first, n_rows = set(), next(iter(folder)), {}
    dimension = folder[first].shape[1]
    for video, rows in folder.items():
        dtypes.add(rows.dtype)
        n_rows[video] = len(rows)
        if rows.shape[1] != dimension:
            raise StoreError(
                f"{folder.files[video]}: the features of {video} have {rows.shape[1]} dimensions, but the features of "
                f"{first} in {folder.files[first]} have {dimension}"
            )
    _check_ends(n_rows, hop_s, ends_s, say)
    lines = "".join(f"{video} {sha256}\n" for video, sha256 in sources.items())
    spec = ImportedSpec(
        name=name,
        hop_s=hop_s,
        dimension=dimension,
        dtype=np.result_type(*dtypes).name,
        files_sha256=hashlib.sha256(lines.encode()).hexdigest(),
    )
    place = paths.located(paths.features(dataset, SHARD, spec), store_at)
    store.write(place, spec, folder, hop_s, sources=sources)
    write_json(paths.spec_record(spec), spec.record())
    present = {
        video: {"status": "present", "reason": "", "n_rows": n_rows[video], "source_sha256": sources[video]}
        for video in folder
    }
    write_manifest(paths.features_manifest(dataset, SHARD, spec), present, spec=spec.record())
    return paths.spec_record(spec).parent


def _check_ends(
    n_rows: Mapping[str, int], hop_s: float, ends_s: Mapping[str, float], say: Callable[[str], object]
) -> None:
    """Compare the ends of rows with those of their videos, see ``import_folder``."""
    early, late = [], []
    for video in (video for video in sorted(n_rows) if ends_s.get(video)):
        more_s = n_rows[video] * hop_s - ends_s[video]
        rounded_s = max(ROUNDED_S, ROUNDED * ends_s[video])
        line = f"{video} has {n_rows[video]} rows of {hop_s:g} s and ends at {ends_s[video]:.1f} s"
        early += [line] if more_s < -rounded_s - CLIP_HOPS * hop_s else []
        late += [line] if more_s > rounded_s + hop_s else []
    text = "the rows of {} of {} videos end {} their video does, the first: {}; check --hop-s and the files"
    if late:
        raise StoreError(text.format(len(late), len(n_rows), "after", late[0]))
    if early:
        say(text.format(len(early), len(n_rows), "before", early[0]))


def check_hop(hop_s: float) -> None:
    """Raise ConfigError if ``hop_s`` is not a finite number of seconds above 0."""
    if not 0 < hop_s < inf:
        raise ConfigError(f"{hop_s:g} s from row to row is not allowed: give a finite number above 0")


def _checked(file: Path, video: str) -> str:
    try:
        return check_video_id(video)
    except ReleaseError as error:
        raise StoreError(f"{file}: {error}; or remove parts of the name with --prefix, --suffix") from None


def _found(path: Path, key: str, reader: Decoder) -> Iterator[tuple[Path, str, Callable[[], Any]]]:
    """Yield each file, the name of a video's features in it, and a function that reads them. reader: runs libhdf5."""
    folder = path if path.is_dir() else path.parent
    parted = _parted(folder / INDEX)
    for file in sorted(path.iterdir()) if path.is_dir() else [path]:
        if file.suffix == ".npy":
            yield file, file.stem, partial(_refused if file.stem in parted else _npy, file, key)
        elif file.suffix == ".pt":
            yield file, file.stem, partial(_tensor, file)
        elif file.suffix in (".h5", ".hdf5"):
            for name in _of_hdf5(file, reader, hdf5_file.names):
                yield file, name, partial(_dataset, file, reader, name)


@contextmanager
def _damage_is_one_line(file: Path) -> Iterator[None]:
    try:
        yield
    except (FileNotFoundError, StoreError):
        raise
    except Exception as error:
        line = " ".join(str(error).split())[:LONGEST] or type(error).__name__
        raise StoreError(f"{file} holds no features, or is damaged ({line})") from error


def _parted(index: Path) -> set[str]:
    """Return the names of the exported arrays whose rows are not one per hop from 0 s on, as an import assumes."""
    match read_json(index) if index.exists() else {}:
        case {"videos": dict(videos)}:
            return {name for name, about in videos.items() if isinstance(about, dict) and about.get("whole") is False}
    return set()


def _refused(file: Path, _: str) -> Any:
    raise StoreError(f"{file} {hdf5_file.PARTS}")


def _npy(file: Path, key: str) -> Any:
    with (
        _damage_is_one_line(file),
        open(file, "rb") as opened,
        mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as mapped,  # from which no more than is there is read
    ):
        version = np.lib.format.read_magic(mapped)
        header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        if not header(mapped)[2].hasobject:
            return np.load(file, mmap_mode="r", allow_pickle=False)
        match parse(mapped, _known):
            case Stub(state=(_, (), _, _, [dict(content)])):
                if key in content:
                    return _array(content[key])
                keys = [f"{name}"[:LONGEST] for name in content]
            case _:
                keys = ["no dictionary"]
    listed = ", ".join(keys[:NAMED]) + (", ..." if len(keys) > NAMED else "")
    raise StoreError(f"{file} has no {key!r}: name the key of its features with --key, one of: {listed}")


def _tensor(file: Path) -> Any:
    import torch

    content = checkpoint.read(file)
    if not isinstance(content, torch.Tensor):
        return content
    with _damage_is_one_line(file):
        return (content.float() if content.dtype == torch.bfloat16 else content).detach().numpy()


def _of_hdf5(file: Path, reader: Decoder, work: Callable[..., Iterator[Any]], *arguments: Any) -> list[Any]:
    try:
        return list(reader(work, file, *arguments, duration_s=0))
    except (MediaError, OSError) as error:
        line = str(error).partition(": see media.limits")[0]
        raise StoreError(f"{file} holds no features, or is damaged ({line})") from None


def _dataset(file: Path, reader: Decoder, name: str) -> Any:
    if blocks := _of_hdf5(file, reader, hdf5_file.read, name):
        return np.concatenate(blocks)
    raise StoreError(
        f"{file}: {name} is a group: put a dataset per video at the top of the file, or exclude it with "
        "--prefix, --suffix"
    )


_KNOWN = {
    "_codecs.encode",
    "builtins.bytes",
    "builtins.frozenset",
    "builtins.set",
    "numpy._core.multiarray._reconstruct",
    "numpy._core.multiarray.scalar",
    "numpy._core.numeric._frombuffer",
    "numpy.dtype",
}


def _known(stub: Stub) -> Stub:
    """Return the stub of an array, a number, bytes or a set; raise ValueError for that of any other class or call."""
    module, name = stub.name
    called = f"{module.replace('numpy.core.', 'numpy._core.').replace('__builtin__', 'builtins')}.{name}"
    if called not in _KNOWN:
        raise ValueError(f"it names {called}, which is not executed")
    return stub


def _array(saved: Any) -> Any:
    """Return the numbers of a pickled array, whose bytes must be those of its shape and dtype; any other object as is.

    A dtype is only its kind, its size and its byte order, so that an array has neither fields nor objects.
    """
    match saved:
        case Stub(name=(_, "_reconstruct"), state=(_, shape, dtype, fortran, content)):
            order = "F" if fortran else "C"
        case Stub(name=(_, "_frombuffer"), arguments=(content, dtype, shape, order)):
            pass
        case Stub():
            raise ValueError(f"{'.'.join(saved.name)[:LONGEST]} is no array")
        case _:
            return saved
    if isinstance(content, Stub):
        content = content.arguments[0]
    if isinstance(content, str):
        content = content.encode("latin1")
    code, ends = dtype.arguments[0], dtype.state[1]
    if not re.fullmatch("[biufc][0-9]+", code):
        raise ValueError(f"an array of {code}, which is no kind of number")
    return np.frombuffer(content, np.dtype(code).newbyteorder(ends)).reshape(shape, order=order)
