"""The verb `doctor`: checks the installation and lists the results that can be computed."""

import argparse
import os
from itertools import groupby
from typing import TYPE_CHECKING

from stepline.cli.lines import columns
from stepline.config import load
from stepline.errors import SetupError

if TYPE_CHECKING:
    from stepline.benchmark.declared import SubParsers


def add(verbs: "SubParsers") -> None:
    """Add the verb."""
    verb = verbs.add_parser("doctor", help="check packages, GPU, disk, keys and weights; list missing ones")
    verb.add_argument("--json", action="store_true", help="print the checks as a JSON list")
    verb.add_argument(
        "--profile",
        default=os.environ.get("SNAKEMAKE_PROFILE", ""),
        help="the profile of snakemake whose requests are compared with the partitions of a Slurm cluster",
    )
    verb.set_defaults(run=_doctor)


def _doctor(parsed: argparse.Namespace) -> None:
    from stepline.doctor import as_json, checks
    from stepline.overview.requests import of_partitions

    found = checks(parsed.configfile)
    if any((check.area, check.state) == ("configuration", "ok") for check in found):
        found += of_partitions(load(parsed.configfile), parsed.profile)
    if parsed.json:
        print(as_json(found))
    else:
        for area, members in groupby(found, key=lambda check: check.area):
            lines = [(f"  {each.state}", each.name, each.text, each.command) for each in members]
            print(f"{area}\n{columns(lines)}")
    if broken := [check.name for check in found if check.state == "broken"]:
        raise SetupError(f"broken: {', '.join(broken)}")
