"""Whisper through its real library, with tiny checkpoints of random numbers."""

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stepline.asr import weights
from stepline.asr import whisper as engine
from stepline.asr.transcribe import transcribe
from stepline.asr.transcript import read
from stepline.asr.whisper import DECODING, Whisper
from stepline.availability import read_manifest, write_manifest
from stepline.errors import MissingError, StoreError
from stepline.media.audio import RATE
from stepline.mirror import cached_sha256
from tests.asr.speech import speech
from tests.asr.wav import write_wav
from tests.gpu import GPU

pytest.importorskip("av")
torch = pytest.importorskip("torch")
whisper = pytest.importorskip("whisper")
Make = Callable[..., Path]
SAID = speech()[: 2 * RATE]
CUDA = {"device": "cuda", "jobs_per_gpu": 1}


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Make:
    """Write a checkpoint of Whisper's form with one small layer."""
    made: dict[Any, Path] = {}

    def make(*, multilingual: bool = False, layers: int = 1, heads: int = 2, value: float | None = None) -> Path:
        key = (multilingual, layers, heads, value)
        if key not in made:
            state = 24 * heads
            dims = whisper.model.ModelDimensions(
                n_mels=80, n_vocab=51_864 + multilingual,
                n_audio_ctx=1500, n_audio_state=state, n_audio_head=heads, n_audio_layer=1,
                n_text_ctx=64, n_text_state=state, n_text_head=heads, n_text_layer=layers,
            )  # fmt: skip
            model = whisper.model.Whisper(dims)
            generator = torch.Generator().manual_seed(0)
            for part in model.parameters():
                torch.nn.init.normal_(part, std=0.3, generator=generator)
            if value is not None:
                torch.nn.init.constant_(next(model.parameters()), value)
            made[key] = tmp_path_factory.mktemp("whisper") / "tiny.pt"
            torch.save({"dims": vars(dims), "model_state_dict": model.state_dict()}, made[key])
        return made[key]

    return make


def run(folder: Path, to: str, model: Path, decoding: str = "greedy", *, words: bool = False) -> dict[str, Any]:
    (folder / "media/a").mkdir(parents=True, exist_ok=True)
    write_wav(folder / "media/a/audio.wav", SAID)
    heard = {"status": "present", "reason": ""}
    write_manifest(folder / "media.json", {"a": heard | {"sha256": "1", "revision": 1, "audio": heard}})
    transcribe(
        folder / "media.json", folder / "media", folder / to, folder / f"{to}.json",
        engine="whisper", model=str(model), decoding=decoding, words=words,
    )  # fmt: skip
    record: dict[str, Any] = read_manifest(folder / f"{to}.json")["a"]
    return record


@pytest.mark.parametrize("decoding", ["greedy", "beam", pytest.param("hirest", marks=pytest.mark.slow)])
def test_a_rerun_gives_the_same_bytes(decoding: str, tmp_path: Path, checkpoint: Make) -> None:
    torch.manual_seed(1)
    record = run(tmp_path, "first", checkpoint(), decoding)
    torch.manual_seed(2)
    assert record == run(tmp_path, "second", checkpoint(), decoding)
    assert record["n_sentences"] > 0
    assert (tmp_path / "first/a.parquet").read_bytes() == (tmp_path / "second/a.parquet").read_bytes()
    sentences = read(tmp_path / "first/a.parquet")
    assert {s.engine for s in sentences} == {"whisper"}
    assert all(s.confidence is not None and 0 < s.confidence < 1 and not s.words for s in sentences)


@pytest.mark.slow
def test_hirests_settings_sample_and_the_others_do_not(checkpoint: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    def texts(decoding: str) -> set[bytes]:
        found = set()
        for seed in (0, 1):
            monkeypatch.setattr(engine, "SEED", seed)
            found.add(Whisper(model=str(checkpoint()), decoding=decoding, words=False).answer(SAID))
        return found

    assert [len(texts(decoding)) for decoding in DECODING] == [1, 1, 2]


def test_hirests_settings_are_the_published_ones() -> None:
    options = DECODING["hirest"]
    assert options["temperature"] == (0.15, 0.35, 0.55, 0.75, 0.95)
    assert (options["beam_size"], options["best_of"], options["patience"], options["length_penalty"]) == (5, 5, 1, None)
    assert (options["condition_on_previous_text"], options["fp16"], options["suppress_tokens"]) == (True, True, "-1")
    thresholds = ("compression_ratio_threshold", "logprob_threshold", "no_speech_threshold")
    assert [options[name] for name in thresholds] == [2.4, -1.0, 0.6]


@pytest.mark.slow
def test_words_come_with_times_and_probabilities(tmp_path: Path, checkpoint: Make) -> None:
    run(tmp_path, "words", checkpoint(), words=True)
    words = [word for sentence in read(tmp_path / "words/a.parquet") for word in sentence.words]
    assert words
    assert all(0 <= w.start_s <= w.end_s <= 2 and w.confidence is not None and 0 < w.confidence < 1 for w in words)


def test_confidence_is_the_likelihood_of_the_tokens(checkpoint: Make) -> None:
    recogniser = Whisper(model=str(checkpoint()), decoding="greedy", words=True)
    answer = recogniser.answer(speech())
    said = recogniser.heard(answer).sentences
    segments = json.loads(answer)
    assert [s.confidence for s in said] == pytest.approx([np.exp(segment["avg_logprob"]) for segment in segments])
    assert [w.confidence for s in said for w in s.words] == [
        word["probability"] for segment in segments for word in segment["words"]
    ]


def test_checkpoints_of_english_and_of_many_languages_are_read_as_such(checkpoint: Make) -> None:
    answers = []
    for multilingual in (False, True):
        path = checkpoint(multilingual=multilingual)
        assert engine._load(str(path), path, cached_sha256(path), "cpu").is_multilingual == multilingual
        answers.append(Whisper(model=str(path), decoding="greedy", words=False).answer(speech()))
    assert answers[0] != answers[1]


def named(path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make the file the published checkpoint ``tiny.en``, in its place."""
    place = Path("weights/whisper/tiny.en.pt")
    place.parent.mkdir(parents=True)
    place.write_bytes(path.read_bytes())
    url = f"http://127.0.0.1:9/{cached_sha256(path)}/tiny.en.pt"
    monkeypatch.setitem(weights.WHISPER, "tiny.en", (url, cached_sha256(path)))
    monkeypatch.setitem(whisper._MODELS, "tiny.en", url)
    return place


def test_a_named_checkpoint_has_its_alignment_heads(checkpoint: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    path = named(checkpoint(layers=4, heads=6), monkeypatch)
    assert Whisper(model="tiny.en", decoding="greedy", words=False).answer(speech())
    by_name = engine._load("tiny.en", path, cached_sha256(path), "cpu").alignment_heads.to_dense()
    by_path = engine._load(str(path), path, cached_sha256(path), "cpu").alignment_heads.to_dense()
    assert not torch.equal(by_name, by_path)


def test_a_named_checkpoint_that_is_another_is_one_line(checkpoint: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    path = named(checkpoint(), monkeypatch)
    path.write_bytes(path.read_bytes() + b"more")
    with pytest.raises(StoreError, match="tiny.en.pt is not Whisper's checkpoint tiny.en: remove it"):
        Whisper(model="tiny.en", decoding="greedy", words=False).answer(speech())


@pytest.mark.parametrize(
    ("model", "line"),
    [("small.en", "run `stepline fetch weights/whisper/small.en`"), ("./mine.pt", "./mine.pt is absent")],
)
def test_an_absent_checkpoint_is_one_line(model: str, line: str) -> None:
    with pytest.raises(MissingError, match=line):
        Whisper(model=model, decoding="beam", words=False).answer(speech())


def test_it_runs_where_features_device_says(checkpoint: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    with pytest.raises(StoreError, match="features.device is cuda, but no GPU is usable here"):
        Whisper(model=str(checkpoint()), decoding="greedy", words=False, on=CUDA).answer(SAID)


@pytest.mark.gpu
@pytest.mark.parametrize("words", [False, True])
def test_it_runs_on_a_gpu(words: bool, checkpoint: Make) -> None:
    path = checkpoint()
    made = Whisper(model=str(path), decoding="greedy", words=words, on=CUDA | {"device": GPU})
    assert made.heard(made.answer(SAID)).sentences
    assert engine._load(str(path), path, cached_sha256(path), GPU).device.type == GPU


def test_what_the_network_raises_is_one_line(checkpoint: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory.\nTried to allocate 2.00 GiB")

    monkeypatch.setattr(whisper.model.AudioEncoder, "forward", full)
    with pytest.raises(StoreError, match="^Whisper fails on cpu: CUDA out of memory. Tried to allocate 2.00 GiB$"):
        Whisper(model=str(checkpoint()), decoding="greedy", words=False).answer(SAID)


class Harm:
    """An object whose pickle runs code."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (Path("harm"),))


@pytest.mark.parametrize("how", ["code", "pickle", "text", "empty", "cut", "other", "nan", "huge"])
def test_what_is_no_checkpoint_is_one_line_and_runs_no_code(how: str, tmp_path: Path, checkpoint: Make) -> None:
    path = tmp_path / "bad.pt"
    if how == "code":
        torch.save({"dims": Harm(), "model_state_dict": {}}, path)
    elif how == "other":
        torch.save({"model": torch.zeros(2)}, path)
    elif how == "huge":
        held = torch.load(checkpoint())
        torch.save(held | {"dims": held["dims"] | {"n_text_state": 1 << 17}}, path)
    elif how == "nan":
        path = checkpoint(value=float("nan"))
    else:
        whole = checkpoint().read_bytes()
        content = {"pickle": pickle.dumps(Harm()), "text": b"not found", "empty": b"", "cut": whole[:-1000]}
        path.write_bytes(content[how])
    with pytest.raises(StoreError, match=f"{path} is not a Whisper checkpoint") as caught:
        Whisper(model=str(path), decoding="greedy", words=False).answer(speech())
    assert "\n" not in str(caught.value)
    assert not Path("harm").exists()


@pytest.mark.parametrize("seconds", [0.01, 0.1, 31])
def test_short_and_longer_audio_is_recognised(seconds: float, checkpoint: Make) -> None:
    samples = np.random.default_rng(0).integers(-3000, 3000, int(seconds * 16_000), np.int16)
    recogniser = Whisper(model=str(checkpoint()), decoding="greedy", words=True)
    assert isinstance(recogniser.heard(recogniser.answer(samples)).sentences, list)
