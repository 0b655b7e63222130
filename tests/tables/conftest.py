from pathlib import Path

import pytest

from tests.tables.numbers import PAPER


@pytest.fixture
def paper(tmp_path: Path) -> Path:
    path = tmp_path / "paper.csv"
    path.write_text(PAPER)
    return path
