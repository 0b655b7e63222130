"""A German and a Japanese recording through the real libraries, with tiny models of random numbers.

Their text means nothing: the tests are about the forced and the detected language, the times, and equal results.
"""

import csv
import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stepline.asr import languages, segments
from stepline.asr.deepgram import Deepgram
from stepline.asr.engines import recogniser
from stepline.asr.transcribe import ENGINES, transcribe
from stepline.asr.transcript import read
from stepline.availability import read_manifest, write_manifest
from stepline.backbones.torchvision import make_importable
from stepline.cli import main
from stepline.config import validate
from stepline.errors import ConfigError, StoreError
from stepline.media.audio import RATE
from stepline.plans import pipeline
from tests.asr.deepgram_answers import KEY, keyed, listened, response
from tests.asr.voices import spoken
from tests.asr.wav import write_wav
from tests.server import Reply, Request, Server

pytest.importorskip("av")
torch = pytest.importorskip("torch")
openai = pytest.importorskip("whisper")
make_importable()
pytest.importorskip("transformers")
faster = pytest.importorskip("faster_whisper")

from tests.asr import models  # noqa: E402
from tests.media.clips import make  # noqa: E402

START, GERMAN, TRANSCRIBE = 50_258, 50_261, 50_359
"""The tokens of Whisper's prompt."""


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """The options of each engine with a model of many languages."""
    folder = tmp_path_factory.mktemp("models")
    source = models.whisper(folder / "whisper", multilingual=True)
    dims = openai.model.ModelDimensions(
        n_mels=80, n_vocab=51_865, n_audio_ctx=1500, n_audio_state=48, n_audio_head=2, n_audio_layer=1,
        n_text_ctx=models.LENGTH, n_text_state=48, n_text_head=2, n_text_layer=1,
    )  # fmt: skip
    network = openai.model.Whisper(dims)
    models.randomise(network)
    torch.save({"dims": vars(dims), "model_state_dict": network.state_dict()}, folder / "tiny.pt")
    converted = models.faster_whisper(source, folder / "converted")
    greedy = {"decoding": "greedy", "words": False}
    return {
        "whisper": {"model": str(folder / "tiny.pt")} | greedy,
        "faster_whisper": {"model": str(converted), "compute_type": "float32"} | greedy,
    }


@pytest.fixture(scope="module")
def voices() -> dict[str, np.ndarray]:
    return {language: spoken(language) for language in ("de", "ja")}


def prompts(monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """Return a list of the prompts with which the libraries begin to decode from now on."""
    seen: list[list[int]] = []
    decode, ask = openai.decoding.PyTorchInference.logits, faster.WhisperModel.get_prompt

    def spy_decode(self: Any, tokens: Any, features: Any) -> Any:
        seen.append(tokens[0].tolist())
        return decode(self, tokens, features)

    def spy_ask(self: Any, *arguments: Any, **options: Any) -> Any:
        seen.append(ask(self, *arguments, **options))
        return seen[-1]

    monkeypatch.setattr(openai.decoding.PyTorchInference, "logits", spy_decode)
    monkeypatch.setattr(faster.WhisperModel, "get_prompt", spy_ask)
    return seen


@pytest.mark.parametrize("name", ["whisper", "faster_whisper"])
def test_a_given_language_is_in_the_prompt_and_a_detected_one_too(
    name: str, tiny: dict[str, dict[str, Any]], voices: dict[str, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = prompts(monkeypatch)
    german = ENGINES[name](**tiny[name], language="de")
    answer = german.answer(voices["de"])
    assert [START, GERMAN, TRANSCRIBE] in seen
    assert german.heard(answer).spoken is None
    seen.clear()
    by_itself = ENGINES[name](**tiny[name], language="auto")
    heard = by_itself.answer(voices["ja"])
    detected = by_itself.heard(heard).spoken
    assert detected is not None
    token = next(prompt[1] for prompt in seen if len(prompt) == 3)
    assert detected.language == openai.tokenizer.get_tokenizer(True).decode([token]).strip("<|>")
    assert detected.probability is not None
    assert 0 < detected.probability < 1
    assert detected == approximately(theirs(name, tiny[name]["model"], voices["ja"]))
    assert json.loads(heard)["segments"] == json.loads(
        ENGINES[name](**tiny[name], language=detected.language).answer(voices["ja"])
    )


def approximately(found: tuple[str, float]) -> Any:
    return languages.Spoken(found[0], pytest.approx(found[1], abs=1e-4))


def theirs(name: str, model: str, samples: np.ndarray) -> tuple[str, float]:
    """Return the language that the library detects by itself in at most 30 s."""
    audio = samples.astype(np.float32) / 32768
    if name == "whisper":
        network = openai.load_model(model)
        mel = openai.pad_or_trim(openai.log_mel_spectrogram(audio, padding=480_000), 3000)
        _, found = network.detect_language(mel)
        return max(found.items(), key=lambda each: each[1])
    return faster.WhisperModel(model, compute_type="float32").detect_language(audio)[:2]


def media(folder: Path, **audio: np.ndarray) -> None:
    videos = {}
    for video, samples in audio.items():
        (folder / "media" / video).mkdir(parents=True, exist_ok=True)
        write_wav(folder / "media" / video / "audio.wav", samples)
        heard = {"status": "present", "reason": ""}
        videos[video] = heard | {"sha256": video, "revision": 1, "audio": heard}
    write_manifest(folder / "media.json", videos)


def run(folder: Path, name: str, **options: Any) -> dict[str, dict[str, Any]]:
    transcribe(folder / "media.json", folder / "media", folder / "out", folder / "asr.json", engine=name, **options)
    return read_manifest(folder / "asr.json")


def test_one_service_is_asked_for_the_language_once_a_recording(
    tmp_path: Path, serve: Callable[..., Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    from stepline.asr import chunks

    monkeypatch.setenv("DEEPGRAM_API_KEY", KEY)
    monkeypatch.setattr(chunks, "LONGEST", 4 * RATE)
    monkeypatch.setattr(chunks, "SEARCHED", 2 * RATE)
    noise = np.random.default_rng(0).integers(-50, 50, 12 * RATE).astype(np.int16)
    media(tmp_path, a=noise)
    replies = iter(["silent", "de", "", ""])

    def reply(request: Request) -> Reply:
        found = response([] if (language := next(replies)) == "silent" else [("Guten Tag.", 0.5, 1.5)])
        if language == "de":
            found["results"]["channels"][0] |= {"detected_language": "de", "language_confidence": 0.75}
        return Reply(body=json.dumps(found).encode())

    server = serve(keyed(reply))
    options = {"model": "nova-3", "url": server.url, "concurrency": 1, "language": "auto"}
    found = run(tmp_path, "deepgram", **options)["a"]
    assert (found["language"], found["language_probability"], found["n_sentences"]) == ("de", 0.75, 3)
    detected = {"model": "nova-3", "detect_language": "true", "punctuate": "true", "utterances": "true"}
    given = {"model": "nova-3", "language": "de", "punctuate": "true", "utterances": "true"}
    assert [request.query for request in server.requests] == [detected, detected, given, given]
    assert run(tmp_path, "deepgram", **options)["a"] == found
    assert len(server.requests) == 4


@pytest.mark.parametrize(
    ("language", "asked"),
    [("en", {"language": "en"}), ("de-CH", {"language": "de-CH"}), ("multi", {"language": "multi"})],
)
def test_deepgram_gets_the_tag(language: str, asked: dict[str, str], serve: Callable[..., Server]) -> None:
    made = Deepgram(model="nova-3", url="http://127.0.0.1:9", concurrency=1, language=language)
    assert made.parameters == asked | {"model": "nova-3", "punctuate": True, "utterances": True}
    assert made.heard(listened([]).body).spoken is None  # type: ignore[arg-type]


def test_english_is_in_no_cache_key() -> None:
    options = {"model": "small", "decoding": "beam", "words": False}
    assert recogniser("whisper", options | {"language": "en"}) == recogniser("whisper", options)
    assert recogniser("whisper", options | {"language": "de"}) == recogniser("whisper", options) | {"language": "de"}
    assert pipeline(validate({"demo": {}}), "demo").speech.record == {"engine": "pocketsphinx", "asr_revision": "3"}


def test_the_codes_are_whispers() -> None:
    assert tuple(openai.tokenizer.LANGUAGES) == languages.WHISPER
    assert {*languages.WHISPER} == {*faster.tokenizer._LANGUAGE_CODES}


@pytest.mark.parametrize(
    ("asr", "line"),
    [
        ({"language": "German"}, "asr.language: 'German' is not allowed; write auto, or a language code such as en"),
        ({"language": "de"}, "asr.language: 'de' is not allowed with pocketsphinx, whose model is English; use en"),
        ({"engine": "whisper", "language": "de"}, "and the English model small.en; .* set asr.whisper.model: small$"),
        (
            {"engine": "deepgram", "language": "xx"},
            "'xx' is not allowed with deepgram; choose from auto, multi, en, zh",
        ),
        (
            {"engine": "whisper", "language": "multi", "whisper": {"model": "small"}},
            "'multi' is not allowed with whisper; choose from auto, en, zh, de, ",
        ),
    ],
)
def test_what_an_engine_cannot_transcribe_is_one_line_before_the_run(asr: dict[str, Any], line: str) -> None:
    Path("clips").mkdir()
    Path("clips/a.mp4").touch()
    with pytest.raises(ConfigError, match=line):
        pipeline(validate({"datasets": {"mine": {"videos": "clips"}}, "asr": asr}), "mine").check_records()


def test_a_model_that_lacks_the_language_is_one_line(
    tiny: dict[str, dict[str, Any]], voices: dict[str, np.ndarray]
) -> None:
    for name, model in ((name, ENGINES[name]) for name in ("whisper", "faster_whisper")):
        with pytest.raises(StoreError, match="does not know the language 'yue': choose another model or asr.language"):
            model(**tiny[name], language="yue").answer(voices["ja"])


def test_a_long_chunk_is_heard_in_five_windows() -> None:
    silent = np.zeros(400 * RATE, np.int16)
    assert len(segments.windows(np.ones(10 * RATE, np.int16))) == 1
    assert len(segments.windows(np.ones(65 * RATE, np.int16))) == 3
    assert len(segments.windows(silent + np.int16(1))) == 5
    late = silent.copy()
    late[50 * RATE :][: 5 * RATE] = 1
    (found,) = segments.windows(late)
    assert found[0] > 0
    likely = segments.likeliest([{"de": 0.6, "en": 0.4}, {"de": 0.1, "en": 0.9}])
    assert (likely.language, likely.probability) == ("en", pytest.approx(0.65))


def test_the_language_is_in_record_table_and_page(
    tiny: dict[str, dict[str, Any]], voices: dict[str, np.ndarray]
) -> None:
    Path("clips").mkdir()
    for language, samples in voices.items():
        make(Path(f"clips/{language}.mp4"), [Fraction(i, 2) for i in range(8)], audio=samples)
    own = {"videos": "clips", "stages": ["speech"], "backbones": [], "language": "auto"}
    asr = {"engine": "faster_whisper", "faster_whisper": tiny["faster_whisper"]}
    Path("config.yaml").write_text(json.dumps({"datasets": {"mine": own}, "asr": asr, "features": {"device": "cpu"}}))
    of_shard = ["mine", "--shard", "000"]
    for verb in (["fetch", "mine/videos/000"], ["media", *of_shard], ["transcribe", *of_shard], ["summary", "mine"]):
        main(verb)
    main(["report", "mine"])
    folder = Path("datasets/mine/transcripts/faster_whisper")
    manifest = json.loads((folder / "manifests/000.json").read_text())
    assert manifest["language"] == "auto"
    with open("results/mine/videos.csv", newline="", encoding="utf-8") as file:
        rows = {row["video"]: row for row in csv.DictReader(file)}
    page = Path("results/mine/report.html").read_text()
    for video in voices:
        record = json.loads((folder / f"{video}.json").read_text())
        language = record["language"]
        assert record["source"]["language"] == "auto"
        assert manifest["videos"][video]["language"] == language in languages.WHISPER
        assert 0 < manifest["videos"][video]["language_probability"] == record["language_probability"] < 1
        said = read(folder / f"{video}.parquet")
        assert said
        assert all(0 <= each.start_s <= each.end_s <= 10 for each in said)
        assert rows[video]["language"] == language != "en"
        assert f"| {language} |" in Path("results/mine/videos.md").read_text()
        assert f'<td data-of="language">{language}</td>' in page
        timeline = Path(f"results/mine/videos/{video}.html").read_text()
        assert f'<td lang="{language}">' in timeline
        assert f'"name":"Speech ({language})","step":"sentence","lang":"{language}"' in timeline


def test_a_data_set_has_a_language_of_its_own() -> None:
    Path("clips").mkdir()
    Path("clips/a.mp4").touch()
    config = validate(
        {
            "datasets": {"mine": {"videos": "clips", "language": "ja"}, "other": {"videos": "clips"}},
            "asr": {"engine": "whisper", "whisper": {"model": "small"}},
        }
    )
    assert pipeline(config, "mine").speech.record == pipeline(config, "other").speech.record | {"language": "ja"}
    config["asr"]["whisper"]["model"] = "small.en"
    with pytest.raises(ConfigError, match=r"^datasets.mine.language: 'ja' is not allowed with whisper and the English"):
        pipeline(config, "mine").check_records()
