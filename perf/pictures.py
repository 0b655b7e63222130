"""Preprocessing of decoded frames with the steps of every preset, compared with PIL scaling the same frames."""

import tempfile
from collections.abc import Callable
from functools import partial
from itertools import islice
from pathlib import Path

import torch
from clip import clip as clip_720p
from clip import ffmpeg
from measure import show, sized
from PIL.Image import Resampling, fromarray
from torch.nn.functional import interpolate

from stepline.backbones.picture import Pictures, picture
from stepline.backbones.registry import presets
from stepline.media.decode import frames
from stepline.media.frame import DecodedFrame
from stepline.spec import Step

FRAMES, LARGE_S = sized((30, "3"), small=(1, "0.1"))
PEER = "PIL, bicubic, short side 224"


def chains() -> dict[tuple[Step, ...], str]:
    """Return every preset's steps, with the names of the presets that have them."""
    found: dict[tuple[Step, ...], list[str]] = {}
    for name, spec in presets().items():
        found.setdefault(spec.steps, []).append(name)
    return {
        steps: names[0] + (f" and {len(names) - 1} more" if len(names) > 1 else "") for steps, names in found.items()
    }


def pil(frame: DecodedFrame) -> None:
    """Scale with PIL."""
    image = frame.rgb()
    fromarray(image).resize((224 * image.shape[1] // image.shape[0], 224), Resampling.BICUBIC)


def antialiased(frame: DecodedFrame) -> None:
    """Scale with torch, 8 bit, antialiased."""
    image = frame.rgb()
    size = 224, 224 * image.shape[1] // image.shape[0]
    interpolate(torch.from_numpy(image).permute(2, 0, 1)[None], size, mode="bicubic", antialias=True)


def all_at_once(frame: DecodedFrame) -> None:
    """Apply every preset's steps, shared steps once."""
    pictures = Pictures(frame)
    for steps in chains():
        pictures.after(steps)


def one_by_one(frame: DecodedFrame) -> None:
    """Apply every preset's steps, each from the decoded frame."""
    for steps in chains():
        picture(frame, steps)


def of_all(shown: list[DecodedFrame], work: Callable[[DecodedFrame], object]) -> None:
    """Return a call that processes each frame."""
    for frame in shown:
        work(frame)


def main() -> None:
    """Print the tables."""
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        clip = clip_720p(Path(folder), times=1)
        large = Path(folder, "large.mp4")
        ffmpeg("-i", clip, "-t", LARGE_S, "-vf", "scale=1920:1080", large)
        for name, path in {"1280x720": clip, "1920x1080": large}.items():
            shown = list(islice(frames(path), FRAMES))
            each = partial(partial, of_all, shown)
            calls = {
                PEER: each(pil),
                "torch, 8 bit, bicubic, antialiased": each(antialiased),
                "RGB, not scaled": each(DecodedFrame.rgb),
            }
            for steps, names in chains().items():
                calls[names] = each(partial(picture, steps=steps))
            calls |= {"all presets, each alone": each(one_by_one), "all presets, shared": each(all_at_once)}
            show(f"{FRAMES} frames of {name}", PEER, calls, repeats=3)


if __name__ == "__main__":
    main()
