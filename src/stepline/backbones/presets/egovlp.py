"""EgoVLP: a clip of 4 frames, or a text, to 256 values of one space; not normalised, compared by the cosine."""

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

PRESETS: tuple[ClipSpec, ...] = (SPACEWALK, NLQ)
TOWERS: tuple[TextSpec, ...] = (
    # The tokenizer's own limit, [CLS] and [SEP] included.
    TextSpec(
        name="egovlp-text",
        label="cls512",
        revision=1,
        architecture="egovlp",
        weights=("egovlp",),
        licence="MIT",
        max_tokens=512,
        output="text_embed",
        dimension=256,
    ),
)
