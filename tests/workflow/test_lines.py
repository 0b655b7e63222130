"""What a run prints: a line for each stage, and at the end what was made, where, and what failed."""

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import ROOT, snakemake

pytest.importorskip("av")
pytest.importorskip("cv2")
pytestmark = pytest.mark.slow

RUN = "--cores", "2", "--configfile", "mine.yaml"


def clip(path: Path, *, seconds: int = 2, size: tuple[int, int] = (64, 96)) -> None:
    from tests.media.clips import make

    path.parent.mkdir(exist_ok=True)
    times = [Fraction(i, 10) for i in range(10 * seconds)]
    make(path, times, picture=lambda i: np.full((*size, 3), i % 256, np.uint8))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    clip(tmp_path / "videos/a.mp4")
    (tmp_path / "videos/broken.mp4").write_text("no video")
    configure(tmp_path)
    return tmp_path


def configure(folder: Path, **changes: object) -> None:
    mine = {"videos": "videos", "backbones": ["histogram"], "stages": ["shots", "features"]}
    (folder / "mine.yaml").write_text(json.dumps({"datasets": {"mine": mine}, **changes}))


def printed(folder: Path, *options: str) -> list[str]:
    done = snakemake(*RUN, *options, folder=folder, lines=True)
    assert done.returncode == 0, done.stderr
    return (done.stdout + done.stderr).splitlines()


def test_a_run_says_what_it_made_where_and_which_videos_failed_and_a_dry_run_why(folder: Path) -> None:
    lines = printed(folder)
    assert next(line.split()[0] for line in lines if line.endswith(" 1 job")) == "download"
    [shots] = [line for line in lines if line.startswith("shots ") and "1/1" in line]
    assert re.fullmatch(r"shots +1/1 job, 0:00:02 of video(, [\d.e+]+ x real time)?, took 0:\d\d:\d\d", shots)
    end = lines[lines.index("made:") :]
    assert end[:3] == [
        "made:",
        "  results/mine/report.html, videos.csv, videos.md",
        "mine: 2 videos, of which 1 failed",
    ]
    assert end[3].startswith("  broken: failed: cannot be decoded")
    assert len(end) == 4
    assert not any("\r" in line or "\033" in line or "rule " in line for line in lines)
    assert not [*folder.glob(".stepline/progress/**/*.json")]

    assert printed(folder)[-1].startswith("Nothing to be done")
    (folder / "results/mine/report.html").unlink()
    touched = printed(folder, "--touch", "--forceall")
    assert touched[-1] == "nothing was computed; 5 of 6 jobs have files, now up to date"
    assert not [line for line in touched if "report.html" in line]
    printed(folder)

    clip(folder / "videos/b.mp4")
    dry = printed(folder, "--dry-run")
    start = dry.index("stage               jobs  reason")
    assert dry[start + 1] == "download               1  videos were added, removed or changed"
    end = dry.index("dry run: nothing was computed; without -n, 6 jobs would run")
    assert {line[26:] for line in dry[start + 2 : end]} == {"an earlier stage runs"}
    assert not any("before:" in line for line in dry)

    own = snakemake(*RUN, "--dry-run", "--verbose", folder=folder, lines=True)
    assert "before: " in own.stdout
    assert "Job stats:" in own.stdout


def test_a_failed_job_is_one_line_with_its_reason(folder: Path) -> None:
    configure(folder, strict=True)
    done = snakemake(*RUN, folder=folder, lines=True)
    assert done.returncode == 1
    lines = done.stderr.splitlines()
    end = lines[lines.index("failed: 1 job") :]
    assert re.fullmatch(
        r"  videos of mine, shard 000: 1 of 2 videos are absent; broken: .* \(logs/videos/mine\.000\.log\)", end[1]
    )
    assert re.fullmatch(r"Snakemake's own messages: /.*\.snakemake\.log", end[2])
    assert end[3:] == ["finished work is kept; the same command continues from there"]
    assert "Traceback" not in done.stderr
    assert "CalledProcessError" not in done.stderr


def test_control_c_prints_a_few_lines_and_keeps_what_is_finished(folder: Path) -> None:
    clip(folder / "videos/long.mp4", seconds=100, size=(360, 640))
    shown, code = on_a_terminal(folder, until=b"features   ")
    said = shown.partition("^C")[2]
    lines = re.sub(r"\033\[[0-9]*[A-Z]", "", said).splitlines()
    kept = [line for line in lines if line and "0/1 job" not in line]
    assert kept[-1] == "finished work is kept; the same command continues from there"
    [interrupted] = [line for line in kept if line.startswith("interrupted after ")]
    assert re.search(r": 1 of 6 jobs done; not finished: .*histogram on mine, shard 000", interrupted)
    assert len(kept) <= 6, said
    assert code != 0


def on_a_terminal(folder: Path, *, until: bytes) -> tuple[str, int]:
    """Run the workflow on a terminal, press Control-C after it shows ``until``, and return what it shows."""
    ours, theirs = pty.openpty()
    command = [Path(sys.executable).parent / "snakemake", "--snakefile", ROOT / "Snakefile", *RUN]
    kept = {key: value for key, value in os.environ.items() if not key.startswith("STEPLINE_")}
    with subprocess.Popen(
        command, cwd=folder, env=kept | {"TERM": "xterm"}, stdin=theirs, stdout=theirs, stderr=theirs, process_group=0
    ) as process:
        os.close(theirs)
        shown, pressed, end = b"", False, time.monotonic() + 120
        while time.monotonic() < end:
            if select.select([ours], [], [], 0.1)[0]:
                try:
                    shown += os.read(ours, 1 << 16)
                except OSError:  # all who had the terminal are gone
                    break
            if until in shown and not pressed:
                shown, pressed = b"^C", True
                os.killpg(process.pid, signal.SIGINT)
    os.close(ours)
    return shown.decode(), process.returncode
