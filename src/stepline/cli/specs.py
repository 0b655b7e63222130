"""The verb `specs`: lists the specs of features."""

import argparse
from typing import TYPE_CHECKING

from stepline.cli.lines import columns

if TYPE_CHECKING:
    from stepline.benchmark.declared import SubParsers


def add(verbs: "SubParsers") -> None:
    """Add the verb."""
    verb = verbs.add_parser("specs", help="list the specs of features")
    actions = verb.add_subparsers(dest="action", metavar="ACTION", required=True)
    action = actions.add_parser(
        "list", help="list the specs in this folder, with the data sets that have features of each"
    )
    action.set_defaults(run=_list)


def _list(_: argparse.Namespace) -> None:
    from stepline.features.specs import specs

    lines = [
        (str(folder), ", ".join(f"{name}{'' if now else ' (not configured)'}" for name, now in datasets.items()) or "-")
        for folder, datasets in specs().items()
    ]
    print(columns([("spec", "data sets"), *lines]) if lines else "there are no features here")
