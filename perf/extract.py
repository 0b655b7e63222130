"""The features stage, from a video to the store, compared with other ways to the same vectors; weights are random."""

import tempfile
from dataclasses import replace
from pathlib import Path


def main() -> None:
    """Print the tables."""
    # Imported here, because the decoding process imports this file too.
    import peer_reencode
    import peer_script
    import torch
    from clip import clip, ffmpeg
    from measure import show
    from peer_s3d import Published
    from peer_script import pil, square
    from stage import FOUR, extracted, s3d_weights, stand_in
    from stand_in import Mean

    from stepline.backbones.registry import presets

    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        whole, video = clip(folder, times=1), folder / "10s.mp4"
        ffmpeg("-i", whole, "-t", "10", "-c", "copy", video)
        weights = s3d_weights(folder)
        s3d = replace(presets()["s3d-htstep"], dtype="float32")

        stacks = {"fps": 25, "num_frames": 64, "hop": 64, "tail": "drop", "steps": presets()["s3d-mmpt"].steps}
        mixed, bare = replace(s3d, **stacks), replace(stand_in("s3d-htstep"), **stacks)
        peer = "video_features' steps: re-encode, read all, batch 1"
        show(
            "S3D, 10 s of 1280x720, 3 stacks of 64 frames at 25 a second",
            peer,
            {
                peer: lambda: peer_reencode.features(video, folder, Published(weights), fps=25, stack=64),
                "stepline, fp32": lambda: extracted([video], folder, [mixed], [weights]),
                "stepline, bf16": lambda: extracted([video], folder, [replace(mixed, compute="bfloat16")], [weights]),
            },
            repeats=1,
        )
        show(
            "the same without the network",
            peer,
            {
                peer: lambda: peer_reencode.features(video, folder, Mean(), fps=25, stack=64),
                "stepline": lambda: extracted([video], folder, [bare]),
            },
            repeats=1,
        )
        peer = "script: PyAV, DataLoader, batches of 4"
        show(
            "S3D, 10 s of 1280x720, a clip of 16 frames for each second",
            peer,
            {
                peer: lambda: peer_script.features(video, s3d, Published(weights), square(), 4),
                "stepline, fp32": lambda: extracted([video], folder, [s3d], [weights]),
                "stepline, bf16": lambda: extracted([video], folder, [replace(s3d, compute="bfloat16")], [weights]),
            },
            repeats=1,
        )
        four = [stand_in(each) for each in FOUR]
        peer = "the script, four passes"
        show(
            f"20 s of 1280x720 for {', '.join(FOUR)}, without networks",
            peer,
            {
                peer: lambda: [
                    peer_script.features(whole, spec, Mean(), prepare, 64 // spec.num_frames)
                    for spec, prepare in zip(four, (square(), square(), pil, pil), strict=True)
                ],
                "stepline, four passes": lambda: [extracted([whole], folder, [spec]) for spec in four],
                "stepline, one pass": lambda: extracted([whole], folder, four),
            },
            repeats=3,
        )


if __name__ == "__main__":
    main()
