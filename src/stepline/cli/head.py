"""The verb `head`: checks of the heads that are trained on cached features."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stepline.errors import ParityError

if TYPE_CHECKING:
    Verbs = argparse._SubParsersAction[Any]


def add(verbs: "Verbs") -> None:
    """Add the verb."""
    verb = verbs.add_parser("head", help="check that a head gives the released code's outputs")
    actions = verb.add_subparsers(dest="action", metavar="ACTION", required=True)
    action = actions.add_parser("check", help="fill the head by the parity recipe and compare every output")
    action.add_argument("name", metavar="NAME", help="pdvc")
    action.add_argument("--manifest", type=Path, required=True, help="the names, shapes and rules of the weights")
    action.add_argument("--golden", type=Path, required=True, help="the released code's outputs")
    action.set_defaults(run=_check)


def _check(parsed: argparse.Namespace) -> None:
    from stepline.models.parity import check

    wrong = []
    for each in check(parsed.name, parsed.manifest, parsed.golden):
        print(f"{each.name:56} {each.error:.1e} of {each.allowed:.1e}{'' if each.agrees else ' !'}", flush=True)
        wrong += [] if each.agrees else [each.name]
    if wrong:
        raise ParityError(f"{parsed.name} is not the released head: {len(wrong)} outputs differ, as {wrong[0]}")
    print(f"{parsed.name} is the released head: every error is allowed")
