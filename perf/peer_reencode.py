"""The steps of v-iashin/video_features (a2f61b7): re-encode, read all, scale all, one stack at a time."""

from pathlib import Path

import av
import numpy as np
import torch
from clip import ffmpeg
from torch.nn.functional import interpolate


def features(path: Path, folder: Path, network: torch.nn.Module, *, fps: int, stack: int) -> np.ndarray:
    """Return the (n, D) vectors of a video's whole stacks of frames."""
    again = folder / "again.mp4"
    ffmpeg("-i", path, "-filter:v", f"fps={fps}", again)
    with av.open(str(again)) as container:
        frames = np.stack([frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)])
    pixels = torch.from_numpy(frames).permute(0, 3, 1, 2).float() / 255
    del frames
    height, width = pixels.shape[2:]
    size = 224, 224 * width // height
    scaled = interpolate(pixels, size, mode="bilinear", align_corners=False)
    left = (size[1] - 224) // 2
    clips = scaled[..., left : left + 224].permute(1, 0, 2, 3)[None]
    with torch.inference_mode():
        made = [network(clips[:, :, k : k + stack]) for k in range(0, clips.shape[2] - stack + 1, stack)]
    return torch.cat(made).numpy()
