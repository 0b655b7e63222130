"""Prompts of both tasks, and parsing of the answers (paper Appendix E.5)."""

import re
from collections.abc import Sequence

from stepline.datasets.studies import RETRIEVAL, STEP_RECOGNITION
from stepline.service import Conversation

SYSTEM = {
    STEP_RECOGNITION: (
        "You are a helpful assistant.\n"
        "You will be given a query transcription and a list of step labels. You will be asked to select the step label "
        "that the transcription belongs to.\n"
        "Please respond with a single integer."
    ),
    RETRIEVAL: (
        "You are a helpful assistant.\n"
        "You will be given a query transcription and two candidate transcriptions. You will be asked to select the "
        "candidate transcription that is from the same task as the query transcription. "
        'Please answer by choosing either "A" OR "B" only.'
    ),
}
BACKGROUND = "Background: Noise or a video not showing spacewalk."
"""The description of Irrelevant in prompts; the release's description differs."""
LETTERS = "AB"
NO_ANSWER = -2
"""The label of an answer that names none of the choices; it is never right."""


def conversation(task: str, examples: Sequence[tuple[str, str]], question: str) -> Conversation:
    """Return the messages: the task's system prompt, examples as (question, answer), and the question."""
    said = [message for example in examples for message in zip(("user", "assistant"), example, strict=True)]
    messages = [("system", SYSTEM[task]), *said, ("user", question)]
    return [{"role": role, "content": content} for role, content in messages]


def step_question(text: str, steps: Sequence[tuple[str, str]]) -> str:
    """Return the question that asks which step a window's text belongs to.

    steps: (transcript, caption) of the steps 1..K; a step without a transcript is described by its caption alone.
    """
    described = [BACKGROUND, *(f"{caption}: {told}" if told else caption for told, caption in steps)]
    choices = [f"{number}) {each}" for number, each in enumerate(described)]
    return "\n".join([f"Transcription: {text}", "Which is the correct label for the above transcription?", *choices])


def retrieval_question(frame: int, text: str, candidates: Sequence[tuple[tuple[float, float], str]]) -> str:
    """Return the question that asks which candidate shows the same step as the query.

    frame, text: the query's frame number and text. candidates: ((start, end) of the window in seconds, its text).
    Bounds are rounded to whole seconds: the paper quotes [21789, 21849] for a window from 21788.87 s.
    """
    choices = [
        f"{letter}) [{round(start_s)}, {round(end_s)}] {told}"
        for letter, ((start_s, end_s), told) in zip(LETTERS, candidates, strict=True)
    ]
    question = "Is transcription A or B from the same task as the above transcription?"
    return "\n".join([f"[{frame}] {text}", question, *choices])


def read_step(answer: str, n_steps: int) -> int:
    """Return the label 0..K at the start of an answer (``12``, ``12)``, ``12) caption``), otherwise ``NO_ANSWER``."""
    found = re.match(r"""[\s*"'(\[]*([0-9]{1,4})(?![0-9.]*[0-9])""", _after_thoughts(answer))
    return int(found[1]) if found and int(found[1]) <= n_steps else NO_ANSWER


def read_candidate(answer: str) -> int:
    """Return 0 for an answer that begins with the letter A, 1 for B, otherwise ``NO_ANSWER``.

    A letter that is the first word of a sentence does not count.
    """
    found = re.match(r"""[\s*"'(\[]*([AB])(?![\w'])(?!\s+\w)""", _after_thoughts(answer))
    return LETTERS.index(found[1]) if found else NO_ANSWER


def _after_thoughts(answer: str) -> str:
    """Return an answer without the model's reasoning, which ends with ``</think>``."""
    return answer.rpartition("</think>")[2]
