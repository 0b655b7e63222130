"""Pages in headless Chromium, as a reader opens them from the disk."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest

PHONE = {"viewport": {"width": 390, "height": 844}, "device_scale_factor": 2, "is_mobile": True, "has_touch": True}
"""Options of `opened` for a phone."""


@cache
def chromium() -> str | None:
    """Return the browser's program, if there is one."""
    return shutil.which("chromium") or shutil.which("google-chrome")


@contextmanager
def opened(page: Path, **context: Any) -> Iterator[Any]:
    """Open a file in a new browser; yield Playwright's ``Page``. context: options of ``Browser.new_context``.

    Fails where the page asks for anything that is not a file, prints an error on the console or raises one.
    """
    program = chromium()
    if program is None:
        if os.environ.get("CI"):
            pytest.fail("Chromium is not installed: apt-get install chromium")
        pytest.skip("Chromium is not installed")
    from playwright.sync_api import sync_playwright

    wrong: list[str] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=program,
            args=["--no-sandbox", "--disable-gpu", "--disable-quic", "--autoplay-policy=no-user-gesture-required"],
        )
        shown = browser.new_context(**{"viewport": {"width": 1280, "height": 900}} | context).new_page()
        shown.on("console", lambda line: line.type == "error" and wrong.append(f"console: {line.text}"))
        shown.on("pageerror", lambda error: wrong.append(f"error: {error}"))
        shown.on(
            "request",
            lambda request: request.url.startswith(("file:", "data:", "blob:")) or wrong.append(f"asks {request.url}"),
        )
        shown.goto(page.absolute().as_uri())
        yield shown
        browser.close()
    assert wrong == []
