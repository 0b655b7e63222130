"""The cost of `snakemake -n` for HT-Step's Table 2, with all of its 20,635 videos, and for a million listed videos.

Both are compared with the demo's Table 2.

The taxonomy and the splits are the public ones (``--data``, a folder with both). Annotation is synthetic; weights and
videos are empty files. Computed results are placeholder files, with Snakemake's records of them.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from measure import SMALL, sized

from stepline import paths
from stepline.availability import Record
from stepline.backbones.weights import weights_of
from stepline.benchmarks.htstep.benchmark import Htstep
from stepline.config import validate
from stepline.datasets import htstep, shards
from stepline.io import sha256_file, write_json
from stepline.pipeline import Pipeline
from stepline.pipeline.lost import _records
from tests.datasets.htstep_made import make_annotations, make_candidates

ROOT = Path(__file__).parents[1]
TABLE = "results/htstep/table2.csv"
WEIGHTS = "s3d", "timesformer", "paraphrase-mpnet", "open_clip:ViT-B-32-quickgelu/openai"
REPEATS = 3
VIDEOS = sized(1_000_000, small=100)
LISTED = 5
"""The videos of each split at a small size."""
MANY = {"datasets": {"many": {"kind": "list", "videos": "many.csv"}}}
Jobs = Mapping[str, int]
Splits = dict[str, list[str]]


@dataclass(frozen=True)
class Run:
    """A process: its CPU time, its peak memory, and the number of jobs of each rule."""

    cpu_s: float
    peak_mib: float
    jobs: Jobs


def snakemake(*arguments: str) -> Run:
    """Run Snakemake in this folder; raise RuntimeError if it fails."""
    command = [
        Path(sys.executable).parent / "snakemake",
        "--snakefile",
        ROOT / "Snakefile",
        "--cores",
        "1",
        "-p",
        *arguments,
    ]
    with open("printed", "w+") as printed:
        process = subprocess.Popen(command, stdout=printed, stderr=subprocess.STDOUT)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        printed.seek(0)
        said = printed.read()
    if process.returncode:
        raise RuntimeError(said[-2000:])
    listed = said.rpartition("Job stats:")[2].partition("total")[0]
    jobs = {rule: int(n) for rule, n in re.findall(r"^([a-z_]+) +(\d+)$", listed, re.MULTILINE)}
    return Run(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, jobs)


def measure(what: str, *arguments: str, beside: float = 0) -> float:
    """Print and return the median CPU time of a dry run and its jobs, with the ratio to ``beside``."""
    runs = [snakemake("-n", *arguments) for _ in range(sized(REPEATS + 1, small=1))][-REPEATS:]
    cpu_s, peak_mib = median(run.cpu_s for run in runs), max(run.peak_mib for run in runs)
    jobs = ", ".join(f"{n} {rule}" for rule, n in runs[0].jobs.items())
    total = sum(runs[0].jobs.values())
    print(f"{what:44}{cpu_s:8.2f}{cpu_s / (beside or cpu_s):8.2f}{peak_mib:8.0f}{total:6} jobs: {jobs}", flush=True)
    return cpu_s


def fill(mirror: Path, data: Path) -> None:
    """Fill a mirror with the release, synthetic annotation, and placeholder weights and narrations."""
    (mirror / "htstep/narrations").mkdir(parents=True)
    for name in (htstep.FILES["v1"][0].path, htstep.FILES["v1"][1].path):
        (mirror / "htstep" / name).symlink_to(data.absolute() / name)
    for weights in map(weights_of, WEIGHTS):
        (mirror / "weights" / weights.name).mkdir(parents=True)
        for file in weights.files:
            (mirror / "weights" / weights.name / file.name).touch()
    (mirror / "htstep/narrations" / htstep.NARRATIONS).write_text("{}")
    verb("fetch", "htstep/v1")
    if SMALL:
        relist(lambda splits: {split: videos[:LISTED] for split, videos in splits.items()})
    for release, content in (("annotations", make_annotations(0)), ("candidates", make_candidates(0))):
        write_json(mirror / htstep.FILES[release][0].wanted.path, content)


def verb(*words: str) -> None:
    """Run a verb."""
    subprocess.run([sys.executable, "-m", "stepline", *words], check=True, stdout=subprocess.DEVNULL)


def make(mirror: Path) -> None:
    """Write the outputs of all jobs, as far as the plan reads them, with every video in the mirror."""
    (mirror / "htstep/videos").mkdir()
    for each in htstep.DATASETS["htstep"].videos():
        (mirror / each.path).touch()
    plan = Htstep.of(validate({"htstep": {}}), "htstep")
    pipeline = plan.pipelines["htstep"]
    videos, folder = pipeline.videos, paths.videos("htstep")
    shards.write(paths.shards("htstep"), videos.shards)
    folder.mkdir()
    for shard in videos.all_shards:
        records = {}
        for video in videos.members(shard):
            path = folder / f"{video.id}.mp4"
            path.symlink_to(mirror / video.path)
            found = Record(video=video.id, status="present", path=str(path), sha256="0" * 64, source="mirror")
            records[video.id] = asdict(found)
            (folder / f"{video.id}.json").write_text(json.dumps({"videos": {video.id: records[video.id]}}, indent=2))
        write_json(paths.availability("htstep", shard), {"videos": records})
    place(pipeline)
    jobs = [*plan.jobs("table2")]
    releases = {plan.release_manifest(release) for job in jobs for release in plan.reads(job)}
    fits = [path for job in jobs if job.entry.trained for path in plan.fits(job)]
    made = [*fits, *map(plan.predictions, jobs), *map(plan.scores, jobs), Path(TABLE)]
    for path in [*made, Path(TABLE).with_suffix(".md")]:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    for path in sorted(path for path in releases if not path.exists()):
        verb("fetch", f"htstep/{path.parent.name}")
    snakemake("--touch", "--forceall", TABLE, "--configfile", "study.json")


def place(pipeline: Pipeline) -> None:
    """Write the records of the jobs of all shards, and empty files for those that they list, unless they exist."""
    said = pipeline.speech.record if "speech" in pipeline.demand.stages else {}
    for shard in pipeline.videos.all_shards:
        for record, listed in _records(pipeline, shard):
            if Path(record) == paths.availability(pipeline.name, shard):
                continue
            made = {
                video.id: {
                    "status": "present",
                    "n_rows": 1,
                    "audio": {"status": "present"},
                    "pictures": {"1": f"{paths.thumbnails(pipeline.name)}/{video.id}/1.jpg"},
                }
                for video in pipeline.videos.members(shard)
            }
            for path in [Path(record), *map(Path, listed.files(made))]:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.touch()
            Path(record).write_text(json.dumps({"videos": made, **said}))


def relist(change: Callable[[Splits], Splits]) -> None:
    """Change the videos of the fetched splits."""
    release = htstep.RELEASES.folder("v1")
    listed = release / htstep.FILES["v1"][1].path
    splits, fetched = json.loads(listed.read_text()), json.loads((release / "release.json").read_text())
    listed.write_text(json.dumps(change(splits)))
    fetched["files"][listed.name] = sha256_file(listed)
    write_json(release / "release.json", fetched)


def list_many(n: int) -> None:
    """Write a list of ten-minute videos, and the configuration of the data set ``many``."""
    lines = (f"v{i:07},https://127.0.0.1/v{i:07}.mp4\n" for i in range(n))
    Path("many.csv").write_text("".join(["video,url\n", *lines]))
    Path("many.json").write_text(json.dumps(MANY))


def make_many() -> None:
    """Write the files of the data set ``many`` that the plan reads: records of videos, transcripts and shards."""
    pipeline = Pipeline.of(validate(MANY), "many")
    videos, folder, spoken = pipeline.videos, paths.videos("many"), pipeline.speech.folder
    shards.write(paths.shards("many"), videos.shards)
    for each in (folder, spoken, paths.availability("many", "").parent):
        each.mkdir(parents=True)
    for shard in videos.all_shards:
        records = {}
        for video in videos.members(shard):
            path = folder / f"{video.id}.mp4"
            path.touch()
            records[video.id] = asdict(Record(video=video.id, status="present", path=str(path), sha256="0" * 64))
            (folder / f"{video.id}.json").write_text(json.dumps({"videos": {video.id: records[video.id]}}, indent=2))
            (spoken / f"{video.id}.json").write_text('{"n_sentences": 1}')
        paths.availability("many", shard).write_text(json.dumps({"videos": records}, indent=2))
    place(pipeline)
    Path("results/many").mkdir(parents=True)
    for name in ("videos.csv", "videos.md", "report.html"):
        Path("results/many", name).touch()
    snakemake("--touch", "--forceall", "--configfile", "many.json")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="a folder with taxonomy.csv and video_splits.json")
    parser.add_argument("--listed", type=int, default=VIDEOS, help="videos in the list; a million needs 8 GB")
    parsed = parser.parse_args()
    data = parsed.data.absolute()
    os.environ["PYTHONPATH"] = str(ROOT / "src")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        mirror = Path(folder, "mirror")
        mirror.mkdir()
        os.environ["STEPLINE_MIRROR"] = str(mirror)
        print(f"{'':44}{'CPU s':>8}{'ratio':>8}{'MiB':>8}")
        demo = "results/demo/table2.csv", "--configfile", str(ROOT / "config.demo.yaml")
        least = measure("the demo's Table 2, without its release", *demo)
        fill(mirror, data)
        Path("study.json").write_text('{"htstep": {}}')
        study = TABLE, "--configfile", "study.json"
        measure("HT-Step's Table 2, nothing computed", *study, beside=least)
        make(mirror)
        measure("the same, everything computed", *study, beside=least)
        file = mirror / htstep.DATASETS["htstep"].videos()[0].path
        before = file.stat().st_mtime_ns
        file.touch()
        measure("the same, another file of one video", *study, beside=least)
        os.utime(file, ns=(before, before))
        relist(lambda splits: splits | {"train": [*splits["train"], "one-more---"]})
        measure("the same, one more video listed", *study, beside=least)
        del os.environ["STEPLINE_MIRROR"]
        list_many(parsed.listed)
        many = "--configfile", "many.json"
        measure(f"a list of {parsed.listed:,} videos, nothing computed", *many, beside=least)
        make_many()
        measure("the same, everything computed", *many, beside=least)
        with open("many.csv", "a") as listed:
            listed.write("one-more,https://127.0.0.1/one-more.mp4\n")
        measure("the same, one more video listed", *many, beside=least)


if __name__ == "__main__":
    main()
