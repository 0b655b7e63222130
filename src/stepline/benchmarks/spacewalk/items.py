"""Samples read from their files, with times in seconds."""

from dataclasses import dataclass
from typing import Any

from stepline import paths
from stepline.datasets.schema import Release, Split
from stepline.datasets.studies import STEP_RECOGNITION
from stepline.errors import StoreError
from stepline.io import read_json


@dataclass(frozen=True, kw_only=True)
class Item:
    """One sample. ``id`` is unique only within its video.

    frame, t_s: the frame number and the time of the window's centre; in retrieval, of the query. candidates_s: the
    centres of the two candidates in retrieval. label: the step, or the index of the positive candidate.
    """

    id: int
    frame: int
    t_s: float
    label: int
    candidates_s: tuple[float, ...] = ()

    @property
    def times_s(self) -> tuple[float, ...]:
        """All window centres of the sample: the query, then the candidates."""
        return (self.t_s, *self.candidates_s)


def read_items(release: Release, task: str, split: Split) -> dict[str, list[Item]]:
    """Return the samples of a split by video, in the released order.

    Raises StoreError if the file contains anything but samples of the split's recordings.
    """
    path = paths.samples(release.study, release.name, task, split)
    content = read_json(path)
    read = _step if task == STEP_RECOGNITION else _query
    try:
        found = {video: [read(sample, release.fps) for sample in samples] for video, samples in content.items()}
        n_labels = {video: len(release.recordings[video].steps) if read is _step else 2 for video in found}
        whole = found.keys() == set(release.splits[split]) and all(
            0 <= item.label < n_labels[video] for video, items in found.items() for item in items
        )
    except (AttributeError, KeyError, TypeError):
        whole = False
    if not whole:
        raise StoreError(f"{path} does not contain the samples of {release.name}: remove it and run the same again")
    return found


def _step(sample: dict[str, Any], fps: float) -> Item:
    frame = sample["frame_index"]
    return Item(id=sample["id"], frame=frame, t_s=frame / fps, label=sample["label"])


def _query(sample: dict[str, Any], fps: float) -> Item:
    frame = sample["query_frame_index"]
    candidates_s = tuple(each / fps for each in sample["candidate_frame_indices"])
    return Item(id=sample["id"], frame=frame, t_s=frame / fps, label=sample["label"], candidates_s=candidates_s)
