"""Tables 9 and 10, which list events and actions: the release compared with the paper."""

import csv
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from stepline.benchmarks.oepp.benchmark import Oepp
from stepline.datasets import oepp
from stepline.datasets.openevent import renames
from stepline.tables import write_lines

FOLDER = Path("results", "oepp")


def write_listings() -> None:
    """Write ``results/oepp/table9.csv``, the events by cluster, and ``table10.csv``, the renamed actions.

    ``status`` is ``exact`` if the line equals the paper's except for spaces, ``differs`` if it does not, ``ours`` if
    the paper has no such line, and ``absent`` if the release has none. Raises ReleaseError as ``oepp.load`` does.
    """
    events = [
        {"cluster": str(each.cluster), "event": each.event, "domain": each.domain, "part": each.part}
        for each in oepp.clusters("split1")
    ]
    _write("table9", events, key=("event",), compared=("cluster", "domain"))
    actions = [
        {"event": event, "action_label": original, "new_action_label": refined}
        for event, original, refined in renames(oepp.events("split1"))
    ]
    _write("table10", actions, key=("event", "action_label"), compared=("new_action_label",))


def _write(target: str, found: Sequence[Mapping[str, str]], *, key: tuple[str, ...], compared: tuple[str, ...]) -> None:
    with open(Oepp.folder / "paper" / f"{target}.csv", newline="", encoding="utf-8") as file:
        printed = {_words(record, key): record for record in csv.DictReader(file)}
    lines = []
    for record in found:
        paper = printed.pop(_words(record, key), None)
        same = paper is not None and _words(record, compared) == _words(paper, compared)
        lines.append({**record, "status": "ours" if paper is None else "exact" if same else "differs"})
    lines += [{**record, "status": "absent"} for record in printed.values()]
    header = [*found[0], "status"]
    write_lines(FOLDER / f"{target}.csv", header, ([line.get(name, "") for name in header] for line in lines))


def _words(record: Mapping[str, str], columns: Iterable[str]) -> tuple[str, ...]:
    return tuple(" ".join(record[column].split()) for column in columns)
