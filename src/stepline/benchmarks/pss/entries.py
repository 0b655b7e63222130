"""Entries of PSS, as declared in ``tables.yaml``."""

from dataclasses import dataclass

from stepline import declared
from stepline.datasets.schema import Split

PARTS = {"youcook2": 8, "tasty": 10}
"""The average number of segments of a video (Sec. 5.2, baseline i)."""
SEGMENT_S = {"youcook2": 19.6, "tasty": 6.0}
"""The average duration of a segment, in seconds (Sec. 5.2, baseline ii)."""


@dataclass(frozen=True, kw_only=True)
class Kind(declared.Kind):
    """How predictions are made. captions: whether sentences are written."""

    captions: bool = False


KINDS = {
    "uniform": Kind(module="uniform"),
    "frequent": Kind(module="frequent", trains=True, captions=True, scored_in="meteor"),
    "pdvc": Kind(module="pdvc", options="pdvc", trains=True, captions=True, environment="text", scored_in="meteor"),
    "procnet": Kind(module="procnet", options="procnet", trains=True, environment="text"),
}


@dataclass(frozen=True, kw_only=True)
class Entry(declared.Entry):
    """What is computed. See the head of ``tables.yaml`` for the fields."""

    splits: tuple[Split, ...] = ("test",)

    @property
    def made(self) -> Kind:
        """How its predictions are made."""
        return KINDS[self.kind]

    @property
    def inputs(self) -> tuple[str, ...]:
        """What it may see, words of `stepline.tables.SEES`."""
        seen = ["video"] if self.features else []
        seen += ["train"] if self.made.trains else []
        seen += ["val"] if self.trained else []
        if self.settings.get("proposals") == "ground_truth":
            seen.append("segments")
        elif not self.features:
            seen += ["duration", "segment_count"] if self.settings.get("by") == "count" else ["duration"]
        return tuple(seen)
