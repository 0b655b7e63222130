"""TimeSformer trained by distant supervision on HowTo100M: a clip's class token, 768 values, not normalised."""

from dataclasses import replace

from stepline.spec import ClipSpec, TextSpec

# HT-Step (Afouras et al., 2023): 8 fps, with a clip of 8 frames and one vector per second. Preprocessing is not stated;
# TAN's is used. An incomplete last second is padded with the video's last frame.
HTSTEP = ClipSpec(
    name="timesformer-htstep",
    label="8fps8",
    revision=1,
    architecture="timesformer",
    weights=("timesformer",),
    licence="CC-BY-NC-SA-3.0",
    fps=8,
    num_frames=8,
    hop=8,
    tail="repeat",
    steps=(("centre_square",), ("exact", 224, 224, "swscale_bicubic")),
    mean=(0.45, 0.45, 0.45),
    std=(0.225, 0.225, 0.225),
    output="cls_feature",
    dimension=768,
)

# TengdaHan/TemporalAlignNet 28b5e04, htm_zoo/visual/extract_feature_template.py: ffmpeg's fps filter with its default
# rounding, so frames are up to 1/16 s late; only whole seconds.
HTSTEP_AS_RELEASED = replace(HTSTEP, name="timesformer-htstep-as-released", frame_rule="ffmpeg_near", tail="drop")

# facebookresearch/video-distant-supervision 94d46e5, lib/datasets/coin.py: 8 frames evenly spaced over a listed clip
# (9 s in training), without keeping the aspect ratio.
DISTANT = replace(
    HTSTEP,
    name="timesformer-distant",
    label="clip8",
    fps=1,
    placement="ends",
    hop=1,
    steps=(
        ("exact", 640, 360, "swscale_bicubic"),
        ("short_side", 256, "bilinear"),
        ("centre_crop", 224, "ceil"),
    ),
)

PRESETS: tuple[ClipSpec, ...] = (HTSTEP, HTSTEP_AS_RELEASED, DISTANT)
TOWERS: tuple[TextSpec, ...] = ()
