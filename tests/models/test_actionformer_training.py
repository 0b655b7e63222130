"""Training of ActionFormer: crops, batches, rates, resuming, and that it learns what there is to learn."""

import math
from collections.abc import Callable
from dataclasses import replace
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from stepline.errors import ConfigError, StoreError  # noqa: E402
from stepline.models import training  # noqa: E402
from stepline.models.actionformer import ActionFormer  # noqa: E402
from stepline.models.actionformer_config import ActionFormerConfig, Decoding  # noqa: E402
from stepline.models.actionformer_grounding import ground, per_second  # noqa: E402
from stepline.models.actionformer_training import (  # noqa: E402
    Samples,
    cropped,
    decayed,
    fit_actionformer,
    rates,
)
from stepline.models.grounding import GroundedVideo  # noqa: E402
from stepline.models.training import loaded, restore  # noqa: E402
from tests.models.actionformer import SIZES, TEXTS, network, texts, videos  # noqa: E402

CONFIG = ActionFormerConfig(**SIZES)
LENGTHS = 40, 20, 32, 55, 9


def fit(path: Path, config: ActionFormerConfig = CONFIG, **options: Any) -> Any:
    """Return the fitted tensors."""
    settings = {"epochs": 2, "warmup_epochs": 1, "batch_size": 2, "learning_rate": 1e-3} | options
    fit_actionformer(config, settings.pop("videos", videos(*LENGTHS)), path, **settings)
    with loaded(path) as tensors:
        return tensors


def test_a_long_video_is_cropped_and_keeps_what_is_half_inside() -> None:
    torch.manual_seed(0)
    bounds = torch.tensor([[10.0, 20.0], [70.0, 71.0], [30.0, 90.0]])
    seen = set()
    for _ in range(300):
        crop = cropped(CONFIG, 100, bounds)
        assert 0 <= crop.start <= 68
        assert crop.stop - crop.start == 32
        first = bounds[:, 0].clamp(min=crop.start - 0.5)
        last = bounds[:, 1].clamp(max=crop.stop + 0.5)
        kept = [
            number
            for number in range(3)
            if last[number] - first[number] >= 0.5 * (bounds[number, 1] - bounds[number, 0])
        ]
        assert kept
        assert crop.kept.tolist() == kept
        assert torch.equal(crop.bounds, torch.stack((first, last), dim=1)[kept] - crop.start)
        seen.add(crop.start)
    assert len(seen) > 40


def test_a_short_video_keeps_nine_tenths_and_all_of_it_without_crops() -> None:
    torch.manual_seed(0)
    bounds = torch.tensor([[2.0, 6.0]])
    crops = [cropped(CONFIG, 20, bounds) for _ in range(100)]
    assert {crop.stop - crop.start for crop in crops} == {18, 19, 20}
    assert {crop.start for crop in crops} == {0, 1, 2}
    whole = cropped(replace(CONFIG, crop=None), 20, bounds)
    assert whole[:2] == (0, 20)
    assert torch.equal(whole.bounds, bounds)


def test_a_video_without_segments_is_cropped_too() -> None:
    crop = cropped(CONFIG, 100, torch.zeros(0, 2))
    assert crop.stop - crop.start == 32
    assert crop.bounds.shape == (0, 2)


@pytest.mark.parametrize("candidates", ["all", "article"])
def test_a_batch_is_what_its_crops_make(candidates: Any) -> None:
    config = ActionFormerConfig(**SIZES, candidates=candidates, crop=None)
    some = videos(*LENGTHS)
    samples = Samples(config, some)
    batch = samples.batch(torch.tensor([4, 1]))
    assert batch.features.shape == (2, 32, 6)
    assert batch.there.sum(dim=1).tolist() == [9, 20]
    assert torch.equal(batch.features[1, :20], torch.from_numpy(some[1].rows).float())
    assert batch.features[0, 9:].abs().max() == 0
    steps = batch.learned.marks[batch.learned.marks[:, 0] == 1][:, 2]
    if candidates == "all":
        assert batch.steps is batch.asked is None
    else:
        assert batch.steps is not None
        assert batch.asked is not None
        assert batch.steps.tolist() == sorted({*some[4].candidates, *some[1].candidates})
        assert [batch.steps[asked].tolist() for asked in batch.asked] == [some[n].candidates.tolist() for n in (4, 1)]
        steps = batch.steps[steps]
    assert {*steps.tolist()} <= {*some[1].steps.tolist()}
    assert len(steps)


def test_an_article_s_steps_learn_as_all_do_where_the_others_do_not_count() -> None:
    some, vectors = videos(*LENGTHS), texts()
    losses = []
    for candidates in ("all", "article"):
        model = network(sizes=TEXTS, candidates=candidates, crop=None)
        samples = Samples(model.config, some, vectors)
        batch = samples.batch(torch.arange(3, 5))
        if candidates == "all":
            asked = torch.stack([torch.isin(torch.arange(7), torch.from_numpy(each.candidates)) for each in some[3:]])
            batch = batch._replace(asked=asked)
        losses.append(samples.loss(model, batch, torch.tensor(9.0, dtype=torch.float64)).item())
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)


def test_rows_are_read_when_a_batch_needs_them(tmp_path: Path) -> None:
    class Rows:
        def __init__(self, rows: Any) -> None:
            self.rows, self.read = rows, 0

        def __len__(self) -> int:
            return len(self.rows)

        def __getitem__(self, part: slice) -> Any:
            self.read += 1
            return self.rows[part]

    kept = [Rows(video.rows) for video in videos(*LENGTHS)]
    some = [replace(video, rows=rows) for video, rows in zip(videos(*LENGTHS), kept, strict=True)]
    samples = Samples(CONFIG, some)
    assert [rows.read for rows in kept] == [0] * 5
    samples.batch(torch.tensor([3, 0]))
    assert [rows.read for rows in kept] == [1, 0, 0, 1, 0]


@pytest.mark.parametrize("change", [{"candidates": np.array([5, 7])}, {"steps": np.array([0, 6])}])
def test_steps_that_are_not_there_are_refused(change: dict[str, Any]) -> None:
    video = replace(videos(20)[0], candidates=np.array([2, 5]), steps=np.array([2, 5]))
    Samples(CONFIG, [video])
    with pytest.raises(ValueError, match="video 0 has other steps"):
        Samples(CONFIG, [replace(video, **{"steps": np.array([5, 5]), **change})])
    with pytest.raises(ValueError, match="needs the vectors"):
        Samples(ActionFormerConfig(**TEXTS), [video])


def test_the_rate_rises_and_falls_as_released() -> None:
    rate = rates(1e-3, 5, 20)
    assert [rate(update) for update in range(6)] == pytest.approx([0, 0.25e-3, 0.5e-3, 0.75e-3, 1e-3, 1e-3])
    for update in range(5, 20):
        cosine = 1e-8 + 0.5 * (1e-3 - 1e-8) * (1 + math.cos(math.pi * (update - 5) / 15))
        assert rate(update) == pytest.approx(cosine)
    assert rates(1e-3, 0, 20)(0) == 1e-3


def test_only_weights_of_convolutions_and_linear_maps_decay() -> None:
    for model in (network(relative=True, pyramid="fpn"), network(sizes=TEXTS)):
        decays, others = decayed(model, 0.05)
        assert (decays["weight_decay"], others["weight_decay"]) == (0.05, 0)
        modules = (torch.nn.Conv1d, torch.nn.Linear)
        expected = {id(each.weight) for each in model.modules() if isinstance(each, modules)}
        assert {id(each) for each in decays["params"]} == expected
        assert len(decays["params"]) + len(others["params"]) == len([*model.parameters()])


def test_what_no_option_says_is_as_released() -> None:
    defaults = signature(fit_actionformer).parameters
    assert (defaults["clip"].default, defaults["average"].default) == (1.0, 0.999)


def test_updates_are_clipped_and_the_average_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    states, rates_seen = [], []
    update, blend = training._update, training.blend

    def noted(optimiser: Any, losses: Any, rate: float, clip: float) -> Any:
        assert clip == 0.7
        assert [group["weight_decay"] for group in optimiser.param_groups] == [0.3, 0.0]
        rates_seen.append(rate)
        return update(optimiser, losses, rate, clip)

    def seen(average: Any, model: Any, share: float) -> None:
        assert share == 0.6
        states.append({name: value.clone() for name, value in model.state_dict().items()})
        blend(average, model, share)

    monkeypatch.setattr(training, "_update", noted)
    monkeypatch.setattr("stepline.models.actionformer_training.blend", seen)
    drawn, shuffled = list[Any](), training.shuffled
    monkeypatch.setattr(
        "stepline.models.actionformer_training.shuffled",
        lambda *args, full: drawn.append((*args, full)) or shuffled(*args, full=full),
    )
    found = fit(Path("a"), clip=0.7, weight_decay=0.3, average=0.6, warmup_epochs=2, seed=5)
    assert drawn == [(5, 2, 5, True)], "the seed draws the batches too"
    assert len(states) == (2 + 2) * 2
    assert rates_seen == [rates(1e-3, 4, 8)(number) for number in range(8)]
    assert len(found["loss"]) == 8
    torch.manual_seed(5)
    name = "class_head.output.weight"
    kept = ActionFormer(CONFIG).state_dict()[name]
    for state in states:
        kept = 0.6 * kept + 0.4 * state[name]
    np.testing.assert_allclose(found[name], kept, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(("killed_at", "with_texts"), [(3, False), (6, True)])
def test_a_fit_that_was_killed_goes_on_to_the_same_bytes(
    killed_at: int, with_texts: bool, goes_on: Callable[..., int]
) -> None:
    options: dict[str, Any] = {"epochs": 3, "resume": "it"}
    if with_texts:
        options |= {"config": ActionFormerConfig(**TEXTS, candidates="article"), "texts": texts()}
    calls = goes_on(lambda path: fit(path, **options), Samples, "batch", killed_at)
    assert calls == killed_at + 8 - (killed_at - 1) // 2 * 2


def test_each_option_counts() -> None:
    """Also for a fit that goes on: another one begins anew."""
    fit(Path("it"), epochs=1, resume="it")
    for number, option in enumerate(
        (
            *({"seed": 1}, {"batch_size": 4}, {"weight_decay": 10.0}, {"warmup_epochs": 0}),
            *({"clip": 0.001}, {"average": 0.5}),
            *({"config": replace(CONFIG, crop=None)}, {"config": replace(CONFIG, candidates="article")}),
            *({"config": replace(CONFIG, init_norm=2.0)}, {"config": replace(CONFIG, smoothing=0.2)}),
        )
    ):
        fit(Path(str(number)), epochs=1, resume="it", **option)
        assert Path(str(number)).read_bytes() != Path("it").read_bytes(), option


def test_a_fit_can_begin_with_another() -> None:
    first = fit(Path("first"), epochs=1)
    again = fit(Path("again"), begin=Path("first"), epochs=1, learning_rate=1e-12)
    name = "class_head.output.weight"
    np.testing.assert_allclose(again[name], first[name], atol=1e-6)
    with pytest.raises(StoreError, match="first"):
        fit(Path("other"), replace(CONFIG, classes=9), begin=Path("first"))


def test_too_few_videos_or_too_great_a_rate_are_one_line() -> None:
    with pytest.raises(ConfigError, match="^it: batch_size 6 is more than the 5 training videos; give a smaller one$"):
        fit(Path("a"), batch_size=6, what="it")
    with pytest.raises(ConfigError, match="learning_rate 1e\\+30: .*; give a smaller one"):
        fit(Path("a"), learning_rate=1e30, epochs=3)


def planted(n: int, seed: int, *, shuffled: bool = False) -> list[GroundedVideo]:
    """Return videos whose rows show, in noise, which of six steps they are of; of one or two steps each."""
    rng = np.random.default_rng(seed)
    shown = np.random.default_rng(99).standard_normal((6, 16))
    made = []
    for _ in range(n):
        rows = 0.5 * rng.standard_normal((64, 16))
        starts = np.array([int(rng.integers(2, 18)), int(rng.integers(34, 44))])
        ends = starts + rng.integers(6, 14, 2)
        candidates = np.sort(rng.choice(6, 4, replace=False))
        steps = rng.choice(candidates, 2, replace=False)
        for start, end, step in zip(starts, ends, steps, strict=True):
            rows[start:end] += shown[step]
        if shuffled:
            rows = rng.permutation(rows)
        segments_s = np.stack((starts, ends), axis=1).astype(float)
        made.append(
            GroundedVideo(
                rows=rows.astype(np.float32), duration_s=64.0, candidates=candidates, segments_s=segments_s, steps=steps
            )
        )
    return made


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("with_texts", [False, True])
def test_it_learns_what_is_planted_and_not_what_is_shuffled(with_texts: bool) -> None:
    sizes = {
        **SIZES,
        "feature_dim": 16,
        "max_length": 64,
        **dict.fromkeys(("embed", "pyramid_dim", "head_dim", "text_embed"), 32),
        **({"classes": None, "text_dim": 5} if with_texts else {"classes": 6}),
    }
    config, vectors = ActionFormerConfig(**sizes, init_norm=50.0), texts(6) if with_texts else None
    hits = {}
    for shuffled in (False, True):
        path = Path(f"{shuffled}.safetensors")
        settings: dict[str, Any] = {
            "learning_rate": 2e-3,
            "epochs": 9,
            "warmup_epochs": 1,
            "batch_size": 8,
            "average": 0.9,
        }
        fit_actionformer(config, planted(96, 0, shuffled=shuffled), path, texts=vectors, **settings)
        with loaded(path) as tensors:
            model = restore(ActionFormer(config), tensors, "cpu")
        found, seconds = [], []
        for video in planted(16, 1, shuffled=shuffled):
            made = ground(model, video, vectors, settings=Decoding())
            sure = per_second(model, video, vectors)
            for (start_s, end_s), step in zip(video.segments_s, video.steps, strict=True):
                best = np.flatnonzero(made.step == step)[:1]
                shared = np.minimum(made.end_s[best], end_s) - np.maximum(made.start_s[best], start_s)
                union = np.maximum(made.end_s[best], end_s) - np.minimum(made.start_s[best], start_s)
                found.append(bool((shared / union > 0.5).any()))
                second = int(sure[:, video.candidates.tolist().index(step)].argmax())
                seconds.append(start_s <= second < end_s)
        hits[shuffled] = np.mean(found), np.mean(seconds)
    assert min(hits[False]) > 0.75, hits
    assert max(hits[True]) < 0.5, hits
