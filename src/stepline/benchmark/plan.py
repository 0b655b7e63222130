"""A benchmark's plan: its jobs, their inputs and their cache keys.

The workflow queries the plan and runs the jobs. Nothing is computed here, and no heavy package is imported.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from difflib import get_close_matches
from functools import cache, cached_property
from itertools import chain
from pathlib import Path
from typing import Any, Self

from stepline import paths
from stepline.benchmark.declared import Declared
from stepline.benchmark.entries import AnyEntry, Job, Line, Table
from stepline.config import Config
from stepline.errors import ConfigError, MissingError, StoreError
from stepline.footage import Footage
from stepline.invocation import command, current
from stepline.io import canonical_json, read_json, sha256_file
from stepline.needs import Need, in_order
from stepline.pipeline import Pipeline
from stepline.spec import digest

SCORES = "scores"
"""The name of scores in `stepline accept`."""
FORMAT = 1
"""The format of prediction files: raise it when columns other than a benchmark's own change."""


class Benchmark(Declared[AnyEntry]):
    """A benchmark under one configuration, with its jobs."""

    @classmethod
    def of(cls, config: Config, name: str) -> Self:
        """Return the plan of a study; raise ConfigError if it is not configured or impossible."""
        plan = cls.configured(config, name)
        plan.check_features()
        plan.check()
        plan.check_lines()
        if config["strict"]:
            lists = [plan.missing(plan.entries[entry], release) for entry, release in plan.pairs()]
            lists += [tuple(plan.missing_of(metric)) for metric in plan.measured]
            chosen = [needs for needs in lists if not any(need.kind in ("config", "predictions") for need in needs)]
            if found := sorted(
                {str(need) for needs in chosen for need in needs if need.kind not in ("samples", "labels")}
            ):
                raise MissingError(f"strict: {name} needs {', '.join(found)}")
        return plan

    # Videos and features

    @cached_property
    def footage(self) -> Mapping[str, Footage]:
        """The videos of its data sets, by data set."""
        names = tuple(dict.fromkeys(name for entry in self.shown.values() for name in self.features(entry)))
        key = f"{self.name}.features"
        heard = any(map(self.hears, self.shown.values()))
        return {
            name: Footage.of(self.config, each, key, names, self.decoding, sound=heard)
            for name, each in self.datasets.items()
        }

    @property
    def pipelines(self) -> Mapping[str, Pipeline]:
        """The pipelines of the videos of the configured releases, by data set."""
        used = dict.fromkeys(self.dataset(release) for release in self.options["releases"])
        return {name: self.footage[name].pipeline for name in used if name in self.footage}

    @property
    def weights(self) -> Sequence[str]:
        """The names of the weights to fetch, in addition to those of backbones."""
        return ()

    def check_features(self) -> None:
        """Raise ConfigError if a name under ``features`` can be neither a backbone nor an imported bank."""
        for entry in self.shown.values():
            if not self.footage and (self.features(entry) or self.hears(entry)):
                raise ConfigError(
                    f"{type(self).__name__}: {entry.id} reads features or speech of videos: name a data set under "
                    "`datasets` of tables.yaml"
                )
        for key, names in self.options.get("features", {}).items():
            for name in names:
                for footage in self.footage.values():
                    footage.check(name, f"config: {self.name}.features.{key}")

    def backbones(self, entry: AnyEntry, release: str) -> Sequence[str]:
        """Return the names of the backbones whose features of videos the entry reads."""
        footage = self.footage.get(self.dataset(release))
        return [name for name in self.features(entry) if footage and footage.is_backbone(name)]

    def imported(self, entry: AnyEntry, release: str) -> list[str]:
        """Return a description of each of the entry's imported features."""
        footage = [(self.footage[self.dataset(release)], name) for name in self.features(entry)]
        return [
            f"imported files: {each.inputs(name)[0].parent}" for each, name in footage if not each.is_backbone(name)
        ]

    def decoding(self) -> list[Path]:
        """Return the prediction files of jobs that decode videos."""
        return [self.predictions(job) for job in self.jobs() if job.entry.kind.decoded]

    def listed_by(self, entry: AnyEntry, release: str) -> Sequence[str]:
        """Return the releases that must exist before the entry's jobs are known.

        These are the release that lists its videos, and releases with files that have no pinned sha256.
        """
        reads = self.reads(Job(release=release, entry=entry))
        unpinned = [each for each in reads if not all(file.wanted.sha256 for file in self.released.release_files(each))]
        listings = [each.dataset.listed_by.partition("/")[2] for each in self.pipelines_of(entry, release)]
        return list(dict.fromkeys([*filter(None, listings), *unpinned]))

    def pipelines_of(self, entry: AnyEntry, release: str) -> Sequence[Pipeline]:
        """Return the pipelines of the videos that an entry reads, itself or through backbones and recognisers."""
        footage = self.footage.get(self.dataset(release))
        read = entry.kind.decoded or self.backbones(entry, release) or self.hears(entry)
        return [footage.pipeline] if footage and read else []

    # Needs

    def missing(self, entry: AnyEntry, release: str) -> tuple[Need, ...]:
        """Return the unmet needs of the entry's jobs on a release."""
        if (entry.id, release) not in self._missing:
            listed = [each for each in self.listed_by(entry, release) if not self.released.is_there(each)]
            found = [Need("release", f"{self.name}/{each}") for each in listed]
            for name in self.features(entry):
                found += self.footage[self.dataset(release)].missing(name)
            if self.hears(entry):
                found += self.footage[self.dataset(release)].pipeline.speech.missing
            self._missing[entry.id, release] = in_order([*found, *self.missing_besides(entry, release)])
        return self._missing[entry.id, release]

    @cached_property
    def _missing(self) -> dict[tuple[str, str], tuple[Need, ...]]:
        return {}

    def lacking(self, entry: AnyEntry, release: str) -> tuple[Need, ...]:
        """Return everything that an entry lacks on a release: its unmet needs and the absent videos that it reads.

        Videos alone prevent no job: the jobs of the entry fetch them.
        """
        needs = self.missing(entry, release)
        absent = [Need("videos", each.name) for each in self.pipelines_of(entry, release) if not each.videos.are_here]
        return in_order([*needs, *absent]) if needs else ()

    def missing_line(self, line: Line, release: str) -> tuple[Need, ...]:
        """Return everything that a line lacks; a line copied from the paper lacks nothing."""
        return () if self.is_reference(line) else self.lacking(self.entries[line.entry], release)

    def wanted_by(self, table: Table, line: Line, release: str) -> tuple[Need, ...]:
        """Return everything that a line lacks and the unmet needs of its metrics in a table."""
        if self.is_reference(line):
            return ()
        metrics = filter(self.entries[line.entry].kind.scores, table.metrics)
        return in_order([*self.missing_line(line, release), *chain.from_iterable(map(self.missing_of, metrics))])

    def filled_by(self, file: str, needs: Sequence[Need]) -> str:
        """Return the commands that meet the needs and recompute a result file; "" if no command can."""
        if not needs or any(need.kind == "samples" for need in needs):
            return ""
        changes: Config = {}
        for need in needs:
            if need.kind == "config":
                _put(changes, self.options, need)
            elif need.kind == "predictions":
                _put(changes, self.options, Need("config", f"{self.name}.files.{need.what}", "FOLDER"))
            elif need.kind == "split":
                if self.options["subset"] is None:
                    return ""
                changes["subset"] = None
        steps = dict.fromkeys(filter(None, map(self.how_to_fill, needs)))
        return " && ".join([*steps, command(f"results/{self.name}/{file}", {self.name: changes} if changes else {})])

    def command_for(self, need: Need, file: str) -> str:
        """Return the command that meets a need, or that computes a result file with it; "" if there is none."""
        return self.how_to_fill(need) or self.filled_by(file, [need])

    # Jobs

    def jobs(self, file: str | None = None, entry: str = "") -> Iterator[Job]:
        """Yield the jobs that can be computed: of one entry, of a table file, or of all configured tables.

        With ``entry``, other entries are not examined: their needs may depend on files that its jobs do not read.
        """
        listed = [each for each in self.lines(file) if entry in ("", each[1].entry)]
        jobs = (job for table, line, release in listed for job in self._jobs(table, line, release))
        yield from {(job.release, job.entry.id, job.context): job for job in jobs}.values()

    def _jobs(self, table: Table, line: Line, release: str) -> Iterator[Job]:
        entry = self.entries[line.entry]
        if entry.kind.method and not self.missing(entry, release):
            for context_s in dict.fromkeys(job_s for _, job_s in self.contexts(table, line)):
                yield Job(release=release, entry=entry, context_s=context_s)

    def job(self, release: str, entry: str, context: str) -> Job:
        """Return one job; raise ConfigError if there is no such job, MissingError if a need is not met."""
        for job in self.jobs(entry=entry):
            if (job.release, job.context) == (release, context):
                return job
        if (entry, release) in self.pairs():
            if needs := self.missing(self.entries[entry], release):
                raise MissingError(f"entry {entry!r} on {release!r} needs {', '.join(map(str, needs))}")
            if self.entries[entry].kind.method is None:
                raise ConfigError(f"entry {entry!r} has no job: nothing of it is predicted")
        known = [f"{job.entry.id} on {job.release} at {job.context}" for job in self.jobs()]
        near = get_close_matches(f"{entry} on {release} at {context}", known, n=3) or known[:3]
        raise ConfigError(
            f"{self.name} has no entry {entry!r} on {release!r} at {context!r}: choose from {', '.join(near) or 'none'}"
        )

    def record(self, job: Job) -> dict[str, Any]:
        """Return the spec of a job: everything that determines its predictions."""
        entry = job.entry
        record: dict[str, Any] = {
            "study": self.name,
            "release": job.release,
            "subset": self.options["subset"],
            **entry.record,
        }
        if self.datasets:
            footage = self.footage[self.dataset(job.release)]
            record["features"] = [footage.record(name) for name in self.features(entry)]
            record |= {"transcripts": footage.pipeline.speech.record} if self.hears(entry) else {}
        if entry.trained:
            record[entry.kind.options] = self.options[entry.kind.options]
        if entry.splits != entry.kind.splits:
            record["splits"] = list(entry.splits)
        if self.reader_revision > 1:
            record["reader_revision"] = self.reader_revision
        return record | dict(self.decides(job))

    def spec(self, job: Job) -> str:
        """Return the digest of the job's spec, 8 hex digits."""
        return digest(self.record(job))

    def fit_params(self, job: Job) -> str:
        """Return the cache key of a fit, in addition to its inputs."""
        return canonical_json(self.record(job))

    def predict_params(self, job: Job) -> str:
        """Return the cache key of predictions, in addition to their inputs."""
        return canonical_json({"format": FORMAT, "spec": self.record(job)})

    def fit_inputs(self, job: Job) -> list[Path]:
        """Return the inputs of fitting."""
        return self._inputs(job, "fit")

    def predict_inputs(self, job: Job) -> list[Path]:
        """Return the inputs of predicting."""
        return [*self._inputs(job, "predict"), *(self.fits(job) if job.entry.trained else [])]

    def fits(self, job: Job) -> list[Path]:
        """Return the checkpoints of a job, one per seed."""
        return [paths.fit(self.name, job.release, job.entry.id, job.context, seed) for seed in job.entry.seeds]

    def predictions(self, job: Job) -> Path:
        """Return the file of a job's predictions; their record is next to it."""
        return paths.predictions(self.name, job.release, job.entry.id, job.context)

    def scores(self, job: Job) -> Path:
        """Return the file of a job's scores."""
        return paths.scores(self.name, job.release, job.entry.id, job.context)

    def _inputs(self, job: Job, stage: str) -> list[Path]:
        inputs = list(map(self.release_manifest, self.reads(job)))
        if self.datasets:
            footage = self.footage[self.dataset(job.release)]
            inputs += [path for name in self.features(job.entry) for path in footage.inputs(name)]
            inputs += footage.pipeline.videos.availability if job.entry.kind.decoded else []
            inputs += footage.pipeline.speech.manifests if self.hears(job.entry) else []
        return list(dict.fromkeys([*inputs, *self.reads_besides(job, stage)]))

    def score_inputs(self, job: Job) -> list[Path]:
        """Return the inputs of scoring other than the predictions."""
        return list(dict.fromkeys([self.release_manifest(job.release), *self.reads_besides(job, "score")]))

    def score_params(self, job: Job) -> str:
        """Return the cache key of scores, in addition to their inputs."""
        metrics = {
            name: asdict(metric)
            for name, metric in self.metrics.items()
            if job.entry.kind.scores(name) and self.measures(job, name)
        }
        keys = {key for metric in metrics for key in self.options_of(job.entry, metric)}
        chosen = {key: self.options["metrics"][key] for key in {*keys, "bootstrap_samples", "bootstrap_seed"}}
        missing = [str(need) for metric in metrics for need in self.missing_of(metric)]
        return canonical_json(
            {
                "metrics": metrics,
                "options": chosen,
                "revision": self.revision,
                "missing": missing,
                "spec": self.spec(job),
            }
        )

    def read_score(self, job: Job) -> dict[str, Any]:
        """Return a job's score; raise StoreError if it is damaged.

        An absent score is computed by the next run: its inputs appeared after this run had listed its jobs.
        """
        path = self.scores(job)
        if not path.exists():
            return {"needs": [str(Need("score", job.entry.id))], "metrics": {}}
        return read_score(path)

    def table_inputs(self, file: str) -> list[Path]:
        """Return the inputs of a table: scores, counted releases, and records of deleted videos."""
        jobs = list(self.jobs(file))
        scores = [*map(self.scores, jobs)]
        counted = [
            self.release_manifest(release)
            for _, line, release in self.lines(file)
            if not (self.entries[line.entry].kind.method or self.is_reference(line))
        ]
        read = {each.name for job in jobs for each in self.pipelines_of(job.entry, job.release)}
        dropped = [
            path for name in sorted(read & self.pipelines.keys()) for path in self.pipelines[name].videos.dropped
        ]
        return list(dict.fromkeys([*scores, *counted, *dropped]))

    def table_params(self, file: str) -> str:
        """Return the cache key of a table, in addition to scores: declarations, needs, options and paper numbers."""
        listed = [
            [
                table.name,
                table.title,
                table.metrics,
                asdict(line),
                self.entries[line.entry].sees,
                release,
                list(map(str, self.missing_line(line, release))),
                self.entries[line.entry].kind.metrics,
                {key: [option.value, option.differs] for key, option in self.line_options(line, release).items()},
            ]
            for table, line, release in self.lines(file)
        ]
        paper = self.paper_file(file)
        missing = [str(need) for metric in self.measured for need in self.missing_of(metric)]
        words = [[asdict(metric) for metric in self.metrics.values()], [asdict(each) for each in self.sees], self.title]
        compared = [dict(self.published), self.paper_release, sha256_file(paper) if paper else ""]
        return digest([listed, self.options, missing, words, compared])

    def stale(self) -> Iterator[str]:
        """Yield a warning if predictions or scores were computed by another version of the source."""
        found: dict[str, list[Path]] = {}
        source = cache(lambda name: self.scoring_source() if name == SCORES else self.source(self.kinds[name]))
        for job in self.jobs():
            path, score = self.predictions(job), self.scores(job)
            made = _content(path.with_suffix(".json")) if path.exists() else {}
            method = made.get("method")
            if made.get("spec") == self.spec(job) and isinstance(method, dict):
                for name, file, record in ((job.entry.kind_name, path, method), (SCORES, score, _content(score))):
                    if _differs(record, source(name)):
                        found.setdefault(name, []).append(file)
        if found:
            first, *more = chain(*found.values())
            verb = current().verb
            yield (
                f"results of {self.name} ({first}{f' and {len(more)} more' if more else ''}) were computed with other "
                f"source of {', '.join(found)}: if the numbers change, raise the revision of the kind, or of "
                f"{type(self).__name__} for scores, or its `reader_revision` if what reads the release has changed; if "
                f"they do not, run `{verb('accept', self.name)}`, or `{verb('accept')}` for all studies"
            )

    @property
    def report_tables(self) -> Sequence[str]:
        """The table files on the page: the configured ones."""
        return self.tables

    def report_inputs(self) -> list[Path]:
        """Return the inputs of the page: its tables."""
        return [Path("results", self.name, f"{file}.csv") for file in self.report_tables]


def read_score(path: Path) -> dict[str, Any]:
    """Return the score in a file; raise StoreError if it is damaged."""
    score = read_json(path)
    metrics = score.get("metrics") if isinstance(score, dict) and "needs" in score else None
    if not isinstance(metrics, dict) or not all(isinstance(each, dict) for each in metrics.values()):
        raise StoreError(f"{path} is not a score: remove it and run the same again")
    return score  # type: ignore[no-any-return]


def _put(changes: Config, options: Config, need: Need) -> None:
    """Add to ``changes`` the value that a need requires of ``options``; values are appended to lists."""
    *blocks, last = need.what.split(".")[1:]
    for block in blocks:
        changes, options = changes.setdefault(block, {}), options[block]
    before = changes.get(last, options.get(last))
    changes[last] = [*before, need.value] if isinstance(before, list) else need.value


def _content(path: Path) -> dict[str, Any]:
    """Return the object in a JSON file; empty if the file is absent or is not an object."""
    content = read_json(path) if path.exists() else None
    return content if isinstance(content, dict) else {}


def _differs(made: Mapping[str, Any], source: str) -> bool:
    """Return whether a record has a source digest, and neither it nor the accepted one equals ``source``."""
    return bool(made.get("source")) and source not in (made["source"], made.get("accepted"))
