"""Sentences as subtitles in SubRip (SRT) or WebVTT format."""

from collections.abc import Sequence
from datetime import timedelta
from html import escape
from typing import Literal

import srt

from stepline.asr.transcript import Sentence

Form = Literal["srt", "vtt"]
SHORTEST_S = 0.001
"""Players skip subtitles with no duration."""


def subtitles(sentences: Sequence[Sentence], form: Form) -> str:
    """Return the sentences with text as subtitles, with times to the millisecond."""
    blocks = [
        srt.Subtitle(
            index=number,
            start=timedelta(seconds=each.start_s),
            end=timedelta(seconds=max(each.end_s, each.start_s + SHORTEST_S)),
            content=" ".join(each.text.split()),
        )
        for number, each in enumerate((each for each in sentences if each.text.strip()), 1)
    ]
    if form == "srt":
        composed: str = srt.compose(blocks, reindex=False)
        return composed
    time = srt.timedelta_to_srt_timestamp
    cues = [
        f"{time(each.start)} --> {time(each.end)}".replace(",", ".") + f"\n{escape(each.content, quote=False)}\n"
        for each in blocks
    ]
    return "\n".join(["WEBVTT\n", *cues])
