"""Toy: one moment of each video, to be found."""

from dataclasses import dataclass

from stepline.benchmark import DURATION, Benchmark, Kind, Metric, Prediction, Sees


@dataclass(frozen=True, kw_only=True)
class Found(Prediction):
    """A moment, in seconds. The fields are the columns of the file of predictions."""

    start_s: float
    end_s: float


class Toy(Benchmark):
    """Moments of videos."""

    kinds = {"middle": Kind(method="method:Middle", sees=("duration",), settings={"percent": int})}
    metrics = {
        "iou": Metric(title="mIoU", definition="the IoU of the predicted and the true moment"),
        "recall": Metric(title="R@1, IoU > 0.5", definition="the share of videos whose IoU is above 0.5"),
    }
    sees = (DURATION, Sees("moment", "the moment itself", oracle=True, fields=("start_s", "end_s")))
    prediction = Found

    def inputs(self, job):
        """Return what methods and scores of a job read."""
        from .method import Moments

        return Moments(self, job)

    def values(self, inputs, made):
        """Return the values of one seed's predictions."""
        from .method import values

        return values(inputs, made)


BENCHMARK = Toy
