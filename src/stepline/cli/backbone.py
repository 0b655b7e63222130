"""The verb `backbone`: checks of the networks."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stepline.backbones import CHECKED
from stepline.errors import ParityError

if TYPE_CHECKING:
    Verbs = argparse._SubParsersAction[Any]


def add(verbs: "Verbs") -> None:
    """Add the verb."""
    verb = verbs.add_parser("backbone", help="check that a network gives the reference implementation's outputs")
    actions = verb.add_subparsers(dest="action", metavar="ACTION", required=True)
    action = actions.add_parser("check", help="fill the model by the parity recipe and compare every output")
    action.add_argument("name", metavar="NAME", help=", ".join(CHECKED))
    action.add_argument("--manifest", type=Path, required=True, help="the names, shapes and rules of the weights")
    action.add_argument("--golden", type=Path, required=True, help="the reference's outputs")
    action.add_argument(
        "--anchors", type=Path, help="a folder of public outputs, to compare those of the real weights with"
    )
    action.set_defaults(run=_check)


def _check(parsed: argparse.Namespace) -> None:
    from stepline.backbones.parity import TOLERANCE, anchors, check

    worst = 0.0
    for output in check(parsed.name, parsed.manifest, parsed.golden):
        print(f"{output.name:40} {output.error:.2e}", flush=True)
        worst = max(worst, output.error)
    if not worst <= TOLERANCE:
        raise ParityError(f"{parsed.name} is not the reference: relative L2 error {worst:.2e}, allowed {TOLERANCE:.0e}")
    print(f"{parsed.name} is the reference: relative L2 error at most {worst:.2e} of {TOLERANCE:.0e}", flush=True)
    if parsed.anchors is None:
        return
    wrong = []
    for anchor in anchors(parsed.name, parsed.anchors):
        print(f"{anchor.name:40} {anchor.error:.2e} of {anchor.allowed:.0e}", flush=True)
        if not anchor.error <= anchor.allowed:
            wrong.append(anchor.name)
    if wrong:
        raise ParityError(f"{parsed.name} with these weights does not give the public outputs {', '.join(wrong)}")
    print(f"{parsed.name} with these weights gives the public outputs")
