"""The verb `doctor`: the state of the installation, and the results that can be computed now."""

import argparse
from itertools import groupby
from typing import TYPE_CHECKING

from stepline.cli.lines import columns
from stepline.errors import SetupError

if TYPE_CHECKING:
    from stepline.benchmark.declared import SubParsers


def add(verbs: "SubParsers") -> None:
    """Add the verb."""
    verb = verbs.add_parser("doctor", help="check packages, GPU, disk, keys and weights; list missing ones")
    verb.add_argument("--json", action="store_true", help="print the checks as a list in JSON")
    verb.set_defaults(run=_doctor)


def _doctor(parsed: argparse.Namespace) -> None:
    from stepline.doctor import as_json, checks

    found = checks(parsed.configfile)
    if parsed.json:
        print(as_json(found))
    else:
        for area, members in groupby(found, key=lambda check: check.area):
            lines = [(f"  {each.state}", each.name, each.text, each.command) for each in members]
            print(f"{area}\n{columns(lines)}")
    if broken := [check.name for check in found if check.state == "broken"]:
        raise SetupError(f"broken: {', '.join(broken)}")
