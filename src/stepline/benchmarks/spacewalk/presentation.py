"""The results of a study other than its tables: their jobs, inputs and cache keys.

As in the plan, nothing is computed here, and no heavy package is imported.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from stepline import paths
from stepline.benchmark import Job
from stepline.benchmarks.spacewalk.kinds import FOLDER
from stepline.datasets.studies import RETRIEVAL, STEP_RECOGNITION
from stepline.io import sha256_file
from stepline.spec import digest

if TYPE_CHECKING:
    from stepline.benchmarks.spacewalk.benchmark import Spacewalk

WINDOWED = (
    "Filled markers are our values, with the 95 % interval by bootstrap over the videos; hollow markers are the "
    "paper's. Dashed lines are methods without a window length, baselines and references. Slashes mark a broken axis."
)
LABELS = (
    "The top strip shows the labels, the strips below it the predictions. Steps run from dark to light in the order of "
    "the script; grey is Irrelevant, white is a uniform guess."
)
PRINTED = {table: FOLDER / "paper" / f"{table}.csv" for table in ("tableA1", "tableA5")}
"""The paper's tables of durations."""
EXAMPLES = ("2a", "2b", "A8")
"""The tables with examples of their methods."""
EXAMPLES_S = {STEP_RECOGNITION: 60.0, RETRIEVAL: 20.0}
"""Window lengths of the paper's Figures A10 to A23."""


def results(benchmark: "Spacewalk") -> list[Path]:
    """Return the result files of a study other than its tables, their pairs and the page."""
    names = [f"{table}.{form}" for table in PRINTED for form in ("csv", "md")]
    names += [f"figure{number}.svg" for number in ("3", "4", "A2", "A9")] + ["examples.html"]
    names += ["table2.svg"] if "table2" in benchmark.tables else []
    return [Path("results", benchmark.name, name) for name in names]


def page_inputs(benchmark: "Spacewalk") -> list[Path]:
    """Return the inputs of the page other than tables: thumbnails and transcripts of the videos that entries use."""
    pipeline = benchmark.pipeline
    recognised = any(map(benchmark.recognised, benchmark.ready.values()))
    frames = any(entry.backbone for entry in benchmark.ready.values())
    pictures = pipeline.videos.manifests(paths.thumbnails(benchmark.name)) if recognised or frames else []
    return [*pictures, *(pipeline.speech.manifests if recognised else []), *pipeline.videos.dropped]


def figure_tables(benchmark: "Spacewalk") -> list[str]:
    """Return the configured tables that figures are drawn from."""
    return [file for file in ("table2", "tableA6", "tableA7", "tableA8", "tableA9") if file in benchmark.tables]


def figure_inputs(benchmark: "Spacewalk") -> list[Path]:
    """Return the scores that figures are drawn from."""
    return list(dict.fromkeys(path for file in figure_tables(benchmark) for path in benchmark.table_inputs(file)))


def figure_params(benchmark: "Spacewalk") -> str:
    """Return the cache key of figures, in addition to scores."""
    return digest(list(map(benchmark.table_params, figure_tables(benchmark))))


def duration_inputs(benchmark: "Spacewalk") -> list[Path]:
    """Return the inputs of durations: releases, and shots that exist or that entries' videos will have."""
    shots = benchmark.pipeline.videos.manifests(paths.shots(benchmark.name))
    found = [path for path in shots if benchmark.uses_videos or path.exists()]
    return [*map(benchmark.release_manifest, benchmark.releases), *found]


def duration_params(benchmark: "Spacewalk") -> str:
    """Return the cache key of durations, in addition to their inputs."""
    return digest([benchmark.releases, list(map(sha256_file, PRINTED.values()))])


def example_jobs(benchmark: "Spacewalk") -> list[Job]:
    """Return the jobs with examples, including jobs with unmet needs: those that see windows.

    Each is on the last release that has its line, at the window length of the paper's figures or the nearest length.
    """
    found: dict[str, Job] = {}
    for table, line, release in benchmark.lines():
        entry = benchmark.entries[line.entry]
        lengths = [length_s for _, length_s in benchmark.contexts(table, line) if length_s]
        if table.name == entry.table in EXAMPLES and entry.kind.method and entry.kind.windowed and lengths:
            shown_s = EXAMPLES_S[entry.task]
            length_s = min(lengths, key=lambda length_s: (abs(length_s - shown_s), length_s))
            found[entry.id] = Job(release=release, entry=entry, context_s=length_s)
    return list(found.values())


def example_inputs(benchmark: "Spacewalk") -> list[Path]:
    """Return the inputs of the examples."""
    jobs = [job for job in example_jobs(benchmark) if not benchmark.missing(job.entry, job.release)]
    made = [paths.predictions(benchmark.name, job.release, job.entry.id, job.context) for job in jobs]
    read = [path for job in jobs for path in benchmark.score_inputs(job)]
    return list(dict.fromkeys([*made, *read, *page_inputs(benchmark)]))


def example_params(benchmark: "Spacewalk") -> str:
    """Return the cache key of examples, in addition to their inputs."""
    listed = []
    for job in example_jobs(benchmark):
        needs = list(map(str, benchmark.lacking(job.entry, job.release)))
        shown = [job.entry.table, job.entry.method, job.entry.setting, job.entry.sees]
        listed.append([*shown, needs or benchmark.score_params(job)])
    return digest([listed, benchmark.options["transcripts"]])
