"""The verb `htstep`: synthetic annotation, submissions to the challenge, and Table 7."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from stepline.errors import ConfigError

if TYPE_CHECKING:
    from stepline.benchmark.declared import SubParsers
    from stepline.benchmarks.htstep.benchmark import Htstep

LABELLED = ("train", "val_seen")
"""The splits whose segments the authors release."""


def add(verbs: "SubParsers") -> None:
    """Add the verb."""
    verb = verbs.add_parser("htstep", help="write submissions, Table 7, and synthetic annotation of HT-Step")
    actions = verb.add_subparsers(dest="action", metavar="ACTION", required=True)

    action = actions.add_parser("make-annotations", help="write made-up annotation and candidates into a mirror")
    action.add_argument("folder", metavar="FOLDER", type=Path, help="the mirror, or another folder")
    action.add_argument("--seed", type=int, default=0, help="default: %(default)d")
    action.add_argument(
        "--withhold", action="store_true", help="write segments only for train and val_seen, like the authors' release"
    )
    action.set_defaults(run=_make)

    action = actions.add_parser("submissions", help="write an entry's predictions of withheld splits for the challenge")
    action.add_argument("entry", metavar="ENTRY")
    action.set_defaults(run=_submissions)

    action = actions.add_parser("activities", help="write Table 7, the average precision of each activity")
    action.set_defaults(run=_activities)


def _make(parsed: argparse.Namespace) -> None:
    from stepline.datasets import htstep
    from stepline.datasets.htstep_made import PAPER, make_annotations, make_candidates, measured
    from stepline.io import canonical_json, write_text

    annotations, candidates = (
        parsed.folder / htstep.FILES[release][0].wanted.path for release in ("annotations", "candidates")
    )
    for path in (annotations, candidates):
        if path.exists():
            raise ConfigError(f"{path} exists already: remove it, or name another folder")
    made = make_annotations(parsed.seed, LABELLED if parsed.withhold else htstep.SPLITS)
    write_text(annotations, canonical_json(made) + "\n")
    write_text(candidates, canonical_json(make_candidates(parsed.seed)) + "\n")
    for name, value in measured(made).items():
        paper = PAPER[name]
        print(f"{name}: {value:.6g}{'' if paper is None else f' (paper: {paper:g})'}")
    print(
        f"{annotations}\n{candidates}\nmade up with seed {parsed.seed}: set STEPLINE_MIRROR={parsed.folder} to use them"
    )


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
