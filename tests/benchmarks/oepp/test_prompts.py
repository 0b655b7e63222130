import base64
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepline.benchmarks.oepp.prompts import conversation, read_plan
from stepline.metrics.plans import NO_ACTION

POOL = (" wipe the leather", "close the  TV control cover", "make the detergent", "make the  detergent", "cut in half")
NO = NO_ACTION


def test_the_prompt_is_the_papers() -> None:
    system, user = conversation(("peel", " wipe the leather"), 3, [b"a", b"b"], [b"c", b"d"])
    assert (system["role"], user["role"]) == ("system", "user")
    assert system["content"] == (
        "You are a helpful assistant, an expert in answering questions about action planning in instructional videos. "
        "Based on the start and end images, you need to infer the actions to transform from the start images to the "
        'end images. You must choose from the following actions ["peel", " wipe the leather"]. Output the name of the '
        "actions step by step.\n\n"
        "Example: 1. cut in half 2. slice the pulp\n\n"
        "Example: 1. dip detergent with rag or apply detergent 2. clean the floor 3. wash the floor"
    )
    parts = user["content"]
    assert isinstance(parts, list)
    assert [part["type"] for part in parts] == ["text", "image_url", "image_url", "text", "image_url", "image_url"]
    assert parts[0]["text"] == (
        "Infer the actions to transform from the start images to the end images. The actions must be actions from the "
        "given action pool.\n\nThe number of actions is 3. The start images:"
    )
    assert parts[3]["text"] == "The end images:"
    urls = [part["image_url"]["url"].split(",") for part in parts if part["type"] == "image_url"]
    assert [(head, base64.b64decode(data)) for head, data in urls] == [
        ("data:image/jpeg;base64", data) for data in (b"a", b"b", b"c", b"d")
    ]


def test_the_prompt_has_the_pools_exact_strings() -> None:
    system, _ = conversation(POOL, 3, [], [])
    assert isinstance(system["content"], str)
    listed = system["content"].partition("following actions ")[2].partition(". Output")[0]
    assert tuple(json.loads(listed)) == POOL


@pytest.mark.parametrize(
    ("answer", "plan"),
    [
        ("1. cut in half\n2. wipe the leather\n3. make the detergent", (4, 0, 2)),
        ("1. cut in half 2. wipe the leather 3. make the detergent", (4, 0, 2)),
        ("1) Cut in half.\r\n2) WIPE the leather\r\n3) cut in half\r\n", (4, 0, 4)),
        ("**1. cut in half**\n**2.** *wipe the leather*.\n3. \"cut in half\",", (4, 0, 4)),
        ("(1) `cut in half`; (2) [wipe the leather] (3) ‘cut in half’", (4, 0, 4)),
        ("Step 1: cut in half\nStep 2: wipe the leather\nStep 3: cut in half", (4, 0, 4)),
        ('["1. cut in half", "2. wipe the leather", "3. cut in half"]', (4, 0, 4)),
        ("1. close the TV  control cover\n2.cut in half\n3. make   the detergent", (1, 4, 2)),
        ("The number of actions is 3. Here they are:\n\n1. cut in half\n2. peel\n3. cut in half", (4, NO, 4)),
        ("1. peel 2. peel 3. peel\nNo, rather:\n1. cut in half\n2. cut in half\n3. peel", (4, 4, NO)),
        ("<think>1. peel\n2. peel</think>\n1. cut in half", (4, NO, NO)),
        ("1. cut in half\n\nIt is cut first.\n2. wipe the leather\nThen wiped.", (4, 0, NO)),
        ("1. cut in half\n2. cut in half\n3. cut in half\n4. wipe the leather", (4, 4, 4)),
        ("1. cut in halves\n2. to cut in half\n3. cut", (NO, NO, NO)),
        ("1. cut in half at 2.5 cm\n2. cut in half", (NO, 4, NO)),
        ("1. cut in half\n3. wipe the leather\n2. make the detergent", (4, 2, NO)),
        ("1.\n2. cut in half", (NO, 4, NO)),
        ("cut in half, wipe the leather", (NO, NO, NO)),
        ("I cannot see images.", (NO, NO, NO)),
        ("", (NO, NO, NO)),
    ],
)  # fmt: skip
def test_an_answer_is_read(answer: str, plan: tuple[int, ...]) -> None:
    assert read_plan(answer, POOL, 3) == plan


@given(st.text(alphabet='12). \n*"acinhltu', max_size=60), st.integers(1, 6))
def test_any_answer_gives_as_many_actions_as_were_asked_for(answer: str, n_actions: int) -> None:
    plan = read_plan(answer, POOL, n_actions)
    assert len(plan) == n_actions
    assert set(plan) <= {NO, *range(len(POOL))}


def test_every_name_of_the_released_pools_is_read(real_data: Path) -> None:
    for name in ("base", "novel"):
        pool = json.loads((real_data / f"oepp/{name}_action_pool_1.json").read_text())
        answer = "\n".join(f"{number}. {action}" for number, action in enumerate(pool, 1))
        found = [pool[index] for index in read_plan(answer, pool, len(pool))]
        assert {(a, b) for a, b in zip(pool, found, strict=True) if a != b} == (
            {("make the  detergent", "make the detergent")} if name == "base" else set()
        )
