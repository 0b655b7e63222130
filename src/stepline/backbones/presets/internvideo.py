"""InternVideo MM-L-14: Spacewalk-18's and HT-Step's features, and the repository's own demo."""

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
# Spacewalk-18, Table A8, Dense Frame Sampling: a frame of each second of a window, all in one pass; a preset for each
# window length. The network has no embedding of time that would have to be resized: its convolutions over time and its
# attention take any number of frames. Of an animation, which is shorter, each second's frame is repeated.
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
    # Spacewalk-18: 12 frames evenly from the first of a window or animation to its last, however short it is. Pictures
    # as the repository prepares them for retrieval with these weights.
    NETWORK,
    # The same as the repository's loader of these weights does it: every round(fps)-th frame; where that is fewer than
    # 12, the rest of the input is zeros, which the network takes for pictures.
    replace(NETWORK, name="internvideo-spacewalk-as-released", placement="seconds"),
    # Spacewalk-18, TW-FINCH and LFB: 12 frames at 1 fps, those of the 12 s from each second on.
    replace(NETWORK, name="internvideo-seconds", label="12x1fps", placement="grid"),
    *DENSE,
    # The repository's demo: 8 frames of a clip.
    replace(PRETRAINED, name="internvideo-mm", label="8-frames", num_frames=8, steps=DEMO),
    # HT-Step, by TengdaHan/TemporalAlignNet: 8 frames of each second; a last second that is not whole has no vector.
    HTSTEP,
    # The same as it was published: ffmpeg's fps filter gives frames that are up to 1/16 s late.
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
    # Spacewalk-18's.
    TOWER,
    # The demo's.
    replace(TOWER, name="internvideo-mm-text", weights=("internvideo-mm",)),
)
