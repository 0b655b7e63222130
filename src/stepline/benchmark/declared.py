"""A benchmark under one configuration: its declaration, its hooks, and its part of the configuration."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self

from stepline.backbones.registry import FRAME_BACKBONES
from stepline.benchmark.checks import check_class, check_videos
from stepline.benchmark.declaration import SHOWN, Declaration, read
from stepline.benchmark.entries import AnyEntry, Entry, Job, Kind, Line, Table
from stepline.benchmark.method import Method, Prediction
from stepline.benchmark.outside import one_line
from stepline.benchmark.source import module_of, scoring_digest, source_digest
from stepline.benchmark.timed import InTime
from stepline.benchmark.values import Values
from stepline.benchmark.words import SPEECH, Metric, Option, Sees
from stepline.config import Config, defaults
from stepline.config.declarations import declaration, files_of
from stepline.datasets.dataset import Dataset
from stepline.datasets.release import Released, how_to_bring, listed_files
from stepline.datasets.schema import SPLITS, Video
from stepline.datasets.subset import describe, select
from stepline.errors import ConfigError
from stepline.io import canonical_json
from stepline.mirror import signature
from stepline.needs import Need
from stepline.pipeline import how_to_fill
from stepline.spec import digest

if TYPE_CHECKING:
    from argparse import ArgumentParser, _SubParsersAction

    from matplotlib.figure import Figure

    from stepline.report import Picture
    from stepline.tables import Row

    SubParsers = _SubParsersAction[ArgumentParser]

FILES = "files.csv"
"""The file of a benchmark's folder that lists the files of its releases."""
UNCHANGING = {*SHOWN, "id", "kind", "table", "inputs"}
"""The fields of an entry that do not affect its numbers: names and descriptions of its line."""
VIDEO_OPTIONS = dict.fromkeys(("reader", "orientation", "track", "damaged"), "media") | {"max_height": "download"}
NETWORK_OPTIONS = {"compute": "features", "dtype": "features", "batches": "features"}
"""Option -> its block in the configuration, for options that affect the features of networks."""


@dataclass(frozen=True)
class Declared(Generic[AnyEntry]):
    """A benchmark under one configuration, as declared by its subclass; the other attributes have defaults.

    name: the name of the study, which is a key of the configuration and a folder in ``results/``.
    """

    config: Config
    name: str

    about: ClassVar[str] = "results"
    """The text after the title at the top of the page."""
    folder: ClassVar[Path]
    """The folder with ``tables.yaml``, ``options.yaml`` and ``paper/<file>.csv``."""
    studies: ClassVar[tuple[str, ...]]
    """The names of the studies it runs on."""
    kinds: ClassVar[Mapping[str, Kind]]
    metrics: ClassVar[Mapping[str, Metric]]
    """Metrics by key, in the order of columns."""
    sees: ClassVar[tuple[Sees, ...]]
    splits: ClassVar[tuple[str, ...]] = SPLITS
    """The class of its releases."""
    prediction: ClassVar[type[Prediction]]
    entry: ClassVar[type[Any]] = Entry
    """The class of its entries."""
    revision: ClassVar[int] = 1
    """The revision of the scoring code: raise it with a change that alters numbers."""
    reader_revision: ClassVar[int] = 1
    """The revision of the code that reads a release: raise it with a change that alters units. 1 is in no spec."""
    also_made: ClassVar[tuple[str, ...]] = ()
    """Default targets in addition to the tables and the page."""
    published: ClassVar[Mapping[str, Any]] = {}
    """The paper's values of metric options, as far as it states them."""
    paper_release: ClassVar[str] = ""
    """The release on which the paper's numbers were computed; "" means the release of the line."""
    drawn: ClassVar[tuple[str, ...]] = ()
    """Candidates for the metric of a table's figure: the first one in the table, otherwise the table's first metric."""
    how_to_read: ClassVar[str] = (
        "Filled markers are ours, with the 95 % interval by bootstrap over the videos; hollow ones are the paper's. A "
        "star marks a method that sees more than any system would have."
    )
    """How to read the figures of tables, and the examples."""
    how_to_read_examples: ClassVar[str] = ""
    examples_title: ClassVar[str] = "Timelines"
    settings: ClassVar[tuple[str, ...]] = ()
    """The settings whose lines come first in a laid-out table, in this order."""
    rerun: ClassVar[str] = ""
    """A description of the numbers in the column ``rerun`` of ``paper/*.csv``."""

    # Hooks of a benchmark

    @property
    def title(self) -> str:
        """The title of tables and pages."""
        title: str = declaration(self.folder)["title"]
        return title

    @property
    def declares(self) -> Mapping[str, Any]:
        """The content of ``tables.yaml``; a benchmark may add entries and lines that depend on the configuration."""
        return declaration(self.folder)

    @property
    def cited(self) -> str:
        """The title with the BibTeX key of its paper, if it has one, as Pandoc cites it."""
        reference = declaration(self.folder).get("reference")
        return f"{self.title} [@{reference}]" if reference else self.title

    @classmethod
    def add_verbs(cls, verbs: "SubParsers") -> None:
        """Add the benchmark's own verbs to the command line."""

    @cached_property
    def released(self) -> Released:
        """Its releases: the files that ``files.csv`` of its folder lists."""
        declared = declaration(self.folder)
        files = partial(listed_files, self.folder / FILES, self.name, declared.get("source", ""))
        return Released(name=self.name, title=self.title, known=tuple(declared["releases"] or ()), release_files=files)

    @cached_property
    def datasets(self) -> Mapping[str, Dataset]:
        """The data sets with its videos, by name: one, of `videos`, if ``datasets`` of ``tables.yaml`` names it."""
        return {
            name: Dataset(
                name=name,
                title=self.title,
                videos=partial(self._listed, name),
                listed_by=f"{self.name}/{self.released.known[0]}",
            )
            for name in declaration(self.folder).get("datasets", ())[:1]
        }

    def videos(self) -> Iterable[Video]:
        """Return the videos of its data set. It is called once the files of its first release are held.

        A video without a ``path`` is looked up in the mirror at ``<data set>/videos/<id>.mp4``.
        """
        raise NotImplementedError("return the videos of the data set that `datasets` of tables.yaml names")

    def _listed(self, dataset: str) -> tuple[Video, ...]:
        if dataset not in self._listings:
            first = self.released.known[0]
            held = all(self.released.held(first, file.path) for file in self.released.release_files(first))
            with one_line(self, "videos"):
                videos = tuple(self.videos()) if held else ()
            check_videos(f"{type(self).__name__}.videos", videos)
            self._listings[dataset] = tuple(
                replace(video, path=video.path or f"{dataset}/videos/{video.id}.mp4") for video in videos
            )
        return self._listings[dataset]

    @cached_property
    def _listings(self) -> dict[str, tuple[Video, ...]]:
        return {}

    @property
    def options(self) -> Config:
        """The study's part of the configuration."""
        own: Config = self.config[self.name]
        return own

    def inputs(self, job: Job) -> Any:
        """Return the inputs of a job's methods and scores, a `stepline.runs.inputs.Inputs`."""
        raise NotImplementedError

    def values(self, inputs: Any, made: Sequence[Any]) -> Mapping[str, Values]:
        """Return the values of each metric for the predictions of one seed."""
        raise NotImplementedError

    def select(self, inputs: Any, made: Sequence[Any]) -> tuple[Sequence[Any], str]:
        """Return the predictions after selection on val, such as of a threshold, and a description of the selection."""
        return made, ""

    def check(self) -> None:
        """Raise ConfigError if the configuration is impossible."""

    def features(self, entry: AnyEntry) -> Sequence[str]:
        """Return the names of the backbones or imported banks with the entry's features."""
        return self.options["features"][entry.features] if entry.features else []

    def parts(self, entry: AnyEntry) -> Sequence[AnyEntry]:
        """Return the entry and the entries it combines."""
        return (entry,)

    def backbones(self, entry: AnyEntry, release: str) -> Sequence[str]:
        """Return the names of the backbones whose features of videos the entry reads."""
        return ()

    def blind(self, entry: AnyEntry, metric: str) -> str:
        """Return the id of the blind baseline of an entry, such as Random, or "".

        A number within the tolerance is `inconclusive` if that of the blind baseline is within it too. The baseline has
        a line in each table and at each window length that shows the entry.
        """
        return ""

    def dataset(self, release: str) -> str:
        """Return which of ``datasets`` has the videos of a release; the study's name if it has no data sets."""
        return release if release in self.datasets else next(iter(self.datasets), self.name)

    def hears(self, entry: AnyEntry) -> bool:
        """Return whether the entry's jobs read the recogniser's transcripts: those that see ``speech`` do."""
        return SPEECH.word in entry.sees

    def missing_besides(self, entry: AnyEntry, release: str) -> Sequence[Need]:
        """Return further needs of the entry's jobs that are not met, in addition to releases and features."""
        return ()

    def missing_of(self, metric: str) -> Sequence[Need]:
        """Return the unmet needs of a metric."""
        return ()

    def unscored(self, entry: AnyEntry, release: str, metric: str) -> Sequence[Need]:
        """Return the needs that explain why a computed score has no value for a metric."""
        return ()

    def decides(self, job: Job) -> Mapping[str, Any]:
        """Return further fields of a job's spec that determine its predictions."""
        return {}

    def reads(self, job: Job) -> Sequence[str]:
        """Return the releases that the job's fits and predictions read."""
        return [job.release]

    def reads_besides(self, job: Job, stage: str) -> Sequence[Path]:
        """Return further inputs of a stage (``fit``, ``predict`` or ``score``): records of jobs."""
        return ()

    def measures(self, job: Job, metric: str) -> bool:
        """Return whether a metric of the kind applies to a job."""
        return True

    def options_of(self, entry: AnyEntry, metric: str) -> Sequence[str]:
        """Return the keys of ``metrics`` that affect a metric of an entry."""
        return self.metrics[metric].options

    def contexts(self, table: Table, line: Line) -> Sequence[tuple[float | None, float | None]]:
        """Return the window lengths of a line, each with the window length of its job."""
        assert not isinstance(line.contexts, str)
        return [(context_s, context_s) for context_s in line.contexts]

    def stands(self, table: Table, line: Line, release: str) -> bool:
        """Return whether the table of a release has the line."""
        return not line.releases or release in line.releases

    def named(self, line: Line) -> Sequence[Line]:
        """Return the line under each of its names."""
        return (line,)

    def is_reference(self, line: Line) -> bool:
        """Return whether a line is copied from the paper without computation."""
        return False

    def counted(self, entry: AnyEntry, release: str) -> Mapping[str, float]:
        """Return the value of each metric of an entry without predictions, such as counts of the release.

        Raises UnavailableError if the release is absent.
        """
        raise NotImplementedError

    def note(self, table: Table, line: Line, release: str, metric: str) -> str:
        """Return a note on a number, in addition to the note of its line."""
        return ""

    def split(self, entry: AnyEntry, metric: str) -> str:
        """Return the name of the split that a metric is computed on."""
        return "+".join(entry.splits)

    def seen(self, entry: AnyEntry) -> tuple[Sees, ...]:
        """Return the inputs that an entry may see."""
        known = {each.word: each for each in self.sees}
        return tuple(known[word] for word in entry.sees)

    def figures(self, rows: "Sequence[Row]") -> "Mapping[str, Figure]":
        """Return the figures of a table on one release, by metric; empty for the default figure."""
        return {}

    def examples(self) -> "Sequence[Picture]":
        """Return figures of single videos for the page."""
        return ()

    def in_time(self, inputs: Any, video: str, made: Any | None) -> InTime | None:
        """Return the truth of a video over time and what a prediction says of it, with its errors.

        made: one of ``prediction``, after ``select``; None for the truth alone. None where there is nothing to show:
        neither truth of the video, nor times in the prediction.
        """
        return None

    def write_examples(self) -> None:
        """Write a page of examples; raise ConfigError if the benchmark has none."""
        raise ConfigError(f"{self.name} has no page of examples")

    def page(self, rows: "Sequence[Row]") -> Mapping[str, Any]:
        """Return further content of the page for `stepline.report.study.write_study`."""
        return {}

    def how_to_fill(self, need: Need) -> str:
        """Return the command that meets a need; "" if no command does."""
        if need.kind == "features":
            name, _, dataset = need.what.partition("/")
            return f"stepline bank import FOLDER --name {name} --dataset {dataset} --hop-s 1"
        if need.kind == "release":
            return how_to_bring(*need.what.split("/"))
        if need.kind == "videos" and need.what in self.datasets:
            listed = [video for video in self.datasets[need.what].videos() if video.path]
            if listed and not any(video.url for video in listed):
                return f'install -D -t "$STEPLINE_MIRROR/{Path(listed[0].path).parent}" VIDEOS/*.mp4'
        if need.kind == "package" and not type(self).__module__.startswith("stepline."):
            return f"pip install {need.what}"
        return how_to_fill(need)

    # The study's configuration

    @classmethod
    def configured(cls, config: Config, name: str) -> Self:
        """Return the plan without checking for needs; raise ConfigError if it is not configured."""
        if name not in config:
            raise ConfigError(
                f"config: study {name!r} is not configured; add a key `{name}:` or name another --configfile"
            )
        return cls(config, name)

    @cached_property
    def defaults(self) -> Config:
        """The options with all published values."""
        return defaults(self.name, self.config)

    @cached_property
    def _decoding_defaults(self) -> dict[str, Config]:
        return {block: defaults(block, self.config) for block in {*VIDEO_OPTIONS.values(), *NETWORK_OPTIONS.values()}}

    @property
    def subset(self) -> str:
        """A description of the evaluated subset of videos; "" for all videos."""
        return describe(self.options["subset"])

    def chosen(self, dataset: Dataset) -> frozenset[str]:
        """Return the videos of a data set that are in the configured subset."""
        return frozenset(select(dataset.videos(), self.options["subset"]))

    def changed(self, *blocks: str) -> dict[str, Option]:
        """Return the options in these blocks of the study's configuration that differ from the published ones."""
        pairs = {
            key: Option(mine, self.defaults[block][key])
            for block in blocks
            for key, mine in self.options[block].items()
        }
        return {key: pair for key, pair in sorted(pairs.items()) if pair.differs}

    def shown_options(self, entry: AnyEntry, release: str) -> Mapping[str, Option]:
        """Return the named options that are always shown with the entry's numbers.

        These are the names of its features, if it has any; a benchmark may add its own. `named_options` adds options of
        training, of the entry and of decoding.
        """
        if not entry.features:
            return {}
        published = self.defaults["features"][entry.features]
        return {"features": Option("+".join(self.features(entry)), "+".join(published))}

    def named_options(self, entry: AnyEntry, release: str) -> Mapping[str, Option]:
        """Return the options of an entry's numbers except metric options: the shown ones and all changed ones.

        Options of training (including seeds), fields and settings of the entry, and options of decoding can be changed.
        """
        found = dict(self.shown_options(entry, release)) if entry.kind.method else {}
        for part in self.parts(entry):
            found |= self.changed(part.kind.options) if part.trained else {}
            found |= self._changed_fields(part)
        names = self.backbones(entry, release)
        read = VIDEO_OPTIONS if names or entry.kind.decoded else {}
        read = read | (NETWORK_OPTIONS if {*names} - FRAME_BACKBONES.keys() else {})
        for key, block in read.items():
            option = Option(self.config[block][key], self._decoding_defaults[block][key], said=False)
            found |= {f"{block}.{key}": option} if option.differs else {}
        return found

    def _changed_fields(self, entry: AnyEntry) -> dict[str, Option]:
        """Return the fields and settings of a declared entry that the configuration changes."""
        if entry.id not in self.declared.before:
            return {}
        mine, before = self.declared.entries[entry.id], self.declared.before[entry.id]
        known = {each.name for each in fields(mine)} - UNCHANGING - {"settings", "kind_name"}
        if mine.kind_name != before.kind_name:
            known -= {"seeds"}
        pairs = {name: Option(getattr(mine, name), getattr(before, name)) for name in known}
        pairs["kind"] = Option(mine.kind_name, before.kind_name)
        settings = mine.settings.keys() | before.settings.keys()
        pairs |= {key: Option(mine.settings.get(key), before.settings.get(key)) for key in settings}
        return {key: pair for key, pair in pairs.items() if pair.differs}

    def line_options(self, line: Line, release: str) -> Mapping[str, Option]:
        """Return the named options of a line."""
        return self.named_options(self.entries[line.entry], release)

    @property
    def releases(self) -> list[str]:
        """The releases that jobs of the configured tables read."""
        jobs = (Job(release=release, entry=self.entries[entry]) for entry, release in self.pairs())
        return list(dict.fromkeys(each for job in jobs for each in (job.release, *self.reads(job))))

    def release_manifest(self, release: str) -> Path:
        """Return the record of a release's files."""
        return self.released.folder(release) / "release.json"

    def release_params(self, release: str) -> str:
        """Return the cache key of a release's files: its pins and the unpinned files in the mirror."""
        listed = self.released.release_files(release)
        return digest([[f.path, f.wanted.sha256 or signature(f.wanted)] for f in listed])

    @cached_property
    def declared(self) -> Declaration:
        """All entries and tables; raises ConfigError if the class or they are invalid."""
        check_class(self)
        return read(self)

    @cached_property
    def entries(self) -> Mapping[str, AnyEntry]:
        """All entries, by id."""
        return self.declared.entries  # type: ignore[return-value]

    @classmethod
    def all_tables(cls) -> list[str]:
        """Return the names of all table files."""
        return files_of(declaration(cls.folder))

    @property
    def tables(self) -> tuple[str, ...]:
        """The configured table files in ``results/<name>/``."""
        return tuple(self.options["tables"])

    def table_title(self, file: str) -> str:
        """Return the title of a table file, from the titles of its tables."""
        return "; ".join(table.title for table in self.declared.tables if table.file == file)

    def check_table(self, file: str) -> None:
        """Raise ConfigError if a table file is not configured."""
        if file not in self.tables:
            raise ConfigError(
                f"config: {self.name}.tables: {file!r} is not one of {', '.join(self.tables)}; add it there"
            )

    @property
    def targets(self) -> tuple[str, ...]:
        """The default targets."""
        return (*(f"{table}.csv" for table in self.tables), "report.html", *self.also_made)

    @property
    def results(self) -> list[Path]:
        """All result files."""
        made = [*self.tables, *(["pairs"] if self.declared.pairs else [])]
        names = {*self.targets, *(f"{name}.{form}" for name in made for form in ("csv", "md"))}
        return [Path("results", self.name, name) for name in sorted(names)]

    def paper_file(self, file: str) -> Path | None:
        """Return the file with the paper's numbers for a table, or None."""
        path = self.folder / "paper" / f"{file}.csv"
        return path if path.exists() else None

    def lines(self, file: str | None = None) -> Iterator[tuple[Table, Line, str]]:
        """Yield the lines of a table file, or of all configured ones, with each of their releases."""
        for table in self.declared.tables:
            if table.file in ([file] if file else self.tables):
                for line in table.lines:
                    for release in self.options["releases"]:
                        if self.stands(table, line, release):
                            yield table, line, release

    def pairs(self, file: str | None = None) -> list[tuple[str, str]]:
        """Return each entry with each configured release for which the table file, or any configured one, shows it."""
        return list(dict.fromkeys((line.entry, release) for _, line, release in self.lines(file)))

    def check_lines(self) -> None:
        """Raise ConfigError if two entries have the same line in a table."""
        named: dict[str, str] = {}
        for table, line, release in self.lines():
            named_options = self.named_options(self.entries[line.entry], release)
            shown = {key: option.value for key, option in named_options.items()}
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
    def method(cls, kind: Kind) -> type[Method[Any, Any]]:
        """Import and return the class of a kind's method."""
        assert kind.method is not None
        name = kind.method.partition(":")[2]
        found: type[Method[Any, Any]] = getattr(import_module(module_of(kind.method, cls.__module__)), name)
        return found

    @classmethod
    def source(cls, kind: Kind) -> str:
        """Return the digest of a kind's method, code alone; see `stepline.benchmark.source`."""
        assert kind.method is not None
        return source_digest(kind.method, [each.__module__ for each in cls.__mro__])

    @classmethod
    def scoring_source(cls) -> str:
        """Return the digest of `values` and `select` and what they import, code alone."""
        return scoring_digest((cls.values, cls.select), [each.__module__ for each in cls.__mro__])
