"""The prompt of Table 7, and the parser of answers (Sec. 7.2.4).

The texts are the paper's, word for word. It does not show the format of the pool; here it is a JSON list, which keeps
every name unchanged, including spaces. The pictures replace ``[images encoded with base64].``, including the full stop.
The paper's example of an assistant's answer has no pictures and is not sent.
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
"""The number before an action in an answer: ``1.``, ``1)``, ``(1)``, ``**1.``, ``1:``."""
AROUND = " *_\"'`“”‘’.,;:-()[]"
"""Characters stripped from names in an answer. Except for spaces, no name of a pool begins or ends with them."""


def conversation(pool: Sequence[str], n_actions: int, start: Sequence[bytes], end: Sequence[bytes]) -> Conversation:
    """Return the messages that request a plan of ``n_actions``.

    pool: the actions to choose from. start, end: JPEGs of the start and of the end, in temporal order.
    """
    user = [_text(USER.format(n_actions=n_actions)), *map(_image, start), _text(END), *map(_image, end)]
    system = SYSTEM.format(pool=json.dumps(list(pool), ensure_ascii=False))
    return [{"role": "system", "content": system}, {"role": "user", "content": user}]


def read_plan(answer: str, pool: Sequence[str], n_actions: int) -> tuple[int, ...]:
    """Return ``n_actions`` indices into ``pool``, from the numbered list in an answer, on separate lines or in one.

    If the answer contains ``</think>``, only the text after it counts. Of several lists, the last one counts, because a
    model may reason first. Names are compared ignoring case, repeated spaces, and surrounding characters such as quotes
    or a full stop. If several names then match, the lower index counts. NO_ACTION replaces unknown names and missing
    actions; surplus actions are dropped.
    """
    indices: dict[str, int] = {}
    for index, action in enumerate(pool):
        indices.setdefault(_normalised(action), index)
    named = [indices.get(_normalised(each), NO_ACTION) for each in _listed(answer.rpartition("</think>")[2])]
    return tuple(named[:n_actions] + [NO_ACTION] * (n_actions - len(named)))


def _listed(text: str) -> list[str]:
    """Return the text after each number of the last list, up to the next number or the end of the line."""
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
