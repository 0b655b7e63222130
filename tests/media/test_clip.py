"""Clips: they begin with the frame that is shown at their start, upright, with their sound."""

import subprocess
from fractions import Fraction
from pathlib import Path

import imageio_ffmpeg
import numpy as np
import pytest

av = pytest.importorskip("av")

from stepline.media.clip import write_clip  # noqa: E402
from stepline.media.decode import MediaError  # noqa: E402
from tests.media.clips import CFR_25, index_of, make  # noqa: E402


def shown(path: Path) -> list[tuple[float, int]]:
    """Return time and index of each frame."""
    with av.open(str(path)) as container:
        return [(frame.time, index_of(frame.to_ndarray(format="rgb24"))) for frame in container.decode(video=0)]


def test_a_clip_has_the_frames_of_its_span_at_their_times(tmp_path: Path) -> None:
    make(tmp_path / "a.mp4", CFR_25)
    write_clip(tmp_path / "a.mp4", tmp_path / "clip.mp4", 1.01, 1.24)
    frames = shown(tmp_path / "clip.mp4")
    assert [index for _, index in frames] == [25, 26, 27, 28, 29, 30]
    assert [time_s for time_s, _ in frames] == pytest.approx([0, 0.03, 0.07, 0.11, 0.15, 0.19], abs=1e-4)
    with pytest.raises(MediaError, match="no frame from 9 s to 10 s"):
        write_clip(tmp_path / "a.mp4", tmp_path / "late.mp4", 9, 10)


def test_the_sound_is_that_of_the_span(tmp_path: Path) -> None:
    rate, times_s = 16_000, np.arange(48_000) / 16_000
    tone = (8000 * np.sin(2 * np.pi * 440 * times_s) * (times_s >= 2)).astype(np.int16)
    with av.open(str(tmp_path / "a.mkv"), "w") as out:
        video, audio = out.add_stream("libx264", rate=25), out.add_stream("pcm_s16le", rate=rate, layout="mono")
        video.width, video.height, video.pix_fmt = 64, 64, "yuv420p"
        for number in range(75):
            frame = av.VideoFrame.from_ndarray(np.zeros((64, 64, 3), np.uint8), "rgb24")
            frame.pts, frame.time_base = number, Fraction(1, 25)
            out.mux(video.encode(frame))
        out.mux(video.encode(None))
        samples = av.AudioFrame.from_ndarray(tone[None], "s16", "mono")
        samples.sample_rate, samples.pts, samples.time_base = rate, 0, Fraction(1, rate)
        out.mux(audio.encode(samples))
        out.mux(audio.encode(None))
    write_clip(tmp_path / "a.mkv", tmp_path / "clip.mp4", 1.5, 2.5)
    with av.open(str(tmp_path / "clip.mp4")) as container:
        heard = np.concatenate([frame.to_ndarray()[0] for frame in container.decode(audio=0)])
    loud = np.abs(heard) > 0.1
    assert len(heard) / rate == pytest.approx(1.0, abs=0.15)
    assert np.flatnonzero(loud)[0] / rate == pytest.approx(0.5, abs=0.1)


def test_a_clip_has_the_shape_that_players_show(tmp_path: Path) -> None:
    source = ["-f", "lavfi", "-i", "color=red:s=96x64:r=25:d=1,setsar=4/3", "-c:v", "libx264"]
    subprocess.run([imageio_ffmpeg.get_ffmpeg_exe(), "-v", "error", *source, str(tmp_path / "a.mp4")], check=True)
    write_clip(tmp_path / "a.mp4", tmp_path / "clip.mp4", 0, 0.5)
    with av.open(str(tmp_path / "clip.mp4")) as container:
        assert container.streams.video[0].sample_aspect_ratio == Fraction(4, 3)
