"""The plan of a study: which jobs there are, what each reads, and what decides its result.

The workflow asks and runs; nothing is computed here, and nothing heavy is imported.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from stepline import paths
from stepline.backbones.weights import WEIGHTS
from stepline.benchmarks.spacewalk.entries import (
    KINDS,
    TARGETS,
    Entry,
    absent_packages,
    is_listed,
    load_entries,
    loaded,
    needs,
    options,
)
from stepline.config import Config
from stepline.datasets.studies import Study, study
from stepline.datasets.subset import select
from stepline.errors import ConfigError, MissingError
from stepline.io import canonical_json, sha256_file
from stepline.media.spans import merged
from stepline.mirror import signature
from stepline.pipeline import Pipeline
from stepline.spec import Spec, digest

SLACK_S = 1.0
"""How much more of a video is read around what samples see: frame numbers of releases are rounded times."""
SCORING = 2
"""Revision of the scoring code: raise it with a change that gives other numbers."""


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
class Plan(Pipeline):
    """What there is to do for one study under one configuration."""

    dataset: Study

    @classmethod
    def of(cls, config: Config, name: str) -> "Plan":
        """Return the plan of the study ``name``; raise ConfigError where it is not configured."""
        if name not in config:
            raise ConfigError(
                f"config: study {name!r} is not configured; add a key `{name}:` or name another --configfile"
            )
        plan = cls(config, study(name))
        for release in plan.releases:
            study(name, release)
        select(plan.study.videos(), plan.study_config["subset"])
        plan._check_lines()
        plan._check_encoders()
        plan.check_clips()
        lacking = {
            item for entry in plan.entries.values() for item in plan.lacking(entry) if not item.startswith("stepline:")
        }
        if config["strict"] and lacking:
            raise MissingError(f"strict: {name} lacks {', '.join(sorted(lacking))}")
        return plan

    def _check_encoders(self) -> None:
        for entry in self.entries.values():
            if entry.features == "frames":
                self._check_backbone(f"{self.study.name}.entries.{entry.id}.encoder", entry.encoder)
        for name in self.study_config["video_encoders"]:
            if name not in WEIGHTS:
                self._check_backbone(f"{self.study.name}.video_encoders", name)

    def _check_backbone(self, key: str, name: str) -> None:
        try:
            self.backbone_lacks(name)
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
    def study(self) -> Study:
        """The study."""
        return self.dataset

    @property
    def targets(self) -> tuple[str, ...]:
        """What is made of the study where no target is named."""
        return "table2.csv", "report.html"

    @property
    def study_config(self) -> Config:
        """The study's part of the configuration."""
        study_config: Config = self.config[self.study.name]
        return study_config

    @property
    def wants_videos(self) -> bool:
        """Whether an entry that is or will be computed is made from videos."""
        configured = [entry for entry in self.entries.values() if entry.computed]
        recognised = any(map(self.recognised, configured))
        return recognised or any(entry.features == "frames" for entry in configured)

    @property
    def weights(self) -> list[str]:
        """The names of the weights of the configured encoders and of what recognises."""
        encoders = self.study_config["text_encoders"] + self.study_config["video_encoders"]
        recognised = super().weights if self.study_config["transcripts"] == "asr" else []
        lacking = [item for name in self.configured_backbones for item in self.backbone_lacks(name)]
        networks = [item.removeprefix("weights:") for item in lacking if item.startswith("weights:")]
        declared = [name for encoder in encoders for name in loaded(encoder)]
        return list(dict.fromkeys([*declared, *networks, *recognised]))

    @property
    def releases(self) -> list[str]:
        """The configured releases."""
        releases: list[str] = self.study_config["releases"]
        return releases

    @cached_property
    def entries(self) -> dict[str, Entry]:
        """All entries by id."""
        listed = load_entries(self.study.name, self.study_config)
        return {entry.id: entry for entry in listed if is_listed(entry, self.study, self.study_config)}

    @cached_property
    def videos(self) -> tuple[str, ...]:
        """The videos of the configured subset."""
        return select(self.study.videos(), self.study_config["subset"])

    def lacking(self, entry: Entry) -> tuple[str, ...]:
        """Return what the entry lacks before any job of it can run."""
        return self._lacking[entry.id]

    @cached_property
    def _lacking(self) -> dict[str, tuple[str, ...]]:
        return {
            name: needs(entry, self.study, self.study_config)
            + (self.backbone_lacks(entry.encoder) if entry.features == "frames" else ())
            + (self._absent_to_recognise if self.recognised(entry) else ())
            for name, entry in self.entries.items()
        }

    @property
    def _absent_to_recognise(self) -> tuple[str, ...]:
        return () if self.transcribed else (*absent_packages("media"), *self.recogniser_lacks)

    def releases_of(self, entry: Entry) -> list[str]:
        """Return the configured releases that have the entry's task."""
        return [release for release in self.releases if entry.task in self.study.tasks[release]]

    def jobs(self, target: str) -> Iterator[Job]:
        """Yield the jobs of all entries of a table that can be computed."""
        for entry in self.entries.values():
            if entry.target != target or not entry.computed or self.lacking(entry):
                continue
            for release in self.releases_of(entry):
                for context_s in entry.windows(self.study_config):
                    yield Job(release=release, entry=entry, context_s=context_s)

    def job(self, release: str, entry: str, context: str) -> Job:
        """Return one job; raise ConfigError where there is no such job."""
        for target in TARGETS:
            for job in self.jobs(target):
                if (job.release, job.entry.id, job.context) == (release, entry, context):
                    return job
        raise ConfigError(f"{self.study.name} has no entry {entry!r} on release {release!r} at {context!r}")

    def record(self, job: Job) -> dict[str, Any]:
        """Return all that decides the predictions of a job: its spec."""
        entry = job.entry
        record: dict[str, Any] = {
            "study": self.study.name,
            "release": job.release,
            "task": entry.task,
            "context_s": job.context_s,
            "kind": entry.kind,
            "revision": KINDS[entry.kind].revision,
            "settings": entry.settings,
            "seeds": list(entry.seeds),
            "options": self.options(entry),
            "subset": self.study_config["subset"],
        }
        if self.encoder(entry) is not None:
            record["encoder"] = self.encoder(entry).record()  # type: ignore[union-attr]
        if self.recognised(entry):
            record |= self.recogniser
        if entry.trained:
            record["last_layer"] = self.study_config["last_layer"]
        return record

    def encoder(self, entry: Entry) -> Spec | None:
        """Return the spec of the entry's encoder, where it has features of its own."""
        return self.spec_of(entry.encoder) if entry.features else None

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
        splits = ("val", "test") if job.entry.trained else ("test",)
        inputs = self._material(job, splits)
        if job.entry.trained:
            name, release, entry = self.study.name, job.release, job.entry
            inputs += [paths.fit(name, release, entry.id, job.context, seed) for seed in entry.seeds]
        return inputs

    def score_inputs(self, job: Job) -> list[Path]:
        """Return what scoring reads besides the predictions."""
        splits = ("val", "test") if job.entry.trained else ("test",)
        return self._labels(job, splits)

    def _labels(self, job: Job, splits: tuple[str, ...]) -> list[Path]:
        name, release, task = self.study.name, job.release, job.entry.task
        return [self.release_manifest(release), *(paths.samples(name, release, task, split) for split in splits)]

    def _material(self, job: Job, splits: tuple[str, ...]) -> list[Path]:
        inputs = self._labels(job, splits)
        encoder = self.encoder(job.entry)
        if encoder is not None and job.entry.features == "frames":
            inputs += [paths.features_manifest(self.study.name, shard, encoder) for shard in self.all_shards]
        elif encoder is not None:
            wanted = [video.id for video in self.study.videos() if video.split in splits and video.id in self.videos]
            name, release, task = self.study.name, job.release, job.entry.task
            inputs += [paths.text_manifest(name, release, task, video, encoder) for video in wanted]
        return inputs + (self.transcript_manifests if self.recognised(job.entry) else [])

    def recognised(self, entry: Entry) -> bool:
        """Return whether the entry reads transcripts that a recogniser made."""
        return entry.transcribed and self.study_config["transcripts"] == "asr"

    def encode_inputs(self, release: str, task: str, video: str) -> list[Path]:
        """Return what encoding a recording's texts reads."""
        (split,) = {v.split for v in self.study.videos() if v.id == video} - {None}
        inputs = [self.release_manifest(release), paths.samples(self.study.name, release, task, str(split))]
        if self.study_config["transcripts"] == "asr":
            folder = paths.transcripts(self.study.name, self.engine)
            inputs.append(paths.manifest(folder, self.shards[video]))
        return inputs

    def encode_params(self, task: str) -> str:
        """Return what a recording's texts must be encoded again for, as text."""
        source = self.study_config["transcripts"]
        return canonical_json({"contexts_s": self.study_config["contexts_s"][task], "transcripts": source})

    def options(self, entry: Entry) -> dict[str, str]:
        """Return the named options that matter to the entry's numbers, besides those of a metric."""
        unlimited = entry.features == "frames" and None in entry.windows(self.study_config)
        spans = {"spans": "annotated"} if self.annotated and (unlimited or self.recognised(entry)) else {}
        return options(entry, self.study_config) | spans

    @property
    def video_inputs(self) -> list[Path]:
        """What must be there before videos are looked for: the releases, where these say which spans are read."""
        return [self.release_manifest(release) for release in self.releases] if self.annotated else []

    def spans(self) -> dict[str, list[list[float]]]:
        """Return the spans of each video that samples of the configured releases see at any window length.

        They are the labelled parts, longer by half the longest window on either side, and the steps' animations. Raises
        ReleaseError where a release is not there.
        """
        found: dict[str, list[tuple[float, float]]] = {}
        for name in self.releases:
            for video, recording in self.study.load(name).recordings.items():
                labelled = [(part.start_s, part.end_s) for part in recording.segments if part.label != -1]
                animations = [step.animation_s for step in recording.steps if step.animation_s]
                for parts, more_s in ((labelled, self._longest_s / 2 + SLACK_S), (animations, SLACK_S)):
                    longer = [(max(0.0, start_s - more_s), end_s + more_s) for start_s, end_s in parts]
                    found.setdefault(video, []).extend(longer)
        return {video: merged(spans) for video, spans in found.items()}

    @cached_property
    def spans_params(self) -> dict[str, Any]:
        """By video, what it must be looked for again for, besides its releases, as it decides its spans."""
        return {video.id: [self.releases, self._longest_s, SLACK_S] for video in self.study.videos()}

    @property
    def _longest_s(self) -> float:
        """The longest window of what is made from videos."""
        made = [entry for entry in self.entries.values() if entry.features == "frames" or self.recognised(entry)]
        return max((length_s or 0.0 for entry in made for length_s in entry.windows(self.study_config)), default=0.0)

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

    def table_params(self, target: str) -> str:
        """Return what a table must be made again for, besides scores: declarations, needs and the paper's numbers."""
        listed = [
            asdict(entry) | {"needs": self.lacking(entry), "options": self.options(entry)}
            for entry in self.entries.values()
            if entry.target == target
        ]
        paper = Path(__file__).parent / "paper" / "table2.csv"
        choices = {key: self.study_config[key] for key in ("releases", "contexts_s", "subset")}
        return digest([listed, choices, sha256_file(paper)])

    @property
    def configured_backbones(self) -> Sequence[str]:
        """The frame backbones of the configured entries."""
        configured = self.study_config["video_encoders"]
        return sorted({e.encoder for e in self.entries.values() if e.features == "frames" and e.encoder in configured})

    @property
    def how_to_list(self) -> str:
        """What to do where a backbone wants listed clips."""
        return "name a backbone that describes each second"

    @property
    def listed_clips(self) -> dict[str, list[tuple[float, float]]]:
        """No entry is made from listed clips."""
        return {}

    @property
    def backbones(self) -> Sequence[str]:
        """The frame backbones of the entries that can be computed."""
        jobs = (job for target in TARGETS for job in self.jobs(target))
        return sorted({job.entry.encoder for job in jobs if job.entry.features == "frames"})

    @property
    def uses_videos(self) -> bool:
        """Whether an entry that can be computed uses videos."""
        recognised = any(self.recognised(job.entry) for target in TARGETS for job in self.jobs(target))
        return recognised or bool(self.backbones)

    @property
    def drops(self) -> bool:
        """Whether videos are deleted once all is computed from them."""
        return super().drops and self.uses_videos

    def report_inputs(self) -> list[Path]:
        """Return what the report shows besides the table: what the stages made of the videos that entries use."""
        recognised = any(self.recognised(job.entry) for job in self.jobs("table2"))
        frames = any(job.entry.features == "frames" for job in self.jobs("table2"))
        shown = self.thumbnail_manifests if recognised or frames else []
        return [*shown, *(self.transcript_manifests if recognised else []), *self.dropped]
