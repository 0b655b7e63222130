"""Studies: data sets in Spacewalk-18's form, for its protocol."""

from dataclasses import dataclass
from pathlib import Path

from stepline.datasets import demo, spacewalk
from stepline.datasets.release import Released, ReleaseFile
from stepline.datasets.schema import SPLITS, Release, Split
from stepline.errors import ConfigError, ReleaseError
from stepline.mirror import Wanted

STEP_RECOGNITION = "step_recognition"
RETRIEVAL = "intra-video_retrieval"


@dataclass(frozen=True, kw_only=True)
class Study(Released):
    """A data set and the constants of its sampling.

    fps: the frame rate of frame indices, per release. tasks: the tasks of each release.
    as_released: releases whose samples are read instead of constructed.
    samples_per_video: for each task. min_distance_s: the minimum distance between query and candidates of retrieval.
    boundary_s: their minimum distance from a segment boundary.
    """

    fps: dict[str, float]
    tasks: dict[str, tuple[str, ...]]
    as_released: frozenset[str]
    samples_per_video: int
    min_distance_s: float
    boundary_s: float

    def splits(self, release: str, task: str) -> tuple[Split, ...]:
        """Return the splits with samples in the release (v0's retrieval train samples were never released)."""
        if release not in self.as_released:
            return SPLITS
        released = {file.path for file in self.release_files(release)}
        return tuple(split for split in SPLITS if f"tasks/{task}/{split}.json" in released)

    def load(self, release: str) -> Release:
        """Return the release after checking it."""
        loaded = spacewalk.load(self.folder(release), study=self.name, name=release, fps=self.fps[release])
        listed = {video.id for video in self.videos()}
        if unknown := sorted(set(loaded.recordings) - listed):
            raise ReleaseError(f"{self.folder(release)}: recording {unknown[0]} is not a video of {self.name}")
        return loaded


def _demo_files(_release: str) -> tuple[ReleaseFile, ...]:
    paths = ("data/annotation.json", "data/steps.json", "tasks/split.json")
    return tuple(ReleaseFile(path=path, wanted=Wanted(path=f"demo/release/{Path(path).name}")) for path in paths)


STUDIES = {
    "spacewalk": Study(
        name="spacewalk",
        title="Spacewalk-18",
        known=tuple(spacewalk.FPS),
        fps=spacewalk.FPS,
        tasks={
            "v0": (STEP_RECOGNITION, RETRIEVAL),
            "v1": (STEP_RECOGNITION, RETRIEVAL),
            "v2": (STEP_RECOGNITION,),
        },
        as_released=frozenset({"v0"}),
        samples_per_video=2000,
        min_distance_s=30.0,
        boundary_s=15.0,
        videos=spacewalk.videos,
        release_files=spacewalk.release_files,
    ),
    "demo": Study(
        name="demo",
        title="Demo study, in Spacewalk-18's form",
        known=("demo",),
        fps={"demo": demo.FPS},
        tasks={"demo": (STEP_RECOGNITION, RETRIEVAL)},
        as_released=frozenset(),
        samples_per_video=demo.SAMPLES_PER_VIDEO,
        min_distance_s=demo.MIN_DISTANCE_S,
        boundary_s=demo.BOUNDARY_S,
        videos=demo.videos,
        release_files=_demo_files,
    ),
}


def study(name: str, release: str | None = None) -> Study:
    """Return the study with that name; raise ConfigError if the study or its release does not exist."""
    if name not in STUDIES:
        raise ConfigError(f"study {name!r} is not known; choose from {', '.join(STUDIES)}")
    if release is not None and release not in STUDIES[name].fps:
        raise ConfigError(f"release {release!r} of {name} is not known; choose from {', '.join(STUDIES[name].fps)}")
    return STUDIES[name]
