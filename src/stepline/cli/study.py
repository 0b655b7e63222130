"""The verbs that show results besides tables: `pairs`, `figures`, `examples`, `durations`, `results`."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stepline.benchmarks.spacewalk.plan import Plan

    Verbs = argparse._SubParsersAction[Any]


def add(verbs: "Verbs") -> None:
    """Add the verbs."""
    for name, run, text in (
        ("pairs", _pairs, "differences between methods, recording by recording"),
        ("figures", _figures, "methods over window lengths and training data, as SVG"),
        ("examples", _examples, "a page of what methods get right and wrong; of pss, its paper's examples by hand"),
        ("durations", _durations, "how long recordings and clips are"),
        ("results", _results, "the sha256 of all results, as `sha256sum --check` reads it"),
    ):
        verb = verbs.add_parser(name, help=text)
        verb.add_argument("study")
        verb.set_defaults(run=run)


def _pairs(parsed: argparse.Namespace) -> None:
    from stepline.benchmarks.spacewalk.pairs import write_pairs

    write_pairs(_plan(parsed))


def _figures(parsed: argparse.Namespace) -> None:
    from stepline.benchmarks.spacewalk.figures import write_figures

    write_figures(_plan(parsed))


def _examples(parsed: argparse.Namespace) -> None:
    from stepline.benchmarks.pss.worked import write_worked_examples
    from stepline.benchmarks.spacewalk.examples import write_study_examples

    if parsed.study == "pss":
        write_worked_examples(Path("results/pss/worked_examples.html"))
        return
    write_study_examples(_plan(parsed))


def _durations(parsed: argparse.Namespace) -> None:
    from stepline.benchmarks.spacewalk.durations import write_durations

    write_durations(_plan(parsed))


def _results(parsed: argparse.Namespace) -> None:
    from stepline import paths
    from stepline.benchmarks.spacewalk import presentation
    from stepline.io import sha256_file, write_text

    plan = _plan(parsed)
    write_text(
        paths.all_results(plan.name), "".join(f"{sha256_file(path)}  {path}\n" for path in presentation.results(plan))
    )


def _plan(parsed: argparse.Namespace) -> "Plan":
    from stepline.benchmarks.spacewalk.plan import Plan
    from stepline.config import load

    return Plan.of(load(parsed.configfile), parsed.study)
