"""OEPP: OpenEvent as released by Wu et al. (2024), and the files it was built from.

``split1``: the only released split. ``coin``: COIN's annotation (CC BY-NC 4.0) from PDPP's repository, and its
taxonomy. ``crosstask``: CrossTask's release. ``rebuilt``: the files of ``split1``, rebuilt from the previous two by
``stepline oepp rebuild``.

An action is a key. It is never stripped or normalised, because two actions of the base pool differ only in a space.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import inf, isfinite
from pathlib import Path
from typing import Any, Literal

from stepline.availability import check_video_id
from stepline.datasets.dataset import Dataset
from stepline.datasets.release import REBUILT, Released, ReleaseFile
from stepline.datasets.schema import Split, Video
from stepline.errors import ReleaseError
from stepline.io import atomic_dir, read_json, sha256_file, write_json
from stepline.mirror import Wanted, cached_sha256

Part = Literal["train", "val", "base", "novel"]
PARTS: tuple[Part, ...] = ("train", "val", "base", "novel")
"""The parts of the split; ``base`` and ``novel`` are the test videos."""
Features = Literal["videoclip", "s3d"]
SOURCES = ("COIN", "CrossTask")
SPLITS: dict[Part, Split] = {"train": "train", "val": "val", "base": "test", "novel": "test"}
SPLIT_FILES: dict[Part, str] = {
    "train": "train_train_base_dataset_1.json",
    "val": "train_val_base_dataset_1.json",
    "base": "test_base_dataset_1.json",
    "novel": "novel_dataset_1.json",
}
BASE_POOL, NOVEL_POOL, TOTAL_POOL = "base_action_pool_1.json", "novel_action_pool_1.json", "total_action_pool.json"
POOL_FILES: dict[Part, str] = {"train": BASE_POOL, "val": BASE_POOL, "base": BASE_POOL, "novel": NOVEL_POOL}
EVENTS_FILE = "task_info.json"
PART_FILES = sorted({*SPLIT_FILES.values(), *POOL_FILES.values(), EVENTS_FILE})
"""The files that list the videos and steps of all parts."""
FEATURE_FILES: dict[Features, str] = {"videoclip": "vc_action_feat_dict.json", "s3d": "s3d_action_feat_dict.json"}

GITHUB = "https://raw.githubusercontent.com"
OEPP = f"{GITHUB}/FOXamber/OEPP/44417ac97b5fe1938b38d584bd9ae80e217d66f5/data"
PDPP = f"{GITHUB}/MCG-NJU/PDPP/9d5f7ffcf3a269132628bf20d1b1cce0a3c09882/dataset/coin"
COIN = f"{GITHUB}/coin-dataset/annotations/67e31260e9c25951e27cda8d4336a23eacf62a80"
CROSSTASK = "https://www.di.ens.fr/~dzhukov/crosstask"


def _file(folder: str, path: str, url: str, sha256: str = "", size: int = 0) -> ReleaseFile:
    wanted = Wanted(path=f"{folder}/{path}", sha256=sha256, size=size)
    return ReleaseFile(path=path, wanted=wanted, url=f"{url}/{path}")


FILES: dict[str, tuple[ReleaseFile, ...]] = {
    "split1": tuple(
        _file("oepp", path, OEPP, sha256, size)
        for path, sha256, size in (
            (SPLIT_FILES["train"], "fe0b28b2a0415a8d66152ed1c588d67b2e81c429e82cc4d39af96e456c213bd3", 547660),
            (SPLIT_FILES["val"], "2fe63cecd91013e22f27b9fff0700be37390744ce992c2e7c4dd2e3b2b69d55d", 140806),
            (SPLIT_FILES["base"], "5219e6da71900935b0e6be44fdb36c0b20dbbfeaee91b0b12bb58373a8e2298d", 177230),
            (SPLIT_FILES["novel"], "3ede1b8e76bd84cceac657c553fcbf27043ee724a69976d46ddb1c55c82d5ea9", 308846),
            (BASE_POOL, "be8934b93b1ed62ee8c5e0c68017453be8efabd242583f9c6245835998896db5", 3072),
            (NOVEL_POOL, "c839eeb2a7743cf33de6ed086fd2089ba9956566be97c042d88c5b4b05417a77", 1424),
            (TOTAL_POOL, "80f68bac37b90582610988254da36afc36e2f7760b10694d5243e9068214a9e5", 4168),
            (EVENTS_FILE, "be3777da32bac9a0cf0928a59396097ded576446567b9e41e94a24f5e6de1c0e", 14427),
            (
                FEATURE_FILES["videoclip"],
                "236e4982a7429688be564c523ed6d8b51581b4924aaf509defeeb61937aa2612",
                2661413,
            ),
            (FEATURE_FILES["s3d"], "183cae803bc3681e2bfb0637a5f5944ccdfd0d158362816c2410adad55509721", 1651206),
        )
    ),
    "coin": (
        _file(
            "coin",
            "coin_train_70.json",
            PDPP,
            "ce73207fcc27271676f00b357a05f8c4a92ba59f1608e2cf1a8524a0b8a6e5b0",
            3867300,
        ),
        _file(
            "coin",
            "coin_test_30.json",
            PDPP,
            "73811a665be1112081cc914fa668fee28df85ca340d80d9c0ba6d44a55b33ba0",
            1620392,
        ),
        _file("coin", "taxonomy.xlsx", COIN, "b1525febc3c3e98054ae13f26f95d9b044f150b2035e93623aca9ff1198e71a2", 44833),
    ),
    "crosstask": (_file("crosstask", "crosstask_release.zip", CROSSTASK),),
    REBUILT: (),
}
"""The files of each release. Only the name of CrossTask's file is known."""


@dataclass(frozen=True, kw_only=True)
class Step:
    """One action of a video, 0 <= start_s <= end_s, in seconds; raises ValueError otherwise."""

    action: str
    start_s: float
    end_s: float

    def __post_init__(self) -> None:
        if not 0 <= self.start_s <= self.end_s < inf:
            raise ValueError(f"the segment {self.start_s}, {self.end_s} of {self.action!r} is not valid")


@dataclass(frozen=True, kw_only=True)
class EventVideo:
    """One annotated video. steps: in the released order; some overlap and a few are not sorted.

    id: ``<source>_<vid>``, because one YouTube video is in both sources. source_event: the id of the event in the
    source.
    """

    id: str
    source: str
    vid: str
    event: str
    source_event: str
    domain: str
    steps: tuple[Step, ...]


@dataclass(frozen=True, kw_only=True)
class Event:
    """One event. actions: in the wording and order of its source. refined: in OpenEvent's wording."""

    name: str
    domain: str
    cluster: int
    actions: tuple[str, ...]
    refined: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Statistics:
    """The counts of a part or of ``total`` (Tables 1, 8).

    actions: the size of its pool, with actions without videos.
    """

    part: str
    domains: int
    events: int
    actions: int
    videos: int
    segments: int


@dataclass(frozen=True, kw_only=True)
class Clustered:
    """An event in its cluster (Table 9). part: ``base``, ``novel``, or "" if the release has no video of it."""

    cluster: int
    event: str
    domain: str
    part: str


RELEASES = Released(name="oepp", title="OEPP", known=tuple(FILES), release_files=FILES.__getitem__)


def load(release: str, part: Part) -> tuple[EventVideo, ...]:
    """Return the videos of a part in the file's order.

    All parts are read to check that no video is in two of them. Raises ReleaseError if a file is absent, changed or has
    another form, if a video is listed twice, or if an action is not in the part's pool.
    """
    return _loaded(release)[part]


def pool(release: str, part: Part) -> tuple[str, ...]:
    """Return the action pool of a part; the index of an action is its class; raise ReleaseError as ``load`` does."""
    return _pool(RELEASES.release_file(release, POOL_FILES[part]))


def events(release: str) -> dict[str, Event]:
    """Return the events by name, in the released order; raise ReleaseError as ``load`` does."""
    return _events(RELEASES.release_file(release, EVENTS_FILE))


def text_features(release: str, features: Features) -> dict[str, list[float]]:
    """Return the released vector of each action, which is not L2-normalised.

    Raises ReleaseError if the file is absent, changed or has another form, or if an action of a pool has no vector.
    """
    file = RELEASES.release_file(release, FEATURE_FILES[features])
    found = read_vectors(file)
    if absent := {*pool(release, "base"), *pool(release, "novel")} - found.keys():
        raise ReleaseError(f"{file} has no vector of {min(absent)!r}")
    return found


def read_vectors(file: Path) -> dict[str, list[float]]:
    """Return the vector of each action in a JSON file of the released form, ``{action: [[...]]}``.

    Raises ReleaseError if the file has another form, or if vectors are not finite or differ in length.
    """
    try:
        found = {action: [float(value) for value in vector] for action, (vector,) in read_json(file).items()}
    except (AttributeError, TypeError, ValueError) as error:
        raise ReleaseError(f"{file} contains no vectors of actions: {type(error).__name__}: {error}") from None
    if len({*map(len, found.values())}) != 1 or not all(isfinite(value) for each in found.values() for value in each):
        raise ReleaseError(f"{file} contains vectors of different lengths, or non-finite numbers")
    return found


def file_names(video: EventVideo) -> tuple[str, ...]:
    """Return the file names, without suffix, of a video's features in OEPP's own archive and in P3IV's."""
    event = f"{video.event}_" if video.source == "COIN" else ""
    return video.id, f"{event}{video.source_event}_{video.vid}"


def is_here(release: str) -> bool:
    """Return whether the folder of a release exists."""
    return (RELEASES.folder(release) / "release.json").exists()


def records(release: str) -> dict[Part, list[dict[str, Any]]]:
    """Return the records of each part, checked as in ``load``."""
    _loaded(release)
    return {part: read_json(RELEASES.release_file(release, path)) for part, path in SPLIT_FILES.items()}


def write_rebuilt(parts: Mapping[Part, Sequence[dict[str, Any]]], *, seed: int | None, without: str = "") -> None:
    """Write the release ``rebuilt``: these parts in the released form, and the other files of ``split1``.

    seed: of a new split. without: a description of missing videos, or "". Both are recorded in ``release.json``. Raises
    ReleaseError if ``split1`` is absent.
    """
    names = {path: part for part, path in SPLIT_FILES.items()}
    with atomic_dir(RELEASES.folder(REBUILT)) as folder:
        for listed in FILES["split1"]:
            path = listed.path
            if path in names:
                (folder / path).write_text(json.dumps(parts[names[path]]))
            else:
                (folder / path).write_bytes(RELEASES.release_file("split1", path).read_bytes())
        digests = {file.name: sha256_file(file) for file in folder.iterdir()}
        about = {"study": "oepp", "release": REBUILT, "seed": seed, "without": without}
        write_json(folder / "release.json", about | {"files": digests})


def without() -> str:
    """Return a description of the videos missing from the release ``rebuilt``; "" if it is complete or absent."""
    manifest = RELEASES.folder(REBUILT) / "release.json"
    return str(read_json(manifest).get("without", "")) if manifest.exists() else ""


def statistics(release: str) -> tuple[Statistics, ...]:
    """Return the counts of ``total`` and of each part (Tables 1, 8)."""
    loaded = _loaded(release)
    whole = [video for part in PARTS for video in loaded[part]]
    total = _pool(RELEASES.release_file(release, TOTAL_POOL))
    return (
        _statistics("total", len(total), whole),
        *(_statistics(part, len(pool(release, part)), loaded[part]) for part in PARTS),
    )


def _statistics(part: str, n_actions: int, videos: Sequence[EventVideo]) -> Statistics:
    return Statistics(
        part=part,
        domains=len({video.domain for video in videos}),
        events=len({video.event for video in videos}),
        actions=n_actions,
        videos=len(videos),
        segments=sum(len(video.steps) for video in videos),
    )


def clusters(release: str) -> tuple[Clustered, ...]:
    """Return the events with their part, sorted by cluster, then in the released order (Table 9)."""
    part_of = {
        video.event: "novel" if part == "novel" else "base"
        for part, videos in _loaded(release).items()
        for video in videos
    }
    listed = sorted(events(release).values(), key=lambda event: event.cluster)
    return tuple(
        Clustered(cluster=event.cluster, event=event.name, domain=event.domain, part=part_of.get(event.name, ""))
        for event in listed
    )


def _loaded(release: str) -> dict[Part, tuple[EventVideo, ...]]:
    files = {path: RELEASES.release_file(release, path) for path in PART_FILES}
    return _parts(tuple((path, file, cached_sha256(file)) for path, file in files.items()))


def _videos() -> tuple[Video, ...]:
    """Return the videos of ``split1`` with ids and addresses, if it is fetched or in the mirror."""
    held = {path: file for path in PART_FILES if (file := RELEASES.held("split1", path))}
    if len(held) < len(PART_FILES):
        return ()
    parts = _parts(tuple((path, file, cached_sha256(file)) for path, file in held.items()))
    return tuple(
        Video(
            id=video.id,
            split=SPLITS[part],
            url=f"https://www.youtube.com/watch?v={video.vid}",
            path=f"openevent/videos/{video.id}.mp4",
        )
        for part, videos in parts.items()
        for video in videos
    )


DATASETS = {"openevent": Dataset(name="openevent", title="OpenEvent", videos=_videos, listed_by="oepp/split1")}


@cache
def _parts(listed: tuple[tuple[str, Path, str], ...]) -> dict[Part, tuple[EventVideo, ...]]:
    """Return the videos of each part. listed: for each file, its path in the release, the file and its sha256.

    Raises ReleaseError as ``load`` does, and if an event is in both base and novel.
    """
    files = {path: file for path, file, _ in listed}
    known = _events(files[EVENTS_FILE])
    found: dict[Part, tuple[EventVideo, ...]] = {}
    part_of: dict[str, Part] = {}
    for part, path in SPLIT_FILES.items():
        file, pool_file = files[path], files[POOL_FILES[part]]
        actions = frozenset(_pool(pool_file))
        try:
            found[part] = tuple(map(_video, read_json(file)))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ReleaseError(f"{file} is not in OEPP's format: {type(error).__name__}: {error}") from None
        for video in found[part]:
            if video.id in part_of:
                raise ReleaseError(f"{file}: {video.id} is listed twice, in {part_of[video.id]} and {part}")
            part_of[video.id] = part
            if video.event not in known:
                raise ReleaseError(
                    f"{file}: {video.id} has the event {video.event!r}, which {EVENTS_FILE} does not list"
                )
            if absent := [step.action for step in video.steps if step.action not in actions]:
                raise ReleaseError(f"{file}: {video.id} has {absent[0]!r}, which {pool_file.name} does not list")
    novel = {video.event for video in found["novel"]}
    if both := sorted(novel & {video.event for part in PARTS[:3] for video in found[part]}):
        raise ReleaseError(f"{files[SPLIT_FILES['novel']]}: {both[0]} is also an event of the base parts")
    return found


def _video(record: dict[str, Any]) -> EventVideo:
    source, vid, event, domain = (record[key] for key in ("dataset", "vid", "task_name", "domain"))
    steps = []
    for each in record["anno"]:
        start_s, end_s = each["segment"]
        steps.append(Step(action=each["action"], start_s=float(start_s), end_s=float(end_s)))
    if source not in SOURCES:
        raise ValueError(f"{vid} has the source {source!r}, not {' or '.join(SOURCES)}")
    if not steps or record["length"] != len(steps):
        raise ValueError(f"{vid} has {len(steps)} actions and the length {record['length']}")
    return EventVideo(
        id=check_video_id(f"{source}_{vid}"),
        source=source,
        vid=vid,
        event=event,
        source_event=str(record["task_id_old"]),
        domain=domain,
        steps=tuple(steps),
    )


def _pool(file: Path) -> tuple[str, ...]:
    content = read_json(file)
    if not isinstance(content, list) or not content or not all(isinstance(action, str) for action in content):
        raise ReleaseError(f"{file} is not a list of actions")
    if len(set(content)) < len(content):
        raise ReleaseError(f"{file} lists an action twice")
    return tuple(content)


def _events(file: Path) -> dict[str, Event]:
    try:
        found = {name: _event(name, record) for name, record in read_json(file).items()}
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ReleaseError(f"{file} is not a list of events: {type(error).__name__}: {error}") from None
    return found


def _event(name: str, record: dict[str, Any]) -> Event:
    actions, refined = tuple(record["action_list"]), tuple(record["new_action_list"])
    if not len(actions) == len(refined) == record["action_num"]:
        raise ValueError(
            f"{name} has {len(actions)} actions and {len(refined)} refined, but action_num is {record['action_num']}"
        )
    return Event(name=name, domain=record["domain"], cluster=int(record["set"]), actions=actions, refined=refined)
