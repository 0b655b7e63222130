"""One browser for all pages of a module: its start takes longer than most of what is done with a page."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.browser import opened

Opening = Callable[..., AbstractContextManager[Any]]


@pytest.fixture(scope="module")
def opening(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opening]:
    """Like `opened`, but in one browser, where each page has a context of its own; what fails it there fails it here.

    As long as it is open, `opened` itself cannot start another.
    """
    blank = tmp_path_factory.mktemp("browser") / "blank.html"
    blank.touch()

    @contextmanager
    def within(page: Path, **context: Any) -> Iterator[Any]:
        wrong: list[str] = []
        with browser.new_context(**{"viewport": {"width": 1280, "height": 900}} | context) as its:
            its.on("console", lambda line: line.type == "error" and wrong.append(f"console: {line.text}"))
            its.on("weberror", lambda error: wrong.append(f"error: {error.error}"))
            own = "file:", "data:", "blob:"
            its.on("request", lambda asked: asked.url.startswith(own) or wrong.append(f"asks {asked.url}"))
            shown = its.new_page()
            shown.goto(page.absolute().as_uri())
            yield shown
        assert wrong == []

    with opened(blank) as first:
        browser = first.context.browser
        yield within
