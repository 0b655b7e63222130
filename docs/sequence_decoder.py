"""Compute the numbers of sequence-decoder.md, from the released files of v2: see there."""

import csv
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from multiprocessing import Pool
from multiprocessing.pool import Pool as Workers
from typing import Any

import numpy as np

from stepline.benchmarks.spacewalk.inputs import SpacewalkInputs
from stepline.benchmarks.spacewalk.items import Item
from stepline.benchmarks.spacewalk.methods import chooser, hmm
from stepline.config import validate
from stepline.models.hmm import log_posteriors, log_sum, transitions
from stepline.plans import plan

WORDS, STEMS, ALONE = "2a-tfidf-hmm", "2a-tfidf-stems-hmm", "2a-order-alone"
CHOSEN = {
    WORDS: {"window_s": 60.0, "scale": 0.5, "stay": 0.35, "reach": 0.1, "back": 0.02, "irrelevant": 0.2},
    STEMS: {"window_s": 60.0, "scale": 0.3, "stay": 0.7, "reach": 0.25, "back": 0.02, "irrelevant": 0.3},
}
"""What their fits choose."""
HEAD = ["entry", *hmm.CHOICES]
HEAD += [f"{metric}_{split}" for split in ("train", "val", "all") for metric in ("accuracy", "map")]
Array = hmm.Array


@cache
def inputs_of(entry: str) -> SpacewalkInputs:
    """Return what an entry reads of v2."""
    study = plan(validate({"spacewalk": {"releases": ["v2"], "text_encoders": ["tfidf"]}}), "spacewalk")
    return SpacewalkInputs(study, study.job("v2", entry, "all"))


@cache
def evidence(entry: str, video: str, window_s: float) -> Array:
    """Return the decoder's evidence."""
    inputs = inputs_of(entry)
    return hmm.evidence(hmm._score(inputs, window_s), inputs.annotation.recordings[video])


def values(decoded: Array, video: str) -> list[float]:
    """Return accuracy, mAP, and how often Irrelevant is answered, and rightly, in percent."""
    recording = inputs_of(WORDS).annotation.recordings[video]
    items = inputs_of(WORDS).items(recording.split)[video]
    scores = decoded[hmm.rows(recording, items)]
    answered = scores.argmax(axis=1) == 0
    rightly = answered & (np.array([item.label for item in items]) == 0)
    return [*hmm._metrics(scores, items), 100 * answered.mean(), 100 * rightly.mean()]


def measured(entry: str, settings: Sequence[hmm.Setting], video: str) -> list[list[float]]:
    """Return the values of the decoder with each setting."""
    seen = [evidence(entry, video, setting["window_s"]) for setting in settings]
    return [values(decoded, video) for decoded in hmm.decode(seen, settings)]


def climb(entry: str, pool: Workers, writer: Any) -> None:
    """Write all settings that a fit tries, and print what the best of them gives, and the best without a recording."""
    splits = inputs_of(entry).annotation.splits
    videos, n_train = [*splits["train"], *splits["val"]], len(splits["train"])
    choices = hmm.CHOICES if entry in CHOSEN else hmm.CHOICES | {"window_s": (0.0,)}
    tried: dict[tuple[float, ...], Array] = {}

    def worth(settings: Sequence[hmm.Setting]) -> list[float]:
        keys = [tuple(setting.values()) for setting in settings]
        new = {key: each for key, each in zip(keys, settings, strict=True) if key not in tried}
        found = pool.starmap(measured, [(entry, [*new.values()], video) for video in videos]) if new else []
        for key, *values in zip(new, *found, strict=True):
            tried[key] = np.array(values)
            parts = tried[key][:n_train], tried[key][n_train:], tried[key]
            writer.writerow([entry, *key, *(f"{x:.2f}" for part in parts for x in part.mean(axis=0)[:2])])
        return [float(tried[key][:, :2].mean()) for key in keys]

    chosen = tuple(hmm.climb(worth, choices).values())
    print(f"{entry}: {len(tried)} settings, chosen:", *chosen)
    show(entry, tried[chosen])
    found = np.array([*tried.values()])
    both = found[:, :, :2].mean(axis=2)
    best = [np.delete(both, i, axis=1).mean(axis=1).argmax() for i in range(len(videos))]
    show(f"{entry}, each recording with the best setting of the other 11", found[best, range(len(videos))])
    show(f"{entry}, val with the best setting of train", found[both[:, :n_train].mean(axis=1).argmax(), n_train:])


def variants(entry: str, video: str) -> dict[str, list[float]]:
    """Return the values of the decoder with its parameters and other evidence, another chain, another reading."""
    setting, rng = CHOSEN[entry], np.random.default_rng(0)
    told = evidence(entry, video, setting["window_s"])
    n_times, n_steps = told.shape
    raw = scores(entry, video)
    others = {
        "as it is": told,
        "all 0": np.zeros_like(told),
        "standard normal noise": rng.standard_normal(told.shape),
        "sentences' texts shuffled within the recording": shuffled_texts(entry, video),
        "times of the grid shuffled": told[rng.permutation(n_times)],
        "time reversed": told[::-1],
        "moved by half of the grid": np.roll(told, n_times // 2, axis=0),
        "steps shuffled": told[:, rng.permutation(n_steps)],
        "all scores standardised together": (raw - raw.mean()) / raw.std(),
    }
    decoded = dict(zip(others, hmm.decode([*others.values()], [setting] * len(others)), strict=True))
    orders = {"steps in reverse order": np.arange(n_steps)[::-1]}
    orders |= {f"steps in a random order, draw {draw}": rng.permutation(n_steps) for draw in range(5)}
    for what, order in orders.items():
        (shuffled,) = hmm.decode([told[:, order]], [setting])
        decoded[what] = shuffled[:, [0, *1 + np.argsort(order)]]
    decoded["not divided by expected time"] = chain(told, setting, n_times, log_posteriors)
    decoded["strictly causal"] = causal(entry, video)
    return {what: values(each, video) for what, each in decoded.items()}


def scores(entry: str, video: str, before_s: float = 0.0, **settings: str) -> Array:
    """Return the (T, K) scores, not standardised, of windows whose middles are ``before_s`` before the grid's times."""
    part = hmm.scorer(inputs_of(entry))
    scorer = replace(part.entry, settings={**part.entry.settings, **settings})
    choose = chooser(SpacewalkInputs(part.benchmark, replace(part.job, entry=scorer)), CHOSEN[entry]["window_s"])
    times_s = (hmm.times_s(part.annotation.recordings[video]) - before_s).tolist()
    ((_, _, found),) = choose(video, [Item(id=i, frame=-1, t_s=t_s, label=0) for i, t_s in enumerate(times_s)])
    return np.asarray(found[:, 1:], np.float64)  # type: ignore[index]


def shuffled_texts(entry: str, video: str) -> Array:
    """Return the evidence of a recording whose sentences have each other's texts."""
    inputs = SpacewalkInputs(inputs_of(entry).benchmark, inputs_of(entry).job)
    part = hmm.scorer(inputs)
    text = part.text(video)
    others = np.random.default_rng(0).permutation(np.array(text.sentences, object))
    moved = (replace(own, text=other.text) for own, other in zip(text.sentences, others, strict=True))
    part._texts[video] = replace(text, sentences=tuple(moved))
    return hmm.evidence(hmm._score(inputs, CHOSEN[entry]["window_s"]), inputs.annotation.recordings[video])


def causal(entry: str, video: str) -> Array:
    """Return what is decoded from what was said up to 5 s before each time of the grid, so before each of its samples.

    Terms are weighted by the training recordings, whose mean length stands for the recording's.
    """
    found = scores(entry, video, (CHOSEN[entry]["window_s"] + hmm.STEP_S) / 2, fit="train")
    counts = np.arange(1, len(found) + 1)[:, None]
    means = found.cumsum(axis=0) / counts
    deviations = np.sqrt(np.maximum((found**2).cumsum(axis=0) / counts - means**2, 0))
    known = np.divide(found - means, deviations, out=np.zeros_like(found), where=deviations > 1e-9)
    release = inputs_of(entry).annotation
    lengths = [len(hmm.times_s(release.recordings[each])) for each in release.splits["train"]]
    return chain(known, CHOSEN[entry], float(np.mean(lengths)), forward)


def chain(told: Array, setting: hmm.Setting, n_times: float, smooth: Any) -> Array:
    """Return the (T, K+1) logarithms of the labels' posteriors, not divided by expected time."""
    n_steps = told.shape[1]
    leave = 1 - np.exp(-n_steps / (setting["stay"] * n_times))
    matrix = transitions(n_steps, leave=leave, reach=setting["reach"], back=setting["back"])
    outside = np.full((len(told), 1), setting["irrelevant"])
    seen = setting["scale"] * hmm.STEP_S / 60 * np.concatenate([outside, told, outside], axis=1)
    states = smooth(np.eye(n_steps + 2)[0], matrix, seen)
    return np.concatenate([np.logaddexp(states[:, :1], states[:, -1:]), states[:, 1:-1]], axis=1)


def forward(start: Array, matrix: Array, seen: Array) -> Array:
    """Return the (T, S) logarithms of P(state at time t | evidence up to t)."""
    with np.errstate(divide="ignore"):
        states, steps = [np.log(start) + seen[0]], np.log(matrix)
    for each in seen[1:]:
        states.append(log_sum(states[-1][:, None] + steps, axis=0) + each)
    return np.array(states) - log_sum(np.array(states), axis=1)[:, None]


def show(what: str, found: Array) -> None:
    """Print the means over recordings, their standard errors, and between what the accuracies are."""
    means, errors = found.mean(axis=0), found.std(axis=0, ddof=1) / len(found) ** 0.5
    words = [f"{mean:.2f} ({error:.2f})" for mean, error in zip(means, errors, strict=True)]
    print(f"{what}: {' / '.join(words)}; {found[:, 0].min():.1f} to {found[:, 0].max():.1f}", flush=True)


def main(path: str) -> None:
    """Write the settings that are tried to a file, and print all other numbers."""
    splits = inputs_of(WORDS).annotation.splits
    print("accuracy, mAP, Irrelevant answered, rightly: % (standard errors); least and highest accuracy")
    with Pool() as pool, open(path, "w", newline="", encoding="utf-8") as file:
        for entry in CHOSEN:
            for name, videos in {"train and val": splits["train"] + splits["val"], "test": splits["test"]}.items():
                found = pool.starmap(variants, [(entry, video) for video in videos])
                for what in found[0]:
                    show(f"{entry}, {name}, {what}", np.array([each[what] for each in found]))
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(HEAD)
        for entry in (ALONE, *CHOSEN):
            climb(entry, pool, writer)


if __name__ == "__main__":
    main(sys.argv[1])
