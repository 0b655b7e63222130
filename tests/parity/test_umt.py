"""UMT: the mistakes that outputs of the released code would show, and the published sizes."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from stepline.io import read_json  # noqa: E402
from stepline.models import umt_layers  # noqa: E402
from stepline.models.umt import Umt  # noqa: E402
from stepline.models.umt_config import UmtConfig  # noqa: E402
from tests.parity import TOLERANCE, check, umt  # noqa: E402

Patch = Callable[[pytest.MonkeyPatch], None]
LOSSES = "saliency_loss", "center_loss", "window_loss", "offset_loss"


def given(name: str, change: Callable[..., Any], of: Any = umt) -> Patch:
    """Let a function or a method give what ``change`` makes of it and its arguments."""

    def apply(monkeypatch: pytest.MonkeyPatch) -> None:
        original = getattr(of, name)
        monkeypatch.setattr(of, name, lambda *given, **named: change(original, *given, **named))

    return apply


def network(change: Callable[[Any], object]) -> Patch:
    """Let ``change`` change the network."""

    def changed(original: Any, *about: Any) -> Any:
        made = original(*about)
        with torch.no_grad():
            change(made)
        return made

    return given("network_of", changed)


def post_norm_encoder(self: Any, rows: Any, there: Any) -> Any:
    rows = self.project(rows)
    placed = rows + self.positions(rows)
    rows = self.norms[0](rows + self.attention(placed, placed, rows, there))
    return self.norms[1](rows + self.feed_forward(rows))


def post_norm_layer(self: Any, rows: Any, memory: Any, keys: Any, positions: Any, there: Any) -> Any:
    placed = rows + positions
    rows = self.norms[0](rows + self.among(placed, placed, rows, there))
    rows = self.norms[1](rows + self.attention(rows + positions, keys, memory, there))
    return self.norms[2](rows + self.feed_forward(rows))


def post_norm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(umt_layers.VideoEncoder, "forward", post_norm_encoder)
    monkeypatch.setattr(umt_layers.DecoderLayer, "forward", post_norm_layer)


def positions_once(_: Any, self: Any, rows: Any, there: Any) -> Any:
    """In the video encoder."""
    rows = self.project(rows)
    rows = rows + self.positions(rows)
    normed = self.norms[0](rows)
    rows = rows + self.attention(normed, normed, normed, there)
    return rows + self.feed_forward(self.norms[1](rows))


def mean_of_layers(original: Any, self: Any, *of: Any) -> Any:
    return torch.stack([self.norm(rows) for rows in self.each(*of)]).mean(dim=0)


def with_end(amount: float) -> Callable[..., Any]:
    return lambda original, *of: original(*of) + amount * torch.tensor([0, of[-1].unit, 0])


def ends_as_they_are(original: Any, segments_s: Any, length: int, config: Any) -> Any:
    return original([each + torch.tensor([0, config.unit]) for each in segments_s], length, config)


def mean_of_real_rows(original: Any, self: Any, scores: Any, there: Any, *of: Any) -> Any:
    losses = original(self, scores, there, *of)
    return losses | {"saliency": losses["saliency"] * there.numel() / there.sum()}


def not_weighted(original: Any, self: Any, scores: Any, there: Any, saliency: Any, learned: Any) -> Any:
    """With the loss of negatives in every row."""
    at, center = learned.center == 1, scores.center.sigmoid()
    losses = original(self, scores, there, saliency, learned._replace(center=at.float()))
    return losses | {"center": losses["center"] - (center**2 * (1 - center).log())[at].sum() / learned.moments}


def zeroed(*tables: Any) -> None:
    for each in tables:
        each.table.zero_()


def setting(module: str, name: str, value: Callable[[Any], Any]) -> Patch:
    return network(lambda made: setattr(getattr(made, module), name, value(made)))


MISTAKES: dict[str, Patch] = {
    "unit 2 instead of 1": given("replace", lambda _, config, **of: dataclasses.replace(config, **of | {"unit": 2})),
    "padding masked in the decoder (reference does not)": given("seen", lambda _, self, there: there, Umt),
    "no padding mask in the video encoder": given(
        "forward", lambda original, self, rows, there: original(self, rows, there | True), umt_layers.VideoEncoder
    ),
    "text padding zero instead of inf (not masked)": given(
        "forward", lambda original, *of: original(*of[:-1], of[-1] | True), umt_layers.QueryGenerator
    ),
    "video encoder without position table": network(lambda made: zeroed(made.video.positions)),
    "decoder without position tables": network(
        lambda made: zeroed(made.decoder.query_positions, made.decoder.key_positions)
    ),
    "one position table for decoder queries and keys": setting(
        "decoder", "key_positions", lambda made: made.decoder.query_positions
    ),
    "post-norm layers": post_norm,
    "positions added to the input once instead of to q and k": given(
        "forward", positions_once, umt_layers.VideoEncoder
    ),
    "residual in the query generator": given(
        "forward",
        lambda original, self, memory, *of: memory + original(self, memory, *of),
        umt_layers.QueryGenerator,
    ),
    "no LayerNorm after the text mapping": setting("query", "norm", lambda _: torch.nn.Identity()),
    "no final LayerNorm in the decoder": setting("decoder", "norm", lambda _: torch.nn.Identity()),
    "heads on the mean of the decoder layers": given("forward", mean_of_layers, umt_layers.Decoder),
    "unit not subtracted from the end in the targets": given("targets", ends_as_they_are),
    "boundary losses divided by batch size instead of number of moments": given(
        "targets", lambda original, of, *about: original(of, *about)._replace(moments=len(of))
    ),
    "unit not added to the end in decoding": given("moments", with_end(-1)),
    "saliency loss averaged over valid clips only": given("losses", mean_of_real_rows, Umt),
    "centre loss without (1-target)^4 weight on negatives": given("losses", not_weighted, Umt),
}


@pytest.fixture(scope="module")
def files(parity: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The manifest, and of the golden file what the mistakes are known in."""
    small = tmp_path_factory.mktemp("umt") / "small.npz"
    with np.load(parity / "umt/golden_a.npz") as loaded:
        names = ("in/long", "long", "single", "grad", "targets", "decode", "boundary")
        np.savez(small, **{name: each for name, each in loaded.items() if not name.startswith(names)})
    return parity / "umt/manifest.json", small


def effects(files: tuple[Path, Path]) -> dict[str, float]:
    """Return how far outputs of the batch are from the golden ones, as mutations.json says it."""
    outputs = {each.name: each for each in check("umt", *files)}
    real, found = outputs["batch/mask"].reference > 0, {}
    for name in ("video_enc", "query_gen", "dec2", "saliency_logit", "center_logit", "window", "offset"):
        one = outputs[f"batch/{name}"]
        found[name] = float(np.linalg.norm((one.ours - one.reference)[real]) / np.linalg.norm(one.reference[real]))
    found |= dict(zip(LOSSES, np.abs(outputs["loss_unit1"].ours - 1)[:4].tolist(), strict=True))
    moments = outputs["batch/moments_unit1"]
    found["moments_first_row_s"] = float(np.abs(moments.ours - moments.reference)[:, 0, :2].max())
    return found


def test_without_a_mistake_there_is_none(files: tuple[Path, Path]) -> None:
    assert max(effects(files).values()) < TOLERANCE


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_seen(
    mistake: str, files: tuple[Path, Path], parity: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = read_json(parity / "umt/mutations.json")["values"]
    assert listed.keys() - {"(noise) same model in float64"} == MISTAKES.keys()
    MISTAKES[mistake](monkeypatch)
    found = effects(files)
    if "mean of the decoder layers" in mistake:  # which is not what the last layer gives
        del found["dec2"], listed[mistake]["dec2"]
    expected = {name: listed[mistake].get(name, 0.0) for name in found}
    assert found == pytest.approx(expected, rel=1e-3, abs=TOLERANCE)
    assert max(found.values()) > 100 * TOLERANCE


def test_the_defaults_are_the_published_sizes(parity: Path) -> None:
    published = read_json(parity / "umt/manifest.json")["published_sizes_without_values"]
    (keys,) = (each["keys"] for name, each in published.items() if "audio" not in name)
    tensors = {name: torch.empty(shape, device="meta") for name, (shape, *_) in keys.items()}
    model = umt.network_of(tensors)
    assert model.config == UmtConfig(feature_dim=1024, text_dim=512)
    assert sum(each.numel() for each in model.parameters()) == sum(each.numel() for each in tensors.values())
