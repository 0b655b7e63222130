"""What shows a study's results besides its tables: which jobs each asks for, and what decides it.

As with the plan, nothing is computed here, and nothing heavy is imported.
"""

from dataclasses import asdict
from pathlib import Path

from stepline import paths
from stepline.benchmarks.spacewalk.entries import Entry, declared_pairs
from stepline.benchmarks.spacewalk.plan import Job, Plan, paper_file
from stepline.datasets.studies import RETRIEVAL, STEP_RECOGNITION
from stepline.io import sha256_file
from stepline.spec import digest

EXAMPLES_S = {STEP_RECOGNITION: 60.0, RETRIEVAL: 20.0}
"""Window lengths of the paper's Figures A10 to A23."""


def pairs(plan: Plan) -> list[tuple[Job, Job]]:
    """Return the pairs of predictions, on each release, whose difference is asked for, of configured tables."""
    found = []
    for first, first_s, second, second_s in declared_pairs():
        if not {first, second} <= plan.shown.keys():
            continue
        sides = (plan.entries[first], first_s), (plan.entries[second], second_s)
        if all(context_s in entry.windows(plan.study_config) for entry, context_s in sides):
            for release in plan.releases_of(plan.entries[first]):
                one, other = (Job(release=release, entry=entry, context_s=context_s) for entry, context_s in sides)
                found.append((one, other))
    return found


def results(plan: Plan) -> list[Path]:
    """All that is made of the study: its configured tables and what shows them."""
    shown = ("tableA1", "tableA5", "pairs")
    names = [f"{table}.{form}" for table in (*plan.tables, *shown) for form in ("csv", "md")]
    names += [f"figure{number}.svg" for number in ("3", "4", "A2", "A9")] + ["examples.html"]
    if "table2" in plan.tables:
        names += ["table2.svg", "report.html"]
    return [Path("results", plan.study.name, name) for name in sorted(names)]


def pair_files(plan: Plan) -> list[Path]:
    """Return the scores that pairs are compared by."""
    jobs = [job for pair in pairs(plan) for job in pair if not plan.lacking_on(job.entry, job.release)]
    return list(dict.fromkeys(paths.scores(plan.study.name, j.release, j.entry.id, j.context) for j in jobs))


def pair_params(plan: Plan) -> str:
    """Return what pairs must be compared again for, besides scores, as text."""
    listed = [
        [job.release, job.entry.id, job.entry.method, job.context, plan.lacking_on(job.entry, job.release)]
        for pair in pairs(plan)
        for job in pair
    ]
    return digest([listed, plan.score_params()])


def figure_tables(plan: Plan) -> list[str]:
    """The configured tables that figures are drawn from."""
    return [target for target in ("table2", "tableA6", "tableA7", "tableA8", "tableA9") if target in plan.tables]


def figure_files(plan: Plan) -> list[Path]:
    """Return the scores that figures are drawn from."""
    return [path for target in figure_tables(plan) for path in plan.score_files(target)]


def figure_params(plan: Plan) -> str:
    """Return what figures must be drawn again for, besides scores, as text."""
    return digest([plan.table_params(target) for target in figure_tables(plan)])


def duration_inputs(plan: Plan) -> list[Path]:
    """Return what durations are measured in: the releases, and shots where entries use videos or they are there."""
    shots = plan.pipeline.videos.manifests(paths.shots(plan.name))
    found = [path for path in shots if plan.uses_videos or path.exists()]
    return [*map(plan.release_manifest, plan.releases), *found]


def duration_params(plan: Plan) -> str:
    """Return what durations must be measured again for, besides their inputs, as text."""
    paper = [sha256_file(path) for path in map(paper_file, ("tableA1", "tableA5")) if path]
    return digest([plan.releases, paper])


def example_jobs(plan: Plan) -> list[Job]:
    """Return the jobs of which examples are shown: those that see windows, at the length of the paper's figures.

    They are of the configured tables; each on the last release that has its task.
    """
    found = []
    for entry in _with_examples(plan):
        release = plan.releases_of(entry)[-1]
        if not plan.lacking_on(entry, release):
            lengths = [length_s for length_s in entry.windows(plan.study_config) if length_s]
            shown_s = EXAMPLES_S[entry.task]
            length_s = min(lengths, key=lambda length_s: (abs(length_s - shown_s), length_s))
            found.append(Job(release=release, entry=entry, context_s=length_s))
    return found


def examples_lack(plan: Plan) -> list[tuple[Entry, tuple[str, ...]]]:
    """Return the entries whose examples lack something, and what."""
    found = ((entry, plan.lacking_on(entry, plan.releases_of(entry)[-1])) for entry in _with_examples(plan))
    return [(entry, lacking) for entry, lacking in found if lacking]


def _with_examples(plan: Plan) -> list[Entry]:
    shown = [entry for entry in plan.shown.values() if entry.table in ("2a", "2b", "A8") and not entry.same_as]
    seen = [entry for entry in shown if entry.computed and "window" in entry.inputs]
    return [entry for entry in seen if plan.releases_of(entry) and any(entry.windows(plan.study_config))]


def example_inputs(plan: Plan) -> list[Path]:
    """Return what examples are made from."""
    jobs = example_jobs(plan)
    made = [paths.predictions(plan.study.name, j.release, j.entry.id, j.context) for j in jobs]
    return list(dict.fromkeys([*made, *(p for j in jobs for p in plan.score_inputs(j)), *plan.report_inputs()]))


def example_params(plan: Plan) -> str:
    """Return what examples must be chosen again for, besides their inputs, as text."""
    lacking = [[entry.id, *items] for entry, items in examples_lack(plan)]
    listed = [asdict(job.entry) for job in example_jobs(plan)]
    return digest([listed, lacking, plan.study_config["transcripts"], plan.score_params()])
