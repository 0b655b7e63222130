"""What a benchmark of step recognition in given segments declares: segments, methods, metrics."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import TYPE_CHECKING, ClassVar

from stepline.benchmark import (
    SPEECH,
    TRAIN,
    VAL,
    VIDEO,
    Benchmark,
    Entry,
    InTime,
    Job,
    Kind,
    Metric,
    Prediction,
    Sees,
    UnavailableError,
    Values,
)
from stepline.benchmark.outside import one_line
from stepline.datasets.schema import SPLITS
from stepline.errors import ConfigError
from stepline.needs import Need, absent

if TYPE_CHECKING:
    from stepline.benchmarks.segments.inputs import SegmentInputs

PRIORS: Mapping[str, tuple[str, ...]] = dict.fromkeys(("most_frequent", "in_order", "likeliest"), ())
"""The methods of `stepline.models.priors.Priors`."""


@dataclass(frozen=True, kw_only=True)
class Segment:
    """A segment [start_s, end_s) of a video of duration_s, in seconds, and the step that it shows.

    procedure: what is done in the video, such as a recipe. Only its steps are choices; "" if all videos share theirs.
    part: the key of a metric that is the accuracy on such segments alone; "" if there is none.
    """

    video: str
    start_s: float
    end_s: float
    duration_s: float
    step: str
    procedure: str = ""
    part: str = ""

    @property
    def place(self) -> float:
        """The middle of the segment, from 0, the start of the video, to 1, its end."""
        return (self.start_s + self.end_s) / 2 / self.duration_s


@dataclass(frozen=True, kw_only=True)
class Recognised(Prediction):
    """The steps that a method recognises in the segments of one video, in their order."""

    steps: tuple[str, ...]


class StepRecognition(Benchmark[Entry]):
    """Step recognition in given segments. A subclass has `segments`, and `texts` if steps are named by numbers."""

    prediction = Recognised
    kinds: ClassVar[Mapping[str, Kind]] = {
        "prior": Kind(
            method="stepline.benchmarks.segments.methods:Prior", sees=("segment", "train"), settings={"by": PRIORS}
        ),
        "tfidf": Kind(method="stepline.benchmarks.segments.methods:TfIdf", sees=("segment", "speech")),
        "linear": Kind(
            method="stepline.benchmarks.segments.methods:Linear",
            options="linear",
            sees=("segment", "video", "train", "val"),
            environment="networks",
        ),
        "statistics": Kind(method=None, metrics=("videos", "segments", "steps", "hours", "unseen")),
    }
    metrics: ClassVar[Mapping[str, Metric]] = {
        "accuracy": Metric(title="Accuracy", definition="the share of segments whose step is recognised"),
        "by_step": Metric(
            title="Mean over steps", definition="the mean over true steps of the accuracy on their segments"
        ),
        "videos": Metric(title="Videos", definition="the number of videos with segments", unit="count"),
        "segments": Metric(title="Segments", definition="the number of segments", unit="count"),
        "steps": Metric(title="Steps", definition="the number of different steps", unit="count"),
        "hours": Metric(title="Hours", definition="the sum of the durations of the videos in hours", unit=""),
        "unseen": Metric(
            title="Unseen", definition="the number of test segments whose step no training segment shows", unit="count"
        ),
    }
    sees = (
        Sees("segment", "the segment's times and the steps of its procedure"),
        *(VIDEO, SPEECH, TRAIN, VAL),
        Sees("step", "the true step", oracle=True, fields=("step", "part")),
    )

    def segments(self, release: str, split: str) -> Iterable[Segment]:
        """Yield the segments of a split; those of one video are together."""
        raise NotImplementedError("yield the segments of a split")

    def checked_segments(self, release: str, split: str) -> list[Segment]:
        """Return the segments of a split; raise ConfigError if `segments` fails or yields a segment that is impossible.

        A segment is in its video if it starts at 0 or later, ends after it starts, and has its middle before the end.
        """
        with one_line(self, "segments"):
            found = list(self.segments(release, split))
            for each in found:
                middle_s = (each.start_s + each.end_s) / 2
                if not 0 <= each.start_s < each.end_s or not middle_s <= each.duration_s:
                    raise ConfigError(
                        f"{type(self).__name__}.segments: {each.start_s} to {each.end_s} s is not a segment of "
                        f"{each.video!r}, which has {each.duration_s} s"
                    )
        last = {each.video: each for each in found}
        for each, after in pairwise(found):
            if after.video != (video := each.video) and (late := last[video]) is not each:
                raise ConfigError(
                    f"{type(self).__name__}.segments: {after.video!r} comes between two segments of {video!r}, "
                    f"{each.start_s} to {each.end_s} s and {late.start_s} to {late.end_s} s: keep a video's together"
                )
        return found

    def texts(self, release: str) -> Mapping[str, str]:
        """Return the text of each step that is not its own text."""
        return {}

    def counted(self, entry: Entry, release: str) -> Mapping[str, float]:
        """Return the counts of a release; raise UnavailableError if it is absent."""
        if not self.release_manifest(release).exists():
            raise UnavailableError(Need("release", f"{self.name}/{release}"))
        segments = {split: self.checked_segments(release, split) for split in SPLITS}
        steps = {split: [(each.procedure, each.step) for each in found] for split, found in segments.items()}
        duration_s = {each.video: each.duration_s for found in segments.values() for each in found}
        return {
            "videos": len(duration_s),
            "segments": sum(map(len, steps.values())),
            "steps": len({*chain(*steps.values())}),
            "hours": sum(duration_s.values()) / 3600,
            "unseen": sum(step not in steps["train"] for step in steps["test"]),
        }

    def missing_besides(self, entry: Entry, release: str) -> Sequence[Need]:
        """Return the package that trains a linear classifier, if it is absent."""
        return absent(Need("package", "torch")) if entry.kind_name == "linear" else ()

    def split(self, entry: Entry, metric: str) -> str:
        """Return the splits of the metric: all for counts."""
        return super().split(entry, metric) if entry.kind.method else "all"

    def blind(self, entry: Entry, metric: str) -> str:
        """Return the last entry of the kind `prior`, which sees only times; for such an entry, itself."""
        priors = [each.id for each in self.entries.values() if each.kind_name == "prior" and entry.kind.method]
        return entry.id if entry.id in priors else next(reversed(priors), "")

    def inputs(self, job: Job) -> "SegmentInputs":
        """Return the inputs of a job."""
        from stepline.benchmarks.segments.inputs import SegmentInputs

        return SegmentInputs(self, job)

    def values(self, inputs: "SegmentInputs", made: Sequence[Recognised]) -> Mapping[str, Values]:
        """Return the values of each segment."""
        from stepline.benchmarks.segments.score import values

        return values(inputs, made)

    def in_time(self, inputs: "SegmentInputs", video: str, made: Recognised | None) -> InTime | None:
        """Return the true steps of a video and the recognised ones over time."""
        from stepline.benchmarks.segments.in_time import in_time

        return in_time(inputs, video, made)
