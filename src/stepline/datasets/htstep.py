"""HT-Step (Afouras et al., 2023): the steps of wikiHow articles and their segments in videos.

``v1``: the taxonomy of steps and the videos of each split, which are public. ``annotations``: the segments, and
``candidates``: the steps that annotators looked for in each video; both are the user's copies of the authors' files.
``narrations``: the speech in the videos, from the user's copy of HowTo100M's captions. ``crosstask`` and ``coin``: data
sets for transfer and comparison.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from stepline.datasets import coin, crosstask, htstep_files, oepp
from stepline.datasets.dataset import Dataset
from stepline.datasets.htstep_files import SPLITS, TAXONOMY, VIDEOS, Match, Segment, Step
from stepline.datasets.release import Released, ReleaseFile
from stepline.datasets.schema import Split, Video
from stepline.errors import ReleaseError
from stepline.io import canonical_json, read_json, write_cache
from stepline.mirror import Wanted, cached_sha256

__all__ = [
    "DATASETS",
    "FILES",
    "NARRATIONS",
    "RELEASES",
    "SPLITS",
    "Held",
    "Recording",
    "Segment",
    "Statistics",
    "Step",
    "annotations_are_here",
    "articles",
    "candidates_are_here",
    "is_made",
    "labelled_splits",
    "load",
    "split_videos",
    "statistics",
    "taxonomy",
]

GITHUB = "https://raw.githubusercontent.com/facebookresearch/htstep/cca1deabf1be0794af51b9d172ba3498007c8878/data"
SUMMARIES = Path(".stepline/htstep")
"""A cache of the splits with segments, by the annotation's sha256, because reading the whole file is slow."""
ANNOTATIONS, CANDIDATES, NARRATIONS = "annotations.json", "video_candidate_steps.json", "narrations.json"
WITHHELD = ("test_seen", "test_unseen")
"""The splits whose labels only the challenge has."""
PARTS: dict[str, Split] = {
    "train": "train",
    "val_seen": "val",
    "val_unseen": "val",
    "test_seen": "test",
    "test_unseen": "test",
}


def _public(path: str, sha256: str, size: int) -> ReleaseFile:
    return ReleaseFile(
        path=path, wanted=Wanted(path=f"htstep/{path}", sha256=sha256, size=size), url=f"{GITHUB}/{path}"
    )


def _own(release: str, path: str) -> tuple[ReleaseFile, ...]:
    return (ReleaseFile(path=path, wanted=Wanted(path=f"htstep/{release}/{path}")),)


FILES: dict[str, tuple[ReleaseFile, ...]] = {
    "v1": (
        _public(TAXONOMY, "f19e254020848a1bdb287810586eba3d2592706fc58071cb82199ba1b767ee66", 1360640),
        _public(VIDEOS, "94518280a612b46bae3012de0a352586c5a6078d66414613175e988d159aed0e", 392170),
    ),
    "annotations": _own("annotations", ANNOTATIONS),
    "candidates": _own("candidates", CANDIDATES),
    "narrations": _own("narrations", NARRATIONS),
    "crosstask": oepp.FILES["crosstask"],
    "coin": oepp.FILES["coin"],
}
"""The files of each release. Files without a URL are supplied by the user."""


@dataclass(frozen=True, kw_only=True)
class Recording:
    """A video with the steps of its article.

    activity: "" if unknown. steps: the ids of the steps of its article, in the article's order. For a video without
    segments these are its candidates, otherwise all steps of the activity, or () if the activity is unknown. segments:
    in the order of the annotation. labelled: whether it has segments.
    """

    video: str
    split: str
    activity: str
    steps: tuple[int, ...]
    segments: tuple[Segment, ...]
    labelled: bool


@dataclass(frozen=True, kw_only=True)
class Statistics:
    """The counts of splits (Table 1). labelled: videos with segments. activities: known activities of videos.

    steps: steps with segments.
    """

    videos: int
    labelled: int
    segments: int
    activities: int
    steps: int


RELEASES = Released(name="htstep", title="HT-Step", known=tuple(FILES), release_files=FILES.__getitem__)


def taxonomy() -> Mapping[int, Step]:
    """Return the steps by ascending id; the steps of an article are in its order.

    Raises ReleaseError if the file is absent, changed or has another form.
    """
    return _taxonomy(_fetched("v1", TAXONOMY))


def articles() -> Mapping[tuple[str, str], tuple[int, ...]]:
    """Return the ids of each article's steps in its order, by activity and variation; raise as ``taxonomy`` does."""
    return _articles(_fetched("v1", TAXONOMY))


def split_videos() -> Mapping[str, tuple[str, ...]]:
    """Return the ids of each split's videos in the released order; raise as ``taxonomy`` does."""
    return _split_videos(_fetched("v1", VIDEOS))


def load(split: str, match: Mapping[str, str] | None = None) -> tuple[Recording, ...]:
    """Return the videos of a split in the released order, without segments if the annotation is not available.

    match: the ``key`` of a segment that states whether it is a full match, and its values ``full`` and ``partial``;
    true and false of JSON are the texts ``true`` and ``false``. None: do not read it.

    Raises ReleaseError if a file is absent, changed or has another form: an unknown video, activity or step, a
    ``subset`` other than the video's split, a step of another activity, steps of two articles in one video, times that
    are negative, reversed or not numbers, an unknown value of ``key``, or no segment with ``key``.
    """
    own = (
        _fetched("annotations", ANNOTATIONS) if annotations_are_here() else None,
        _fetched("candidates", CANDIDATES) if candidates_are_here() else None,
    )
    return _recordings(_fetched("v1", TAXONOMY), _fetched("v1", VIDEOS), *own, Match(**match) if match else None)[split]


def annotations_are_here() -> bool:
    """Return whether the release ``annotations`` is fetched or in the mirror."""
    return RELEASES.is_there("annotations")


def candidates_are_here() -> bool:
    """Return whether the release ``candidates`` is fetched or in the mirror."""
    return RELEASES.is_there("candidates")


def labelled_splits() -> tuple[str, ...]:
    """Return the splits with segments in the annotation, fetched or in the mirror; () if there is no annotation.

    Raises ReleaseError if the file has another form; only ``load`` checks all of it.
    """
    labelled = _summary(held)[0] if (held := _held("annotations", ANNOTATIONS)) else ()
    return tuple(split for split in SPLITS if split in labelled)


def is_made() -> bool:
    """Return whether the annotation, fetched or in the mirror, contains made-up records: those with a key ``made``."""
    return _summary(held)[1] if (held := _held("annotations", ANNOTATIONS)) else False


def statistics(*splits: str) -> Statistics:
    """Return the total counts of these splits; raise ReleaseError as ``load`` does."""
    recordings = [recording for split in splits for recording in load(split)]
    return Statistics(
        videos=len(recordings),
        labelled=sum(recording.labelled for recording in recordings),
        segments=sum(len(recording.segments) for recording in recordings),
        activities=len({recording.activity for recording in recordings} - {""}),
        steps=len({segment.step for recording in recordings for segment in recording.segments}),
    )


Held = tuple[Path, str]
"""A file and its sha256, the cache key of its content."""


def _fetched(release: str, path: str) -> Held:
    """Return a file of a release; raise ReleaseError if it has changed since it was fetched."""
    file = RELEASES.release_file(release, path)
    return file, cached_sha256(file)


def _held(release: str, path: str) -> Held | None:
    """Return a file of a release if it is fetched or in the mirror, otherwise None."""
    file = RELEASES.held(release, path)
    return (file, cached_sha256(file)) if file else None


@cache
def _taxonomy(file: Held) -> dict[int, Step]:
    return htstep_files.taxonomy(file[0])


@cache
def _articles(file: Held) -> dict[tuple[str, str], tuple[int, ...]]:
    found: dict[tuple[str, str], list[int]] = {}
    for step in _taxonomy(file).values():
        found.setdefault((step.activity, step.variation), []).append(step.id)
    return {article: tuple(ids) for article, ids in found.items()}


@cache
def _split_videos(file: Held) -> dict[str, tuple[str, ...]]:
    return htstep_files.split_videos(file[0])


@cache
def _summary(file: Held) -> tuple[frozenset[str], bool]:
    kept = SUMMARIES / f"{file[1]}.json"
    if kept.is_file():
        found = read_json(kept)
        return frozenset(found["labelled"]), found["made"]
    labelled, made = htstep_files.summary(file[0])
    write_cache(kept, canonical_json({"labelled": sorted(labelled), "made": made}))
    return labelled, made


@cache
def _recordings(
    of_steps: Held, of_videos: Held, of_segments: Held | None, of_candidates: Held | None, match: Match | None
) -> dict[str, tuple[Recording, ...]]:
    """Return the videos of each split; raise ReleaseError as ``load`` does."""
    steps, videos = _taxonomy(of_steps), _split_videos(of_videos)
    split_of = {video: split for split in SPLITS for video in videos[split]}
    annotated = htstep_files.annotations(of_segments[0], steps, split_of, match) if of_segments else {}
    candidates = htstep_files.candidates(of_candidates[0], steps, split_of) if of_candidates else {}
    of_activity: dict[str, tuple[int, ...]] = {"": ()}
    for (activity, _), ids in _articles(of_steps).items():
        of_activity[activity] = of_activity.get(activity, ()) + ids

    def recording(video: str) -> Recording:
        activity, segments = annotated.get(video, ("", ()))
        asked = candidates.get(video, ())
        if asked and activity != (of_asked := steps[asked[0]].activity):
            if activity:
                raise ReleaseError(
                    f"{CANDIDATES}: {video} has steps of {of_asked!r}, but {activity!r} in {ANNOTATIONS}"
                )
            activity = of_asked
        article = _articles(of_steps)[activity, steps[segments[0].step].variation] if segments else ()
        return Recording(
            video=video,
            split=split_of[video],
            activity=activity,
            steps=article or asked or of_activity[activity],
            segments=segments,
            labelled=bool(segments),
        )

    return {split: tuple(map(recording, videos[split])) for split in SPLITS}


def _videos() -> tuple[Video, ...]:
    """Return the videos of all splits where ``v1`` is fetched or in the mirror."""
    return _listed(held) if (held := _held("v1", VIDEOS)) else ()


def _crosstask_videos() -> tuple[Video, ...]:
    """Return the annotated videos of CrossTask's primary tasks, each once, where the release is here."""
    return _of_crosstask(held) if (held := _held("crosstask", "crosstask_release.zip")) else ()


def _coin_videos() -> tuple[Video, ...]:
    """Return the videos of COIN's train and test, where the release is here."""
    train, test = (_held("coin", path) for path in ("coin_train_70.json", "coin_test_30.json"))
    return _of_coin(train, test) if train and test else ()


@cache
def _listed(file: Held) -> tuple[Video, ...]:
    videos = _split_videos(file)
    return tuple(_video("htstep", video, PARTS[split]) for split in SPLITS for video in videos[split])


@cache
def _of_crosstask(file: Held) -> tuple[Video, ...]:
    return tuple(
        _video("crosstask", video) for video in dict.fromkeys(vid for _, vid in crosstask.load(file[0]).videos)
    )


@cache
def _of_coin(train: Held, test: Held) -> tuple[Video, ...]:
    files: Iterable[tuple[Path, Split]] = ((train[0], "train"), (test[0], "test"))
    return tuple(_video("coin", video, split) for file, split in files for video in coin.videos(file))


def _video(dataset: str, video: str, split: Split | None = None) -> Video:
    url, path = f"https://www.youtube.com/watch?v={video}", f"{dataset}/videos/{video}.mp4"
    return Video(id=video, split=split, url=url, path=path)


DATASETS = {
    "htstep": Dataset(name="htstep", title="HT-Step", videos=_videos, listed_by="htstep/v1"),
    "crosstask": Dataset(name="crosstask", title="CrossTask", videos=_crosstask_videos, listed_by="htstep/crosstask"),
    "coin": Dataset(name="coin", title="COIN", videos=_coin_videos, listed_by="htstep/coin"),
}
