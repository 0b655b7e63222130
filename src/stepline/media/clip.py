"""A clip: a part of a video as an mp4 for browsers, re-encoded so that it begins and ends at the exact times."""

from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from stepline.media.audio import AHEAD_S, Sound
from stepline.media.decode import MediaError, Stream, fraction, opened, packets, sound
from stepline.media.frame import DecodedFrame
from stepline.media.read import pyav, with_timeline
from stepline.media.timeline import Timeline

if TYPE_CHECKING:
    import av

CLOCK = 90_000
"""Units per second of a clip's frame times."""


def write_clip(video: Path, clip: Path, start_s: float, end_s: float) -> None:
    """Write [``start_s``, ``end_s``) of a video as H.264 and AAC, upright, in the shape that players show.

    The first frame is the one at the start.

    Raises MediaError if the video cannot be read, or has no frame there.
    """
    with_timeline(video, partial(_write, video, clip, start_s, end_s))


def _write(video: Path, clip: Path, start_s: float, end_s: float, timeline: Timeline) -> None:
    import av

    first, last = timeline.at_or_before([start_s, np.nextafter(end_s, -np.inf)]).tolist()
    chosen = np.arange(first, last + 1)
    chosen = chosen[~timeline.lost[chosen]]
    if start_s >= timeline.end_s or not len(chosen):
        raise MediaError(f"it has no frame from {start_s:g} s to {end_s:g} s")
    with opened(video) as container:
        stream = Stream(container)
        start, rate, heard = stream.start * stream.time_base, stream.frame_rate, stream.sound
        sample_rate = heard.codec_context.sample_rate if heard and heard.codec_context else 0
    with av.open(str(clip), "w", format="mp4", options={"movflags": "+faststart", "fflags": "+bitexact"}) as out:
        shown = out.add_stream("libx264", rate=rate)
        shown.pix_fmt = "yuv420p"
        shown.codec_context.time_base = Fraction(1, CLOCK)
        said = out.add_stream("aac", rate=sample_rate) if sample_rate else None
        frames = cast(Iterator[DecodedFrame], pyav(video, timeline, chosen))
        for time_s, frame in zip(timeline.t_s[chosen].tolist(), frames, strict=True):
            if not shown.codec_context.is_open:
                shown.width, shown.height = (length & ~1 or 2 for length in frame.size)
                shown.codec_context.sample_aspect_ratio = frame.aspect * frame.size[1] / frame.size[0]
            picture = av.VideoFrame.from_ndarray(frame.rgb(shown.width, shown.height), "rgb24")
            picture.pts = max(0, round((time_s - start_s) * CLOCK))
            picture.time_base = Fraction(1, CLOCK)
            out.mux(shown.encode(picture))
        out.mux(shown.encode(None))
        if said:
            for samples in _heard(video, start, start_s, end_s):
                out.mux(said.encode(samples))
            out.mux(said.encode(None))


def _heard(video: Path, zero: Fraction, start_s: float, end_s: float) -> Iterator["av.AudioFrame"]:
    """Yield the audio of [``start_s``, ``end_s``), with silence if it starts late. zero: ``start_s`` of ``Sound``."""
    import av

    graph = av.filter.Graph()
    source = None
    for frame in _frames(video, zero, start_s, end_s):
        if source is None:
            kind: dict[str, Any] = {"sample_rate": frame.sample_rate, "format": frame.format, "layout": frame.layout}
            source, sink = graph.add_abuffer(**kind, time_base=frame.time_base), graph.add("abuffersink")
            trim = graph.add("atrim", f"start={start_s}:end={end_s}")
            shift = graph.add("asetpts", f"PTS-{start_s}/TB")
            fill = graph.add("aresample", "async=1:first_pts=0")
            graph.link_nodes(source, trim, shift, fill, sink).configure()
        source.push(frame)
    if source is None:
        return
    source.push(None)
    while True:
        try:
            yield cast("av.AudioFrame", sink.pull())
        except (av.BlockingIOError, av.EOFError):
            return


def _frames(video: Path, zero: Fraction, start_s: float, end_s: float) -> Iterator["av.AudioFrame"]:
    """Yield the decoded audio from at least a second before ``start_s`` up to ``end_s``."""
    with opened(video) as container:
        stream = sound(container)
        assert stream is not None
        if start_s > AHEAD_S:
            container.seek(round((Fraction(start_s - AHEAD_S) + zero) / fraction(stream.time_base)), stream=stream)
        decoder = Sound(stream, zero)
        for packet in packets(container, stream):
            for frame in decoder.decode(packet):
                if (frame.pts or 0) * fraction(frame.time_base) >= end_s:
                    return
                yield frame
