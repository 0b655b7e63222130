"""The bank: all features of a dataset for one spec."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from math import ceil, floor, inf, isfinite, isnan
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from stepline.errors import StoreError
from stepline.features import store
from stepline.features.filled import filled
from stepline.features.store import Block, Damaged, Recorded, Store, check_spec
from stepline.features.zarr_file import Rows
from stepline.media.timeline import described
from stepline.paths import Location
from stepline.spec import Spec

if TYPE_CHECKING:
    from stepline.features.windows import Windows

PREFIX = 64
"""Rows per prefix sum. The sums use a sixteenth of the memory of float16 rows."""


class AbsentError(StoreError, KeyError):
    """A video has no features. It is a KeyError too, which ``Mapping.get`` expects."""


@dataclass(frozen=True, eq=False)
class Bank(Mapping[str, Rows]):
    """Rows of every video in some stores, memory-mapped: ``bank[video]`` is (T, D). Use ``stepline.open_bank``.

    spec: the record of the spec. stores: the store of each video. blocks: by video, in order of time: one for the
    video, or one per span. rows: (T, D), block after block. clips: if rows are listed clips, the row of each
    (start_s, end_s). damaged: the videos with rows for only a part of their length. filled: whether missing rows are
    replaced by their neighbours, see ``fill``. A video's rows are checked against their sha256 when they are first
    read. Rows of a remote store are downloaded at that time, to a temporary file. ``fetch`` does this for many videos
    at once.
    """

    spec: dict[str, Any]
    stores: dict[str, Store]
    blocks: dict[str, list[Block]]
    rows: dict[str, Rows]
    clips: dict[str, dict[tuple[float, float], int]]
    damaged: dict[str, Damaged]
    filled: bool = False

    @classmethod
    def open(cls, locations: Sequence[Location], spec: Spec) -> "Bank":
        """Open stores; rows are read on first use.

        Raises StoreError if a store is absent, damaged or has another spec, or if two stores contain the same video,
        and StorageError if object storage cannot be read.
        """
        rows = _Rows()
        bank = rows.bank = cls(spec.record(), {}, {}, rows, {}, {})
        for held in store.read_all(locations):
            check_spec(held.location, held.spec.record(), spec)
            for video, listed in held.blocks.items():
                if video in bank.blocks:
                    other = bank.stores[video].location
                    raise StoreError(f"{video} is in {other} and in {held.location}: remove one of them")
                bank.stores[video] = held
                bank.blocks[video] = listed
            bank.clips.update(held.clips)
            bank.damaged.update(held.damaged)
        return bank

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the locations of the stores, not their content."""
        spec = Recorded(name="", label="", revision=0, values=self.spec, dimension=self.dimension)
        return _opened, (sorted({held.location for held in self.stores.values()}), spec, self.filled)

    def fetch(self, videos: Iterable[str] | None = None) -> None:
        """Download and check the rows of some videos, by default of all; videos without features are skipped.

        Raises StoreError if rows do not match the index, and StorageError if object storage cannot be read.
        """
        chosen = self.blocks if videos is None else sorted(self.blocks.keys() & {*videos})
        chosen = [video for video in chosen if not (self.filled and video in self.damaged)]
        store.fetch(
            (held, [block for video in group for block in self.blocks[video]])
            for held, group in _grouped(chosen, self.stores)
        )

    def unchecked(self, video: str) -> Rows:
        """Return the (T, D) rows of a video without a check; rows that are not downloaded yet are undefined."""
        first, last = self.blocks[video][0], self.blocks[video][-1]
        array = np.asarray(self.stores[video].rows)  # a plain array: its slices cost less than a memmap's
        return array[first.offset : last.offset + last.length]

    def length(self, video: str) -> int:
        """Return the number of rows of a video; raise AbsentError if it has no features."""
        if video not in self.blocks:
            raise _absent(video)
        return sum(block.length for block in self.blocks[video])

    @property
    def dimension(self) -> int:
        """D; 0 if the bank has no video."""
        return next((held.rows.shape[1] for held in self.stores.values()), 0)

    @property
    def hop_s(self) -> float:
        """Seconds from row to row; 0 if the bank has no video."""
        return next((blocks[0].hop_s for blocks in self.blocks.values()), 0.0)

    def without(self, videos: Collection[str]) -> "Bank":
        """Return the bank without some videos."""
        names = ("stores", "blocks", "rows", "clips", "damaged")
        parts = {name: {v: part for v, part in getattr(self, name).items() if v not in videos} for name in names}
        rows = _Rows(parts.pop("rows"))
        bank = rows.bank = Bank(spec=self.spec, filled=self.filled, rows=rows, **parts)
        return bank

    def fill(self) -> "Bank":
        """Return the bank with the gaps of damaged videos filled by the nearest row; of two equally near, the earlier.

        A filled video has one row per hop, up to its last readable row. Damaged videos of listed clips are left out.
        """
        if not self.damaged or self.filled:
            return self
        self.fetch(self.damaged)
        bank = self.without(self.damaged.keys() & self.clips.keys())
        for video, damaged in bank.damaged.items():
            bank.blocks[video], bank.rows[video] = filled(bank.blocks[video], bank.rows[video], damaged.spans)
        object.__setattr__(bank, "filled", True)
        return bank

    def check_whole(self) -> None:
        """Raise StoreError if a video does not have one row per hop from 0 s on."""
        for video in self.blocks:
            if not self.whole(video):
                raise StoreError(f"{video} has features of only parts of it: the rows alone do not tell which parts")

    def whole(self, video: str) -> bool:
        """Return whether a video has one row per hop from 0 s on."""
        return video not in self.clips and len(self.blocks[video]) == 1 and not self.blocks[video][0].t0_s

    @property
    def videos(self) -> frozenset[str]:
        """The videos with features."""
        return frozenset(self.blocks)

    def __getitem__(self, video: str) -> Rows:
        """Return the (T, D) rows of a video; raise AbsentError if it has no features."""
        if video not in self.blocks:
            raise _absent(video)
        return self.rows[video]

    def __contains__(self, video: object) -> bool:
        return video in self.blocks

    def __iter__(self) -> Iterator[str]:
        return iter(self.blocks)

    def __len__(self) -> int:
        return len(self.blocks)

    def clip(self, video: str, start_s: float, end_s: float) -> Rows:
        """Return the (D,) row of the listed clip [start_s, end_s); raise StoreError if it was not listed."""
        rows = self[video]
        _check_span(video, start_s, end_s)
        if (start_s, end_s) not in self.clips.get(video, {}):
            raise StoreError(f"{video} has no features of the clip from {start_s:g} s to {end_s:g} s: list it")
        row: Rows = rows[self.clips[video][start_s, end_s]]
        return row

    def window(self, video: str, start_s: float, end_s: float) -> Rows:
        """Return the (n, D) rows of ``video`` with times in [start_s, end_s), n >= 1.

        If there is none, it returns the row nearest to the middle; of two equally near rows, the earlier.
        Raises AbsentError if the bank has no such video, or if a damaged video has no row within a hop of the middle.
        Raises StoreError if the video's rows are listed clips, start_s is not finite, or end_s is NaN or -inf.
        """
        _check_span(video, start_s, end_s)
        first, last = self._range(video, start_s, end_s)
        return self.rows[video][first:last]

    def shows(self, video: str, start_s: float, end_s: float) -> bool:
        """Return whether ``window`` has a row for [start_s, end_s); raise StoreError as ``window`` does."""
        _check_span(video, start_s, end_s)
        return self._found(video, start_s, end_s) is not None

    def at(self, video: str, seconds: Sequence[float] | NDArray[np.floating[Any]]) -> Rows:
        """Return (n, D) rows of ``video``: for each of n times in seconds, the last row at or before it.

        Raises StoreError as ``window`` does, and if a time has no row less than one hop before it.
        """
        blocks, chosen = self._blocks(video), []
        for second in _listed("seconds", seconds):
            _check_span(video, second, second)
            for block in blocks:
                row = floor((second - block.t0_s) / block.hop_s + 1e-6)
                if 0 <= row < block.length:
                    chosen.append(block.offset - blocks[0].offset + row)
                    break
            else:
                raise StoreError(f"{video} has no features at {second:g} s")
        return self.rows[video][chosen]

    def windows(
        self, videos: Sequence[str], starts_s: Sequence[float], ends_s: Sequence[float], *, length: int
    ) -> tuple[Rows, NDArray[np.bool_]]:
        """Return the rows of W windows [start_s, end_s), (W, length, D), and a mask of the existing rows, (W, length).

        A window's first row is the first point of the video's time grid at or after the window's start, which may be
        before the start of the video. Rows outside the video, its spans or the window are 0, and False in the mask.
        Raises StoreError as ``window`` does, if the lists differ in length, and if a window has more than ``length``
        rows.
        """
        return self._gather(self._asked(videos, starts_s, ends_s, length), length)

    def _gather(self, asked: Sequence[tuple[str, float, float]], length: int) -> tuple[Rows, NDArray[np.bool_]]:
        rows = np.zeros((len(asked), length, self.dimension), self.spec["dtype"])
        there = np.zeros((len(asked), length), np.bool_)
        for place, (video, start_s, end_s) in enumerate(asked):
            blocks = self.blocks[video]
            for block in blocks:
                first, last = _before(block, start_s), _before(block, end_s)
                if first >= last:
                    continue
                skipped = ceil(_position(block, start_s))
                if last - skipped > length:
                    raise StoreError(f"{video} has {last - skipped} rows from {start_s:g} to {end_s:g} s, not {length}")
                offset = block.offset - blocks[0].offset
                rows[place, first - skipped : last - skipped] = self.rows[video][offset + first : offset + last]
                there[place, first - skipped : last - skipped] = True
        return rows, there

    def means(self, videos: Sequence[str], starts_s: Sequence[float], ends_s: Sequence[float]) -> NDArray[np.float64]:
        """Return (W, D): for each of W windows, the mean of the rows that ``window`` returns.

        If a video's windows have more rows in total than the video, means are computed from prefix sums.
        Raises StoreError as ``window`` does, and if the lists differ in length.
        """
        windows = self._asked(videos, starts_s, ends_s)
        means = np.empty((len(windows), self.dimension))
        ranges = [(video, place, self._range(video, *span)) for place, (video, *span) in enumerate(windows)]
        for video, asked in groupby(sorted(ranges), key=itemgetter(0)):
            rows, group = self.rows[video], list(asked)
            many = sum(last - first for *_, (first, last) in group) > len(rows)
            sums = _Sums(rows) if many else None
            for _, place, (first, last) in group:
                total = sums.before(last) - sums.before(first) if sums else _sum(rows[first:last])
                means[place] = total / (last - first)
        return means

    def sliding(
        self, window_s: float, stride_s: float, *, whole: bool = False
    ) -> tuple[list[str], list[float], list[float]]:
        """Return videos, starts_s and ends_s of windows of all videos, for ``windows``, ``means`` and ``torch``.

        The windows of a video start every ``stride_s`` seconds from 0 s on and are ``window_s`` seconds long. The last
        one is the first that includes the video's last row, and may end later. Windows without rows, such as those in a
        gap of a damaged video, are left out. whole: windows in which a row is missing are left out too. Raises
        StoreError if a number of seconds is not above 0, or if the rows of a video are listed clips.
        """
        for name, seconds in (("window_s", window_s), ("stride_s", stride_s)):
            if not isinstance(seconds, int | float | np.number) or not 0 < seconds < inf:
                raise StoreError(f"{name} {seconds!s:.40} is not allowed: give seconds above 0")
        videos: list[str] = []
        starts_s: list[float] = []
        for video in filter(self.length, self.blocks):
            times = [block.t0_s + block.hop_s * np.arange(block.length) for block in self._blocks(video)]
            k = np.arange(max(1, floor((times[-1][-1] + 1e-6 * self.hop_s - window_s) / stride_s) + 2))
            bounds = np.stack([k * stride_s, k * stride_s + window_s]) - 1e-6 * self.hop_s
            rows = np.diff(np.searchsorted(np.concatenate(times), bounds), axis=0)[0]
            wanted = np.diff(np.ceil(bounds / self.hop_s), axis=0)[0] if whole else 1
            kept = k[rows >= np.maximum(1, wanted)] * stride_s
            videos += [video] * len(kept)
            starts_s += kept.tolist()
        return videos, starts_s, [start_s + window_s for start_s in starts_s]

    def torch(
        self, videos: Sequence[str], starts_s: Sequence[float], ends_s: Sequence[float], *, length: int
    ) -> "Windows":
        """Return a dataset for ``torch.utils.data.DataLoader`` whose items are single windows of ``windows``.

        Its ``asked[i]`` is the (video, start_s, end_s) of item i, for labels. Raises StoreError as ``windows`` does. A
        window with more than ``length`` rows raises it only when it is read.
        """
        from stepline.features.windows import Windows

        return Windows(self._asked(videos, starts_s, ends_s, length), partial(self._gather, length=length))

    def _asked(
        self, videos: Sequence[str], starts_s: Sequence[float], ends_s: Sequence[float], length: int = 1
    ) -> list[tuple[str, float, float]]:
        """Return windows (video, start_s, end_s); raise StoreError if one of them is invalid."""
        if not isinstance(length, int | np.integer) or length < 1:
            raise StoreError(f"length {length!s:.40} is not allowed: give a whole number of rows above 0")
        lists = [_listed(*each) for each in (("videos", videos), ("starts_s", starts_s), ("ends_s", ends_s))]
        if len({len(each) for each in lists}) > 1:
            raise StoreError("{} videos, {} starts_s, {} ends_s: give one of each per window".format(*map(len, lists)))
        windows = list(zip(*lists, strict=True))
        for video in {*lists[0]}:
            self._blocks(video)
        self.fetch(lists[0])
        for window in windows:
            _check_span(*window)
        return windows

    def _blocks(self, video: str) -> list[Block]:
        if self.length(video) and video in self.clips:
            raise StoreError(f"{video} has features of listed clips, not of times: use `clip` to read them")
        return self.blocks[video]

    def _range(self, video: str, start_s: float, end_s: float) -> tuple[int, int]:
        """Return the first row of a window and the row after its last; raise AbsentError if it has no row."""
        found = self._found(video, start_s, end_s)
        if found is None:
            gaps = described(self.damaged[video].gaps)
            raise AbsentError(f"{video} has no features from {start_s:g} to {end_s:g} s: it is damaged ({gaps})")
        return found

    def _found(self, video: str, start_s: float, end_s: float) -> tuple[int, int] | None:
        blocks = self._blocks(video)
        first = sum(_before(block, start_s) for block in blocks)
        last = sum(_before(block, end_s) for block in blocks)
        if first >= last:
            middle_s = (start_s + end_s) / 2
            nearest = (_nearest(block, middle_s) for block in blocks if block.length)
            distance, row = min(nearest, key=itemgetter(0))
            if video in self.damaged and not self.filled and distance > 1:
                return None
            first, last = row - blocks[0].offset, row - blocks[0].offset + 1
        return first, last


def _opened(locations: Sequence[Location], spec: Spec, filled: bool) -> Bank:
    bank = Bank.open(locations, spec)
    return bank.fill() if filled else bank


def _absent(video: str) -> AbsentError:
    return AbsentError(
        f"{video} has no features: skip it (`bank.videos` are those that have some); the reason is in"
        " results/DATASET/videos.csv of the work folder where the features were computed"
    )


class _Rows(dict[str, Rows]):
    """Rows by video of a bank; a video's rows are downloaded, and checked against their sha256, on first access."""

    bank: Bank

    def __missing__(self, video: str) -> Rows:
        self.bank.fetch([video])
        self[video] = self.bank.unchecked(video)
        return self[video]


def _grouped(videos: Iterable[str], stores: Mapping[str, Store]) -> Iterator[tuple[Store, list[str]]]:
    """Yield each store with those of the videos that it contains."""
    found: dict[Location, list[str]] = {}
    for video in videos:
        found.setdefault(stores[video].location, []).append(video)
    for group in found.values():
        yield stores[group[0]], group


def _listed(name: str, given: Any) -> list[Any]:
    try:
        return list(given)
    except TypeError:
        raise StoreError(f"{name} must be a list, not {given!s:.40}") from None


def _check_span(video: str, start_s: float, end_s: float) -> None:
    """Raise StoreError if these are not times; the end may be infinite."""
    try:
        times = isfinite(start_s) and not isnan(end_s) and end_s != -inf
    except (TypeError, ValueError, OverflowError):
        times = False
    if not times:
        raise StoreError(f"{video}: {start_s!s:.40} to {end_s!s:.40} is not a time span: give seconds")


def _position(block: Block, time_s: float) -> float:
    """Return the position of a time in rows of the block. Times within a millionth of a hop are equal."""
    return (time_s - block.t0_s) / block.hop_s - 1e-6


def _before(block: Block, time_s: float) -> int:
    """Return the number of rows before a time."""
    return ceil(min(max(_position(block, time_s), 0), block.length))


def _nearest(block: Block, time_s: float) -> tuple[float, int]:
    """Return the distance of the nearest row in hops, and its index in the store; of two equally near, the earlier."""
    row = min(_before(block, time_s - block.hop_s / 2), block.length - 1)
    return round(abs((time_s - block.t0_s) / block.hop_s - row), 6), block.offset + row


def _sum(rows: Rows) -> NDArray[np.float64]:
    total: NDArray[np.float64] = rows.sum(axis=0, dtype=np.float64)
    return total


class _Sums:
    """Prefix sums of a video's rows, at every 64th row."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        parts = [_sum(rows[first : first + PREFIX]) for first in range(0, len(rows), PREFIX)]
        self.sums = np.concatenate([np.zeros((1, rows.shape[1])), np.cumsum(parts, axis=0)])

    def before(self, row: int) -> NDArray[np.float64]:
        """Return the sum of the rows before ``row``."""
        place = row // PREFIX
        before: NDArray[np.float64] = self.sums[place] + _sum(self.rows[place * PREFIX : row])
        return before
