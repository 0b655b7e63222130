"""S3D as extraction runs it, beside the plain network with one clip at a time: 8 clips of 16 frames at 224 x 224."""

import torch
from measure import show

from stepline.backbones.parity import Output
from stepline.backbones.s3d import S3D, folded

PEER = "plain, batch 1, fp32"
CLIPS = 8


def network() -> S3D:
    """Return the network with the same random weights every time."""
    torch.manual_seed(0)
    return S3D("mixed_5c").eval().requires_grad_(False)


def main() -> None:
    """Print the table."""
    plain, ours, half = network(), folded(network()), folded(network()).bfloat16()
    clips = torch.rand(CLIPS, 3, 16, 224, 224)

    def one_by_one(net: S3D) -> torch.Tensor:
        return torch.cat([net(clip[None]) for clip in clips])

    with torch.inference_mode():
        reference = one_by_one(plain).numpy()
        for name, made in (("fp32", ours(clips)), ("bf16", half(clips.bfloat16()).float())):
            print(f"relative L2 error of ours, {name}: {Output(name, made.numpy(), reference).error:.1e}")
        show(
            f"{CLIPS} clips, torch {torch.__version__}, {torch.get_num_threads()} threads",
            PEER,
            {
                PEER: lambda: one_by_one(plain),
                "plain, batch 8, fp32": lambda: plain(clips),
                "stepline, batch 1, fp32": lambda: one_by_one(ours),
                "stepline, batch 8, fp32": lambda: ours(clips),
                "stepline, batch 8, bf16": lambda: half(clips.bfloat16()),
            },
            repeats=3,
        )


if __name__ == "__main__":
    main()
