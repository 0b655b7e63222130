"""The verb `cite`: BibTeX and licences of everything that a table uses."""

import argparse
from typing import TYPE_CHECKING

from stepline.cli.lines import columns

if TYPE_CHECKING:
    from stepline.benchmark.declared import SubParsers


def add(verbs: "SubParsers") -> None:
    """Add the verb."""
    verb = verbs.add_parser("cite", help="print BibTeX and licences of everything that a table uses")
    verb.add_argument("target", metavar="TARGET", help="results/STUDY/TABLE.csv, or the name of a study or data set")
    verb.set_defaults(run=_cite)


def _cite(parsed: argparse.Namespace) -> None:
    from stepline.citations.cite import cite
    from stepline.citations.works import LICENSED

    found = cite(parsed.target, parsed.configfile)
    lines = [("role", "name", "reference", "licence")]
    lines += [
        (
            each.role,
            each.name,
            ", ".join(each.cite) or "-",
            each.licence or ("not known" if each.role in LICENSED else "-"),
        )
        for each in found.works
    ]
    print("\n".join(f"% {line}" for line in [found.said, *columns(lines).splitlines()]))
    print("", "\n\n".join(found.entries), sep="\n")
