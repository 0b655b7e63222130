import json
from pathlib import Path
from typing import Any

import pytest
from openpyxl import Workbook

from stepline.datasets.coin import CoinEvent, taxonomy, videos
from stepline.datasets.oepp import Step
from stepline.errors import ReleaseError


def record(**more: Any) -> dict[str, Any]:
    annotation = [
        {"id": "7", "segment": [1.5, 3], "label": "boil  water"},
        {"id": "8", "segment": [2, 9], "label": "a"},
    ]
    return {
        "class": "MakeTea",
        "recipe_type": 3,
        "annotation": annotation,
        "duration": 9.5,
        "subset": "training",
    } | more


def write(content: object, name: str = "coin.json") -> Path:
    Path(name).write_text(json.dumps(content))
    return Path(name)


def test_coins_own_form_and_pdpps_lists_read_alike() -> None:
    own = write({"database": {"a-1": record(), "b_2": record()}})
    lists = write([{"a-1": record()}], "train.json"), write([{"b_2": record()}], "test.json")
    assert videos(own) == videos(*lists)
    video = videos(own)["b_2"]
    assert (video.event, video.event_id) == ("MakeTea", 3)
    assert video.steps == (
        Step(action="boil  water", start_s=1.5, end_s=3.0),
        Step(action="a", start_s=2.0, end_s=9.0),
    )


@pytest.mark.parametrize(
    "content",
    [
        [],
        3,
        {"videos": {}},
        [{"a": record(), "b": record()}],
        [[1]],
        [{"a": {"class": "MakeTea"}}],
        [{"a": record(annotation=[{"segment": [3, 2], "label": "a"}])}],
        [{"a": record(annotation=[{"segment": [3], "label": "a"}])}],
        [{"a": record(annotation=[{"segment": [-1, 2], "label": "a"}])}],
        [{"a": record(recipe_type="tea")}],
    ],
)
def test_another_form_is_one_line(content: object) -> None:
    if content == []:
        assert videos(write(content)) == {}
        return
    with pytest.raises(ReleaseError, match=r"coin.json is not in COIN's format: [^\n]+$"):
        videos(write(content))


def test_a_video_that_stands_twice_or_is_a_path_is_refused() -> None:
    with pytest.raises(ReleaseError, match="test.json: a is listed twice"):
        videos(write([{"a": record()}]), write([{"a": record()}], "test.json"))
    with pytest.raises(ReleaseError, match=r"video id '\.\./a' is not allowed"):
        videos(write([{"../a": record()}]))


def workbook(domains: list[tuple[Any, ...]], actions: list[tuple[Any, ...]]) -> Path:
    book = Workbook()
    for title, rows in (
        ("domain_target_mapping", [("Domains", "Targets"), *domains]),
        ("target_action_mapping", [("Target Id", "Target Label", "Action Id", "Action Label"), *actions]),
    ):
        sheet = book.create_sheet(title)
        for row in rows:
            sheet.append(row)
    book.save("taxonomy.xlsx")
    return Path("taxonomy.xlsx")


def release(train: Any, test: Any, domains: list[tuple[Any, ...]], actions: list[tuple[Any, ...]]) -> dict[str, Any]:
    """Return the files of COIN's release, as PDPP has it."""
    taxonomy = workbook(domains, actions).read_bytes()
    return {"coin_train_70.json": train, "coin_test_30.json": test, "taxonomy.xlsx": taxonomy}


def test_the_taxonomy_keeps_the_order_of_events_and_actions() -> None:
    rows = [(4, "MakeTea", 9, "pour"), (4, "MakeTea", 2, "boil  water"), (), (1, "CutMango", 5, "peel")]
    found = taxonomy(workbook([("Fruit", "CutMango"), ("Drink", "MakeTea")], rows))
    assert list(found.values()) == [
        CoinEvent(id=4, name="MakeTea", domain="Drink", actions=("pour", "boil  water")),
        CoinEvent(id=1, name="CutMango", domain="Fruit", actions=("peel",)),
    ]


@pytest.mark.parametrize(
    ("domains", "actions"),
    [
        ([], [(4, "MakeTea", 9, "pour")]),
        ([("Drink", "MakeTea")], [(4, "MakeTea", 9, "pour"), (5, "MakeTea", 9, "pour")]),
        ([("Drink", "MakeTea")], [("x", "MakeTea", 9, "pour")]),
        ([("Drink", "MakeTea", "more")], [(4, "MakeTea", 9, "pour")]),
        ([("Drink", "MakeTea")], []),
    ],
)
def test_another_taxonomy_is_one_line(domains: list[tuple[Any, ...]], actions: list[tuple[Any, ...]]) -> None:
    with pytest.raises(ReleaseError, match=r"taxonomy.xlsx is not COIN's taxonomy: [^\n]+$"):
        taxonomy(workbook(domains, actions))


def test_what_is_no_workbook_is_one_line() -> None:
    book = workbook([("Drink", "MakeTea")], [(4, "MakeTea", 9, "pour")])
    whole = book.read_bytes()
    for content in (b"", b"text", whole[: len(whole) // 2], whole.replace(b"workbook", b"workbock")):
        book.write_bytes(content)
        with pytest.raises(ReleaseError, match=r"taxonomy.xlsx is not COIN's taxonomy: [^\n]+$"):
            taxonomy(book)
