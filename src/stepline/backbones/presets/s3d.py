"""S3D of MIL-NCE: RGB in [0, 1], without mean and standard deviation."""

from dataclasses import replace

from stepline.spec import ClipSpec, Step, TextSpec

SQUARE: tuple[Step, ...] = (("centre_square",), ("exact", 224, 224, "swscale_bicubic"))
"""The crop and scale of MIL-NCE's loader: antoine77340/MIL-NCE_HowTo100M 2be7ba7, video_loader.py."""
CROP: tuple[Step, ...] = (("short_side", 224, "swscale_bicubic"), ("centre_crop", 224, "floor"))
"""The scale and crop of fairseq's MMPT."""

# HT-Step (2023), appendix B: 16 fps, a feature every 16 frames. The frames per clip (16 or 32), preprocessing and tail
# are not stated. Here a clip has 16 frames, so that feature k covers second k; the rest follows MIL-NCE's loader, which
# pads with zeros.
HTSTEP = ClipSpec(
    name="s3d-htstep",
    label="16fps16-mixed_5c",
    revision=2,
    architecture="s3d",
    weights=("s3d",),
    licence="none stated",
    fps=16,
    num_frames=16,
    hop=16,
    steps=SQUARE,
    mean=(0, 0, 0),
    std=(1, 1, 1),
    output="mixed_5c",
    dimension=1024,
)

# OEPP (2024) uses P3IV's files: JoeHEZHAO/procedure-planing 77da63c, raw_data_process.
OEPP = replace(HTSTEP, name="s3d-oepp", label="16fps16-video_embedding", output="video_embedding", dimension=512)

# SamsungLabs/Drop-DTW 4e2720b, video_encoding: a vector for every 3.2 s.
DROPDTW = replace(OEPP, name="s3d-dropdtw", label="10fps32-video_embedding", fps=10, num_frames=32, hop=32)

# fairseq 7e2a8ea, examples/MMPT/scripts/video_feature_extractor: VideoCLIP's training features; float16 with `s3d.sh`.
MMPT = replace(
    OEPP,
    name="s3d-mmpt",
    label="30fps30-video_embedding",
    fps=30,
    num_frames=30,
    hop=30,
    steps=CROP,
    normalise=True,
)

PRESETS: tuple[ClipSpec, ...] = (
    HTSTEP,
    # With the frames of MIL-NCE's loader, from ffmpeg's fps filter: up to half an interval late.
    replace(HTSTEP, name="s3d-htstep-as-released", frame_rule="ffmpeg_near"),
    OEPP,
    # Frames from ffmpeg's fps filter, stored as JPEG with quality 95.
    replace(OEPP, name="s3d-oepp-as-released", frame_rule="ffmpeg_near", steps=(*SQUARE, ("jpeg", 95))),
    DROPDTW,
    replace(DROPDTW, name="s3d-dropdtw-as-released", frame_rule="ffmpeg_near", steps=(*SQUARE, ("jpeg", 95))),
    MMPT,
    replace(MMPT, name="s3d-mmpt-as-released", frame_rule="ffmpeg_near"),
    # PSS (2022), section 5.2: 16 fps. Frames per clip, layer and preprocessing are not stated; P3IV's are used.
    replace(OEPP, name="s3d-pss"),
)
TOWERS: tuple[TextSpec, ...] = (
    TextSpec(
        name="s3d-text",
        label="words16",
        revision=1,
        architecture="s3d",
        weights=("s3d",),
        licence="none stated",
        max_tokens=16,
        output="text_embedding",
        dimension=512,
    ),
    # TengdaHan/TemporalAlignNet 28b5e04: padding and unknown words are excluded from the maximum.
    TextSpec(
        name="s3d-text-tan",
        label="words32-masked",
        revision=1,
        architecture="s3d",
        weights=("s3d",),
        licence="none stated",
        max_tokens=32,
        output="masked_text_embedding",
        dimension=512,
    ),
)
