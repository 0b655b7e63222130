import csv
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepline.asr.transcript import Sentence
from stepline.benchmarks.spacewalk.text import RecordingText, load_text, window
from stepline.datasets.schema import Recording, Segment, Step
from stepline.errors import ReleaseError
from tests.benchmarks.spacewalk.conftest import MadeUp, real_inputs

EMPTY = {
    ("09122021", 18), ("09122021", 37), ("01152020", 8), ("01152020", 16), ("01152020", 20), ("01152020", 31),
    ("01152020", 32), ("01152020", 35), ("01252020", 5), ("01252020", 13), ("11222019", 13), ("11222019", 14),
}  # fmt: skip


def recording(duration_s: float) -> Recording:
    segment = Segment(start_s=0, end_s=duration_s, start_frame=0, end_frame=1, label=0)
    steps = (
        Step(caption="Irrelevant", transcript="noise", animation_s=None),
        Step(caption="Turn it", transcript="as released", animation_s=(2.0, 4.0)),
    )
    return Recording(video="v", split="test", duration_s=duration_s, segments=(segment,), steps=steps)


def text(*sentences: Sentence, recognised: bool = False) -> RecordingText:
    return RecordingText(recording(10.0), sentences, recognised=recognised)


@pytest.mark.parametrize("release", ["v0", "v1", "v2"])
def test_all_step_texts_follow_from_transcript_and_animation(in_spacewalk: Path, release: str) -> None:
    plan = real_inputs("2a-random", release).benchmark
    loaded = plan.released.load(release)
    equal, empty = 0, set()
    for video, made in loaded.recordings.items():
        read = load_text(plan, loaded, video)
        for number, step in enumerate(made.steps[1:], 1):
            assert step.animation_s is not None
            equal += read.between(*step.animation_s) == step.transcript
            if not step.transcript:
                empty.add((video, number))
    assert equal == sum(made.n_steps for made in loaded.recordings.values()) == 455
    assert len(empty) == 12
    if release == "v2":
        assert empty == EMPTY


def test_transcripts_that_are_not_utf8_are_read(in_spacewalk: Path) -> None:
    plan = real_inputs("2a-random", "v2").benchmark
    loaded = plan.released.load("v2")
    undecodable = set()
    for video in loaded.recordings:
        path = plan.released.folder("v2") / "data/transcripts" / f"{video}.csv"
        read = load_text(plan, loaded, video).sentences
        try:
            path.read_bytes().decode("utf-8")
        except UnicodeDecodeError:
            undecodable.add(video)
        with open(path, newline="", encoding="cp1252") as file:
            assert [s.text for s in read] == [row["Sentence"] for row in csv.DictReader(file)]
        assert "�" not in " ".join(s.text for s in read)
    assert undecodable == {"02282021", "06262020"}


def test_a_window_is_clipped_and_not_shifted() -> None:
    assert window(50, 20, 100) == (40, 60)
    assert window(3, 20, 100) == (0, 13)
    assert window(95, 20, 100) == (85, 100)
    assert window(5, 60, 10) == (0, 10)


def test_a_sentence_that_only_touches_the_window_is_outside() -> None:
    spoken = text(Sentence("before", 0, 2), Sentence("in", 2, 4), Sentence("after", 4, 6))
    assert spoken.between(2, 4) == "in"
    assert spoken.between(1.99, 4) == "before in"
    assert spoken.between(2, 4.01) == "in after"
    assert spoken.window(3, 2) == "in"
    assert spoken.between(6, 8) == ""


def test_sentences_may_overlap() -> None:
    spoken = text(Sentence("a", 0, 10), Sentence("b", 2, 3), Sentence("c", 9, 12))
    assert spoken.between(3.5, 5) == "a"
    assert spoken.between(2.5, 9.5) == "a b c"
    assert text(Sentence("late", 5, 6), Sentence("early", 0, 1)).between(0, 4) == "early"


@given(
    st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), max_size=12),
    st.lists(st.tuples(st.integers(0, 40), st.integers(1, 40)), max_size=5),
)
def test_a_window_has_every_sentence_that_overlaps_it_in_the_transcripts_order(
    spans: list[tuple[int, int]], windows: list[tuple[int, int]]
) -> None:
    sentences = [Sentence(str(number), a / 2, (a + b) / 2) for number, (a, b) in enumerate(spans)]
    windows_s = [(start / 4, (start + length) / 4) for start, length in windows]
    expected = [
        " ".join(s.text for s in sentences if s.start_s < end_s and s.end_s > start_s) for start_s, end_s in windows_s
    ]
    assert text(*sentences).texts(windows_s) == expected
    assert [text(*sentences).between(*each) for each in windows_s] == expected


def test_a_released_transcript_that_changed_since_it_was_fetched_is_one_line(made_up: MadeUp) -> None:
    def read() -> RecordingText:
        return made_up.inputs({"kind": "random"}).text("d")

    path = made_up.study.folder("demo") / "data/transcripts/d.csv"
    assert read().sentences
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(
        ReleaseError, match=f"^{path} has changed since it was fetched: run `stepline fetch demo/demo`$"
    ):
        read()
    path.unlink()
    with pytest.raises(ReleaseError, match=f"^{path} is absent: run `stepline fetch demo/demo`$"):
        read()


def test_a_segment_begins_in_each_second_also_in_the_last_part_of_one() -> None:
    spoken = RecordingText(
        recording(3.5), (Sentence("first", 0, 1), Sentence("last", 3.2, 3.4), Sentence("after", 4, 5)), recognised=False
    )
    assert spoken.segments(2.0) == ["first", "", "last", "last after"]


def test_step_texts_are_the_released_ones_or_the_recognised() -> None:
    spoken = Sentence("turn the bolt", 1, 3), Sentence("now", 4, 5)
    assert text(*spoken).step_texts() == [("noise", "noise"), ("as released", "Turn it")]
    assert text(*spoken, recognised=True).step_texts() == [("noise", "noise"), ("turn the bolt", "Turn it")]
    assert text(*spoken).step_documents() == ["noise Irrelevant", "as released Turn it"]
    assert text(*spoken, recognised=True).step_documents()[1] == "turn the bolt Turn it"
