"""What methods work on: one release's windows, and the features of an entry."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from stepline import paths
from stepline.availability import Record, read_availability
from stepline.backbones.registry import text_encoder
from stepline.benchmarks.oepp.entries import Entry
from stepline.benchmarks.oepp.plan import OPENEVENT, RELEASED_TEXT, Job, Plan
from stepline.benchmarks.oepp.windows import Window, observation_rows, windows
from stepline.config import Config
from stepline.datasets import oepp
from stepline.datasets.oepp import Part
from stepline.errors import ConfigError
from stepline.features.bank import Bank, open_named
from stepline.features.text import TextStore, encode_texts
from stepline.io import write_json


@dataclass(frozen=True)
class Observations:
    """Start and end observations of windows. rows: (R, D) float32, the last one zeros; index: (N, 6), rows of each."""

    rows: NDArray[np.float32]
    index: NDArray[np.int64]


@dataclass(frozen=True)
class Material:
    """One release as an entry sees it."""

    plan: Plan
    release: str
    entry: Entry

    @property
    def options(self) -> Config:
        """OEPP's part of the configuration."""
        return self.plan.study_config

    def pool(self, part: Part) -> tuple[str, ...]:
        """Return the actions of a part of the split: a plan holds places in it."""
        return oepp.pool(self.release, part)

    def windows(self, part: Part) -> list[Window]:
        """Return all windows of a part."""
        if part not in self._windows:
            videos = oepp.load(self.release, part)
            self._windows[part] = windows(videos, self.entry.horizon, self.options["windows"]["padding"])
        return self._windows[part]

    @cached_property
    def _windows(self) -> dict[Part, list[Window]]:
        return {}

    def labels(self, part: Part, of: Sequence[Window]) -> list[tuple[int, ...]]:
        """Return the places of windows' true actions in the part's pool."""
        place = {action: number for number, action in enumerate(self.pool(part))}
        return [tuple(place[action] for action in window.actions) for window in of]

    def used(self, part: Part) -> list[Window]:
        """Return the windows of the subset's videos of which all that the entry reads is there."""
        return [window for window in self.windows(part) if window.video in self._chosen and self._is_there(window)]

    def late(self, part: Part) -> int:
        """Return how many windows are not ``used`` for beginning after the features of their video end."""
        if not self.entry.features:
            return 0
        there = (each for each in self.windows(part) if each.video in self._chosen and each.video in self.bank)
        return sum(self._rows(window) is None for window in there)

    @cached_property
    def _chosen(self) -> frozenset[str]:
        return self.plan.chosen()

    def _is_there(self, window: Window) -> bool:
        if self.entry.made.decoded:
            return self.video_file(window.video) is not None
        return not self.entry.features or (window.video in self.bank and self._rows(window) is not None)

    # Videos

    def video_file(self, video: str) -> Path | None:
        """Return the file of a video, None where it is not there."""
        record = self._availability.get(video)
        there = record is not None and record.status == "present" and Path(record.path).exists()
        return Path(record.path) if record is not None and there else None

    @cached_property
    def _availability(self) -> dict[str, Record]:
        records = self.plan.videos.pipeline.videos.availability
        return {k: v for path in records for k, v in read_availability(path).items()}

    # Features

    @cached_property
    def bank(self) -> Bank:
        """The bank of the entry's features, a row a second; raise ConfigError where its rows are others."""
        (name,) = self.plan.features(self.entry)
        bank = open_named(self.plan.videos, name)
        bank.check_whole()
        if bank.hop_s not in (0, 1):
            raise ConfigError(f"features {name!r} have a row each {bank.hop_s:g} s; OEPP reads one a second")
        return bank

    def _rows(self, window: Window) -> tuple[int, ...] | None:
        """Return the rows of a window's observations; None where it begins after the features end."""
        try:
            return observation_rows(
                window.start, window.end, len(self.bank[window.video]), self.options["windows"]["rows"]
            )
        except ValueError:
            return None

    def observations(self, of: Sequence[Window]) -> Observations:
        """Return the observations of windows that are ``used``: those rows of the bank that they name, once each."""
        listed: dict[str, list[tuple[int, tuple[int, ...]]]] = {}
        for number, window in enumerate(of):
            rows = self._rows(window)
            assert rows is not None
            listed.setdefault(window.video, []).append((number, rows))
        index, parts, offset = np.empty((len(of), 6), dtype=np.int64), [], 0
        for video, each in listed.items():
            wanted = np.array([rows for _, rows in each])
            there = np.unique(wanted[wanted >= 0])
            parts.append(np.asarray(self.bank[video][there], dtype=np.float32))
            index[[number for number, _ in each]] = np.where(wanted < 0, -1, offset + np.searchsorted(there, wanted))
            offset += len(there)
        index[index < 0] = offset
        return Observations(np.concatenate([*parts, np.zeros((1, self.bank.dimension), dtype=np.float32)]), index)

    def text(self, part: Part) -> NDArray[np.float32]:
        """Return the (N, D) vectors of the actions in a part's pool, as they are: released ones are not unit vectors.

        Raises ConfigError where a file of vectors lacks an action, or holds vectors of different lengths.
        """
        name, pool = self.plan.text(self.entry), self.pool(part)
        if name == "released":
            vectors = oepp.text_features(self.release, RELEASED_TEXT[self.entry.features])
        elif "/" in name:
            vectors = oepp.read_vectors(Path(name).expanduser())
        else:
            return self._encoded(name, pool)
        if absent := [action for action in pool if action not in vectors]:
            raise ConfigError(f"oepp.features.{self.entry.features}.text: {name!r} lacks the action {absent[0]!r}")
        return np.array([vectors[action] for action in pool], dtype=np.float32)

    def _encoded(self, name: str, pool: Sequence[str]) -> NDArray[np.float32]:
        encoder = text_encoder(name, self.plan.config)
        folder = paths.text_store(OPENEVENT, "actions", encoder.spec)
        write_json(paths.spec_record(encoder.spec), encoder.spec.record())
        encode_texts(pool, encoder, folder, what=f"{name} on actions")
        return TextStore(folder, encoder.spec)(pool)

    @property
    def spec(self) -> str:
        """The 8 hex digits of what decides the entry's predictions."""
        return self.plan.spec(Job(release=self.release, entry=self.entry))
