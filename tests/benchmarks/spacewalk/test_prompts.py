"""The prompts against those that the paper prints (Appendix E.5), made from the released transcripts."""

from pathlib import Path

import pytest

from stepline.benchmarks.spacewalk.items import read_items
from stepline.benchmarks.spacewalk.prompts import (
    conversation,
    read_candidate,
    read_step,
    retrieval_question,
    step_question,
)
from stepline.benchmarks.spacewalk.text import RecordingText, load_text, window
from stepline.datasets.schema import Release, Split
from stepline.datasets.studies import RETRIEVAL, STEP_RECOGNITION, study
from tests.benchmarks.spacewalk.conftest import real_inputs

QUERY = (
    "Hey, Bobby. Yeah. The width or sorry. The the hook is too small compared to the I get between the holes. So "
    "the the hook the hook does not go in. Copy, Okey. I may need to come from the port starboard side of the "
    "hole, whereas it is a little bit thinner. To be able to get the hook in there. I think it's the same "
    "diameter, and, Yes."
)
SEES = "The sixteen g. Oh, I see what you're saying."
BOOM = (
    "Solar array is unfirled to its full length of sixty feet once it is installed and electrically connected to "
    "the three a power channel on the starboard four truss of the station. You're on copy. Stand by. This focus "
    "position is gonna work fine at GCA complete. Copy. GCA complete. Go for unbolting. Both front bolt in r one,"
    " r two. And I've got alpha four counterclockwise two set for r one. That's a good setting. Ten to thirteen "
    "turns and the bolt's going to spring out when fully released. Just a caution when you rotate those booms to "
    "do it slowly ninety degrees in ten seconds."
)


@pytest.fixture
def v0(in_spacewalk: Path) -> Release:
    return study("spacewalk").load("v0")


def text_of(release: Release, video: str) -> RecordingText:
    return load_text(real_inputs("2a-llm", release.name).benchmark, release, video)


def asked(release: Release, video: str, split: Split, sample: int) -> str:
    """Return the question about a sample of step recognition, as the paper asks it."""
    (item,) = [each for each in read_items(release, STEP_RECOGNITION, split)[video] if each.id == sample]
    text = text_of(release, video)
    return step_question(text.window(item.t_s, 60), text.step_texts()[1:])


def test_the_papers_query_of_retrieval(v0: Release) -> None:
    (item,) = [each for each in read_items(v0, RETRIEVAL, "test")["09122021"] if each.id == 882]
    text, duration_s = text_of(v0, "09122021"), v0.recordings["09122021"].duration_s
    candidates = [(window(t_s, 60, duration_s), text.window(t_s, 60)) for t_s in item.candidates_s]
    assert retrieval_question(item.frame, text.window(item.t_s, 60), candidates).split("\n") == [
        f"[654395] {QUERY} {SEES}",
        "Is transcription A or B from the same task as the above transcription?",
        f"A) [21777, 21837] Copy all, Thomas. {QUERY}",
        f"B) [21789, 21849] {QUERY} {SEES} So now between the holes, that's all and the opening. Hey, from good words.",
    ]


def test_the_papers_example_of_retrieval(v0: Release) -> None:
    """Its sample was not released; its window bounds say where its candidates stand, to half a second."""
    text = text_of(v0, "12032022")
    first = "The boom deployment system to be employed later as the ISS rollout."
    assert text.window(165602 / 30, 60) == text.between(5486, 5546) == f"{first} {BOOM}"
    assert text.between(5494, 5554) == f"{BOOM} Copy that. Ten to thirteen turns right in there."


def test_the_papers_query_of_step_recognition(v0: Release) -> None:
    lines = asked(v0, "09122021", "test", 245).split("\n")
    assert lines[0] == (
        "Transcription: You you can go ahead and retrieve your the left upper struts from the strap bag. So we under "
        "strap three and four. Damah Pescay making good progress constructing the triangle that will make up the top "
        "portion. All the other pieces are safely secured in the spec specially designed bag, the strut bag. What are "
        "the idea for is on the Webex, full? Welcome. What good pull in first step?"
    )
    assert lines[1] == "Which is the correct label for the above transcription?"
    assert len(lines) == 2 + 38
    assert lines[2] == "0) Background: Noise or a video not showing spacewalk."
    assert lines[6] == (
        "4) EV2 stow strut bag: While tomorrow is doing the very large strip bag at p four, Aki will complete his"
        " translation out to the p four beta Gimbal assembly where he will install and set up his quick fix."
    )
    assert lines[-1] == "37) EV1 & EV2 enter airlock"


def test_the_papers_example_of_step_recognition(v0: Release) -> None:
    """Sample 542 of 03232022 has the quoted text and, in v0, the quoted label."""
    (item,) = [each for each in read_items(v0, STEP_RECOGNITION, "train")["03232022"] if each.id == 542]
    lines = asked(v0, "03232022", "train", 542).split("\n")
    assert item.label == 5
    assert lines[0].startswith("Transcription: Should I assist you? Copy. Continue. Yes. It's not much. Fifteen cent")
    assert lines[0].endswith("from beyond clearance. To the right radiator panel. I sent it years ago. Copy.")
    assert lines[4] == "2) EV1 follows EV2's path: EV two stows the tool bag, while EV one follows the same path."
    assert lines[24] == (
        "22) EV2 picks up tool bags: EV two then picks up tool bags and returns them back to the airlock."
    )
    assert len(lines) == 2 + 26


def test_a_conversation_has_examples_between_task_and_question() -> None:
    messages = conversation(STEP_RECOGNITION, [("one?", "1"), ("two?", "2")], "three?")
    assert [message["role"] for message in messages] == ["system", "user", "assistant", "user", "assistant", "user"]
    assert [message["content"] for message in messages[1:]] == ["one?", "1", "two?", "2", "three?"]
    assert messages[0]["content"] == (
        "You are a helpful assistant.\nYou will be given a query transcription and a list of step labels. You will be "
        "asked to select the step label that the transcription belongs to.\nPlease respond with a single integer."
    )
    assert conversation(RETRIEVAL, [], "?")[0]["content"] == (
        "You are a helpful assistant.\nYou will be given a query transcription and two candidate transcriptions. You "
        "will be asked to select the candidate transcription that is from the same task as the query transcription. "
        'Please answer by choosing either "A" OR "B" only.'
    )


@pytest.mark.parametrize(
    ("answer", "label"),
    [
        ("12", 12), ("12)", 12), (" 12.", 12), ("\n12\n", 12), ("**12**", 12), ('"12"', 12), ("12) EV1 exits", 12),
        ("12: EV1", 12), ("0", 0), ("07", 7), ("25", 25), ("<think>3 or 4?</think>\n\n4", 4),
        ("26", -2), ("-1", -2), ("1.5", -2), ("99999999999", -2), ("", -2), ("I", -2), ("Label 3", -2),
        ("<think>3", -2), ("²", -2), ("１", -2),
    ],
)  # fmt: skip
def test_steps_are_read(answer: str, label: int) -> None:
    assert read_step(answer, 25) == label


@pytest.mark.parametrize(
    ("answer", "candidate"),
    [
        ("A", 0), ("B", 1), (" A", 0), ("B.", 1), ("B)", 1), ("**A**", 0), ("(A)", 0), ('"B"', 1),
        ("A) [5486, 5546] The", 0), ("<think>B?</think>A", 0), ("A\n", 0),
        ("", -2), ("C", -2), ("a", -2), ("AB", -2), ("A better one is B", -2), ("B's", -2), ("Both", -2), ("The", -2),
    ],
)  # fmt: skip
def test_candidates_are_read(answer: str, candidate: int) -> None:
    assert read_candidate(answer) == candidate
