"""Tiny models, saved by the test as they stand on the hub, against the libraries' own way."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image
from safetensors.torch import save_file

from stepline.backbones import named
from stepline.backbones.torchvision import make_importable
from stepline.errors import ConfigError, MissingError, StoreError
from tests.backbones.models import (
    SIZE,
    Hub,
    clip_of,
    clip_pictures,
    prepared,
    random_values,
    saved,
    small_clip,
    small_tokenizer,
    small_vit,
    vit_pictures,
)

make_importable()


@pytest.mark.parametrize("name", ["test_vit.r160_in1k", "test_resnet.r160_in1k", "test_convnext.r160_in1k"])
def test_timm_models_give_what_timm_gives(name: str, photo: Image.Image) -> None:
    import timm

    theirs: Any = random_values(timm.create_model(name, pretrained=False))
    files = saved(f"timm:{name}", **theirs.state_dict())
    spec = named.spec(f"timm:{name}")
    transform = timm.data.create_transform(**timm.data.resolve_model_data_config(theirs), is_training=False)
    prepared = transform(photo)[None]
    torch.testing.assert_close(clip_of(photo, spec)[:, :, 0], prepared, rtol=0, atol=1e-5)
    features = theirs.forward_head(theirs.forward_features(prepared), pre_logits=True)
    ours = named.load(spec, files)(prepared[:, :, None])
    torch.testing.assert_close(ours, features, rtol=1e-5, atol=1e-5)
    assert ours.shape == (1, spec.dimension)
    assert features.std() > 0.01


def test_a_timm_spec_says_all_that_decides() -> None:
    spec = named.spec("timm:vit_base_patch16_224.augreg_in21k")
    assert spec.name == "timm-vit_base_patch16_224.augreg_in21k"
    assert spec.model == "vit_base_patch16_224.augreg_in21k"
    assert spec.steps == (("short_side", 248, "pil_bicubic"), ("centre_crop", 224, "round"))
    assert (spec.mean, spec.std) == ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))
    assert (spec.dimension, spec.licence, spec.fps, spec.num_frames) == (768, "apache-2.0", 1, 1)
    weights = named.weights("timm:vit_base_patch16_224.augreg_in21k")
    assert weights.name == spec.name
    (file,) = weights.files
    assert file.url == "https://huggingface.co/timm/vit_base_patch16_224.augreg_in21k/resolve/main/model.safetensors"
    assert named.spec("timm:vit_base_patch16_224").model == "vit_base_patch16_224.augreg2_in21k_ft_in1k"


def test_a_timm_model_of_other_pictures_is_one_line() -> None:
    with pytest.raises(ConfigError, match="takes 3 x 1024 x 768 values, .*: write this one as a model by file"):
        named.spec("timm:vit_base_patch16_sapiens2.fb")


def small_open_clip(monkeypatch: pytest.MonkeyPatch) -> tuple[str, Any]:
    """Return the name of a model of open_clip and a small one, which stands in its place."""
    import open_clip

    small = {
        "embed_dim": 16,
        "vision_cfg": {"image_size": 64, "layers": 2, "width": 64, "head_width": 32, "patch_size": 16},
        "text_cfg": {"context_length": 20, "vocab_size": 49408, "width": 32, "heads": 2, "layers": 2},
        "quick_gelu": True,
    }
    monkeypatch.setitem(open_clip.factory._MODEL_CONFIGS, "ViT-B-32-quickgelu", small)
    monkeypatch.setattr(named, "NAMED", {})
    made = random_values(open_clip.create_model("ViT-B-32-quickgelu", load_weights=False))
    return "open_clip:ViT-B-32-quickgelu/openai", made


def test_open_clip_models_give_what_open_clip_gives(photo: Image.Image, monkeypatch: pytest.MonkeyPatch) -> None:
    import open_clip

    name, theirs = small_open_clip(monkeypatch)
    files = saved(name, **theirs.state_dict())
    spec, text = named.spec(name), named.text_spec(name)
    prepared = open_clip.transform.image_transform_v2(open_clip.transform.PreprocessCfg(size=64), is_train=False)(
        photo
    )[None]
    torch.testing.assert_close(clip_of(photo, spec)[:, :, 0], prepared, rtol=0, atol=1e-5)
    ours = named.load(spec, files)(prepared[:, :, None])
    torch.testing.assert_close(ours, theirs.encode_image(prepared), rtol=1e-5, atol=1e-5)
    assert ours.shape == (1, spec.dimension) == (1, 16)
    encoder = named.load_text(text, files)
    tokens = open_clip.get_tokenizer("ViT-B-32-quickgelu")(["An astronaut"])
    assert encoder.tokens("An astronaut") == tokens[0].tolist()
    assert len(encoder.tokens("An astronaut")) == text.max_tokens == 20
    vector = torch.from_numpy(encoder.encode(encoder.tokens("An astronaut")))
    torch.testing.assert_close(vector, theirs.encode_text(tokens)[0], rtol=1e-5, atol=1e-5)


CLIP, VIT = "hf:someone/small-clip@0123abc", "hf:google/small-vit@main"


def rows_of(name: str, photo: Image.Image, files: dict[str, Path]) -> tuple[torch.Tensor, torch.Tensor]:
    """Return what the processor of the hub makes of the photo, as our steps do, and the network's row of that."""
    spec, pixels = named.spec(name), prepared(photo, files, backend="pil")
    torch.testing.assert_close(clip_of(photo, spec)[:, :, 0], pixels, rtol=0, atol=1e-5)
    return pixels, named.load(spec, files)(pixels[:, :, None])


def test_pictures_and_texts_of_clips_of_the_hub_give_what_transformers_gives(photo: Image.Image, hub: Hub) -> None:
    name, theirs = CLIP, small_clip()
    files, spec = hub(name, theirs, clip_pictures()), named.spec(name)
    pixels, ours = rows_of(name, photo, files)
    expected = theirs.get_image_features(pixel_values=pixels).pooler_output
    torch.testing.assert_close(ours, expected, rtol=1e-5, atol=1e-5)
    assert (spec.name, spec.output, spec.dimension) == ("hf-someone-small-clip-0123abc", "image_embed", 16)
    text = named.text_spec(name)
    assert text.weights == (name, f"{name}#tokenizer")
    weights = named.weights(text.weights[1])
    (file,) = weights.files
    assert file.url == "https://huggingface.co/someone/small-clip/resolve/0123abc/tokenizer.json"
    path = Path("weights", weights.name, file.name)
    path.parent.mkdir()
    small_tokenizer().save(str(path))
    encoder = named.load_text(text, files | {file.name: path})
    assert encoder.tokens("an astronaut") == [298, 1, 2, 299]
    assert encoder.tokens("an " * 50) == [298, *[1] * 10, 299]
    expected = theirs.get_text_features(input_ids=torch.tensor([[298, 1, 2, 299]])).pooler_output[0]
    ours = torch.from_numpy(encoder.encode(encoder.tokens("an astronaut")))
    torch.testing.assert_close(ours, expected, rtol=1e-5, atol=1e-5)


def test_a_siglip_sees_padded_texts(hub: Hub) -> None:
    from tokenizers import Tokenizer, models
    from transformers import SiglipConfig, SiglipImageProcessor, SiglipModel

    name = "hf:google/small-siglip@main"
    config = SiglipConfig(
        text_config={**SIZE, "vocab_size": 300, "max_position_embeddings": 6, "projection_size": 32, "pad_token_id": 1},
        vision_config={**SIZE, "image_size": 48, "patch_size": 16},
    )
    theirs: Any = random_values(SiglipModel(config))
    files = hub(name, theirs, SiglipImageProcessor(size={"height": 48, "width": 48}))
    assert named.spec(name).steps == (("exact", 48, 48, "pil_bicubic"),)
    Tokenizer(models.WordLevel({"astronaut": 2, "?": 0}, unk_token="?")).save("tokenizer.json")
    encoder = named.load_text(named.text_spec(name), files | {"tokenizer.json": Path("tokenizer.json")})
    assert encoder.tokens("astronaut") == [2, 1, 1, 1, 1, 1]
    expected = theirs.get_text_features(input_ids=torch.tensor([[2, 1, 1, 1, 1, 1]])).pooler_output[0]
    ours = torch.from_numpy(encoder.encode(encoder.tokens("astronaut")))
    torch.testing.assert_close(ours, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("pooler", [True, False])
def test_vision_transformers_of_the_hub_give_what_is_pooled_or_the_first_token(
    pooler: bool, photo: Image.Image, hub: Hub
) -> None:
    theirs = small_vit(classifier=not pooler)
    pixels, ours = rows_of(VIT, photo, hub(VIT, theirs, vit_pictures()))
    if pooler:
        expected = theirs(pixel_values=pixels).pooler_output
    else:
        expected = theirs.vit(pixel_values=pixels).last_hidden_state[:, 0]
    torch.testing.assert_close(ours, expected, rtol=1e-5, atol=1e-5)
    assert named.spec(VIT).output == ("pooler_output" if pooler else "first_token")


def test_the_pooler_of_another_network_in_the_file_is_not_used(hub: Hub) -> None:
    theirs = small_vit()
    files = hub(VIT, theirs, vit_pictures())
    tensors = {
        f"{'ema' if key.startswith('pooler') else 'module'}.{key}": value.contiguous()
        for key, value in theirs.state_dict().items()
    }
    save_file(tensors, files["model.safetensors"])
    with pytest.raises(StoreError, match="after the prefix 'module.', 2 missing \\(pooler.dense.bias"):
        named.load(named.spec(VIT), files)


def test_convnexts_of_the_hub_are_prepared_as_their_processor_does(photo: Image.Image, hub: Hub) -> None:
    from transformers import ConvNextConfig, ConvNextImageProcessor, ConvNextModel

    name = "hf:facebook/small-convnext@main"
    theirs: Any = random_values(ConvNextModel(ConvNextConfig(hidden_sizes=[8, 8, 8, 8], depths=[1, 1, 1, 1])))
    files = hub(name, theirs, ConvNextImageProcessor(size={"shortest_edge": 64}, crop_pct=0.875))
    pixels, ours = rows_of(name, photo, files)
    torch.testing.assert_close(ours, theirs(pixel_values=pixels).pooler_output, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("timm:vit_base_patch16_224.augreg_in21", "did you mean timm:vit_base_patch16_224.augreg_in21k"),
        ("timm:resnet500", "did you mean timm:resnet50"),
        ("open_clip:ViT-B-32/laion2b_s34b_b79", "did you mean open_clip:ViT-B-32/laion2b_s34b_b79k"),
        ("open_clip:zzzzzzzz", "no known name is close"),
        ("hf:google/vit-base", "name a model of the hub as hf:<owner>/<name>@<revision>"),
        ("keras:vit", "a model by name is timm:<name>"),
        ("timm:", "a model by name is timm:<name>"),
    ],
)
def test_an_unknown_name_is_one_line(name: str, hint: str) -> None:
    with pytest.raises(ConfigError, match=f"^backbone '{name}' is not known: .*{hint}"):
        named.weights(name)


def test_a_library_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(named, "find_spec", lambda _: None)
    with pytest.raises(MissingError, match=r"needs the package open_clip_torch: install stepline\[vision\]"):
        named.spec("open_clip:ViT-B-32/openai")


def test_what_is_known_of_a_model_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPLINE_RUN", "1")
    name = "timm:test_vit.r160_in1k"
    spec, weights = named.spec(name), named.weights(name)
    monkeypatch.setattr(named, "_module", lambda _: pytest.fail("the library is imported"))
    assert named.spec(name) == spec
    assert named.weights(name) == weights
    with monkeypatch.context() as patched:
        patched.setattr(named, "version", lambda _: "another")
        with pytest.raises(pytest.fail.Exception):
            named.spec(name)
    monkeypatch.setattr(named, "find_spec", lambda _: None)
    assert (named.spec(name), named.weights(name)) == (spec, weights), "as in an environment without the library"


def test_the_hub_s_weights_are_asked_for_before_the_spec(hub: Hub) -> None:
    with pytest.raises(MissingError, match=f"^weights {CLIP} are absent: run `stepline fetch weights/{CLIP}`$"):
        named.spec(CLIP)
    files = hub(CLIP, small_clip(), clip_pictures())
    assert named.spec(CLIP).steps[0] == ("short_side", 48, "pil_bicubic")
    clip_pictures(50).save_pretrained(files["config.json"].parent)
    assert named.spec(CLIP).steps[0] == ("short_side", 50, "pil_bicubic")


def test_files_of_another_model_are_one_line(hub: Hub) -> None:
    for name in ("timm:test_vit.r160_in1k", "open_clip:ViT-B-32-quickgelu/openai"):
        files = saved(name, weight=torch.zeros(3))
        with pytest.raises(StoreError, match=rf"model.safetensors is not {name.partition(':')[2]}: \d+ missing"):
            named.load(named.spec(name), files)
    clip = small_clip()
    files, spec = hub(CLIP, clip, clip_pictures()), named.spec(CLIP)
    for other, why in (("weight",), r"\d+ missing"), (clip.state_dict(), ""):
        save_file({key: torch.zeros(3) for key in other}, files["model.safetensors"])
        with pytest.raises(StoreError, match=rf"model.safetensors is not {CLIP}: {why}"):
            named.load(spec, files)


def within(prefix: str, tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {f"{prefix}{name}": value.clone() for name, value in tensors.items()}


@pytest.mark.parametrize("name", ["test_vit.r160_in1k", "test_resnet.r160_in1k", "test_convnext.r160_in1k"])
def test_a_fine_tuned_timm_model_gives_its_features(name: str) -> None:
    import timm

    theirs: Any = random_values(timm.create_model(name, pretrained=False))
    spec, clips, whole = named.spec(f"timm:{name}"), torch.randn(1, 3, 1, 160, 160), theirs.state_dict()
    features = named.load(spec, saved(f"timm:{name}", **whole))(clips)
    classifier = theirs.pretrained_cfg["classifier"]
    body = {key: value for key, value in whole.items() if not key.startswith(f"{classifier}.")}
    ten = {f"{classifier}.weight": torch.zeros(10, theirs.num_features), f"{classifier}.bias": torch.zeros(10)}
    for each in (
        body,
        body | ten,
        body | within(f"{classifier}.1.", {"weight": torch.ones(2)}),
        within("module._orig_mod.", body | ten),
        within("backbone.", body) | {"loss.weight": torch.ones(2)},
    ):
        assert torch.equal(named.load(spec, saved(f"timm:{name}", **each))(clips), features)
    first = next(iter(body))
    lacking = within("module.", {key: value for key, value in body.items() if key != first})
    with pytest.raises(StoreError, match=rf"after the prefix 'module.', 1 missing \({first}\); it looks like"):
        named.load(spec, saved(f"timm:{name}", **lacking))


def test_a_fine_tuned_open_clip_gives_its_features(monkeypatch: pytest.MonkeyPatch) -> None:
    name, theirs = small_open_clip(monkeypatch)
    whole = theirs.state_dict()
    spec, text, clips = named.spec(name), named.text_spec(name), torch.randn(1, 3, 1, 64, 64)
    tokens = [49406, 1, 49407, *[0] * 17]
    files = saved(name, **whole)
    features, vector = named.load(spec, files)(clips), named.load_text(text, files).encode(tokens)
    visual = {key: value for key, value in whole.items() if key.startswith("visual.")}
    for each in (visual, within("model.", whole), within("module.clip.", visual) | {"head.weight": torch.ones(2)}):
        assert torch.equal(named.load(spec, saved(name, **each))(clips), features)
    assert (named.load_text(text, saved(name, **within("model.", whole))).encode(tokens) == vector).all()
    with pytest.raises(StoreError, match=r"is not ViT-B-32-quickgelu/openai: \d+ missing \("):
        named.load_text(text, saved(name, **visual))


def test_a_fine_tuned_vision_transformer_of_the_hub_gives_its_features(hub: Hub) -> None:
    from safetensors.torch import load_file

    name, theirs = VIT, small_vit(classifier=True)
    files = hub(name, theirs, vit_pictures())
    path, spec, clips = files["model.safetensors"], named.spec(name), torch.randn(1, 3, 1, 48, 48)
    features, saved_form = named.load(spec, files)(clips), load_file(path)
    for each in (saved_form, dict(theirs.state_dict())):
        save_file(within("module.model.", each), path)
        assert torch.equal(named.load(spec, files)(clips), features)
    first = "vit.embeddings.cls_token"
    save_file(within("module.", saved_form | {first: torch.ones(1, 1, 7)}), path)
    line = (
        r"after the prefix 'module.vit.', 1 of another form \(embeddings.cls_token is \[1, 1, 7\], not \[1, 1, 32\]\)"
    )
    with pytest.raises(StoreError, match=rf"model.safetensors is not {name}: {line}"):
        named.load(spec, files)
    save_file(within("student.", saved_form) | within("teacher.", saved_form), path)
    with pytest.raises(StoreError, match=r"2 times, as after the prefixes 'student.vit.' and 'teacher.vit.'"):
        named.load(spec, files)


def test_code_of_a_repository_is_never_run(hub: Hub) -> None:
    files = hub(CLIP, small_clip(), clip_pictures())
    config = json.loads(files["config.json"].read_text(encoding="utf-8"))
    trap = "open('ran', 'w').close()\nclass Config: pass\nclass Model: pass\n"
    (files["config.json"].parent / "own.py").write_text(trap, encoding="utf-8")
    own = {"model_type": "own", "auto_map": {"AutoConfig": "own.Config", "AutoModel": "own.Model"}}
    files["config.json"].write_text(json.dumps(config | own), encoding="utf-8")
    with pytest.raises(ConfigError, match="has no configuration that transformers knows"):
        named.spec(CLIP)
    assert not Path("ran").exists()


def test_a_model_of_videos_cannot_be_used_by_name(hub: Hub) -> None:
    from transformers import VideoMAEConfig, VideoMAEModel

    name = "hf:someone/small-videomae@main"
    hub(name, VideoMAEModel(VideoMAEConfig(**SIZE, image_size=48)), clip_pictures())
    with pytest.raises(ConfigError, match="is not an image model that can be used by name"):
        named.spec(name)


def test_a_vector_is_normalised_where_the_spec_says_so(photo: Image.Image) -> None:
    import dataclasses

    import timm

    name = "timm:test_vit.r160_in1k"
    files = saved(name, **random_values(timm.create_model("test_vit")).state_dict())
    spec = named.spec(name)
    clips = clip_of(photo, spec)
    plain = named.load(spec, files)(clips)
    normalised = named.load(dataclasses.replace(spec, normalise=True), files)(clips)
    torch.testing.assert_close(normalised, torch.nn.functional.normalize(plain, dim=1))
    assert abs(float(plain.norm()) - 1) > 0.1


def test_what_is_said_of_a_named_model_without_its_library_is_what_the_library_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known = dict(named.NAMED)
    monkeypatch.setattr(named, "NAMED", {})
    for name, said in known.items():
        assert (named.spec(name), named.text_spec(name), named.weights(name)) == said
