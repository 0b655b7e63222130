"""The inputs of HiREST's methods: pairs of a query and a video, the pool of videos, features and transcripts."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from stepline.benchmarks.hirest.benchmark import Hirest
from stepline.datasets import hirest
from stepline.datasets.hirest import Pair, Subtitle
from stepline.errors import ConfigError
from stepline.features.bank import Bank
from stepline.runs.inputs import Inputs


@dataclass(frozen=True, kw_only=True)
class PoolVideo:
    """A video of the pool of video retrieval."""

    video: str


class HirestInputs(Inputs[Hirest]):
    """The inputs of one entry."""

    def load(self, split: str) -> Iterable[Pair | PoolVideo]:
        """Return the pairs of a split that have a moment; for ``pool``, the videos to rank.

        In ``test``, a moment is known only if the released steps imply it or the authors' labels are available.
        """
        if split == "pool":
            return [PoolVideo(video=video) for video in hirest.pool()]
        pairs = [pair for pair in hirest.load(split) if pair.clippable]
        if split != "test":
            return pairs
        known = {pair.video: pair for pair in hirest.load("test_507")}
        return [replace(known[pair.video], split=split) if pair.video in known else pair for pair in pairs]

    @property
    def evaluated(self) -> list[Pair]:
        """The pairs of the entry's splits that it can predict."""
        return [pair for split in self.entry.splits for pair in self.used(split)]

    def each_second(self, name: str) -> Bank:
        """Return the named bank of features, with one row per second.

        Raises ConfigError for another rate, StoreError if the features cover only parts of videos.
        """
        bank = self.open_bank(name)
        bank.check_whole()
        if bank.hop_s not in (0, 1):
            raise ConfigError(f"features {name!r} have one row per {bank.hop_s:g} s; HiREST needs one per second here")
        return bank

    @cached_property
    def queries(self) -> Mapping[str, Sequence[str]]:
        """The videos of the pool that answer each query of test, including unavailable videos."""
        found: dict[str, list[str]] = {}
        for pair in hirest.load("test"):
            found.setdefault(pair.query, []).append(pair.video)
        return found

    def has(self, unit: Pair | PoolVideo) -> bool:
        """Return whether all inputs of the entry for a video are available, including a transcript if it reads one."""
        return super().has(unit) and (not self.benchmark.transcripts(self.entry) or unit.video in self.subtitles)

    @cached_property
    def subtitles(self) -> Mapping[str, Sequence[Subtitle]]:
        """The transcript of each video that has one."""
        if self.options["transcripts"] == "released":
            return hirest.subtitles(video.id for video in self.footage.dataset.videos())
        return {
            video: tuple(
                Subtitle(start_s=line.start_s, end_s=line.end_s, text=line.text) for line in self.sentences(video)
            )
            for video in self.spoken
        }
