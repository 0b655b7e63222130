"""The features stage, from a video to the store, compared with other ways to the same vectors; weights are random."""

import tempfile
from contextlib import chdir
from dataclasses import replace
from pathlib import Path

from measure import show, sized

LENGTH_S, STACK = sized((10, 64), small=(0.3, 2))


def main() -> None:
    """Print the tables."""
    # Imported here, because the decoding process imports this file too.
    import peer_reencode
    import peer_script
    import torch
    from clip import SECONDS, X264, clip, ffmpeg
    from peer_s3d import Published
    from peer_script import pil, square
    from stage import FOUR, extracted, s3d_weights, stand_in
    from stand_in import Mean

    from stepline.backbones.registry import presets

    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name, chdir(name):
        folder = Path(name)
        whole, video = clip(folder, times=1), folder / "part.mp4"
        ffmpeg("-i", whole, "-t", str(LENGTH_S), *X264, "-c:a", "copy", video)  # a stream copy would be longer
        weights = s3d_weights(folder)
        s3d = replace(presets()["s3d-htstep"], dtype="float32")

        stacks = {"fps": 25, "num_frames": STACK, "hop": STACK, "tail": "drop", "steps": presets()["s3d-mmpt"].steps}
        mixed, bare = replace(s3d, **stacks), replace(stand_in("s3d-htstep"), **stacks)
        peer = "video_features' steps: re-encode, read all, batch 1"
        show(
            f"S3D, {LENGTH_S} s of 1280x720, 3 stacks of {STACK} frames at 25 a second",
            peer,
            {
                peer: lambda: peer_reencode.features(video, folder, Published(weights), fps=25, stack=STACK),
                "stepline, fp32": lambda: extracted([video], folder, [mixed], [weights]),
                "stepline, bf16": lambda: extracted([video], folder, [replace(mixed, compute="bfloat16")], [weights]),
            },
            repeats=1,
        )
        show(
            "the same without the network",
            peer,
            {
                peer: lambda: peer_reencode.features(video, folder, Mean(), fps=25, stack=STACK),
                "stepline": lambda: extracted([video], folder, [bare]),
            },
            repeats=1,
        )
        peer = "script: PyAV, DataLoader, batches of 4"
        show(
            f"S3D, {LENGTH_S} s of 1280x720, a clip of 16 frames for each second",
            peer,
            {
                peer: lambda: peer_script.features(video, s3d, Published(weights), square(), 4),
                "stepline, fp32": lambda: extracted([video], folder, [s3d], [weights]),
                "stepline, bf16": lambda: extracted([video], folder, [replace(s3d, compute="bfloat16")], [weights]),
            },
            repeats=1,
        )
        four = [stand_in(each) for each in FOUR]
        prepared = [square() if spec.steps[0] == ("centre_square",) else pil for spec in four]
        peer = "the script, a pass for each"
        show(
            f"{SECONDS} s of 1280x720 for {', '.join(FOUR)}, without networks",
            peer,
            {
                peer: lambda: [
                    peer_script.features(whole, spec, Mean(), prepare, 64 // spec.num_frames)
                    for spec, prepare in zip(four, prepared, strict=True)
                ],
                "stepline, a pass for each": lambda: [extracted([whole], folder, [spec]) for spec in four],
                "stepline, one pass": lambda: extracted([whole], folder, four),
            },
            repeats=3,
        )


if __name__ == "__main__":
    main()
