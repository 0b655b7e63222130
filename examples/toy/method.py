"""The release's moments, the middle of a video, and how near they are."""

from types import SimpleNamespace

import numpy as np

from stepline.benchmark import Method, Values
from stepline.io import read_json
from stepline.metrics.segments import iou
from stepline.runs.inputs import Inputs

from . import Found


class Moments(Inputs):
    """The moments of a release."""

    def load(self, split):
        """Return the units of a split, each with a ``video``; here one per video."""
        file = self.benchmark.released.release_file(self.release, "moments.json")
        return [SimpleNamespace(**each) for each in read_json(file)[split]]


class Middle(Method):
    """The middle part of a video."""

    def predict(self, inputs, fits):
        """Yield a moment for each test video."""
        margin = (1 - inputs.entry.settings["percent"] / 100) / 2
        for each in inputs.used("test"):
            start_s, end_s = margin * each.duration_s, (1 - margin) * each.duration_s
            yield Found(seed=0, split="test", video=each.video, start_s=start_s, end_s=end_s)


def values(inputs, made):
    """Return the values of one seed's predictions, in percent, each with its video."""
    truth = {each.video: each for each in inputs.truth("test")}
    pairs = [([[truth[p.video].start_s, truth[p.video].end_s]], [[p.start_s, p.end_s]]) for p in made]
    ious = np.array([iou(true, found)[0, 0] for true, found in pairs])
    about = {"videos": [p.video for p in made], "counts": {"n_listed": len(truth)}}
    return {"iou": Values(values=100 * ious, **about), "recall": Values(values=100.0 * (ious > 0.5), **about)}
