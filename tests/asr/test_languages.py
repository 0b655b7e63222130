"""A German and a Japanese recording through the real libraries, with tiny models of random numbers.

Their text means nothing: the tests are about the forced and the detected language, the times, and equal results.
"""

import csv
import json
import shutil
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stepline.asr import languages, parakeet, segments, weights
from stepline.asr import transformers as engine
from stepline.asr.deepgram import Deepgram
from stepline.asr.engines import recogniser
from stepline.asr.transcribe import ENGINES, transcribe
from stepline.asr.transcript import read
from stepline.availability import read_manifest, write_manifest
from stepline.backbones.torchvision import make_importable
from stepline.cli import main
from stepline.config import validate
from stepline.errors import ConfigError, MissingError, StoreError
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
transformers = pytest.importorskip("transformers")
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
        "transformers": {"model": str(source)},
    }


@pytest.fixture(scope="module")
def voices() -> dict[str, np.ndarray]:
    return {language: spoken(language) for language in ("de", "ja")}


def prompts(monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """Return a list of the prompts with which the libraries begin to decode from now on."""
    seen: list[list[int]] = []
    decode, ask = openai.decoding.PyTorchInference.logits, faster.WhisperModel.get_prompt
    forward = transformers.WhisperForConditionalGeneration.forward

    def spy_decode(self: Any, tokens: Any, features: Any) -> Any:
        seen.append(tokens[0].tolist())
        return decode(self, tokens, features)

    def spy_ask(self: Any, *arguments: Any, **options: Any) -> Any:
        seen.append(ask(self, *arguments, **options))
        return seen[-1]

    def spy_forward(self: Any, *arguments: Any, **options: Any) -> Any:
        seen.append(options["decoder_input_ids"][0].tolist())
        return forward(self, *arguments, **options)

    monkeypatch.setattr(openai.decoding.PyTorchInference, "logits", spy_decode)
    monkeypatch.setattr(faster.WhisperModel, "get_prompt", spy_ask)
    monkeypatch.setattr(transformers.WhisperForConditionalGeneration, "forward", spy_forward)
    return seen


@pytest.mark.parametrize("name", ["whisper", "faster_whisper", "transformers"])
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
    if name == "faster_whisper":
        return faster.WhisperModel(model, compute_type="float32").detect_language(audio)[:2]
    network = transformers.WhisperForConditionalGeneration.from_pretrained(model)
    features = transformers.WhisperFeatureExtractor()(audio, sampling_rate=RATE, return_tensors="pt").input_features
    token = int(network.detect_language(features)[0])
    language = next(text for text, place in network.generation_config.lang_to_id.items() if place == token)
    logits = network(features, decoder_input_ids=torch.tensor([[START]])).logits[0, -1]
    return language.strip("<|>"), float(logits[[*network.generation_config.lang_to_id.values()]].softmax(-1).max())


def test_transformers_segments_are_those_of_its_own_pipeline(
    tiny: dict[str, dict[str, Any]], voices: dict[str, np.ndarray]
) -> None:
    model = tiny["transformers"]["model"]
    long = np.concatenate([voices["de"], voices["ja"]] * 4)
    made = engine.Transformers(model=model, language="de")
    network = transformers.WhisperForConditionalGeneration.from_pretrained(model)
    fast = transformers.WhisperTokenizerFast(tokenizer_file=f"{model}/tokenizer.json")
    for samples in (voices["de"], long):
        found = json.loads(made.answer(samples))
        whole = {"truncation": False, "padding": "longest"} if samples is long else {}
        audio = samples.astype(np.float32) / 32768
        features = transformers.WhisperFeatureExtractor()(audio, sampling_rate=RATE, return_tensors="pt", **whole)
        expected = network.generate(
            features.input_features, language="de", task="transcribe", return_timestamps=True, return_segments=True,
            return_dict_in_generate=True, output_scores=True, do_sample=False,
        )["segments"][0]  # fmt: skip
        inside = [segment for segment in expected if float(segment["start"]) < len(samples) / RATE]
        assert [each["text"] for each in found] == [
            fast.decode([token for token in segment["tokens"] if token < 50_364], skip_special_tokens=True)
            for segment in inside
        ]
        assert [(each["start"], each["end"]) for each in found] == [
            (float(segment["start"]), float(segment["end"])) for segment in inside
        ]
        for each, segment in zip(found, inside, strict=True):
            first, last = (place - 3 for place in segment["idxs"])
            scores = [step.log_softmax(-1).max() for step in segment["result"]["scores"][first:last]]
            assert each["avg_logprob"] == pytest.approx(float(torch.stack(scores).mean()), abs=1e-4)
    assert len(found) > 2


@pytest.mark.parametrize("kind", ["ctc", "tdt"])
def test_parakeets_tokens_are_those_of_its_own_processor(
    kind: str, tmp_path: Path, voices: dict[str, np.ndarray]
) -> None:
    german = voices["de"][: 2 * RATE]
    folder = models.parakeet(tmp_path / "model", kind)
    made = engine.Transformers(model=str(folder), language="auto")
    answer = made.answer(german)
    assert answer == made.answer(german)
    assert made.heard(answer).spoken is None
    loaded = engine._load(folder, "cpu")
    processor = transformers.ParakeetProcessor.from_pretrained(folder)
    inputs = processor(german.astype(np.float32) / 32768, sampling_rate=RATE)
    if kind == "ctc":
        text = processor.batch_decode(loaded.network.generate(**inputs), skip_special_tokens=True)[0]
    else:
        out = loaded.network.generate(**inputs, do_sample=False)
        (text,), (times,) = processor.decode(out.sequences, durations=out.durations, skip_special_tokens=True)
        ours = [token[1] for token in json.loads(answer)["tokens"] if token[0] not in parakeet.ENDS]
        assert ours == pytest.approx([each["start"] for each in times if each["token"].strip() not in parakeet.ENDS])
    said = made.heard(answer).sentences
    assert "".join(each.text for each in said).replace(" ", "") == text.replace(" ", "") != ""
    assert all(0 <= each.start_s <= each.end_s <= len(german) / RATE + 0.16 for each in said)
    assert all((each.confidence is None) == (kind == "tdt") for each in said)


def test_parakeets_sentences_end_at_pauses_and_at_marks() -> None:
    def told(*tokens: tuple[str, float]) -> list[str]:
        heard = [[text, start_s, start_s + 0.2, 0.5] for text, start_s in tokens]
        return [each.text for each in parakeet.sentences(json.dumps({"tokens": heard}).encode())]

    assert told(("▁Take", 0), ("▁3", 0.3), (".", 0.5), ("5", 0.6), (".", 0.8), ("▁Then", 0.9)) == ["Take 3.5.", "Then"]
    assert told(("▁a", 0), ("▁b", 0.9), ("▁c", 2.0)) == ["a b", "c"]
    assert told(("▁お湯", 0), ("。", 0.2), ("火", 0.4), ("？", 0.5), ("▁", 0.6)) == ["お湯。", "火？"]


def test_parakeet_gets_two_minutes_at_once_and_no_time_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parakeet, "LONGEST", 3 * RATE)
    monkeypatch.setattr(parakeet, "SEARCHED", RATE)
    audio = np.random.default_rng(0).normal(size=8 * RATE).astype(np.float32) / 10
    audio[int(2.2 * RATE) : int(2.6 * RATE)] = 0
    parts = [(start, len(part)) for start, part in parakeet._parts(audio)]
    assert parts[0] == (0, 2.4 * RATE)
    assert [start for start, _ in parts] == [0, *np.cumsum([length for _, length in parts])[:-1]]
    assert sum(length for _, length in parts) == len(audio)


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
        (
            {"engine": "transformers", "language": "de", "transformers": {"model": "hf:openai/whisper-tiny.en@1"}},
            "English model hf:openai/whisper-tiny.en@1; .* set asr.transformers.model: hf:openai/whisper-tiny$",
        ),
        (
            {"engine": "transformers", "transformers": {"model": "whisper-tiny"}},
            "asr.transformers.model: 'whisper-tiny' is not allowed; write hf:<owner>/<name>",
        ),
    ],
)
def test_what_an_engine_cannot_transcribe_is_one_line_before_the_run(asr: dict[str, Any], line: str) -> None:
    Path("clips").mkdir()
    Path("clips/a.mp4").touch()
    with pytest.raises(ConfigError, match=line):
        pipeline(validate({"datasets": {"mine": {"videos": "clips"}}, "asr": asr}), "mine").check_records()


def test_a_model_that_lacks_the_language_is_one_line(
    tiny: dict[str, dict[str, Any]], tmp_path: Path, voices: dict[str, np.ndarray]
) -> None:
    for name, model in ((name, ENGINES[name]) for name in ("whisper", "faster_whisper", "transformers")):
        with pytest.raises(StoreError, match="does not know the language 'yue': choose another model or asr.language"):
            model(**tiny[name], language="yue").answer(voices["ja"])
    english = shutil.copytree(tiny["transformers"]["model"], tmp_path / "english")
    settings = json.loads((english / "generation_config.json").read_text())
    (english / "generation_config.json").write_text(json.dumps(settings | {"is_multilingual": False}))
    assert engine.Transformers(model=str(english)).answer(voices["de"])
    with pytest.raises(StoreError, match="does not know the language 'de'"):
        engine.Transformers(model=str(english), language="de").answer(voices["de"])
    spoken = engine.Transformers(model=str(english), language="auto")
    assert spoken.heard(spoken.answer(voices["de"])).spoken == languages.Spoken("en")
    with pytest.raises(ConfigError, match="takes no language; use auto"):
        languages.check("transformers", {"model": str(models.parakeet(tmp_path / "p", "ctc")), "language": "de"})


@pytest.mark.parametrize("how", ["kind", "cut", "nan", "more", "old"])
def test_a_damaged_model_is_one_line(how: str, tiny: dict[str, dict[str, Any]], tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    folder = tmp_path / "bad"
    shutil.copytree(tiny["transformers"]["model"], folder)
    file = folder / "model.safetensors"
    if how == "kind":
        (folder / "config.json").write_text('{"model_type": "bert"}')
    elif how == "old":
        (folder / "generation_config.json").write_text("{}")
    elif how == "cut":
        file.write_bytes(file.read_bytes()[:-100])
    else:
        state = load_file(file)
        value = torch.full((2,), float("nan")) if how == "more" else state["model.decoder.layer_norm.weight"] * np.nan
        save_file(state | {"more" if how == "more" else "model.decoder.layer_norm.weight": value}, file)
    with pytest.raises(StoreError, match=f"{folder}") as caught:
        engine.Transformers(model=str(folder)).answer(np.ones(RATE, np.int16))
    assert "\n" not in str(caught.value)


def test_a_model_of_the_hub_has_a_folder_and_a_command() -> None:
    name = "hf:openai/whisper-small@0123abc"
    with pytest.raises(MissingError, match="run `hf download openai/whisper-small --revision 0123abc --include"):
        engine.Transformers(model=name).answer(np.ones(RATE, np.int16))
    folder = Path("weights/transformers/openai--whisper-small@0123abc")
    command = weights.how_to_get(weights.item("transformers", name))
    assert command.endswith(f"--include '*.json' --include model.safetensors --local-dir {folder}")
    folder.mkdir(parents=True)
    for file in weights.NETWORK_FILES:
        assert weights.locate("transformers", name) is None
        (folder / file).touch()
    assert weights.locate("transformers", name) == folder
    main_ = weights.how_to_get(weights.item("transformers", "hf:openai/whisper-small"))
    assert "--revision main " in main_
    for wrong in ("hf:openai", "hf:../x", "hf:a/../b", "hf:a/b@../c"):
        with pytest.raises(ConfigError, match="write hf:<owner>/<name>"):
            weights.locate("transformers", wrong)


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
    asr = {"engine": "transformers", "transformers": tiny["transformers"]}
    Path("config.yaml").write_text(json.dumps({"datasets": {"mine": own}, "asr": asr, "features": {"device": "cpu"}}))
    of_shard = ["mine", "--shard", "000"]
    for verb in (["fetch", "mine/videos/000"], ["media", *of_shard], ["transcribe", *of_shard], ["summary", "mine"]):
        main(verb)
    main(["report", "mine"])
    folder = Path("datasets/mine/transcripts/transformers")
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
