"""The asr stage: from audio to transcripts."""

import logging
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepline.asr import transcript
from stepline.asr.chunks import chunks
from stepline.asr.deepgram import Deepgram, RecognitionError
from stepline.asr.engines import recogniser
from stepline.asr.pocketsphinx import PocketSphinx
from stepline.asr.transcript import Sentence
from stepline.availability import read_manifest, write_manifest
from stepline.errors import ConfigError
from stepline.io import read_json, write_json
from stepline.media.audio import RATE
from stepline.progress import progress

Recogniser = Callable[[NDArray[np.int16]], Iterable[Sentence]]
"""Samples (16 kHz mono) -> sentences, with times in seconds from the first sample; one recording, chunk after chunk."""

ENGINES: dict[str, Callable[..., Recogniser]] = {
    "pocketsphinx": lambda _folder: PocketSphinx(),
    "deepgram": lambda folder, **options: Deepgram(**options, answers=folder / "answers"),
}
"""Engine -> what makes its recogniser of one recording, from the folder of transcripts and the engine's options."""

log = logging.getLogger(__name__)


def transcribe(
    media_manifest: Path, media_folder: Path, folder: Path, manifest: Path, *, engine: str, **options: str
) -> None:
    """Write ``folder/<video>.csv`` of every present video with audio in ``media_folder/<video>/audio.wav``.

    engine: a key of ``ENGINES``; options: its part of the configuration's ``asr``. Times are in seconds from the start
    of the video. A video without readable audio is a record with that reason; one in which nobody speaks has an empty
    transcript. A transcript of the same audio by the same recogniser is kept, one of a video that has no more audio is
    removed. One that fails is a record with its reason and the number of its failures so far; the next call tries
    again.
    """
    if engine not in ENGINES:
        raise ConfigError(f"asr.engine: {engine!r} is not allowed; choose from {', '.join(ENGINES)}")
    videos: dict[str, dict[str, Any]] = {}
    by = recogniser(engine, options)
    for video, media in progress(read_manifest(media_manifest).items(), what="asr", unit="videos"):
        path, done = folder / f"{video}.csv", folder / f"{video}.json"
        absent = media if media["status"] != "present" else media["audio"]
        if absent["status"] != "present":
            path.unlink(missing_ok=True)
            videos[video] = {"status": absent["status"], "reason": absent["reason"]}
            continue
        source = {"sha256": media["sha256"], "media_revision": media["revision"], **by}
        made = read_json(done) if done.is_file() else {}
        failures = {"failures": made["failures"]} if "failures" in made else {}
        if not (path.is_file() and made.get("source") == source):
            try:
                sentences = _sentences(media_folder / video / "audio.wav", ENGINES[engine](folder, **options))
            except RecognitionError as error:
                log.warning("%s: failed: %s", video, error)
                failures = {"failures": failures.get("failures", 0) + 1}
                path.unlink(missing_ok=True)
                write_json(done, failures)
                videos[video] = {"status": "failed", "reason": str(error), **failures}
                continue
            transcript.write(path, sentences)
            made = {"source": source, "n_sentences": len(sentences), **failures}
            write_json(done, made)
        reason = "" if made["n_sentences"] else "no speech found"
        videos[video] = {"status": "present", "reason": reason, "n_sentences": made["n_sentences"], **failures}
    write_manifest(manifest, videos, **by)


def _sentences(wav: Path, recognise: Recogniser) -> list[Sentence]:
    return [
        Sentence(sentence.text, sentence.start_s + start / RATE, sentence.end_s + start / RATE)
        for start, samples in chunks(wav)
        for sentence in recognise(samples)
    ]
