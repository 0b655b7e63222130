"""CaptainCook4D (Peddi et al. 2023): which step of its recipe a segment of a recording shows."""

import csv
from functools import partial

from stepline.benchmark import Kind, Metric
from stepline.benchmarks.segments.recognition import Segment, StepRecognition
from stepline.datasets.schema import Video
from stepline.io import read_json

STEPS, TEXTS = "annotation_json/step_annotations.json", "annotation_json/step_idx_description.json"
LENGTHS = "metadata/video_information.csv"


class CaptainCook4D(StepRecognition):
    """Each release is one of the released ways to split the recordings."""

    kinds = StepRecognition.kinds | {
        "nearest": Kind(method="nearest:NearestMean", options="nearest", sees=("segment", "video", "train")),
    }
    metrics = StepRecognition.metrics | {
        "normal": Metric(title="Normal steps", definition="the accuracy on segments without an error"),
        "error": Metric(title="Steps with errors", definition="the accuracy on segments with an error"),
    }

    def videos(self):
        """Return the recordings; their videos are looked up in the mirror."""
        first, held = self.released.known[0], self.released.held
        splits = read_json(held(first, split_file(first)))
        split = {video: name for name, videos in splits.items() for video in videos}
        return [
            Video(id=video, split=split[video], duration_s=duration_s)
            for video, duration_s in lengths(held(first, LENGTHS)).items()
        ]

    def segments(self, release, split):
        """Yield the segments of a split, without the steps that were omitted, which start at -1."""
        file = partial(self.released.release_file, release)
        annotated, duration_s = read_json(file(STEPS)), lengths(file(LENGTHS))
        for video in read_json(file(split_file(release)))[split]:
            for step in annotated[video]["steps"]:
                if step["start_time"] >= 0:
                    yield Segment(
                        video=video,
                        start_s=step["start_time"],
                        end_s=step["end_time"],
                        duration_s=duration_s[video],
                        step=str(step["step_id"]),
                        procedure=video.partition("_")[0],
                        part="error" if step["has_errors"] else "normal",
                    )

    def texts(self, release):
        """Return the description of each step."""
        return read_json(self.released.release_file(release, TEXTS))


def split_file(release):
    """Return the path of the file with the recordings of each split."""
    by, kind = release.split("-")
    return f"data_splits/{by}_data_split_{kind}.json"


def lengths(file):
    """Return the duration of each recording, in seconds."""
    with open(file, newline="") as lines:
        return {row["recording_id"]: float(row["duration(sec)"]) for row in csv.DictReader(lines)}


BENCHMARK = CaptainCook4D
