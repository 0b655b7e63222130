"""Decoding a video once for all features of its frames. It runs in a process that can be killed."""

import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from stepline.backbones.picture import Pictures
from stepline.backbones.registry import FRAME_BACKBONES
from stepline.features.clips import OUTSIDE, order, readable, rows
from stepline.media.decode import DamagedError, MediaError
from stepline.media.decord import decord
from stepline.media.frame import DecodedFrame, Frame
from stepline.media.read import Reader, pyav
from stepline.media.salvage import salvaged
from stepline.media.spans import Spans
from stepline.media.timeline import Gap, Timeline, described, scan
from stepline.spec import ClipSpec, FrameSpec, ReaderName

READERS: dict[ReaderName, Reader] = {"pyav": pyav, "decord": decord}
DESCRIBED = 256
"""Frames per batch of a backbone without a network."""
HELD = 400 << 20
"""Bytes of pictures that are kept in memory until their rows are complete; the rest is kept on disk."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """The request for a video's clips for one spec.

    batch_size: the maximum number of clips in a batch, see ``split``. done: the number of existing rows, in the order
    in which rows become complete. listed: [start_s, end_s) of the clips, if the spec uses listed clips. scratch: the
    folder for pictures that do not fit into memory, as long overlapping clips need gigabytes; None is the system's
    temporary folder.
    """

    spec: FrameSpec
    batch_size: int
    done: int = 0
    listed: Sequence[tuple[float, float]] = ()
    scratch: Path | None = None


@dataclass(frozen=True)
class Begun:
    """Batches follow, from the first row that is not done. A second ``Begun`` means that all rows are sent again.

    of: the index of the request. order: (N,) the row that is sent as the i-th. k, span: as in ``clips.Rows``. spans,
    gaps: as in ``clips.Readable``.
    """

    of: int
    order: NDArray[np.int64]
    k: NDArray[np.int64]
    span: NDArray[np.int64]
    spans: list[list[float]] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)


@dataclass(frozen=True)
class Batch:
    """Clips of some rows, in the order of ``Begun``.

    clips: (n, T, H, W, 3) RGB in [0, 255], or, without a network, the rows themselves, (n, D). shown: (n, T), False
    where there is no frame. decode_s, picture_s: seconds of decoding and of preparing pictures since the last batch.
    """

    of: int
    clips: NDArray[Any]
    shown: NDArray[np.bool_]
    decode_s: float
    picture_s: float


@dataclass(frozen=True)
class Refused:
    """No row can be computed for a request."""

    of: int
    reason: str


Message = Begun | Batch | Refused


def batches(video: Path, requests: Sequence[Request], spans: Spans, damaged: str = "partial") -> Iterator[Message]:
    """Yield the clips of all requests, decoding the video once.

    The timeline comes from the packets. If the frames do not match the packets, all rows are sent again: for each
    request whose own frames match them, otherwise with the timeline of the salvaged file. So the rows of a request do
    not depend on the others. damaged: ``partial``, or ``skip`` to refuse a video with gaps. Raises MediaError if the
    video cannot be read.
    """
    try:
        timeline = scan(video)
    except DamagedError:
        timeline = _salvaged(video, damaged)
    try:
        yield from _Pass(video, dict(enumerate(requests)), spans, timeline).messages()
    except DamagedError:
        if timeline.packets is not None:
            raise
    else:
        return
    hurt = {of: replace(request, done=0) for of, request in enumerate(requests)}
    for of in range(len(requests)) if len(requests) > 1 else ():
        with suppress(DamagedError):
            yield from _Pass(video, {of: hurt[of]}, spans, timeline).messages()
            del hurt[of]
    if hurt:
        try:
            timeline = _salvaged(video, damaged)
        except MediaError as error:
            yield from (Refused(of, str(error)) for of in hurt)
        else:
            yield from _Pass(video, hurt, spans, timeline).messages()


def split(rows: int, most: int) -> list[int]:
    """Return the sizes of the batches of a video's rows: descending powers of two up to ``most``.

    They depend only on the number of remaining rows, so a run that continues after some batches gets the same sizes.
    """
    sizes, size = [], 1 << most.bit_length() - 1
    while rows:
        sizes += [size] * (rows // size)
        rows, size = rows % size, size // 2
    return sizes


def _salvaged(video: Path, damaged: str) -> Timeline:
    timeline = salvaged(video)
    if timeline.gaps and damaged == "skip":
        raise MediaError(described(timeline.gaps))
    return timeline


class FrameTap:
    """A tap of the media pass. It yields the same as ``batches`` for an undamaged video that is read whole."""

    def __init__(self, requests: Sequence[Request]) -> None:
        """Keep the requests; no file is read yet."""
        self._requests = requests

    def begin(self, path: Path) -> Iterator[Message]:
        """Yield a Begun or Refused per request; raise DamagedError if the packets have no presentation times."""
        timeline = scan(path)
        self._pass = _Pass(path, dict(enumerate(self._requests)), (), timeline)
        yield from self._pass.begin()
        wanted = self._pass.wanted
        self._coming = deque(zip(wanted.tolist(), timeline.pts[wanted].tolist(), strict=True))

    def take(self, frame: DecodedFrame) -> Iterator[Message]:
        """Yield the batches that the frame completes; raise DamagedError if a frame before it is missing."""
        if self._coming and frame.pts >= self._coming[0][1]:
            index, pts = self._coming.popleft()
            if frame.pts > pts:
                raise DamagedError(f"the frame before {frame.t_s:.3f} s is missing in the decoder's output")
            yield from self._pass.take(index, frame)

    def end(self) -> Iterator[Message]:
        """Raise DamagedError if a frame is missing."""
        if self._coming:
            raise DamagedError(f"{len(self._coming)} frames are missing in the decoder's output")
        yield from ()


class _Pass:
    """One pass over a video, for requests by their index."""

    def __init__(self, video: Path, requests: Mapping[int, Request], spans: Spans, timeline: Timeline) -> None:
        self.video, self.requests, self.spans, self.timeline = video, requests, spans, timeline
        self.assemblers: dict[int, _ClipAssembler] = {}
        self.decode_s = self.picture_s = 0.0

    def messages(self) -> Iterator[Message]:
        """Yield the messages of ``batches`` for this timeline."""
        yield from self.begin()
        wanted, spec = self.wanted, next(iter(self.requests.values())).spec
        if not len(wanted):
            return
        decoded = READERS[spec.reader](self.video, self.timeline, wanted, turned=spec.orientation == "upright")
        for index, frame in zip(wanted.tolist(), decoded, strict=True):
            yield from self.take(index, frame)

    def begin(self) -> Iterator[Message]:
        """Yield a Begun or Refused per request; then set ``wanted`` to the ascending indices of the needed frames."""
        for of, request in self.requests.items():
            try:
                made = rows(request.spec, self.timeline, spans=self.spans, listed=request.listed)
                if not len(made.frames):
                    raise ValueError("no row lies within its spans" if self.spans else "it is shorter than one clip")
                read = readable(request.spec, self.timeline, made, self.spans)
                made = read.rows
                if not len(made.frames):
                    raise ValueError(described(self.timeline.gaps))
                if (made.frames == OUTSIDE).all():
                    raise ValueError("all frames of its clips are outside the video")
            except ValueError as error:
                yield Refused(of, str(error))
                continue
            ordered = order(made.frames)
            yield Begun(of, ordered, made.k, made.span, [list(span) for span in read.spans], list(read.gaps))
            frames = made.frames[ordered[request.done :]]
            self.assemblers[of] = _ClipAssembler(request, frames, HELD // len(self.requests))
        wanted = [np.zeros(0, np.int64), *(each.wanted for each in self.assemblers.values())]
        self.wanted = np.unique(np.concatenate(wanted))
        self._start = time.perf_counter()

    def take(self, index: int, frame: Frame) -> Iterator[Message]:
        """Yield the batches that a wanted frame completes."""
        self._spent("decode_s")
        pictures = Pictures(frame)
        for of, assembler in list(self.assemblers.items()):
            if not assembler.wants(index):
                continue
            try:
                assembler.take(index, frame, pictures)
            except ValueError as error:
                del self.assemblers[of]
                yield Refused(of, str(error))
                continue
            self._spent("picture_s")
            for clips, shown in assembler.complete(index):
                yield self._batch(of, clips, shown)
                self._start = time.perf_counter()

    def _spent(self, what: str) -> None:
        now = time.perf_counter()
        setattr(self, what, getattr(self, what) + now - self._start)
        self._start = now

    def _batch(self, of: int, clips: NDArray[Any], shown: NDArray[np.bool_]) -> Batch:
        batch = Batch(of, clips, shown, self.decode_s, self.picture_s)
        self.decode_s = self.picture_s = 0.0
        return batch


class _ClipAssembler:
    """The pictures that rows of one request still need, and the complete rows."""

    def __init__(self, request: Request, frames: NDArray[np.int64], held: int) -> None:
        self.request, self.frames = request, frames
        self.wanted, uses = np.unique(frames[frames >= 0], return_counts=True)
        self._last = frames.max(axis=1, initial=-1).tolist()
        self._uses = dict(zip(self.wanted.tolist(), uses.tolist(), strict=True))
        self._held = _Held(held, request.scratch)
        self._like: NDArray[Any] = np.zeros(0)
        self._row = 0
        self._sizes = split(len(frames), request.batch_size)
        self._ready: list[tuple[NDArray[Any], NDArray[np.bool_]]] = []

    def wants(self, index: int) -> bool:
        return index in self._uses

    def take(self, index: int, frame: Frame, pictures: Pictures) -> None:
        """Prepare a frame for the rows that need it; raise ValueError if this fails."""
        spec = self.request.spec
        if isinstance(spec, ClipSpec):
            self._like = pictures.after(spec.steps)
        else:
            self._like = FRAME_BACKBONES[spec.name].describe(frame.rgb(), spec)
        self._held.put(index, self._like)

    def complete(self, index: int) -> Iterator[tuple[NDArray[Any], NDArray[np.bool_]]]:
        """Yield the batches that are complete once the frame ``index`` is available."""
        while self._row < len(self.frames) and self._last[self._row] <= index:
            self._ready.append(self._clip(self.frames[self._row]))
            self._row += 1
            if len(self._ready) == self._sizes[0]:
                del self._sizes[0]
                clips, shown = zip(*self._ready, strict=True)
                yield np.stack(clips), np.stack(shown)
                self._ready = []

    def _clip(self, frames: NDArray[np.int64]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        there = frames >= 0
        clip = np.zeros((len(frames), *self._like.shape), self._like.dtype)
        for place, index in enumerate(frames.tolist()):
            if index >= 0:
                self._held.copy(index, clip[place])
                self._uses[index] -= 1
                if not self._uses[index]:
                    self._held.drop(index)
        return (clip if isinstance(self.request.spec, ClipSpec) else clip[0]), there


class _Held:
    """Arrays of one shape and dtype by index: ``most`` bytes in memory, the rest in an unnamed file in ``folder``."""

    def __init__(self, most: int, folder: Path | None) -> None:
        self._most, self._folder = most, folder
        self._arrays: dict[int, NDArray[Any]] = {}
        self._places: dict[int, int] = {}
        self._free: list[int] = []

    @cached_property
    def _file(self) -> IO[bytes]:
        if self._folder:
            self._folder.mkdir(parents=True, exist_ok=True)
        return TemporaryFile(dir=self._folder)

    def put(self, number: int, array: NDArray[Any]) -> None:
        if (len(self._arrays) + 1) * array.nbytes <= self._most:
            self._arrays[number] = array
            return
        self._places[number] = self._free.pop() if self._free else len(self._places)
        self._file.seek(self._places[number] * array.nbytes)
        self._file.write(array.tobytes())

    def copy(self, number: int, into: NDArray[Any]) -> None:
        """Copy an array into another of the same shape and dtype."""
        if number in self._arrays:
            into[...] = self._arrays[number]
            return
        self._file.seek(self._places[number] * into.nbytes)
        into[...] = np.frombuffer(self._file.read(into.nbytes), into.dtype).reshape(into.shape)

    def drop(self, number: int) -> None:
        if self._arrays.pop(number, None) is None:
            self._free.append(self._places.pop(number))
