"""faster-whisper through its real library, with a tiny model of random numbers that CTranslate2's converter made."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stepline.asr import faster_whisper as faster
from stepline.asr.faster_whisper import FasterWhisper
from stepline.asr.transcribe import recognise
from stepline.backbones.torchvision import make_importable
from stepline.errors import MissingError, StoreError
from tests.asr.speech import speech
from tests.asr.wav import write_wav
from tests.gpu import GPU

pytest.importorskip("av")
pytest.importorskip("faster_whisper")
torch = pytest.importorskip("torch")
make_importable()
pytest.importorskip("transformers")
pytest.importorskip("whisper")

from tests.asr import models  # noqa: E402

CUDA = {"device": "cuda", "jobs_per_gpu": 1}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Convert a small English Whisper of random numbers, with the tokens of the real one."""
    folder = tmp_path_factory.mktemp("made")
    return models.faster_whisper(models.whisper(folder / "source", multilingual=False), folder / "model")


def recogniser(model: Path, **changes: Any) -> FasterWhisper:
    options = {"model": str(model), "decoding": "greedy", "compute_type": "int8", "words": False} | changes
    return FasterWhisper(**options)


@pytest.mark.parametrize("changes", [{}, {"decoding": "beam"}, {"compute_type": "float32"}, {"words": True}], ids=str)
def test_a_rerun_gives_the_same_sentences(changes: dict[str, Any], model: Path, tmp_path: Path) -> None:
    path = write_wav(tmp_path / "a.wav", speech())
    first, second = (
        recognise(path, recogniser(model, **changes), tmp_path / folder)[0] for folder in ("first", "second")
    )
    assert first == second != []
    assert all(0 <= s.start_s <= s.end_s <= 6 and s.confidence is not None and 0 < s.confidence < 1 for s in first)
    words = [word for sentence in first for word in sentence.words]
    assert bool(words) == bool(changes.get("words"))
    assert all(0 <= w.start_s <= w.end_s <= 6 and w.confidence is not None and 0 <= w.confidence <= 1 for w in words)


def test_int8_is_one_arithmetic_on_all_devices(model: Path) -> None:
    import ctranslate2
    import faster_whisper

    assert {*faster.COMPUTE.values()} - {"float16"} <= ctranslate2.get_supported_compute_types("cpu")
    ours = faster._load(model, faster.COMPUTE["int8"], "cpu").model.compute_type
    assert ours == faster_whisper.WhisperModel(str(model), compute_type="int8").model.compute_type == "int8_float32"


def test_what_a_device_cannot_compute_is_one_line(model: Path) -> None:
    line = r"asr.faster_whisper.compute_type: float16 does not run on cpu; use float32, int8$"
    with pytest.raises(StoreError, match=line):
        recogniser(model, compute_type="float16").answer(speech())


def test_it_runs_where_features_device_says(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    with pytest.raises(StoreError, match="features.device is cuda, but no GPU is usable here"):
        recogniser(model, on=CUDA).answer(speech())


@pytest.mark.gpu
@pytest.mark.parametrize("compute_type", ["float32", "int8", *(["float16"] if GPU == "cuda" else [])])
def test_it_runs_on_a_gpu(compute_type: str, model: Path) -> None:
    made = recogniser(model, compute_type=compute_type, on=CUDA | {"device": GPU})
    assert made.heard(made.answer(speech())).sentences


def test_options_are_of_the_answer_and_the_path_is_not(model: Path, tmp_path: Path) -> None:
    shutil.copytree(model, tmp_path / "copy")
    asked = [recogniser(model, **change).parameters for change in ({}, {"decoding": "beam"}, {"words": True})]
    assert len({json.dumps(parameters) for parameters in asked}) == 3
    assert recogniser(tmp_path / "copy").parameters == asked[0]


def test_an_absent_model_is_one_line(model: Path, tmp_path: Path) -> None:
    with pytest.raises(MissingError, match="run `hf download Systran/faster-whisper-tiny.en --local-dir weights/"):
        recogniser(Path("tiny.en")).answer(speech())
    shutil.copytree(model, tmp_path / "part")
    (tmp_path / "part/tokenizer.json").unlink()
    with pytest.raises(MissingError, match="tokenizer.json.* is absent"):
        recogniser(tmp_path / "part").answer(speech())


@pytest.mark.parametrize("name", ["model.bin", "config.json", "tokenizer.json", "vocabulary.json"])
@pytest.mark.parametrize("how", ["empty", "cut"])
def test_a_damaged_model_is_one_line(name: str, how: str, model: Path, tmp_path: Path) -> None:
    shutil.copytree(model, tmp_path / "bad")
    file = tmp_path / "bad" / name
    file.write_bytes(b"" if how == "empty" else file.read_bytes()[:-30])
    with pytest.raises(StoreError, match=f"{tmp_path}/bad.* is n") as caught:
        recogniser(tmp_path / "bad").answer(speech())
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("seconds", [0.01, 31])
def test_short_and_longer_audio_is_recognised(seconds: float, model: Path) -> None:
    samples = np.random.default_rng(0).integers(-3000, 3000, int(seconds * 16_000), np.int16)
    made = recogniser(model, words=True)
    assert isinstance(made.heard(made.answer(samples)).sentences, list)
