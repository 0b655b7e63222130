"""CaptainCook4D (Peddi et al. 2023): which step of its recipe a segment of a recording shows."""

import csv

from stepline.benchmark import Kind, Metric
from stepline.benchmarks.segments.recognition import Segment, StepRecognition
from stepline.datasets.schema import Video
from stepline.io import read_json


class CaptainCook4D(StepRecognition):
    """The annotated segments of a release, one of the released ways to split the recordings."""

    kinds = StepRecognition.kinds | {
        "nearest": Kind(method="nearest:NearestMean", options="nearest", sees=("segment", "video", "train")),
    }
    metrics = StepRecognition.metrics | {
        "normal": Metric(title="Normal steps", definition="the accuracy on segments without an error"),
        "error": Metric(title="Steps with errors", definition="the accuracy on segments with an error"),
    }

    def videos(self):
        """Return the recordings; their videos are looked up in the mirror."""
        split = {video: name for name, videos in self.members(self.released.known[0]).items() for video in videos}
        return [Video(id=video, split=split[video], duration_s=duration_s) for video, duration_s in self.lengths().items()]

    def segments(self, release, split):
        """Yield the segments of a split, without steps that were omitted (start -1)."""
        steps, duration_s = read_json(self.released.held(release, "annotation_json/step_annotations.json")), self.lengths()
        for video in self.members(release)[split]:
            for step in steps[video]["steps"]:
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
        return read_json(self.released.held(release, "annotation_json/step_idx_description.json"))

    def members(self, release):
        """Return the recordings of each split of a release."""
        by, kind = release.split("-")
        return read_json(self.released.held(release, f"data_splits/{by}_data_split_{kind}.json"))

    def lengths(self):
        """Return the durations of all recordings."""
        with open(self.released.held(self.released.known[0], "metadata/video_information.csv"), newline="") as file:
            return {row["recording_id"]: float(row["duration(sec)"]) for row in csv.DictReader(file)}


BENCHMARK = CaptainCook4D
