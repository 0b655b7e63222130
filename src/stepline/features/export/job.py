"""What the writer of a form is given."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepline.datasets.schema import Split
from stepline.datasets.segments import LabelledSpan
from stepline.features.bank import Bank
from stepline.features.zarr_file import Rows
from stepline.progress import progress


@dataclass(frozen=True, kw_only=True)
class Annotated:
    """The annotations of a video. duration_s: None if it is unknown. segments: in order of time."""

    split: Split | None = None
    duration_s: float | None = None
    segments: Sequence[LabelledSpan] = ()


@dataclass(frozen=True, kw_only=True)
class Export:
    """A bank and the folder ``out`` that it is written to. names: by video, ``<prefix><video><suffix>``."""

    bank: Bank
    out: Path
    names: Mapping[str, str]
    prefix: str
    suffix: str
    annotations: Mapping[str, Annotated]

    def videos(self) -> Iterator[tuple[str, str, Rows]]:
        """Yield each video's id, name and (T, D) rows, one video at a time, and show the progress."""
        self.bank.fetch()
        for video, name in progress(self.names.items(), what="export", unit="videos"):
            yield video, name, self.bank[video]

    def times_s(self, video: str) -> NDArray[np.float64]:
        """Return the (T, 2) start and end of each row: of its listed clip, or of the hop that starts at its time."""
        if video in self.bank.clips:
            clips = self.bank.clips[video]
            return np.array(sorted(clips, key=clips.__getitem__), np.float64).reshape(-1, 2)
        blocks = self.bank.blocks[video]
        edges = [block.t0_s + np.arange(block.length + 1) * block.hop_s for block in blocks]
        return np.concatenate([np.stack([edge[:-1], edge[1:]], 1) for edge in edges])

    def about(self, video: str) -> dict[str, Any]:
        """Return what the rows of a video stand for: ``whole`` if row k is at k x ``hop_s``, and the gaps in them."""
        damaged = self.bank.damaged.get(video)
        return {"whole": self.bank.whole(video), "gaps": damaged.gaps if damaged else []}

    def annotated(self, video: str) -> Annotated:
        """Return the annotations of a video, without segments if it has none."""
        return self.annotations.get(video, Annotated())

    def duration_s(self, video: str) -> float:
        """Return the duration of a whole video; if it is unknown, that of its rows."""
        known = self.annotated(video).duration_s
        return round(self.bank.length(video) * self.bank.hop_s, 6) if known is None else known
