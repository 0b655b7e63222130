"""The declaration of a benchmark, and the plan of jobs derived from it. See docs/architecture.md."""

from stepline.benchmark.entries import Entry, Job, Kind, Line, Table
from stepline.benchmark.method import Method, Prediction, UnavailableError
from stepline.benchmark.plan import Benchmark
from stepline.benchmark.timed import InTime, Timed
from stepline.benchmark.values import Values
from stepline.benchmark.words import DURATION, SPEECH, TRAIN, VAL, VIDEO, Metric, Option, Sees

__all__ = [
    "DURATION", "SPEECH", "TRAIN", "VAL", "VIDEO", "Benchmark", "Entry", "InTime", "Job", "Kind", "Line", "Method",
    "Metric", "Option", "Prediction", "Sees", "Table", "Timed", "UnavailableError", "Values",
]  # fmt: skip
