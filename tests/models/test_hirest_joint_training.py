"""Training of the joint model of HiREST: batches, rates, resuming, and that it learns what there is to learn."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice, pairwise
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from stepline.errors import ConfigError  # noqa: E402
from stepline.models import hirest_joint_training, training  # noqa: E402
from stepline.models.hirest_joint import Joint, Videos  # noqa: E402
from stepline.models.hirest_joint_captions import written  # noqa: E402
from stepline.models.hirest_joint_config import JointConfig  # noqa: E402
from stepline.models.hirest_joint_segments import between  # noqa: E402
from stepline.models.hirest_joint_training import Example, Tables, fit_joint, mixed  # noqa: E402
from stepline.models.training import loaded, restore  # noqa: E402
from tests.models.joint import SIZES, network  # noqa: E402

CONFIG = JointConfig(**SIZES)


def examples(n: int = 6, seed: int = 0, dtype: Any = np.float32) -> list[Example]:
    """Return videos of random rows; the first has no steps, the second two boundaries."""
    rng = np.random.default_rng(seed)
    made = []
    for number in range(n):
        frames = int(rng.integers(14, 20))
        bounds = sorted(map(int, rng.choice(frames, min(number, 1) * min(number + 1, 4), replace=False)))
        made.append(
            Example(
                features=rng.standard_normal((frames, SIZES["feature_dim"])).astype(dtype),
                query=rng.standard_normal(SIZES["text_dim"]).astype(dtype),
                speech=rng.standard_normal((frames, SIZES["asr_dim"])).astype(dtype),
                moment=(bounds[0], bounds[-1]) if bounds else (1, 9),
                boundaries=bounds,
                steps=[*pairwise(bounds)],
                captions=[rng.integers(1, 100, int(rng.integers(1, 9))).tolist() for _ in bounds[1:]],
            )
        )
    return made


def fit(path: Path, train: Sequence[Example] | None = None, **options: Any) -> Any:
    """Return the fitted tensors."""
    settings = {"epochs": 2, "learning_rate": 1e-3, "config": CONFIG, "val": examples(3, seed=1)} | options
    fit_joint(train=train or examples(), path=path, **settings)
    with loaded(path) as tensors:
        return tensors


def test_batches_of_all_tasks_come_in_the_released_order() -> None:
    sizes = 7, 12, 3
    epochs = mixed(sizes, 5, "proportional", 3)
    for epoch in range(2):
        batches = [batch.tolist() for batch in islice(epochs, 2 + 3 + 1)]
        tasks = [0 if batch[0] < 7 else 1 if batch[0] < 19 else 2 for batch in batches]
        expected = [0, 0, 1, 1, 1, 2]
        Random(epoch).shuffle(expected)
        assert tasks == expected[::-1]
        assert sorted(number for batch in batches for number in batch) == [*range(22)]
        assert all(max(batch) < (7, 19, 22)[task] for batch, task in zip(batches, tasks, strict=True))


def test_tasks_can_take_turns() -> None:
    batches = [batch.tolist() for batch in islice(mixed((7, 12, 3), 5, "alternating", 3), 3 * 6)]
    assert [batch[0] >= 7 and 1 + (batch[0] >= 19) for batch in batches] == [0, 1, 2] * 6
    assert Counter(number for batch in batches for number in batch if number >= 19) == {19: 6, 20: 6, 21: 6}
    first, second = [batch.tolist() for batch in islice(mixed((9, 9), 9, "alternating", 3), 2)]
    assert first != [number - 9 for number in second]
    two = [batch.tolist() for batch in islice(mixed((7, 0, 3), 5, "alternating", 3), 4)]
    assert [batch[0] >= 7 for batch in two] == [False, True, False, True]


def padded(some: Sequence[Example]) -> Videos:
    rows = [[torch.tensor(getattr(each, name)).float() for each in some] for name in ("features", "speech")]
    features, speech = (torch.nn.utils.rnn.pad_sequence(each, batch_first=True) for each in rows)
    query = torch.stack([torch.tensor(each.query).float() for each in some])
    return Videos(features, query, speech, torch.tensor([len(each.features) for each in some]))


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_a_batch_is_what_its_examples_make(dtype: Any) -> None:
    some, model = examples(dtype=dtype), network()
    tables = Tables(some, CONFIG)
    videos = [some[1], some[4], some[2]]
    assert tables.sizes == (6, 4 * 3 - 1, 1 + 4 * 3 - 1)
    expected = model.moment_loss(padded(videos), torch.tensor([each.moment for each in videos]))
    assert torch.equal(tables.loss(model, torch.tensor([1, 4, 2])), expected)
    third, fourth = some[2], some[3]
    video = padded([third, fourth])
    inside = between(
        torch.tensor([third.boundaries[1], fourth.boundaries[2]]),
        torch.tensor([third.moment[1], fourth.moment[1]]),
        video.features.shape[1],
    )
    ends = torch.zeros(inside.shape, dtype=torch.bool)
    ends[0, third.boundaries[:2]] = ends[1, fourth.boundaries[:3]] = True
    target = torch.tensor([third.boundaries[2], fourth.boundaries[3]])
    learned = torch.tensor([6 + 1, 6 + 2 + 2])
    assert torch.equal(tables.loss(model, learned), model.segment_loss(video, inside, ends, target))
    steps = model.sampled(video, torch.tensor([0, 1]), torch.tensor([third.steps[1], fourth.steps[0]]))
    captions = written([third.captions[1], fourth.captions[0]], CONFIG.words)
    said = torch.tensor([6 + 11 + 1 + 1, 6 + 11 + 1 + 2])
    assert torch.equal(tables.loss(model, said), model.caption_loss(steps, captions))


@pytest.mark.parametrize(
    "change",
    [
        {"moment": (2, 14)},
        {"boundaries": [-1, 3]},
        {"steps": [(3, 99)]},
        {"captions": []},
        {"speech": np.ones((3, 4))},
        {"speech": None},
    ],
    ids=lambda change: next(iter(change)),
)
def test_an_example_whose_parts_do_not_fit_is_refused(change: dict[str, Any]) -> None:
    one = replace(examples()[1], features=np.ones((14, 6)), speech=np.ones((14, 4)), steps=[(1, 2)], captions=[[5]])
    one = replace(one, moment=(1, 2), boundaries=[1, 2])
    assert Tables([one], CONFIG).sizes == (1, 0, 1)
    with pytest.raises(ValueError, match="example 0 has "):
        Tables([replace(one, **change)], CONFIG)


def test_the_rate_rises_and_falls_and_the_least_validation_loss_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    rates: list[float] = []
    update = training._update

    def noted(optimiser: Any, losses: Any, rate: float, clip: float) -> Any:
        assert isinstance(optimiser, torch.optim.AdamW)
        assert optimiser.param_groups[0]["weight_decay"] == 0.02
        assert clip == 3
        rates.append(rate)
        return update(optimiser, losses, rate, clip)

    monkeypatch.setattr(training, "_update", noted)
    tensors = fit(Path("a"), epochs=4, batch_size=4, warm_up=0.27, weight_decay=0.02, clip=3, val=examples(7, seed=1))
    updates = 4 * (2 + 3 + 3)
    up = [step / 8 for step in range(8)]
    assert rates == pytest.approx(
        [1e-3 * each for each in [*up, *((updates - step) / 24 for step in range(8, updates))]]
    )
    model, val = restore(Joint(CONFIG), tensors, "cpu"), Tables(examples(7, seed=1), CONFIG)
    with torch.no_grad():
        of_tasks = [
            [float(val.loss(model, batch)) for batch in numbers.split(4)]
            for numbers in (torch.arange(7), torch.arange(21, 36))
        ]
    loss = sum(sum(losses) / len(losses) for losses in of_tasks)
    assert val.sizes == (7, 14, 15)
    assert loss == pytest.approx(tensors["val_loss"].min())
    assert len(tensors["val_loss"]) == 4


def test_a_fit_begins_with_the_given_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[Any] = []
    monkeypatch.setattr(hirest_joint_training, "fit_head", lambda make, *_, **how: begun.append(make()))
    monkeypatch.setattr(hirest_joint_training, "load_clip4caption", lambda path, config: (path, config))
    for path in (None, Path("clip4caption")):
        fit_joint(CONFIG, examples(), examples(3, seed=1), Path("it"), clip4caption=path)
    assert begun[0].config == CONFIG
    assert begun[1] == (Path("clip4caption"), CONFIG)


def test_a_fit_has_the_batches_of_its_seed_in_the_asked_order(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[Any] = []
    monkeypatch.setattr(hirest_joint_training, "fit_head", lambda *_, batches, **how: begun.append(first(batches)))

    def first(batches: Iterator[Any]) -> list[list[int]]:
        return [batch.tolist() for batch in islice(batches, 8)]

    options: list[tuple[Any, int, int]] = [("proportional", 4, 0), ("proportional", 4, 1), ("alternating", 3, 1)]
    for mixing, size, seed in options:
        val, path = examples(3, seed=1), Path("it")
        fit_joint(CONFIG, examples(), val, path, mixing=mixing, batch_size=size, seed=seed)
        assert begun[-1] == first(mixed((6, 11, 12), size, mixing, seed))
    assert begun[0] != begun[1]


def test_what_a_task_has_no_part_in_is_left_alone() -> None:
    """torch's AdamW skips parameters without a gradient: they do not even decay."""
    plain = [replace(each, boundaries=(), steps=(), captions=()) for each in examples()]
    torch.manual_seed(2222)
    before = Joint(CONFIG).state_dict()
    assert Tables(plain, CONFIG).sizes == (6, 0, 0)
    fitted = fit(Path("a"), plain, epochs=1)
    same = {name.split(".")[0] for name, value in before.items() if np.array_equal(value, fitted[name])}
    assert same >= {"decoder", "boundary", "segment"}
    assert not {"frame", "query", "speech", "time"} & same


@pytest.mark.parametrize("killed_at", [5, 14])
def test_a_fit_that_was_killed_goes_on_to_the_same_bytes(killed_at: int, goes_on: Callable[..., int]) -> None:
    calls = goes_on(lambda path: fit(path, epochs=3, resume="it"), Tables, "loss", killed_at)
    assert calls == killed_at + 24 - (killed_at - 1) // 8 * 8


def test_each_option_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also for a fit that goes on: another one begins anew. The configuration is no part of ``resume``."""
    fit(Path("it"), epochs=1, resume="it")
    options: list[dict[str, Any]] = [{"mixing": "alternating"}, {"seed": 1}, {"batch_size": 3}, {"weight_decay": 10.0}]
    options += [{"warm_up": 0.5}, {"clip": 0.01}]
    fields = {"dropout": 0.4, "fusion": "sum", "padding": "masked", "caption_frames": "uniform"}
    options += [{"config": replace(CONFIG, **{key: value})} for key, value in fields.items()]  # type: ignore[arg-type]
    for number, option in enumerate(options):
        fit(Path(str(number)), epochs=1, resume="" if "config" in option else "it", **option)
        assert Path(str(number)).read_bytes() != Path("it").read_bytes(), option
    begun: list[str] = []
    monkeypatch.setattr(hirest_joint_training, "fit_head", lambda *_, resume, **how: begun.append(resume))
    own: list[dict[str, Any]] = [{"mixing": "alternating"}, {"weight_decay": 10.0}, {"warm_up": 0.5}, {"clip": 0.01}]
    for option in ({}, *own):
        fit_joint(CONFIG, examples(), examples(3, seed=1), Path("it"), resume="it", **option)
    assert len({*begun}) == 5
    fit_joint(CONFIG, examples(), examples(3, seed=1), Path("it"))
    assert not begun[-1]


def test_without_speech_nothing_is_asked_of_it() -> None:
    config = JointConfig(**SIZES, audio=False)
    deaf = [replace(each, speech=None) for each in examples()]
    assert not [name for name in fit(Path("a"), deaf, config=config, val=deaf, epochs=1) if name.startswith("speech")]


def test_without_steps_to_validate_there_is_no_best_epoch() -> None:
    with pytest.raises(ConfigError, match="^joint: no video of val has steps"):
        fit(Path("a"), val=examples(1))
    one = examples(2, seed=1)[1:]
    assert Tables(one, CONFIG).sizes == (1, 0, 1)
    assert np.isfinite(fit(Path("b"), val=one, epochs=1)["val_loss"]).all()
