"""Odd and damaged media files, and what the decoder makes of them: ``python -m tests.chaos.corpus SEED N``."""

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from stepline.media.decode import MediaError
from stepline.media.process import Limits, killable
from tests.chaos import corpus_damage as damage
from tests.chaos.corpus_bases import (
    COMMON,
    EXACT,
    FPS,
    MKV_H264,
    MP4_H264,
    ODD,
    TS_H264,
    WEBM_VP8,
    Base,
    picture,
    write,
)
from tests.chaos.corpus_judge import Judged, Made, judge

JOINED = ("ts", "mkv", "webm", "mpg", "h264", "hevc", "flv", "m4v")
PLACEHOLDER = "TITLEPLACEHOLDER"


def files(seed: int, n: int, folder: Path) -> Iterator[Made]:
    """Write ``n`` files, the same for the same seed."""
    rng = Random(seed)
    bases = _Bases(folder)
    makers = [(_whole, 2), (_of_bytes, 8), (_of_packets, 4), (_joined, 1), (_odd, 2)]
    for i in range(n):
        make = rng.choices([maker for maker, _ in makers], [weight for _, weight in makers])[0]
        target = folder / str(seed) / f"{i:04d}"
        target.mkdir(parents=True)
        yield make(rng, bases, target)


class _Bases:
    """Undamaged files, each written once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "bases"
        self.folder.mkdir(parents=True, exist_ok=True)
        self._made: dict[Base, Made] = {}

    def __call__(self, base: Base) -> Made:
        key = repr(base)
        if key not in self._made:
            path = write(base, self.folder)
            pictures = path.with_name(path.name + ".npy")
            np.save(pictures, decoded(path, base.frames))
            times_s = tuple(float(base.times(i)) + base.late_s for i in range(base.frames))
            fps = 200 if "variable" in base.name else FPS
            heard = bool(base.sounds) and base.frames > FPS and not (len(base.sounds) > 1 and base.suffix == "ts")
            self._made[key] = Made(
                path=path,
                kind=base.kind,
                damage="none",
                pictures=pictures,
                times_s=times_s,
                fps=fps,
                whole=True,
                heard=heard,  # MPEG-TS flags no sound as the default
            )
        return self._made[key]


def decoded(path: Path, n: int) -> NDArray[np.uint8]:
    """Return the (n, H, W, 3) pictures of an undamaged file."""
    import av

    with av.open(str(path)) as container:
        images = [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]
    assert len(images) == n, (path, len(images), n)
    return np.stack(images)


def _whole(rng: Random, bases: _Bases, _: Path) -> Made:
    return bases(rng.choice(COMMON + ODD))


def _of_bytes(rng: Random, bases: _Bases, target: Path) -> Made:
    made = bases(rng.choice(COMMON))
    change = rng.choice(damage.of_bytes(made.path.suffix[1:], made.path.name.startswith(("fast", "fragments"))))
    path = target / made.path.name
    path.write_bytes(change(rng, made.path.read_bytes()))
    return replace(made, path=path, damage=change.__name__, whole=False)


def _of_packets(rng: Random, bases: _Bases, target: Path) -> Made:
    import av

    base = rng.choice([base for base in COMMON if base.kind not in ("x264.mpg", "mpeg2video.vob", "dnxhd.mxf")])
    made = bases(base)
    change = rng.choice(damage.PACKETS)
    if change is damage.damage_sound and not base.sounds:
        change = damage.damage_packet
    path = target / made.path.name
    try:
        damage.copy(made.path, path, lambda pictures, sounds: change(rng, pictures, sounds), base.format)
    except av.ArgumentError:  # the container holds no such packets
        return _of_bytes(rng, bases, target)
    return replace(made, path=path, damage=change.__name__, whole=False)


def _joined(rng: Random, bases: _Bases, target: Path) -> Made:
    base = rng.choice([base for base in COMMON if base.suffix in JOINED])
    n = rng.choice([25, 60])
    halves = [bases(replace(base, frames=n, first=first)) for first in (0, n)]
    path = target / halves[0].path.name
    path.write_bytes(b"".join(half.path.read_bytes() for half in halves))
    pictures = target / "pictures.npy"
    np.save(pictures, np.concatenate([np.load(half.pictures) for half in halves]))
    return replace(halves[0], path=path, damage="joined", pictures=pictures, times_s=(), whole=False)


def _odd(rng: Random, bases: _Bases, target: Path) -> Made:
    return rng.choice([_rotated, _mistitled, _resized, _edited, _without])(rng, bases, target)


def _rotated(rng: Random, bases: _Bases, target: Path) -> Made:
    made = bases(replace(MP4_H264, suffix=rng.choice(["mp4", "mov"])))
    degrees, mirror = rng.choice([0, 90, 180, 270]), rng.random() < 0.3
    path, pictures = target / made.path.name, target / "pictures.npy"
    path.write_bytes(damage.rotate(made.path.read_bytes(), degrees, mirror))
    stored = np.load(made.pictures)
    np.save(pictures, np.rot90(stored[:, :, ::-1] if mirror else stored, -degrees // 90, (1, 2)))
    return replace(made, path=path, damage=f"rotated-{degrees}{'-mirror' * mirror}", pictures=pictures)


def _mistitled(rng: Random, bases: _Bases, target: Path) -> Made:
    chosen = [base for base in COMMON if base.suffix in ("avi", "mp4", "mkv", "flv", "mov", "webm", "wmv")]
    made = bases(replace(rng.choice(chosen), name="titled", tags={"title": PLACEHOLDER}))
    path = target / made.path.name
    data = made.path.read_bytes()
    title = b"K\xe4se " + bytes(rng.randrange(128, 256) for _ in range(11))
    path.write_bytes(data.replace(PLACEHOLDER.encode(), title).replace(b"VideoHandler", b"Vid\xe9oHandler"[:12]))
    return replace(made, path=path, damage="title")


def _resized(rng: Random, bases: _Bases, target: Path) -> Made:
    import av

    base = rng.choice([WEBM_VP8, replace(WEBM_VP8, suffix="mkv"), replace(WEBM_VP8, codec="libvpx-vp9")])
    halves = [
        bases(replace(base, frames=25, first=first, size=size, sounds=(), name=f"{size}"))
        for first, size in [(0, (64, 48)), (25, (96, 80))]
    ]
    path = target / f"resized.{base.suffix}"
    with av.open(str(path), "w", options=EXACT) as out:
        copied = None
        for number, half in enumerate(halves):
            with av.open(str(half.path)) as before:
                copied = copied or out.add_stream_from_template(before.streams.video[0])
                for packet in before.demux(video=0):
                    if packet.size:
                        packet.pts += 1000 * number
                        packet.dts += 1000 * number
                        packet.stream = copied
                        out.mux(packet)
    small, large = (np.load(half.pictures) for half in halves)
    import cv2

    pictures = target / "pictures.npy"
    np.save(
        pictures, np.concatenate([small, [cv2.resize(each, (64, 48), interpolation=cv2.INTER_AREA) for each in large]])
    )
    return replace(halves[0], path=path, damage="resized", pictures=pictures, times_s=tuple(i / FPS for i in range(50)))


def _edited(_: Random, bases: _Bases, target: Path) -> Made:
    """An mp4 with an edit list: it begins between two key frames."""
    import av

    made = bases(MP4_H264)
    path, pictures = target / "edited.mp4", target / "pictures.npy"
    with av.open(str(made.path)) as before, av.open(str(path), "w", options=EXACT) as after:
        stream = before.streams.video[0]
        copied = after.add_stream_from_template(stream)
        offset = round(17 / FPS / stream.time_base)
        for packet in before.demux(stream):
            if packet.size and packet.pts * packet.time_base >= 12 / FPS:
                packet.pts -= offset
                packet.dts -= offset
                packet.stream = copied
                after.mux(packet)
    np.save(pictures, np.load(made.pictures)[17:])
    return replace(made, path=path, damage="edited", pictures=pictures, times_s=made.times_s[:33], heard=False)


def _without(rng: Random, bases: _Bases, target: Path) -> Made:
    """A file without pictures."""
    made = bases(rng.choice([MP4_H264, MKV_H264, TS_H264]))
    kind = rng.choice(["empty", "text", "sound", "cover", "header"])
    path, pictures = target / f"{kind}{made.path.suffix}", target / "pictures.npy"
    np.save(pictures, np.load(made.pictures)[:0])
    if kind == "empty":
        path.write_bytes(b"")
    elif kind == "text":
        path.write_text("This is no video.\n" * 100)
    elif kind == "header":
        path.write_bytes(made.path.read_bytes()[: rng.randint(1, 300)])
    else:
        _sound_alone(made.path, path, cover=kind == "cover" and path.suffix != ".ts")
    return replace(made, path=path, damage=f"without-{kind}", pictures=pictures, times_s=(), whole=False)


def _sound_alone(source: Path, target: Path, *, cover: bool) -> None:
    import av
    from av.stream import Disposition

    with av.open(str(source)) as before, av.open(str(target), "w", options=EXACT) as after:
        stream = before.streams.audio[0]
        copied = after.add_stream_from_template(stream)
        if cover:
            still = after.add_stream("mjpeg", rate=1)
            still.width, still.height, still.pix_fmt = 64, 48, "yuvj420p"
            still.disposition = Disposition.attached_pic
            after.mux(still.encode(av.VideoFrame.from_ndarray(picture(1, 64, 48), format="rgb24")))
            after.mux(still.encode())
        for packet in before.demux(stream):
            if packet.size:
                packet.stream = copied
                after.mux(packet)


def campaign(seed: int, n: int, tell: Callable[[Judged], None] = lambda _: None) -> dict[str, int]:
    """Return how many files show what, see ``Judged.verdicts``, and how many pictures are right or wrong."""
    counts: Counter[str] = Counter()
    with TemporaryDirectory() as folder:
        for found in judged(list(files(seed, n, Path(folder)))):
            tell(found)
            counts.update({"files": 1, "pictures": found.n, "right in ffmpeg": found.peer, "right in rows": found.ours})
            counts.update(found.verdicts)
            if found.wrong:
                counts[f"wrong rows of {found.made.kind}"] += found.wrong
                counts[f"wrong rows by {found.made.damage}"] += found.wrong
    return dict(counts)


def judged(all_made: Sequence[Made]) -> Iterator[Judged]:
    """Yield what becomes of each file; a file that ends the decoder's process is one that crashed."""
    limits = Limits(memory_mb=2000, least_s=600, s_per_video_s=0)
    left = list(all_made)
    while left:
        try:
            for found in killable(_judged, left, limits=limits, duration_s=0):
                yield found
                left.pop(0)
        except MediaError as error:
            made = left.pop(0)
            reason = f"CRASH {error}"
            yield Judged(made, len(np.load(made.pictures)), 0, 0, 0, 0, 0, [], reason, [], reason, "", None)


def _judged(all_made: Sequence[Made]) -> Iterator[Judged]:
    import av
    import cv2

    av.logging.set_level(None)
    cv2.setNumThreads(1)
    yield from map(judge, all_made)


def _told(found: Judged) -> None:
    if verdicts := sorted(found.verdicts):
        made = found.made
        counts = f"{found.ours} of {found.peer} of {found.n}, {found.wrong} wrong, {found.moved} moved"
        print(made.path.parent.name, made.path.name, made.damage, counts, ", ".join(verdicts), found.reason, sep="\t")


if __name__ == "__main__":
    for name, number in sorted(campaign(int(sys.argv[1]), int(sys.argv[2]), _told).items()):
        print(f"{number:6d} {name}")
