from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file

from stepline import paths
from stepline.availability import Record, write_availability
from stepline.backbones import internvideo
from stepline.backbones.registry import presets, towers
from stepline.benchmarks.spacewalk.inputs import SpacewalkInputs
from stepline.benchmarks.spacewalk.kinds import KINDS, SpacewalkKind
from stepline.benchmarks.spacewalk.methods import all_layer
from stepline.benchmarks.spacewalk.methods.all_layer import AllLayer, _Training, chosen
from stepline.config import validate
from stepline.datasets.schema import Recording
from stepline.errors import ConfigError, StoreError
from stepline.features.pictures import Seen
from stepline.io import sha256_file
from stepline.models import all_layer as model
from tests.benchmarks.spacewalk.conftest import (
    FPS,
    MadeUp,
    TinyInputs,
    chooser_of,
    fit,
    predict,
    record_videos,
    scored,
)
from tests.gpu import GPU
from tests.media.clips import make as make_video

OPTIONS = {
    "optimiser": "bert_adam",
    "learning_rate": 2e-3,
    "weight_decay": 0.2,
    "warm_up": 0.1,
    "epochs": 1,
    "batch_size": 16,
    "logit_scale": "learned",
    "compute": "float32",
    "seeds": [0],
}
KIND = SpacewalkKind(
    method=KINDS["all-layer"].method,
    decoded=True,
    encoders=("video",),
    grid=False,
    texts="windows",
    options="all_layer",
    thresholded=True,
    sees=("window", "train"),
    settings={"samples_per_video": int, "videos": int},
)
ENTRY: dict[str, object] = {
    "kind": "all-layer",
    "encoder": "internvideo-spacewalk",
    "modality": "V+L",
    "setting": "all-layer",
    "inputs": ["window", "train"],
    "settings": {"samples_per_video": 2000, "videos": 10},
}


class Steps:
    """Planted features of the steps, in the place of those of a bank."""

    asked: list[str]

    def __init__(self, inputs: TinyInputs) -> None:
        self.inputs = inputs

    def steps(self, video: str) -> np.ndarray:
        n = self.inputs.annotation.recordings[video].n_steps + 1
        rows = np.random.default_rng(7).standard_normal((n, 3 * 32)).astype(np.float32)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


class Present(TinyInputs):
    """Inputs of which all recordings are there."""

    def has(self, unit: Recording) -> bool:
        return True


@pytest.fixture
def inputs(made_up: MadeUp, small_internvideo: None, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return what gives the inputs of an entry of these fields, with the small network as InternVideo."""
    monkeypatch.setattr(all_layer, "Features", Steps)
    monkeypatch.setitem(KINDS, "all-layer", KIND)

    def made(entry: dict[str, object] | None = None, **options: object) -> SpacewalkInputs:
        found = made_up.inputs(ENTRY | (entry or {}), Present, all_layer=OPTIONS | {"seeds": [0]} | options)
        found.benchmark.config["features"]["device"] = "cpu"
        return found

    record_videos(made_up)
    return made


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give random pictures in the place of videos'."""

    def keep(spec: Any, listed: dict[str, Any], *_: object) -> dict[str, np.ndarray]:
        rng = np.random.default_rng(0)
        return {video: rng.integers(256, size=(len(c), 3, 56, 56, 3), dtype=np.uint8) for video, c in listed.items()}

    monkeypatch.setattr(all_layer, "keep", keep)


def test_blocks_are_scaled_to_unit_length_only_where_they_are_normalised() -> None:
    seen, told = torch.tensor([[3.0, 4.0]]), torch.tensor([[0.0, 2.0]])
    assert all_layer._joined("VT", seen, told, "none").tolist() == [[3, 4, 0, 2]]
    assert all_layer._joined("VT", seen, told, "block").flatten().tolist() == pytest.approx([0.6, 0.8, 0, 1])


def test_videos_are_decoded_and_no_bank_is_read(inputs: Any) -> None:
    assert inputs().read == []


def test_the_default_is_what_the_paper_and_the_code_that_it_follows_say() -> None:
    assert validate({"spacewalk": {}})["spacewalk"]["all_layer"] == {
        "optimiser": "bert_adam",
        "learning_rate": 4e-6,
        "weight_decay": 0.2,
        "warm_up": 0.1,
        "epochs": 1,
        "batch_size": 16,
        "logit_scale": "learned",
        "compute": "float32",
        "seeds": [0],
    }
    with pytest.raises(ConfigError, match=r"all_layer\.optimiser: 'adam' is not .*bert_adam.*adamw"):
        validate({"spacewalk": {"all_layer": {"optimiser": "adam"}}})


def test_samples_are_evenly_spaced_and_of_the_first_recordings(inputs: Any) -> None:
    every = inputs()
    items = every.items("train")
    assert [*chosen(every)] == ["a", "b"]
    assert AllLayer()._fitted(every) == "fitted on 2 of 2 training recordings"
    assert chosen(every)["b"] == [item for item in items["b"] if item.label > 0]
    fewer = inputs({"settings": {"samples_per_video": 7, "videos": 1}})
    some = chosen(fewer)
    assert [*some] == ["a"]
    assert AllLayer()._fitted(fewer) == "fitted on 1 of 2 training recordings"
    places = [0, 5, 11, 17, 22, 28, 34]
    assert some["a"] == [items["a"][place] for place in places if items["a"][place].label > 0]
    retrieval = chosen(inputs({"table": "2b", "modality": "V", "settings": {"samples_per_video": 4, "videos": 9}}))
    assert [[item.id for item in retrieval[video]] for video in "ab"] == [[0, 10, 20, 30]] * 2


def block(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


@pytest.mark.parametrize("logit_scale", ["learned", "model", "none"])
def test_the_loss_is_the_cross_entropy_over_the_recordings_own_steps(
    inputs: Any, drawn: None, tiny: Any, logit_scale: str
) -> None:
    found = inputs(logit_scale=logit_scale)
    training = _Training(found, 4.0, Path("fit/0.pictures"))
    numbers = [0, 5, len(training.samples) - 1]
    assert {training.samples[number][0] for number in numbers} == {"a", "b"}
    files = {"pytorch_model.bin": Path("weights/internvideo/pytorch_model.bin")}
    video_tower = internvideo.load(presets()["internvideo-spacewalk"], files)
    encoder = internvideo.load_text(towers()["internvideo-text"], files)
    scale = 1.0 if logit_scale == "none" else float(tiny[1]["clip.logit_scale"].exp())
    expected = []
    for video, item in (training.samples[number] for number in numbers):
        (place,) = training.places[training.samples.index((video, item))]
        mean, std = (each.ravel().numpy() for each in (training.mean, training.std))
        clip = ((training.pictures[video][place] / 255 - mean) / std).astype(np.float32).transpose(3, 0, 1, 2)
        seen = video_tower(torch.from_numpy(clip[None])).numpy()[0]
        told = encoder.encode(encoder.tokens(found.text(video).window(item.t_s, 4.0)))
        logits = Steps(found).steps(video)[1:] @ np.concatenate([block(seen), block(told), block(told)]) * scale
        expected.append(np.log(np.exp(logits).sum()) - logits[item.label - 1])
    losses = training.losses(numbers)
    np.testing.assert_allclose(losses.detach().numpy(), expected, rtol=1e-4)
    losses.sum().backward()
    assert all(bool(parameter.grad.any()) for parameter in training.parameters.values())
    assert ("clip.logit_scale" in training.parameters) == (logit_scale == "learned")
    assert not any(rows.requires_grad for rows in training.steps.values())


def test_the_loss_of_retrieval_is_that_of_two_candidates(inputs: Any, drawn: None) -> None:
    found = inputs({"table": "2b", "modality": "V"}, logit_scale="none")
    training = _Training(found, 4.0, Path("fit/0.pictures"))
    assert not any("token_embedding" in name for name in training.parameters)
    network = internvideo.load(presets()["internvideo-spacewalk"], {"w": Path("weights/internvideo/pytorch_model.bin")})
    numbers = [0, 41, 79]
    expected = []
    for number in numbers:
        video, item = training.samples[number]
        with torch.no_grad():
            vectors = network(training._inputs([(video, place) for place in training.places[number].tolist()])).numpy()
        query, *candidates = block(vectors)
        logits = np.array(candidates) @ query
        expected.append(np.log(np.exp(logits).sum()) - logits[item.label])
        windows = all_layer._Windows(found, 4.0, video, [item])
        assert [windows.clips[place] for place in windows.places[0]] == [
            (max(0.0, t_s - 2), min(found.annotation.recordings[video].duration_s, t_s + 2)) for t_s in item.times_s
        ]
    np.testing.assert_allclose(training.losses(numbers).detach().numpy(), expected, rtol=1e-4)


def test_a_scale_that_is_learned_is_100_at_most(inputs: Any, drawn: None, tiny: Any) -> None:
    scale = torch.tensor(np.log(1000)).float()
    torch.save(tiny[1] | {"clip.logit_scale": scale}, "weights/internvideo/pytorch_model.bin")
    path = Path("fit/0.safetensors")
    path.with_suffix(".pictures").mkdir(parents=True)
    fit(inputs({"settings": {"samples_per_video": 7, "videos": 1}}, epochs=2), 4.0, 0, path)
    state = load_file(path)
    assert len(state["loss"]) == 2
    assert 4.5 < state["clip.logit_scale"] < np.float32(np.log(100))


@pytest.mark.parametrize(
    "device",
    ["cpu", pytest.param(GPU, marks=pytest.mark.gpu)],
)
def test_texts_are_encoded_in_batches_as_one_by_one(inputs: Any, device: str) -> None:
    """Within the parity's tolerance of a network, in the same bytes each time; batches of ``features.batch_size``."""
    file = {"pytorch_model.bin": Path("weights/internvideo/pytorch_model.bin")}
    found = inputs()
    found.benchmark.config["features"].update(device=device, batch_size=5)
    tuned = all_layer._Tuned(found, 4.0, [*file.values()])
    (tower,), asked = tuned.towers, []
    tower.register_forward_pre_hook(lambda _, batch: asked.append((batch[0].device.type, len(batch[0]))))
    windows = all_layer._Windows(found, 4.0, "d", found.items("test")["d"])
    told = tuned._told(0, windows)
    n = len(windows.texts)
    assert n > 10
    assert asked == [(device, min(5, n - first)) for first in range(0, n, 5)]
    encoder = internvideo.load_text(towers()["internvideo-text"], file)
    expected = np.stack([encoder.encode(encoder.tokens(text)) for text in windows.texts])
    assert np.linalg.norm(told.numpy() - expected) <= 1e-5 * np.linalg.norm(expected)
    assert np.abs(told[0].numpy() - expected[1]).max() > 0.01
    assert torch.equal(told, tuned._told(0, windows))


@pytest.mark.parametrize(("table", "at_once"), [("2a", 6), ("2b", 2)])
def test_it_is_trained_by_the_options(
    inputs: Any, drawn: None, table: str, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sample of retrieval has three windows."""
    recipe = {"learning_rate": 0.5, "weight_decay": 0.3, "warm_up": 0.4, "epochs": 7, "batch_size": 3}
    found = inputs({"table": table, "modality": "V"}, optimiser="adamw", **recipe)
    found.benchmark.config["features"]["batch_size"] = 6
    asked: list[Any] = []

    def train(_parameters: Any, _losses: Any, samples: int, path: Path, recipe: Any, **given: Any) -> None:
        asked.append((samples, path, recipe, given["at_once"]))
        path.with_suffix(".pictures").mkdir()

    monkeypatch.setattr(all_layer, "train", train)
    fit(found, 4.0, 9, Path("fit.safetensors"))
    n = sum(map(len, chosen(found).values()))
    expected = model.Recipe(optimiser="adamw", seed=9, **recipe)  # type: ignore[arg-type]
    assert asked == [(n, Path("fit.safetensors"), expected, at_once)]


def test_each_seed_answers_by_its_own_fit(inputs: Any, tiny: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def stream(_spec: Any, listed: Any, *_: Any) -> Any:
        for video, clips in listed.items():
            seen = np.random.default_rng(0).integers(256, size=(len(clips), 3, 56, 56, 3), dtype=np.uint8)
            yield Seen(video, np.arange(len(clips)), seen, np.ones((len(clips), 3), np.bool_), 0)

    monkeypatch.setattr(all_layer, "stream", stream)
    fits = [Path("weights/internvideo/pytorch_model.bin"), Path("other.bin")]
    torch.manual_seed(0)
    torch.save({name: tensor + 0.05 * torch.randn(tensor.shape) for name, tensor in tiny[1].items()}, fits[1])
    both = inputs(seeds=[4, 1])
    items = both.items("test")["d"][:8]
    outcomes = chooser_of(both, 4.0, fits)("d", items)
    assert [seed for seed, _, _ in outcomes] == [4, 1]
    for (_, answers, scores), path in zip(outcomes, fits, strict=True):
        ((_, alone, of_alone),) = chooser_of(inputs(seeds=[4]), 4.0, [path])("d", items)
        np.testing.assert_array_equal(answers, alone)
        np.testing.assert_allclose(scores, of_alone, rtol=1e-5)  # type: ignore[arg-type]
    assert not np.allclose(outcomes[0][2][:, 1:], outcomes[1][2][:, 1:], atol=0.01)  # type: ignore[index]


def test_what_a_fit_is_made_from_decides_whether_its_state_is_used(inputs: Any, drawn: None) -> None:
    def made(context_s: float = 4.0, **options: object) -> object:
        return _Training(inputs(**options), context_s, Path("fit/0.pictures")).made_from

    first = made()
    assert made() == first
    for other in (made(6.0), made(logit_scale="none"), made(logit_scale="model"), made(compute="bfloat16")):
        assert other != first


@pytest.fixture
def planted(made_up: MadeUp, inputs: Any) -> Any:
    """The same with videos in which each label has a colour of its own."""
    colours = np.random.default_rng(3).integers(0, 256, (12, 3), dtype=np.uint8)
    for video, recording in made_up.release.recordings.items():
        labels = np.concatenate([np.full(s.end_frame - s.start_frame, s.label) for s in recording.segments])
        times = [Fraction(i, int(FPS)) for i in range(len(labels))]
        make_video(
            Path(f"{video}.mp4"),
            times,
            picture=lambda i, labels=labels: np.full((64, 64, 3), colours[labels[i]], np.uint8),
        )
    records: dict[str, list[Record]] = {}
    for video, recording in made_up.release.recordings.items():
        path = f"{video}.mp4"
        record = Record(
            video=video, status="present", sha256=sha256_file(path), path=path, duration_s=recording.duration_s
        )
        records.setdefault(made_up.study.shards(10)[video], []).append(record)
    for shard, found in records.items():
        write_availability(paths.availability("demo", shard), found)
    return inputs


class StoppedError(Exception):
    pass


@pytest.mark.slow
def test_a_fit_learns_what_is_planted_and_goes_on_after_a_stop(planted: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """From videos to answers: a step's colour is learned in training recordings and known in others."""
    found, whole, part = planted(epochs=3), Path("whole/0.safetensors"), Path("part/0.safetensors")
    fit(found, 2.0, 0, whole)
    state = load_file(whole)
    n = -(-sum(map(len, chosen(found).values())) // 16)
    assert state["loss"][-n:].mean() < 0.8 * state["loss"][:n].mean()
    assert [path.name for path in whole.parent.iterdir()] == ["0.safetensors"]

    monkeypatch.setattr(model, "EVERY", 2)
    losses, asked = _Training.losses, []

    def stopping(self: _Training, numbers: list[int]) -> torch.Tensor:
        asked.append(numbers)
        if len(asked) == 4 * n + 3:
            raise StoppedError
        return losses(self, numbers)

    with monkeypatch.context() as patch:
        patch.setattr(_Training, "losses", stopping)
        with pytest.raises(StoppedError):
            fit(found, 2.0, 0, part)
    assert {path.name for path in part.parent.iterdir()} == {"0.pictures", "0.safetensors.state"}
    for video in ("a", "b"):
        Path(f"{video}.mp4").unlink()
    fit(found, 2.0, 0, part)
    assert part.read_bytes() == whole.read_bytes()

    predictions, _ = predict(found, 2.0, [whole], Path("p.parquet"))
    assert [(p.split, p.video) for p in predictions] == [("val", "c"), ("test", "d"), ("test", "e")]
    right = []
    for each in predictions:
        scores, labels = each.scores, np.array([item.label for item in found.items(each.split)[each.video]])  # type: ignore[arg-type]
        assert scores is not None
        assert scores.shape == (len(labels), found.annotation.recordings[each.video].n_steps + 1)
        assert np.isnan(scores[:, 0]).all()
        assert np.array_equal(each.chosen, scores[:, 1:].argmax(axis=1) + 1)
        right.append(np.mean((each.chosen == labels)[labels > 0]))
    assert np.mean(right) > 0.5
    selection = scored(found, 2.0, Path("p.parquet"))["selection"]
    assert "threshold of the best binary F1 on val" in selection


@pytest.mark.slow
def test_retrieval_is_fitted_and_predicted(planted: Any) -> None:
    settings = {"samples_per_video": 6, "videos": 1}
    found, path = planted({"table": "2b", "modality": "V", "settings": settings}, compute="bfloat16"), Path("fit/0")
    path = path.with_suffix(".safetensors")
    fit(found, 4.0, 0, path)
    assert len(load_file(path)["loss"]) == 1
    items = found.items("test")["d"][:5]
    ((_, answers, scores),) = chooser_of(found, 4.0, [path])("d", items)
    assert scores is not None
    assert scores.shape == (5, 2)
    assert np.isfinite(scores).all()
    assert np.array_equal(answers, scores.argmax(axis=1))


def test_a_damaged_fit_is_one_line(inputs: Any) -> None:
    Path("0.safetensors").write_bytes(b"nothing")
    with pytest.raises(StoreError, match=r"0.safetensors is damaged or no checkpoint"):
        chooser_of(inputs(), 4.0, [Path("0.safetensors")])
