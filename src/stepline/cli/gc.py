"""The verb `gc`: files in the work folder that no configuration needs."""

import argparse
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from stepline.cli.lines import columns, size
from stepline.config import load

if TYPE_CHECKING:
    from stepline.benchmark.declared import SubParsers


def add(verbs: "SubParsers") -> None:
    """Add the verb."""
    verb = verbs.add_parser("gc", help="list files that no configuration needs; --delete removes them")
    verb.add_argument(
        "--configfile",
        type=Path,
        dest="configfiles",
        action="append",
        default=[],
        help="another configuration that uses this work folder; may be repeated",
    )
    verb.add_argument("--delete", action="store_true", help="remove the listed files")
    verb.set_defaults(run=_gc)


def _gc(parsed: argparse.Namespace) -> None:
    from stepline.leftovers import find, remove

    named = [*([parsed.configfile] if parsed.configfile else []), *parsed.configfiles] or [None]
    found = find(list(map(load, named)))
    for note in found.notes:
        print(f"note: {note}")
    for group, members in groupby(found.leftovers, key=lambda each: each.group):
        each_of = list(members)
        print(f"{group}: {size(sum(each.size for each in each_of))}")
        print(columns([(f"  {_shown(each.paths)}", size(each.size), each.reason) for each in each_of]))
    total = size(sum(each.size for each in found.leftovers))
    if not found.leftovers:
        print("nothing to remove")
    elif parsed.delete:
        remove(found.leftovers)
        print(f"removed {total}")
    else:
        print(f"{total} in total: run the same command with --delete to remove them")


def _shown(paths: tuple[Path, ...]) -> str:
    return f"{paths[0]}{f' and {len(paths) - 1} more' if len(paths) > 1 else ''}"
