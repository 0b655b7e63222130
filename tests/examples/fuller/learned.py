"""Moments at the mean place of the training videos' moments, and the moments themselves in tens of seconds."""

import numpy as np

from stepline.benchmark import Method
from stepline.io import read_json, write_json

from . import Found


class Learned(Method):
    def fit(self, inputs, seed, path):
        kept = np.random.default_rng(seed).random(len(train := inputs.used("train")))
        drawn = [each for each, at in zip(train, kept, strict=True) if at < inputs.options["place"]["keep"]] or train
        places = [(each.start_s / each.duration_s, each.end_s / each.duration_s) for each in drawn]
        write_json(path, np.mean(places, axis=0).tolist())  # any format; networks have safetensors

    def predict(self, inputs, fits):
        for seed, fit in zip(inputs.entry.seeds, fits, strict=True):
            for each in inputs.used("test"):
                start_s, end_s = (place * each.duration_s for place in read_json(fit))
                yield Found(seed=seed, split="test", video=each.video, start_s=start_s, end_s=end_s)


class Rounded(Method):
    def predict(self, inputs, fits):
        to_s = inputs.entry.settings["to_s"]
        for each in inputs.used("test"):
            start_s, end_s = (to_s * round(time_s / to_s) for time_s in (each.start_s, each.end_s))
            yield Found(seed=0, split="test", video=each.video, start_s=start_s, end_s=end_s)
