"""ActionFormer: what typical mistakes would change in outputs of the released code, and the published sizes."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from stepline.io import read_json  # noqa: E402
from stepline.models import actionformer, actionformer_layers, actionformer_loss  # noqa: E402
from stepline.models.actionformer import chosen, decoded, in_seconds  # noqa: E402
from stepline.models.actionformer_layers import Attention, Branch, Conv, Norm  # noqa: E402
from tests.parity import read_golden  # noqa: E402
from tests.parity.actionformer import ALL, Case, _same, decoding, network_of, settings  # noqa: E402

CONFIG, VIDEO = "w9", "video0"
functional, nn = torch.nn.functional, torch.nn


@pytest.fixture(scope="module")
def files(parity: Path) -> tuple[Any, Any, Any]:
    folder = parity / "actionformer"
    mistakes = read_json(folder / "mutations.json")
    return read_json(folder / "manifest.json"), read_golden(folder / "golden_a.npz"), mistakes


@pytest.fixture
def case(files: Any) -> Case:
    manifest, golden, _ = files
    return Case(manifest, golden, CONFIG)


Change = Callable[[Case, pytest.MonkeyPatch], object]


def each(kind: type, change: Callable[[Any], object]) -> Change:
    """Return a mistake in all modules of a kind."""
    return lambda case, _: [change(module) for module in case.network.modules() if isinstance(module, kind)]


def patched(module: Any, name: str, value: Any) -> Change:
    return lambda _, monkeypatch: monkeypatch.setattr(module, name, value)


def configured(**fields: Any) -> Change:
    return lambda case, _: setattr(case, "config", replace(case.config, **fields))


def in_points(change: Callable[[Any], object]) -> Change:
    return lambda case, _: change(case.points.T)


def in_learned(change: Callable[[Any, Any], Any]) -> Change:
    def mistake(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
        learned = case.learned
        monkeypatch.setattr(case, "learned", lambda config: change(learned(config), case.points[:, 3:]))

    return mistake


def in_said(change: Callable[[Any], Any]) -> Change:
    return lambda case, _: case.network.register_forward_hook(lambda *passed: change(passed[-1]))


def fill(name: str, value: float) -> Callable[[Any], object]:
    return lambda module: getattr(module, name).data.fill_(value)


def without(name: str) -> Callable[[Any], object]:
    def change(module: Any) -> None:
        parts = getattr(module, name)
        for key in parts if isinstance(parts, nn.ModuleDict) else range(len(parts)):
            parts[key] = nn.Identity()

    return change


def ahead(module: Any) -> None:
    module.relative = nn.Parameter(torch.tensor([[0.0] * 8 + [-1e4]] * module.heads))


def flatter(module: Any) -> None:
    for parameter in module.maps["query"].parameters():
        parameter.data.div_(module.heads**0.5)


def attended_padding(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    features, there = case.given(case.videos, case.config.max_length)
    monkeypatch.setattr(case, "given", lambda *_: (features, torch.ones_like(there)))


def unmasked(self: Any, rows: Any, there: Any) -> Any:
    convolved = nn.Conv1d.forward(self, rows)
    return convolved * there if self.kernel_size == (1,) else convolved


def near_centre(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    stride = case.points[:, 3:].clone()
    case.points[:, 3] = 1
    in_learned(lambda learned, _: learned._replace(offsets=learned.offsets / stride))(case, monkeypatch)


def one_label(learned: Any, _: Any) -> Any:
    at = learned.marks[:, :2]
    first = torch.cat((torch.tensor([True]), (at[1:] != at[:-1]).any(dim=1)))
    return learned._replace(marks=learned.marks[first])


def plain_focal(logits: Any, target: float) -> Any:
    score = logits.sigmoid()
    entropy = functional.softplus(logits) - target * logits
    return entropy * (1 - score * target - (1 - score) * (1 - target)) ** 2


def iou_alone(found: Any, true: Any) -> Any:
    shared = torch.minimum(found, true).sum(dim=1)
    return 1 - shared / (found.sum(dim=1) + true.sum(dim=1) - shared)


pooled = functional.max_pool1d
MISTAKES: dict[str, Change] = {
    "window 7 instead of 9 (one step less on each side)": each(Attention, lambda it: setattr(it, "window", 7)),
    "window off by one (4 back, 3 ahead)": each(Attention, ahead),
    "full attention instead of window 9": each(Attention, lambda it: setattr(it, "window", 1)),
    "window 5 instead of 9": each(Attention, lambda it: setattr(it, "window", 5)),
    "no padding mask at all": attended_padding,
    "convolutions do not zero the padding": patched(Conv, "forward", unmasked),
    "per-level Scale layers of the regression head missing": lambda case, _: fill("scales", 1)(case.network),
    "per-level Scale in reversed order": lambda case, _: case.network.scales.data.copy_(case.network.scales.flip(0)),
    "AffineDropPath channel scale missing": each(Branch, fill("scale", 1)),
    "AffineDropPath scale left at its initial 1e-4": each(Branch, fill("scale", 1e-4)),
    "LayerNorm eps 1e-6": each(Norm, lambda norm: setattr(norm, "eps", 1e-6)),
    "identity FPN without its LayerNorm": lambda case, _: without("norms")(case.network.pyramid),
    "tanh GELU": patched(
        actionformer_layers.functional, "gelu", lambda rows: torch.ops.aten.gelu(rows, approximate="tanh")
    ),
    "skip path subsampled instead of max-pooled": patched(functional, "max_pool1d", lambda rows, *_: rows[..., ::2]),
    "max-pool kernel 2 instead of 3 (padding 1)": patched(functional, "max_pool1d", lambda rows, *_: pooled(rows, 2)),
    "norms after the depthwise q/k/v convolutions missing": each(Attention, without("norms")),
    "attention scaled by 1/sqrt(width) not 1/sqrt(head width)": each(Attention, flatter),
    "softplus on top of the offsets": in_said(lambda said: said._replace(offsets=functional.softplus(said.offsets))),
    "no centre sampling": configured(centre_radius=None),
    "centre sampling radius 1.0": configured(centre_radius=1.0),
    "centre sampling radius 2.0": configured(centre_radius=2.0),
    "centre radius in feature steps, not times level stride": near_centre,
    "regression targets not divided by the stride": in_learned(
        lambda learned, stride: learned._replace(offsets=learned.offsets * stride)
    ),
    "regression range multiplied by the stride": in_points(lambda points: points[1:3].mul_(points[3])),
    "points at cell centres (+0.5 stride)": in_points(lambda points: points[0].add_(0.5 * points[3])),
    "only one label where equally short segments overlap": in_learned(one_label),
    "segments in seconds instead of grid units (offset 0.5 forgotten)": lambda case, _: setattr(case, "centre", 0.0),
    "IoU (GIoU) loss instead of DIoU": patched(actionformer_loss, "diou", iou_alone),
    "focal loss without alpha": patched(actionformer_loss, "focal", plain_focal),
    "focal loss without gamma": patched(actionformer_loss, "GAMMA", 0.0),
    "normaliser is the plain number of positives": patched(actionformer_loss, "MOMENTUM", 0.0),
    "normaliser updated after use (100 used)": patched(actionformer_loss, "MOMENTUM", 1.0),
    "padding points counted in the loss": in_said(lambda said: said._replace(there=torch.ones_like(said.there))),
}


def measured(case: Case) -> dict[str, float]:
    """Return how far a case is from the golden file, as the list of mistakes says it."""
    golden = case.golden
    there = golden[f"{CONFIG}/train/level_mask"]
    with torch.inference_mode():
        said = case.network(*case.given(case.videos, case.config.max_length))
        learned = case.learned(case.config)
        normaliser = torch.tensor(case.config.init_norm, dtype=torch.float64)
        found = actionformer_loss.losses(case.config, said, learned, normaliser)
    far = {}
    for name, array in (("cls_logits", said.logits), ("offsets", said.offsets)):
        true = golden[f"{CONFIG}/train/{name}"][there].astype(np.float64)
        far[name] = float(np.linalg.norm(array.numpy()[there] - true) / np.linalg.norm(true))
    steps, offsets, *_ = golden[f"{CONFIG}/loss/default"]
    far |= {"cls_loss": abs(float(found.steps) / steps - 1), "reg_loss": abs(float(found.offsets) / offsets - 1)}
    labels = np.zeros_like(golden[f"{CONFIG}/targets/default/cls"])
    labels[tuple(learned.marks.T.numpy())] = 1
    changed = (labels != golden[f"{CONFIG}/targets/default/cls"]).any(axis=2)
    return far | {"targets_changed_points": int(changed[there].sum())}


def test_every_listed_mistake_is_made(files: Any) -> None:
    listed = files[2]["forward_and_loss"]
    assert [name for name in listed if not name.startswith("(noise)")] == [*MISTAKES]
    assert [*files[2]["decoding"]] == [*DECODING]


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_seen(mistake: str, case: Case, files: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = files[2]["forward_and_loss"][mistake]
    MISTAKES[mistake](case, monkeypatch)
    far = measured(case)
    assert max(far.values()) > 1e-4
    for name, error in listed.items():
        assert far[name] == pytest.approx(error, rel=2e-2, abs=3e-6), name


def test_without_a_mistake_there_is_no_error(case: Case) -> None:
    assert max(measured(case).values()) < 3e-6


def forgotten_strides(monkeypatch: pytest.MonkeyPatch) -> None:
    made = actionformer.points

    def points(*args: Any) -> Any:
        found = made(*args)
        found[:, 3] = 1
        return found

    monkeypatch.setattr(actionformer, "points", points)


DECODING: dict[str, dict[str, Any]] = {
    "offsets not multiplied by the stride": {"patch": forgotten_strides},
    "sigma 0.4": {"nms_sigma": 0.4},
    "class-agnostic instead of multiclass": {"multiclass_nms": False},
    "hard instead of soft": {"nms_method": "hard"},
    "top-k over all levels instead of per level": {"together": True},
    "0.5 * num_frames forgotten when going back to seconds": {"centre": 0.0},
    "voting off (class-agnostic)": {"test": "soft_agnostic_vote", "voting_thresh": 0.0},
}


@pytest.mark.parametrize("mistake", DECODING)
def test_a_mistake_in_decoding_is_seen(mistake: str, case: Case, files: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    changes = {"test": "soft_multiclass", "patch": lambda _: None, "together": False, "centre": case.centre}
    changes |= DECODING[mistake]
    test, patch, together, centre = (changes.pop(name) for name in ("test", "patch", "together", "centre"))
    patch(monkeypatch)
    options = decoding(case.made["test_base"] | case.made["tests"][test] | changes)
    found = decoded(case.alone(VIDEO), case.config, replace(options, most_points=ALL) if together else options)
    if together:
        best = np.argsort(-found.scores, kind="stable")[: options.most_points]
        found = type(found)(*(part[best] for part in found))
    found = chosen(found, options)
    duration_s = float(case.golden[f"in/{VIDEO}/duration"][0])
    found = found._replace(segments=in_seconds(found.segments, duration_s, case.row_s, centre))
    name = f"{CONFIG}/infer/{VIDEO}/{test}"
    listed = files[2]["decoding"][mistake]
    segments, scores = case.golden[f"{name}/segments"], case.golden[f"{name}/scores"]
    assert [len(scores), len(found.scores)] in (listed["count"], listed["count"][::-1])
    n = min(listed["count"])
    assert np.abs(found.scores[:n] - scores[:n]).max() == pytest.approx(
        listed["max_abs_score_by_rank"], rel=2e-2, abs=5e-6
    )
    apart_s = np.abs(found.segments[:n] - segments[:n]).mean()
    assert apart_s == pytest.approx(listed["mean_abs_segment_by_rank_s"], rel=2e-2)
    assert not all(output.agrees for output in _same(name, found, found, case.golden))


def published(files: Any, name: str) -> tuple[Any, dict[str, Any]]:
    described = files[0]["published_sizes_without_values"][name]
    return described, settings(described | {"init_loss_norm": described["train_cfg"]["init_loss_norm"]})


def test_the_published_options_are_those_of_the_configuration(files: Any) -> None:
    described, made = published(files, "thumos_i3d")
    assert made["ranges"] == actionformer.ActionFormerConfig(feature_dim=1, classes=1).ranges
    options = {name: value for name, value in described["test_cfg"].items() if name != "ext_score_file"}
    assert decoding(options) == actionformer.Decoding()


@pytest.mark.parametrize("name", ["thumos_i3d", "epic_slowfast_verb", "anet_tsp"])
def test_the_published_sizes_load(name: str, files: Any) -> None:
    described, options = published(files, name)
    tensors = {key: torch.empty(shape, device="meta") for key, (shape, *_) in described["keys"].items()}
    assert len(tensors) == 229
    network = network_of(tensors, **options)
    assert sum(each.numel() for each in network.parameters()) == described["parameters"]
    assert network.config.classes == described["args"]["num_classes"]
    assert network.config.feature_dim == described["args"]["input_dim"]
    assert network.config.levels == 6
