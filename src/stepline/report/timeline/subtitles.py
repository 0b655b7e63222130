"""Sentences as subtitle files."""

from collections.abc import Sequence
from datetime import timedelta
from html import escape

from stepline.asr.transcript import Sentence

FORMATS = ("srt", "vtt")


def subtitles(sentences: Sequence[Sentence], form: str) -> str:
    """Return sentences as SubRip (``srt``) or WebVTT (``vtt``)."""
    import srt

    cues = [
        srt.Subtitle(number, timedelta(seconds=each.start_s), timedelta(seconds=each.end_s), each.text)
        for number, each in enumerate(sentences, 1)
    ]
    if form == "srt":
        return str(srt.compose(cues, reindex=False))
    spans = (f"{_clock(cue.start)} --> {_clock(cue.end)}\n{escape(cue.content, quote=False)}\n" for cue in cues)
    return "\n".join(["WEBVTT\n", *spans])


def _clock(time: timedelta) -> str:
    import srt

    return str(srt.timedelta_to_srt_timestamp(time)).replace(",", ".")
