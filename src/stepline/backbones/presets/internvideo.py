"""InternVideo MM-L-14: the features of Spacewalk-18 and HT-Step, and of the repository's demo."""

from dataclasses import replace

from stepline.backbones.presets.clip import MEAN, STD
from stepline.spec import ClipSpec, Step, TextSpec

RETRIEVAL: tuple[Step, ...] = (("short_side", 224, "pil_bicubic"), ("centre_crop", 224, "round"))
DEMO: tuple[Step, ...] = (("short_side", 256, "pil_bilinear"), ("centre_crop", 224, "round"))
SQUARE: tuple[Step, ...] = (("centre_square",), ("exact", 224, 224, "swscale_bicubic"))

NETWORK = ClipSpec(
    name="internvideo-spacewalk",
    label="12-frames",
    revision=1,
    architecture="internvideo",
    weights=("internvideo",),
    licence="Apache-2.0",
    fps=1,
    placement="ends",
    num_frames=12,
    steps=RETRIEVAL,
    mean=MEAN,
    std=STD,
    output="video_embed",
    dimension=768,
)
PRETRAINED = replace(NETWORK, weights=("internvideo-mm",))
HTSTEP = replace(
    PRETRAINED,
    name="internvideo-htstep",
    label="8x8fps",
    placement="grid",
    fps=8,
    num_frames=8,
    hop=8,
    tail="drop",
    steps=SQUARE,
)
# Spacewalk-18, Table A8, Dense Frame Sampling: one frame per second of a window in a single pass, with one preset per
# window length. The network accepts any number of frames: it has temporal convolutions and attention, but no temporal
# position embedding that would need resizing. For an animation, which is shorter, each second's frame is repeated.
DENSE = tuple(
    replace(
        NETWORK,
        name=f"internvideo-dense-{length_s}s",
        label=f"{length_s}x1fps",
        placement="each_second",
        num_frames=length_s,
    )
    for length_s in (60, 120, 180, 300, 600)
)
PRESETS = (
    # Spacewalk-18: 12 frames, evenly spaced from the first to the last frame of a window or animation of any length.
    # Preprocessing follows the repository's retrieval code for these weights.
    NETWORK,
    # As in the repository's loader for these weights: every round(fps)-th frame. If these are fewer than 12, the rest
    # of the input is zeros, which the network processes like frames.
    replace(NETWORK, name="internvideo-spacewalk-as-released", placement="seconds"),
    # Spacewalk-18, TW-FINCH and LFB: 12 frames at 1 fps, from the 12 s that start at each second.
    replace(NETWORK, name="internvideo-seconds", label="12x1fps", placement="grid"),
    *DENSE,
    # The repository's demo: 8 frames of a clip.
    replace(PRETRAINED, name="internvideo-mm", label="8-frames", num_frames=8, steps=DEMO),
    # HT-Step, following TengdaHan/TemporalAlignNet: 8 frames per second; an incomplete last second has no vector.
    HTSTEP,
    # As in the published features: ffmpeg's fps filter selects frames that are up to 1/16 s late.
    replace(HTSTEP, name="internvideo-htstep-as-released", frame_rule="ffmpeg_near"),
)
TOWER = TextSpec(
    name="internvideo-text",
    label="text_embed",
    revision=1,
    architecture="internvideo",
    weights=("internvideo",),
    licence="Apache-2.0",
    max_tokens=77,
    output="text_embed",
    dimension=768,
)
TOWERS = (
    # For Spacewalk-18.
    TOWER,
    # For the repository's demo.
    replace(TOWER, name="internvideo-mm-text", weights=("internvideo-mm",)),
)
