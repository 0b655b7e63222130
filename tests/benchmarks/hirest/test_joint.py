"""The joint model as a method: what it sees, that it learns what is planted, and what its options change."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("tokenizers")

import torch

from stepline.benchmarks.hirest.inputs import HirestInputs
from stepline.benchmarks.hirest.methods.joint import JointMethod, Seen, predictions
from stepline.benchmarks.hirest.score import values
from stepline.errors import ConfigError
from stepline.models.hirest_joint import Joint
from stepline.models.hirest_joint_config import JointConfig
from tests.benchmarks.hirest.conftest import inputs, plan, predicted
from tests.benchmarks.hirest.synthetic import write_bank

SMALL = {"init": "random", "layers": 1, "hidden": 48, "seeds": [0], "epochs": 1, "beam": 1}
WITHOUT_JAVA = {"bootstrap_samples": 100, "meteor": False}


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
def test_what_is_seen_of_a_pair() -> None:
    of = small()
    seen, pair = Seen(of), of.used("train")[0]
    n = round(pair.duration_s)
    example, *_ = examples = seen.examples(of.used("train"))
    assert [len(each.features) for each in examples] == [round(each.duration_s) for each in of.used("train")]
    assert {len(seen.bank[each.video]) - round(each.duration_s) for each in of.used("train")} == {0, 1}
    assert example.features.shape == (n, 32)
    assert np.linalg.norm(example.features, axis=1) == pytest.approx(1, abs=1e-5)
    spoken = of.subtitles[pair.video]
    assert example.speech is not None
    said = spoken[2]
    assert (example.speech[int(said.start_s)] == seen.sentences[said.text]).all()
    assert not example.speech[int(said.end_s)].any()
    assert example.moment == tuple(map(int, pair.bounds_s))
    assert example.steps[0] == (int(pair.steps[0].start_s), int(pair.steps[0].end_s))
    assert [seen.words.decode(each) for each in example.captions] == [s.caption.strip().lower() for s in pair.steps]
    silent = small("joint-silent")
    assert Seen(silent).examples(silent.used("train"))[0].speech is None
    assert len(silent.used("test")) > len(of.used("test"))


def network(**settings: Any) -> Joint:
    """Return a small network with weights that were drawn."""
    torch.manual_seed(0)
    sizes = {"feature_dim": 32, "text_dim": 32, "hidden": 24, "feedforward": 24, "layers": 1, "vocabulary": 30522}
    return Joint(JointConfig(**{**sizes, **settings})).eval()


@pytest.mark.usefixtures("banks")
@pytest.mark.parametrize("padding", ["attended", "masked"])
def test_a_prediction_depends_on_its_batch_where_padding_is_attended(padding: str) -> None:
    model = network(padding=padding)
    together, alone = (
        [(each.video, each.moment, each.segments) for each in predictions(of, Seen(of), model, 0)]
        for of in (small(batch_size=size, padding=padding) for size in (5, 1))
    )
    assert (together == alone) == (padding == "masked")
    steps = [step for *_, segments in alone for step in segments or ()]
    assert steps
    assert all(start_s < end_s for start_s, end_s in steps)


@pytest.mark.usefixtures("banks")
def test_it_is_fitted_on_train_and_chosen_on_val_as_configured(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Any] = []
    monkeypatch.setattr(
        "stepline.models.hirest_joint_training.fit_joint", lambda *args, **options: given.extend([*args, options])
    )
    of = small("joint-silent", fusion="sum", caption_frames="uniform", clip=2.5, mixing="alternating")
    JointMethod().fit(of, 0, Path("fit.safetensors"))
    config, train, val, _, options = given
    for split, examples in (("train", train), ("val", val)):
        assert [len(each.features) for each in examples] == [round(pair.duration_s) for pair in of.used(split)]
    assert (config.hidden, config.feedforward, config.fusion, config.caption_frames) == (48, 192, "sum", "uniform")
    assert (options["clip"], options["mixing"], options["clip4caption"]) == (2.5, "alternating", None)


@pytest.mark.usefixtures("banks")
def test_the_released_model_is_made_with_the_configured_options(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, Any] = {}

    def load(path: Path, **settings: Any) -> Joint:
        asked.update(settings, path=path)
        return network(**settings)

    monkeypatch.setattr("stepline.models.hirest_joint_release.load_released", load)
    monkeypatch.setattr("stepline.benchmarks.hirest.methods.joint.locate", lambda name: {name: Path(name)})
    of = small("joint-released", fusion="sum")
    assert len(predicted(of)) == len(of.evaluated)
    assert asked == {
        "fusion": "sum",
        "caption_frames": "first",
        "padding": "attended",
        "path": Path("hirest-joint"),
    }


@pytest.mark.usefixtures("banks")
def test_the_released_model_refuses_features_of_other_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stepline.models.hirest_joint_release.load_released", lambda _, **how: network(text_dim=40))
    monkeypatch.setattr("stepline.benchmarks.hirest.methods.joint.locate", lambda name: {name: Path(name)})
    with pytest.raises(ConfigError, match=r"hirest.features.eva_clip: rows have 32 and texts 32 numbers, .* 32 and 40"):
        predicted(small("joint-released"))


@pytest.mark.usefixtures("releases")
def test_features_that_are_not_a_row_a_second_are_refused(tmp_path_factory: pytest.TempPathFactory) -> None:
    write_bank(tmp_path_factory.mktemp("rows"), "slow", hop_s=3.2)
    of = inputs("joint-silent", features={"eva_clip": {"video": "slow", "text": "tower"}}, joint=SMALL)
    with pytest.raises(ConfigError, match="features 'slow' have one row per 3.2 s; HiREST needs one per second here"):
        Seen(of)


@pytest.mark.usefixtures("releases")
def test_other_sizes_than_clip4captions_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"hirest.joint.hidden: 48 is not allowed; CLIP4Caption has 768"):
        plan({"joint": {"hidden": 48}})
