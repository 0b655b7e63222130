"""The plan of a study: which jobs there are, what each reads, and what decides its result.

The workflow asks and runs; nothing is computed here, and nothing heavy is imported.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from stepline import paths
from stepline.backbones.registry import DOT, presets, tower_of
from stepline.backbones.sentence import MODELS
from stepline.backbones.weights import WEIGHTS
from stepline.benchmarks.spacewalk.demand import StudyDemand
from stepline.benchmarks.spacewalk.entries import (
    TEXT_ENCODERS,
    Entry,
    absent_packages,
    is_listed,
    load_entries,
    needs,
)
from stepline.config import Config
from stepline.datasets.configured import study
from stepline.datasets.schema import Split
from stepline.datasets.studies import STEP_RECOGNITION, Study
from stepline.datasets.subset import select
from stepline.errors import ConfigError, MissingError
from stepline.io import canonical_json, sha256_file
from stepline.mirror import signature
from stepline.needs import Need
from stepline.pipeline import Pipeline
from stepline.spec import digest

SCORING = 2
"""Revision of the scoring code: raise it with a change that gives other numbers."""


def _is_choice(need: str) -> bool:
    return need.startswith("config:")


def _texts(needs: Iterable[Need]) -> tuple[str, ...]:
    return tuple(map(str, needs))


def _weights(needs: Iterable[Need]) -> list[str]:
    return [need.what for need in needs if need.kind == "weights"]


def paper_file(target: str) -> Path | None:
    """Return the paper's numbers of a table; None where it has none."""
    path = Path(__file__).parent / "paper" / f"{target}.csv"
    return path if path.exists() else None


@dataclass(frozen=True, kw_only=True)
class Job:
    """One entry on one release at one window length (None: unlimited)."""

    release: str
    entry: Entry
    context_s: float | None

    @property
    def context(self) -> str:
        """The window length as it stands in paths."""
        return paths.context_label(self.context_s)


@dataclass(frozen=True)
class Plan:
    """What there is to do for one study under one configuration."""

    config: Config
    study: Study

    @classmethod
    def of(cls, config: Config, name: str) -> "Plan":
        """Return the plan of the study ``name``; raise ConfigError where it is not configured."""
        if name not in config and name not in config["datasets"]:
            raise ConfigError(
                f"config: study {name!r} is not configured; add a key `{name}:` or name another --configfile"
            )
        plan = cls(config, study(config, name))
        for release in plan.releases:
            study(config, name, release)
        select(plan.study.videos(), plan.study_config["subset"])
        plan._check_lines()
        plan._check_encoders()
        if config["strict"]:
            computed = [entry for entry in plan.entries.values() if entry.computed]
            lists = [plan.lacking(entry) for entry in computed if not plan.asks_nobody(entry)]
            lacking = {item for each in lists if not any(map(_is_choice, each)) for item in each}
            if lacking:
                raise MissingError(f"strict: {name} lacks {', '.join(sorted(lacking))}")
        return plan

    def _check_encoders(self) -> None:
        for name in self.study_config["entries"]:
            entry = self._declared[name]
            if entry.encoder and entry.encoder not in TEXT_ENCODERS:
                self._check_entry(f"{self.study.name}.entries.{name}", entry)
        for name in self.study_config["video_encoders"]:
            self._check_backbone(f"{self.study.name}.video_encoders", name)

    def _check_entry(self, key: str, entry: Entry) -> None:
        self._check_backbone(f"{key}.encoder", entry.encoder)
        clips, kind = self.pipeline.features.describes_clips(entry.encoder), entry.made
        if not (kind.listed if clips else kind.grid):
            raise ConfigError(
                f"config: {key}.encoder: {entry.encoder!r} is not allowed; name one that describes "
                f"{'every second' if clips else 'listed clips'}"
            )
        if {*entry.blocks} & {*"TC"} and not self.tower(entry.encoder):
            raise ConfigError(
                f"config: {key}.modality: {entry.modality!r} is not allowed; {entry.encoder} has no text tower: give V"
            )

    def _check_backbone(self, key: str, name: str) -> None:
        try:
            self.pipeline.features.missing(name)
        except ConfigError as error:
            raise ConfigError(f"config: {key}: {error}") from None

    def _check_lines(self) -> None:
        named: dict[object, str] = {}
        for entry in self.entries.values():
            shown = self.options(entry)
            for context_s in entry.printed_windows(self.study_config):
                line = canonical_json([entry.table, entry.method, entry.modality, entry.setting, context_s, shown])
                if line in named:
                    raise ConfigError(
                        f"config: {self.study.name}.entries: {named[line]} and {entry.id} give the same line of table "
                        f"{entry.table}; give one of them another method"
                    )
                named[line] = entry.id

    @property
    def name(self) -> str:
        """The study's name."""
        return self.study.name

    @property
    def dataset(self) -> Study:
        """The study, as what has releases."""
        return self.study

    @cached_property
    def pipeline(self) -> Pipeline:
        """The pipeline of the study's videos."""
        return Pipeline(self.config, self.study, StudyDemand(self))

    @property
    def pipelines(self) -> dict[str, Pipeline]:
        """The same, by the name of the data set."""
        return {self.name: self.pipeline}

    @property
    def targets(self) -> tuple[str, ...]:
        """What is made of the study where no target is named."""
        return ("table2.csv", "report.html") if "table2" in self.tables else tuple(f"{t}.csv" for t in self.tables)

    @property
    def study_config(self) -> Config:
        """The study's part of the configuration."""
        name = self.study.name
        study_config: Config = self.config[name] if name in self.config else self.config["datasets"][name]["study"]
        return study_config

    @property
    def tables(self) -> tuple[str, ...]:
        """The configured tables, files of ``results/<study>/``."""
        return tuple(self.study_config["tables"])

    def check_table(self, target: str) -> None:
        """Raise ConfigError where a table is not configured."""
        if target not in self.tables:
            raise ConfigError(
                f"config: {self.study.name}.tables: {target!r} is not one of {', '.join(self.tables)}; add it there"
            )

    @cached_property
    def wanted(self) -> dict[str, Entry]:
        """What is or will be computed for the configured tables, parts of others among it, by id."""
        shown = [entry for entry in self.shown.values() if entry.computed]
        configured = [entry for entry in shown if not any(map(_is_choice, self.lacking(entry)))]
        return {part.id: part for entry in configured for part in self.parts(entry)}

    @cached_property
    def ready(self) -> dict[str, Entry]:
        """What of that can be computed now."""
        able = [entry for entry in self.wanted.values() if not self.lacking(entry)]
        return {part.id: part for entry in able for part in self.parts(entry)}

    @property
    def weights(self) -> list[str]:
        """The names of the weights of the configured encoders and of what recognises."""
        recognised = self.pipeline.speech.missing if self.study_config["transcripts"] == "asr" else ()
        sentences = [name for name in self.study_config["text_encoders"] if name in WEIGHTS]
        known = presets()
        networks = [
            weights
            for name in self.study_config["video_encoders"]
            for weights in (known[name].weights if name in known else _weights(self.pipeline.features.missing(name)))
        ]
        return list(dict.fromkeys([*sentences, *networks, *_weights(recognised)]))

    @property
    def releases(self) -> list[str]:
        """The configured releases."""
        releases: list[str] = self.study_config["releases"]
        return releases

    @cached_property
    def _declared(self) -> dict[str, Entry]:
        return {entry.id: entry for entry in load_entries(self.study.name, self.study_config)}

    @cached_property
    def entries(self) -> dict[str, Entry]:
        """All entries that have lines, by id: with their parts."""

        def listed(entry: Entry) -> bool:
            return is_listed(entry, self.study, self.study_config)

        return {
            name: entry
            for name, entry in self._declared.items()
            if listed(entry) and all(map(listed, self.parts(entry)[1:]))
        }

    @cached_property
    def shown(self) -> dict[str, Entry]:
        """Those of the configured tables, by id."""
        return {name: entry for name, entry in self.entries.items() if entry.target in self.tables}

    def parts(self, entry: Entry) -> tuple[Entry, ...]:
        """Return the entry whose jobs predict, and those that its settings name."""
        base = self._declared[entry.job]
        return (base, *(self._declared[name] for name in base.parts))

    @cached_property
    def videos(self) -> tuple[str, ...]:
        """The videos of the configured subset."""
        return select(self.study.videos(), self.study_config["subset"])

    def lacking(self, entry: Entry) -> tuple[str, ...]:
        """Return what the entry lacks before any job of it can run."""
        if entry.job not in self._lacking:
            found = [item for part in self.parts(entry) for item in self._part_lacks(part)]
            self._lacking[entry.job] = tuple(dict.fromkeys(found))
        return self._lacking[entry.job]

    @cached_property
    def _lacking(self) -> dict[str, tuple[str, ...]]:
        return {}

    def _part_lacks(self, entry: Entry) -> tuple[str, ...]:
        seen = entry.encoder not in ("", *TEXT_ENCODERS)
        return (
            needs(entry, self.study, self.study_config)
            + (_texts(self.pipeline.features.missing(entry.encoder)) if seen else ())
            + (self._absent_to_recognise if self.recognised(entry) else ())
            + (self._absent_to_ask(entry) if entry.kind == "llm" else ())
        )

    def lacking_on(self, entry: Entry, release: str) -> tuple[str, ...]:
        """Return what the entry lacks on one release: what it lacks anywhere, or training samples."""
        unsampled = entry.trained and "train" not in self.study.splits(release, entry.task)
        return self.lacking(entry) or ((f"samples:{release}/{entry.task}/train",) if unsampled else ())

    def asks_nobody(self, entry: Entry) -> bool:
        """Return whether the entry is a language model's and none is named."""
        return entry.kind == "llm" and self.study_config["llm"]["model"] is None

    def _absent_to_ask(self, entry: Entry) -> tuple[str, ...]:
        name, service = self.study.name, self.study_config["llm"]
        if self.asks_nobody(entry):
            return (f"config:{name}.llm.model=NAME",)
        made = [
            paths.predictions(name, release, entry.id, paths.context_label(context_s)).exists()
            for release in self.releases_of(entry)
            for context_s in entry.windows(self.study_config)
        ]
        paid = urlsplit(service["url"]).hostname == "api.openai.com"
        return ("key:OPENAI_API_KEY",) if paid and not all(made) and not os.environ.get("OPENAI_API_KEY") else ()

    @property
    def _absent_to_recognise(self) -> tuple[str, ...]:
        speech = self.pipeline.speech
        absent = (*absent_packages("media"), *_texts(speech.missing))
        return absent if absent and not speech.transcribed else ()

    def releases_of(self, entry: Entry) -> list[str]:
        """Return the configured releases that have the entry's task."""
        return [release for release in self.releases if entry.task in self.study.tasks[release]]

    def jobs(self, target: str) -> Iterator[Job]:
        """Yield the jobs of all entries of a table that can be computed."""
        for entry in self.entries.values():
            if entry.target == target:
                yield from self._jobs(entry)

    def _jobs(self, entry: Entry) -> Iterator[Job]:
        for release in self.releases_of(entry) if entry.computed else ():
            if not self.lacking_on(entry, release):
                for context_s in entry.windows(self.study_config):
                    yield Job(release=release, entry=self._declared[entry.job], context_s=context_s)

    def job(self, release: str, entry: str, context: str) -> Job:
        """Return one job; raise ConfigError where there is no such job.

        Other entries are not looked at: what these lack may be in files that the job does not read.
        """
        for each in self.entries.values():
            for job in self._jobs(each) if each.job == entry else ():
                if (job.release, job.context) == (release, context):
                    return job
        raise ConfigError(f"{self.study.name} has no entry {entry!r} on release {release!r} at {context!r}")

    def record(self, job: Job) -> dict[str, Any]:
        """Return all that decides the predictions of a job: its spec."""
        record: dict[str, Any] = {
            "study": self.study.name,
            "release": job.release,
            "context_s": job.context_s,
            "subset": self.study_config["subset"],
        }
        record |= self._entry_record(job.entry)
        if parts := self.parts(job.entry)[1:]:
            record["parts"] = [self._entry_record(part) for part in parts]
        return record

    def _entry_record(self, entry: Entry) -> dict[str, Any]:
        spec_of = self.pipeline.features.spec_of
        record: dict[str, Any] = {
            "task": entry.task,
            "kind": entry.kind,
            "revision": entry.made.revision,
            "settings": entry.settings,
            "seeds": list(entry.seeds),
            "options": self.options(entry),
            "blocks": entry.blocks,
            "encoders": [spec_of(name).record() for name in filter(None, (entry.backbone, self.texts_by(entry)))],
        }
        if entry.kind == "llm":
            record["llm"] = {key: value for key, value in self.study_config["llm"].items() if key != "concurrency"}
        if self.recognised(entry):
            record |= self.pipeline.speech.record
        if entry.trained:
            record[entry.made.options] = self.study_config[entry.made.options]
        return record

    def tower(self, backbone: str) -> str:
        """Return the name of a backbone's text tower; "" where it has none, or is no preset."""
        preset = presets().get(backbone)
        tower = tower_of(preset) if preset else None
        return tower.name if tower else ""

    def texts_by(self, entry: Entry) -> str:
        """Return the name of what embeds the entry's texts; "" where it reads no embeddings.

        Zero-shot step recognition from video alone has the text of Irrelevant.
        """
        if not entry.made.texts:
            return ""
        if entry.encoder in MODELS:
            return entry.encoder
        described = entry.kind == "zero-shot" and entry.task == STEP_RECOGNITION
        return self.tower(entry.encoder) if described or {*entry.blocks} & {*"TC"} else ""

    def normalise(self, entry: Entry) -> str:
        """Return ``block`` or ``none``: the configured one, or that of the encoder's own similarity."""
        chosen: str = self.study_config["normalise"]
        if chosen != "model":
            return chosen
        preset = presets().get(entry.encoder)
        return "none" if preset and preset.architecture in DOT else "block"

    def spec(self, job: Job) -> str:
        """Return the 8 hex digits of the job's spec."""
        return digest(self.record(job))

    def predict_params(self, job: Job) -> str:
        """Return what a prediction must be made again for, as text."""
        return canonical_json(self.record(job))

    def score_params(self) -> str:
        """Return what scores must be made again for, besides new predictions, as text."""
        return canonical_json({"metrics": self.study_config["metrics"], "revision": SCORING})

    def fit_inputs(self, job: Job) -> list[Path]:
        """Return what fitting reads."""
        return self._material(job, ("train", "val"))

    def predict_inputs(self, job: Job) -> list[Path]:
        """Return what predicting reads."""
        inputs = self._material(job, self.predicted_from(job.entry))
        if job.entry.trained:
            name, release, entry = self.study.name, job.release, job.entry
            inputs += [paths.fit(name, release, entry.id, job.context, seed) for seed in entry.seeds]
        return inputs

    def score_inputs(self, job: Job) -> list[Path]:
        """Return what scoring reads besides the predictions."""
        return self._labels(job, ("val", "test") if job.entry.thresholded else ("test",))

    def predicted_from(self, entry: Entry) -> tuple[Split, ...]:
        """Return the splits that predicting reads: val where a threshold or settings are chosen on it, and test."""
        return ("val", "test") if entry.thresholded or self.parts(entry)[1:] else ("test",)

    def _labels(self, job: Job, splits: tuple[Split, ...]) -> list[Path]:
        name, release, task = self.study.name, job.release, job.entry.task
        return [self.release_manifest(release), *(paths.samples(name, release, task, split) for split in splits)]

    def _material(self, job: Job, splits: tuple[Split, ...]) -> list[Path]:
        inputs = self._labels(job, splits)
        name, release, task = self.study.name, job.release, job.entry.task
        wanted = [video.id for video in self.study.videos() if video.split in splits and video.id in self.videos]
        for part in self.parts(job.entry):
            if part.backbone:
                inputs += self.pipeline.features.manifests(part.backbone)
            if encoder := self.texts_by(part):
                spec = self.pipeline.features.spec_of(encoder)
                inputs += [paths.text_manifest(name, release, task, video, spec) for video in wanted]
            if self.recognised(part):
                inputs += self.pipeline.speech.manifests
            if part.made.decoded:
                inputs += self.pipeline.videos.availability
        return list(dict.fromkeys(inputs))

    def recognised(self, entry: Entry) -> bool:
        """Return whether the entry reads transcripts that a recogniser made."""
        read = entry.made.transcribed or bool(self.texts_by(entry))
        return read and self.study_config["transcripts"] == "asr"

    def encode_inputs(self, release: str, task: str, video: str) -> list[Path]:
        """Return what encoding a recording's texts reads."""
        (split,) = {v.split for v in self.study.videos() if v.id == video} - {None}
        inputs = [self.release_manifest(release), paths.samples(self.study.name, release, task, str(split))]
        if self.study_config["transcripts"] == "asr":
            inputs.append(paths.manifest(self.pipeline.speech.folder, self.pipeline.videos.shards[video]))
        return inputs

    def texts(self, task: str, encoder: str) -> dict[str, Any]:
        """Return which of a recording's texts an encoder embeds, besides its steps'.

        windows: lengths in seconds of the samples' windows. others: ``sentences``, ``segments``.
        """
        users = [part for part in self.ready.values() if part.task == task and self.texts_by(part) == encoder]
        windowed = [part.id for part in users if part.made.texts == "windows" and {*part.blocks} & {*"TC"}]
        return {
            "windows": self.windows_of(windowed),
            "others": sorted({part.made.texts for part in users} - {"windows"}),
        }

    def windows_of(self, ids: Sequence[str]) -> list[float]:
        """Return the lengths of windows, in seconds, at which the configured tables have some entries, ascending."""
        users = [entry for entry in self.shown.values() if any(part.id in ids for part in self.parts(entry))]
        return sorted({length_s for entry in users for length_s in entry.windows(self.study_config) if length_s})

    def encode_params(self, task: str, encoder: str) -> str:
        """Return what a recording's texts must be encoded again for, as text."""
        return canonical_json(self.texts(task, encoder) | {"transcripts": self.study_config["transcripts"]})

    def options(self, entry: Entry) -> dict[str, str]:
        """Return the named options that matter to the entry's numbers, besides those of a metric."""
        chosen = {}
        for part in self.parts(entry):
            if part.kind == "llm" and not self.asks_nobody(part):
                chosen["model"] = self.study_config["llm"]["model"]
            if part.made.transcribed or self.texts_by(part):
                chosen["transcripts"] = self.study_config["transcripts"]
            if part.blocks and part.encoder != "tfidf":
                chosen["normalise"] = self.normalise(part)
            unlimited = part.backbone and None in part.windows(self.study_config)
            if self.pipeline.videos.annotated and (unlimited or self.recognised(part)):
                chosen["spans"] = "annotated"
        return chosen

    def release_manifest(self, release: str) -> Path:
        """Return the record of a release's files."""
        return self.study.folder(release) / "release.json"

    def release_params(self, release: str) -> str:
        """Return what a release must be fetched again for, as text: its pins, and unpinned files in the mirror."""
        files = self.study.release_files(release)
        return digest([[f.path, f.wanted.sha256 or signature(f.wanted)] for f in files])

    def score_files(self, target: str) -> list[Path]:
        """Return the scores that a table collects."""
        return [paths.scores(self.study.name, j.release, j.entry.id, j.context) for j in self.jobs(target)]

    def table_inputs(self, target: str) -> list[Path]:
        """Return what a table is made from: scores, and the records of deleted videos."""
        return [*self.score_files(target), *self.pipeline.videos.dropped]

    def table_params(self, target: str) -> str:
        """Return what a table must be made again for, besides scores: declarations, needs and the paper's numbers."""
        listed = [
            asdict(entry) | {"needs": self.lacking(entry), "options": self.options(entry)}
            for entry in self.entries.values()
            if entry.target == target
        ]
        paper = paper_file(target)
        choices = {key: self.study_config[key] for key in ("releases", "contexts_s", "subset")}
        return digest([listed, choices, sha256_file(paper) if paper else ""])

    @property
    def uses_videos(self) -> bool:
        """Whether an entry that can be computed uses videos."""
        return any(map(self.recognised, self.ready.values())) or bool(self.pipeline.features.computed)

    @property
    def report_tables(self) -> list[Path]:
        """The tables that the report shows."""
        return [Path("results", self.study.name, "table2.csv")]

    def report_inputs(self) -> list[Path]:
        """Return what the report shows besides Table 2: what the stages made of the videos that entries use."""
        recognised = any(map(self.recognised, self.ready.values()))
        frames = any(part.backbone for part in self.ready.values())
        videos = self.pipeline.videos
        shown = videos.manifests(paths.thumbnails(self.name)) if recognised or frames else []
        return [*shown, *(self.pipeline.speech.manifests if recognised else []), *videos.dropped]
