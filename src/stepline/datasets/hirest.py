"""HiREST (Zala et al., 2023): queries, the videos that answer them, moments and captioned steps.

``v1``: the public files. Their test moments are withheld, but the steps of 507 test moments are public. ``labels``: the
authors' test file with moments, which is not public. ``asr``: the authors' transcripts.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from math import inf
from pathlib import Path
from statistics import mean
from typing import Any
from zipfile import ZipFile

from stepline.availability import check_video_id
from stepline.datasets.dataset import Dataset
from stepline.datasets.release import DAMAGED_ARCHIVE, Released, ReleaseFile
from stepline.datasets.schema import SPLITS, Video
from stepline.errors import ReleaseError
from stepline.io import parse_json, read_member
from stepline.mirror import Wanted, cached_sha256

GITHUB = "https://raw.githubusercontent.com/j-min/HiREST/deffc169b4e8d51c1589d5512ad05da61e81bcee/data"
HUGGING_FACE = "https://huggingface.co/j-min/HiREST-baseline/resolve/54e2f8da7a4384fec8a137011399f5e104069032"
SPLIT_FILES: dict[str, str] = {
    "train": "splits/all_data_train.json",
    "val": "splits/all_data_val.json",
    "test": "splits/all_data_test.json",
}
DISTRACTORS = "splits/all_data_test_negative_samples.json"
STEPS = "evaluation/formatted_moment_evaluation_gt.json"
CATEGORIES = "evaluation/categories.json"
LABELS, ASR = "all_data_test.json", "ASR.zip"
BLINDED = (0.0, 1.0)
"""The placeholder of a test moment in ``v1``."""
MOST_BYTES = 4 * 2**20
"""The maximum size of a transcript; an hour of speech is far smaller."""


def _public(path: str, sha256: str, size: int) -> ReleaseFile:
    return ReleaseFile(
        path=path, wanted=Wanted(path=f"hirest/{path}", sha256=sha256, size=size), url=f"{GITHUB}/{path}"
    )


FILES: dict[str, tuple[ReleaseFile, ...]] = {
    "v1": (
        _public(SPLIT_FILES["train"], "3740548ae67c608ee64725d6030f7378bbdd2326e5d5479de0187e76944fc160", 514671),
        _public(SPLIT_FILES["val"], "70d32c5fcdffe66cbf3c732dd274f03378da2082f50c9cec7e67705f529ecb4d", 108730),
        _public(SPLIT_FILES["test"], "a9951c8f6d43349d786f5c0cf929b6760f7158e04aa56a7ac2c8ea9487562b70", 256605),
        _public(DISTRACTORS, "4a66bd7be6db3128c1b0d23d815784870b213fcdef4ac93756eff771eb951509", 137658),
        _public(STEPS, "47fdaf57e5b43e22ca555d441c78310b98dd07b774b0252960ee70d781288c45", 331338),
        _public(CATEGORIES, "157623d50f7b8482f55fa1c4efc500539784c0399fb2dd60bb687b4006d85ca1", 214074),
    ),
    "labels": (ReleaseFile(path=LABELS, wanted=Wanted(path=f"hirest/labels/{LABELS}")),),
    "asr": (
        ReleaseFile(
            path=ASR,
            wanted=Wanted(
                path=f"hirest/{ASR}",
                sha256="0b452d38e30064dc7273a58b7b73ec33e307ff83d30048a472777f56e3a29fbc",
                size=7160738,
            ),
            url=f"{HUGGING_FACE}/{ASR}",
        ),
    ),
}
"""The files of each release; those with a URL are public."""


@dataclass(frozen=True, kw_only=True)
class Step:
    """One step of a moment: [start_s, end_s] in seconds, and its caption as written."""

    start_s: float
    end_s: float
    caption: str


@dataclass(frozen=True, kw_only=True)
class Pair:
    """A query and a video that answers it.

    clippable: whether a moment of the video answers the query, rather than the whole video. bounds_s: the moment; None
    if there is none or the authors withhold it. steps: of the moment, in order; () without annotation. split: the
    argument of ``load``.
    """

    query: str
    video: str
    duration_s: float
    clippable: bool
    bounds_s: tuple[float, float] | None
    steps: tuple[Step, ...]
    split: str


@dataclass(frozen=True, kw_only=True)
class Statistics:
    """The statistics of the data set (Table 1). stepped: videos with steps.

    words_per_caption: parts of a caption between single spaces, also empty parts. captions: different ones. video_s:
    the mean duration of a stepped video. step_s: the mean duration of a step.
    """

    videos: int
    stepped: int
    steps: int
    steps_per_moment: float
    words_per_caption: float
    captions: int
    video_s: float
    step_s: float


@dataclass(frozen=True, kw_only=True)
class Subtitle:
    """One subtitle with its times in seconds. The order and overlaps of subtitles are those of the file."""

    start_s: float
    end_s: float
    text: str


RELEASES = Released(name="hirest", title="HiREST", known=tuple(FILES), release_files=FILES.__getitem__)


def load(split: str) -> tuple[Pair, ...]:
    """Return the pairs of ``train``, ``val``, ``test`` or ``test_507``, in the released order.

    ``test`` has moments and steps only if the release ``labels`` is available. ``test_507`` contains the test pairs
    with public steps; their moments extend from the start of the first step to the end of the last, as in all train and
    val pairs with steps. Raises ReleaseError if a file is absent, changed or has another form.
    """
    if split == "test_507":
        return _with_public_steps(_released("test"), RELEASES.release_file("v1", STEPS))
    if split == "test" and labels_are_here():
        return _with_labels(_released(split), RELEASES.release_file("labels", LABELS))
    return _released(split)


def statistics() -> Statistics:
    """Return the statistics of all splits, by the public steps; raise ReleaseError as ``load`` does."""
    stepped = [pair for split in ("train", "val", "test_507") for pair in load(split) if pair.steps]
    steps = [step for pair in stepped for step in pair.steps]
    return Statistics(
        videos=sum(len(_released(split)) for split in SPLIT_FILES),
        stepped=len(stepped),
        steps=len(steps),
        steps_per_moment=len(steps) / len(stepped),
        words_per_caption=mean(len(step.caption.split(" ")) for step in steps),
        captions=len({step.caption for step in steps}),
        video_s=mean(pair.duration_s for pair in stepped),
        step_s=mean(step.end_s - step.start_s for step in steps),
    )


def pool() -> tuple[str, ...]:
    """Return the pool of video retrieval: the test videos, then the distractors."""
    return (*(pair.video for pair in _released("test")), *_distractors(RELEASES.release_file("v1", DISTRACTORS)))


def categories() -> dict[str, str]:
    """Return the category of each query, for all splits; raise ReleaseError as ``load`` does."""
    file = RELEASES.release_file("v1", CATEGORIES)
    try:
        return {str(query): str(name) for query, name in parse_json(file.read_bytes())["prompt_to_cat"].items()}
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise _other_form(file, error) from None


def labels_are_here() -> bool:
    """Return whether the release ``labels`` is fetched or in the mirror."""
    return RELEASES.is_there("labels")


def subtitles(videos: Iterable[str]) -> dict[str, tuple[Subtitle, ...]]:
    """Return the authors' transcripts by video, for videos that have one, without extracting the archive.

    Raises ReleaseError if the archive or a transcript is absent, changed or damaged.
    """
    file = RELEASES.release_file("asr", ASR)
    try:
        with ZipFile(file) as archive:
            names = {video: f"ASR/{check_video_id(video)}.srt" for video in videos}
            return {video: _subtitles(archive, name) for video, name in names.items() if name in archive.NameToInfo}
    except DAMAGED_ARCHIVE as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ReleaseError(f"{file} does not contain HiREST's transcripts: {reason}") from None


def _subtitles(archive: ZipFile, name: str) -> tuple[Subtitle, ...]:
    """Return a transcript; raise ValueError or an error of ``archive`` if it is damaged."""
    import srt

    text = read_member(archive, name, MOST_BYTES)
    try:
        return tuple(
            Subtitle(start_s=each.start.total_seconds(), end_s=each.end.total_seconds(), text=each.content)
            for each in srt.parse(text.decode())
        )
    except (OverflowError, ValueError, srt.SRTParseError) as error:
        raise ValueError(f"{name}: {error}") from None


def _videos() -> tuple[Video, ...]:
    """Return the annotated videos, then the distractors, if ``v1`` is fetched or in the mirror."""
    listing = (*SPLIT_FILES.values(), DISTRACTORS)
    files = {path: held for path in listing if (held := RELEASES.held("v1", path))}
    if len(files) < len(listing):
        return ()
    found = [
        Video(id=pair.video, split=split, duration_s=pair.duration_s)
        for split in SPLITS
        for pair in _pairs(files[SPLIT_FILES[split]], split)
    ]
    found += [Video(id=video) for video in _distractors(files[DISTRACTORS])]
    if len({video.id for video in found}) < len(found):
        raise ReleaseError(f"{files[DISTRACTORS].parent} has a video in two of its files")
    return tuple(
        replace(each, url=f"https://www.youtube.com/watch?v={each.id}", path=f"hirest/videos/{each.id}.mp4")
        for each in found
    )


DATASETS = {"hirest": Dataset(name="hirest", title="HiREST", videos=_videos, listed_by="hirest/v1")}
ANNOTATED = replace(DATASETS["hirest"], videos=lambda: tuple(video for video in _videos() if video.split))
"""The data set without the distractors."""


def _released(split: str) -> tuple[Pair, ...]:
    """Return the pairs of a split of ``v1``, without the withheld test moments."""
    found = _pairs(RELEASES.release_file("v1", SPLIT_FILES[split]), split)
    if split != "test":
        return found
    return tuple(replace(pair, bounds_s=None) if _is_blinded(pair) else pair for pair in found)


def _is_blinded(pair: Pair) -> bool:
    return pair.bounds_s == BLINDED and not pair.steps


def _with_labels(released: tuple[Pair, ...], file: Path) -> tuple[Pair, ...]:
    """Return the test pairs with their moments; raise ReleaseError if the file has other pairs or no moments."""
    labelled = {(pair.query, pair.video, pair.clippable): pair for pair in _pairs(file, "test")}
    wanted = [(pair.query, pair.video, pair.clippable) for pair in released]
    if labelled.keys() != {*wanted}:
        raise ReleaseError(f"{file} has different pairs than v1's {SPLIT_FILES['test']}")
    if all(_is_blinded(pair) for pair in labelled.values() if pair.clippable):
        raise ReleaseError(f"{file} is blinded, like v1's test file: replace it with the authors' labels")
    return tuple(labelled[key] for key in wanted)


def _with_public_steps(released: tuple[Pair, ...], file: Path) -> tuple[Pair, ...]:
    """Return the test pairs with steps in the file, each with its steps and the moment that they span."""
    found = _public_steps(file)
    if absent := found.keys() - {pair.video for pair in released if pair.clippable}:
        raise ReleaseError(f"{file} has steps of {min(absent)}, which has no moment in v1's {SPLIT_FILES['test']}")
    return tuple(
        replace(pair, bounds_s=_hull(steps), steps=steps, split="test_507")
        for pair in released
        if (steps := found.get(pair.video))
    )


def _hull(steps: tuple[Step, ...]) -> tuple[float, float]:
    return min(step.start_s for step in steps), max(step.end_s for step in steps)


def _pairs(file: Path, split: str) -> tuple[Pair, ...]:
    return _cached_pairs(file, cached_sha256(file), split)


@cache
def _cached_pairs(file: Path, _sha256: str, split: str) -> tuple[Pair, ...]:
    try:
        found = tuple(
            _pair(query, name, record, split)
            for query, videos in parse_json(file.read_bytes()).items()
            for name, record in videos.items()
        )
    except (AttributeError, KeyError, ReleaseError, TypeError, ValueError) as error:
        raise _other_form(file, error) from None
    if len({pair.video for pair in found}) < len(found):
        raise ReleaseError(f"{file} is not in HiREST's format: a video answers two queries")
    return found


def _pair(query: str, name: str, record: dict[str, Any], split: str) -> Pair:
    duration_s, clippable = float(record["v_duration"]), record["clip"]
    bounds_s = _interval(name, record["bounds"])
    steps = tuple(_step(name, step["absolute_bounds"], step["heading"]) for step in record["steps"])
    if not 0 < duration_s < inf or not isinstance(clippable, bool) or (steps and not clippable):
        raise ValueError(f"{name} lasts {duration_s} s, has `clip` {clippable!r} and {len(steps)} steps")
    return Pair(
        query=query,
        video=_id(name),
        duration_s=duration_s,
        clippable=clippable,
        bounds_s=bounds_s if clippable else None,
        steps=steps,
        split=split,
    )


def _public_steps(file: Path) -> dict[str, tuple[Step, ...]]:
    try:
        found = {
            _id(name): tuple(_step(name, (each["start"], each["end"]), each["sentence"]) for each in record["captions"])
            for name, record in parse_json(file.read_bytes()).items()
        }
    except (AttributeError, KeyError, ReleaseError, TypeError, ValueError) as error:
        raise _other_form(file, error) from None
    if not all(found.values()):
        raise ReleaseError(f"{file} is not in HiREST's format: a video has no steps")
    return found


def _distractors(file: Path) -> tuple[str, ...]:
    try:
        return tuple(_id(name) for videos in parse_json(file.read_bytes()).values() for name in videos)
    except (AttributeError, ReleaseError, TypeError, ValueError) as error:
        raise _other_form(file, error) from None


def _step(name: str, bounds: Any, caption: object) -> Step:
    start_s, end_s = _interval(name, bounds)
    if not isinstance(caption, str):
        raise ValueError(f"{name} has the caption {caption!r}")
    return Step(start_s=start_s, end_s=end_s, caption=caption)


def _interval(name: str, bounds: Any) -> tuple[float, float]:
    start_s, end_s = map(float, bounds)
    if not 0 <= start_s <= end_s < inf:
        raise ValueError(f"{name} has an interval from {start_s} to {end_s} s")
    return start_s, end_s


def _id(name: str) -> str:
    if not name.endswith(".mp4"):
        raise ValueError(f"{name!r} does not end in .mp4")
    return check_video_id(name.removesuffix(".mp4"))


def _other_form(file: Path, error: Exception) -> ReleaseError:
    return ReleaseError(f"{file} is not in HiREST's format: {' '.join(f'{type(error).__name__}: {error}'.split())}")
