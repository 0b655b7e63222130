"""The audio of files of people, as a recogniser reads it."""

import subprocess
import wave
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import av
import imageio_ffmpeg
import numpy as np
import pytest

from stepline.media.decode import MediaError
from stepline.media.one_pass import one_pass
from tests.media.clips import DECODER

pytest.importorskip("cv2")
BEEPS = "aevalsrc='if(between(mod(t,1),0.5,0.6),0.5*sin(6283*t),0)':s=48000:d="
PICTURE = "testsrc2=s=160x120:r=25:d="


def ffmpeg(*arguments: str | Path) -> None:
    subprocess.run([imageio_ffmpeg.get_ffmpeg_exe(), "-v", "error", "-y", *arguments], check=True)


def source(text: str) -> list[str]:
    return ["-f", "lavfi", "-i", text]


def beeps(wav: Path) -> list[float]:
    """Return when the beeps of a file begin, in seconds."""
    with wave.open(str(wav)) as file:
        samples = np.frombuffer(file.readframes(file.getnframes()), np.int16).astype(int)
    loud = np.flatnonzero(np.abs(samples) > 2000)
    return [float(at) / 16_000 for at in loud[np.diff(loud, prepend=-8000) >= 4000]]


def read(path: Path, *spans: list[float], **options: Any) -> tuple[dict[str, Any], list[float]]:
    folder = path.with_suffix(".out")
    folder.mkdir(exist_ok=True)
    found = one_pass(path, folder, spans, duration_s=6, **({"decoder": DECODER} | options))
    wav = folder / "audio.wav"
    assert sorted(file.name for file in folder.iterdir()) == [
        *(["audio.wav"] if wav.exists() else []),
        "scores.parquet",
    ]
    return found["audio"], beeps(wav) if wav.exists() else []


VP8 = "-c:v", "libvpx", "-deadline", "realtime", "-cpu-used", "8"


def second_pass(path: Path) -> None:
    """Write a video of 6 s, with a beep each second, that is decoded twice."""
    seconds = [*source(PICTURE + "6"), *source(BEEPS + "6")]
    if path.stem == "joined":
        ffmpeg(*source(PICTURE + "2"), *source(BEEPS + "2"), "-c:v", "libx264", "-c:a", "aac", path.with_name("a.ts"))
        path.write_bytes(3 * path.with_name("a.ts").read_bytes())
        return
    if path.stem == "resized":
        for size in ("320x240", "160x120"):
            ffmpeg(*source(f"testsrc2=s={size}:r=25:d=3"), *VP8, path.with_name(f"{size}.webm"))
        path.with_name("list").write_text("file 320x240.webm\nfile 160x120.webm\n")
        joined = "-f", "concat", "-i", path.with_name("list")
        ffmpeg(*joined, *seconds[4:], "-map", "0:v", "-map", "1:a", "-c:v", "copy", "-c:a", "libopus", path)
        return
    codec = {"xvid": ["libxvid", "-bf", "2"]}.get(path.stem, ["libx264", "-bf", "2", "-g", "25"])
    ffmpeg(*seconds, "-c:v", *codec, "-c:a", "pcm_s16le", path)
    if path.stem == "damaged":
        with av.open(str(path)) as container:
            packet = next(islice(container.demux(video=0), 60, None))
            assert packet.pos is not None
        content = bytearray(path.read_bytes())
        noise = np.random.default_rng(0).bytes(packet.size - 20)
        content[packet.pos + 20 : packet.pos + packet.size] = noise
        path.write_bytes(content)


class Passes:
    """The decoder, with the names of what it ran."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def __call__(self, work: Callable[..., Iterator[Any]], *arguments: Any, duration_s: float) -> Iterator[Any]:
        self.names.append(work.__name__)
        return DECODER(work, *arguments, duration_s=duration_s)


@pytest.mark.parametrize("file", ["h264.avi", "xvid.avi", "resized.webm", "damaged.mkv", "joined.ts"])
def test_a_second_pass_keeps_the_sound(tmp_path: Path, file: str) -> None:
    second_pass(tmp_path / file)
    decoder = Passes()
    audio, heard = read(tmp_path / file, decoder=decoder)
    assert decoder.names == ["decode", "decode_salvaged"]
    assert audio["status"] == "present"
    assert heard == pytest.approx([0.5, 1.5, 2.5, 3.5, 4.5, 5.5], abs=0.03)
    audio, heard = read(tmp_path / file, [1.0, 3.0], [5.0, 6.0])
    assert audio["status"] == "present"
    assert heard == pytest.approx([1.5, 2.5, 5.5], abs=0.03)


SILENCE = "anullsrc=r=48000:cl=mono:d=6"
TWO = ["-map", "0:v", "-map", "1:a", "-map", "2:a"]
ONE = ["-map", "0:v", "-map", "[a]"]
DEFAULT = ["-disposition:a:0", "0", "-disposition:a:1", "default"]
OPPOSITE, RIGHT = "[1:a]pan=stereo|c0=c0|c1=-1*c0[a]", "[1:a]pan=stereo|c1=c0[a]"
HEARD: dict[str, tuple[list[str], list[str], str]] = {
    "silent first track": ([SILENCE, BEEPS + "6"], TWO, "track 2"),
    "silent default track": ([BEEPS + "6", SILENCE], [*TWO, *DEFAULT], "track 1"),
    "a click in the first": (["aevalsrc='if(between(t,3,3.01),0.9,0)':s=48000:d=6", BEEPS + "6"], TWO, "track 2"),
    "noise in the first": (["anoisesrc=r=48000:a=0.002:d=6", BEEPS + "6"], TWO, "track 2"),
    "channels cancel": ([BEEPS + "6"], ["-filter_complex", OPPOSITE, *ONE], "channel 1 of track 1"),
    "both speak": ([BEEPS + "6", "sine=1000:d=6"], TWO, ""),
    "right channel only": ([BEEPS + "6"], ["-filter_complex", RIGHT, *ONE], ""),
}


@pytest.mark.parametrize("name", HEARD)
def test_sound_in_another_track_or_channel_is_heard(tmp_path: Path, name: str) -> None:
    sounds, options, used = HEARD[name]
    inputs = [part for sound in sounds for part in source(sound)]
    ffmpeg(*source(PICTURE + "6"), *inputs, *options, "-c:v", "libx264", "-c:a", "aac", tmp_path / "a.mkv")
    audio, heard = read(tmp_path / "a.mkv")
    assert audio["reason"] == (f"{used} is used, because the default track is quiet: see media.track" if used else "")
    assert audio["loud_s"] > 0.2
    assert heard == pytest.approx([0.5, 1.5, 2.5, 3.5, 4.5, 5.5], abs=0.03)


def test_sound_in_another_track_is_heard_in_files_that_are_decoded_twice_and_in_spans(tmp_path: Path) -> None:
    inputs = [*source(PICTURE + "6"), *source(SILENCE), *source(BEEPS + "6")]
    ffmpeg(*inputs, *TWO, "-c:v", "libx264", "-bf", "2", "-c:a", "pcm_s16le", tmp_path / "a.avi")
    audio, heard = read(tmp_path / "a.avi")
    assert heard == pytest.approx([0.5, 1.5, 2.5, 3.5, 4.5, 5.5], abs=0.03)
    ffmpeg(*inputs, *TWO, "-c:v", "libx264", "-c:a", "aac", tmp_path / "b.mp4")
    audio, heard = read(tmp_path / "b.mp4", [2.0, 3.0], [4.0, 6.0])
    assert audio["reason"].startswith("track 2 is used")
    assert heard == pytest.approx([2.5, 4.5, 5.5], abs=0.03)


def test_the_option_names_the_track(tmp_path: Path) -> None:
    tone = source("aevalsrc='if(between(t,3,4),0.5*sin(6283*t),0)':s=48000:d=6")
    inputs = [*source(PICTURE + "6"), *source(BEEPS + "6"), *tone]
    ffmpeg(*inputs, *TWO, "-c:v", "libx264", "-c:a", "aac", tmp_path / "a.mp4")
    audio, heard = read(tmp_path / "a.mp4", track=2)
    assert (audio["reason"], heard) == ("", pytest.approx([3.0], abs=0.03))
    assert len(read(tmp_path / "a.mp4")[1]) == 6
    audio, heard = read(tmp_path / "a.mp4", track=3)
    assert (audio["status"], audio["reason"], heard) == ("failed", "there is no audio track 3", [])
    assert read(tmp_path / "a.mp4", [1.0, 2.0], track=3)[0] == audio


def test_a_file_without_sound_stays_without(tmp_path: Path) -> None:
    ffmpeg(*source(PICTURE + "6"), *source(SILENCE), "-c:v", "libx264", "-c:a", "aac", tmp_path / "a.mp4")
    assert read(tmp_path / "a.mp4") == ({"status": "present", "reason": "", "loud_s": 0.0}, [])
    ffmpeg(*source(PICTURE + "6"), "-c:v", "libx264", tmp_path / "b.mp4")
    assert read(tmp_path / "b.mp4")[0] == {"status": "missing", "reason": "no audio stream", "loud_s": 0.0}


def test_a_pass_that_fails_leaves_no_audio(tmp_path: Path) -> None:
    second_pass(tmp_path / "xvid.avi")
    (tmp_path / "out").mkdir()
    with pytest.raises(MediaError):
        one_pass(tmp_path / "xvid.avi", tmp_path / "out", [[50.0, 60.0]], decoder=DECODER, duration_s=6)
    assert not (tmp_path / "out/audio.wav").exists()
