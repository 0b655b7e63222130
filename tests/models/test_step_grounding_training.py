import itertools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from safetensors.torch import load_file  # noqa: E402

from stepline.errors import ConfigError, StoreError  # noqa: E402
from stepline.models import step_grounding_training  # noqa: E402
from stepline.models.grounding import GroundedVideo  # noqa: E402
from stepline.models.narrations import narrated_video  # noqa: E402
from stepline.models.step_grounding import Sentences, StepGrounding, per_second  # noqa: E402
from stepline.models.step_grounding_config import StepGroundingConfig  # noqa: E402
from stepline.models.step_grounding_training import Batches, fit_step_grounding, shown  # noqa: E402
from stepline.models.training import loaded, restore  # noqa: E402

CONFIG = StepGroundingConfig(feature_dim=6, text_dim=5, width=8, heads=2, joint_layers=1, positions=24)


def video(rows: int, candidates: Any, segments: Any = (), steps: Any = (), dim: int = 6) -> GroundedVideo:
    return GroundedVideo(
        rows=np.random.default_rng(rows).standard_normal((rows, dim)).astype(np.float32),
        duration_s=rows,
        candidates=np.array(candidates),
        segments_s=np.array(segments, np.float64).reshape(-1, 2),
        steps=np.array(steps, np.int64),
    )


VIDEOS = [
    video(12, [0, 1], [(2, 5.5)], [1]),
    video(40, [2, 3, 4], [(1, 9), (20, 31)], [2, 4]),
    video(7, [5]),
    video(30, [1, 0, 5], [(28, 30)], [5]),
    video(24, [3], [(0, 24)], [3]),
]
SENTENCES = [np.random.default_rng(9).standard_normal((n, 5)).astype(np.float32) for n in (1, 3, 1, 2, 1, 1)]


def test_a_second_shows_a_step_from_the_floor_of_its_start_to_the_ceiling_of_its_end() -> None:
    segments = [(1.0, 3.0), (4.6, 5.2), (0, 0.5), (7.5, 99), (2, 2)]
    found = shown(video(9, [7, 3, 8], segments, [3, 3, 7, 7, 8]))
    assert found.T.astype(int).tolist() == [
        [1, 0, 0, 0, 0, 0, 0, 1, 1],
        [0, 1, 1, 0, 1, 1, 0, 0, 0],
        [0, 0, 0, 0, 0, 0, 0, 0, 0],
    ]
    with pytest.raises(ValueError, match="^step 4 of a segment is none of the article's 1$"):
        shown(video(9, [3], [(1, 2)], [4]))


def batches() -> Batches:
    return Batches(VIDEOS, Sentences(SENTENCES), CONFIG.positions)


def test_windows_are_within_their_videos_and_positions_within_the_table() -> None:
    found = batches()
    seen: dict[int, set[tuple[int, int]]] = {}
    drawn = list(itertools.islice(found.drawn(2, seed=1), 600))
    for epoch in range(200):
        assert sorted(torch.cat(drawn[3 * epoch : 3 * epoch + 3])[:, 0].tolist()) == [0, 1, 2, 3, 4]
    for number, first, start in torch.cat(drawn).tolist():
        seen.setdefault(number, set()).add((first, start))
    assert seen[0] == {(0, start) for start in range(6)}
    assert seen[1] == {(first, 0) for first in range(17)}
    assert seen[2] == {(0, start) for start in range(3)}
    assert {first for first, _ in seen[3]} == set(range(7))
    assert seen[4] == {(0, 0)}
    nearly = Batches([video(20, [5])], Sentences(SENTENCES), CONFIG.positions).drawn(1, seed=1)
    assert {start for ((_, _, start),) in (each.tolist() for each in itertools.islice(nearly, 100))} == set(range(5))
    again = list(itertools.islice(batches().drawn(2, seed=1), 600))
    assert all(torch.equal(one, other) for one, other in zip(drawn, again, strict=True))


def test_what_is_learned_of_a_window_is_cut_as_its_rows_are() -> None:
    articles, learned = batches().given(torch.tensor([[1, 10, 0], [0, 0, 3]]))
    assert articles.start.tolist() == [0, 3]
    np.testing.assert_array_equal(articles.features[0], VIDEOS[1].rows[10:34])
    np.testing.assert_array_equal(learned[0], shown(VIDEOS[1])[10:34])
    assert learned.shape == (2, 24, 3)
    np.testing.assert_array_equal(learned[1, :12, :2], shown(VIDEOS[0]))
    assert not learned[1, 12:].any()
    assert not learned[1, :, 2].any()


def test_a_batch_in_parts_has_the_loss_and_the_gradient_of_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    model, found = StepGrounding(CONFIG), batches()
    batch = torch.tensor([[0, 0, 1], [1, 5, 0], [2, 0, 0], [3, 2, 0], [4, 0, 0]])
    results = []
    for at_once in (1 << 14, 60, 1):
        monkeypatch.setattr(step_grounding_training, "AT_ONCE", at_once)
        model.zero_grad()
        losses = list(found.losses(model, batch))
        for each in losses:
            each.backward()
        total = sum(losses)
        results.append((len(losses), total.item(), model.video_pre_proj.weight.grad.clone()))
    assert [count for count, *_ in results] == [1, 3, 5]
    for _, total, gradient in results[1:]:
        assert total == pytest.approx(results[0][1], rel=1e-5)
        torch.testing.assert_close(gradient, results[0][2], rtol=1e-4, atol=1e-6)
    whole = model.loss(*found.given(batch))
    assert results[0][1] == pytest.approx(whole.item(), rel=1e-5)


def test_a_batch_s_parts_are_of_like_lengths() -> None:
    found = batches()
    found.lengths = torch.tensor([1000, 100, 990, 110, 105])
    batch = torch.tensor([[n, 0, 0] for n in range(5)])
    parts = [part[:, 0].tolist() for part in found.parts(batch)]
    assert parts == [[1, 4, 3, 2, 0]]
    found.lengths *= 8
    assert [part[:, 0].tolist() for part in found.parts(batch)] == [[1, 4, 3], [2, 0]]


def fit(path: Path = Path("fit.safetensors"), **options: Any) -> dict[str, Any]:
    settings: dict[str, Any] = {"sentences": SENTENCES, "batch_size": 2, "epochs": 2, "seed": 3}
    fit_step_grounding(CONFIG, VIDEOS, path, **settings | options)
    return load_file(path)


def test_the_rate_rises_then_falls_by_a_cosine_and_norms_do_not_decay(monkeypatch: pytest.MonkeyPatch) -> None:
    rates: list[tuple[float, ...]] = []
    groups: list[Any] = []
    original = torch.optim.AdamW.step

    def step(self: Any, *args: Any) -> Any:
        rates.append(tuple(group["lr"] for group in self.param_groups))
        groups[:] = self.param_groups
        return original(self, *args)

    drawn, drawn_with = Batches.drawn, list[Any]()
    monkeypatch.setattr(Batches, "drawn", lambda self, *args: drawn_with.append(args) or drawn(self, *args))
    monkeypatch.setattr(torch.optim.AdamW, "step", step)
    fit(epochs=4, learning_rate=0.1, warm_up=4)
    assert drawn_with == [(2, 3)], "the seed draws the batches too"
    cosine = [0.05 * (1 + np.cos(np.pi * n / 8)) for n in range(8)]
    assert [one for one, _ in rates] == pytest.approx([0, 0.025, 0.05, 0.075, *cosine])
    assert all(one == other for one, other in rates)
    assert [group["weight_decay"] for group in groups] == [1e-5, 0]
    assert {each.dim() for each in groups[0]["params"]} == {2}
    assert {each.dim() for each in groups[1]["params"]} == {1}
    assert sum(len(group["params"]) for group in groups) == len(list(StepGrounding(CONFIG).parameters()))
    rates.clear()
    fit()
    assert [one for one, _ in rates[:3]] == pytest.approx([0, 1e-4 / 3, 2e-4 / 3])


def test_the_last_epoch_is_kept_with_the_loss_of_each_update() -> None:
    once, twice = fit(epochs=1), fit(epochs=2)
    assert twice["loss"].shape == (6,)
    assert once["loss"].shape == (3,)
    assert not torch.equal(once["video_pre_proj.weight"], twice["video_pre_proj.weight"])


def test_a_fit_that_was_killed_goes_on_to_the_same_bytes(goes_on: Callable[..., int]) -> None:
    assert goes_on(lambda path: fit(path, epochs=4, resume="it"), torch.optim.AdamW, "step", 8) == 8 + 6
    fit(Path("other"), epochs=4, seed=4)
    assert Path("other").read_bytes() != Path("whole").read_bytes()


@pytest.mark.parametrize("option", [{"weight_decay": 10.0}, {"warm_up": 1}, {"begin": Path("begun")}], ids=str)
def test_a_killed_fit_with_other_options_is_not_gone_on_with(
    option: dict[str, Any], goes_on: Callable[..., int]
) -> None:
    fit(Path("begun"), epochs=1)
    others = iter([{}, option, {}])
    goes_on(lambda path: fit(path, resume="it", **next(others)), torch.optim.AdamW, "step", 5)


def test_a_fit_begins_with_one_of_narrations() -> None:
    said = [(10.0 * n, 10.0 * n + 4, "words") for n in range(8)]
    rows = np.random.default_rng(0).standard_normal((90, 6)).astype(np.float32)
    videos = [narrated_video(rows, 89.5, said, first=0, window_s=20, seed=seed) for seed in range(4)]
    begun = Path("narrations.safetensors")
    spoken = [np.random.default_rng(n).standard_normal((1, 5)).astype(np.float32) for n in range(8)]
    narrated = [each for each in videos if each is not None]
    assert len(narrated) == 4
    fit_step_grounding(CONFIG, narrated, begun, sentences=spoken, batch_size=2, epochs=1)
    first = load_file(begun)
    kept = fit(begin=begun, epochs=1, learning_rate=0.0)
    assert all(torch.equal(each, first[name]) for name, each in kept.items() if name != "loss")
    moved = fit(begin=begun, epochs=1)
    assert not torch.equal(moved["video_pre_proj.weight"], first["video_pre_proj.weight"])
    with pytest.raises(StoreError, match="does not exist"):
        fit(begin=Path("nowhere.safetensors"))
    with pytest.raises(ConfigError, match="^narrations.safetensors is for another network: train it with these sizes "):
        fit_step_grounding(
            replace(CONFIG, positions=30), VIDEOS, Path("x"), sentences=SENTENCES, batch_size=2, begin=begun
        )


STEPS, DIM = 60, 12
PLANTED = StepGroundingConfig(feature_dim=DIM, text_dim=DIM, width=32, heads=4, joint_layers=2, positions=128)


def planted(videos: int, seed: int, told: bool) -> tuple[list[GroundedVideo], list[np.ndarray]]:
    """Return videos of 40 to 110 s and articles of 1 to 35 steps, whose rows show the text of the step of a second.

    Not told, the rows are in another order.
    """
    rng = np.random.default_rng(0)
    texts = rng.standard_normal((STEPS, 1, DIM)).astype(np.float32)
    rng, made = np.random.default_rng(seed), []
    for number in range(videos):
        n, steps = int(rng.integers(40, 111)), (1, 35)[number] if number < 2 else int(rng.integers(2, 12))
        article = rng.permutation(STEPS)[:steps]
        rows = 0.3 * rng.standard_normal((n, DIM)).astype(np.float32)
        done = np.sort(rng.permutation(steps)[: min(steps, 5)])
        starts = np.sort(rng.choice(n // 8, len(done), replace=False)) * 8
        for place, start in zip(done, starts, strict=True):
            rows[start : start + 6] += texts[article[place], 0]
        made.append(
            GroundedVideo(
                rows=rows if told else rng.permutation(rows),
                duration_s=n,
                candidates=article,
                segments_s=np.stack([starts, starts + 6], axis=1).astype(np.float64),
                steps=article[done],
            )
        )
    return made, list(texts)


@pytest.mark.slow
def test_what_is_planted_is_learned_and_shuffled_rows_are_not(tmp_path: Path) -> None:
    found = []
    for told in (True, False):
        train, sentences = planted(80, 1, told)
        path = tmp_path / f"{told}.safetensors"
        fit_step_grounding(
            PLANTED, train, path, sentences=sentences, batch_size=8, epochs=10, learning_rate=5e-3, warm_up=20
        )
        with loaded(path) as tensors:
            model = restore(StepGrounding(PLANTED), tensors, "cpu")
        right = []
        for each in planted(30, 2, told)[0]:
            truth, scores = shown(each), per_second(model, each, sentences)
            right += [truth[scores[:, k].argmax(), k] for k in range(truth.shape[1]) if truth[:, k].any()]
        found.append(float(np.mean(right)))
    assert found[0] > 0.8, found
    assert found[1] < 0.3, found
