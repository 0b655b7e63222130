"""What decides transcripts, and what their recogniser is missing."""

from dataclasses import replace

import pytest

from stepline import paths
from stepline.asr import engines
from stepline.availability import Record, write_availability, write_manifest
from stepline.errors import MissingError
from stepline.io import write_json
from stepline.needs import Need
from tests.pipeline.own import made


def test_a_transcript_that_failed_is_asked_for_again() -> None:
    before = made().speech.params("000")
    folder = paths.transcripts("mine", "pocketsphinx")
    write_json(folder / "a.json", {"failures": 1})
    assert made().speech.params("000") != before
    said = {video: {"status": "present", "reason": "", "n_sentences": 0} for video in "ab"}
    write_manifest(paths.manifest(folder, "000"), said, **made().speech.record)
    assert made().speech.transcribed
    said["a"] = {"status": "failed", "reason": "HTTP 503", "failures": 1}
    write_manifest(paths.manifest(folder, "000"), said, **made().speech.record)
    assert not made().speech.transcribed


def test_another_recognisers_transcripts_are_read_where_the_configured_one_cannot_make_any() -> None:
    whisper = {"engine": "whisper"}
    assert made(asr=whisper).speech.readable.engine == "whisper"
    said = {video: {"status": "present", "reason": "", "n_sentences": 0} for video in "ab"}
    sphinx = paths.manifest(paths.transcripts("mine", "pocketsphinx"), "000")
    write_manifest(sphinx, said, **made().speech.record)
    speech = made(asr=whisper).speech
    assert speech.readable.engine == "pocketsphinx"
    assert speech.note.startswith("The transcripts are by pocketsphinx: whisper needs ")
    assert "weights:whisper/small.en" in speech.note
    assert sphinx in made(asr=whisper).summary_inputs()
    assert (made().speech.readable.engine, made().speech.note) == ("pocketsphinx", "")
    write_manifest(paths.manifest(paths.transcripts("mine", "deepgram"), "000"), said)
    assert made(asr=whisper).speech.readable.engine == "deepgram"
    write_manifest(paths.manifest(paths.transcripts("mine", "whisper"), "000"), {"a": said["a"]})
    assert made(asr=whisper).speech.readable.engine == "whisper"


def test_what_the_recogniser_is_missing_is_asked_where_transcripts_are_not_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    deepgram = {"engine": "deepgram"}
    assert made(asr=deepgram).speech.missing == (Need("key", "DEEPGRAM_API_KEY"),)
    assert not any("transcripts" in str(path) for path in made(asr=deepgram).summary_inputs())
    other = deepgram | {"deepgram": {"model": "nova-2"}}
    assert made(asr=deepgram).summary_params() != made(asr=other).summary_params()
    with pytest.raises(MissingError, match=r"^strict: mine needs key:DEEPGRAM_API_KEY$"):
        made(asr=deepgram, strict=True)
    said = {video: {"status": "present", "reason": "", "n_sentences": 0} for video in "ab"}
    manifest = paths.manifest(paths.transcripts("mine", "deepgram"), "000")
    write_manifest(manifest, said, **made(asr=deepgram).speech.record)
    assert made(asr=deepgram).speech.missing == ()
    write_manifest(manifest, {"a": said["a"]}, **made(asr=deepgram).speech.record)
    assert made(asr=deepgram).speech.missing == (Need("key", "DEEPGRAM_API_KEY"),)
    write_manifest(manifest, said, **made(asr=deepgram).speech.record)
    for heard, missing in (("0" * 64, ()), ("1" * 64, (Need("key", "DEEPGRAM_API_KEY"),))):
        there = Record(video="a", status="present", path="datasets/mine/videos/a.mp4", sha256="0" * 64)
        stamp = made().videos.stamps("000")["a"]
        write_availability("datasets/mine/videos/a.json", [replace(there, stamp=stamp)])
        write_json(paths.transcripts("mine", "deepgram") / "a.json", {"source": {"sha256": heard}})
        assert made(asr=deepgram).speech.missing == missing
    monkeypatch.setattr(engines, "find_spec", lambda name: None)
    assert made().speech.missing == (Need("package", "pocketsphinx"),)
