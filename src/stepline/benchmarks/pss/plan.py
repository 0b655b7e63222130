"""The plan of PSS: which jobs there are, what each reads, and what decides its result.

The workflow asks and runs; nothing is computed here, and nothing heavy is imported.
"""

import os
import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from stepline import paths
from stepline.backbones.registry import FRAME_BACKBONES, presets, towers
from stepline.backbones.sentence import MODELS
from stepline.benchmarks.pss.entries import PARTS, SEGMENT_S, Entry, load_entries, load_table
from stepline.config import Config, validate
from stepline.datasets import pss
from stepline.datasets.subset import select
from stepline.errors import ConfigError, MissingError
from stepline.io import canonical_json, read_json, sha256_file
from stepline.mirror import signature
from stepline.pipeline import Pipeline
from stepline.spec import digest

SCORING = 1
"""Revision of the scoring code: raise it with a change that gives other numbers."""
METEOR_WANTED = "config:pss.metrics.meteor=true"
FIRST_KERNEL, KERNEL_STEP = 3, 8
"""Rows of ProcNet's shortest anchor, and how much longer the next one is."""


def paper_file(target: str) -> Path:
    """Return the paper's numbers of a table."""
    return Path(__file__).parent / "paper" / f"{target}.csv"


@dataclass(frozen=True, kw_only=True)
class Job:
    """One entry on one data set, which in paths stands where others have a release; ``context`` is always ``all``."""

    release: str
    entry: Entry

    @property
    def context(self) -> str:
        """What stands in paths for a window length."""
        return paths.context_label(None)


@dataclass(frozen=True)
class Footage(Pipeline):
    """The videos of YouCook2 or Tasty, as far as features are computed from them."""

    @classmethod
    def of(cls, config: Config, name: str) -> "Footage":
        """Return the pipeline of the data set ``name``; raise ConfigError where PSS is not configured."""
        return Plan.configured(config, "pss").footage[name]

    @property
    def targets(self) -> tuple[str, ...]:
        """Nothing: features are made for what reads them."""
        return ()

    @property
    def configured_backbones(self) -> Sequence[str]:
        """The backbones among the configured features of what is shown."""
        made = Plan(self.config, pss.RELEASES)
        named = [name for entry in made.shown.values() if entry.features for name in made.sources(entry)]
        return [name for name in dict.fromkeys(named) if is_backbone(name, self.config)]

    @property
    def lacks(self) -> tuple[str, ...]:
        """What the backbones lack; no speech is recognised."""
        return tuple(dict.fromkeys(item for name in self.configured_backbones for item in self.backbone_lacks(name)))

    @property
    def listed_clips(self) -> dict[str, list[tuple[float, float]]]:
        """No clips are listed."""
        return {}

    @property
    def how_to_list(self) -> str:
        """What to do where a backbone wants listed clips."""
        return "name a backbone that describes each second in `pss.features`"

    def made_from_videos(self, shard: str) -> list[Path]:
        """Return the records of the features of a shard, which are all that is computed from its videos."""
        return [paths.features_manifest(self.name, shard, self.spec_of(name)) for name in self.backbones]

    def drop_inputs(self, shard: str) -> list[Path]:
        """Return the records of all that wants a shard's videos."""
        return self.made_from_videos(shard)

    @property
    def wants_videos(self) -> bool:
        """Whether features are computed."""
        return bool(self.configured_backbones)

    def check_records(self) -> None:
        """Read the records of videos where features are computed."""
        if self.backbones:
            super().check_records()

    @property
    def feature_manifests(self) -> dict[str, list[Path]]:
        """By backbone that lacks nothing, the records of the features of all videos."""
        return {
            name: [paths.features_manifest(self.name, shard, self.spec_of(name)) for shard in self.all_shards]
            for name in self.backbones
        }


def is_backbone(name: str, config: Config) -> bool:
    """Return whether a name of ``pss.features`` is a backbone; else it is a bank that was imported."""
    return ":" in name or name in {*FRAME_BACKBONES, *presets(), *config["backbones"]}


@dataclass(frozen=True)
class Plan(Pipeline):
    """What there is to do for PSS under one configuration."""

    @classmethod
    def of(cls, config: Config, name: str) -> "Plan":
        """Return the plan; raise ConfigError where PSS is not configured."""
        plan = cls.configured(config, name)
        plan._check_features()
        plan._check_sizes()
        if config["strict"]:
            shown = [(plan.entries[entry], release) for entry, release in plan.pairs()]
            lacking = {item for entry, release in shown for item in plan.lacking(entry, release)}
            lacking |= {item for entry, _ in shown if entry.made.captions for item in plan.meteor_lacks}
            if lacking - {METEOR_WANTED}:
                raise MissingError(f"strict: pss lacks {', '.join(sorted(lacking - {METEOR_WANTED}))}")
        return plan

    @classmethod
    def configured(cls, config: Config, name: str) -> "Plan":
        """Return the plan without a look at what is lacking; raise ConfigError where PSS is not configured."""
        if "pss" not in config:
            raise ConfigError(
                f"config: study {name!r} is not configured; add a key `pss:` or name another --configfile"
            )
        return cls(config, pss.RELEASES)

    def _check_features(self) -> None:
        for key, names in self.study_config["features"].items():
            for name in names:
                where = f"config: pss.features.{key}"
                if not is_backbone(name, self.config):
                    taken = name in {*towers(), *MODELS} or not re.fullmatch("[a-z0-9][a-z0-9_.-]*", name)
                    if taken:
                        raise ConfigError(f"{where}: {name!r} is not allowed; name a backbone or an imported bank")
                    continue
                for footage in self.footage.values():
                    try:
                        footage.backbone_lacks(name)
                        if footage.describes_clips(name):
                            raise ConfigError(f"{name!r} describes listed clips; {footage.how_to_list}")
                    except ConfigError as error:
                        raise ConfigError(f"{where}: {error}") from None

    def _check_sizes(self) -> None:
        options = self.study_config["procnet"]
        longest = FIRST_KERNEL + KERNEL_STEP * (options["anchors"] - 1)
        if longest > options["length"]:
            raise ConfigError(
                f"config: pss.procnet.length: {options['length']} is not allowed; {options['anchors']} anchors need "
                f"{longest} rows"
            )

    @property
    def study_config(self) -> Config:
        """PSS's part of the configuration."""
        own: Config = self.config["pss"]
        return own

    @property
    def targets(self) -> tuple[str, ...]:
        """What is made where no target is named."""
        return (*(f"{table}.csv" for table in self.tables), "worked_examples.html", "report.html")

    @property
    def tables(self) -> tuple[str, ...]:
        """The configured tables, files of ``results/pss/``."""
        return tuple(self.study_config["tables"])

    def check_table(self, target: str) -> None:
        """Raise ConfigError where a table is not configured."""
        if target not in self.tables:
            raise ConfigError(f"config: pss.tables: {target!r} is not one of {', '.join(self.tables)}; add it there")

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

    @property
    def configured_backbones(self) -> Sequence[str]:
        """None of its own: they are its data sets'."""
        return ()

    @property
    def wants_videos(self) -> bool:
        """No videos are its own: they are those of its data sets."""
        return False

    @property
    def weights(self) -> list[str]:
        """None of its own."""
        return []

    @cached_property
    def footage(self) -> dict[str, Footage]:
        """The pipelines of all data sets."""
        return {name: Footage(self.config, dataset) for name, dataset in pss.DATASETS.items()}

    @cached_property
    def entries(self) -> dict[str, Entry]:
        """All entries, by id."""
        return load_entries(self.study_config)

    @cached_property
    def shown(self) -> dict[str, Entry]:
        """Those of the configured tables, by id."""
        return {line.entry: self.entries[line.entry] for target in self.tables for line in load_table(target).lines}

    def pairs(self, target: str | None = None) -> list[tuple[str, str]]:
        """Return each entry with each configured data set on which a table, or any configured one, shows it."""
        found = [
            (line.entry, release)
            for name in ([target] if target else self.tables)
            for line in load_table(name).lines
            for release in line.releases
            if release in self.datasets
        ]
        return list(dict.fromkeys(found))

    def sources(self, entry: Entry) -> list[str]:
        """Return the names of the backbones or imported banks that are the entry's features."""
        names: list[str] = self.study_config["features"][entry.features] if entry.features else []
        return names

    def lacking(self, entry: Entry, release: str) -> tuple[str, ...]:
        """Return what the entry lacks on a data set before any job of it can run.

        Videos are listed by the release; and the training videos of Tasty are a release without known sha256.
        """
        needed = [release] if any(is_backbone(name, self.config) for name in self.sources(entry)) else []
        if entry.made.trains and (train := pss.SPLIT_FILES[release]["train"][0]) != release:
            needed.append(train)
        absent = [f"release:pss/{name}" for name in needed if not pss.has_release(name)]
        for name in self.sources(entry):
            if is_backbone(name, self.config):
                absent += self.footage[release].backbone_lacks(name)
            elif not self._imported(name, release):
                absent.append(f"features:{name}/{release}")
        return tuple(dict.fromkeys(absent))

    @staticmethod
    def _imported(name: str, dataset: str) -> list[Path]:
        """Return the record of the imported bank of that name that holds the data set, if there is one.

        Raises ConfigError where there are several.
        """
        found = [
            path
            for path in sorted(Path("features", name).glob("*/spec.json"))
            if any((path.parent / dataset).glob("[0-9]*/features/zarr.json"))
        ]
        if len(found) > 1:
            banks = " and ".join(str(path.parent / dataset) for path in found)
            raise ConfigError(f"config: pss.features: {name!r} stands for {banks}: remove all but one")
        return found

    def bank_folders(self, name: str, release: str) -> list[Path]:
        """Return the folders ``features/<name>/<spec>/<data set>/<shard>`` of a source of features."""
        footage = self.footage[release]
        if is_backbone(name, self.config):
            spec = footage.spec_of(name)
            return [paths.features(release, shard, spec) for shard in footage.all_shards]
        (record,) = self._imported(name, release)
        return sorted(path.parent.parent for path in (record.parent / release).glob("[0-9]*/features/zarr.json"))

    def jobs(self, target: str) -> Iterator[Job]:
        """Yield the jobs of all entries of a table that can be computed."""
        for name, release in self.pairs(target):
            if not self.lacking(self.entries[name], release):
                yield Job(release=release, entry=self.entries[name])

    def job(self, release: str, entry: str, context: str) -> Job:
        """Return one job; raise ConfigError where there is no such job."""
        if (release, entry, context) not in self._jobs:
            if (entry, release) in self.pairs() and context == paths.context_label(None):
                needs = ", ".join(self.lacking(self.entries[entry], release))
                raise MissingError(f"entry {entry!r} on {release!r} needs {needs}")
            raise ConfigError(f"pss has no entry {entry!r} on {release!r} at {context!r}")
        return self._jobs[release, entry, context]

    @cached_property
    def _jobs(self) -> dict[tuple[str, str, str], Job]:
        every = (job for target in self.tables for job in self.jobs(target))
        return {(job.release, job.entry.id, job.context): job for job in every}

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
            "features": [self._source_record(name, job.release) for name in self.sources(entry)],
        }
        if entry.trained:
            record |= {entry.made.options: self.study_config[entry.made.options]}
        if entry.features and entry.kind != "procnet":
            record["length"] = self.study_config["length"][job.release]
        return record

    def _source_record(self, name: str, release: str) -> Any:
        if is_backbone(name, self.config):
            return self.footage[release].spec_of(name).record()
        (record,) = self._imported(name, release)
        return read_json(record)

    def options(self, entry: Entry, release: str) -> dict[str, Any]:
        """Return the named options that matter to the entry's numbers, besides those of a metric.

        Those of training are left out where they are the published ones.
        """
        if not entry.features:
            uniform = entry.settings.get("proposals", "uniform") == "uniform"
            return {"duration": self.study_config["duration"]} if uniform else {}
        options = {"features": "+".join(self.sources(entry))}
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

    def spec(self, job: Job) -> str:
        """Return the 8 hex digits of the job's spec."""
        return digest(self.record(job))

    def predict_params(self, job: Job) -> str:
        """Return what a prediction must be made again for, as text."""
        return canonical_json(self.record(job))

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

    def fit_inputs(self, job: Job) -> list[Path]:
        """Return what fitting reads."""
        return self._material(job)

    def predict_inputs(self, job: Job) -> list[Path]:
        """Return what predicting reads."""
        entry = job.entry
        fits = [paths.fit("pss", job.release, entry.id, job.context, seed) for seed in entry.seeds]
        return [*self._material(job), *(fits if entry.trained else [])]

    def score_inputs(self, job: Job) -> list[Path]:
        """Return what scoring reads besides the predictions."""
        return [self.release_manifest(job.release)]

    def _material(self, job: Job) -> list[Path]:
        releases = [job.release]
        if job.entry.made.trains:
            releases.append(pss.SPLIT_FILES[job.release]["train"][0])
        inputs = [self.release_manifest(name) for name in dict.fromkeys(releases)]
        for name in self.sources(job.entry):
            if is_backbone(name, self.config):
                inputs += self.footage[job.release].feature_manifests[name]
            else:
                inputs += self._imported(name, job.release)
        return inputs

    def release_manifest(self, release: str) -> Path:
        """Return the record of a release's files."""
        return pss.RELEASES.folder(release) / "release.json"

    def release_params(self, release: str) -> str:
        """Return what a release must be fetched again for, as text: its pins, and unpinned files in the mirror."""
        listed = pss.RELEASES.release_files(release)
        return digest([[f.path, f.wanted.sha256 or signature(f.wanted)] for f in listed])

    def score_files(self, target: str) -> list[Path]:
        """Return the scores that a table collects, and the records that videos are deleted, where they are not kept."""
        jobs = list(self.jobs(target))
        read = {job.release for job in jobs if any(is_backbone(name, self.config) for name in self.sources(job.entry))}
        dropped = [path for name in sorted(read) for path in self.footage[name].dropped]
        return [*(paths.scores("pss", job.release, job.entry.id, job.context) for job in jobs), *dropped]

    def table_params(self, target: str) -> str:
        """Return what a table must be made again for, besides scores: declarations, needs and the paper's numbers."""
        listed = [
            [asdict(self.entries[name]), release, self.lacking(self.entries[name], release)]
            for name, release in self.pairs(target)
        ]
        lines = [asdict(line) for line in load_table(target).lines]
        choices = [self.study_config[key] for key in ("releases", "subset", "features", "duration", "vocabulary")]
        return digest([listed, lines, choices, [PARTS, SEGMENT_S], sha256_file(paper_file(target))])

    def chosen(self, release: str) -> frozenset[str]:
        """Return the videos of a data set that the configured subset holds."""
        return frozenset(select(pss.DATASETS[release].videos(), self.study_config["subset"]))

    @property
    def report_tables(self) -> list[Path]:
        """The tables that the report shows: the configured ones."""
        return [Path("results/pss", f"{table}.csv") for table in self.tables]
