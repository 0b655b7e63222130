"""S3D as extraction runs it, beside the plain network with one clip at a time: 4 clips of 16 frames at 224 x 224."""

from unittest.mock import patch

import torch
from measure import show
from torch.nn import functional

from stepline.backbones import s3d
from stepline.backbones.parity import Output

PEER = "plain, batch 1, fp32"
CLIPS = 4


def network() -> s3d.S3D:
    """Return the network with the same random weights every time."""
    torch.manual_seed(0)
    return s3d.S3D("mixed_5c").eval().requires_grad_(False)


def maxima(x: torch.Tensor, kernel: s3d.Kernel, stride: s3d.Kernel, *, padding: int = 0) -> torch.Tensor:
    """Pool in three dimensions at once."""
    return functional.max_pool3d(x, kernel, stride, padding, ceil_mode=True)


def main() -> None:
    """Print the table. One thread: those that wait for others would count."""
    torch.set_num_threads(1)
    plain, ours, half = network(), s3d.folded(network()), s3d.folded(network()).bfloat16()
    clips = torch.rand(CLIPS, 3, 16, 224, 224)

    def one_by_one() -> torch.Tensor:
        with patch.object(s3d, "maxima", maxima):
            return torch.cat([plain(clip[None]) for clip in clips])

    with torch.inference_mode():
        reference = one_by_one().numpy()
        for name, made in (("fp32", ours(clips)), ("bf16", half(clips.bfloat16()).float())):
            print(f"relative L2 error of ours, {name}: {Output(name, made.numpy(), reference).error:.1e}")
        show(
            f"{CLIPS} clips, torch {torch.__version__}",
            PEER,
            {
                PEER: one_by_one,
                f"stepline, batch {CLIPS}, fp32": lambda: ours(clips),
                f"stepline, batch {CLIPS}, bf16": lambda: half(clips.bfloat16()),
            },
        )


if __name__ == "__main__":
    main()
