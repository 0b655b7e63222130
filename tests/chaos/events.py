"""Random sequences of what happens to a data set, with a run after each, held to runs from scratch.

``python -m tests.chaos.events SEED`` plays one again; ``--only 2,5`` plays these of its events, counted from 1.
"""

import json
import os
import subprocess
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from stepline.config import validate
from stepline.errors import ConfigError
from tests.chaos.made import Made
from tests.chaos.sequence import main, play
from tests.chaos.study import Study, clip, recogniser

NAMES = ("a.mp4", "b.mkv", "day 1/c.mp4", "day 1/D e.mp4", "f.MP4")
CLIPS = 12
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


@dataclass(frozen=True)
class Lost:
    """A file that was taken away: its name, bytes and times."""

    name: str
    content: bytes
    times_ns: tuple[int, int]


class Events(Made):
    """What happens to a data set: to the user's files, to the configuration, to what was made of them, and to runs."""

    EVENTS = {
        4: ("delete", "option", "kill"),
        2: ("add", "lose", "recover", "replace", "corrupt", "delete_record", "delete_stage", "backbone", "twice"),
        1: ("swap", "rename", "touch", "skew", "read_only", "leave", "code", "key", "orphan"),
    }
    STAGES = ("videos", "media", "shots", "transcribe", "extract", "thumbnails", "summary", "page")

    def __init__(self, folder: Path, service: str) -> None:
        self.folder = folder
        self.study = Study(folder, service)
        self.lost: list[Lost] = []

    def run(self, *options: str) -> subprocess.CompletedProcess[str]:
        self.runs += 1
        return self.study.run(*options)

    def check(self) -> subprocess.CompletedProcess[str]:
        done = super().check()
        rows = self.study.outcome()["csv"]
        assert all(row["status"] for row in rows.values()), f"a video without a status: {rows}"
        return done

    def settle(self) -> None:
        if not self.study.key:
            self.study.key = True
            self.check()
        super().settle()

    def compare(self) -> None:
        self.study.compare()

    def inputs(self) -> list[Path]:
        return [self.study.videos / name for name in self.study.files()]

    def change(self, random: Random) -> str:
        changes = [self.add, self.replace, self.recover, self.option, self.backbone, self.code, self.delete_stage]
        return next(filter(None, (change(random) for change in random.sample(changes, len(changes)))))

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
            return self.lose(random)
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


@cache
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


def campaign(seed: int, n: int) -> dict[str, int]:
    """Play the ``n`` sequences from ``seed`` on, and return how often what happened."""
    counts: Counter[str] = Counter()
    with recogniser() as server:
        for each in range(seed, seed + n):
            counts += play(lambda folder: Events(folder, server.url), each)
    return dict(counts)


if __name__ == "__main__":
    with recogniser() as running:
        main(lambda folder: Events(folder, running.url), Events.LENGTH)
