"""The verbs `backbone` and `head`: checks of networks against their reference implementations."""

import argparse
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stepline import backbones, models
from stepline.errors import ParityError

if TYPE_CHECKING:
    Verbs = argparse._SubParsersAction[Any]

CHECKED = {"backbone": backbones.CHECKED, "head": models.CHECKED}
PACKAGES = {"backbone": "stepline.backbones.parity", "head": "stepline.models.parity"}


def add(verbs: "Verbs") -> None:
    """Add the verbs."""
    for what, names in CHECKED.items():
        verb = verbs.add_parser(what, help=f"compare a {what} with its reference implementation")
        actions = verb.add_subparsers(dest="action", metavar="ACTION", required=True)
        action = actions.add_parser("check", help="fill the model by the parity recipe and compare every output")
        action.add_argument("name", metavar="NAME", help=", ".join(names))
        action.add_argument("--manifest", type=Path, required=True, help="the names, shapes and rules of the weights")
        action.add_argument("--golden", type=Path, required=True, help="the reference's outputs")
        if what == "backbone":
            action.add_argument(
                "--anchors", type=Path, help="a folder of public outputs, to compare those of the real weights with"
            )
        action.set_defaults(run=partial(_check, what), anchors=None)


def _check(what: str, parsed: argparse.Namespace) -> None:
    from stepline.backbones.parity import Output, anchors, check

    name, outputs = parsed.name, list[Output]()
    for output in check(PACKAGES[what], CHECKED[what], name, parsed.manifest, parsed.golden):
        outputs.append(output)
        print(f"{output.name:56} {output.error:.2e} of {output.allowed:.1e}{'' if output.agrees else ' !'}", flush=True)
    wrong = [output.name for output in outputs if not output.agrees]
    if wrong:
        raise ParityError(
            f"{name} is not the reference: {len(wrong)} of {len(outputs)} outputs differ, as {', '.join(wrong[:3])}"
        )
    worst = max(outputs, key=lambda output: output.error)
    print(f"{name} is the reference: relative L2 error at most {worst.error:.2e} of {worst.allowed:.1e}", flush=True)
    if parsed.anchors is None:
        return
    for anchor in anchors(name, parsed.anchors):
        print(f"{anchor.name:56} {anchor.error:.2e} of {anchor.allowed:.1e}", flush=True)
        wrong += [] if anchor.error <= anchor.allowed else [anchor.name]
    if wrong:
        raise ParityError(f"{name} with these weights does not give the public outputs {', '.join(wrong)}")
    print(f"{name} with these weights gives the public outputs")
