"""Random sequences of what happens to a data set, with a run after each, held to runs from scratch.

``python -m tests.chaos.events SEED`` plays one again; ``--only 2,5`` plays these of its events, counted from 1.
"""

import argparse
import json
import os
import shutil
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from stepline.config import validate
from stepline.errors import ConfigError
from tests.chaos.study import Study, clip, recogniser

NAMES = ("a.mp4", "b.mkv", "day 1/c.mp4", "day 1/D e.mp4", "f.MP4")
CLIPS = 12
EVENTS = 8
"""In a sequence."""
MADE = ("datasets", "features", "results", ".stepline", "logs")
"""Folders of what was made."""
CHOICES: dict[str, tuple[Any, ...]] = {
    "shots.threshold": (27, 5),
    "shots.min_shot_s": (0.2, 1.2),
    "media.limits": ({"least_s": 600}, {"least_s": 601}),
    "media.keep": ("all", "none"),
    "media.damaged": ("partial", "skip"),
    "media.orientation": ("upright", "stored"),
    "features.batch_size": (None, 1, 3),
    "asr.deepgram": ({}, {"model": "nova-2"}),
    "shard_hours": (1e-3, 1e-6),
}
"""Options and their values, the first the usual one."""
STAGES = ("videos", "media", "shots", "transcribe", "extract", "thumbnails", "summary", "page")


@dataclass(frozen=True)
class Lost:
    """A file that was taken away: its name, bytes and times."""

    name: str
    content: bytes
    times_ns: tuple[int, int]


class Play:
    """Events on a study. Each is a method that does it and returns what it did in words, "" where it cannot be done."""

    def __init__(self, study: Study) -> None:
        self.study = study
        self.lost: list[Lost] = []

    def start(self, random: Random) -> str:
        for name in random.sample(NAMES, random.randint(2, 3)):
            self.study.put(name, clip(random.randrange(CLIPS)))
        self.study.backbones = random.choice([["histogram"], ["one"], ["histogram", "one"]])
        if random.random() < 0.3:
            self._set("shard_hours", 1e-6)
        if random.random() < 0.2:
            self._set("media.keep", "none")
        return f"start with {self.study.files()}, {self.study.backbones}, {json.dumps(self.study.options)}"

    # Files of the user's

    def add(self, random: Random) -> str:
        free = sorted(set(NAMES) - set(self.study.files()) - {lost.name for lost in self.lost})
        if not free:
            return ""
        name, number = random.choice(free), random.randrange(CLIPS)
        self.study.put(name, clip(number))
        return f"add {name}, clip {number}"

    def lose(self, random: Random) -> str:
        names = self.study.files()
        if len(names) < 2:
            return ""
        path = self.study.videos / (name := random.choice(names))
        found = path.stat()
        self.lost.append(Lost(name, path.read_bytes(), (found.st_atime_ns, found.st_mtime_ns)))
        path.unlink()
        return f"lose {name}"

    def recover(self, random: Random) -> str:
        if not self.lost:
            return ""
        lost = self.lost.pop(random.randrange(len(self.lost)))
        if lost.name in self.study.files():
            return ""
        self.study.put(lost.name, lost.content)
        if same := random.random() < 0.5:
            os.utime(self.study.videos / lost.name, ns=lost.times_ns)
        return f"recover {lost.name}{', times too' if same else ''}"

    def replace(self, random: Random) -> str:
        name, number = random.choice(self.study.files()), random.randrange(CLIPS)
        self.study.put(name, clip(number))
        return f"replace {name} by clip {number}"

    def swap(self, random: Random) -> str:
        if len(names := self.study.files()) < 2:
            return ""
        one, other = (self.study.videos / name for name in random.sample(names, 2))
        aside = one.with_name(".aside")
        one.rename(aside)
        other.rename(one)
        aside.rename(other)
        return f"swap {one.name} and {other.name}"

    def rename(self, random: Random) -> str:
        free = sorted(set(NAMES) - set(self.study.files()) - {lost.name for lost in self.lost})
        if not free:
            return ""
        old, new = random.choice(self.study.files()), random.choice(free)
        (self.study.videos / new).parent.mkdir(exist_ok=True)
        (self.study.videos / old).rename(self.study.videos / new)
        return f"rename {old} to {new}"

    def corrupt(self, random: Random) -> str:
        name = random.choice(self.study.files())
        path = self.study.videos / name
        content = bytearray(path.read_bytes())
        if not content:
            return ""
        how = random.choice(["truncate", "flip", "zero"])
        at = random.randrange(len(content))
        if how == "truncate":
            del content[at:]
        elif how == "zero":
            content[at : at + 512] = bytes(len(content[at : at + 512]))
        else:
            for _ in range(random.randint(1, 20)):
                content[random.randrange(len(content))] ^= 1 << random.randrange(8)
        path.write_bytes(content)
        return f"corrupt {name}: {how} at {at} of {len(content)}"

    def touch(self, random: Random) -> str:
        name = random.choice(self.study.files())
        os.utime(self.study.videos / name)
        return f"touch {name}"

    def skew(self, random: Random) -> str:
        path = random.choice([*self._made(), *(self.study.videos / name for name in self.study.files())])
        seconds = random.choice([-86400, -3600, 3600, 86400])
        at = time.time() + seconds
        os.utime(path, (at, at), follow_symlinks=False)
        return f"set the time of {path.relative_to(self.study.folder)} off by {seconds} s"

    # Files that were made

    def _made(self, *, folders: bool = False) -> list[Path]:
        found = (path for name in MADE for path in sorted((self.study.folder / name).rglob("*")))
        return [path for path in found if folders or path.is_symlink() or path.is_file()]

    def delete(self, random: Random) -> str:
        if not (made := self._made(folders=True)):
            return ""
        path = random.choice(made)
        return self._remove(path)

    def delete_record(self, random: Random) -> str:
        if not (made := [path for path in self._made() if "manifests" in path.parts or path.suffix == ".json"]):
            return ""
        return self._remove(random.choice(made))

    def delete_stage(self, random: Random) -> str:
        found = [path for path in self._made(folders=True) if path.is_dir() and not path.is_symlink()]
        shallow = [path for path in found if len(path.relative_to(self.study.folder).parts) <= 3]
        return self._remove(random.choice([*shallow, *(self.study.folder / name for name in MADE)]))

    def _remove(self, path: Path) -> str:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
        return f"delete {path.relative_to(self.study.folder)}"

    def read_only(self, random: Random) -> str:
        if not (made := [path for path in self._made() if not path.is_symlink()]):
            return ""
        path = random.choice(made)
        path.chmod(0o444)
        return f"make {path.relative_to(self.study.folder)} read-only"

    def leave(self, random: Random) -> str:
        """Leave what a process that was killed while it wrote leaves: a hidden sibling, in part."""
        if not (made := [path for path in self._made(folders=True) if not path.name.startswith(".")]):
            return ""
        path = random.choice(made)
        left = path.with_name(f".{path.name}.x{random.randrange(10**6)}{path.suffix if path.is_file() else ''}")
        if path.is_dir():
            shutil.copytree(path, left, symlinks=True, ignore=lambda _, names: names[1::2])
        else:
            left.write_bytes(path.read_bytes()[:100])
        return f"leave {left.relative_to(self.study.folder)}"

    # The configuration

    def _set(self, key: str, value: Any) -> None:
        *parents, last = key.split(".")
        place = self.study.options
        for parent in parents:
            place = place[parent]
        place[last] = value

    def option(self, random: Random) -> str:
        key = random.choice(sorted(known_choices()))
        *parents, last = key.split(".")
        place = self.study.options
        for parent in parents:
            place = place[parent]
        now = place.get(last, CHOICES[key][0])
        value = random.choice([value for value in CHOICES[key] if value != now])
        place[last] = value
        return f"set {key} to {json.dumps(value)}"

    def backbone(self, random: Random) -> str:
        name = random.choice(["histogram", "one", "two"])
        if name in self.study.backbones:
            self.study.backbones = [each for each in self.study.backbones if each != name]
            return f"remove the backbone {name}"
        self.study.backbones = [*self.study.backbones, name]
        return f"add the backbone {name}"

    def code(self, random: Random) -> str:
        name = random.choice(["one", "two"])
        self.study.revisions[name] = 3 - self.study.revisions[name]
        return f"{name} has revision {self.study.revisions[name]}"

    def key(self, random: Random) -> str:
        self.study.key = not self.study.key
        return f"the key {'comes' if self.study.key else 'goes'}"

    # Runs that do not end as planned; before each something happens, so that there is work

    def kill(self, random: Random) -> str:
        what = self._something(random)
        stage, after_s = random.choice(STAGES), random.choice([0, 0, 0.01, 0.05, 0.2, 0.5])
        started = time.time_ns()

        def logged() -> bool:
            logs = (self.study.folder / "logs" / stage).rglob("*.log")
            with suppress(FileNotFoundError):
                return any(path.stat().st_mtime_ns > started for path in logs)
            return False

        done = self.study.killed(logged, after_s)
        return f"{what}; {'kill' if done else 'no kill in'} a run {after_s} s after {stage} began"

    def twice(self, random: Random) -> str:
        what, delay_s = self._something(random), random.choice([0, 0, 0.05, 0.2, 0.5, 1])
        both = self.study.at_once(0, delay_s)
        refused = [done for done in both if done.returncode]
        for done in both:
            assert "Traceback" not in done.stderr, f"of two runs at once:\n{done.stderr[-4000:]}"
        for done in refused:
            assert "LockException" in done.stderr, f"of two runs at once:\n{done.stderr[-4000:]}"
        assert len(refused) < 2, f"of two runs at once both failed:\n{both[0].stderr[-2000:]}\n{both[1].stderr[-2000:]}"
        return f"{what}; a second run {delay_s} s after the first{' is refused' if refused else ''}"

    def _something(self, random: Random) -> str:
        changes = [self.add, self.replace, self.recover, self.option, self.backbone, self.code, self.delete_stage]
        for change in random.sample(changes, len(changes)):
            if said := change(random):
                return said
        return "nothing"


WEIGHTS = {
    **{"add": 2, "lose": 2, "recover": 2, "replace": 2, "swap": 1, "rename": 1, "corrupt": 2, "touch": 1, "skew": 1},
    **{"delete": 4, "delete_record": 2, "delete_stage": 2, "read_only": 1, "leave": 1},
    **{"option": 4, "backbone": 2, "code": 1, "key": 1, "kill": 4, "twice": 2},
}
"""How often each event is drawn."""


def known_choices() -> list[str]:
    """Return the options that this version of the configuration has."""
    return [key for key in CHOICES if _is_known(key)]


def _is_known(key: str) -> bool:
    parts, value = key.split("."), CHOICES[key][-1]
    for part in reversed(parts):
        value = {part: value}
    try:
        validate(value)
    except ConfigError:
        return False
    return True


def drawn(seed: int) -> list[tuple[str, int]]:
    """Return the events of a sequence: names, each with the seed of what it draws."""
    random = Random(seed)
    names = random.choices(list(WEIGHTS), list(WEIGHTS.values()), k=EVENTS)
    return [(name, random.randrange(2**32)) for name in names]


def play(seed: int, service: str, only: Sequence[int] | None = None, say: Callable[[str], object] = str) -> Counter[str]:
    """Play a sequence, or ``only`` some of its events, in a new folder; return how often what happened.

    Raises AssertionError, with the seed and what happened, where a promise is broken.
    """
    counts: Counter[str] = Counter()
    happened: list[str] = []
    random = Random(seed)
    with TemporaryDirectory(prefix="chaos-") as folder:
        study = Study(Path(folder).resolve(), service)
        played = Play(study)
        events = drawn(seed)
        compared = {random.randrange(1, EVENTS), EVENTS}
        try:
            happened.append(played.start(random))
            say(happened[-1])
            study.check(study.run())
            for number, (name, own_seed) in enumerate(events, start=1):
                if only is None or number in only:
                    happened.append(f"{number} {name} (while it happens)")
                    said = getattr(played, name)(Random(own_seed))
                    happened.pop()
                    if said:
                        happened.append(f"{number} {said}")
                        say(happened[-1])
                        study.check(study.run())
                        counts[f"events: {name}"] += 1
                if number in compared:
                    study.key = True
                    study.check(study.run())
                    study.compare()
                    counts["comparisons with a run from scratch"] += 1
        except AssertionError as error:
            if keep := os.environ.get("CHAOS_KEEP"):
                shutil.copytree(folder, Path(keep, f"events-{seed}"), symlinks=True, dirs_exist_ok=True)
            lines = "\n".join(f"  {line}" for line in happened)
            raise AssertionError(f"events, seed {seed}: {error}\nwhat happened:\n{lines}") from None
    counts["sequences"] += 1
    counts["runs"] += study.runs
    return counts


def campaign(seed: int, n: int) -> dict[str, int]:
    """Play the ``n`` sequences from ``seed`` on, and return how often what happened."""
    counts: Counter[str] = Counter()
    with recogniser() as server:
        for each in range(seed, seed + n):
            counts += play(each, server.url)
    return dict(counts)


def shrunk(seed: int, service: str) -> list[int]:
    """Return the numbers of events of a failing sequence that are enough to fail, found by leaving out one by one."""
    kept = list(range(1, EVENTS + 1))
    for number in reversed(range(1, EVENTS + 1)):
        without = [each for each in kept if each != number]
        try:
            play(seed, service, without)
        except AssertionError:
            kept = without
    return kept


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Play a sequence of events.")
    parser.add_argument("seed", type=int)
    parser.add_argument("--only", type=lambda text: [int(each) for each in text.split(",")])
    parser.add_argument("--shrink", action="store_true", help="find the events that are enough to fail")
    parsed = parser.parse_args()
    with recogniser() as running:
        if parsed.shrink:
            parsed.only = shrunk(parsed.seed, running.url)
            print("--only", ",".join(map(str, parsed.only)))
        print(play(parsed.seed, running.url, parsed.only, say=print))
