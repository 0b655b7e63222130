"""The plan of PSS: which jobs there are, what each reads, and what decides its result.

The workflow asks and runs; nothing is computed here, and nothing heavy is imported.
"""

import os
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from stepline import benchmark
from stepline.benchmarks.pss.entries import PARTS, SEGMENT_S, Entry
from stepline.config import validate
from stepline.datasets import pss
from stepline.datasets.subset import select
from stepline.errors import ConfigError
from stepline.footage import is_backbone
from stepline.io import canonical_json

SCORING = 1
"""Revision of the scoring code: raise it with a change that gives other numbers."""
METEOR_WANTED = "config:pss.metrics.meteor=true"
FIRST_KERNEL, KERNEL_STEP = 3, 8
"""Rows of ProcNet's shortest anchor, and how much longer the next one is."""

Job = benchmark.Job[Entry]
"""One entry on one data set, which in paths stands where others have a release."""


@dataclass(frozen=True)
class Plan(benchmark.Benchmark[Entry]):
    """What there is to do for PSS under one configuration."""

    package = "stepline.benchmarks.pss"
    entry = Entry
    released = pss.RELEASES
    footage_sets = pss.DATASETS

    def check(self) -> None:
        """Raise ConfigError where features or sizes are impossible."""
        for key, names in self.study_config["features"].items():
            for name in names:
                for footage in self.footage.values():
                    footage.check(name, f"config: pss.features.{key}")
        options = self.study_config["procnet"]
        longest = FIRST_KERNEL + KERNEL_STEP * (options["anchors"] - 1)
        if longest > options["length"]:
            raise ConfigError(
                f"config: pss.procnet.length: {options['length']} is not allowed; {options['anchors']} anchors need "
                f"{longest} rows"
            )

    @property
    def targets(self) -> tuple[str, ...]:
        """What is made where no target is named."""
        return (*super().targets, "worked_examples.html")

    @property
    def releases(self) -> list[str]:
        """The releases to fetch: those of the configured data sets, and the training videos of Tasty."""
        configured = self.datasets
        return [*configured, *(["tasty-train"] if "tasty" in configured else [])]

    @property
    def datasets(self) -> list[str]:
        """The configured data sets."""
        names: list[str] = self.study_config["releases"]
        return names

    def features(self, entry: Entry) -> Sequence[str]:
        """Return the names of the backbones or imported banks that are the entry's features."""
        names: list[str] = self.study_config["features"][entry.features] if entry.features else []
        return names

    def lacking(self, entry: Entry, release: str) -> tuple[str, ...]:
        """Return what the entry lacks on a data set before any job of it can run.

        Videos are listed by the release; and the training videos of Tasty are a release without known sha256.
        """
        needed = [release] if any(is_backbone(name, self.config) for name in self.features(entry)) else []
        if entry.made.trains and (train := pss.SPLIT_FILES[release]["train"][0]) != release:
            needed.append(train)
        absent = [f"release:pss/{name}" for name in needed if not pss.has_release(name)]
        absent += [str(need) for name in self.features(entry) for need in self.footage[release].missing(name)]
        return tuple(dict.fromkeys(absent))

    def wanted(self, entry: Entry, release: str) -> Iterable[str]:
        """Return what must not be lacking where the configuration is strict: METEOR too, if it is wanted."""
        return (*self.lacking(entry, release), *(self.meteor_lacks if entry.made.captions else ()))

    def record(self, job: Job) -> dict[str, Any]:
        """Return all that decides the predictions of a job: its spec."""
        entry = job.entry
        record: dict[str, Any] = {
            "study": "pss",
            "release": job.release,
            "kind": entry.kind,
            "revision": entry.made.revision,
            "settings": dict(entry.settings),
            "splits": list(entry.splits),
            "seeds": list(entry.seeds),
            "subset": self.study_config["subset"],
            "options": self.options(entry, job.release),
            "features": [self.footage[job.release].record(name) for name in self.features(entry)],
        }
        if entry.trained:
            record |= {entry.made.options: self.study_config[entry.made.options]}
        if entry.features and entry.kind != "procnet":
            record["length"] = self.study_config["length"][job.release]
        return record

    def options(self, entry: Entry, release: str) -> dict[str, Any]:
        """Return the named options that matter to the entry's numbers, besides those of a metric.

        Those of training are left out where they are the published ones.
        """
        if not entry.features:
            uniform = entry.settings.get("proposals", "uniform") == "uniform"
            return {"duration": self.study_config["duration"]} if uniform else {}
        options = {"features": "+".join(self.features(entry))}
        options |= {key: mine for key, (mine, _) in self.changed(entry, release).items()}
        return options | ({"vocabulary": self.study_config["vocabulary"]} if entry.made.captions else {})

    def changed(self, entry: Entry, release: str) -> dict[str, tuple[Any, Any]]:
        """Return the options of an entry's training that are not the published ones: each with both values."""
        mine, published = self.study_config, validate({"pss": {}})["pss"]
        block = entry.made.options
        pairs = {key: (mine[block][key], published[block][key]) for key in mine[block] if key != "seeds"}
        if entry.kind != "procnet":
            pairs["length"] = (mine["length"][release], published["length"][release])
        return {key: pair for key, pair in sorted(pairs.items()) if pair[0] != pair[1]}

    @cached_property
    def meteor_lacks(self) -> tuple[str, ...]:
        """What METEOR itself lacks: Java, the package that holds its program, or that it is wanted."""
        if not self.study_config["metrics"]["meteor"]:
            return (METEOR_WANTED,)
        if os.environ.get("STEPLINE_CONDA"):
            return ()
        absent = [] if shutil.which("java") else ["java"]
        return (*absent, *([] if find_spec("pycocoevalcap") else ["package:pycocoevalcap"]))

    def score_params(self) -> str:
        """Return what scores must be made again for, besides new predictions, as text."""
        return canonical_json(
            {"metrics": self.study_config["metrics"], "revision": SCORING, "meteor": self.meteor_lacks}
        )

    def material(self, job: Job) -> list[Path]:
        """Return what fitting and predicting read."""
        releases = [job.release]
        if job.entry.made.trains:
            releases.append(pss.SPLIT_FILES[job.release]["train"][0])
        inputs = [self.release_manifest(name) for name in dict.fromkeys(releases)]
        for name in self.features(job.entry):
            inputs += self.footage[job.release].inputs(name)
        return inputs

    def table_inputs(self, target: str) -> list[Path]:
        """Return the scores that a table collects, and the records that videos are deleted, where they are not kept."""
        jobs = list(self.jobs(target))
        read = {job.release for job in jobs if any(is_backbone(name, self.config) for name in self.features(job.entry))}
        dropped = [path for name in sorted(read) for path in self.footage[name].pipeline.videos.dropped]
        return [*self.scores(target), *dropped]

    def how_to_fill(self, item: str) -> str:
        """Return a command that brings what ``needs`` names."""
        kind, _, what = item.partition(":")
        if kind == "features":
            name, _, dataset = what.partition("/")
            return f"stepline bank import FOLDER --name {name} --dataset {dataset} --hop-s 1"
        commands = {
            "java": "apt install default-jre-headless",
            "videos:tasty": "cp VIDEOS/*.mp4 $STEPLINE_MIRROR/tasty/videos/",
        }
        return commands.get(item) or super().how_to_fill(item)

    @property
    def choices(self) -> Sequence[Any]:
        """What a table says besides its numbers: a change of it writes tables again."""
        keys = ("releases", "subset", "features", "duration", "vocabulary")
        return [*(self.study_config[key] for key in keys), PARTS, SEGMENT_S]

    def chosen(self, release: str) -> frozenset[str]:
        """Return the videos of a data set that the configured subset holds."""
        return frozenset(select(pss.DATASETS[release].videos(), self.study_config["subset"]))
