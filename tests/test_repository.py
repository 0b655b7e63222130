"""What stands in the repository: small files, no names of machines."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MAX_BYTES = 500_000


def tracked() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return [path for name in listed.split("\0") if name and (path := ROOT / name).is_file()]


def texts() -> dict[Path, str]:
    found = {}
    for path in tracked():
        content = path.read_bytes()
        if b"\0" not in content:
            found[path.relative_to(ROOT)] = content.decode()
    return found


pytestmark = pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a git checkout")


def test_every_file_is_small():
    assert {path.name: path.stat().st_size for path in tracked() if path.stat().st_size >= MAX_BYTES} == {}


def test_no_file_names_a_place_of_one_machine():
    # Written so that this file does not hold the words itself.
    place = re.compile(r"(?<![\w.~}])/(?:w[o]rk|r[o]ot|h[o]me|opt)/\w")
    assert [f"{path}: {m.group()}" for path, text in texts().items() for m in place.finditer(text)] == []


def test_continuous_integration_runs_make_test():
    run = ROOT / ".ci" / "run"
    assert run.stat().st_mode & 0o111
    assert run.read_text().splitlines()[-1] == "exec make test"
