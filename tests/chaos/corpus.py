"""Odd and damaged media files, and what the decoder makes of them."""

import subprocess
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.chaos import corpus_damage as damage
from tests.chaos.corpus_bases import COMMON, FPS, MKV_H264, MP4_H264, ODD, TS_H264, WEBM_VP8, Base, Image, write

JOINED = ("ts", "mkv", "webm", "mpg", "h264", "hevc", "flv", "m4v")
PLACEHOLDER = "TITLEPLACEHOLDER"
LEAST_DB = 28.0


@dataclass(frozen=True, kw_only=True)
class Made:
    """A file, and what it should show.

    kind: codec and container. damage: what was done to it. pictures: a file with the (n, H, W, 3) RGB pictures of the
    undamaged file, in order. times_s: when each is shown; none where times are lost. fps: at which all are seen.
    """

    path: Path
    kind: str
    damage: str
    pictures: Path
    times_s: tuple[float, ...]
    fps: int = FPS
    whole: bool = False


def files(seed: int, n: int, folder: Path) -> Iterator[Made]:
    """Write ``n`` files, the same for the same seed."""
    rng = Random(seed)
    bases = _Bases(folder)
    makers = [(_whole, 1), (_of_bytes, 8), (_of_packets, 5), (_joined, 1), (_odd, 3)]
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
            self._made[key] = Made(
                path=path, kind=base.kind, damage="none", pictures=pictures, times_s=times_s, fps=fps, whole=True
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
    halves = [bases(replace(base, frames=25, first=first)) for first in (0, 25)]
    path = target / halves[0].path.name
    path.write_bytes(b"".join(half.path.read_bytes() for half in halves))
    pictures = target / "pictures.npy"
    np.save(pictures, np.concatenate([np.load(half.pictures) for half in halves]))
    return replace(halves[0], path=path, damage="joined", pictures=pictures, times_s=(), whole=False)


def _odd(rng: Random, bases: _Bases, target: Path) -> Made:
    return rng.choice([_rotated, _mistitled, _resized, _edited])(rng, bases, target)


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
    halves = [bases(replace(base, frames=25, first=first, size=size, sounds=(), name=f"{size}")) for first, size in [(0, (64, 48)), (25, (96, 80))]]
    path = target / f"resized.{base.suffix}"
    with av.open(str(path), "w") as out:
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
    np.save(pictures, np.concatenate([small, [cv2.resize(each, (64, 48), interpolation=cv2.INTER_AREA) for each in large]]))
    return replace(halves[0], path=path, damage="resized", pictures=pictures, times_s=tuple(i / FPS for i in range(50)))


def _edited(_: Random, bases: _Bases, target: Path) -> Made:
    """An mp4 with an edit list: it begins between two key frames."""
    import av

    made = bases(MP4_H264)
    path, pictures = target / "edited.mp4", target / "pictures.npy"
    with av.open(str(made.path)) as before, av.open(str(path), "w") as after:
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
    return replace(made, path=path, damage="edited", pictures=pictures, times_s=made.times_s[:33])


def ffmpeg(path: Path, width: int, height: int) -> list[Image]:
    """Return the pictures that ffmpeg makes of a file; PyAV's where there is no ffmpeg."""
    try:
        from imageio_ffmpeg import get_ffmpeg_exe
    except ImportError:
        return _tolerant(path, width, height)
    line = [get_ffmpeg_exe(), "-v", "quiet", "-nostdin", "-threads", "1", "-i", str(path), "-map", "0:V:0"]
    line += ["-fps_mode", "passthrough", "-s", f"{width}x{height}", "-pix_fmt", "rgb24", "-f", "rawvideo", "-"]
    raw = subprocess.run(line, capture_output=True, timeout=60, check=False).stdout
    size = width * height * 3
    return list(np.frombuffer(raw[: len(raw) // size * size], np.uint8).reshape(-1, height, width, 3))


def _tolerant(path: Path, width: int, height: int) -> list[Image]:
    import av

    images = []
    try:
        with av.open(str(path), metadata_errors="replace") as container:
            for packet in container.demux(container.streams.video[0]):
                try:
                    frames = packet.decode()
                except av.FFmpegError:
                    continue
                images += [frame.to_ndarray(width=width, height=height, format="rgb24") for frame in frames]
    except (av.FFmpegError, IndexError):
        pass
    return images


def matched(images: Sequence[Image], pictures: NDArray[np.uint8]) -> list[tuple[int, float]]:
    """Return the number of the picture that each image is most like, and its PSNR in dB."""
    import cv2

    _, height, width, _ = pictures.shape
    known = pictures.astype(np.float32)
    found = []
    for image in images:
        if image.shape != pictures.shape[1:]:
            image = cv2.resize(image, (width, height), interpolation=cv2.INTER_AREA)
        error = ((known - image) ** 2).mean(axis=(1, 2, 3))
        best = int(error.argmin())
        found.append((best, float(10 * np.log10(255**2 / max(error[best], 1e-3)))))
    return found


@dataclass(frozen=True)
class Judged:
    """What a file's rows show.

    peer: how many of the n pictures ffmpeg shows rightly. ours: how many the rows do. wrong: rows whose picture is
    none of the file's. moved: rows that show another than is to be seen at their time. gaps, reason: what is said.
    """

    made: Made
    n: int
    peer: int
    ours: int
    rows: int
    wrong: int
    moved: int
    gaps: list[Any]
    reason: str
    media_gaps: list[Any]
    media: str
    audio: str

    @property
    def said(self) -> bool:
        """Whether anything is said."""
        return bool(self.gaps or self.reason)


def judge(made: Made) -> Judged:
    """Read a file as the pipeline does, and as ffmpeg does."""
    pictures = np.load(made.pictures)
    n, height, width, _ = pictures.shape
    images, k, gaps, reason = read_rows(made.path, made.fps)
    found = matched(images, pictures)
    good = [(row, best) for row, (best, db) in zip(k, found, strict=True) if db >= LEAST_DB]
    peer = {best for best, db in matched(ffmpeg(made.path, width, height), pictures) if db >= LEAST_DB}
    media_gaps, media, audio = read_media(made.path)
    return Judged(
        made, n, len(peer), len({best for _, best in good}), len(images), len(images) - len(good),
        moved(made, good), gaps, reason, media_gaps, media, audio,
    )  # fmt: skip


def moved(made: Made, good: Sequence[tuple[int, int]]) -> int:
    """Return how many rows show another picture than the one of their time, all times being off by the same."""
    if not good:
        return 0
    if not made.times_s:
        return sum(after < before for (_, before), (_, after) in zip(good, good[1:], strict=False))
    times_s = np.array(made.times_s) - made.times_s[0]
    k, best = np.array(good).T
    least = len(good)
    for shift_s in {0.0} if made.whole else {0.0, *(times_s[best] - k / made.fps).round(3).tolist()}:
        expected = np.searchsorted(times_s, k / made.fps + shift_s + 1e-4, side="right") - 1
        least = min(least, int((np.maximum(expected, 0) != best).sum()))
    return least


def read_rows(path: Path, fps: int) -> tuple[list[Image], list[int], list[Any], str]:
    """Return the pictures that rows are made of, the rows' numbers, the gaps, and why there are no more."""
    from stepline.backbones.registry import FRAME_BACKBONES, FrameBackbone
    from stepline.errors import SteplineError
    from stepline.features.frames import Batch, Begun, Refused, Request, batches
    from stepline.spec import FrameSpec

    spec = FrameSpec(name="pictures", label="pictures", revision=1, fps=fps)
    FRAME_BACKBONES["pictures"] = FrameBackbone(spec=spec, describe=lambda image, _: image)  # type: ignore[arg-type]
    images: list[Image] = []
    k: list[int] = []
    order: list[int] = []
    gaps: list[Any] = []
    try:
        for message in batches(path, [Request(spec=spec, batch_size=1)], ()):
            if isinstance(message, Begun):
                images, k, gaps = [], message.k[message.order].tolist(), getattr(message, "gaps", [])
            elif isinstance(message, Batch):
                images.append(message.clips[0].copy())
            elif isinstance(message, Refused):
                return [], [], [], message.reason
    except SteplineError as error:
        return images, k[: len(images)], gaps, str(error)
    except Exception as error:  # noqa: BLE001 - the campaign counts them
        return images, k[: len(images)], gaps, f"CRASH {error!r}"
    return images, k, gaps, ""


def read_media(path: Path) -> tuple[list[Any], str, str]:
    """Return the gaps of the media pass, why it fails, and what it says of the sound."""
    from stepline.errors import SteplineError
    from stepline.media.decode import DamagedError
    from stepline.media.one_pass import decode, decode_salvaged

    with TemporaryDirectory() as folder:
        asked = path, Path(folder) / "a.wav", (), True
        try:
            try:
                *_, found = decode(*asked)
            except DamagedError:
                *_, found = decode_salvaged(*asked)
        except SteplineError as error:
            return [], str(error), ""
        except Exception as error:  # noqa: BLE001 - the campaign counts them
            return [], f"CRASH {error!r}", ""
    audio = found["audio"]
    return found["gaps"], "", f"{audio['status']}: {audio['reason']}"


def judged(all_made: Sequence[Made]) -> Iterator[Judged]:
    """Yield what becomes of each file; it runs in a process of its own."""
    import cv2

    cv2.setNumThreads(1)
    for made in all_made:
        yield judge(made)
