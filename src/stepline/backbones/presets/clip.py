"""CLIP (Radford et al., 2021): its normalisation, and HiREST's ViT-B/32 with open_clip's settings."""

from stepline.backbones.weights import File, Weights
from stepline.spec import ClipSpec, TextSpec

MEAN = (0.48145466, 0.4578275, 0.40821073)
STD = (0.26862954, 0.26130258, 0.27577711)
_B32 = "open_clip:ViT-B-32-quickgelu/openai"
_ORIGIN = "https://huggingface.co/timm/vit_base_patch32_clip_224.openai"
_FILE = "open_clip_model.safetensors"
NAMED = {
    _B32: (
        ClipSpec(
            name="open_clip-vit-b-32-quickgelu-openai",
            label="image_embed",
            revision=1,
            architecture="open_clip",
            model=_B32.partition(":")[2],
            weights=(_B32,),
            licence="see its origin",
            fps=1,
            num_frames=1,
            steps=(("short_side", 224, "pil_bicubic"), ("centre_crop", 224, "round")),
            mean=MEAN,
            std=STD,
            output="image_embed",
            dimension=512,
        ),
        TextSpec(
            name="open_clip-vit-b-32-quickgelu-openai-text",
            label="text_embed",
            revision=1,
            architecture="open_clip",
            weights=(_B32,),
            licence="see its origin",
            max_tokens=77,
            output="text_embed",
            dimension=512,
        ),
        Weights(
            name="open_clip-vit-b-32-quickgelu-openai",
            files=(File(name=_FILE, url=f"{_ORIGIN}/resolve/main/{_FILE}"),),
            origin=_ORIGIN,
            licence="see its origin",
        ),
    )
}
"""The models that benchmarks use by default, by name. The library's specs are copied here: its import takes seconds."""
