import json
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="session")
def mirror(demo_mirror: Path) -> Path:
    """Return a mirror with the built study, which tests leave as it is; its truth.json stands beside it."""
    return demo_mirror


@pytest.fixture(scope="session")
def truth(mirror: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((mirror.parent / "truth.json").read_text())
    return content
