"""The documentation site: it is built without a warning, so each link leads somewhere, and opens from the disk."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.browser import opened
from tests.conftest import ROOT, made_once

PAGES = sorted(ROOT.glob("docs/**/*.md"))


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("furo")

    def build(folder: Path) -> None:
        words = ["--fail-on-warning", "--keep-going", "--quiet", "--doctree-dir", str(folder / "doctrees")]
        command = [sys.executable, "-m", "sphinx", *words, "--conf-dir", "docs", ".", str(folder / "html")]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr

    return made_once(tmp_path_factory, "site", build) / "html"


@pytest.mark.slow
def test_the_site_opens_at_its_start_and_finds_a_function_without_a_server(site: Path) -> None:
    with opened(site / "index.html") as page:
        page.wait_for_url("**/docs/index.html")
        page.get_by_role("link", name="Python", exact=True).first.click()
        page.fill("input[name=q]", "soda_d_dataset")
        page.keyboard.press("Enter")
        page.click("ul.search a >> text=soda_d_dataset")
        assert page.url.endswith("/docs/reference/python.html#stepline.metrics.soda_d_dataset")


@pytest.mark.slow
def test_the_reference_has_the_help_of_every_verb(site: Path) -> None:
    text = (site / "docs/reference/commands.html").read_text()
    for verb in ("stepline", "stepline search", "stepline bank import"):
        assert re.search(rf"<h\d>{verb}<", text)
        assert f"usage: {verb} " in text


def test_every_page_names_its_source_files() -> None:
    without = {"docs/index.md", "docs/start.md"}
    for page in PAGES:
        lines = re.findall(r"^Source: (.+(?:\n`.+)*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
        name = str(page.relative_to(ROOT))
        assert len(lines) == (name not in without), f"{name}: one line `Source: ` with the files that it describes"
        for line in lines:
            assert [path for path in re.findall("`(.+?)`", line) if not (ROOT / path).exists()] == [], name
