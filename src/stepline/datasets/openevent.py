"""The construction of OpenEvent from COIN and CrossTask (OEPP, Sec. 3.2 and 7.3), as far as code can reproduce it.

Stage 1, candidates and clusters by similarity: ``candidate_events``, ``sentence``, ``cluster``. Stage 2, a vote by ten
people: only its outcome is known, the clusters of the release. Stage 3, refinement: ``renames``. Stage 4, the split:
``split_videos``. ``rebuild`` reconstructs the released files.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor
from typing import TYPE_CHECKING, Any

from stepline.datasets.coin import CoinEvent, CoinVideo
from stepline.datasets.crosstask import CrossTask, Task
from stepline.datasets.oepp import PARTS, Event, Part, Step
from stepline.errors import ReleaseError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LEAST_ACTIONS = 3
"""The minimum number of actions of a candidate; five events of COIN have fewer."""
DUPLICATE = "ChangeATire"
"""CrossTask's event that COIN also has, as ChangeCarTire."""
WITHOUT_PROCEDURE = ("UseEarplugs", "PutOnHairExtensions", "PractiseKarate")
"""COIN's events that the paper excludes because they teach no procedure."""
THRESHOLD = 0.6
"""θ of Algorithm 1."""
TEST, VAL = 0.2, 0.2
"""The fraction of an event's videos in test, and the fraction of the remaining ones in validation."""

Record = dict[str, Any]
"""The record of a video in a file of the split."""
Key = tuple[str, str, str]
"""The source of a video, the id of its event in the source, and its YouTube id."""


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A candidate event for OpenEvent. actions: in the wording of its source."""

    name: str
    source: str
    actions: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Rebuilt:
    """The reconstruction of one event, in numbers of videos. renamed: the number of actions with a new wording.

    in_source: videos of the event in the source. in_release: in the released split. rebuilt: in both. same_segments,
    same_actions: rebuilt videos that equal the released ones. absent: in the source but not in the release.
    """

    event: str
    source: str
    in_source: int
    in_release: int
    rebuilt: int
    same_segments: int
    same_actions: int
    renamed: int
    absent: int


def candidate_events(coin: Mapping[str, CoinEvent], crosstask: Mapping[str, Task]) -> tuple[Candidate, ...]:
    """Return the candidates for clustering: events of COIN's taxonomy, then CrossTask's primary tasks.

    They have at least three actions, teach a procedure and are unique: 172 of COIN, 17 of CrossTask's 18.
    """
    listed = [Candidate(name=event.name, source="COIN", actions=event.actions) for event in coin.values()]
    listed += [
        Candidate(name=_camel(task.title), source="CrossTask", actions=task.actions) for task in crosstask.values()
    ]
    return tuple(
        event
        for event in listed
        if len(event.actions) >= LEAST_ACTIONS
        and event.name not in WITHOUT_PROCEDURE
        and (event.source, event.name) != ("CrossTask", DUPLICATE)
    )


def _camel(title: str) -> str:
    return "".join(word[:1].upper() + word[1:] for word in title.split())


def sentence(event: str, actions: Sequence[str]) -> str:
    """Return the text of an event for comparison: ``Draw Blood: 1.tie the tourniquet 2.disinfect 3.collect blood.``

    A name is split before a capital that follows a lower-case letter or digit, and before the last of several capitals
    if a lower-case letter follows: ``Replace Battery On TV Control``, ``Refill A Stapler``, ``Make RJ45 Cable``.
    Hyphens are kept. The text ends with a full stop, as in the paper's only example (Sec. 3.2); the paper does not say
    how names are split. Actions have the wording of the source.
    """
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", event)
    return f"{name}: {' '.join(f'{number}.{action}' for number, action in enumerate(actions, 1))}."


def cluster(vectors: "NDArray[np.floating]", threshold: float = THRESHOLD) -> tuple[tuple[int, ...], ...]:
    """Return the clusters of the (N, D) ``vectors`` by Algorithm 1, each as the ascending indices of its members.

    Each vector joins the first cluster whose average cosine with it is above ``threshold``, or starts a new one, so the
    result depends on the order. Clusters with one member are dropped.
    """
    import numpy as np

    wide = vectors.astype(np.float64)
    unit = wide / np.linalg.norm(wide, axis=1, keepdims=True)
    similarity = unit @ unit.T
    found: list[list[int]] = []
    for place, row in enumerate(similarity):
        near = (members for members in found if row[members].mean() > threshold)
        members = next(near, None)
        if members is None:
            found.append([place])
        else:
            members.append(place)
    return tuple(tuple(members) for members in found if len(members) > 1)


def renames(events: Mapping[str, Event]) -> tuple[tuple[str, str, str], ...]:
    """Return the event, the original and the refined wording of each refined action (Table 10)."""
    return tuple(
        (event.name, action, refined)
        for event in events.values()
        for action, refined in zip(event.actions, event.refined, strict=True)
        if action != refined
    )


def split_videos(ids: Sequence[str], seed: int) -> dict[Part, tuple[str, ...]]:
    """Return a base event's videos, shuffled, as the parts ``train``, ``val`` and ``base``.

    ceil(0.2 n) videos are in ``base`` and ceil(0.2 m) of the m others in ``val``, by scikit-learn's
    ``train_test_split`` on the sorted ids. The sizes are those of the release; its seed was not published, so the
    videos differ. Raises ReleaseError if there are fewer than three videos.
    """
    from sklearn.model_selection import train_test_split

    if len(ids) < 3:
        raise ReleaseError(f"{', '.join(ids)}: an event needs 3 videos to be split into train, val and test")
    others, base = train_test_split(sorted(ids), test_size=TEST, random_state=seed)
    train, val = train_test_split(others, test_size=VAL, random_state=seed)
    return {"train": tuple(train), "val": tuple(val), "base": tuple(base)}


def source_steps(coin: Mapping[str, CoinVideo], crosstask: CrossTask | None) -> dict[Key, tuple[Step, ...]]:
    """Return the steps of all videos of the sources, CrossTask's only where it is there.

    COIN's seconds stay as they are. CrossTask's become whole, the start rounded down and the end up, as its own code
    reads them.
    """
    found = {("COIN", str(video.event_id), video.vid): video.steps for video in coin.values()}
    for (task, vid), steps in (crosstask.videos if crosstask else {}).items():
        found["CrossTask", task, vid] = tuple(
            Step(action=step.action, start_s=floor(step.start_s), end_s=ceil(step.end_s)) for step in steps
        )
    return found


def rebuild(
    released: Mapping[Part, Sequence[Record]],
    events: Mapping[str, Event],
    sources: Mapping[Key, tuple[Step, ...]],
    *,
    seed: int | None = None,
) -> dict[Part, list[Record]]:
    """Return the parts with the steps of the sources, under refined names.

    The videos are those of the released split that are in the sources. Without a seed, they have its order and parts.
    With a seed, the videos of base events are split again by ``split_videos``, event by event.
    Raises ReleaseError if a source has an action that its event does not list.
    """
    parts = {
        part: [_rebuilt(record, events, sources) for record in released[part] if _key(record) in sources]
        for part in PARTS
    }
    if seed is None:
        return parts
    by_event: dict[str, dict[str, Record]] = {}
    for record in parts["train"] + parts["val"] + parts["base"]:
        by_event.setdefault(record["task_name"], {})[record["vid"]] = record
    anew: dict[Part, list[Record]] = {"train": [], "val": [], "base": [], "novel": parts["novel"]}
    for records in by_event.values():
        for part, ids in split_videos(tuple(records), seed).items():
            anew[part] += [records[vid] for vid in ids]
    return anew


def compare(
    released: Mapping[Part, Sequence[Record]],
    events: Mapping[str, Event],
    sources: Mapping[Key, tuple[Step, ...]],
) -> tuple[Rebuilt, ...]:
    """Return the reconstruction of each event of the released split, in the order of ``events``; see ``rebuild``."""
    held: dict[tuple[str, str], set[Key]] = {}
    for key in sources:
        held.setdefault(key[:2], set()).add(key)
    by_event: dict[str, dict[Key, Record]] = {name: {} for name in events}
    for part in PARTS:
        for record in released[part]:
            by_event[record["task_name"]][_key(record)] = record
    lines = []
    for name, records in by_event.items():
        if not records:
            continue
        source, number, _ = next(iter(records))
        there = held.get((source, number), set())
        pairs = [(records[key], _rebuilt(records[key], events, sources)) for key in records if key in there]
        lines.append(
            Rebuilt(
                event=name,
                source=source,
                in_source=len(there),
                in_release=len(records),
                rebuilt=len(pairs),
                same_segments=sum(_column(a, "segment") == _column(b, "segment") for a, b in pairs),
                same_actions=sum(_column(a, "action") == _column(b, "action") for a, b in pairs),
                renamed=len(renames({name: events[name]})),
                absent=len(there - records.keys()),
            )
        )
    return tuple(lines)


def _key(record: Record) -> Key:
    return record["dataset"], str(record["task_id_old"]), record["vid"]


def _column(record: Record, name: str) -> list[Any]:
    return [each[name] for each in record["anno"]]


def _rebuilt(record: Record, events: Mapping[str, Event], sources: Mapping[Key, tuple[Step, ...]]) -> Record:
    event, steps = events[record["task_name"]], sources[_key(record)]
    refined = dict(zip(event.actions, event.refined, strict=True))
    if unknown := [step.action for step in steps if step.action not in refined]:
        raise ReleaseError(
            f"{record['dataset']}'s {record['vid']} has {unknown[0]!r}, which {event.name} does not list"
        )
    anno = [{"action": refined[step.action], "segment": [step.start_s, step.end_s]} for step in steps]
    return record | {"length": len(anno), "anno": anno}
