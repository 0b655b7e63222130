"""Extraction as plainly as it can be written: all frames of a video at once, one clip at a time, no code of ours.

Pictures are made by what the papers' code calls: ffmpeg's filters, PIL and torchvision.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from io import BytesIO
from pathlib import Path
from typing import Any

import av
import numpy as np
import torch
from PIL import Image
from torch.nn.functional import interpolate

from stepline.backbones.torchvision import make_importable
from stepline.spec import ClipSpec

make_importable()

from torchvision import transforms  # noqa: E402
from torchvision.transforms import functional  # noqa: E402


@dataclass(frozen=True)
class Footage:
    """All frames of a video, when each is shown, and when the last is no longer; and the pictures made so far."""

    frames: list[av.VideoFrame]
    times: list[Fraction]
    end: Fraction
    pictures: dict[Any, torch.Tensor] = field(default_factory=dict)


def footage(path: Path) -> Footage:
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        frames = list(container.decode(stream))
        times = [(frame.pts - (stream.start_time or 0)) * frame.time_base for frame in frames]
        last = frames[-1].duration * frames[-1].time_base
        return Footage(frames, times, times[-1] + (last or 1 / stream.average_rate))


def shown(video: Footage, time: Fraction) -> int:
    return max((i for i, at in enumerate(video.times) if at <= time), default=0)


def nearest(video: Footage, time: Fraction) -> int:
    return min(range(len(video.times)), key=lambda i: abs(video.times[i] - time))


def at_rate(video: Footage, fps: float, choose: Callable[[Footage, Fraction], int]) -> list[int]:
    """Return the frame that is chosen for each time k / fps before the end."""
    found = []
    while (time := len(found) / Fraction(str(fps))) < video.end:
        found.append(choose(video, time))
    return found


def by_ffmpeg(video: Footage, fps: float) -> list[int]:
    """Return the frames that ffmpeg's filter ``fps`` puts out: of small ones that have their number painted in."""
    graph = av.filter.Graph()
    source = graph.add_buffer(width=16, height=16, format="gray", time_base=Fraction(1, 90000))
    graph.link_nodes(source, graph.add("fps", f"fps={fps}"), graph.add("buffersink")).configure()
    ends = [*video.times[1:], video.end]
    for number, (start, end) in enumerate(zip(video.times, ends, strict=True)):
        high, low = divmod(number, 256)
        small = np.full((16, 16), low, np.uint8)
        small[:8] = high
        frame = av.VideoFrame.from_ndarray(small, "gray")
        frame.time_base = Fraction(1, 90000)
        frame.pts, frame.duration = int(start * 90000), int((end - start) * 90000)
        graph.push(frame)
    graph.push(None)
    found = []
    while True:
        try:
            small = graph.pull().to_ndarray()
        except (av.BlockingIOError, av.EOFError):
            return found
        found.append(int(small[0, 0]) * 256 + int(small[-1, 0]))


Clip = list[int | None]


def clips(spec: ClipSpec, video: Footage, listed: Sequence[tuple[float, float]]) -> list[Clip]:
    """Return the frames of each row; None is a picture of zeros."""
    if spec.placement == "middles":
        return [_middles(spec.num_frames, video, Fraction(str(a)), Fraction(str(b))) for a, b in listed]
    if spec.placement == "ends":
        return [_ends(spec.num_frames, video, Fraction(str(a)), Fraction(str(b))) for a, b in listed]
    if spec.placement == "seconds":
        return [_seconds(spec.num_frames, video, Fraction(str(a)), Fraction(str(b))) for a, b in listed]
    if spec.frame_rule == "ffmpeg_near":
        grid = by_ffmpeg(video, spec.fps)
    else:
        grid = at_rate(video, spec.fps, {"at_or_before": shown, "nearest": nearest}[spec.frame_rule])
    found = []
    for first in range(0, len(grid), spec.hop):
        clip: Clip = [*grid[first : first + spec.num_frames]]
        missing = spec.num_frames - len(clip)
        if spec.tail == "zero":
            clip += [None] * missing
        elif spec.tail == "repeat":
            clip += grid[-1:] * missing
        elif missing:
            continue
        found.append(clip)
    return found


def _middles(count: int, video: Footage, start: Fraction, end: Fraction) -> Clip:
    return [shown(video, start + (end - start) * (2 * i + 1) / (2 * count)) for i in range(count)]


def _ends(count: int, video: Footage, start: Fraction, end: Fraction) -> Clip:
    last = max(i for i, at in enumerate(video.times) if at < end)
    return [int(i) for i in np.linspace(shown(video, start), last, count)]


def _seconds(count: int, video: Footage, start: Fraction, end: Fraction) -> Clip:
    """Return every frame that a round number of frames lies apart, no more than ``count``, and zeros after them."""
    stride = round(len(video.frames) / video.end)
    last = max(i for i, at in enumerate(video.times) if at < end)
    found: Clip = [*range(shown(video, start), last + 1, stride)]
    if len(found) > count:
        return [found[int(i)] for i in np.linspace(0, len(found) - 1, count)]
    return found + [None] * (count - len(found))


def ffmpeg(frame: av.VideoFrame, *filters: tuple[str, str]) -> np.ndarray:
    graph = av.filter.Graph()
    source = graph.add_buffer(
        width=frame.width, height=frame.height, format=frame.format.name, time_base=frame.time_base
    )
    nodes = [graph.add(name, options) for name, options in (*filters, ("format", "rgb24"))]
    graph.link_nodes(source, *nodes, graph.add("buffersink")).configure()
    graph.push(frame)
    return graph.pull().to_ndarray()


def chw(image: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(image).permute(2, 0, 1).float()


def square(frame: av.VideoFrame) -> torch.Tensor:
    """MIL-NCE's and TAN's: the square in the middle, scaled by ffmpeg."""
    side = min(frame.width, frame.height)
    return chw(ffmpeg(frame, ("crop", f"{side}:{side}"), ("scale", "224:224:flags=bicubic")))


def mmpt(frame: av.VideoFrame) -> torch.Tensor:
    """Scale the short side to 224 by ffmpeg, then cut, as MMPT does."""
    short = min(frame.width, frame.height)
    width, height = frame.width * 224 // short, frame.height * 224 // short
    image = ffmpeg(frame, ("scale", f"{width}:{height}:flags=bicubic"))
    left, top = (width - 224) // 2, (height - 224) // 2
    return chw(image[top : top + 224, left : left + 224])


def distant(frame: av.VideoFrame) -> torch.Tensor:
    """Scale to 640 x 360 by ffmpeg, the short side to 256, and cut, as distant supervision does."""
    image = chw(ffmpeg(frame, ("scale", "640:360:flags=bicubic")))
    scaled = interpolate(image[None], (256, 640 * 256 // 360), mode="bilinear", align_corners=False)[0]
    top, left = 16, -(-(scaled.shape[2] - 224) // 2)
    return scaled[:, top : top + 224, left : left + 224]


def egovlp(frame: av.VideoFrame) -> torch.Tensor:
    """EgoVLP's transform of frames as floats."""
    bilinear = transforms.InterpolationMode.BILINEAR
    scaled = functional.resize(chw(frame.to_ndarray(format="rgb24")) / 255, [256], bilinear, antialias=False)
    return functional.resize(functional.center_crop(scaled, [256]), [224, 224], bilinear, antialias=False) * 255


def clip(frame: av.VideoFrame) -> torch.Tensor:
    """CLIP's transform."""
    return _cut(_photo(frame), 224, transforms.InterpolationMode.BICUBIC)


def clip_of_jpeg(frame: av.VideoFrame) -> torch.Tensor:
    """CLIP's transform of a frame that was kept as JPEG."""
    return _cut(_kept(_photo(frame)), 224, transforms.InterpolationMode.BICUBIC)


def demo(frame: av.VideoFrame) -> torch.Tensor:
    """InternVideo's demo."""
    return _cut(_photo(frame), 256, transforms.InterpolationMode.BILINEAR)


def square_of_jpeg(frame: av.VideoFrame) -> torch.Tensor:
    """P3IV's: as MIL-NCE's, kept as JPEG."""
    image = Image.fromarray(square(frame).permute(1, 2, 0).byte().numpy())
    return chw(np.array(_kept(image)))


def _photo(frame: av.VideoFrame) -> Image.Image:
    return Image.fromarray(frame.to_ndarray(format="rgb24"))


def _cut(photo: Image.Image, size: int, method: transforms.InterpolationMode) -> torch.Tensor:
    return chw(np.array(transforms.Compose([transforms.Resize(size, method), transforms.CenterCrop(224)])(photo)))


def _kept(photo: Image.Image) -> Image.Image:
    kept = BytesIO()
    photo.save(kept, "JPEG", quality=95)
    return Image.open(kept)


PICTURES: dict[str, Callable[[av.VideoFrame], torch.Tensor]] = {
    "s3d-htstep": square,
    "s3d-htstep-as-released": square,
    "s3d-dropdtw": square,
    "s3d-oepp-as-released": square_of_jpeg,
    "s3d-mmpt-as-released": mmpt,
    "videoclip-oepp": mmpt,
    "videoclip-spacewalk": mmpt,
    "timesformer-htstep": square,
    "timesformer-distant": distant,
    "internvideo-spacewalk": clip,
    "internvideo-spacewalk-as-released": clip,
    "internvideo-seconds": clip,
    "internvideo-mm": demo,
    "internvideo-htstep-as-released": square,
    "eva_clip-hirest": clip,
    "eva_clip-hirest-as-released": clip_of_jpeg,
    "egovlp-spacewalk": egovlp,
    "egovlp-nlq": egovlp,
}
"""How the papers prepare a frame, by preset: (3, 224, 224) RGB in [0, 255]."""


def rows(
    spec: ClipSpec,
    video: Footage,
    network: Callable[[torch.Tensor], torch.Tensor],
    listed: Sequence[tuple[float, float]] = (),
    *,
    late: int = 0,
) -> np.ndarray:
    """Return the (N, D) rows of a preset, float32. late: by how many frames all of them are the wrong ones."""
    mean, std = (torch.tensor(each)[:, None, None] for each in (spec.mean, spec.std))
    prepared = PICTURES[spec.name]

    def normalised(index: int | None) -> torch.Tensor:
        if index is None:
            return torch.zeros(3, 224, 224)
        index = min(index + late, len(video.frames) - 1)
        if (prepared, index) not in video.pictures:
            video.pictures[prepared, index] = prepared(video.frames[index])
        return (video.pictures[prepared, index] / 255 - mean) / std

    found = []
    for each in clips(spec, video, listed):
        with torch.inference_mode():
            found.append(network(torch.stack([normalised(index) for index in each], dim=1)[None])[0].numpy())
    return np.stack(found)


def distances(rows: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return 1 - the cosine of each pair of rows."""
    one, two = (np.asarray(each, np.float64) for each in (rows, others))
    return 1 - (one * two).sum(1) / np.linalg.norm(one, axis=1) / np.linalg.norm(two, axis=1)
