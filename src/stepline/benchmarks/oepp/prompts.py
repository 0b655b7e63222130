"""The prompt of Table 7 and what its answers mean (paper, Sec. 7.2.4).

The paper's texts, word for word. It does not print how the pool is written: here as a JSON list, so that every name
stands as it is, blanks included. Where it has ``[images encoded with base64].`` the pictures stand, without a full
stop. Its answer of an assistant has no pictures and is not sent.
"""

import base64
import json
import re
from collections.abc import Sequence
from typing import Any

from stepline.metrics.plans import NO_ACTION
from stepline.service import Conversation

SYSTEM = (
    "You are a helpful assistant, an expert in answering questions about action planning in instructional videos. "
    "Based on the start and end images, you need to infer the actions to transform from the start images to the end "
    "images. You must choose from the following actions {pool}. Output the name of the actions step by step.\n\n"
    "Example: 1. cut in half 2. slice the pulp\n\n"
    "Example: 1. dip detergent with rag or apply detergent 2. clean the floor 3. wash the floor"
)
USER = (
    "Infer the actions to transform from the start images to the end images. The actions must be actions from the "
    "given action pool.\n\n"
    "The number of actions is {n_actions}. The start images:"
)
END = "The end images:"
NUMBER = re.compile(r"(?<!\S)[*_#\"'`(\[]*([0-9]{1,3})[.):](?![0-9])")
"""What an action of an answer begins with: ``1.``, ``1)``, ``(1)``, ``**1.``, ``1:``."""
AROUND = " *_\"'`“”‘’.,;:-()[]"
"""What may stand around a name in an answer; no name of a pool begins or ends so, but for blanks."""


def conversation(pool: Sequence[str], n_actions: int, start: Sequence[bytes], end: Sequence[bytes]) -> Conversation:
    """Return the messages that ask for a plan of ``n_actions``.

    pool: the actions to choose from. start, end: JPEGs of the start and of the end, in the order of time.
    """
    user = [_text(USER.format(n_actions=n_actions)), *map(_image, start), _text(END), *map(_image, end)]
    system = SYSTEM.format(pool=json.dumps(list(pool), ensure_ascii=False))
    return [{"role": "system", "content": system}, {"role": "user", "content": user}]


def read_plan(answer: str, pool: Sequence[str], n_actions: int) -> tuple[int, ...]:
    """Return ``n_actions`` indices into ``pool``: what an answer numbers 1, 2, 3 and so on, on lines or in one line.

    Of several such lists the last counts, as a model may think aloud; so does what stands behind ``</think>`` alone.
    A name is matched without regard to case, repeated blanks and what stands around it, as quotes or a full stop; of
    names that are equal then, the lower index counts. NO_ACTION stands for what is no name of the pool and for what is
    lacking; what is more is left out.
    """
    indices: dict[str, int] = {}
    for index, action in enumerate(pool):
        indices.setdefault(_normalised(action), index)
    named = [indices.get(_normalised(each), NO_ACTION) for each in _listed(answer.rpartition("</think>")[2])]
    return tuple(named[:n_actions] + [NO_ACTION] * (n_actions - len(named)))


def _listed(text: str) -> list[str]:
    """Return what stands behind each number of the last list, up to the next number or the line's end."""
    starts: list[re.Match[str]] = []
    for found in NUMBER.finditer(text):
        if int(found[1]) == 1:
            starts = [found]
        elif int(found[1]) == len(starts) + 1:
            starts.append(found)
    ends = [each.start() for each in starts[1:]] + [len(text)]
    return [text[each.end() : end].partition("\n")[0] for each, end in zip(starts, ends, strict=False)]


def _normalised(name: str) -> str:
    return " ".join(name.casefold().split()).strip(AROUND)


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _image(jpeg: bytes) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": f"data:image/jpeg;base64,{base64.b64encode(jpeg).decode()}"}}
