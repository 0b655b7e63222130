"""A data set of the user's own, with two videos."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def clips() -> Path:
    """A folder with two videos."""
    Path("clips").mkdir()
    for name in "ab":
        Path(f"clips/{name}.mp4").write_bytes(b"x")
    return Path("clips")
