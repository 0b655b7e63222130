"""Training of UMT: samples, batches, resuming, and that it learns what there is to learn."""

from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from stepline.errors import ConfigError  # noqa: E402
from stepline.models import training, umt_training  # noqa: E402
from stepline.models.training import loaded, restore  # noqa: E402
from stepline.models.umt import Umt  # noqa: E402
from stepline.models.umt_config import UmtConfig  # noqa: E402
from stepline.models.umt_grounding import ground  # noqa: E402
from stepline.models.umt_moments import targets  # noqa: E402
from stepline.models.umt_training import POOL, Samples, bucketed, fit_umt  # noqa: E402
from tests.models.umt import SIZES, network, video  # noqa: E402

CONFIG = UmtConfig(**SIZES)
WORDS = [np.random.default_rng(step).standard_normal((1 + step % 3, 5)).astype(np.float32) for step in range(8)]


def videos(n: int = 5) -> list[Any]:
    """Return videos of random rows; the article of each has a step that it does not show, and one with two segments."""
    rng = np.random.default_rng(0)
    made = []
    for number in range(n):
        rows = rng.standard_normal((9 + number, 6)).astype(np.float16)
        segments_s = [[6.0, 8.0], [0.25, 2.0], [3.0, 5.5]]
        made.append(video(rows, [5, 1, number % 2 + 2], segments_s, [1, 5, 5]))
    return made


def fit(path: str | Path, **options: Any) -> bytes:
    settings = {"config": CONFIG, "videos": videos(), "words": WORDS, "epochs": 2, "batch_size": 4} | options
    fit_umt(path=Path(path), **settings)
    return Path(path).read_bytes()


def test_a_sample_is_a_step_that_a_video_shows_with_all_its_segments() -> None:
    samples = Samples(videos(2), WORDS, CONFIG)
    found = [(each.video, each.step, each.segments_s.tolist()) for each in samples.samples]
    first = [(5, [[0.25, 2.0], [3.0, 5.5]]), (1, [[6.0, 8.0]])]
    assert found == [(number, *each) for number in (0, 1) for each in first]
    assert samples.lengths.tolist() == [9, 9, 10, 10]


def test_a_batch_is_what_its_samples_make() -> None:
    some = videos(3)
    queries, saliency, learned = Samples(some, WORDS, CONFIG).batch(torch.tensor([4, 1]))
    assert torch.equal(queries.rows[0], torch.from_numpy(some[2].rows).float())
    assert torch.equal(queries.rows[1, :9], torch.from_numpy(some[0].rows).float())
    assert not queries.rows[1, 9:].any()
    assert queries.there.sum(dim=1).tolist() == [11, 9]
    assert queries.said.tolist() == [[True, True, True], [True, True, False]]
    assert torch.equal(queries.words[0], torch.from_numpy(WORDS[5]))
    assert torch.equal(queries.words[1, :2], torch.from_numpy(WORDS[1]))
    assert saliency[0].nonzero()[:, 0].tolist() == [0, 1, 3, 4]
    assert saliency[1].nonzero()[:, 0].tolist() == [6, 7]
    expected = targets([torch.tensor([[0.25, 2.0], [3.0, 5.5]]), torch.tensor([[6.0, 8.0]])], 11, CONFIG)
    for ours, theirs in zip(learned[:4], expected[:4], strict=True):
        assert torch.equal(ours, theirs)
    assert learned.moments == 3
    ones = Samples(some, WORDS, replace(CONFIG, saliency="ones")).batch(torch.tensor([4, 1]))[1]
    assert torch.equal(ones, queries.there.float())
    assert Samples(some, WORDS, CONFIG).batch(torch.tensor([0, 1]))[0].rows.shape[1] == 9, "the longest of the batch"
    middle = video(np.zeros((4, 6), np.float16), [5], [[0.5, 2.5]], [5])
    assert Samples([middle], WORDS, CONFIG).batch(torch.tensor([0]))[1].tolist() == [[1, 1, 0, 0]]


def test_the_loss_of_a_batch_is_the_sum_of_its_parts() -> None:
    model, samples, batch = network(), Samples(videos(), WORDS, CONFIG), torch.tensor([0, 3, 6])
    queries, saliency, learned = samples.batch(batch)
    parts = model.losses(model(queries), queries.there, saliency, learned)
    assert samples.loss(model, batch).item() == pytest.approx(sum(each.item() for each in parts.values()))


def test_epochs_are_permutations_of_batches_of_about_one_length() -> None:
    lengths = torch.randint(60, 1000, (1500,), generator=torch.Generator().manual_seed(0))
    batches = bucketed(lengths, 16, seed=3)
    epochs = [[*islice(batches, 94)] for _ in range(2)]
    for epoch in epochs:
        assert torch.equal(torch.cat(epoch).sort().values, torch.arange(1500))
        assert sorted(len(each) for each in epoch) == [12, *[16] * 93]
        wide = [int(lengths[each].max() - lengths[each].min()) for each in epoch]
        assert np.median(wide) < 1.5 * (1000 - 60) / POOL
        firsts = torch.stack([lengths[each].float().mean() for each in epoch])
        assert abs(np.corrcoef(firsts, np.arange(94))[0, 1]) < 0.3
        assert (firsts[:POOL].diff() < 0).any()
    assert {*map(tuple, map(torch.Tensor.tolist, epochs[0]))}.isdisjoint(
        map(tuple, map(torch.Tensor.tolist, epochs[1]))
    )
    again = [*islice(bucketed(lengths, 16, seed=3), 94)]
    assert all(torch.equal(one, two) for one, two in zip(epochs[0], again, strict=True))
    assert not torch.equal(next(bucketed(lengths, 16, seed=4)), epochs[0][0])


def test_the_rate_is_constant_and_the_last_epoch_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    update, kept = training._update, {}

    def noted(optimiser: Any, losses: Any, rate: float, clip: float) -> Any:
        group = optimiser.param_groups[0]
        seen.append((type(optimiser), rate, group["weight_decay"], clip))
        done = update(optimiser, losses, rate, clip)
        kept["offset"] = group["params"][-1].detach().clone()
        return done

    drawn: list[Any] = []
    monkeypatch.setattr(training, "_update", noted)
    monkeypatch.setattr(umt_training, "bucketed", lambda _, *args: drawn.append(args) or bucketed(_, *args))
    fit("a", weight_decay=0.02, learning_rate=0.01, seed=5)
    assert drawn == [(4, 5)], "the seed draws the batches too"
    assert seen == [(torch.optim.Adam, 0.01, 0.02, float("inf"))] * 2 * 3
    with loaded(Path("a")) as tensors:
        assert len(tensors["loss"]) == 6
        assert torch.equal(torch.from_numpy(tensors["offset.bias"]), kept["offset"])


@pytest.mark.parametrize("killed_at", [2, 8])
def test_a_fit_that_was_killed_goes_on_to_the_same_bytes(killed_at: int, goes_on: Callable[..., int]) -> None:
    calls = goes_on(lambda path: fit(path, epochs=3, resume="it"), Samples, "loss", killed_at)
    assert calls == killed_at + 9 - (killed_at - 1) // 3 * 3


@pytest.mark.parametrize("option", [{"weight_decay": 10.0}, {"config": replace(CONFIG, saliency="ones")}], ids=str)
def test_a_killed_fit_with_other_options_is_not_gone_on_with(
    option: dict[str, Any], goes_on: Callable[..., int]
) -> None:
    others = iter([{}, option, {}])
    goes_on(lambda path: fit(path, resume="it", **next(others)), Samples, "loss", 5)


def test_each_option_counts() -> None:
    whole = fit("it", epochs=1)
    options: list[dict[str, Any]] = [{"seed": 1}, {"batch_size": 3}, {"weight_decay": 10.0}, {"learning_rate": 1e-4}]
    fields = {"padding": "masked", "saliency": "ones", "unit": 2.0, "video_dropout": 0.0, "window_weight": 9.0}
    options += [{"config": replace(CONFIG, **{key: value})} for key, value in fields.items()]  # type: ignore[arg-type]
    for option in options:
        assert fit("other", epochs=1, **option) != whole, option


def test_what_cannot_be_learned_is_one_line() -> None:
    unseen = [video(each.rows, [5, 1, 2], [], []) for each in videos()]
    with pytest.raises(ConfigError, match="^umt: no video has a segment of a step of its article; take more videos"):
        fit("a", videos=unseen)
    with pytest.raises(ValueError, match="step 5 has no words"):
        fit("a", words=[each[:0] if number == 5 else each for number, each in enumerate(WORDS)])
    with pytest.raises(ConfigError, match="learning_rate 1e"):
        fit("a", learning_rate=1e30)


CLASSES = 6


def planted(seed: int, n: int, *, shuffled: bool = False) -> list[Any]:
    """Videos in which two of the steps of the article are shown, each once, in rows that point to the step."""
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(n):
        length = int(rng.integers(24, 33))
        first, second = rng.choice(CLASSES, 2, replace=False).tolist()
        bounds = np.sort(rng.choice(np.arange(1, length - 1, 2), 4, replace=False))
        rows = 0.1 * rng.standard_normal((length, CLASSES))
        for step, (start, end) in zip((first, second), bounds.reshape(2, 2), strict=True):
            rows[start:end, step] += 1
        seen = (rng.permutation(rows) if shuffled else rows).astype(np.float32)
        made.append(video(seen, [first, second], bounds.reshape(2, 2), [first, second]))
    return made


def found(model: Umt, made: list[Any], words: Any) -> float:
    """Return the part of steps whose best segment overlaps the annotated one by more than half."""
    right = []
    for each in made:
        said = ground(model, each, words)
        for step, (start_s, end_s) in zip(each.steps, each.segments_s, strict=True):
            best = np.flatnonzero(said.step == step)[0]
            both = min(end_s, said.end_s[best]) - max(start_s, said.start_s[best])
            either = max(end_s, said.end_s[best]) - min(start_s, said.start_s[best])
            right.append(both / either > 0.5)
    return float(np.mean(right))


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("shuffled", [False, True])
def test_planted_steps_are_found_in_new_videos_and_not_where_rows_are_shuffled(shuffled: bool) -> None:
    """A query has a word of its step and one that all have: rows differ by which of them they attend to."""
    sizes: dict[str, Any] = SIZES | {"feature_dim": CLASSES, "text_dim": CLASSES + 1, "hidden": 32, "feedforward": 32}
    config = UmtConfig(**sizes, dropout=0.0, video_dropout=0.0, text_dropout=0.0)
    vectors = np.eye(CLASSES + 1, dtype=np.float32)
    words = [vectors[[step, CLASSES]] for step in range(CLASSES)]
    options: dict[str, Any] = {"epochs": 40, "batch_size": 16, "learning_rate": 3e-3}
    fit_umt(config, planted(0, 128, shuffled=shuffled), Path("fit"), words=words, **options)
    with loaded(Path("fit")) as tensors:
        model = restore(Umt(config), tensors, "cpu")
    score = found(model, planted(1, 32, shuffled=shuffled), words)
    assert score < 0.35 if shuffled else score > 0.65
