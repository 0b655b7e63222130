import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

JARS = "meteor/meteor-1.5.jar", "spice/spice-1.0.jar"


@pytest.fixture
def a_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Put a program ``java`` first on PATH, of Python lines, and a package with the jars that it is asked to run."""

    def write(lines: str) -> None:
        for jar in JARS:
            path = tmp_path / "packages" / "pycocoevalcap" / jar
            path.parent.mkdir(parents=True)
            path.touch()
        monkeypatch.syspath_prepend(tmp_path / "packages")
        program = tmp_path / "bin" / "java"
        program.parent.mkdir()
        program.write_text(f"#!{sys.executable}\nimport sys\n{lines}\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")

    return write
