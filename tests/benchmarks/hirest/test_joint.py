"""The joint model as a method: what it sees, that it learns what is planted, and what its options change."""

from inspect import signature
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("tokenizers")

import torch
from safetensors.torch import save_file

from stepline.benchmarks.hirest import texts
from stepline.benchmarks.hirest.inputs import HirestInputs
from stepline.benchmarks.hirest.methods.joint import JointMethod, Seen, predictions
from stepline.benchmarks.hirest.score import values
from stepline.errors import ConfigError, StoreError
from stepline.features.bank import Bank
from stepline.models.hirest_joint import Joint, Videos
from stepline.models.hirest_joint_config import JointConfig
from stepline.models.hirest_joint_training import fit_joint
from tests.benchmarks.hirest.conftest import inputs, plan, predicted
from tests.benchmarks.hirest.synthetic import planted, vector, write_bank

SMALL = {"init": "random", "layers": 1, "hidden": 48, "seeds": [0], "epochs": 1, "beam": 1}
WITHOUT_JAVA = {"bootstrap_samples": 100, "meteor": False}


@pytest.fixture(autouse=True)
def _few_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """Captions of at most four words, which take little time."""
    monkeypatch.setitem(JointConfig.__init__.__kwdefaults__, "words", 4)


def small(entry: str = "joint", **joint: Any) -> HirestInputs:
    return inputs(entry, joint={**SMALL, **joint}, metrics=WITHOUT_JAVA)


@pytest.mark.usefixtures("banks")
def test_it_predicts_moments_of_all_pairs_and_steps_and_captions_of_annotated_ones() -> None:
    of, path = small(), Path("fit.safetensors")
    JointMethod().fit(of, 0, path)
    made = predicted(of, path)
    assert [each.video for each in made] == [pair.video for pair in of.evaluated]
    for pair, each in zip(of.evaluated, made, strict=True):
        assert each.moment is not None
        assert (each.segments is not None) == (each.sentences is not None) == bool(pair.steps)
        assert len(each.sentences or ()) == len(pair.steps)
    found = values(of, made)
    assert {"val_r_05", "test_507_r_05", "val_recall_05", "test_507_recall_05"} <= found.keys()


@pytest.mark.usefixtures("banks")
def test_what_is_seen_of_each_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    towers: list[tuple[str, bool]] = []
    tower = texts.query_encoder

    def noted(benchmark: Any, features: str, *, raw: bool) -> Any:
        towers.append((features, raw))
        return tower(benchmark, features, raw=raw)

    monkeypatch.setattr(texts, "query_encoder", noted)
    of, rows = inputs("joint", joint=SMALL, entries={"joint": {"features": "mil_nce"}}), planted()
    seen, pairs = Seen(of), [*of.used("train"), *of.used("test")]
    assert {len(seen.bank[pair.video]) - round(pair.duration_s) for pair in pairs} == {0, 1}
    assert {pair.bounds_s is None for pair in pairs} == {True, False}
    for pair, example in zip(pairs, seen.examples(pairs), strict=True):
        n = round(pair.duration_s)
        lengths = np.linalg.norm(rows[pair.video], axis=1, keepdims=True)
        assert example.features == pytest.approx((rows[pair.video] / lengths)[:n], abs=1e-6)
        assert example.query == pytest.approx(vector(pair.query), abs=1e-6)
        expected = np.zeros((n, 384))
        for said in of.subtitles[pair.video]:
            expected[int(said.start_s) : int(said.end_s)] = seen.sentences[said.text]
        assert example.speech is not None
        assert (example.speech == expected).all()
        start_s, end_s = pair.bounds_s or (0, n)
        assert example.moment == (start_s, min(end_s, n - 1))
        assert example.steps == [(step.start_s, min(step.end_s, n - 1)) for step in pair.steps]
        assert [*example.boundaries] == sorted({time for step in example.steps for time in step})
        captions = [step.caption.strip().lower() for step in pair.steps]
        assert [seen.words.decode(each) for each in example.captions] == captions
    assert towers == [("mil_nce", True)]
    lines = [*seen.sentences]
    assert not np.allclose(seen.sentences[lines[0]], seen.sentences[lines[1]], atol=0.01)
    silent = small("joint-silent")
    assert Seen(silent).examples(silent.used("train"))[0].speech is None
    assert len(silent.used("test")) > len(of.used("test"))

    def refuse(self: Bank) -> None:
        raise StoreError("parts")

    monkeypatch.setattr(Bank, "check_whole", refuse)
    with pytest.raises(StoreError, match="parts"):
        Seen(of)


def network(seed: int = 0, **settings: Any) -> Joint:
    """Return a small network with weights that were drawn."""
    torch.manual_seed(seed)
    sizes = {"feature_dim": 32, "text_dim": 32, "hidden": 24, "feedforward": 24, "layers": 1, "words": 4}
    return Joint(JointConfig(**{**sizes, **settings})).eval()


@pytest.mark.usefixtures("banks")
@pytest.mark.parametrize("padding", ["attended", "masked"])
def test_a_prediction_depends_on_its_batch_where_padding_is_attended(padding: str) -> None:
    model = network(padding=padding)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape))
    together, alone = (
        [*predictions(of, Seen(of), model, 0)] for of in (small(batch_size=size, padding=padding) for size in (5, 1))
    )
    for part in ("moment", "segments"):
        same = [getattr(each, part) for each in together] == [getattr(each, part) for each in alone]
        assert same == (padding == "masked"), part
    steps = [step for each in alone for step in each.segments or ()]
    assert steps
    assert all(start_s < end_s for start_s, end_s in steps)


@pytest.mark.usefixtures("banks")
@pytest.mark.parametrize("beam", [1, 4])
def test_steps_and_captions_are_those_of_each_video_alone_in_its_true_moment(beam: int) -> None:
    """Where padding is masked. Another beam finds other captions."""
    of, model = small(batch_size=3, beam=beam), network(padding="masked")
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape))
    seen, words = Seen(of), set()
    for pair, made in zip(of.evaluated, predictions(of, seen, model, 6), strict=True):
        (example,) = seen.examples([pair])
        assert example.speech is not None
        rows = (torch.from_numpy(each)[None] for each in (example.features, example.query, example.speech))
        video = Videos(*rows, torch.tensor([len(example.features)]))
        assert (made.seed, made.split, made.video, made.query) == (6, pair.split, pair.video, pair.query)
        assert made.moment == tuple(model.moments(video)[0].tolist())
        if not pair.steps:
            assert made.segments is made.sentences is None
            continue
        (edges,) = model.segments(video, torch.tensor([example.moment]))
        assert made.segments == tuple(pairwise(edges))
        said = [
            {
                b: seen.words.decode(*model.captions(video, torch.tensor([0]), torch.tensor([step]), beams=b))
                for b in (1, 4)
            }
            for step in example.steps
        ]
        assert made.sentences == tuple(each[beam] for each in said)
        words |= {each[1] == each[4] for each in said}
    assert False in words


@pytest.mark.usefixtures("banks")
def test_it_is_fitted_on_train_and_chosen_on_val_as_configured(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Any] = []
    monkeypatch.setattr(
        "stepline.models.hirest_joint_training.fit_joint", lambda *args, **options: given.append([*args, options])
    )
    monkeypatch.setattr("stepline.benchmarks.hirest.methods.joint.locate", lambda name: {name: Path(name)})
    training = {"mixing": "alternating", "epochs": 7, "batch_size": 3, "learning_rate": 0.5, "weight_decay": 0.25}
    network = {"fusion": "sum", "caption_frames": "uniform", "padding": "masked", "layers": 3, "hidden": 36}
    monkeypatch.setattr(HirestInputs, "dimension", 31)
    of = small("joint-silent", clip=2.5, **training, **network)
    JointMethod().fit(of, 5, Path("fit.safetensors"))
    ((config, train, val, path, options),) = given
    for split, examples in (("train", train), ("val", val)):
        pairs = of.used(split)
        assert [(len(each.features), len(each.steps)) for each in examples] == [
            (round(pair.duration_s), len(pair.steps)) for pair in pairs
        ]
    sizes = {"feature_dim": 31, "text_dim": 32, "feedforward": 144, "words": 4}
    assert config == JointConfig(**network, **sizes, audio=False)  # type: ignore[arg-type]
    resumes = [options.pop("resume")]
    assert path == Path("fit.safetensors")
    about = {"seed": 5, "device": "cpu", "what": "joint-silent, seed 5", "clip4caption": None, "clip": 2.5}
    assert options == training | about
    used = HirestInputs.used
    for split in ("train", "val"):
        monkeypatch.setattr(HirestInputs, "used", lambda self, each, less=split: used(self, each)[each == less :])
        JointMethod().fit(of, 5, path)
        resumes.append(given[-1][-1]["resume"])
    monkeypatch.setattr(HirestInputs, "used", used)
    JointMethod().fit(small("joint-silent", clip=2.5, **training, **network | {"fusion": "product"}), 5, path)
    resumes.append(given[-1][-1]["resume"])
    assert len({*resumes}) == 4
    published = {"init": "clip4caption", "hidden": 768, "layers": 2}
    for entry in ("joint-silent", "joint"):
        JointMethod().fit(small(entry, **published), 0, path)
        assert given[-1][-1]["clip4caption"] == Path("clip4caption")
        assert given[-1][0].audio == (entry == "joint")


@pytest.mark.usefixtures("releases")
def test_the_configured_defaults_are_those_of_the_model() -> None:
    arguments = {name: each.default for name, each in signature(fit_joint).parameters.items()} | vars(JointConfig)
    configured = plan().defaults["joint"]
    shared = configured.keys() & arguments.keys()
    assert configured.keys() - shared == {"init", "beam", "seeds"}
    assert {key: configured[key] for key in shared} == {key: arguments[key] for key in shared}
    assert (configured["beam"], configured["seeds"], arguments["warm_up"]) == (3, [arguments["seed"]], 0.1)


@pytest.mark.usefixtures("banks")
def test_each_seed_has_its_own_checkpoint_and_absent_training_moments_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    there = Bank.__contains__
    absent = ("train-1-0", "train-2-1")
    monkeypatch.setattr(Bank, "__contains__", lambda self, video: video not in absent and there(self, video))
    of, seen, expected = small(seeds=[3, 7]), Seen(small()), []
    for seed in (3, 7):
        model = network(seed, hidden=48, feedforward=192)
        save_file(model.state_dict(), f"{seed}.safetensors")
        expected += predictions(of, seen, model, seed)
    method = JointMethod()
    assert list(method.predict(of, [Path("3.safetensors"), Path("7.safetensors")])) == expected
    assert len({each.moment for each in expected if each.video == "val-0-0"}) == 2
    assert method.selection == "fitted on 13 of 15 training moments; epoch with the lowest validation loss"


@pytest.mark.usefixtures("banks")
def test_the_released_model_is_made_with_the_configured_options(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, Any] = {}

    def load(path: Path, **settings: Any) -> Joint:
        asked.update(settings, path=path)
        return network(**settings)

    monkeypatch.setattr("stepline.models.hirest_joint_release.load_released", load)
    monkeypatch.setattr("stepline.benchmarks.hirest.methods.joint.locate", lambda name: {name: Path(name)})
    settings = {"fusion": "sum", "caption_frames": "uniform", "padding": "masked"}
    of = small("joint-released", **settings)
    assert predicted(of) == [*predictions(of, Seen(of), network(**settings), 0)]
    assert asked == {**settings, "path": Path("hirest-joint")}


@pytest.mark.usefixtures("banks")
def test_the_released_model_refuses_features_of_other_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stepline.models.hirest_joint_release.load_released", lambda _, **how: network(text_dim=40))
    monkeypatch.setattr("stepline.benchmarks.hirest.methods.joint.locate", lambda name: {name: Path(name)})
    with pytest.raises(ConfigError, match=r"hirest.features.eva_clip: rows have 32 and texts 32 numbers, .* 32 and 40"):
        predicted(small("joint-released"))


@pytest.mark.usefixtures("releases")
@pytest.mark.parametrize("hop_s", [3.2, 0.5])
def test_features_that_are_not_a_row_a_second_are_refused(
    hop_s: float, tmp_path_factory: pytest.TempPathFactory
) -> None:
    write_bank(tmp_path_factory.mktemp("rows"), "other", hop_s=hop_s)
    of = inputs("joint-silent", features={"eva_clip": {"video": "other", "text": "tower"}}, joint=SMALL)
    with pytest.raises(ConfigError, match=f"features 'other' have one row per {hop_s} s; HiREST needs one per second"):
        Seen(of)


@pytest.mark.usefixtures("releases")
def test_other_sizes_than_clip4captions_are_refused() -> None:
    for key, size, published in (("hidden", 48, 768), ("layers", 1, 2)):
        with pytest.raises(ConfigError, match=f"joint.{key}: {size} is not allowed; CLIP4Caption has {published}: "):
            plan({"joint": {key: size}})
