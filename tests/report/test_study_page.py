"""The page of a study in a browser: tables sort and filter, on a desk, on a phone and without scripts."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stepline.needs import Need
from tests.browser import PHONE, opened
from tests.report.test_study import page as write
from tests.tables.numbers import PAPER, SAMPLE_LIST, build, number, score

COMMAND = (
    "snakemake --cores 8 results/study/table2.csv --config 'study={text_encoders: [tfidf, minilm, senttransformer]}'"
)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page")
    (folder / "paper.csv").write_text(PAPER)
    lacking = {"score": None, "needs": (Need("weights", "clip"),), "command": COMMAND}
    asked = [
        number(),
        number(metric="map"),
        number(context_s=180.0, score=score(13.0)),
        number(entry="b", method="<b>Sorts</b> first", setting="other", score=score(9.5), context_s=None),
        number(entry="o", method="Sample rank", setting="other", sees=(SAMPLE_LIST,), score=score(100.0)),
        number(entry="n", method="Missing", setting="other", **lacking),
        number(table="3b", release="v1", method="Other"),
    ]
    write(folder, build(asked, folder / "paper.csv"))
    return folder / "report.html"


@pytest.fixture(scope="module")
def desk(page: Path) -> Iterator[Any]:
    with opened(page, permissions=["clipboard-read", "clipboard-write"]) as shown:
        yield shown


@pytest.fixture
def shown(desk: Any) -> Any:
    """Return the page as it is when it is opened."""
    desk.reload()
    return desk


def column(shown: Any, name: str) -> list[str]:
    """Return the texts of a column of the first table, of the rows that are not filtered out."""
    heads = shown.locator("table.sortable").first.locator("thead th").all_text_contents()
    place = [head.split(" ")[0] for head in heads].index(name)
    cells = f"table.sortable >> nth=0 >> tbody tr:not([hidden]) > :nth-child({place + 1})"
    texts: list[str] = shown.locator(cells).all_inner_texts()
    return texts


def sort(shown: Any, name: str) -> Any:
    head = shown.locator("table.sortable").first.locator("thead th").filter(has_text=name)
    head.get_by_role("button").click()
    return head.get_attribute("aria-sort")


def test_what_a_reader_wants_first_stands_first(shown: Any) -> None:
    places = ["h1", "#finding", "#results figure", "#results .numbers", "#how-to-read", "#tables", "#missing", "#facts"]
    heights = [shown.locator(each).first.bounding_box()["y"] for each in places]
    assert heights == sorted(heights)
    heads = shown.locator("table.sortable").first.locator("thead th:visible").all_inner_texts()
    assert [head.split()[0] for head in heads] == [
        *("Method", "Setting", "Window", "Metric", "Paper", "Ours", "Difference", "Status", "Command")
    ]


def test_numbers_sort_as_numbers_missing_ones_last_and_a_third_click_restores_the_order(shown: Any) -> None:
    before = column(shown, "Ours")
    assert sort(shown, "Ours") == "ascending"
    assert [text for text in column(shown, "Ours") if text] == sorted(filter(None, before), key=float)
    assert column(shown, "Ours")[-1] == ""
    assert sort(shown, "Ours") == "descending"
    assert [text for text in column(shown, "Ours") if text] == sorted(filter(None, before), key=float, reverse=True)
    assert column(shown, "Ours")[-1] == ""
    assert sort(shown, "Ours") is None
    assert column(shown, "Ours") == before


def test_windows_sort_by_their_length_and_the_rest_by_text(shown: Any) -> None:
    sort(shown, "Window")
    assert column(shown, "Window")[-1] == "unlimited"
    assert column(shown, "Window").index("3 min") > column(shown, "Window").index("1 min")
    assert sort(shown, "Method") == "ascending"
    assert column(shown, "Method")[0].startswith("<b>Sorts</b> first")
    assert shown.locator("[aria-sort]").count() == 1


def test_equal_cells_keep_their_order_and_the_keyboard_sorts(shown: Any) -> None:
    before = [*zip(column(shown, "Metric"), column(shown, "Method"), strict=True)]
    shown.locator("table.sortable").first.locator("thead th").filter(has_text="Metric").get_by_role("button").focus()
    shown.keyboard.press("Enter")
    after = [*zip(column(shown, "Metric"), column(shown, "Method"), strict=True)]
    assert after == sorted(before, key=lambda each: each[0])


def test_words_and_statuses_filter_the_rows(shown: Any) -> None:
    tools, rows = shown.locator(".tools").first, len(column(shown, "Method"))
    assert tools.locator("output").inner_text() == f"{rows} rows"
    tools.get_by_role("searchbox").fill("minilm 3")
    assert column(shown, "Window") == ["3 min"]
    assert tools.locator("output").inner_text() == f"1 of {rows} rows"
    tools.get_by_role("searchbox").fill("senttransformer")
    assert column(shown, "Method") == [], "of a command nothing is found"
    tools.get_by_role("searchbox").fill("")
    tools.get_by_role("button", name="needs").click()
    assert {text.split()[0] for text in column(shown, "Status")} == {"needs"}
    tools.get_by_role("button", name="exact").click()
    assert {*column(shown, "Ours")} == {"", "11.22"}
    assert tools.get_by_role("button", name="needs").get_attribute("aria-pressed") == "true"
    assert len(column(shown, "Method")) < rows


def test_all_columns_are_a_click_away(shown: Any) -> None:
    interval = shown.locator("td.more").first
    assert not interval.is_visible()
    shown.get_by_label("all columns").first.check()
    assert interval.is_visible()


def test_the_command_of_a_row_can_be_copied(shown: Any) -> None:
    row = shown.locator("tr[data-chip=needs]").filter(has_text="Missing").first
    row.get_by_role("button").click()
    row.get_by_role("button", name="copied").wait_for()
    assert shown.evaluate("navigator.clipboard.readText()") == COMMAND
    assert shown.locator("tr[data-chip=exact] code.command").first.inner_text() == "stepline explain minilm"


def otherwise(shown: Any, **context: Any) -> Any:
    """Return the page in another context of the browser."""
    other = shown.context.browser.new_context(**context).new_page()
    other.goto(shown.url)
    return other


def test_a_phone_shows_the_page_without_overflow_and_keeps_the_methods_in_sight(shown: Any) -> None:
    phone = otherwise(shown, **PHONE)
    assert phone.evaluate("document.documentElement.scrollWidth <= innerWidth")
    scroll = phone.locator(".scroll").first
    assert scroll.evaluate("each => each.scrollWidth > each.clientWidth")
    method = scroll.locator("tbody th").first
    before = method.bounding_box()["x"]
    scroll.evaluate("each => { each.scrollLeft = 200 }")
    assert method.bounding_box()["x"] == pytest.approx(before, abs=1)


def test_in_print_the_table_stands_without_its_controls(shown: Any) -> None:
    shown.emulate_media(media="print")
    assert [shown.locator(each).first.is_visible() for each in (".tools", "button.copy", "nav", ".action")] == [
        False
    ] * 4
    assert shown.locator("#missing code.command").first.is_visible()
    shown.set_viewport_size({"width": 718, "height": 1000})  # A4 with margins of 1 cm
    assert shown.evaluate("document.documentElement.scrollWidth <= innerWidth")
    shown.set_viewport_size({"width": 1280, "height": 900})
    shown.emulate_media(media="screen")


def test_without_scripts_the_table_is_whole(shown: Any) -> None:
    plain = otherwise(shown, java_script_enabled=False)
    assert plain.locator("table.sortable").first.locator("tbody tr:visible").count() > 5
    assert plain.locator("button").count() == 0
    plain.get_by_label("all columns").first.check()
    assert plain.locator("td.more").first.is_visible()
