"""Heads on planted rows: what they learn, what training begins with, and their transfer to CrossTask."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stepline.benchmark import Job
from stepline.benchmarks.htstep.inputs import HtstepInputs, Narrated
from stepline.benchmarks.htstep.kinds import Found
from stepline.benchmarks.htstep.methods.heads import Head
from stepline.benchmarks.htstep.methods.videos import (
    Articles,
    Learned,
    found,
    sentence_vectors,
    step_vectors,
    word_vectors,
)
from stepline.datasets.htstep import Recording, Segment, Step
from stepline.datasets.htstep_transfer import Sentence
from stepline.features.importing import Folder, import_folder
from stepline.models.grounding import GroundedSegments
from tests.benchmarks.htstep.conftest import inputs, plan, predicted
from tests.benchmarks.htstep.synthetic import CONFIG, articles, crosstask_videos, vector, videos

pytestmark = pytest.mark.usefixtures("banks")


def tensors(path: Path) -> dict[str, Any]:
    from safetensors.numpy import load_file

    return load_file(path)


def fit(of: HtstepInputs, seed: int = 0) -> Path:
    """Return the checkpoint of a fit, where the plan has it."""
    path = of.benchmark.fits(of.job)[of.entry.seeds.index(seed)]
    path.parent.mkdir(parents=True, exist_ok=True)
    of.benchmark.method(of.entry.kind)().fit(of.staged("fit"), seed, path)
    return path


class TestLearned:
    def test_annotated_videos_with_numbers_of_steps(self) -> None:
        of = inputs("aft")
        learned = Articles(of).learned(0)
        ids = sorted(step for article in articles().values() for step in article)
        assert [step.id for step in learned.steps] == ids
        train = [each for each in videos() if each.split == "train"]
        assert len(learned.videos) == len(train)
        for made, each in zip(learned.videos, train, strict=True):
            assert [ids[number] for number in made.candidates] == list(each.steps)
            assert [ids[number] for number in made.steps] == [step for *_, step, _ in each.segments]
            assert made.segments_s.tolist() == [[start_s, end_s] for start_s, end_s, *_ in each.segments]
            assert made.duration_s == len(made.rows) == each.duration

    def test_narrated_videos_with_a_step_of_each_sentence(self) -> None:
        of = inputs("aft-narrations", narrations={"sentences": 3})
        learned = Articles(of).learned(0)
        said = {each.video: each.sentences for each in of.used("narrations")}
        assert len(learned.videos) == len(said)
        texts = [step.headline for step in learned.steps]
        at = 0
        for made, sentences in zip(learned.videos, said.values(), strict=True):
            assert made.candidates.tolist() == made.steps.tolist() == list(range(at, at + len(made.steps)))
            assert 0 < len(made.steps) <= 3
            listed = [each.text for each in sentences]
            first = texts[at : at + len(made.steps)]
            runs = [n for n in range(len(listed)) if listed[n : n + len(first)] == first]
            starts_s = [[each.start_s for each in sentences[n : n + len(first)]] for n in runs]
            assert made.segments_s[:, 0].tolist() in [[start_s - int(of[0]) for start_s in of] for of in starts_s]
            at += len(made.steps)
        assert at == len(texts)
        assert {step.activity for step in learned.steps} == {""}
        vectors = step_vectors(of, of.entry, learned.steps[:2])
        assert vectors == pytest.approx(np.array([vector(text) for text in texts[:2]]), abs=1e-6)

    def test_videos_of_coin_with_steps_of_coin(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        steps = {
            number: Step(id=number, activity="Saw", variation="", index=1, headline=f"cut {number}", paragraph="")
            for number in (7, 4)
        }
        made: dict[str, Any] = {"split": "coin", "activity": "Saw", "labelled": True}
        listed = [
            Recording(video="b", steps=(4, 7), segments=(Segment(start_s=1, end_s=3, step=7, match=""),), **made),
            Recording(video="none", steps=(4, 7), segments=(), **made),
            Recording(video="a", steps=(7,), segments=(Segment(start_s=2, end_s=9, step=7, match=""),), **made),
            Recording(video="gone", steps=(7,), segments=(Segment(start_s=2, end_s=9, step=7, match=""),), **made),
        ]
        (tmp_path / "coin").mkdir()
        for number, video in enumerate(["a", "b", "none"]):
            np.save(tmp_path / f"coin/{video}.npy", np.full((70 + number, 3), number, np.float32))
        import_folder(Folder(tmp_path / "coin"), "planted", "coin", 1.0)
        monkeypatch.setattr("stepline.datasets.htstep_transfer.coin", lambda: listed)
        monkeypatch.setattr("stepline.datasets.htstep_transfer.texts_of", {"coin": steps}.__getitem__)
        learned = Articles(inputs("aft-narrations-coin", subset={"fraction": 0.3}).staged("fit")).learned(0)
        assert [step.headline for step in learned.steps] == ["cut 4", "cut 7"]
        assert [each.candidates.tolist() for each in learned.videos] == [[0, 1], [1]]
        assert [each.steps.tolist() for each in learned.videos] == [[1], [1]]
        assert [(len(each.rows), each.rows[0, 0]) for each in learned.videos] == [(71, 1), (70, 0)]

    def test_a_fit_with_other_annotation_or_texts_is_another(self) -> None:
        learned = Articles(inputs("aft")).learned(0)
        [first, *others] = learned.videos
        changed = [
            replace(first, candidates=first.candidates[::-1]),
            replace(first, steps=first.steps[::-1]),
            replace(first, segments_s=first.segments_s + 1),
        ]
        made = [Learned([each, *others], learned.steps) for each in (first, *changed)]
        made.append(Learned(learned.videos, learned.steps[::-1]))
        assert len({each.sha256 for each in made}) == len(made)
        assert made[0].sha256 == learned.sha256

    def test_silent_videos_are_not_learned(self) -> None:
        of = inputs("aft-narrations")
        silent = Narrated(video="train-0-0", sentences=(Sentence(start_s=1, end_s=2, text=" "),))
        of._truth["narrations"] = [silent]
        assert len(Articles(of).learned(0).videos) == 0
        said = Sentence(start_s=3, end_s=9, text="pour it")
        of._truth["narrations"] = [replace(silent, sentences=(*silent.sentences, said))]
        learned = Articles(of).learned(0)
        assert [step.headline for step in learned.steps] == ["pour it"]
        assert [len(each.rows) for each in learned.videos] == [len(of.bank("narrations")["train-0-0"])]

    def test_texts_are_of_the_parts_that_the_entry_names(self) -> None:
        steps = Articles(inputs("aft")).steps[1:3]
        for entry, parts in (
            ("aft", ["Do thing{0} with tool{0}."]),
            ("aft-paragraph", ["First, mind thing{0}. Then go on."]),
        ):
            of = inputs(entry)
            expected = [vector(" ".join(parts).format(step.id)) for step in steps]
            assert step_vectors(of, of.entry, steps) == pytest.approx(np.array(expected), abs=1e-6)
        of = inputs("mt-bce-all")
        made = sentence_vectors(of, of.entry, steps)
        for rows, step in zip(made, steps, strict=True):
            parts = [f"Do thing{step.id} with tool{step.id}.", f"First, mind thing{step.id}.", "Then go on."]
            assert rows == pytest.approx(np.array([vector(f"Make Tea: {part}") for part in parts]), abs=1e-6)

    def test_words_are_encoded_alone(self) -> None:
        of = inputs("umt")
        step = of.steps[0]
        (rows,) = word_vectors(of, of.entry, [step])
        assert rows == pytest.approx(np.array([vector(word) for word in ("do", "thing0", "with", "tool0")]), abs=1e-6)


class TestFound:
    RECORDING = Recording(video="v", split="val_seen", activity="A", steps=(3, 5, 9), segments=(), labelled=False)
    NOTHING = GroundedSegments(np.zeros(0), np.zeros(0), np.zeros(0, np.int64), np.zeros(0))

    def times(self, confidence: Any) -> tuple[Any, Any]:
        made = found(self.RECORDING, self.NOTHING, [], seed=0, confidence=np.array(confidence, np.float64))
        return made.times_s, made.ordered_s

    def test_of_equal_seconds_the_first_counts(self) -> None:
        assert self.times([[0, 1, 1], [1, 1, 1], [1, 0, 1], [0, 0, 0]])[0] == (1, 0, 0)

    def test_ordered_times_ascend(self) -> None:
        scores = np.array([[0, 0, 9], [0, 9, 0], [9, 0, 0], [0, 0, 1]])
        assert self.times(scores)[1] == self.times(scores - 10)[1] == (0, 1, 3), "also where all are below 0"
        assert self.times(scores[:3] - 10)[1] == (0, 1, 2), "also of as many seconds as steps"

    def test_of_fewer_seconds_than_steps_some_have_none(self) -> None:
        times_s, ordered_s = self.times([[0.9, 0.1, 0.1], [0.1, 0.1, 0.9]])
        assert times_s == (0, 0, 1)
        assert ordered_s == (0, -1, 1)

    def test_what_is_not_said_is_empty(self) -> None:
        made = found(self.RECORDING, self.NOTHING, [], seed=2)
        assert made == Found(seed=2, split="val_seen", video="v", steps=(), segments=(), scores=())


@pytest.mark.parametrize(
    ("entry", "options", "config", "training"),
    [
        (
            "actionformer",
            {"window": 5, "max_length": 256, "embed": 24, "classes": "article", "epochs": 3, "warmup_epochs": 2}
            | {"batch_size": 7, "learning_rate": 0.25, "weight_decay": 0.125},
            {"window": 5, "max_length": 256, "candidates": "article", "classes": 14, "text_dim": None, "heads": 4}
            | dict.fromkeys(("embed", "pyramid_dim", "head_dim", "text_embed"), 24),
            {"epochs": 3, "warmup_epochs": 2, "batch_size": 7, "learning_rate": 0.25, "weight_decay": 0.125},
        ),
        ("aft", {}, {"candidates": "all", "classes": None, "text_dim": 32}, {}),
        ("aft-narrations", {}, {"candidates": "article"}, {}),
        ("aft-narrations-htstep", {}, {"candidates": "all"}, {}),
        (
            "umt",
            {"padding": "masked", "moments": 7, "embed": 24, "epochs": 3}
            | {"batch_size": 7, "learning_rate": 0.25, "weight_decay": 0.125},
            {"padding": "masked", "moments": 7, "hidden": 24, "feedforward": 96, "heads": 8},
            {"epochs": 3, "batch_size": 7, "learning_rate": 0.25, "weight_decay": 0.125},
        ),
        (
            "mt-bce",
            {"max_length": 1100, "layers": 3, "width": 24, "epochs": 3}
            | {"batch_size": 7, "learning_rate": 0.25, "weight_decay": 0.125},
            {"positions": 1100, "joint_layers": 3, "width": 24, "heads": 8},
            {"epochs": 3, "batch_size": 7, "learning_rate": 0.25, "weight_decay": 0.125},
        ),
        ("mt-bce-vina", {"max_length": 1100}, {"positions": 1024}, {}),
        ("mt-bce-narrations", {"max_length": 1100}, {"positions": 1024}, {}),
        ("mt-bce-vina", {"max_length": 900}, {"positions": 900}, {}),
    ],
)
def test_options_are_those_of_the_network_and_its_training(
    entry: str, options: dict[str, Any], config: dict[str, Any], training: dict[str, Any], handed: list[Any]
) -> None:
    block = plan().entries[entry].kind.options
    of = inputs(entry, **{block: CONFIG[block] | options | {"seeds": [2, 9]}})
    of.benchmark.method(of.entry.kind)().fit(of, 9, Path("fit"))
    [(made, videos, path, more)] = handed
    assert {name: getattr(made, name) for name in config} == config
    assert more.items() >= (training | {"seed": 9}).items()
    assert path == Path("fit")
    assert len(videos) == 24
    chain = of.benchmark.parts(of.entry)
    assert more.get("begin") == (of.benchmark.fits(Job(release="v1", entry=chain[1]))[1] if chain[1:] else None)


@pytest.fixture
def handed(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The arguments of trainings, which are not done."""
    pytest.importorskip("torch")
    found: list[Any] = []
    for module, name in (("actionformer", "actionformer"), ("umt", "umt"), ("step_grounding", "step_grounding")):
        monkeypatch.setattr(
            f"stepline.models.{module}_training.fit_{name}",
            lambda config, videos, path, **more: found.append((config, videos, path, more)),
        )
    return found


def test_options_bound_the_number_of_segments_and_say_of_which_steps_they_are() -> None:
    pytest.importorskip("torch")

    def made(entry: str, **options: Any) -> HtstepInputs:
        block, few = plan().entries[entry].kind.options, {"entries": {entry: {"splits": ["val_seen"]}}}
        return inputs(entry, **{block: CONFIG[block] | {"epochs": 1} | options}, subset={"fraction": 0.4}, **few)

    path = fit(made("umt"))
    for most in (1, 3):
        for each in predicted(made("umt", moments=most), path):
            assert [each.steps.count(step) for step in each.article] == [most] * len(each.article)
    path = fit(made("actionformer"))
    every = predicted(made("actionformer"), path)
    few = predicted(made("actionformer", segments=3, classes="article"), path)
    assert max(len(each.steps) for each in every) > 3
    assert any({*each.steps} - {*each.article} for each in every)
    assert {len(each.steps) for each in few} == {3}
    assert all({*each.steps} <= {*each.article} for each in few)


def test_each_seed_predicts_by_its_checkpoint() -> None:
    pytest.importorskip("torch")
    changes: dict[str, Any] = {"mt_bce": CONFIG["mt_bce"] | {"epochs": 1, "seeds": [3, 1]}, "subset": {"fraction": 0.3}}
    of = inputs("mt-bce", **changes)
    first, second = fit(of, 3), fit(of, 1)
    n = len(of.evaluated)
    made, other = predicted(of, first, second), predicted(of, second, first)
    assert [each.seed for each in made] == [3] * n + [1] * n
    assert [replace(each, seed=3) for each in made[n:]] == other[:n] != made[:n]


@pytest.mark.parametrize(
    ("entry", "init"), [("aft-narrations-htstep", "aft-narrations"), ("mt-bce-vina", "mt-bce-narrations")]
)
def test_training_goes_on_from_the_checkpoint_of_another_entry(entry: str, init: str) -> None:
    pytest.importorskip("torch")

    def with_rate(learning_rate: float) -> dict[str, Any]:
        options = {"epochs": 1, "learning_rate": learning_rate, "seeds": [1]}
        return {block: CONFIG[block] | options for block in ("actionformer", "mt_bce")}

    before, changes = fit(inputs(init, **with_rate(0.01)), 1), with_rate(1e-9)
    of = inputs(entry, **changes)
    assert of.begin(1) == before
    begun, after = tensors(before), tensors(fit(of, 1))
    learned = {name for name, tensor in begun.items() if name != "loss" and np.ptp(tensor)}
    assert learned <= after.keys()
    assert all(np.allclose(begun[name], after[name], atol=1e-6) for name in learned)


def test_a_transfer_predicts_the_videos_of_crosstask_by_the_first_seed() -> None:
    pytest.importorskip("torch")
    changes: dict[str, Any] = {"actionformer": CONFIG["actionformer"] | {"epochs": 1, "seeds": [5, 0]}}
    head = inputs("aft", **changes)
    fit(head, 5)
    of = inputs("aft-crosstask", "crosstask", **changes)
    method = of.benchmark.method(of.entry.kind)()
    made = list(method.predict(of, []))
    assert method.selection == "the checkpoint of aft, seed 5"
    assert [each.video for each in made] == [video for _, video in crosstask_videos()]
    assert {each.split for each in made} == {"crosstask"}
    assert {each.seed for each in made} == {0}
    for each in made:
        assert {*each.steps} <= {*each.article}
        assert len(each.article) == (3 if "1001" in each.video else 2)


def test_a_transfer_is_of_the_entry_that_it_names_and_not_of_the_one_before(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, Path]] = []

    def grounder(self: Head, inputs: Any, entry: Any, articles: Any, path: Path) -> Any:
        asked.append((entry.id, path))
        return lambda video: (TestFound.NOTHING, None)

    of = inputs("aft-narrations-htstep-crosstask", "crosstask")
    head = of.benchmark.entries["aft-narrations-htstep"]
    monkeypatch.setattr(of.benchmark.method(head.kind), "grounder", grounder)
    predicted(of)
    assert asked == [(head.id, of.benchmark.fits(Job(release="v1", entry=head))[0])]


def test_a_fit_goes_on_only_with_the_same_data_and_options(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[str, int]] = []

    def train(self: Head, inputs: Any, learned: Any, seed: int, path: Path, resume: str, what: str) -> None:
        told.append((resume, len(learned.videos)))

    aft = plan().method(plan().entries["aft"].kind)
    monkeypatch.setattr(aft, "train", train)
    for changes in ({}, {}, {"actionformer": CONFIG["actionformer"] | {"embed": 32}}, {"subset": {"fraction": 0.5}}):
        of = inputs("aft", **changes)
        aft().fit(of, 0, Path("fit"))
    assert [n for _, n in told[:3]] == [24] * 3
    assert 0 < told[3][1] < 24, "of the subset"
    digests = [digest for digest, _ in told]
    assert digests[0] == digests[1]
    assert len({*digests}) == 3
    narrated = inputs("aft-narrations", narrations={"sentences": 3})
    for seed in (0, 0, 1):
        aft().fit(narrated, seed, Path("fit"))
    first, again, other = (digest for digest, _ in told[-3:])
    assert first == again != other, "each seed draws other sentences"
