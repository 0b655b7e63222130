"""A video's audio as 16 kHz mono."""

import wave
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, cast

from stepline.media.decode import MediaError, fraction, unreadable

if TYPE_CHECKING:
    import av

RATE = 16_000


def write_wav(video: Path, wav: Path, *, start_s: Fraction) -> None:
    """Write the first audio stream of ``video`` to ``wav``: 16 kHz, mono, 16 bit, aligned with the pictures.

    start_s: the time on the container's clock that becomes sample 0, so that t seconds are sample 16000 t. Audio before
        it is cut; where times jump by more than 0.1 s, silence fills the gap or what overlaps is cut (ffmpeg's
        aresample=async=1:first_pts=0).
    Raises MediaError where there is no audio or it cannot be decoded.
    """
    import av

    try:
        with av.open(str(video)) as container, wave.open(str(wav), "wb") as file:
            file.setparams((1, 2, RATE, 0, "NONE", ""))
            if not container.streams.audio:
                raise MediaError("no audio stream")
            stream = container.streams.audio[0]
            if stream.codec_context is None:
                raise MediaError("the audio's codec is unknown")
            graph = av.filter.Graph()
            source = graph.add_abuffer(template=stream)
            resample = graph.add("aresample", f"{RATE}:async=1:first_pts=0")
            convert = graph.add("aformat", f"sample_fmts=s16:sample_rates={RATE}:channel_layouts=mono")
            sink = graph.add("abuffersink")
            graph.link_nodes(source, resample, convert, sink).configure()
            for frame in container.decode(stream):
                if frame.pts is None:
                    raise MediaError("a piece of audio has no presentation time")
                frame.pts -= round(start_s / fraction(frame.time_base))
                source.push(frame)
                _drain(sink, file)
            source.push(None)
            _drain(sink, file)
            if not file.tell():
                raise MediaError("no audio could be decoded")
    except av.FFmpegError as error:
        raise unreadable(error) from None


def _drain(sink: "av.filter.FilterContext", file: wave.Wave_write) -> None:
    import av

    while True:
        try:
            frame = sink.pull()
        except (av.BlockingIOError, av.EOFError):
            return
        file.writeframesraw(cast("av.AudioFrame", frame).to_ndarray().tobytes())
