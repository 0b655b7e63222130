"""Checkpoints of HiREST and of CLIP4Caption: the names and shapes that they have, written as they are."""

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from stepline.errors import StoreError  # noqa: E402
from stepline.io import read_json  # noqa: E402
from stepline.models import hirest_joint_release  # noqa: E402
from stepline.models.hirest_joint import Joint  # noqa: E402
from stepline.models.hirest_joint_config import JointConfig  # noqa: E402
from stepline.models.hirest_joint_layers import EPS  # noqa: E402
from stepline.models.hirest_joint_release import load_clip4caption, load_released  # noqa: E402
from stepline.models.training import loaded, restore  # noqa: E402
from tests.models.joint import SIZES, videos  # noqa: E402

E, H, F, V = SIZES["embed"], SIZES["hidden"], SIZES["feedforward"], SIZES["vocabulary"]
FULL = JointConfig(**SIZES)


def linear(name: str, outputs: int, inputs: int) -> dict[str, tuple[int, ...]]:
    return {f"{name}.weight": (outputs, inputs), f"{name}.bias": (outputs,)}


def norm(name: str, width: int) -> dict[str, tuple[int, ...]]:
    return {f"{name}.weight": (width,), f"{name}.bias": (width,)}


def attention(inner: str, output: str) -> dict[str, tuple[int, ...]]:
    shapes = {}
    for part in ("query", "key", "value"):
        shapes |= linear(f"{inner}.{part}", H, H)
    return shapes | linear(f"{output}.dense", H, H) | norm(f"{output}.LayerNorm", H)


def feed_forward(layer: str) -> dict[str, tuple[int, ...]]:
    return (
        linear(f"{layer}.intermediate.dense", F, H)
        | linear(f"{layer}.output.dense", H, F)
        | norm(f"{layer}.output.LayerNorm", H)
    )


def clip4caption(positions: int) -> dict[str, tuple[int, ...]]:
    shapes = linear("visual.embeddings.word_embeddings", H, E)
    shapes["visual.embeddings.position_embeddings.weight"] = (positions, H)
    shapes |= norm("visual.embeddings.LayerNorm", H) | linear("visual.pooler.dense", H, H)
    shapes["decoder.embeddings.word_embeddings.weight"] = (V, H)
    shapes["decoder.embeddings.position_embeddings.weight"] = (SIZES["word_positions"], H)
    shapes |= norm("decoder.embeddings.LayerNorm", H) | norm("normalize_video.visual_norm2d", E)
    for number in range(2):
        layer = f"visual.encoder.layer.{number}"
        shapes |= attention(f"{layer}.attention.self", f"{layer}.attention.output") | feed_forward(layer)
        layer = f"decoder.decoder.layer.{number}"
        for part in ("slf_attn", "enc_attn"):
            shapes |= attention(f"{layer}.{part}.att", f"{layer}.{part}.output")
        shapes |= feed_forward(layer)
    head = "decoder.classifier.cls.predictions"
    shapes |= {f"{head}.bias": (V,)} | linear(f"{head}.transform.dense", H, H) | norm(f"{head}.transform.LayerNorm", H)
    return shapes


def released() -> dict[str, tuple[int, ...]]:
    shapes = norm("asr_enc_layer.0", SIZES["asr_dim"]) | linear("asr_enc_layer.1", E, SIZES["asr_dim"])
    shapes |= linear("temporal_embed.0", E, 1) | linear("temporal_embed.2", E, E)
    shapes |= {"mask_embed.weight": (2, E), "boundary_embed.weight": (2, E)}
    shapes |= {f"moment_conv.{n}.{part}": (E,) for n in (0, 2) for part in ("weight", "bias")}
    for part in ("start", "end", "segment"):
        shapes |= linear(f"{part}_predictor.0", 1, H)
    shapes |= {f"clip4cap_model.{name}": shape for name, shape in clip4caption(SIZES["positions"]).items()}
    return shapes | linear("clip_g_map", E, SIZES["feature_dim"]) | linear("clip_g_map_text", E, SIZES["text_dim"])


def filled(shapes: dict[str, tuple[int, ...]], prefix: str = "") -> dict[str, Any]:
    draw = torch.Generator().manual_seed(4)
    tensors = {name: torch.randn(shape, generator=draw) for name, shape in shapes.items()}
    words = tensors[f"{prefix}decoder.embeddings.word_embeddings.weight"]
    return tensors | {f"{prefix}decoder.classifier.cls.predictions.decoder.weight": words}


@pytest.fixture
def best() -> dict[str, Any]:
    return filled(released(), "clip4cap_model.")


def write(tensors: dict[str, Any], name: str = "BEST.pth") -> Path:
    torch.save(tensors, name)
    return Path(name)


def test_a_checkpoint_is_a_network_of_its_sizes(best: dict[str, Any]) -> None:
    model = load_released(write(best), heads=2, words=7, slots=4)
    assert model.config == FULL
    assert not model.training
    for name, other in (
        ("frame.weight", "clip_g_map.weight"),
        ("query.bias", "clip_g_map_text.bias"),
        ("speech.1.weight", "asr_enc_layer.1.weight"),
        ("encoder.positions.weight", "clip4cap_model.visual.embeddings.position_embeddings.weight"),
        ("encoder.layers.1.attention.key.bias", "clip4cap_model.visual.encoder.layer.1.attention.self.key.bias"),
        ("decoder.layers.0.among.norm.bias", "clip4cap_model.decoder.decoder.layer.0.slf_attn.output.LayerNorm.bias"),
        (
            "decoder.layers.1.attention.output.weight",
            "clip4cap_model.decoder.decoder.layer.1.enc_attn.output.dense.weight",
        ),
        ("decoder.layers.1.feed_forward.outer.bias", "clip4cap_model.decoder.decoder.layer.1.output.dense.bias"),
        (
            "decoder.transform_norm.weight",
            "clip4cap_model.decoder.classifier.cls.predictions.transform.LayerNorm.weight",
        ),
    ):
        assert torch.equal(model.state_dict()[name], best[other]), name
    assert len(model.captions(videos(5), torch.tensor([0]), torch.tensor([[1, 3]]))) == 1


def test_a_network_without_speech_has_none(best: dict[str, Any]) -> None:
    deaf = {name: value for name, value in best.items() if not name.startswith("asr")}
    assert not load_released(write(deaf), heads=2).config.audio


def test_another_checkpoint_is_one_line(best: dict[str, Any]) -> None:
    words = "clip4cap_model.decoder.embeddings.word_embeddings.weight"

    def without(name: str) -> dict[str, Any]:
        return {other: value for other, value in best.items() if other != name}

    for tensors, reason in (
        (without("clip_g_map.weight"), "is not HiREST's: 'clip_g_map.weight' is not there; it looks like "),
        (without("end_predictor.0.bias"), r"is not HiREST's joint model: 1 missing \(end.bias\)"),
        (best | {"translator.weight": torch.zeros(2)}, r"1 unexpected \(translator.weight\)"),
        (best | {"mask_embed.weight": torch.zeros(3, E)}, r"1 of another form \(inside.weight is \[3, 8\] floats"),
        (best | {"clip_g_map.weight": torch.zeros(E)}, r"is not HiREST's \("),
        (best | {words: best[words] + 1}, "its logits have other weights than its words"),
        ({}, "holds no tensors by name"),
    ):
        with pytest.raises(StoreError, match=reason):
            load_released(write(tensors), heads=2)
    Path("cut.pth").write_bytes(write(best).read_bytes()[:9000])
    with pytest.raises(StoreError, match="is cut off"):
        load_released(Path("cut.pth"))


def test_training_begins_with_clip4caption_and_draws_the_rest() -> None:
    short = filled(clip4caption(positions=16))
    path = write(short, "model.bin")
    torch.manual_seed(3)
    drawn = Joint(FULL).state_dict()
    torch.manual_seed(3)
    begun = load_clip4caption(path, FULL).state_dict()
    same = {name for name, value in begun.items() if torch.equal(value, drawn[name])}
    theirs = {name for name in drawn if name.startswith(("norm.", "encoder.", "decoder."))}
    assert same == (drawn.keys() - theirs) | {"encoder.positions.weight"}
    assert torch.equal(begun["norm.weight"], short["normalize_video.visual_norm2d.weight"])
    assert torch.equal(begun["decoder.words.weight"], short["decoder.embeddings.word_embeddings.weight"])
    fitting = filled(clip4caption(positions=SIZES["positions"]))
    table = load_clip4caption(write(fitting, "model.bin"), FULL).encoder.positions.weight
    assert torch.equal(table, fitting["visual.embeddings.position_embeddings.weight"])


def test_what_is_drawn_has_the_released_spread() -> None:
    torch.manual_seed(0)
    wide = Joint(JointConfig(**(SIZES | {"hidden": 96, "embed": 256})))
    for table in (wide.inside, wide.boundary):
        assert table.weight.std().item() == pytest.approx(1, abs=0.1)
    for module in (wide.encoder.positions, wide.encoder.project, wide.decoder.words, wide.decoder.transform):
        assert module.weight.std().item() == pytest.approx(0.02, rel=0.1)
    assert not wide.encoder.project.bias.any()
    assert wide.frame.bias.any()
    norms = {name: each.eps for name, each in wide.named_modules() if isinstance(each, torch.nn.LayerNorm)}
    assert {name for name, eps in norms.items() if eps != EPS} == {"speech.0"}
    assert (EPS, norms["speech.0"]) == (1e-12, 1e-5)


def test_another_beginning_is_one_line(best: dict[str, Any]) -> None:
    short = filled(clip4caption(positions=16))
    bent = short | {"normalize_video.visual_norm2d.bias": torch.zeros(3)}
    less = {
        name: value
        for name, value in short.items()
        if "pooler" not in name and name != "decoder.embeddings.LayerNorm.bias"
    }
    for tensors, reason in (
        (best, "is not CLIP4Caption: "),
        (less, r"is not CLIP4Caption: 1 missing \(decoder.norm.bias\)"),
        (short | {"bert.weight": torch.zeros(2)}, r"1 unexpected \(clip4cap_model.bert.weight\)"),
        (bent, r"1 of another form \(norm.bias is \[3\] floats, not \[8\] floats\)"),
    ):
        with pytest.raises(StoreError, match=reason):
            load_clip4caption(write(tensors, "model.bin"), FULL)


def test_what_a_fit_wrote_loads_back(best: dict[str, Any]) -> None:
    from safetensors.torch import save_file

    model = load_released(write(best), heads=2, words=7, slots=4)
    save_file(model.state_dict() | {"val_loss": torch.ones(1)}, "fit.safetensors")
    with loaded(Path("fit.safetensors")) as tensors:
        again = restore(Joint(FULL), tensors, "cpu")
    batch = videos(6, 4)
    for one, two in zip(model.moment_logits(batch), again.moment_logits(batch), strict=True):
        assert torch.equal(one, two)


def test_unknown_names_of_clip4caption_are_its_own(best: dict[str, Any]) -> None:
    """No tensor of a file takes the place of one that is drawn."""
    assert hirest_joint_release.INSIDE not in "".join(hirest_joint_release.TAKEN)
    sneaky = filled(clip4caption(positions=16)) | {"start.weight": torch.zeros(1, H)}
    with pytest.raises(StoreError, match="1 unexpected"):
        load_clip4caption(write(sneaky, "model.bin"), FULL)


def test_the_published_sizes_and_arguments_are_the_defaults(parity: Path) -> None:
    described = read_json(parity / "hirest_joint/manifest.json")
    tensors = {name: torch.empty(shape, device="meta") for name, (shape, *_) in described["keys"].items()}
    args = described["args"]
    settings = {
        "slots": args["max_frames"],
        "words": args["max_words"],
        "threshold": args["moment_segmentation_difference_threshold"],
        "iterations": args["moment_segmentation_max_iterations"],
    }
    assert hirest_joint_release._config(tensors, settings) == JointConfig()


def test_what_no_checkpoint_tells_is_as_released() -> None:
    assert (JointConfig.heads, JointConfig.dropout, JointConfig.gap) == (12, 0.1, 5)
    assert (JointConfig.slots, JointConfig.words) == (20, 48)
    assert (JointConfig.threshold, JointConfig.iterations) == (0.5, 20)
