"""EgoVLP and Frozen in Time: 4 frames, or a text, to 256 values of one space; compared by the cosine."""

from dataclasses import replace

from stepline.spec import ClipSpec, TextSpec

# Spacewalk-18 (2023): 4 frames over the whole of each clip; where they lie, and the picture, as in showlab/EgoVLP
# 928406c, base/base_dataset.py and data_loader/transforms.py.
SPACEWALK = ClipSpec(
    name="egovlp-spacewalk",
    label="clip4",
    revision=1,
    architecture="egovlp",
    weights=("egovlp",),
    licence="MIT",
    fps=1,
    placement="middles",
    num_frames=4,
    tail="repeat",
    steps=(
        ("short_side", 256, "bilinear"),
        ("centre_crop", 256, "round"),
        ("exact", 224, 224, "bilinear"),
    ),
    mean=(0.485, 0.456, 0.406),
    std=(0.229, 0.224, 0.225),
    output="video_embed",
    dimension=256,
)

# showlab/EgoVLP 928406c, run/test_nlq.py: 1.87 vectors a second, each of 4 frames, to the last whole clip. Its last
# vectors stay zero where they fill no batch of 4; these do not.
NLQ = replace(SPACEWALK, name="egovlp-nlq", label="7.48fps4", fps=7.48, placement="grid", hop=4, tail="drop")

# HiREST (2023) gives Frozen in Time 4 frames of a video and does not say which; these are 4 frames of each 4 s. The
# pictures are EgoVLP's: m-bain/frozen-in-time cuts 336 pixels out of the middle, whatever the size of the video.
FROZEN = replace(
    SPACEWALK,
    name="frozen-in-time",
    label="1fps4",
    weights=("frozen-in-time",),
    placement="grid",
    hop=4,
)

PRESETS: tuple[ClipSpec, ...] = (SPACEWALK, NLQ, FROZEN)
# The tokenizer's own limit, [CLS] and [SEP] included.
TOWER = TextSpec(
    name="egovlp-text",
    label="cls512",
    revision=1,
    architecture="egovlp",
    weights=("egovlp",),
    licence="MIT",
    max_tokens=512,
    output="text_embed",
    dimension=256,
)
TOWERS: tuple[TextSpec, ...] = (TOWER, replace(TOWER, name="frozen-in-time-text", weights=("frozen-in-time",)))
