"""Samples as read back from their files, with times in seconds."""

from dataclasses import dataclass

from stepline import paths
from stepline.datasets.schema import Release, Split
from stepline.datasets.studies import STEP_RECOGNITION
from stepline.io import read_json


@dataclass(frozen=True, kw_only=True)
class Item:
    """One sample. ``id`` is unique only within its video.

    t_s: the centre of the window (the query's, in retrieval), and ``frame``, its frame. candidates_s: the centres of
    retrieval's two candidates.
    label: the step, or the index of the positive candidate.
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
    """Return the samples of a split by video, in the released order."""
    content = read_json(paths.samples(release.study, release.name, task, split))
    fps = release.fps
    if task == STEP_RECOGNITION:
        return {
            video: [
                Item(id=i["id"], frame=i["frame_index"], t_s=i["frame_index"] / fps, label=i["label"]) for i in items
            ]
            for video, items in content.items()
        }
    return {
        video: [
            Item(
                id=i["id"],
                frame=i["query_frame_index"],
                t_s=i["query_frame_index"] / fps,
                label=i["label"],
                candidates_s=tuple(frame / fps for frame in i["candidate_frame_indices"]),
            )
            for i in items
        ]
        for video, items in content.items()
    }
