"""PSS: ordered segmentation and summarisation of YouCook2 and Tasty (Batra et al. 2022)."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stepline.benchmark import (
    DURATION,
    TRAIN,
    VAL,
    VIDEO,
    Benchmark,
    Entry,
    InTime,
    Job,
    Line,
    Option,
    Sees,
    Table,
    Values,
)
from stepline.benchmarks.pss.kinds import KINDS, Segmentation
from stepline.benchmarks.pss.metrics import METEOR, METRICS, SEGMENTS
from stepline.datasets import pss
from stepline.errors import ConfigError
from stepline.needs import Need, absent

if TYPE_CHECKING:
    from stepline.benchmarks.pss.inputs import PssInputs
    from stepline.report import Picture

TRACKS = {"uniform-segments": "8 or 10 parts", "pdvc-s3d": "PDVC, S3D", "softsoda-s3d": "SoftSODA, S3D"}
"""The entries with segments drawn over time, and their labels."""
FIRST_KERNEL, KERNEL_STEP = 3, 8
"""Length of ProcNet's shortest anchor, in rows, and the increment from one anchor to the next."""


class Pss(Benchmark[Entry]):
    """PSS under one configuration. Its data sets take the place of releases, also in paths."""

    about = "ordered segmentation and summarisation"
    how_to_read_examples = (
        "The top strip shows the annotated segments, the strips below it the predictions of the lowest seed."
    )
    folder = Path(__file__).parent
    studies = ("pss",)
    released = pss.RELEASES
    datasets = pss.DATASETS
    kinds = KINDS
    prediction = Segmentation
    metrics = METRICS
    sees = (
        VIDEO,
        TRAIN,
        VAL,
        DURATION,
        Sees("segment_count", "the number of segments", oracle=True),
        Sees("segments", "the segments", oracle=True),
    )
    drawn = ("soda_d", "cider")
    settings = ("baseline",)
    also_made = ("worked_examples.html",)

    def check(self) -> None:
        """Raise ConfigError if ProcNet's sizes are impossible."""
        options = self.options["procnet"]
        longest = FIRST_KERNEL + KERNEL_STEP * (options["anchors"] - 1)
        if longest > options["length"]:
            raise ConfigError(
                f"config: pss.procnet.length: {options['length']} is not allowed; {options['anchors']} anchors need "
                f"{longest} rows"
            )

    def reads(self, job: Job) -> Sequence[str]:
        """Return the releases that a job reads: the training videos of Tasty are a separate release."""
        train = [pss.SPLIT_FILES[job.release]["train"][0]] if "train" in job.entry.sees else []
        return list(dict.fromkeys([job.release, *train]))

    def decides(self, job: Job) -> Mapping[str, Any]:
        """Return further fields of a job's spec: splits, options and the length to which features are resized."""
        resized = job.entry.features and job.entry.kind_name != "procnet"
        shown = {**self.shown_options(job.entry, job.release)}
        shown |= self.changed(job.entry.kind.options) if job.entry.trained else {}
        return {
            "splits": list(job.entry.splits),
            "options": {key: each.value for key, each in shown.items() if key != "seeds"},
            **({"length": self.options["length"][job.release]} if resized else {}),
        }

    def shown_options(self, entry: Entry, release: str) -> Mapping[str, Option]:
        """Return the features, their length and the vocabulary; for uniform parts, the divided duration."""
        if not entry.features:
            uniform = entry.settings.get("proposals", "uniform") == "uniform"
            return {"duration": Option(self.options["duration"], "ceil_seconds")} if uniform else {}
        shown = dict(super().shown_options(entry, release))
        length = Option(*(options["length"][release] for options in (self.options, self.defaults)))
        shown |= {"length": length} if length.differs and entry.kind_name != "procnet" else {}
        return shown | (
            {"vocabulary": Option(self.options["vocabulary"], "released")} if not entry.kind.metrics else {}
        )

    def blind(self, entry: Entry, metric: str) -> str:
        """Return equal parts for metrics of segments, the most frequent sentence for metrics of sentences."""
        given = entry.settings.get("proposals") == "ground_truth"
        return "uniform-segments" if metric in SEGMENTS else "frequent-given" if given else "frequent-uniform"

    def missing_of(self, metric: str) -> Sequence[Need]:
        """Return the unmet needs of METEOR: the option that enables it, Java, or the package with its program."""
        if metric not in METEOR:
            return ()
        if not self.options["metrics"]["meteor"]:
            return [Need("config", "pss.metrics.meteor", "true")]
        return absent(Need("java"), Need("package", "pycocoevalcap"))

    def note(self, table: Table, line: Line, release: str, metric: str) -> str:
        """Return a note on the released vocabulary for captions learned with it."""
        seen = self.entries[line.entry].trained and metric not in SEGMENTS and self.options["vocabulary"] == "released"
        return "the released vocabulary was counted on validation and test videos too" if seen else ""

    def inputs(self, job: Job) -> "PssInputs":
        """Return the inputs of a job."""
        from stepline.benchmarks.pss.inputs import PssInputs

        return PssInputs(self, job)

    def select(self, inputs: "PssInputs", made: Sequence[Segmentation]) -> tuple[Sequence[Segmentation], str]:
        """Return the predictions, and the number of videos without any, as text."""
        silent = sum(not each.segments for each in made)
        missing = self.options["metrics"]["missing"]
        return made, f"nothing predicted for {silent} of {len(made)} videos and seeds: {missing}" if silent else ""

    def in_time(self, inputs: "PssInputs", video: str, made: Segmentation | None) -> InTime | None:
        """Return the ground truth and a prediction of a video over time."""
        from stepline.benchmarks.pss.in_time import in_time

        return in_time(inputs, video, made)

    def values(self, inputs: "PssInputs", made: Sequence[Segmentation]) -> Mapping[str, Values]:
        """Return the values of each video."""
        from stepline.benchmarks.pss.score import values

        return values(inputs, made)

    def examples(self) -> "Sequence[Picture]":
        """Return figures of segments over time for some test videos."""
        from stepline.runs.shown import timelines

        return timelines(self, TRACKS, lambda release: pss.load(release, "test"))

    def write_examples(self) -> None:
        """Write the paper's worked examples, ``results/pss/worked_examples.html``."""
        from stepline.benchmarks.pss.worked import write_worked_examples

        write_worked_examples(Path("results", self.name, "worked_examples.html"))
