"""The verbs of studies in Spacewalk-18's format."""

import argparse
from typing import TYPE_CHECKING

from stepline import paths
from stepline.benchmarks.spacewalk.benchmark import Spacewalk
from stepline.errors import ConfigError

if TYPE_CHECKING:
    from stepline.benchmark.declared import SubParsers


def add(verbs: "SubParsers") -> None:
    """Add the verbs."""
    verb = verbs.add_parser("samples", description="Write a study's samples, identical to the released files.")
    _release(verb)
    verb.add_argument("--task", help="default: all tasks of the release")
    verb.add_argument("--split", help="default: all splits")
    verb.set_defaults(run=_samples)

    verb = verbs.add_parser("encode", description="Compute the embeddings of a recording's texts.")
    _release(verb)
    verb.add_argument("--task", required=True)
    verb.add_argument("--video", required=True)
    verb.add_argument("--encoder", required=True)
    verb.set_defaults(run=_encode)

    for name, run, text in (
        ("figures", _figures, "Plot values against window length and training data, as SVG."),
        ("durations", _durations, "Write the durations of recordings and clips."),
    ):
        verb = verbs.add_parser(name, description=text)
        verb.add_argument("study")
        verb.set_defaults(run=run)


def _release(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("study")
    verb.add_argument("--release", required=True)


def _samples(parsed: argparse.Namespace) -> None:
    from stepline.benchmarks.spacewalk.samples import write_samples
    from stepline.datasets import studies

    study = studies.study(parsed.study, parsed.release)
    if not (study.folder(parsed.release) / "release.json").exists():
        from stepline.fetch import fetch_release

        fetch_release(study, parsed.release)
    release = study.load(parsed.release)
    wanted = [
        (task, split)
        for task in study.tasks[parsed.release]
        for split in study.splits(parsed.release, task)
        if parsed.task in (None, task) and parsed.split in (None, split)
    ]
    if not wanted:
        asked = " ".join(filter(None, (parsed.task, parsed.split)))
        raise ConfigError(f"{parsed.study} {parsed.release} has no samples of {asked}")
    for task, split in wanted:
        write_samples(study, release, task, split, paths.samples(parsed.study, parsed.release, task, split))


def _encode(parsed: argparse.Namespace) -> None:
    from stepline.backbones.registry import towers
    from stepline.backbones.sentence import MODELS
    from stepline.benchmarks.spacewalk.encode import encode
    from stepline.datasets.studies import study

    plan = _study(parsed)
    known = study(parsed.study, parsed.release)
    for what, asked, allowed in (
        ("task", parsed.task, known.tasks[parsed.release]),
        ("video", parsed.video, known.load(parsed.release).recordings),
        ("encoder", parsed.encoder, [*MODELS, *towers()]),
    ):
        if asked not in allowed:
            raise ConfigError(f"{what} {asked!r} is not known; choose from {', '.join(allowed)}")
    encode(plan, parsed.release, parsed.task, parsed.video, parsed.encoder)


def _figures(parsed: argparse.Namespace) -> None:
    from stepline.benchmarks.spacewalk.figures import write_figures

    write_figures(_study(parsed))


def _durations(parsed: argparse.Namespace) -> None:
    from stepline.benchmarks.spacewalk.durations import write_durations

    write_durations(_study(parsed))


def _study(parsed: argparse.Namespace) -> Spacewalk:
    from stepline.config import load

    if parsed.study not in Spacewalk.studies:
        raise ConfigError(f"study {parsed.study!r} is not known; choose from {', '.join(Spacewalk.studies)}")
    return Spacewalk.of(load(parsed.configfile), parsed.study)
