"""Fixtures of the backbones' tests."""

import os
from pathlib import Path

import pytest

from tests.conftest import ROOT


@pytest.fixture(scope="session")
def parity() -> Path:
    """Weights' recipes and reference outputs; without them the test is skipped, except in continuous integration."""
    folder = Path(os.environ.get("STEPLINE_PARITY", ROOT.parent / "shared" / "parity"))
    if not folder.is_dir():
        reason = f"{folder} is not there: set STEPLINE_PARITY to a folder with the reference outputs"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return folder
