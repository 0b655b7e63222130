"""Step recognition in the labelled segments of the user's own data sets."""

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from stepline.backbones.registry import text_tower, with_weights
from stepline.backbones.weights import locate
from stepline.benchmark import Entry, Job, Kind, Line, Metric, Option, Table
from stepline.benchmarks.segments.recognition import Segment, StepRecognition
from stepline.config import Config
from stepline.datasets.dataset import Dataset
from stepline.datasets.release import REBUILT, Released, ReleaseFile
from stepline.datasets.segments import has_labels, read_segments
from stepline.errors import ConfigError, MissingError
from stepline.footage import Footage
from stepline.io import sha256_file
from stepline.mirror import Wanted
from stepline.needs import Need
from stepline.pipeline import Pipeline
from stepline.spec import TextSpec, digest

FILE = "segments.csv"
"""The copy of a data set's file of segments in its release."""


class Segments(StepRecognition):
    """The data sets with labelled segments, which take the place of releases, also in paths.

    Each of their backbones has a linear classifier and, if it has a text tower, a zero-shot entry. Backbones of listed
    clips have none.
    """

    about = "step recognition in your own labelled segments"
    how_to_read = "Markers are values, with the 95 % interval by bootstrap over the videos."
    folder = Path(__file__).parent
    studies = ("segments",)
    kinds = {
        **StepRecognition.kinds,
        "zero_shot": Kind(method="zero_shot:ZeroShot", sees=("segment", "video"), environment="networks"),
    }
    metrics = {
        **StepRecognition.metrics,
        "hours": Metric(
            title="Hours", definition="the sum over videos of the end of the last segment, in hours", unit=""
        ),
    }

    @cached_property
    def footage(self) -> Mapping[str, Footage]:
        """The data sets with labelled segments, with the pipelines that their users configure."""
        named = {name: each["segments"] for name, each in self.config["datasets"].items() if "segments" in each}
        return {
            name: Footage(Pipeline.of(self.config, name), f"datasets.{name}.backbones")
            for name, file in named.items()
            if has_labels(name, file)
        }

    @cached_property
    def datasets(self) -> Mapping[str, Dataset]:
        """The data sets."""
        return {name: footage.dataset for name, footage in self.footage.items()}

    @cached_property
    def released(self) -> Released:
        """The users' files of segments."""
        return Released(name=self.name, title=self.title, known=tuple(self.datasets), release_files=self._files)

    def _files(self, release: str) -> tuple[ReleaseFile, ...]:
        file = os.path.abspath(self.datasets[release].segments)
        wanted = Wanted(path=f"{self.name}/{release}/{FILE}", sha256=sha256_file(file))
        return (ReleaseFile(path=FILE, wanted=wanted, file=file),)

    @cached_property
    def options(self) -> Config:
        """The study's part of the configuration, with its data sets as releases and their backbones as features."""
        return super().options | {"releases": [*self.datasets], "features": {name: [name] for name in self._towers}}

    @cached_property
    def _towers(self) -> Mapping[str, TextSpec | None]:
        """The backbones of the data sets, each with its text tower if it is known to have one."""
        found: dict[str, TextSpec | None] = {}
        for features in (footage.pipeline.features for footage in self.footage.values()):
            for name in features.configured:
                if not features.describes_clips(name):
                    try:
                        found[name] = text_tower(name, self.config)
                    except MissingError:
                        found[name] = None
        return found

    @property
    def declares(self) -> Mapping[str, Any]:
        """The content of ``tables.yaml``, with the entries and lines of the backbones."""
        declared = super().declares
        entries, lines = dict(declared["entries"]), list(declared["tables"]["table1"]["lines"])
        form = {name: re.sub("[^a-z0-9]+", "-", name.lower()).strip("-") for name in self._towers}
        alike = Counter(form.values())
        for name, tower in self._towers.items():
            made = [("linear", "Linear", "")] + ([("zero_shot", "Zero-shot", "zero-shot")] if tower else [])
            for kind, method, setting in made:
                entry = f"{kind.replace('_', '-')}-{form[name]}" + (f"-{digest(name)}" if alike[form[name]] > 1 else "")
                entries[entry] = {"kind": kind, "features": name}
                lines.append({"entry": entry, "method": method, "modality": name, "setting": setting})
        tables = declared["tables"] | {"table1": declared["tables"]["table1"] | {"lines": lines}}
        return {**declared, "entries": entries, "tables": tables}

    @property
    def targets(self) -> tuple[str, ...]:
        """The default targets; none if no data set has labelled segments."""
        return super().targets if self.datasets else ()

    def check(self) -> None:
        """Raise ConfigError if the name of a data set has another meaning after ``segments/``."""
        if taken := self.datasets.keys() & {"videos", REBUILT}:
            raise ConfigError(
                f"config: datasets: {min(taken)!r} cannot be the name of a data set with labels; choose another"
            )

    def stands(self, table: Table, line: Line, release: str) -> bool:
        """Return whether the data set has the line's backbone, and speech if the line reads it."""
        entry, pipeline = self.entries[line.entry], self.footage[release].pipeline
        if self.hears(entry) and "speech" not in pipeline.demand.stages:
            return False
        seen = {*self.features(entry)} <= {*pipeline.features.configured}
        return seen and super().stands(table, line, release)

    def segments(self, release: str, split: str) -> Iterable[Segment]:
        """Yield the labelled segments of a split, in the order of videos and times."""
        listed = self._read(release, str(self.released.release_file(release, FILE)))
        return (segment for own, segment in listed if own == split)

    def _read(self, release: str, file: str) -> Iterator[tuple[str, Segment]]:
        """Yield the labelled segments of a file, each with the split of its video."""
        splits = self.datasets[release].split_of
        found = read_segments(release, file, {video.id for video in self.datasets[release].videos()})
        for video, split in splits.items():
            spans = found.get(video, [])
            end_s = max((span.end_s for span in spans), default=0.0)
            for span in (span for span in spans if span.label):
                made = Segment(video=video, start_s=span.start_s, end_s=span.end_s, duration_s=end_s, step=span.label)
                yield split, made

    @cached_property
    def _annotated(self) -> Mapping[str, str]:
        """The digest of each data set's labelled segments and their splits, as the user's file has them now."""
        return {
            name: digest([[split, vars(segment)] for split, segment in self._read(name, data.segments)])
            for name, data in self.datasets.items()
        }

    def decides(self, job: Job) -> Mapping[str, Any]:
        """Return the digest of the segments, which also depend on the listed videos, and the text tower."""
        tower = self._tower(job.entry)
        return {"segments": self._annotated[job.release], **({"text": with_weights(tower).record()} if tower else {})}

    def table_params(self, file: str) -> str:
        """Return the cache key of a table: counts depend on the segments themselves."""
        return digest([super().table_params(file), dict(self._annotated)])

    def _tower(self, entry: Entry) -> TextSpec | None:
        return self._towers[entry.features] if entry.kind_name == "zero_shot" else None

    def missing_besides(self, entry: Entry, release: str) -> Sequence[Need]:
        """Return the missing packages of the classifier, and the missing weights of the text tower."""
        tower = self._tower(entry)
        weights = [Need("weights", name) for name in tower.weights if not locate(name)] if tower else []
        return [*super().missing_besides(entry, release), *weights]

    @property
    def weights(self) -> Sequence[str]:
        """The names of the missing weights of text towers."""
        return [name for tower in self._towers.values() if tower for name in tower.weights if not locate(name)]

    def shown_options(self, entry: Entry, release: str) -> Mapping[str, Option]:
        """Return none: a line names its backbone."""
        return {}
