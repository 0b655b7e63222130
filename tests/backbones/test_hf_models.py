"""Tiny models of transformers' classes, saved as they stand on the hub, against transformers' own way."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from stepline.backbones import named
from stepline.backbones.torchvision import make_importable
from stepline.backbones.weights import locate
from stepline.errors import ConfigError, StoreError
from tests.backbones.models import SIZE, Hub, clip_of, prepared, random_values, small_vit, vit_pictures

make_importable()


def tokenizer_of(name: str, made: Any) -> dict[str, Path]:
    """Save the tokenizer of a model, and return its file by name."""
    folder = Path("weights", named.weights(f"{name}#tokenizer").name)
    made.save_pretrained(folder)
    return {"tokenizer.json": folder / "tokenizer.json"}


@pytest.mark.parametrize("kind", ["vit", "convnext"])
def test_a_dinov3_gives_what_transformers_gives(kind: str, photo: Image.Image, hub: Hub) -> None:
    from transformers import DINOv3ConvNextConfig, DINOv3ConvNextModel, DINOv3ViTConfig, DINOv3ViTModel
    from transformers.models.dinov3_vit.image_processing_dinov3_vit import DINOv3ViTImageProcessor

    name = f"hf:facebook/small-dinov3-{kind}@main"
    if kind == "vit":
        theirs: Any = DINOv3ViTModel(DINOv3ViTConfig(**SIZE, image_size=48, patch_size=16, num_register_tokens=2))
    else:
        theirs = DINOv3ConvNextModel(DINOv3ConvNextConfig(hidden_sizes=[8, 8, 8, 8], depths=[1, 1, 1, 1]))
    random_values(theirs)
    files = hub(name, theirs, DINOv3ViTImageProcessor(size={"height": 48, "width": 48}))
    spec = named.spec(name)
    assert spec.steps == (("exact", 48, 48, "antialiased_bilinear"),)
    pixels = prepared(photo, files)
    torch.testing.assert_close(clip_of(photo, spec)[:, :, 0], pixels, rtol=0, atol=1e-4)
    ours = named.load(spec, files)(pixels[:, :, None])
    torch.testing.assert_close(ours, theirs(pixel_values=pixels).pooler_output, rtol=1e-5, atol=1e-5)
    assert (spec.output, spec.dimension, spec.licence) == ("pooler_output", ours.shape[1], "see its origin")


def test_a_tipsv2_gives_what_transformers_gives(photo: Image.Image, hub: Hub) -> None:
    from transformers import Tipsv2Config, Tipsv2Model, Tipsv2Tokenizer
    from transformers.models.tipsv2.image_processing_tipsv2 import Tipsv2ImageProcessor
    from transformers.models.tipsv2.processing_tipsv2 import Tipsv2Processor

    name = "hf:google/small-tipsv2@main"
    text = {**SIZE, "vocab_size": 40, "max_position_embeddings": 6}
    vision = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "image_size": 56}
    theirs: Any = random_values(Tipsv2Model(Tipsv2Config(text_config=text, vision_config=vision)))
    letters = {piece: number for number, piece in enumerate(["<pad>", "<unk>", "▁", *"abcdefghijklmnopqrstuvwxyz"])}
    processor = Tipsv2Processor(Tipsv2ImageProcessor(size={"height": 56, "width": 56}), Tipsv2Tokenizer(letters, []))
    files = hub(name, theirs, processor)
    assert {"processor_config.json"} == files.keys() - {"config.json", "model.safetensors"}
    spec = named.spec(name)
    assert spec.steps == (("exact", 56, 56, "torchvision_bilinear"),)
    assert (spec.mean, spec.std) == ((0, 0, 0), (1, 1, 1))
    pixels = prepared(photo, files)
    difference = (clip_of(photo, spec)[:, :, 0] - pixels).abs() * 255
    assert difference.max() < 1.01
    assert difference.mean() < 0.01
    ours = named.load(spec, files)(pixels[:, :, None])
    expected = theirs.get_image_features(pixel_values=pixels).pooler_output
    torch.testing.assert_close(ours, expected, rtol=1e-5, atol=1e-5)
    encoder = named.load_text(named.text_spec(name), files | tokenizer_of(name, processor.tokenizer))
    for each in ("Egg", "fry two eggs"):
        inputs = processor.tokenizer(
            [each],
            padding="max_length",
            truncation=True,
            max_length=6,
            return_tensors="pt",
            return_token_type_ids=False,
        )
        assert encoder.tokens(each) == inputs["input_ids"][0][inputs["attention_mask"][0] == 1].tolist()
        vector = torch.from_numpy(encoder.encode(encoder.tokens(each)))
        expected = theirs.get_text_features(**inputs).pooler_output[0]
        torch.testing.assert_close(vector, expected, rtol=1e-5, atol=1e-5)


def test_a_siglip_2_of_one_size_sees_lower_case_texts_with_the_padding_of_its_tokenizer(hub: Hub) -> None:
    from transformers import Siglip2Tokenizer, SiglipConfig, SiglipImageProcessor, SiglipModel

    name = "hf:google/small-siglip2@main"
    size = {**SIZE, "hidden_size": 8}
    text = {**size, "vocab_size": 256_000, "max_position_embeddings": 6, "projection_size": 8}
    config = SiglipConfig(text_config=text, vision_config={**size, "image_size": 48, "patch_size": 16})
    theirs: Any = random_values(SiglipModel(config))
    files = hub(name, theirs, SiglipImageProcessor(size={"height": 48, "width": 48}))
    pieces = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>", "▁", "E", *"eg"]
    vocab = {piece: number for number, piece in enumerate(pieces)}
    tokenizer = Siglip2Tokenizer(vocab, [], add_bos_token=False, add_eos_token=True, padding_side="right")
    tower = named.text_spec(name)
    assert tower.revision == 2
    encoder = named.load_text(tower, files | tokenizer_of(name, tokenizer))
    tokens = tokenizer(["Egg"], padding="max_length", max_length=6, return_tensors="pt")["input_ids"]
    assert encoder.tokens("Egg") == tokens[0].tolist() == [7, 8, 8, 1, 0, 0]
    vector = torch.from_numpy(encoder.encode(encoder.tokens("Egg")))
    expected = theirs.get_text_features(input_ids=tokens).pooler_output[0]
    torch.testing.assert_close(vector, expected, rtol=1e-5, atol=1e-5)


def test_a_siglip_2_of_any_size_is_one_line(hub: Hub) -> None:
    from transformers import Siglip2Config, Siglip2ImageProcessor, Siglip2Model

    name = "hf:google/small-siglip2-naflex@main"
    config = Siglip2Config(text_config={**SIZE, "vocab_size": 99}, vision_config={**SIZE, "num_patches": 16})
    hub(name, Siglip2Model(config), Siglip2ImageProcessor())
    line = (
        r"NaFlex\), which is not supported: name a SigLIP 2 with one size, as hf:google/siglip2-base-patch16-256@main"
    )
    with pytest.raises(ConfigError, match=f"^{name} .*{line}$"):
        named.spec(name)


def test_a_metaclip_2_gives_what_transformers_gives(photo: Image.Image, hub: Hub) -> None:
    from transformers import CLIPImageProcessorPil, MetaClip2Config, MetaClip2Model, XLMRobertaTokenizer

    name = "hf:facebook/small-metaclip-2@main"
    config = MetaClip2Config(
        text_config={**SIZE, "vocab_size": 40, "max_position_embeddings": 8, "eos_token_id": 2},
        vision_config={**SIZE, "image_size": 48, "patch_size": 16},
        projection_dim=16,
    )
    theirs: Any = random_values(MetaClip2Model(config))
    files = hub(name, theirs, CLIPImageProcessorPil(size={"shortest_edge": 48}, crop_size=48))
    spec = named.spec(name)
    pixels = clip_of(photo, spec)
    expected = theirs.get_image_features(pixel_values=pixels[:, :, 0]).pooler_output
    torch.testing.assert_close(named.load(spec, files)(pixels), expected, rtol=1e-5, atol=1e-5)
    pieces = [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("▁", -2.0), ("e", -3.0), ("g", -3.0)]
    tokenizer = XLMRobertaTokenizer(vocab=[*pieces, ("<mask>", 0.0)])
    encoder = named.load_text(named.text_spec(name), files | tokenizer_of(name, tokenizer))
    for each in ("egg", "egg " * 9):
        inputs = tokenizer([each], padding="max_length", truncation=True, max_length=8, return_tensors="pt")
        vector = torch.from_numpy(encoder.encode(encoder.tokens(each)))
        expected = theirs.get_text_features(**inputs).pooler_output[0]
        torch.testing.assert_close(vector, expected, rtol=1e-5, atol=1e-5)


def test_a_model_in_several_files_is_read_from_all(photo: Image.Image, hub: Hub) -> None:
    name, theirs = "hf:google/small-vit@main", small_vit()
    hub(name, theirs, vit_pictures())
    folder = Path("weights", named.weights(name).name)
    (folder / "model.safetensors").unlink()
    theirs.save_pretrained(folder, max_shard_size="20KB")
    spec = named.spec(name)
    files = locate(name)
    assert files is not None
    shards = [each for each in files if each.endswith(".safetensors")]
    assert len(shards) > 1
    assert "model.safetensors.index.json" in files
    pixels = clip_of(photo, spec)
    expected = theirs(pixel_values=pixels[:, :, 0]).pooler_output
    torch.testing.assert_close(named.load(spec, files)(pixels), expected, rtol=1e-5, atol=1e-5)
    (folder / shards[0]).rename("elsewhere")
    assert locate(name) is None
    index = {"weight_map": {"a": "../elsewhere"}}
    files["model.safetensors.index.json"].write_text(json.dumps(index), encoding="utf-8")
    with pytest.raises(StoreError, match=r"index.json is not the index of a model in several files: remove it$"):
        locate(name)


def test_a_picture_is_scaled_on_floats_as_torchvision_does() -> None:
    from torchvision.transforms.v2 import functional

    from stepline.backbones.picture import picture
    from stepline.media.frame import ArrayFrame

    noise = np.random.default_rng(0).integers(256, size=(61, 93, 3), dtype=np.uint8)
    floats = torch.from_numpy(noise).permute(2, 0, 1).float()
    for kernel, mode in (
        ("bilinear", functional.InterpolationMode.BILINEAR),
        ("bicubic", functional.InterpolationMode.BICUBIC),
    ):
        for width, height in ((20, 31), (140, 80)):
            ours = picture(ArrayFrame(noise), (("exact", width, height, f"antialiased_{kernel}"),))
            theirs = functional.resize(floats, [height, width], interpolation=mode, antialias=True)
            np.testing.assert_allclose(ours, theirs.permute(1, 2, 0).numpy(), atol=0.01)
            assert ours.dtype == np.float32
