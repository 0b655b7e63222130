"""What every data set has: videos under one name, in shards."""

from collections.abc import Callable
from dataclasses import dataclass

from stepline import paths
from stepline.datasets import shards
from stepline.datasets.schema import Video


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """Listed videos under one name.

    videos: all of them, in the listed order. segments: the user's file of them. listed_by: the release that lists the
    videos, such as ``pss/tasty``, where one does.
    """

    name: str
    title: str
    videos: Callable[[], tuple[Video, ...]]
    segments: str = ""
    listed_by: str = ""

    def shards(self, hours: float) -> dict[str, str]:
        """Return the shard of every listed video; those in ``shards.csv`` stay as they are."""
        return shards.assign(self.videos(), hours=hours, known=shards.read(paths.shards(self.name)))
