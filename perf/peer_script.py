"""A good script: PyAV in a DataLoader worker, frames selected by time, a network on batches.

One pass over the video for each network.
"""

from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path

import av
import numpy as np
import torch
from PIL import Image
from torch.utils.data import DataLoader, IterableDataset

from stepline.spec import ClipSpec

Prepare = Callable[[av.VideoFrame], np.ndarray]


def square() -> Prepare:
    """Return a function that crops the largest square of a decoded frame and scales it to 224 x 224."""
    graphs: list[av.filter.Graph] = []
    scaler = av.video.reformatter.VideoReformatter()

    def prepare(frame: av.VideoFrame) -> np.ndarray:
        if not graphs:
            graph = av.filter.Graph()
            size = {"width": frame.width, "height": frame.height, "format": frame.format}
            source = graph.add_buffer(**size, time_base=frame.time_base)
            cut = graph.add("crop", r"min(iw\,ih):min(iw\,ih)")
            graph.link_nodes(source, cut, graph.add("buffersink")).configure()
            graphs.append(graph)
        graphs[0].push(frame)
        return scaler.reformat(graphs[0].pull(), 224, 224, "rgb24", interpolation="BICUBIC", threads=1).to_ndarray()

    return prepare


def pil(frame: av.VideoFrame) -> np.ndarray:
    """Scale the short side to 224 with PIL, and crop the centre."""
    image = frame.to_image()
    width = 224 * image.width // image.height
    left = round((width - 224) / 2)
    return np.asarray(image.resize((width, 224), Image.Resampling.BICUBIC).crop((left, 0, left + 224, 224)))


class Clips(IterableDataset):
    """Clips of ``spec``: the last frame at or before each time, zeros after the end."""

    def __init__(self, path: Path, spec: ClipSpec, prepare: Prepare) -> None:
        self.path, self.spec, self.prepare = path, spec, prepare

    def pictures(self) -> Iterator[np.ndarray]:
        """Yield the preprocessed frame at each time k / fps."""
        with av.open(str(self.path)) as container:
            stream = container.streams.video[0]
            stream.codec_context.thread_count = 1
            k, before = 0, None
            for frame in container.decode(stream):
                while before is not None and k < (frame.pts - stream.start_time) * stream.time_base * self.spec.fps:
                    yield self.prepare(before)
                    k += 1
                before = frame
            end = before.pts + before.duration - stream.start_time
            while k < end * stream.time_base * self.spec.fps:
                yield self.prepare(before)
                k += 1

    def __iter__(self) -> Iterator[np.ndarray]:
        held: deque[np.ndarray] = deque(maxlen=self.spec.num_frames)
        count, n, hop = 0, self.spec.num_frames, self.spec.hop
        for count, picture in enumerate(self.pictures(), 1):
            held.append(picture)
            if count >= n and (count - n) % hop == 0:
                yield np.stack(held)
        for later in range(count + 1, count + n):
            held.append(np.zeros_like(held[0]))
            if later >= n and (later - n) % hop == 0:
                yield np.stack(held)


def features(path: Path, spec: ClipSpec, network: torch.nn.Module, prepare: Prepare, batch_size: int) -> np.ndarray:
    """Return the (n, D) vectors of a video's clips."""
    mean, std = (torch.tensor(each).view(1, 3, 1, 1, 1) for each in (spec.mean, spec.std))
    loader = DataLoader(Clips(path, spec, prepare), batch_size=batch_size, num_workers=1)
    with torch.inference_mode():
        made = [network((clips.permute(0, 4, 1, 2, 3) / 255 - mean) / std) for clips in loader]
    return torch.cat(made).numpy()
