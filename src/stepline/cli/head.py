"""The verb `head`: checks of the heads that are trained on cached features."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stepline.errors import ParityError
from stepline.models import CHECKED

if TYPE_CHECKING:
    Verbs = argparse._SubParsersAction[Any]


def add(verbs: "Verbs") -> None:
    """Add the verb."""
    verb = verbs.add_parser("head", help="check that a head gives the released code's outputs")
    actions = verb.add_subparsers(dest="action", metavar="ACTION", required=True)
    action = actions.add_parser("check", help="fill the head by the parity recipe and compare every output")
    action.add_argument("name", metavar="NAME", help=", ".join(CHECKED))
    action.add_argument("--manifest", type=Path, required=True, help="the names, shapes and rules of the weights")
    action.add_argument("--golden", type=Path, required=True, help="the released code's outputs")
    action.set_defaults(run=_check)


def _check(parsed: argparse.Namespace) -> None:
    from stepline.models.parity import check

    every = []
    for each in check(parsed.name, parsed.manifest, parsed.golden):
        print(f"{each.name:56} {each.error:.1e} of {each.allowed:.1e}{'' if each.agrees else ' !'}", flush=True)
        every.append(each)
    wrong = [each.name for each in every if not each.agrees]
    if wrong:
        found = f"{len(wrong)} of {len(every)} outputs differ, as {wrong[0]}"
        raise ParityError(f"{parsed.name} is not the released head: {found}")
    worst = max(every, key=lambda each: each.error)
    print(
        f"{parsed.name} is the released head: no error is above what is allowed, "
        f"the largest {worst.error:.1e} of {worst.allowed:.1e}"
    )
