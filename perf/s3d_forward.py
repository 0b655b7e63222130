"""S3D as in extraction, compared with the published network, one clip at a time: 4 clips of 16 frames, 224 x 224."""

import tempfile
from pathlib import Path

import torch
from measure import show, sized
from peer_s3d import Published
from stage import s3d_weights

from stepline.backbones import s3d
from stepline.backbones.registry import presets

PEER = "as published, batch 1, fp32"
CLIPS, SIDE = 4, sized(224, small=64)


def main() -> None:
    """Print the table. One thread, because waiting threads would count as CPU time."""
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name:
        weights = s3d_weights(Path(name))
        published = Published(weights)
        ours, half = (s3d.load(presets()["s3d-htstep"], {weights.name: weights}) for _ in range(2))
    half.bfloat16()
    clips = torch.rand(CLIPS, 3, 16, SIDE, SIDE)

    def one_by_one() -> torch.Tensor:
        return torch.cat([published(clip[None]) for clip in clips])

    with torch.inference_mode():
        reference = one_by_one()
        for name, made in (("fp32", ours(clips)), ("bf16", half(clips.bfloat16()).float())):
            print(f"relative L2 error of ours, {name}: {float((made - reference).norm() / reference.norm()):.1e}")
        show(
            f"{CLIPS} clips, torch {torch.__version__}",
            PEER,
            {
                PEER: one_by_one,
                "stepline, batch 1, fp32": lambda: [ours(clip[None]) for clip in clips],
                f"stepline, batch {CLIPS}, fp32": lambda: ours(clips),
                "stepline, batch 1, bf16": lambda: [half(clip[None].bfloat16()) for clip in clips],
                f"stepline, batch {CLIPS}, bf16": lambda: half(clips.bfloat16()),
            },
        )


if __name__ == "__main__":
    main()
