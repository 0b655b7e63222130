"""What several tests need in their folder, made once."""

import shutil
from collections.abc import Callable
from contextlib import chdir
from pathlib import Path

import pytest

from tests.conftest import made_once


def copy_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], None]) -> None:
    """Copy into the test's folder what ``make`` writes into the current one; it may leave other files in its argument.

    name: of the copied folder, once for all processes of a test run.
    """

    def fill(folder: Path) -> None:
        with chdir(folder):
            make(factory.mktemp(name))

    shutil.copytree(made_once(factory, name, fill), ".", dirs_exist_ok=True)
