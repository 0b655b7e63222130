"""What happens to files that were made and to runs, whatever is made of what."""

import os
import shutil
import signal
import subprocess
import threading
import time
from abc import abstractmethod
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import ClassVar

from stepline import aside
from tests.chaos.sequence import Folder

MADE = ("datasets", "features", "results", ".stepline", "logs")
"""Folders of what was made."""
ENDED = "No such file or directory: '{}/.snakemake/locks/"
"""What Snakemake's traceback says where the other run ended, and removed the folder of locks, while this one locked."""
REFUSED = "LockException", "Unable to obtain modification time of file"
"""What Snakemake says to the second of two runs: it looks at files before it asks whether the folder is locked."""


class Made(Folder):
    """Events on files that were made, on times of files, and on runs. STAGES: folders of logs, of stages to kill in."""

    STAGES: ClassVar[tuple[str, ...]]

    @abstractmethod
    def change(self, random: Random) -> str:
        """Change something, so that there is work to do."""

    def inputs(self) -> list[Path]:
        """Return files of the user's whose time may be off."""
        return []

    def _made(self, *, folders: bool = False) -> list[Path]:
        found = (path for name in MADE for path in sorted((self.folder / name).rglob("*")))
        return [path for path in found if folders or path.is_symlink() or path.is_file()]

    def delete(self, random: Random) -> str:
        names = [name for name in MADE if (self.folder / name).exists()]
        if not names or not (made := sorted((self.folder / random.choice(names)).rglob("*"))):
            return ""
        return self._remove(random.choice(made))

    def delete_record(self, random: Random) -> str:
        if not (made := [path for path in self._made() if "manifests" in path.parts or path.suffix == ".json"]):
            return ""
        return self._remove(random.choice(made))

    def delete_stage(self, random: Random) -> str:
        found = [path for path in self._made(folders=True) if path.is_dir() and not path.is_symlink()]
        shallow = [path for path in found if len(path.relative_to(self.folder).parts) <= 3]
        return self._remove(random.choice([*shallow, *(self.folder / name for name in MADE)]))

    def _remove(self, path: Path) -> str:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
        return f"delete {path.relative_to(self.folder)}"

    def read_only(self, random: Random) -> str:
        if not (made := [path for path in self._made() if not path.is_symlink()]):
            return ""
        path = random.choice(made)
        path.chmod(0o444)
        return f"make {path.relative_to(self.folder)} read-only"

    def leave(self, random: Random) -> str:
        """Leave what a process that was killed while it wrote leaves: a hidden sibling, in part."""
        whole = [path for path in self._made(folders=True) if path.name.isdecimal() or path.parent.name == "media"]
        made = [path for path in [*self._made(), *whole] if not path.name.startswith(".") and not path.is_symlink()]
        if not made:
            return ""
        path = random.choice(made)
        name = "-".join([f"{aside.PREFIX}{aside._HOST[0]}", aside._HOST[1], f"{random.randrange(10**6)}"])
        left = path.with_name(f"{name}{path.suffix if path.is_file() else ''}")
        if path.is_dir():
            shutil.copytree(path, left, symlinks=True, ignore=lambda _, names: names[1::2])
        else:
            left.write_bytes(path.read_bytes()[:100])
        return f"leave {left.relative_to(self.folder)}"

    def skew(self, random: Random) -> str:
        """Be a clock that was wrong: for one of the user's files, or for all that was made."""
        seconds = random.choice([-86400, -3600, 3600, 86400])
        one = random.choice(self.inputs()) if self.inputs() and random.random() < 0.5 else None
        for path in [one] if one else self._made():
            at = path.lstat().st_mtime + seconds
            os.utime(path, (at, at), follow_symlinks=False)
        return f"the time of {one.relative_to(self.folder) if one else 'all that was made'} is off by {seconds} s"

    def kill(self, random: Random) -> str:
        """Change something, kill the run that follows with all its jobs, and unlock the folder."""
        return self._killed(random, _working_in)

    def orphan(self, random: Random) -> str:
        """Change something, kill Snakemake alone, and unlock the folder while its jobs still go on."""
        return self._killed(random, lambda folder: {min(_working_in(folder), default=0)} - {0})

    def _killed(self, random: Random, whom: Callable[[Path], set[int]]) -> str:
        what, stage, after_s = (
            self.change(random),
            random.choice(self.STAGES),
            random.choice([0, 0, 0.01, 0.05, 0.2, 0.5]),
        )
        started = time.time_ns()
        thread = threading.Thread(target=self.run)
        thread.start()
        while thread.is_alive() and not self._logs_since(stage, started):
            thread.join(0.005)
        thread.join(after_s)
        going = thread.is_alive()
        kill_all(whom, self.folder)
        thread.join()
        unlocked = self.run("--unlock")
        assert unlocked.returncode == 0, f"--unlock: {unlocked.stderr}"
        return f"{what}; {'kill' if going else 'no kill in'} a run {after_s} s after {stage} began"

    def _logs_since(self, stage: str, started_ns: int) -> bool:
        with suppress(FileNotFoundError):
            logs = (self.folder / "logs" / stage).rglob("*.log")
            return any(path.stat().st_mtime_ns > started_ns for path in logs)
        return False

    def twice(self, random: Random) -> str:
        """Change something, and start two runs."""
        what, delay_s = self.change(random), random.choice([0, 0, 0.05, 0.2, 0.5, 1])
        both: list[subprocess.CompletedProcess[str]] = []
        other = threading.Thread(target=lambda: both.append(self.run()))
        other.start()
        time.sleep(delay_s)
        both.append(self.run())
        other.join()
        refused, ended = [done for done in both if done.returncode], ENDED.format(self.folder)
        for done in both:
            assert "Traceback" not in done.stderr or ended in done.stderr, (
                f"of two runs at once:\n{done.stderr[-4000:]}"
            )
        for done in refused:
            assert any(each in done.stderr for each in (*REFUSED, ended)), (
                f"of two runs at once:\n{done.stderr[-4000:]}"
            )
        assert len(refused) < 2, (
            f"of two runs at once none went on:\n{both[0].stderr[-2000:]}\n{both[1].stderr[-2000:]}"
        )
        return f"{what}; a second run {delay_s} s after the first{' is refused' if refused else ''}"


def kill_all(whom: Callable[[Path], set[int]], folder: Path) -> None:
    """Kill at once the processes that ``whom`` finds in ``folder``, and those that they start meanwhile."""
    stopped: set[int] = set()
    while new := whom(folder) - stopped:
        for process in new:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGSTOP)
        stopped |= new
    for process in stopped:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


def _working_in(folder: Path) -> set[int]:
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and entry.name != str(os.getpid()):
            with suppress(OSError):
                if os.readlink(entry / "cwd") == str(folder):
                    found.add(int(entry.name))
    return found
