"""What the plans of benchmarks share: entries on releases are jobs, and tables show them.

The workflow asks and runs; nothing is computed here, and nothing heavy is imported.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any, ClassVar, Generic, Self

from stepline import paths
from stepline.config import Config
from stepline.datasets.dataset import Dataset
from stepline.datasets.release import Released
from stepline.declared import AnyEntry, Table, load_entries, load_table, tables
from stepline.errors import ConfigError, MissingError, StoreError
from stepline.footage import Footage
from stepline.io import canonical_json, read_json, sha256_file
from stepline.mirror import signature
from stepline.needs import Need
from stepline.pipeline import Pipeline, how_to_fill
from stepline.spec import digest


@dataclass(frozen=True, kw_only=True)
class Job(Generic[AnyEntry]):
    """One entry on one release; ``context`` is always ``all``."""

    release: str
    entry: AnyEntry

    @property
    def context(self) -> str:
        """What stands in paths for a window length."""
        return paths.context_label(None)


@dataclass(frozen=True)
class Benchmark(Generic[AnyEntry]):
    """What there is to do for a benchmark under one configuration.

    package: where its ``tables.yaml`` and the paper's numbers are. entry: the class of its entries. released: its
    releases. footage_sets: the data sets with its videos.
    """

    package: ClassVar[str]
    entry: ClassVar[type[Any]]
    released: ClassVar[Released]
    footage_sets: ClassVar[Mapping[str, Dataset]]
    config: Config

    @classmethod
    def of(cls, config: Config, name: str) -> Self:
        """Return the plan; raise ConfigError where the benchmark is not configured."""
        plan = cls.configured(config)
        plan.check()
        if config["strict"]:
            wanted = {item for entry, release in plan.pairs() for item in plan.wanted(plan.entries[entry], release)}
            if found := {item for item in wanted if not item.startswith("config:")}:
                raise MissingError(f"strict: {name} lacks {', '.join(sorted(found))}")
        return plan

    @classmethod
    def configured(cls, config: Config) -> Self:
        """Return the plan without a look at what is lacking; raise ConfigError where it is not configured."""
        name = cls.released.name
        if name not in config:
            raise ConfigError(
                f"config: study {name!r} is not configured; add a key `{name}:` or name another --configfile"
            )
        return cls(config)

    def check(self) -> None:
        """Raise ConfigError where the configuration is impossible."""

    @property
    def name(self) -> str:
        """The benchmark's name."""
        return self.released.name

    @property
    def dataset(self) -> Released:
        """Its releases."""
        return self.released

    @property
    def study_config(self) -> Config:
        """The benchmark's part of the configuration."""
        own: Config = self.config[self.name]
        return own

    @property
    def targets(self) -> tuple[str, ...]:
        """What is made where no target is named."""
        return (*(f"{table}.csv" for table in self.tables), "report.html")

    @property
    def tables(self) -> tuple[str, ...]:
        """The configured tables, files of ``results/<name>/``."""
        return tuple(self.study_config["tables"])

    @classmethod
    def all_tables(cls) -> list[str]:
        """Return the names of all its tables."""
        return tables(cls.package)

    def check_table(self, target: str) -> None:
        """Raise ConfigError where a table is not configured."""
        if target not in self.tables:
            listed = ", ".join(self.tables)
            raise ConfigError(f"config: {self.name}.tables: {target!r} is not one of {listed}; add it there")

    @property
    def weights(self) -> Sequence[str]:
        """None of its own."""
        return []

    @property
    def releases(self) -> Sequence[str]:
        """The releases to fetch."""
        raise NotImplementedError

    @property
    def datasets(self) -> list[str]:
        """The configured data sets with its videos."""
        return list(self.footage_sets)

    @cached_property
    def pipelines(self) -> dict[str, Pipeline]:
        """The pipelines of these, by name."""
        return {name: self.footage[name].pipeline for name in self.datasets}

    def release_manifest(self, release: str) -> Path:
        """Return the record of a release's files."""
        return self.released.folder(release) / "release.json"

    def release_params(self, release: str) -> str:
        """Return what a release must be fetched again for, as text: its pins, and unpinned files in the mirror."""
        listed = self.released.release_files(release)
        return digest([[f.path, f.wanted.sha256 or signature(f.wanted)] for f in listed])

    # Entries and tables

    @cached_property
    def entries(self) -> dict[str, AnyEntry]:
        """All entries, by id."""
        return load_entries(self.package, self.entry, self.study_config)

    def table(self, target: str) -> Table:
        """Return what is declared of a table."""
        return load_table(self.package, target)

    @classmethod
    def paper_file(cls, target: str) -> Path:
        """Return the paper's numbers of a table."""
        return Path(str(files(cls.package).joinpath("paper", f"{target}.csv")))

    @cached_property
    def shown(self) -> dict[str, AnyEntry]:
        """The entries of the configured tables, by id."""
        return {line.entry: self.entries[line.entry] for target in self.tables for line in self.table(target).lines}

    def pairs(self, target: str | None = None) -> list[tuple[str, str]]:
        """Return each entry with each configured release on which a table, or any configured one, shows it."""
        found = [
            (line.entry, release)
            for name in ([target] if target else self.tables)
            for line in self.table(name).lines
            for release in line.releases
            if release in self.study_config["releases"]
        ]
        return list(dict.fromkeys(found))

    def features(self, entry: AnyEntry) -> Sequence[str]:
        """Return the names of the backbones or imported banks that are the entry's features."""
        raise NotImplementedError

    @cached_property
    def footage(self) -> dict[str, Footage]:
        """The data sets with its videos, by name."""
        named = tuple(dict.fromkeys(name for entry in self.shown.values() for name in self.features(entry)))
        key = f"{self.name}.features"
        return {
            name: Footage(self.config, each, key, named, self._decoding) for name, each in self.footage_sets.items()
        }

    def _decoding(self) -> list[Path]:
        """Return the predictions of the jobs that read the videos themselves."""
        jobs = [job for job in self._jobs.values() if job.entry.made.decoded]
        return [paths.predictions(self.name, job.release, job.entry.id, job.context) for job in jobs]

    def lacking(self, entry: AnyEntry, release: str) -> tuple[str, ...]:
        """Return what the entry lacks on a release before any job of it can run."""
        raise NotImplementedError

    def wanted(self, entry: AnyEntry, release: str) -> Iterable[str]:
        """Return what must not be lacking where the configuration is strict, but for choices of that itself."""
        return self.lacking(entry, release)

    # Jobs

    def jobs(self, target: str) -> Iterator[Job[AnyEntry]]:
        """Yield the jobs of all entries of a table that can be computed."""
        for name, release in self.pairs(target):
            if not self.lacking(self.entries[name], release):
                yield Job(release=release, entry=self.entries[name])

    def job(self, release: str, entry: str, context: str) -> Job[AnyEntry]:
        """Return one job; raise ConfigError where there is no such job."""
        if (release, entry, context) not in self._jobs:
            if (entry, release) in self.pairs() and context == paths.context_label(None):
                if needs := self.lacking(self.entries[entry], release):
                    raise MissingError(f"entry {entry!r} on {release!r} needs {', '.join(needs)}")
                raise ConfigError(f"entry {entry!r} has no job: nothing of it is predicted")
            raise ConfigError(f"{self.name} has no entry {entry!r} on {release!r} at {context!r}")
        return self._jobs[release, entry, context]

    @cached_property
    def _jobs(self) -> dict[tuple[str, str, str], Job[AnyEntry]]:
        every = (job for target in self.tables for job in self.jobs(target))
        return {(job.release, job.entry.id, job.context): job for job in every}

    def record(self, job: Job[AnyEntry]) -> dict[str, Any]:
        """Return all that decides the predictions of a job: its spec."""
        raise NotImplementedError

    def spec(self, job: Job[AnyEntry]) -> str:
        """Return the 8 hex digits of the job's spec."""
        return digest(self.record(job))

    def predict_params(self, job: Job[AnyEntry]) -> str:
        """Return what a prediction must be made again for, as text."""
        return canonical_json(self.record(job))

    def material(self, job: Job[AnyEntry]) -> list[Path]:
        """Return what fitting and predicting read."""
        raise NotImplementedError

    def fit_inputs(self, job: Job[AnyEntry]) -> list[Path]:
        """Return what fitting reads."""
        return self.material(job)

    def predict_inputs(self, job: Job[AnyEntry]) -> list[Path]:
        """Return what predicting reads."""
        entry = job.entry
        fits = [paths.fit(self.name, job.release, entry.id, job.context, seed) for seed in entry.seeds]
        return [*self.material(job), *(fits if entry.trained else [])]

    def score_inputs(self, job: Job[AnyEntry]) -> list[Path]:
        """Return what scoring reads besides the predictions."""
        return [self.release_manifest(job.release)]

    def score_params(self) -> str:
        """Return what scores must be made again for, besides new predictions, as text."""
        raise NotImplementedError

    def table_inputs(self, target: str) -> list[Path]:
        """Return what a table is made from."""
        raise NotImplementedError

    def scores(self, target: str) -> list[Path]:
        """Return the scores that a table collects."""
        return [paths.scores(self.name, job.release, job.entry.id, job.context) for job in self.jobs(target)]

    def table_params(self, target: str) -> str:
        """Return what a table must be made again for, besides scores: declarations, needs and the paper's numbers."""
        listed = [
            [asdict(self.entries[name]), release, self.lacking(self.entries[name], release)]
            for name, release in self.pairs(target)
        ]
        return digest([listed, asdict(self.table(target)), sha256_file(self.paper_file(target)), *self.choices])

    @property
    def choices(self) -> Sequence[Any]:
        """What a table says besides its numbers: a change of it writes tables again."""
        raise NotImplementedError

    @property
    def subset(self) -> str:
        """What part of the videos is evaluated, in words; "" where all are."""
        chosen = self.study_config["subset"]
        return f"{chosen['fraction']:g} of each split, seed {chosen['seed']}" if chosen else ""

    def read_score(self, job: Job[AnyEntry]) -> dict[str, Any]:
        """Return a job's score; raise StoreError where it is damaged.

        One that is absent waits for the next run: what its entry reads came after this one had listed its jobs.
        """
        path = paths.scores(self.name, job.release, job.entry.id, job.context)
        if not path.exists():
            return {"needs": [f"score:{job.entry.id}"], "metrics": {}}
        score = read_json(path)
        whole = isinstance(score, dict) and {"needs", "metrics"} <= score.keys()
        if not whole or not all(isinstance(each, dict) for each in score["metrics"].values()):
            raise StoreError(f"{path} is no score: remove it and run the same again")
        return score  # type: ignore[no-any-return]

    def filled_by(self, file: str, lacking: Iterable[str]) -> str:
        """Return the commands that bring what is lacking and make a file of the results again; "" of nothing."""
        wanted = list(lacking)
        if not wanted:
            return ""
        steps = dict.fromkeys(filter(None, map(self.how_to_fill, wanted)))
        run = f"snakemake --cores 8 results/{self.name}/{file}"
        for key, nested in (item.split("=") for item in wanted if item.startswith("config:")):
            for name in reversed(key.split(".")[1:]):
                nested = f"{{{name}: {nested}}}"
            run += f" --config '{self.name}={nested}'"
        return " && ".join([*steps, run])

    def how_to_fill(self, item: str) -> str:
        """Return a command that brings what ``needs`` names; "" for what no command brings."""
        kind, _, what = item.partition(":")
        return f"stepline fetch {what}" if kind == "release" else how_to_fill(Need.parse(item))

    @property
    def report_tables(self) -> list[Path]:
        """The tables that the report shows: the configured ones."""
        return [Path("results", self.name, f"{table}.csv") for table in self.tables]

    def report_inputs(self) -> list[Path]:
        """Return what the report shows besides the tables."""
        return []
