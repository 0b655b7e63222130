"""The verb `htstep`: submissions to the challenge, and Table 7."""

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stepline.benchmark.declared import SubParsers
    from stepline.benchmarks.htstep.benchmark import Htstep


def add(verbs: "SubParsers") -> None:
    """Add the verb."""
    verb = verbs.add_parser("htstep", help="write submissions and Table 7 of HT-Step")
    actions = verb.add_subparsers(dest="action", metavar="ACTION", required=True)

    action = actions.add_parser("submissions", help="write an entry's predictions of withheld splits for the challenge")
    action.add_argument("entry", metavar="ENTRY")
    action.set_defaults(run=_submissions)

    action = actions.add_parser("activities", help="write Table 7, the average precision of each activity")
    action.set_defaults(run=_activities)


def _submissions(parsed: argparse.Namespace) -> None:
    from stepline.benchmarks.htstep.submission import write_submissions

    plan = _plan(parsed)
    print(write_submissions(plan, plan.job("v1", parsed.entry, "all")))


def _activities(parsed: argparse.Namespace) -> None:
    from stepline.benchmarks.htstep.activities import write_activities

    write_activities(_plan(parsed))


def _plan(parsed: argparse.Namespace) -> "Htstep":
    from stepline.benchmarks.htstep.benchmark import Htstep
    from stepline.config import load

    return Htstep.of(load(parsed.configfile), "htstep")
