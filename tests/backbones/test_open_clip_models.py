"""Tiny models in the form of open_clip's, with tokenizers saved as on the hub, against open_clip's own way."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image
from tokenizers import Tokenizer

from stepline.backbones import named
from stepline.backbones.torchvision import make_importable
from stepline.errors import ConfigError, StoreError
from tests.backbones.models import clip_of, random_values, saved

make_importable()
TEXTS = ("", "An astronaut, frying eggs!", "Ein Käse_brot &amp; 日本語 ", "the " * 50)
LETTERS = sorted(set("".join(TEXTS).lower()) - {" "})


def gemma() -> Any:
    from transformers import GemmaTokenizer

    pieces = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>", "▁", *LETTERS, "th", "the"]
    merges = [("t", "h"), ("th", "e")]
    vocab = {piece: number for number, piece in enumerate(pieces)}
    return GemmaTokenizer(vocab, merges, add_bos_token=False, add_eos_token=True, padding_side="right")


def t5() -> Any:
    from transformers import T5Tokenizer

    pieces = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("▁", -2.0), *((each, -3.0) for each in LETTERS)]
    return T5Tokenizer(vocab=pieces, extra_ids=0, pad_token="</s>")


def xlm_v() -> Any:
    from transformers import XLMRobertaTokenizer

    pieces = [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("▁", -2.0)]
    return XLMRobertaTokenizer(vocab=[*pieces, *((each, -3.0) for each in LETTERS), ("<mask>", 0.0)])


def bert() -> Any:
    from transformers import BertTokenizer

    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *LETTERS, *(f"##{each}" for each in LETTERS)]
    return BertTokenizer(vocab={piece: number for number, piece in enumerate(pieces)})


VISION = {"image_size": 32, "layers": 1, "width": 32, "head_width": 16, "patch_size": 16}
CLIP_TEXT = {"context_length": 9, "vocab_size": 99, "width": 32, "heads": 2, "layers": 2}
SIGLIP_TEXT = CLIP_TEXT | {"no_causal_mask": True, "proj_bias": True, "pool_type": "last"}


@pytest.mark.parametrize(
    ("architecture", "tag", "text", "make"),
    [
        ("ViT-B-16-SigLIP2", "webli", SIGLIP_TEXT, gemma),
        ("ViT-B-16-SigLIP", "webli", SIGLIP_TEXT, t5),
        ("ViT-H-14-worldwide", "metaclip2_worldwide", CLIP_TEXT | {"pool_type": "eos", "eos_id": 2}, xlm_v),
        ("ViT-L-14-CLIPA", "datacomp1b", CLIP_TEXT | {"pool_type": "last"}, bert),
    ],
)
def test_texts_give_what_open_clip_gives(
    architecture: str,
    tag: str,
    text: dict[str, Any],
    make: Callable[[], Any],
    photo: Image.Image,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import open_clip

    own = open_clip.get_model_config(architecture)
    kept = {key: own["text_cfg"][key] for key in ("hf_tokenizer_name", "tokenizer_kwargs") if key in own["text_cfg"]}
    small = {
        "embed_dim": 16,
        "custom_text": own.get("custom_text", False),
        "vision_cfg": VISION,
        "text_cfg": {**text, **kept},
    }
    monkeypatch.setitem(open_clip.factory._MODEL_CONFIGS, architecture, small)
    name = f"open_clip:{architecture}/{tag}"
    quick = open_clip.get_pretrained_cfg(architecture, tag).get("quick_gelu", False)
    theirs: Any = random_values(open_clip.create_model(architecture, load_weights=False, force_quick_gelu=quick))
    files = saved(name, **theirs.state_dict())
    spec, tower = named.spec(name), named.text_spec(name)
    assert tower.weights == (name, f"{name}#tokenizer")
    weights = named.weights(tower.weights[1])
    folder = Path("weights", weights.name)
    make().save_pretrained(folder)
    assert [file.url.partition("/resolve/main/")[0] for file in weights.files] == [
        f"https://huggingface.co/{own['text_cfg']['hf_tokenizer_name']}"
    ] * 2
    files |= {file.name: folder / file.name for file in weights.files}
    encoder = named.load_text(tower, files)
    tokenizer = open_clip.tokenizer.HFTokenizer(str(folder), context_length=9, **kept.get("tokenizer_kwargs", {}))
    for each in TEXTS:
        tokens = tokenizer([each])
        assert encoder.tokens(each) == tokens[0].tolist()
        vector = torch.from_numpy(encoder.encode(encoder.tokens(each)))
        torch.testing.assert_close(vector, theirs.encode_text(tokens)[0], rtol=1e-5, atol=1e-5)
    assert len(encoder.tokens("")) == tower.max_tokens == 9
    clip = clip_of(photo, spec)
    torch.testing.assert_close(named.load(spec, files)(clip), theirs.encode_image(clip[:, :, 0]), rtol=1e-5, atol=1e-5)


def test_a_tokenizer_without_its_padding_is_one_line() -> None:
    from stepline.backbones import open_clip_models

    gemma().save_pretrained(".")
    files = {name: Path(name) for name in open_clip_models.TOKENIZER_FILES}
    settings = json.loads(Path("tokenizer_config.json").read_text(encoding="utf-8"))
    Path("tokenizer_config.json").write_text(json.dumps(settings | {"pad_token": "<none>"}), encoding="utf-8")
    with pytest.raises(StoreError, match=r"^tokenizer.json does not contain the pad_token <none>: download it again$"):
        open_clip_models._hub_tokenizer("ViT-B-16-SigLIP2", files, 9)
    assert Tokenizer.from_file("tokenizer.json").token_to_id("<pad>") == 0


def test_each_published_name_has_a_spec_or_one_line() -> None:
    import open_clip

    from stepline.backbones import open_clip_models

    without, refused = set[str](), dict[str, str]()
    for architecture, tag in open_clip.list_pretrained():
        model = f"{architecture}/{tag}"
        try:
            clip, text = open_clip_models.describe(f"open_clip:{model}", model, {})
        except ConfigError as error:
            refused[architecture] = str(error).partition(" is ")[2].partition(":")[0]
        else:
            assert clip.model == model
            without |= {model} if text is None else set()
    assert not without
    assert {*refused.values()} == {"not supported"}
    assert refused.keys() == {
        "roberta-ViT-B-32",
        "xlm-roberta-base-ViT-B-32",
        "xlm-roberta-large-ViT-H-14",
        "nllb-clip-base",
        "nllb-clip-large",
        "nllb-clip-base-siglip",
        "nllb-clip-large-siglip",
    }


def test_weights_trained_with_quick_gelu_get_it(photo: Image.Image, monkeypatch: pytest.MonkeyPatch) -> None:
    import open_clip

    small = {"embed_dim": 16, "vision_cfg": VISION, "text_cfg": CLIP_TEXT}
    monkeypatch.setitem(open_clip.factory._MODEL_CONFIGS, "ViT-B-32", small)
    theirs: Any = random_values(open_clip.create_model("ViT-B-32", load_weights=False, force_quick_gelu=True))
    files = saved("open_clip:ViT-B-32/openai", **theirs.state_dict())
    spec = named.spec("open_clip:ViT-B-32/openai")
    clip = clip_of(photo, spec)
    torch.testing.assert_close(named.load(spec, files)(clip), theirs.encode_image(clip[:, :, 0]), rtol=1e-5, atol=1e-5)
    plain: Any = open_clip.create_model("ViT-B-32", load_weights=False)
    plain.load_state_dict(theirs.state_dict())
    assert not torch.allclose(plain.eval().encode_image(clip[:, :, 0]), theirs.encode_image(clip[:, :, 0]), atol=1e-3)
