"""Subtitles: what players read, with hours, milliseconds and markup in the text."""

import srt

from stepline.asr.subtitles import subtitles
from stepline.asr.transcript import Sentence

SAID = [
    Sentence("first\n we cut  it", 0.0, 2.5),
    Sentence(" ", 2.5, 3.0),
    Sentence("salt & <b>pepper</b> --> stir", 3725.0625, 3725.0625),
]


def test_srt_is_what_its_own_reader_gives_back() -> None:
    text = subtitles(SAID, "srt")
    assert text.startswith("1\n00:00:00,000 --> 00:00:02,500\nfirst we cut it\n\n2\n01:02:05,062 --> 01:02:05,063\n")
    assert [each.content for each in srt.parse(text)] == ["first we cut it", "salt & <b>pepper</b> --> stir"]


def test_vtt_has_its_header_full_stops_and_escaped_text() -> None:
    assert subtitles(SAID, "vtt") == (
        "WEBVTT\n\n"
        "00:00:00.000 --> 00:00:02.500\nfirst we cut it\n\n"
        "01:02:05.062 --> 01:02:05.063\nsalt &amp; &lt;b&gt;pepper&lt;/b&gt; --&gt; stir\n"
    )


def test_without_sentences_the_file_is_empty_and_valid() -> None:
    assert (subtitles([], "srt"), subtitles([], "vtt")) == ("", "WEBVTT\n")
