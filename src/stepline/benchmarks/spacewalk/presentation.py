"""What shows a study's results besides its tables: which jobs each asks for, and what decides it.

As with the plan, nothing is computed here, and nothing heavy is imported.
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
    "Filled markers are ours, with the 95 % interval by bootstrap over the videos; hollow ones are the paper's. Dashed "
    "lines are methods whose value has no window length, baselines and references. Slashes mark a broken axis."
)
LABELS = (
    "The top strip holds the labels, the strips below the predictions. Steps run from dark to light in the order of "
    "the script; grey is Irrelevant, white a uniform guess."
)
PRINTED = {table: FOLDER / "paper" / f"{table}.csv" for table in ("tableA1", "tableA5")}
"""What the paper prints of durations."""
EXAMPLES = ("2a", "2b", "A8")
"""The tables whose methods have examples."""
EXAMPLES_S = {STEP_RECOGNITION: 60.0, RETRIEVAL: 20.0}
"""Window lengths of the paper's Figures A10 to A23."""


def results(benchmark: "Spacewalk") -> list[Path]:
    """Return what is made of a study besides its tables, their differences and the page."""
    names = [f"{table}.{form}" for table in PRINTED for form in ("csv", "md")]
    names += [f"figure{number}.svg" for number in ("3", "4", "A2", "A9")] + ["examples.html"]
    names += ["table2.svg"] if "table2" in benchmark.tables else []
    return [Path("results", benchmark.name, name) for name in names]


def page_inputs(benchmark: "Spacewalk") -> list[Path]:
    """Return what the page shows of the videos that entries use: pictures and transcripts."""
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
    """Return what decides figures, besides scores, as text."""
    return digest(list(map(benchmark.table_params, figure_tables(benchmark))))


def duration_inputs(benchmark: "Spacewalk") -> list[Path]:
    """Return what durations are measured in: the releases, and shots where entries use videos or they are there."""
    shots = benchmark.pipeline.videos.manifests(paths.shots(benchmark.name))
    found = [path for path in shots if benchmark.uses_videos or path.exists()]
    return [*map(benchmark.release_manifest, benchmark.releases), *found]


def duration_params(benchmark: "Spacewalk") -> str:
    """Return what decides durations, besides their inputs, as text."""
    return digest([benchmark.releases, list(map(sha256_file, PRINTED.values()))])


def example_jobs(benchmark: "Spacewalk") -> list[Job]:
    """Return the jobs that have examples, also where something is missing: those that see windows.

    Each is on the last release that has its line, at the length of the paper's figures or the nearest one.
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
    """Return what examples are made from."""
    jobs = [job for job in example_jobs(benchmark) if not benchmark.missing(job.entry, job.release)]
    made = [paths.predictions(benchmark.name, job.release, job.entry.id, job.context) for job in jobs]
    read = [path for job in jobs for path in benchmark.score_inputs(job)]
    return list(dict.fromkeys([*made, *read, *page_inputs(benchmark)]))


def example_params(benchmark: "Spacewalk") -> str:
    """Return what decides examples, besides their inputs, as text."""
    listed = []
    for job in example_jobs(benchmark):
        needs = list(map(str, benchmark.missing(job.entry, job.release)))
        shown = [job.entry.table, job.entry.method, job.entry.setting, job.entry.sees]
        listed.append([*shown, needs or benchmark.score_params(job)])
    return digest([listed, benchmark.options["transcripts"]])
