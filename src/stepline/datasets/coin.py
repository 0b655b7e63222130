"""COIN (Tang et al., 2019): the annotated steps of its videos, and its taxonomy of events and actions."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stepline.availability import check_video_id
from stepline.datasets.oepp import Step
from stepline.datasets.release import DAMAGED_ARCHIVE
from stepline.errors import ReleaseError
from stepline.io import read_json

DOMAINS, ACTIONS = "domain_target_mapping", "target_action_mapping"
"""The sheets of the taxonomy: domain and event; event id, event, action id and action."""


@dataclass(frozen=True, kw_only=True)
class CoinVideo:
    """One annotated video. event_id: ``recipe_type``, the event's id in the taxonomy."""

    vid: str
    event: str
    event_id: int
    steps: tuple[Step, ...]


@dataclass(frozen=True, kw_only=True)
class CoinEvent:
    """One event of the taxonomy. actions: its steps in the taxonomy's order."""

    id: int
    name: str
    domain: str
    actions: tuple[str, ...]


def videos(*files: Path) -> dict[str, CoinVideo]:
    """Return the videos of the files by id, in the order of the files.

    A file is COIN's own (``{"database": {id: ...}}``) or a list as in PDPP (``[{id: ...}, ...]``). Raises ReleaseError
    if a file has another form or a video is listed twice.
    """
    found: dict[str, CoinVideo] = {}
    for file in files:
        try:
            read = [_video(vid, record) for vid, record in _records(read_json(file))]
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ReleaseError(f"{file} is not in COIN's format: {type(error).__name__}: {error}") from None
        for video in read:
            if video.vid in found:
                raise ReleaseError(f"{file}: {video.vid} is listed twice")
            found[video.vid] = video
    return found


def _records(content: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(content, dict):
        yield from content["database"].items()
        return
    for each in content:
        (item,) = each.items()
        yield item


def _video(vid: str, record: dict[str, Any]) -> CoinVideo:
    steps = []
    for each in record["annotation"]:
        start_s, end_s = each["segment"]
        steps.append(Step(action=each["label"], start_s=float(start_s), end_s=float(end_s)))
    return CoinVideo(
        vid=check_video_id(vid), event=record["class"], event_id=int(record["recipe_type"]), steps=tuple(steps)
    )


def taxonomy(file: Path) -> dict[str, CoinEvent]:
    """Return the events of ``taxonomy.xlsx`` by name, in its order; raise ReleaseError if it has another form."""
    from openpyxl import load_workbook
    from openpyxl.utils.exceptions import InvalidFileException

    try:
        with closing(load_workbook(file, read_only=True)) as book:
            domains = {event: domain for domain, event in _rows(book, DOMAINS)}
            listed: dict[tuple[int, str], list[str]] = {}
            for number, event, _, action in _rows(book, ACTIONS):
                listed.setdefault((int(number), event), []).append(action)
        found = [
            CoinEvent(id=number, name=name, domain=domains[name], actions=tuple(actions))
            for (number, name), actions in listed.items()
        ]
    except (*DAMAGED_ARCHIVE, AttributeError, InvalidFileException, LookupError, SyntaxError, TypeError) as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise ReleaseError(f"{file} is not COIN's taxonomy: {reason}") from None
    if len({event.name for event in found}) < len(found) or not found:
        raise ReleaseError(f"{file} is not COIN's taxonomy: it lists no event, or one under two ids")
    return {event.name: event for event in found}


def _rows(book: Any, sheet: str) -> list[tuple[Any, ...]]:
    """Return the rows of a sheet without the header and empty rows."""
    return [row for row in book[sheet].iter_rows(min_row=2, values_only=True) if any(cell is not None for cell in row)]
