"""The asr stage: from audio to transcripts."""

import hashlib
import logging
import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from stepline import rates
from stepline.asr import transcript
from stepline.asr.chunks import chunks
from stepline.asr.deepgram import Deepgram
from stepline.asr.engine import Engine, Heard, lacks
from stepline.asr.engines import PROCESSES, recogniser
from stepline.asr.faster_whisper import FasterWhisper
from stepline.asr.languages import AUTO, ENGLISH, Spoken, check
from stepline.asr.pocketsphinx import PocketSphinx
from stepline.asr.segments import WINDOW
from stepline.asr.transcript import Sentence, Word
from stepline.asr.weights import FOLDERS
from stepline.asr.whisper import Whisper
from stepline.availability import length_s, read_manifest, write_manifest
from stepline.devices import CPU, wanted
from stepline.errors import ConfigError, DownloadError, SteplineError, StoreError
from stepline.io import canonical_json, read_json, sha256_file, write_bytes, write_sealed
from stepline.media.audio import RATE
from stepline.progress import VIDEO, progress, reached
from stepline.seal import CHANGED, sealed_below, unsealed

ENGINES: dict[str, Callable[..., Engine]] = {
    "pocketsphinx": PocketSphinx,
    "deepgram": Deepgram,
    "whisper": Whisper,
    "faster_whisper": FasterWhisper,
}
"""Engine -> its class, called with its options."""

FOUND = "n_sentences", "unheard", "language", "language_probability"
"""The fields of a transcript's record that are also in the record of its shard."""

log = logging.getLogger(__name__)

Item = TypeVar("Item")
Result = TypeVar("Result")


def transcribe(
    media_manifest: Path,
    media_folder: Path,
    folder: Path,
    manifest: Path,
    *,
    engine: str,
    on: Mapping[str, Any] = CPU,
    **options: Any,
) -> None:
    """Write ``folder/<video>.parquet`` of every present video with audio in ``media_folder/<video>/audio.wav``.

    engine: a key of ``ENGINES``. options: its part of the configuration's ``asr``, and ``language`` unless it is
    English: a code, or ``auto``. With ``auto``, the first chunk whose language the engine detects determines that of
    all later chunks, and the video's record names it. on: the configuration's ``features``, with the device of
    networks. Times are in seconds from the start of the video. A video without readable audio has a record with this
    reason; a video without speech has an empty transcript. A transcript of the
    same audio by the same recogniser is kept. The transcript of a video that no longer has audio is removed. A video
    that fails has a record with the reason and the number of its failures so far, and the next call tries again. The
    engine's answer for each chunk is cached in ``folder/answers``.
    """
    if engine not in ENGINES:
        raise ConfigError(f"asr.engine: {engine!r} is not allowed; choose from {', '.join(ENGINES)}")
    videos: dict[str, dict[str, Any]] = {}
    listed = read_manifest(media_manifest)
    heard_s, start = 0.0, time.monotonic()
    check(engine, options)
    by = recogniser(engine, options)
    asked = options.get("language", ENGLISH)
    make = partial(ENGINES[engine], **options, **({"on": on} if engine in FOLDERS else {}))
    made_by = make()
    if (processes := PROCESSES.get(engine, 1)) > 1:
        new = [media_folder / video / "audio.wav" for video in listed if not (folder / f"{video}.json").is_file()]
        _answer_all([wav for wav in new if wav.is_file()], made_by, folder / "answers", processes)
    for video, media in progress(listed.items(), what="speech", unit=VIDEO, size=length_s):
        path, done = folder / f"{video}.parquet", folder / f"{video}.json"
        absent = media if media["status"] != "present" else media["audio"]
        if absent["status"] != "present":
            path.unlink(missing_ok=True)
            videos[video] = {"status": absent["status"], "reason": absent["reason"]}
            continue
        of = {"sha256": media["sha256"], "spans": media.get("spans", []), "media_revision": media["revision"]}
        heard_by = {"audio_sha256": media["audio_sha256"]} if "loud_s" in media["audio"] else {}
        source = {**of, **heard_by, **by}
        made = read_json(done) if done.is_file() else {}
        failures = {"failures": made["failures"]} if "failures" in made else {}
        if not (path.is_file() and made.get("source") == source):
            wav = media_folder / video / "audio.wav"
            if (known := media.get("audio_sha256")) and known != sha256_file(wav):
                raise StoreError(f"{wav} is damaged ({CHANGED}): remove its folder and run `stepline media` again")
            try:
                named = detect(wav, made_by, folder / "answers") if asked == AUTO else None
                then = (named[0], make(language=named[1].language)) if named else None
                heard, unheard = recognise(wav, made_by, folder / "answers", then)
            except DownloadError as error:
                log.warning("%s: failed: %s", video, error)
                failures = {"failures": failures.get("failures", 0) + 1}
                path.unlink(missing_ok=True)
                write_sealed(done, failures)
                videos[video] = {"status": "failed", "reason": str(error), **failures}
                continue
            heard_s += media.get("duration_s", 0.0)
            sentences = [replace(sentence, engine=engine) for sentence in heard]
            done.unlink(missing_ok=True)
            transcript.write(path, sentences)
            spoken = _spoken(asked, named[1] if named else None)
            made = {"source": source, "n_sentences": len(sentences), **spoken, **failures}
            made |= {"unheard": unheard} if unheard else {}
            write_sealed(done, made)
        reasons = [*([] if made["n_sentences"] else ["no speech found"]), *_named(made.get("unheard", []))]
        found = {name: made[name] for name in FOUND if name in made}
        videos[video] = {"status": "present", "reason": "; ".join(reasons), **found, **failures}
    device = "cuda" if engine in FOLDERS and wanted(on["device"]) else "cpu"
    rates.note(f"speech.{engine}.{device}", video_s=heard_s, spent_s=time.monotonic() - start)
    write_manifest(manifest, videos, **by)


def _named(unheard: Sequence[tuple[float, float]]) -> Iterator[str]:
    """Yield a line with the first three stretches of audio that no answer covers, if there are any."""
    if unheard:
        shown = [f"{start_s:.1f} to {end_s:.1f} s" for start_s, end_s in unheard[:3]]
        more = [f"{len(unheard) - 3} more"] if len(unheard) > 3 else []
        yield f"no transcript of {', '.join([*shown, *more])}: the service's answer ends before"


def _spoken(asked: str, detected: Spoken | None) -> dict[str, Any]:
    """Return the fields of the record that name the language; none for English, as in earlier versions."""
    if asked != AUTO:
        return {} if asked == ENGLISH else {"language": asked}
    probability = detected.probability if detected else None
    known = {} if probability is None else {"language_probability": round(probability, 4)}
    return {"language": detected.language if detected else ""} | known


def _answer_all(wavs: Sequence[Path], engine: Engine, answers: Path, processes: int) -> None:
    """Compute the answers for all chunks of some files, several files in parallel; ``recognise`` repeats failures."""
    at_once = min(processes, len(wavs), len(os.sched_getaffinity(0)))
    if at_once < 2:
        return
    pool = ProcessPoolExecutor(at_once, get_context("spawn"))
    try:
        asked = {pool.submit(_answer, wav, engine, answers): wav.stat().st_size / (2 * RATE) for wav in wavs}
        total_s = sum(asked.values())
        for _ in progress(as_completed(asked), what="speech", unit=VIDEO, total=total_s, size=asked.__getitem__):
            pass
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _answer(wav: Path, engine: Engine, answers: Path) -> None:
    with suppress(SteplineError):
        for _, samples in chunks(wav):
            if samples.any():
                _heard(samples, engine, answers)


def detect(wav: Path, engine: Engine, answers: Path) -> tuple[int, Spoken] | None:
    """Return the first chunk of the file whose language the engine detects, by its index, and the language.

    Its answer and those of earlier chunks are cached in ``answers``. Returns None if no language is detected. Raises
    DownloadError if a chunk failed.
    """
    for number, (_, samples) in enumerate(chunks(wav)):
        if samples.any() and (spoken := _heard(samples, engine, answers).spoken):
            return number, spoken
    return None


def recognise(
    wav: Path, engine: Engine, answers: Path, then: tuple[int, Engine] | None = None
) -> tuple[list[Sentence], list[tuple[float, float]]]:
    """Return the sentences of the file (16 kHz mono), in order of their starts, and the seconds that no answer covers.

    Answers are cached in ``answers``. then: the index of a chunk, and the engine for all later chunks. Silent chunks,
    as between spans, are skipped. All chunks are recognised even if one fails. Raises DownloadError if a chunk
    failed.
    """
    unheard = []

    def heard(chunk: tuple[int, tuple[int, NDArray[np.int16]]]) -> tuple[int, list[Sentence] | DownloadError]:
        number, (start, samples) = chunk
        end = start + len(samples)
        by = then[1] if then and number > then[0] else engine
        try:
            sentences, _, covered_s = _heard(samples, by, answers) if samples.any() else Heard([])
        except DownloadError as error:
            return end, error
        if lacks(covered_s, samples):
            unheard.append((start / RATE + covered_s, end / RATE))
        placed = [_placed(sentence, number, start, len(samples)) for sentence in sentences if sentence.text]
        return end, sorted(placed, key=lambda sentence: sentence.start_s)

    results = []
    for end, result in _in_order(heard, enumerate(chunks(wav)), engine.concurrency):
        reached(end / RATE)
        results.append(result)
    failed = [result for result in results if isinstance(result, DownloadError)]
    if failed:
        share = f"{len(failed)} of {len(results)} chunks: " if len(results) > 1 else ""
        raise DownloadError(f"{share}{failed[0]}")
    said = [sentence for result in results if not isinstance(result, DownloadError) for sentence in result]
    return said, sorted(unheard)


def _heard(samples: NDArray[np.int16], engine: Engine, answers: Path) -> Heard:
    """Return what the engine heard in a chunk. Only a valid answer is cached."""

    def read(answer: bytes) -> Heard:
        heard, end_s = engine.heard(answer), (len(samples) + WINDOW) / RATE  # Whisper fills its last window
        for said in heard.spans():
            if said.end_s > end_s:
                raise DownloadError(f"the answer has text at {said.end_s:g} s, after the end of the audio")
        return heard

    name = hashlib.sha256(canonical_json(engine.parameters).encode() + samples.tobytes()).hexdigest()
    path = answers / f"{name}.json"
    if path.is_file():
        try:
            return read(unsealed(path.read_bytes()))
        except (DownloadError, ValueError) as error:
            raise StoreError(f"{path} is damaged ({error}): remove it and run the same command again") from None
    answer = engine.answer(samples)
    heard = read(answer)
    write_bytes(path, sealed_below(answer))
    return heard


def _placed(sentence: Sentence, chunk: int, start: int, length: int) -> Sentence:
    """Return a chunk's sentence with times of the recording, clipped to the chunk. start, length: in samples."""

    def put(said: Sentence | Word) -> dict[str, Any]:
        start_s = min(max(0.0, said.start_s), length / RATE)
        end_s = max(start_s, min(said.end_s, length / RATE))
        confidence = None if said.confidence is None else min(said.confidence, 1.0)
        return {"start_s": start_s + start / RATE, "end_s": end_s + start / RATE, "confidence": confidence}

    words = sorted(sentence.words, key=lambda word: word.start_s)
    placed = tuple(replace(word, **put(word)) for word in words if word.text)
    return replace(sentence, **put(sentence), words=placed, chunk=chunk)


def _in_order(function: Callable[[Item], Result], items: Iterable[Item], at_once: int) -> Iterator[Result]:
    """Yield the result of each item, in order, from ``at_once`` threads; at most this many items are read ahead."""
    if at_once == 1:
        yield from map(function, items)
        return
    with ThreadPoolExecutor(at_once) as pool:
        waiting: deque[Future[Result]] = deque()
        for item in items:
            if len(waiting) == at_once:
                yield waiting.popleft().result()
            waiting.append(pool.submit(function, item))
        while waiting:
            yield waiting.popleft().result()
