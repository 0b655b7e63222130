"""A benchmark under one configuration: its options, releases, entries and tables."""

from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Self

from stepline.benchmark.declaration import Declaration, Reader
from stepline.benchmark.declared import Declared
from stepline.benchmark.entries import AnyEntry, Job, Kind, Line, Table
from stepline.benchmark.source import source_digest
from stepline.benchmark.words import Option
from stepline.config import Config, defaults
from stepline.config.declarations import declaration, files_of
from stepline.datasets.dataset import Dataset
from stepline.datasets.subset import describe, select
from stepline.errors import ConfigError
from stepline.io import canonical_json
from stepline.mirror import signature
from stepline.spec import digest


class Configured(Declared[AnyEntry]):
    """What the configuration says of a benchmark; `Benchmark` has the jobs that follow."""

    # Options

    @classmethod
    def configured(cls, config: Config, name: str) -> Self:
        """Return the plan without a look at what is missing; raise ConfigError where it is not configured."""
        if name not in config:
            raise ConfigError(
                f"config: study {name!r} is not configured; add a key `{name}:` or name another --configfile"
            )
        return cls(config, name)

    @cached_property
    def defaults(self) -> Config:
        """The same with the published values alone."""
        return defaults(self.name, self.config)

    @property
    def subset(self) -> str:
        """What part of the videos is evaluated, in words; "" where all are."""
        return describe(self.options["subset"])

    def chosen(self, dataset: Dataset) -> frozenset[str]:
        """Return the videos of a data set that the configured subset holds."""
        return frozenset(select(dataset.videos(), self.options["subset"]))

    def changed(self, *blocks: str) -> dict[str, Option]:
        """Return the options in blocks of the configuration that are not the published ones; seeds aside."""
        pairs = {
            key: Option(mine, self.defaults[block][key])
            for block in blocks
            for key, mine in self.options[block].items()
        }
        return {key: pair for key, pair in sorted(pairs.items()) if pair.differs and key != "seeds"}

    def shown_options(self, entry: AnyEntry, release: str) -> Mapping[str, Option]:
        """Return the named options that matter to the entry's numbers, besides those of a metric.

        They are the names of its features, if it has some, and what of its training is not as published; a benchmark
        adds its own.
        """
        shown = dict[str, Option]()
        if entry.features:
            published = self.defaults["features"][entry.features]
            shown["features"] = Option("+".join(self.features(entry)), "+".join(published))
        return shown | (self.changed(entry.kind.options) if entry.trained else {})

    def options_shown(self, line: Line, release: str) -> Mapping[str, Option]:
        """Return the named options of a line; none where nothing is predicted."""
        entry = self.entries[line.entry]
        return self.shown_options(entry, release) if entry.kind.method else {}

    # Releases

    @property
    def releases(self) -> list[str]:
        """The releases to fetch: those that jobs of the configured tables read."""
        jobs = (Job(release=release, entry=self.entries[entry]) for entry, release in self.pairs())
        return list(dict.fromkeys(each for job in jobs for each in (job.release, *self.reads(job))))

    def release_manifest(self, release: str) -> Path:
        """Return the record of a release's files."""
        return self.released.folder(release) / "release.json"

    def release_params(self, release: str) -> str:
        """Return what decides a release's files, as text: its pins, and unpinned files in the mirror."""
        listed = self.released.release_files(release)
        return digest([[f.path, f.wanted.sha256 or signature(f.wanted)] for f in listed])

    # Entries and tables

    @cached_property
    def declared(self) -> Declaration:
        """All its entries and tables."""
        return Reader(
            folder=self.folder,
            entry=self.entry,
            kinds=self.kinds,
            metrics=self.metrics,
            sees=[each.word for each in self.sees],
            splits=self.splits,
            options=self.options,
            key=self.name,
        ).read()

    @cached_property
    def entries(self) -> Mapping[str, AnyEntry]:
        """All entries, by id."""
        return self.declared.entries  # type: ignore[return-value]

    @classmethod
    def all_tables(cls) -> list[str]:
        """Return the names of all its files of tables."""
        return files_of(declaration(cls.folder))

    @property
    def tables(self) -> tuple[str, ...]:
        """The configured tables, files of ``results/<name>/``."""
        return tuple(self.options["tables"])

    def check_table(self, file: str) -> None:
        """Raise ConfigError where a file of tables is not configured."""
        if file not in self.tables:
            raise ConfigError(
                f"config: {self.name}.tables: {file!r} is not one of {', '.join(self.tables)}; add it there"
            )

    @property
    def targets(self) -> tuple[str, ...]:
        """What is made where no target is named."""
        return (*(f"{table}.csv" for table in self.tables), "report.html", *self.also_made)

    @property
    def results(self) -> list[Path]:
        """All that is made of it."""
        made = [*self.tables, *(["pairs"] if self.declared.pairs else [])]
        names = {*self.targets, *(f"{name}.{form}" for name in made for form in ("csv", "md"))}
        return [Path("results", self.name, name) for name in sorted(names)]

    def paper_file(self, file: str) -> Path | None:
        """Return the paper's numbers of a table; None where it has none."""
        path = self.folder / "paper" / f"{file}.csv"
        return path if path.exists() else None

    def lines(self, file: str | None = None) -> Iterator[tuple[Table, Line, str]]:
        """Yield the lines of a file of tables, or of all configured ones, with each release on which they stand."""
        for table in self.declared.tables:
            if table.file in ([file] if file else self.tables):
                for line in table.lines:
                    for release in self.options["releases"]:
                        if self.stands(table, line, release):
                            yield table, line, release

    def pairs(self, file: str | None = None) -> list[tuple[str, str]]:
        """Return each entry with each configured release on which a table, or any configured one, shows it."""
        return list(dict.fromkeys((line.entry, release) for _, line, release in self.lines(file)))

    def check_lines(self) -> None:
        """Raise ConfigError where two entries give the same line of a table."""
        named: dict[str, str] = {}
        for table, line, release in self.lines():
            shown = {key: option.value for key, option in self.options_shown(line, release).items()}
            for context_s, _ in self.contexts(table, line):
                said = [table.name, release, line.method, line.modality, line.setting, context_s, shown]
                other = named.setdefault(canonical_json(said), line.entry)
                if other != line.entry:
                    raise ConfigError(
                        f"config: {self.name}.entries: {other} and {line.entry} give the same line of table "
                        f"{table.name}; give one of them another method"
                    )

    @cached_property
    def shown(self) -> dict[str, AnyEntry]:
        """The entries of the configured tables, by id."""
        return {name: self.entries[name] for name, _ in self.pairs()}

    @property
    def measured(self) -> tuple[str, ...]:
        """The metrics of the configured tables."""
        return tuple(dict.fromkeys(metric for table, _, _ in self.lines() for metric in table.metrics))

    @classmethod
    def package(cls) -> str:
        """Return the Python package of the benchmark."""
        return cls.__module__.rpartition(".")[0] or cls.__module__

    @classmethod
    def source(cls, kind: Kind) -> str:
        """Return the digest of a kind's method, code alone; see `stepline.benchmark.source`."""
        assert kind.method is not None
        return source_digest(kind.method, cls.package(), cls.folder, apart=cls.__module__)

    @classmethod
    def scoring_source(cls) -> str:
        """Return the digest of what `values` and `select` import, code alone."""
        return digest([source_digest(hook, cls.package(), cls.folder, apart="") for hook in (cls.values, cls.select)])
