"""The base of all data sets: listed videos, divided into shards."""

from collections.abc import Callable
from dataclasses import dataclass

from stepline import paths
from stepline.datasets import shards
from stepline.datasets.schema import Split, Video


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """A named list of videos.

    videos: all videos in the listed order. left_out: one line that counts the other files of the user's folder, or "".
    segments: the user's file of segments. listed_by: the release that lists the videos, such as ``pss/tasty``, or "".
    """

    name: str
    title: str
    videos: Callable[[], tuple[Video, ...]]
    left_out: Callable[[], str] = str
    segments: str = ""
    listed_by: str = ""

    @property
    def split_of(self) -> dict[str, Split]:
        """The split of each listed video that has one."""
        return {video.id: video.split for video in self.videos() if video.split}

    def shards(self, hours: float) -> dict[str, str]:
        """Return the shard of every listed video. Videos in ``shards.csv`` keep their shard."""
        return shards.assign(self.videos(), hours=hours, known=shards.read(paths.shards(self.name)))
