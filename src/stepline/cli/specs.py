"""The verb `specs`: the specs of features, and how two of them differ."""

import argparse
from typing import TYPE_CHECKING

from stepline.cli.lines import columns

if TYPE_CHECKING:
    from stepline.benchmark.declared import SubParsers


def add(verbs: "SubParsers") -> None:
    """Add the verb."""
    verb = verbs.add_parser("specs", help="list the specs of features, and compare two of them")
    actions = verb.add_subparsers(dest="action", metavar="ACTION", required=True)
    action = actions.add_parser("diff", help="the fields in which two specs differ")
    for name in ("first", "second"):
        action.add_argument(name, metavar=name.upper(), help="features/BACKBONE/SPEC, or BACKBONE/SPEC")
    action.set_defaults(run=_diff)
    action = actions.add_parser("list", help="the specs that are here, and the data sets that have features of each")
    action.set_defaults(run=_list)


def _diff(parsed: argparse.Namespace) -> None:
    from stepline.features.specs import compare

    found = compare(parsed.first, parsed.second)
    print(columns([("field", parsed.first, parsed.second, "meaning"), *found]) if found else "the specs are the same")


def _list(_: argparse.Namespace) -> None:
    from stepline.features.specs import specs

    lines = [
        (str(folder), ", ".join(f"{name}{'' if now else ' (not configured)'}" for name, now in datasets.items()) or "-")
        for folder, datasets in specs().items()
    ]
    print(columns([("spec", "data sets"), *lines]) if lines else "there are no features here")
