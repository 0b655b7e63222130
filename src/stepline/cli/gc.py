"""The verb `gc`: what the work folder holds that no configuration needs."""

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
    verb = verbs.add_parser("gc", help="list what no configuration needs; with --delete, remove it")
    verb.add_argument(
        "--configfile",
        type=Path,
        dest="configfiles",
        action="append",
        default=[],
        help="another configuration that uses this work folder; may be repeated",
    )
    verb.add_argument("--delete", action="store_true", help="remove what is listed")
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
    if not found.leftovers:
        print("nothing to remove")
    elif parsed.delete:
        remove(found.leftovers)
        print(f"removed {size(sum(each.size for each in found.leftovers))}")
    else:
        print(f"{size(sum(each.size for each in found.leftovers))} in all: the same with --delete removes it")


def _shown(paths: tuple[Path, ...]) -> str:
    return f"{paths[0]}{f' and {len(paths) - 1} more' if len(paths) > 1 else ''}"
