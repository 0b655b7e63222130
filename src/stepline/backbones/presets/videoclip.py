"""VideoCLIP on S3D: fairseq 7e2a8ea, examples/MMPT. One token per second of 30 frames, at most 32; RGB in [0, 1]."""

from dataclasses import replace

from stepline.backbones.presets.s3d import CROP
from stepline.spec import ClipSpec, TextSpec

# OEPP (2024) has one vector per second. Its method was not published; here each vector uses only its second's token.
OEPP = ClipSpec(
    name="videoclip-oepp",
    label="30fps30",
    revision=2,
    architecture="videoclip",
    weights=("videoclip", "s3d"),
    licence="CC-BY-NC-4.0",
    fps=30,
    num_frames=30,
    hop=30,
    steps=CROP,
    mean=(0, 0, 0),
    std=(1, 1, 1),
    output="pooled_video",
    dimension=768,
)

PRESETS: tuple[ClipSpec, ...] = (
    OEPP,
    # With S3D's vectors as in MMPT's scripts: frames from ffmpeg's fps filter, up to half an interval late; stored as
    # float16.
    replace(OEPP, name="videoclip-oepp-as-released", frame_rule="ffmpeg_near", output="pooled_video_of_float16"),
    # Spacewalk-18 (2023): k = 150 frames over the whole clip, so 5 tokens. Their positions are not stated; here they
    # are the middles of equal parts.
    replace(
        OEPP,
        name="videoclip-spacewalk",
        label="150-frames",
        fps=1,
        placement="middles",
        num_frames=150,
        hop=1,
        tail="repeat",
    ),
)
TOWERS: tuple[TextSpec, ...] = (
    # 61 word pieces, [CLS] and [SEP]: MMPT's 96 tokens minus 32 seconds and three special tokens, plus these two.
    TextSpec(
        name="videoclip-text",
        label="mean63",
        revision=1,
        architecture="videoclip",
        weights=("videoclip",),
        licence="CC-BY-NC-4.0",
        max_tokens=63,
        output="pooled_text",
        dimension=768,
    ),
)
