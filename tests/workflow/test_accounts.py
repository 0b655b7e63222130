"""A work folder of several accounts, of which /etc/passwd lists none: a group's members write, a colleague reads."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT, unavailable
from tests.media.clips import CFR_25, make

GROUP, OTHERS = 500, 600
CONFIG = "datasets: {d: {videos: v, backbones: [histogram], stages: [shots, features]}}\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of the group, with a video."""
    if os.geteuid():
        pytest.skip("only root can be other accounts")
    if not shutil.which("setpriv"):
        unavailable("setpriv is not installed")
    for parent in [tmp_path, *tmp_path.parents[:2]]:
        parent.chmod(0o755)
    work = tmp_path / "work"
    (work / "v").mkdir(parents=True)
    make(work / "v/a.mp4", CFR_25)
    (work / "c.yaml").write_text(CONFIG)
    for path in (work, *work.rglob("*")):
        os.chown(path, 0, GROUP)
        path.chmod(0o2775 if path.is_dir() else 0o664)
    return work


def account(uid: int, gid: int, umask: int, *words: str, work: Path) -> subprocess.CompletedProcess[str]:
    """Run a command as an account, which may read what belongs to Python wherever it is, but writes only its own."""
    home = work.with_name(f"home-{uid}")
    home.mkdir(exist_ok=True)
    os.chown(home, uid, gid)
    reads = [f"--{which}-caps=-all,+dac_read_search" for which in ("inh", "ambient")]
    identity = [f"--reuid={uid}", f"--regid={gid}", "--clear-groups", "--bounding-set=-all,+dac_read_search"]
    return subprocess.run(
        ["setpriv", *identity, *reads, str(Path(sys.executable).parent / words[0]), *words[1:]],
        cwd=work,
        env={"PATH": os.environ["PATH"], "HOME": str(home), "PYTHONDONTWRITEBYTECODE": "1"},
        umask=umask,
        capture_output=True,
        text=True,
        check=False,
    )


def run(uid: int, umask: int, *options: str, work: Path, gid: int = GROUP) -> subprocess.CompletedProcess[str]:
    words = "snakemake", "--snakefile", str(ROOT / "Snakefile"), "--configfile", "c.yaml", *options
    return account(uid, gid, umask, *words, work=work)


def state(work: Path) -> dict[str, tuple[int, int]]:
    return {str(path): (path.lstat().st_mtime_ns, path.lstat().st_ctime_ns) for path in [work, *work.rglob("*")]}


@pytest.mark.slow
def test_members_of_a_group_change_each_others_results_and_a_colleague_reads_them(folder: Path) -> None:
    first = run(4001, 0o002, "--cores", "1", work=folder)
    assert first.returncode == 0, first.stderr
    with open(folder / "c.yaml", "a", encoding="utf-8") as file:
        file.write("shots: {threshold: 20}\n")
    second = run(4002, 0o002, "--cores", "1", work=folder)
    assert second.returncode == 0, second.stderr
    assert "jobs done" in second.stderr
    made = [path for path in folder.rglob("*") if not path.is_symlink()]
    assert [path for path in made if not path.stat().st_mode & 0o020] == []

    before = state(folder)
    for verb in ("status", "plan", "doctor", "gc"):
        shown = account(4003, OTHERS, 0o022, "stepline", "--configfile", "c.yaml", verb, work=folder)
        assert "ermission" not in shown.stderr, verb
        assert shown.returncode == (1 if verb == "doctor" else 0), shown.stderr  # the disk is broken
    dry = run(4003, 0o022, "-n", work=folder, gid=OTHERS)
    assert "Nothing to be done" in dry.stdout + dry.stderr, dry.stderr
    (folder / "v/b.mp4").write_bytes((folder / "v/a.mp4").read_bytes())
    before = before | state(folder / "v") | {str(folder): before[str(folder)]}
    planned = account(4003, OTHERS, 0o022, "stepline", "--configfile", "c.yaml", "plan", work=folder)
    assert "There is nothing left to do." not in planned.stdout
    assert state(folder) == before
    wrote = account(4003, OTHERS, 0o022, "stepline", "--configfile", "c.yaml", "show", "d", "a", work=folder)
    assert wrote.returncode == 2
    assert "Permission denied: this account cannot read or write it: run in a folder" in wrote.stderr


@pytest.mark.slow
def test_umask_077_shows_others_nothing(folder: Path) -> None:
    done = run(4001, 0o077, "--cores", "1", work=folder)
    assert done.returncode == 0, done.stderr
    made = [path for name in ("datasets", "features", "results", ".stepline") for path in (folder / name).rglob("*")]
    assert made
    assert [path for path in made if not path.is_symlink() and path.stat().st_mode & 0o077] == []
