"""EgoVLP and Frozen in Time: embed 4 frames, or a text, as 256 values in a joint space; compared by cosine."""

from dataclasses import replace

from stepline.spec import ClipSpec, TextSpec

# Spacewalk-18 (2023): 4 frames over the whole clip. Their positions and the preprocessing follow showlab/EgoVLP
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

# showlab/EgoVLP 928406c, run/test_nlq.py: 1.87 vectors per second, each from 4 frames, up to the last whole clip.
# There, the last vectors stay zero if they do not fill a batch of 4; here they are computed.
NLQ = replace(SPACEWALK, name="egovlp-nlq", label="7.48fps4", fps=7.48, placement="grid", hop=4, tail="drop")

# HiREST (2023) uses 4 frames of a video with Frozen in Time and does not state which; here it is 4 frames of each 4 s.
# Preprocessing is EgoVLP's: m-bain/frozen-in-time crops the central 336 pixels at any video size.
FROZEN = replace(
    SPACEWALK,
    name="frozen-in-time",
    label="1fps4",
    weights=("frozen-in-time",),
    placement="grid",
    hop=4,
)

PRESETS: tuple[ClipSpec, ...] = (SPACEWALK, NLQ, FROZEN)
# The tokenizer's limit, including [CLS] and [SEP].
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
