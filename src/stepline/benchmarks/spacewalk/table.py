"""Table 2: entries, scores and the paper's numbers -> CSV, Markdown and report."""

from collections.abc import Iterator
from pathlib import Path

from stepline import paths
from stepline.asr import transcript
from stepline.asr.transcript import Sentence
from stepline.availability import Record, read_availability
from stepline.benchmarks.spacewalk.entries import TITLES, Entry
from stepline.benchmarks.spacewalk.plan import Job, Plan, paper_file
from stepline.datasets import demo
from stepline.datasets.studies import STEP_RECOGNITION, STUDIES
from stepline.datasets.subset import describe
from stepline.errors import StoreError
from stepline.io import read_json
from stepline.needs import Need
from stepline.pipeline import how_to_fill
from stepline.report import Stages, Timeline, figure_table2, write_report
from stepline.report.shots import read_shots
from stepline.report.thumbnails import read_thumbnails
from stepline.tables import Line, Row, build, write_csv, write_markdown

PAPER_RELEASE = "v0"
"""The release on which the paper's tables were made: a sample that it quotes exists only there."""
PAPER_OPTIONS = {"transcripts": "released", "average_precision": "interpolated"}


def table_rows(plan: Plan, target: str) -> list[Row]:
    """Return the rows of a table from the scores at hand."""
    entries = [entry for entry in plan.entries.values() if entry.target == target]
    lines = [
        line
        for entry in entries
        for release in plan.releases_of(entry)
        for context_s in entry.printed_windows(plan.study_config)
        for line in _lines(plan, target, entry, release, context_s)
    ]
    return build(lines, paper_file(target) if plan.study.name == "spacewalk" else None)


def _lines(plan: Plan, target: str, entry: Entry, release: str, context_s: float | None) -> Iterator[Line]:
    lacking = plan.lacking_on(entry, release)
    score, spec = None, ""
    if entry.computed and not lacking:
        job = plan.job(release, entry.job, paths.context_label(None if entry.contexts == "repeated" else context_s))
        path = paths.scores(plan.study.name, release, job.entry.id, job.context)
        score = read_json(path)
        spec = plan.spec(job)
        if not isinstance(score, dict) or not {"needs", "metrics"} <= score.keys():
            raise StoreError(f"{path} is no score: remove it and run the same again")
        lacking = tuple(score["needs"])
    for metric in entry.metrics:
        named = plan.options(entry)
        if metric == "map":
            named["average_precision"] = plan.study_config["metrics"]["average_precision"]
        if entry.thresholded and metric == "accuracy":
            named["threshold_f1"] = plan.study_config["metrics"]["threshold_f1"]
        yield Line(
            table=entry.table,
            title=TITLES[entry.table],
            entry=entry.id,
            method=entry.method,
            modality=entry.modality,
            setting=entry.setting,
            context_s=context_s,
            metric=metric,
            release=release,
            split="test",
            protocol=entry.protocol,
            inputs=entry.inputs,
            options=named,
            paper_options={key: value for key, value in PAPER_OPTIONS.items() if key in named},
            paper_release=PAPER_RELEASE if plan.study.name == "spacewalk" else "",
            spec=spec,
            note=entry.note,
            command=filled_by(plan, f"{target}.csv", lacking),
            score=score,
            needs=lacking,
            reference=entry.kind == "reference",
            subset=describe(plan.study_config["subset"]),
        )


def filled_by(plan: Plan, file: str, lacking: tuple[str, ...]) -> str:
    """Return the commands that bring what is lacking and make a file of ``results/<study>`` again.

    Empty where no command would: nothing is lacking, or samples, or a split that is empty in the whole release.
    """
    name, whole = plan.study.name, plan.study_config["subset"] is None
    if not lacking or any(item.startswith(("samples:", "split:") if whole else "samples:") for item in lacking):
        return ""
    steps, changes = [], {}
    for item in lacking:
        kind, _, what = item.partition(":")
        if kind == "split":
            changes["subset"] = "null"
        elif kind == "config":
            key, _, value = what.partition(".")[2].partition("=")
            block, _, inner = key.partition(".")
            changes[block] = f"{{{inner}: {value}}}" if inner else f"[{', '.join([*plan.study_config[key], value])}]"
        elif command := how_to_fill(Need.parse(item)):
            steps.append(command)
    changed = f"{{{', '.join(f'{key}: {value}' for key, value in changes.items())}}}"
    configuration, override = "", f"{name}={changed}"
    if name == "demo":
        configuration = "--configfile config.demo.yaml -- "
    elif name not in STUDIES:
        configuration, override = f"--configfile {name}.yaml -- ", f"datasets={{{name}: {{study: {changed}}}}}"
    run = f"snakemake --cores 8 {configuration}results/{name}/{file}"
    if changes:
        run += f" --config '{override}'"
    return " && ".join([*dict.fromkeys(steps), run])


def write_table(plan: Plan, target: str) -> None:
    """Write ``results/<study>/<target>.csv`` and ``.md``."""
    rows = table_rows(plan, target)
    folder = Path("results", plan.study.name)
    write_markdown(rows, folder / f"{target}.md", title=f"{plan.study.title}: Table {target.removeprefix('table')}")
    write_csv(rows, folder / f"{target}.csv")


def write_study_report(plan: Plan, path: Path) -> None:
    """Write the HTML report of Table 2 with a timeline of the last release, and beside it a picture of its results."""
    release = plan.releases[-1]
    jobs = [job for job in plan.jobs("table2") if job.release == release and job.entry.task == STEP_RECOGNITION]
    longest = {job.entry.id: job for job in jobs if job.entry.kind != "random"}
    timeline = Timeline(
        release=release,
        samples=paths.samples(plan.study.name, release, STEP_RECOGNITION, "test"),
        fps=plan.study.fps[release],
        predictions={
            _label(job): paths.predictions(plan.study.name, release, job.entry.id, job.context)
            for job in longest.values()
        },
    )
    rows = table_rows(plan, "table2")
    write_report(path, title=f"{plan.study.title}: Table 2", rows=rows, timelines=[timeline], stages=_stages(plan))
    figure_table2(rows, path.with_name("table2.svg"), release=release)


def _label(job: Job) -> str:
    setting = "" if job.entry.setting == "baseline" else f", {job.entry.setting}"
    return f"{job.entry.method}{setting}{'' if job.context_s is None else f', {job.context}'}"


def _stages(plan: Plan) -> Stages:
    name = plan.study.name
    records: list[Record] = []
    for shard in plan.pipeline.videos.all_shards:
        if paths.availability(name, shard).exists():
            records += read_availability(paths.availability(name, shard)).values()
    transcripts = plan.pipeline.speech.folder
    videos = [record.video for record in records if record.status == "present"]
    thumbnails = read_thumbnails(name, plan.pipeline.videos.all_shards)
    return Stages(
        availability=records,
        shots={video: read_shots(paths.shots(name) / f"{video}.parquet") for video in videos},
        pictures=thumbnails.pictures,
        without_pictures=thumbnails.reasons,
        transcripts={video: _transcript(transcripts / f"{video}.parquet") for video in videos},
        scripts={video: _script(video) for video in videos} if name == "demo" else {},
    )


def _transcript(path: Path) -> list[Sentence]:
    if not path.exists():
        return []
    return list(transcript.read(path))


def _script(video: str) -> list[Sentence]:
    return [Sentence(text=text, start_s=start_s, end_s=end_s) for text, start_s, end_s in demo.sentences(video)]
