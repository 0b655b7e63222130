"""The workflow's rules as data: what each makes, where it logs, and what it reads. `workflow/rules/` has the same.

A test holds the jobs that follow from them to those of ``snakemake -n``.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from stepline import paths
from stepline.benchmark import pairs
from stepline.benchmarks.spacewalk import demand, presentation
from stepline.datasets import oepp
from stepline.datasets.release import REBUILT
from stepline.helpers import Helpers

Words = SimpleNamespace
"""The parts of a path by name, as Snakemake's wildcards."""


@dataclass(frozen=True)
class Rule:
    """What the jobs of a rule make, the first of which is the record that it is done; where they log; what they read.

    Paths have names of wildcards in braces.
    """

    makes: tuple[str, ...]
    log: str
    reads: Callable[[Helpers, Words], Iterable[Path | str]] = lambda _, __: ()


def _media(_: Helpers, by: Words) -> list[Path]:
    return [paths.manifest(paths.media(by.dataset), by.shard)]


def _release(_: Helpers, by: Words) -> list[Path]:
    return [Path("datasets", by.study, by.release, "release.json")]


def _sources(*_: object) -> list[str]:
    names = ["split1", "coin", *(["crosstask"] if oepp.RELEASES.is_there("crosstask") else [])]
    return [f"datasets/oepp/{name}/release.json" for name in names]


def _submitted(helpers: Helpers, by: Words) -> list[Path]:
    plan = _plan(helpers, "htstep")
    job = plan.job("v1", by.entry, "all")
    return [plan.predictions(job), *plan.score_inputs(job)]


def _by_activity(helpers: Helpers, _: Words) -> list[Path]:
    plan = _plan(helpers, "htstep")
    return [plan.scores(job) for job in plan.by_activity]


def _plan(helpers: Helpers, study: str) -> Any:
    return helpers.plans[study]


RULES: dict[str, Rule] = {
    "release": Rule(("datasets/{study}/{release}/release.json",), "logs/release/{study}.{release}.log"),
    "videos": Rule(
        ("datasets/{dataset}/availability/{shard}.json",),
        "logs/videos/{dataset}.{shard}.log",
        lambda helpers, by: helpers.pipeline(by).videos.inputs,
    ),
    "media": Rule(
        ("datasets/{dataset}/media/manifests/{shard}.json",),
        "logs/media/{dataset}.{shard}.log",
        lambda _, by: [paths.availability(by.dataset, by.shard)],
    ),
    "shots": Rule(("datasets/{dataset}/shots/manifests/{shard}.json",), "logs/shots/{dataset}.{shard}.log", _media),
    "transcribe": Rule(
        ("datasets/{dataset}/transcripts/{engine}/manifests/{shard}.json",),
        "logs/transcribe/{dataset}.{engine}.{shard}.log",
        _media,
    ),
    "thumbnails": Rule(
        ("datasets/{dataset}/thumbnails/manifests/{shard}.json",),
        "logs/thumbnails/{dataset}.{shard}.log",
        lambda _, by: [
            paths.availability(by.dataset, by.shard),
            paths.manifest(paths.shots(by.dataset), by.shard),
        ],
    ),
    "extract": Rule(
        ("features/{backbone}/{spec}/manifests/{dataset}.{shard}.json",),
        "logs/extract/{backbone}/{spec}/{dataset}.{shard}.log",
        lambda helpers, by: [paths.availability(by.dataset, by.shard), *helpers.pipeline(by).features.inputs],
    ),
    "drop": Rule(
        ("datasets/{dataset}/dropped/{shard}.json",),
        "logs/drop/{dataset}.{shard}.log",
        lambda helpers, by: helpers.pipeline(by).drop_inputs(by.shard),
    ),
    "summary": Rule(
        ("results/{dataset}/videos.csv", "results/{dataset}/videos.md"),
        "logs/summary/{dataset}.log",
        lambda helpers, by: helpers.pipeline(by).summary_inputs(),
    ),
    "page": Rule(
        ("results/{own}/report.html",),
        "logs/page/{own}.log",
        lambda helpers, by: [f"results/{by.own}/videos.csv", *helpers.pipelines[by.own].report_inputs()],
    ),
    "samples": Rule(
        ("results/{study}/samples/{release}/{task}/{split}.json",),
        "logs/samples/{study}.{release}.{task}.{split}.log",
        _release,
    ),
    "encode": Rule(
        ("features/{encoder}/{spec}/manifests/{study}.{release}.{task}.{video}.json",),
        "logs/encode/{encoder}/{spec}/{study}.{release}.{task}.{video}.log",
        lambda helpers, by: demand.encode_inputs(_plan(helpers, by.study), by.release, by.task, by.video),
    ),
    "fit": Rule(
        ("results/{study}/fits/{release}/{entry}/{context}/{seed}.safetensors",),
        "logs/fit/{study}.{release}.{entry}.{context}.{seed}.log",
        lambda helpers, by: helpers.plan(by).fit_inputs(helpers.job(by)),
    ),
    "predict": Rule(
        ("results/{study}/predictions/{release}/{entry}/{context}.parquet",),
        "logs/predict/{study}.{release}.{entry}.{context}.log",
        lambda helpers, by: helpers.plan(by).predict_inputs(helpers.job(by)),
    ),
    "score": Rule(
        ("results/{study}/scores/{release}/{entry}/{context}.json",),
        "logs/score/{study}.{release}.{entry}.{context}.log",
        lambda helpers, by: [
            paths.predictions(by.study, by.release, by.entry, by.context),
            *helpers.plan(by).score_inputs(helpers.job(by)),
        ],
    ),
    "table": Rule(
        ("results/{study}/{table}.csv", "results/{study}/{table}.md"),
        "logs/table/{study}.{table}.log",
        lambda helpers, by: helpers.plan(by).table_inputs(by.table),
    ),
    "report": Rule(
        ("results/{study}/report.html",),
        "logs/report/{study}.log",
        lambda helpers, by: helpers.plan(by).report_inputs(),
    ),
    "picture": Rule(
        ("results/{study}/{table}.svg",),
        "logs/picture/{study}.{table}.log",
        lambda _, by: [f"results/{by.study}/{by.table}.csv"],
    ),
    "pairs": Rule(
        ("results/{study}/pairs.csv", "results/{study}/pairs.md"),
        "logs/pairs/{study}.log",
        lambda helpers, by: pairs.inputs(_plan(helpers, by.study)),
    ),
    "results": Rule(("results/{study}/all",), "logs/results/{study}.log", lambda helpers, by: helpers.plan(by).results),
    "figures": Rule(
        tuple(f"results/{{spacewalk}}/figure{number}.svg" for number in ("3", "4", "A9")),
        "logs/figures/{spacewalk}.log",
        lambda helpers, by: presentation.figure_inputs(_plan(helpers, by.spacewalk)),
    ),
    "examples": Rule(
        ("results/{spacewalk}/examples.html",),
        "logs/examples/{spacewalk}.log",
        lambda helpers, by: presentation.example_inputs(_plan(helpers, by.spacewalk)),
    ),
    "durations": Rule(
        tuple(
            f"results/{{spacewalk}}/{name}"
            for name in ("tableA1.csv", "tableA1.md", "tableA5.csv", "tableA5.md", "figureA2.svg")
        ),
        "logs/durations/{spacewalk}.log",
        lambda helpers, by: presentation.duration_inputs(_plan(helpers, by.spacewalk)),
    ),
    "worked_examples": Rule(("results/pss/worked_examples.html",), "logs/worked_examples/pss.log"),
    "listings": Rule(
        ("results/oepp/table9.csv", "results/oepp/table10.csv"),
        "logs/listings/oepp.log",
        lambda _, __: ["datasets/oepp/split1/release.json"],
    ),
    "rebuild": Rule(
        ("results/oepp/rebuilt.csv", f"datasets/oepp/{REBUILT}/release.json"), "logs/rebuild/oepp.log", _sources
    ),
    "clusters": Rule(("results/oepp/clusters-{encoder}.csv",), "logs/clusters/oepp.{encoder}.log", _sources),
    "submissions": Rule(("results/htstep/submissions/{entry}",), "logs/submissions/htstep.{entry}.log", _submitted),
    "activities": Rule(
        ("results/htstep/table7.csv", "results/htstep/table7.md"),
        "logs/activities/htstep.log",
        _by_activity,
    ),
}
"""By name, in the order of the way of the data."""
