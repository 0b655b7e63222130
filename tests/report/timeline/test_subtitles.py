from stepline.asr.transcript import Sentence
from stepline.report.timeline.subtitles import subtitles

SAID = [Sentence("cut <b> & stir", 1.5, 3.25), Sentence("pour", 3600.0, 3661.001)]


def test_srt() -> None:
    assert subtitles(SAID, "srt") == (
        "1\n00:00:01,500 --> 00:00:03,250\ncut <b> & stir\n\n2\n01:00:00,000 --> 01:01:01,001\npour\n\n"
    )


def test_vtt_escapes_what_is_no_markup() -> None:
    assert subtitles(SAID, "vtt") == (
        "WEBVTT\n\n00:00:01.500 --> 00:00:03.250\ncut &lt;b&gt; &amp; stir\n\n01:00:00.000 --> 01:01:01.001\npour\n"
    )
