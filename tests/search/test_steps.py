"""Steps of a moment by what is said in it, and without."""

import numpy as np
import pytest

from stepline.asr.transcript import Sentence
from stepline.search.steps import Step, equal_parts, said_steps


def test_equal_parts_are_seven_but_none_under_five_seconds() -> None:
    assert [step.start_s for step in equal_parts(10, 80)] == pytest.approx([10, 20, 30, 40, 50, 60, 70])
    assert equal_parts(10, 80)[-1].end_s == 80
    assert equal_parts(10, 21) == (Step(10, 15.5), Step(15.5, 21))
    assert equal_parts(3, 4) == (Step(3, 4),)
    assert equal_parts(3, 3) == (Step(3, 3),)


LINES = [Sentence(text, 10.0 * place, 10.0 * place + 9) for place, text in enumerate("abcdefgh")]


def test_a_step_by_speech_has_the_sentence_most_like_the_text() -> None:
    vectors = np.eye(3)[[0, 0, 0, 0, 1, 1, 1, 1]] + 0.0
    vectors[[1, 6], 2] = 0.5, 2
    steps = said_steps(LINES, vectors, np.array([0.0, 0, 1]), 0, 80)
    assert steps[0].start_s == 0
    assert steps[-1].end_s == 80
    assert len(steps) == 7
    assert [first.end_s for first in steps[:-1]] == [second.start_s for second in steps[1:]]
    assert {"b", "g"} <= {step.label for step in steps}


def test_only_what_is_said_in_the_moment_counts() -> None:
    vectors = np.eye(2)[[0, 0, 1, 1, 0, 0, 0, 0]]
    steps = said_steps(LINES, vectors, np.array([1.0, 0]), 12, 36)
    assert steps == (Step(12, 30, "c"), Step(30, 36, "d"))
    assert said_steps(LINES, vectors, np.array([1.0, 0]), 71, 80) == ()
    assert said_steps(LINES, vectors, np.array([1.0, 0]), 70, 80) == (Step(70, 80, "h"),)


def test_sentences_that_start_at_one_time_are_of_one_step() -> None:
    lines = [Sentence(text, start_s, start_s + 2) for text, start_s in (("a", 18.0), ("b", 18.0), ("c", 30.0))]
    steps = said_steps(lines, np.eye(3), np.array([0.0, 1, 0]), 10, 50)
    assert steps == (Step(10, 30, "b"), Step(30, 50, "c"))
