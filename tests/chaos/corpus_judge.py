"""What the decoder makes of a file, beside what ffmpeg makes of it."""

import subprocess
import wave
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.chaos.corpus_bases import FPS, Image

LEAST_DB = 28.0
"""The PSNR from which on a picture is right."""
CONSISTENT = ("drop_packet", "drop_packets", "drop_last", "double_time")
"""Damages that leave a file in which nothing contradicts anything."""


@dataclass(frozen=True, kw_only=True)
class Made:
    """A file, and what it should show.

    kind: codec and container. damage: what was done to it. pictures: a file with the (n, H, W, 3) RGB pictures of the
    undamaged file, in order. times_s: when each is shown; none where times are lost. fps: at which all are seen.
    whole: whether nothing is damaged. heard: whether its sound can be heard.
    """

    path: Path
    kind: str
    damage: str
    pictures: Path
    times_s: tuple[float, ...]
    fps: int = FPS
    whole: bool = False
    heard: bool = False


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
    if not len(pictures):
        return [(0, 0.0) for _ in images]
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
    off_s: float | None

    @property
    def verdicts(self) -> set[str]:
        """Return what is not as it should be.

        crashed: an error that is no record. refused: ffmpeg shows right pictures, no row does. short: rows show less
        than three quarters of them. alarmed, unlike, unheard: nothing is damaged, and yet damage is named, pictures are
        absent, wrong or at another time, or the sound is. silent: pictures are lost and nothing is said; unknowable: so
        too, where nothing in the file tells. wrong: a row's picture is none of the file's. differing: the media pass
        names damage and the features do not, or the other way round.
        """
        whole, said = self.made.whole, bool(self.gaps or self.reason)
        lost = self.peer > 0 and min(self.peer, self.ours) < self.n and not said and not whole
        found = {
            "crashed": "CRASH" in self.reason + self.media,
            "refused": self.peer > 0 and (self.ours == 0 or self.reason != ""),
            "short": self.ours < 0.75 * self.peer,
            "alarmed": whole and (said or self.media_gaps or self.media),
            "unlike": whole and (self.ours < self.n or self.moved or self.wrong),
            "unheard": whole and self.made.heard and (self.off_s is None or abs(self.off_s) > 0.03),
            "silent": lost and self.made.damage not in CONSISTENT,
            "unknowable": lost and self.made.damage in CONSISTENT,
            "wrong": self.wrong > 0,
            "differing": bool(self.media_gaps) != bool(self.gaps) and not self.reason,
        }
        return {name for name, true in found.items() if true}


def judge(made: Made) -> Judged:
    """Read a file as the pipeline does, and as ffmpeg does."""
    pictures = np.load(made.pictures)
    n, height, width, _ = pictures.shape
    images, k, gaps, reason = read_rows(made.path, made.fps)
    found = matched(images, pictures)
    good = [(row, best) for row, (best, db) in zip(k, found, strict=True) if db >= LEAST_DB]
    peer = {best for best, db in matched(ffmpeg(made.path, width, height), pictures) if db >= LEAST_DB}
    media_gaps, media, audio, off_s = read_media(made.path)
    return Judged(
        made, n, len(peer), len({best for _, best in good}), len(images), len(images) - len(good),
        moved(made, good), gaps, reason, media_gaps, media, audio, off_s,
    )  # fmt: skip


def moved(made: Made, good: Sequence[tuple[int, int]]) -> int:
    """Return how many rows show another picture than the one of their time, all times being off by the same."""
    if not good:
        return 0
    if not made.times_s:
        return sum(after < before for (_, before), (_, after) in pairwise(good))
    times_s = np.array(made.times_s)
    k, best = np.array(good).T
    shifts_s = {0.0}
    if made.path.suffix in (
        ".avi",
        ".ts",
        ".flv",
    ):  # their times are those of decoding, or count from the sound's priming
        shifts_s |= {-1 / FPS, -2 / FPS}
    if not made.whole:
        shifts_s |= set((times_s[best] - k / made.fps).round(3).tolist())
    least = len(good)
    for shift_s in shifts_s:
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
    gaps: list[Any] = []
    try:
        for message in batches(path, [Request(spec=spec, batch_size=1)], ()):
            if isinstance(message, Begun):
                images, k, gaps = [], message.k[message.order].tolist(), getattr(message, "gaps", [])
            elif isinstance(message, Batch):
                images.append(message.clips[0].copy())
            elif isinstance(message, Refused):
                return [], [], [], message.reason
    except (SteplineError, MemoryError) as error:
        return images, k[: len(images)], gaps, str(error)
    except Exception as error:  # noqa: BLE001 - the campaign counts them
        return images, k[: len(images)], gaps, f"CRASH {error!r}"
    return images, k, gaps, ""


def read_media(path: Path) -> tuple[list[Any], str, str, float | None]:
    """Return the gaps of the media pass, why it fails, what it says of the sound, and how late that is.

    The sound is loud in the first 50 ms of each second; None where it never is.
    """
    from stepline.errors import SteplineError
    from stepline.media.decode import DamagedError
    from stepline.media.one_pass import decode, decode_salvaged

    with TemporaryDirectory() as folder:
        wav = Path(folder) / "a.wav"
        try:
            try:
                *_, found = decode(path, wav, (), True)
            except DamagedError:
                wav = Path(folder) / "again.wav"
                *_, found = decode_salvaged(path, wav, (), True)
        except (SteplineError, MemoryError) as error:
            return [], str(error), "", None
        except Exception as error:  # noqa: BLE001 - the campaign counts them
            return [], f"CRASH {error!r}", "", None
        audio = found["audio"]
        off_s = _late_s(wav) if audio["status"] == "present" else None
    return found["gaps"], "", f"{audio['status']}: {audio['reason']}", off_s


def _late_s(wav: Path) -> float | None:
    with wave.open(str(wav)) as file:
        samples = np.frombuffer(file.readframes(file.getnframes()), np.int16)
    loud = np.flatnonzero(abs(samples.astype(int)) > 8000) / 16000
    return None if not len(loud) else float(np.median((loud + 0.5) % 1 - 0.5)) - 0.025
