from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from stepline.benchmark import UnavailableError
from stepline.benchmarks.oepp.features import vectors
from stepline.benchmarks.oepp.inputs import OeppInputs
from stepline.benchmarks.oepp.kinds import Plan
from stepline.benchmarks.oepp.methods import matching, trained
from stepline.benchmarks.oepp.methods.frequent import MostFrequent
from stepline.benchmarks.oepp.methods.heads import Heads
from stepline.benchmarks.oepp.methods.matching import Matching
from stepline.benchmarks.oepp.methods.observations import Observations
from stepline.benchmarks.oepp.methods.pdpp import Pdpp
from stepline.benchmarks.oepp.windows import Window
from stepline.datasets.oepp import Step
from stepline.errors import ConfigError, StoreError
from stepline.metrics.plans import GUESS
from stepline.needs import Need
from tests.benchmarks.oepp.conftest import inputs
from tests.benchmarks.oepp.synthetic import CONFIG


def method(of: OeppInputs) -> Any:
    """Return the method of an entry, as a verb makes it."""
    return of.benchmark.method(of.entry.kind)()


def predicted(of: OeppInputs, *fits: Path) -> list[Plan]:
    return list(method(of).predict(of, fits))


def fit(of: OeppInputs, seed: int, path: Path) -> None:
    method(of).fit(of, seed, path)


def window(*actions: str) -> Window:
    step = Step(action=actions[0], start_s=0, end_s=1)
    return Window(video="COIN_a", index=0, actions=actions, start=step, end=step, padded=False)


@pytest.mark.usefixtures("releases")
class TestRandom:
    @pytest.mark.parametrize("entry", ["random-t5", "random-whole"])
    def test_it_guesses_every_step_of_every_window(self, entry: str) -> None:
        of = inputs(entry)
        made = predicted(of)
        listed = [(part, each) for part in of.entry.splits for each in of.truth(part)]
        for p, (part, each) in zip(made, listed, strict=True):
            assert (p.seed, p.split, p.video, p.index) == (0, part, each.video, each.index)
            assert p.plan == (GUESS,) * len(each.actions)


@pytest.mark.usefixtures("banks")
def test_windows_that_begin_after_the_features_are_counted() -> None:
    of = inputs("matching-t3", windows={"rows": "within"})
    last = max(of.truth("base"), key=lambda each: each.end.start_s)
    (block,) = of.bank.blocks[last.video]
    length = int(last.start.start_s)
    of.bank.blocks[last.video] = [replace(block, length=length)]
    del of.bank.blocks[next(each.video for each in of.truth("base") if each.video != last.video)]
    late = sum(each.video == last.video and int(each.end.start_s) >= length for each in of.truth("base"))
    made = method(of)
    list(made.predict(of, []))
    assert made.selection == f"left out: {late} windows that begin after the end of their video's features"


class TestFrequent:
    def plans(self, train: list[Window], *asked: Window, pool: str = "abcd") -> list[tuple[int, ...]]:
        of: Any = SimpleNamespace(used={"train": train}.__getitem__, pool=lambda split: tuple(pool))
        return MostFrequent().plans(of, "novel", asked, None)

    def test_it_is_the_plan_that_occurs_most_often(self) -> None:
        train = [window("a", "b"), window("c", "d"), window("c", "d")]
        assert self.plans(train, window("a", "a"), window("b", "b")) == [(2, 3), (2, 3)]

    def test_of_equals_it_is_the_first_by_its_actions(self) -> None:
        train = [window("d", "a"), window("b", "d"), window("b", "c"), window("d", "a"), window("b", "d")]
        assert self.plans(train, window("a", "a"), pool="dcba") == [(2, 0)]

    def test_an_action_that_is_not_in_the_pool_is_a_guess(self) -> None:
        assert self.plans([window("a", "x", "b")], window("a", "a", "a")) == [(0, GUESS, 1)]

    def test_without_a_plan_of_that_length_it_is_a_shorter_one_and_guesses(self) -> None:
        train = [window("a"), window("b", "c"), window("b", "c"), window("d", "d", "d", "d", "d")]
        assert self.plans(train, *(window(*"a" * n) for n in (1, 2, 4, 6))) == [
            (0,),
            (1, 2),
            (1, 2, GUESS, GUESS),
            (3, 3, 3, 3, 3, GUESS),
        ]
        assert self.plans([window("b", "c"), window("a", "d", "d")], window("a")) == [(1,)]

    @pytest.mark.usefixtures("releases")
    def test_it_counts_training_windows(self) -> None:
        of = inputs("frequent-t3")
        counts = Counter(each.actions for each in of.truth("train"))
        actions = min(counts, key=lambda plan: (-counts[plan], plan))
        made = method(of)
        for p in made.predict(of, []):
            pool = of.pool(p.split)
            assert p.plan == tuple(pool.index(a) if a in pool else GUESS for a in actions)
        assert made.selection == "fitted on 35 of 35 training windows"
        half = inputs("frequent-t3", subset={"fraction": 0.5, "seed": 0})
        assert len(list(made.predict(half, []))) < 35 > len(half.used("train")) > 0
        assert made.selection == f"fitted on {len(half.used('train'))} of 35 training windows"


class TestMatching:
    """Observations and texts in the plane, by their angles in degrees and their lengths."""

    def plan(
        self,
        start: list[tuple[float, float]],
        end: list[tuple[float, float]],
        text: list[tuple[float, float]],
        horizon: int = 4,
        similarity: str = "cosine",
    ) -> tuple[int, ...]:
        def polar(listed: list[tuple[float, float]]) -> Any:
            angles, lengths = np.deg2rad([each[0] for each in listed]), np.array([each[1] for each in listed])
            return (lengths * [np.cos(angles), np.sin(angles)]).T.astype(np.float32)

        rows = np.concatenate([polar([*start, *end]), np.zeros((1, 2), np.float32)])
        seen = SimpleNamespace(of=lambda inputs, windows: Observations(rows, np.arange(6)[None]))
        of: Any = SimpleNamespace(
            options={"matching": {"similarity": similarity}}, entry=SimpleNamespace(settings={"horizon": horizon})
        )
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(matching, "Observations", seen)
            patch.setattr(matching, "vectors", lambda inputs, split: polar(text))
            (plan,) = Matching().plans(of, "base", [window("a")], None)
        return plan

    def test_ends_are_nearest_to_ends_and_the_middle_is_in_order_of_similarity(self) -> None:
        text = [(100.0, 1.0), (0.0, 1.0), (52.0, 1.0), (35.0, 1.0), (60.0, 1.0)]
        assert self.plan([(0, 1)] * 3, [(100, 1)] * 3, text, horizon=5) == (1, 2, 4, 3, 0)
        assert self.plan([(0, 1)] * 3, [(100, 1)] * 3, text, horizon=3) == (1, 2, 0)
        assert self.plan([(0, 1)] * 3, [(100, 1)] * 3, text, horizon=1) == (1,)

    def test_an_observation_is_the_mean_of_its_three_rows(self) -> None:
        text = [(0.0, 1.0), (90.0, 1.0), (180.0, 1.0)]
        assert self.plan([(90, 1), (90, 1), (0, 2.5)], [(0, 1), (180, 1), (180, 1)], text, 3) == (0, 1, 2)

    def test_of_equals_it_is_the_lowest(self) -> None:
        text = [(50.0, 1.0), (10.0, 2.0), (10.0, 2.0), (-10.0, 2.0)]
        assert self.plan([(10, 1)] * 3, [(0, 1)] * 3, text) == (1, 1, 2, 1)
        text = [(10.0, 2.0) if number % 2 else (50.0, 1.0) for number in range(60)]
        assert self.plan([(10, 1)] * 3, [(0, 1)] * 3, text, horizon=7) == (1, 1, 3, 5, 7, 9, 1)

    def test_cosine_and_dot_differ_by_the_texts_lengths(self) -> None:
        text, seen = [(0.0, 1.0), (30.0, 5.0)], [(0.0, 1.0)] * 3
        assert self.plan(seen, seen, text, 3) == (0, 0, 0)
        assert self.plan(seen, seen, text, 3, similarity="dot") == (1, 1, 1)

    def test_other_dimensions_are_a_need(self, banks: None) -> None:
        import json

        of = inputs("matching-t3")
        Path("own.json").write_text(json.dumps({a: [[1.0, 2.0]] for part in of.entry.splits for a in of.pool(part)}))
        other = {"videoclip": {"video": "planted", "text": "./own.json"}}
        with pytest.raises(UnavailableError) as raised:
            predicted(inputs("matching-t3", features=other))
        assert raised.value.needs == (Need("config", "oepp.features.videoclip.text", "PATH"),)


@pytest.mark.usefixtures("banks")
class TestTrained:
    @pytest.fixture(autouse=True)
    def _torch(self) -> None:
        pytest.importorskip("torch")

    def test_seeds_give_other_fits_and_one_seed_the_same_bytes(self) -> None:
        of = inputs("mlp-t3", heads={**CONFIG["heads"], "epochs": 2})
        fits = [Path("0.safetensors"), Path("1.safetensors")]
        for seed, path in enumerate(fits):
            fit(of, seed, path)
        fit(of, 1, Path("again"))
        assert fits[1].read_bytes() == Path("again").read_bytes() != fits[0].read_bytes()
        listed = [(part, each.video, each.index) for part in of.entry.splits for each in of.used(part)]
        made = method(of)
        plans = list(made.predict(of, fits))
        assert [(p.seed, p.split, p.video, p.index) for p in plans] == [(s, *each) for s in (0, 1) for each in listed]
        alone = [predicted(replace_seeds(of, seed), path) for seed, path in enumerate(fits)]
        assert plans == [*alone[0], *alone[1]]
        assert [p.plan for p in alone[0]] != [p.plan for p in alone[1]]
        assert made.selection == "fitted on 35 of 35 training windows; epoch with the best success rate on val"
        short = next(each.video for each in of.used("train") if each.padded)
        del of.bank.blocks[short]
        assert list(made.predict(of, fits)) == plans
        assert made.selection.startswith("fitted on 34 of 35 training windows")

    def test_a_fit_reads_no_test_video(self) -> None:
        heads = {**CONFIG["heads"], "epochs": 1}
        fit(inputs("transformer-t3", heads=heads), 0, Path("whole"))
        of = inputs("transformer-t3", heads=heads)
        for part in ("base", "novel"):
            for each in of.truth(part):
                of.bank.rows[each.video] = of.bank.rows[each.video] * 0
        fit(of, 0, Path("without"))
        assert Path("without").read_bytes() == Path("whole").read_bytes()

    @pytest.mark.parametrize(
        ("entry", "planner"),
        [("mlp-t4", "MlpPlanner"), ("transformer-t3-ce", "TransformerPlanner"), ("pdpp-t3", "PlanDiffusion")],
    )
    def test_a_fit_is_asked_for_as_configured(self, entry: str, planner: str, monkeypatch: pytest.MonkeyPatch) -> None:
        import torch

        from stepline.models import plan_loss
        from stepline.models.diffusion import averaging, schedule

        asked: dict[str, Any] = {}

        def watched(build: Any, losses: Any, val_loss: Any, size: int, path: Path, **options: Any) -> None:
            asked.update(options, model=build(), losses=losses, val_loss=val_loss, size=size)

        monkeypatch.setattr(trained, "fit_head", watched)
        block = {"epochs": 7, "batch_size": 9, "learning_rate": 0.5, "weight_decay": 0.25}
        loss = {"ce_mode": "plain", "temperature": 0.5, "ce_weight": 3.0, "mse_weight": 0.7}
        name = "balanced_loss" if entry == "pdpp-t3" else "plan_loss"
        given: dict[str, Any] = {}
        learned: list[Any] = []

        def of_plans(x: Any, text: Any, labels: Any, **options: Any) -> Any:
            given.update(options)
            learned.extend(text[labels].tolist())
            return x.sum()

        monkeypatch.setattr(plan_loss, name, of_plans)
        monkeypatch.setattr(Pdpp if entry == "pdpp-t3" else Heads, "vectors", all_but_one_step)
        of = inputs(entry, heads=block, loss=loss)
        fit(of, 4, Path("f"))
        assert (asked["size"], asked["seed"]) == (len(of.used("train")), 4)
        assert type(asked["model"]).__name__ == planner
        assert asked["resume"]
        list(asked["losses"](asked["model"], torch.tensor([1, 0])))
        right = np.array(of.labels("train", of.used("train")))[[1, 0]]
        assert learned == vectors(of, "train")[right].tolist()
        if entry == "pdpp-t3":
            options = CONFIG["pdpp"]
            assert {key: asked[key] for key in ("epochs", "steps", "batch_size", "learning_rate")} == {
                key: options[key] for key in ("epochs", "steps", "batch_size", "learning_rate")
            }
            share = averaging(options["ema_decay"], options["ema_start"], options["ema_every"])
            assert [asked["average"](k) for k in range(1, 30)] == [share(k) for k in range(1, 30)]
            assert [asked["factor"](e / 9) for e in range(18)] == [schedule(2)(e / 9) for e in range(18)]
            assert asked.get("weight_decay", 0) == 0
            assert (asked["model"].network.width, asked["model"].steps) == (32, 10)
            assert given == loss
        else:
            assert {key: asked[key] for key in block} == block
            assert asked.keys() & {"steps", "average", "factor"} == set()
            assert given == {**loss, "loss": of.entry.settings["loss"]}
        twin = max(of.pool("val").index(action) for action in ("make the detergent", "make the  detergent"))
        labels = of.labels("val", of.used("val"))
        wrong = {0, *(place for place, plan in enumerate(labels) if twin in plan)}  # read as the first of the two
        assert asked["val_loss"](asked["model"]) == pytest.approx(len(wrong) / len(labels))
        options = of.entry.kind.options
        truth = {split: of.truth(split) for split in ("train", "val")}
        first, *others = truth["train"]
        resumes = [asked["resume"]]
        for changes, windows in (
            ({options: of.options[options] | {"epochs": 8}}, {}),
            ({}, {"train": others}),
            ({}, {"train": [replace(first, index=99), *others]}),
            ({}, {"val": truth["val"][1:]}),
        ):
            other = inputs(entry, **{"heads": block, "loss": loss, **changes})
            other._truth.update(truth | windows)
            fit(other, 4, Path("f"))
            resumes.append(asked["resume"])
        assert len({*resumes}) == 5

    def test_what_is_noised_is_an_option(self, monkeypatch: pytest.MonkeyPatch) -> None:
        import torch

        from stepline.models.diffusion import PlanDiffusion

        seen: list[Any] = []

        def watched(build: Any, losses: Any, *_: Any, **__: Any) -> None:
            list(losses(build(), torch.arange(3)))

        monkeypatch.setattr(trained, "fit_head", watched)
        monkeypatch.setattr(
            PlanDiffusion, "forward", lambda self, x, actions=None: seen.append(actions) or torch.ones(3, 3, 8)
        )
        for actions in ("zeros", "text"):
            fit(of := inputs("pdpp-t3", pdpp={**CONFIG["pdpp"], "actions": actions}), 0, Path("f"))
        assert seen[0] is None
        text = vectors(of, "train")
        labels = of.labels("train", of.used("train"))[:3]
        assert np.array_equal(seen[1].numpy(), text[np.array(labels)])

    def test_plans_are_made_of_the_noise_of_the_configured_seed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        import torch

        from stepline.models.diffusion import PlanDiffusion

        monkeypatch.setattr(PlanDiffusion, "sample", lambda self, observed, noise, n_steps: noise + 100 * n_steps)
        found = []
        for options in ({}, {}, {"sampling_seed": 9}, {"sampling_steps": 4}):
            torch.randn(3)
            of = inputs("pdpp-t3", pdpp={**CONFIG["pdpp"], **options})
            samples = trained.Samples.of(of, "val", of.used("val"))
            found.append(Pdpp().vectors(of, Pdpp().build(of, samples), samples))
        assert torch.equal(found[0], found[1])
        assert found[0].mean() == pytest.approx(500, abs=1)
        assert not torch.equal(found[0], found[2])
        assert torch.allclose(found[3], found[0] - 100, atol=1e-3)

    @pytest.mark.parametrize("entry", ["mlp-t3", "pdpp-t3"])
    def test_a_fit_that_diverges_is_one_line(self, entry: str) -> None:
        blocks = {block: {**CONFIG[block], "learning_rate": 1e30, "epochs": 2} for block in ("heads", "pdpp")}
        with pytest.raises(ConfigError, match=r"^learning_rate 1e\+30: no validation loss is finite"):
            fit(inputs(entry, **blocks), 0, Path("f"))
        assert not Path("f").exists()

    def test_an_absent_or_damaged_checkpoint_is_one_line(self) -> None:
        of = replace_seeds(inputs("mlp-t3"), 0)

        with pytest.raises(StoreError, match="0.safetensors does not exist: run `stepline fit`"):
            predicted(of, Path("0.safetensors"))
        Path("0.safetensors").write_bytes(b"x")
        with pytest.raises(StoreError, match=r"^0.safetensors is damaged \([^\n]+\): remove it and run `stepline fit`"):
            predicted(of, Path("0.safetensors"))
        other = inputs("pdpp-t3", pdpp={**CONFIG["pdpp"], "epochs": 1, "steps": 1})
        fit(other, 0, Path("0.safetensors"))
        with pytest.raises(StoreError, match=r"^0.safetensors is damaged \([^\n]+\): remove it and run `stepline fit`"):
            predicted(of, Path("0.safetensors"))


def replace_seeds(of: OeppInputs, *seeds: int) -> OeppInputs:
    """Return the same with other seeds, and with its features as they were read."""
    changed = replace(of, job=replace(of.job, entry=replace(of.entry, seeds=seeds)))
    changed.__dict__["banks"] = of.banks
    return changed


def all_but_one_step(*arguments: Any) -> Any:
    """Return vectors of the true plans of samples but for one step of the first."""
    x = arguments[-1].text[arguments[-1].labels]
    x[0, 1] *= -1
    return x
