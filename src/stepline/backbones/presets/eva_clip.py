"""EVA-01-CLIP g/14: HiREST's features."""

from dataclasses import replace

from stepline.backbones.presets.clip import MEAN, STD
from stepline.spec import ClipSpec, Step, TextSpec

PICTURE: tuple[Step, ...] = (("short_side", 224, "pil_bicubic"), ("centre_crop", 224, "round"))

HIREST = ClipSpec(
    name="eva_clip-hirest",
    label="1fps",
    revision=1,
    architecture="eva_clip",
    weights=("eva_clip",),
    licence="MIT",
    fps=1,
    num_frames=1,
    steps=PICTURE,
    mean=MEAN,
    std=STD,
    output="image_embed",
    normalise=True,
    dimension=1024,
)
PRESETS = (
    # HiREST: one frame per whole second.
    HIREST,
    # As in the published features: OpenCV seeks to the nearest frame, which is stored as JPEG first.
    replace(
        HIREST,
        name="eva_clip-hirest-as-released",
        frame_rule="nearest",
        steps=(("jpeg", 95), *PICTURE),
    ),
    # Without normalisation: HiREST's video retrieval averages these vectors; its other tasks normalise each vector.
    replace(HIREST, name="eva_clip-hirest-unnormalised", label="1fps-unnormalised", normalise=False),
)
TOWERS = (
    # For HiREST's queries.
    TextSpec(
        name="eva_clip-text",
        label="text_embed",
        revision=1,
        architecture="eva_clip",
        weights=("eva_clip",),
        licence="MIT",
        max_tokens=77,
        output="text_embed",
        normalise=True,
        dimension=1024,
    ),
)
