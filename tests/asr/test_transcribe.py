from pathlib import Path

import numpy as np
import pytest

from stepline.asr import engines
from stepline.asr import transcribe as stage
from stepline.asr.pocketsphinx import PocketSphinx
from stepline.asr.transcribe import transcribe
from stepline.asr.transcript import read
from stepline.availability import read_manifest, write_manifest
from stepline.errors import ConfigError, StoreError
from stepline.io import sha256_file
from stepline.media.audio import RATE
from tests.asr.speech import speech
from tests.asr.wav import write_wav

pytest.importorskip("av")
pytest.importorskip("pocketsphinx")


def media(tmp_path: Path, revision: int = 1, **audio: np.ndarray) -> None:
    for video, samples in audio.items():
        (tmp_path / "media" / video).mkdir(parents=True, exist_ok=True)
        write_wav(tmp_path / "media" / video / "audio.wav", samples)
    heard = {"status": "present", "reason": ""}
    found = heard | {"revision": revision}
    silent = {"status": "missing", "reason": "no audio stream"}
    videos = {video: found | {"sha256": "1", "audio": heard} for video in audio}
    videos["mute"] = found | {"sha256": "2", "audio": silent}
    videos["gone"] = {"status": "gone", "reason": "deleted"}
    write_manifest(tmp_path / "media.json", videos)


def run(tmp_path: Path, engine: str = "pocketsphinx", folder: str = "transcripts") -> dict[str, dict]:
    transcribe(tmp_path / "media.json", tmp_path / "media", tmp_path / folder, tmp_path / "asr.json", engine=engine)
    return read_manifest(tmp_path / "asr.json")


def test_speech_becomes_sentences_with_times(tmp_path: Path) -> None:
    media(tmp_path, a=speech())
    assert run(tmp_path)["a"] == {"status": "present", "reason": "", "n_sentences": 2}
    first, second = read(tmp_path / "transcripts/a.parquet")
    assert first.text.endswith("turn on the light")
    assert second.text.endswith("the water on the table")
    times = [first.start_s, first.end_s, second.start_s, second.end_s]
    assert times == pytest.approx([1.0, 2.73, 4.0, 5.32], abs=0.3)
    run(tmp_path, folder="again")
    assert (tmp_path / "again/a.parquet").read_bytes() == (tmp_path / "transcripts/a.parquet").read_bytes()


def test_several_videos_are_heard_by_other_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    media(tmp_path, a=speech(), b=np.roll(speech(), RATE))
    alone = tmp_path / "alone"
    monkeypatch.setattr(stage, "PROCESSES", {})
    run(tmp_path, folder="alone")
    monkeypatch.setattr(stage, "PROCESSES", {"pocketsphinx": 2})
    monkeypatch.setattr(PocketSphinx, "answer", None)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1})
    assert run(tmp_path)["b"]["n_sentences"] == 2
    for name in ("a.parquet", "b.parquet"):
        assert (tmp_path / "transcripts" / name).read_bytes() == (alone / name).read_bytes()


def test_sound_that_changed_on_the_disk_is_named(tmp_path: Path) -> None:
    media(tmp_path, a=np.zeros(RATE, np.int16))
    wav = tmp_path / "media/a/audio.wav"
    videos = read_manifest(tmp_path / "media.json")
    write_manifest(tmp_path / "media.json", videos | {"a": videos["a"] | {"audio_sha256": sha256_file(wav)}})
    assert run(tmp_path)["a"]["status"] == "present"
    (tmp_path / "transcripts/a.parquet").unlink()
    content = bytearray(wav.read_bytes())
    content[5000] ^= 1
    wav.write_bytes(content)
    with pytest.raises(StoreError, match=f"{wav} is damaged .*: remove its folder and run `stepline media` again"):
        run(tmp_path)


def test_audio_that_was_written_again_is_transcribed_again(tmp_path: Path) -> None:
    """An earlier version's transcript does not say of which audio it is."""

    def write_again(samples: np.ndarray) -> None:
        wav = tmp_path / "media/a/audio.wav"
        write_wav(wav, samples)
        videos = read_manifest(tmp_path / "media.json")
        audio = {"status": "present", "reason": "", "loud_s": 1.0}
        of = {"audio": audio, "audio_sha256": sha256_file(wav)}
        write_manifest(tmp_path / "media.json", videos | {"a": videos["a"] | of})

    media(tmp_path, a=np.zeros(RATE, np.int16), b=np.zeros(RATE, np.int16))
    assert run(tmp_path)["a"]["reason"] == "no speech found"
    kept = (tmp_path / "transcripts/b.json").stat().st_ino
    write_again(speech())
    assert run(tmp_path)["a"]["n_sentences"] == 2
    assert (tmp_path / "transcripts/b.json").stat().st_ino == kept
    write_again(np.zeros(RATE, np.int16))
    assert run(tmp_path)["a"]["n_sentences"] == 0


def test_times_go_on_over_chunks(tmp_path: Path) -> None:
    media(tmp_path, a=np.concatenate([speech(), np.zeros(600 * RATE, np.int16), speech()]))
    run(tmp_path)
    starts = [sentence.start_s for sentence in read(tmp_path / "transcripts/a.parquet")]
    assert starts == pytest.approx([1.0, 4.0, 607.0, 610.0], abs=0.3)


def test_silence_and_absent_audio_are_records(tmp_path: Path) -> None:
    media(tmp_path, silent=np.zeros(5 * RATE, np.int16), empty=np.zeros(0, np.int16))
    nobody = {"status": "present", "reason": "no speech found", "n_sentences": 0}
    assert run(tmp_path) == {
        "silent": nobody,
        "empty": nobody,
        "mute": {"status": "missing", "reason": "no audio stream"},
        "gone": {"status": "gone", "reason": "deleted"},
    }
    assert read(tmp_path / "transcripts/silent.parquet") == ()
    assert not (tmp_path / "transcripts/mute.parquet").exists()


def test_a_finished_transcript_is_kept(tmp_path: Path) -> None:
    media(tmp_path, a=speech()[: 3 * RATE])
    first = run(tmp_path)
    kept = (tmp_path / "transcripts/a.parquet").stat().st_ino
    assert run(tmp_path) == first
    assert (tmp_path / "transcripts/a.parquet").stat().st_ino == kept


def test_another_revision_of_the_recogniser_or_the_audio_transcribes_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "transcripts/a.parquet"

    def kept() -> bool:
        before = path.stat().st_ino
        run(tmp_path)
        return path.stat().st_ino == before

    media(tmp_path, a=np.zeros(RATE, np.int16))
    run(tmp_path)
    assert kept()
    monkeypatch.setattr(engines, "REVISION", engines.REVISION + 1)
    assert not kept()
    assert kept()
    media(tmp_path, revision=2, a=np.zeros(RATE, np.int16))
    assert not kept()
    assert kept()


def test_a_run_that_breaks_off_leaves_no_transcript_under_another_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    path = tmp_path / "transcripts/a.parquet"
    media(tmp_path, a=np.zeros(RATE, np.int16))
    run(tmp_path)
    media(tmp_path, revision=2, a=np.zeros(RATE, np.int16))
    with monkeypatch.context() as patch:
        patch.setattr("stepline.asr.transcribe.write_sealed", killed)
        with pytest.raises(KeyboardInterrupt):
            run(tmp_path)
    media(tmp_path, a=np.zeros(RATE, np.int16))
    before = path.stat().st_ino
    run(tmp_path)
    assert path.stat().st_ino != before


def test_a_video_without_audio_any_more_has_no_transcript(tmp_path: Path) -> None:
    media(tmp_path, a=np.zeros(RATE, np.int16), mute=np.zeros(RATE, np.int16), gone=np.zeros(RATE, np.int16))
    for video in ("a", "mute", "gone"):
        (tmp_path / "transcripts").mkdir(exist_ok=True)
        (tmp_path / f"transcripts/{video}.parquet").write_bytes(b"old")
    run(tmp_path)
    assert sorted(path.name for path in (tmp_path / "transcripts").glob("*.parquet")) == ["a.parquet"]


def test_an_unknown_engine_is_named(tmp_path: Path) -> None:
    media(tmp_path)
    with pytest.raises(ConfigError, match="'sphinx'.*pocketsphinx"):
        run(tmp_path, engine="sphinx")
