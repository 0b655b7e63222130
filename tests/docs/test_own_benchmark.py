"""The code on docs/own-benchmark.md is that of the example, which runs by the commands on the page."""

import re
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.docs.conftest import execute
from tests.docs.pages import FENCE

PAGE = (ROOT / "docs/own-benchmark.md").read_text(encoding="utf-8")
PARTS = re.findall(r"<!-- part: (\S+) -->\n```\w+\n(.*?)```", PAGE, re.DOTALL)


def block(mark: str) -> str:
    """Return the text of the block below a mark."""
    (text,) = re.findall(rf"<!-- {mark} -->\n```\w+\n(.*?)```", PAGE, re.DOTALL)
    return str(text).replace("STEPLINE/", f"{ROOT}/")


@pytest.mark.parametrize(("file", "text"), PARTS, ids=[file for file, _ in PARTS])
def test_a_part_is_of_the_example(file: str, text: str) -> None:
    assert text in (ROOT / file).read_text(encoding="utf-8")


def test_each_block_is_a_part_or_runs() -> None:
    assert len(PARTS) + 2 == len(FENCE.findall(PAGE))
    assert len(PAGE.split()) <= 900


@pytest.mark.slow
def test_the_commands_run(real_data: Path, tmp_path: Path) -> None:
    (tmp_path / "captaincook4d.yaml").write_text(block("file: captaincook4d.yaml"))
    printed = execute(f"export STEPLINE_MIRROR={real_data}\n{block('run')}", tmp_path)
    assert "accuracy on test: 29.44" in printed
