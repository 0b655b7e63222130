"""Trained methods on planted data: the answer is in one input alone, and a method that is blind to it misses it."""

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import chdir
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from stepline.benchmarks.htstep.kinds import KINDS
from stepline.benchmarks.htstep.score import values
from stepline.datasets.htstep import ANNOTATIONS, RELEASES, SPLITS
from stepline.datasets.htstep_files import TAXONOMY, VIDEOS
from stepline.features.importing import Folder, import_folder
from stepline.models.actionformer_config import ActionFormerConfig
from stepline.models.umt_config import UmtConfig
from tests.benchmarks.htstep.conftest import inputs, predicted
from tests.benchmarks.htstep.synthetic import CONFIG, vector
from tests.benchmarks.tower import tower
from tests.datasets.fetched import write_release

PLANTED = [
    ("place", "duration"),
    ("place", "article"),
    ("duration", "duration"),
    ("duration", "article"),
    ("actionformer", "video"),
    ("actionformer_t", "video"),
    ("actionformer_t", "article"),
    ("umt", "video"),
    ("umt", "article"),
    ("mt_bce", "video"),
    ("mt_bce", "article"),
]
ENTRIES = {"actionformer_t": "aft", "mt_bce": "mt-bce-headline"}
"""The entries of kinds with another name."""
OPTIONS: dict[str, dict[str, Any]] = {
    "actionformer": {"epochs": 2, "batch_size": 4, "learning_rate": 4e-3, "embed": 64, "max_length": 64}
    | {"classes": "article"},
    "umt": {"epochs": 12, "batch_size": 16, "learning_rate": 6e-3, "embed": 32},
    "mt_bce": {"epochs": 10, "learning_rate": 0.01, "width": 32, "max_length": 64},
}
WORDS = tuple(f"thing{number}" for number in range(4))
"""Each video of heads shows them all, once, and has an article of one to three of them."""
DIMENSION = 24
"""Of rows, which is not that of texts."""
LENGTH = 60
"""The seconds of videos whose duration says nothing."""


class Video(NamedTuple):
    """A video. segments: (start_s, end_s, text); article: the texts of its steps, in order."""

    split: str
    activity: str
    duration: int
    segments: Sequence[tuple[float, float, str]]
    article: Sequence[str]


def of_heads(seed: int) -> Iterator[Video]:
    """Yield videos of activities of train and of others, with words at random times, of the article or not."""
    random = np.random.default_rng(seed)
    for number, group in product(range(16), ("seen", "unseen")):
        article = random.permutation(WORDS)[: 1 + number % 3].tolist()
        for split in ["train"] * 4 + ["val_seen"] if group == "seen" else ["val_unseen"]:
            duration = int(random.integers(17, 25))
            part, segments = duration // len(WORDS), []
            for place, word in enumerate(random.permutation(WORDS).tolist()):
                length = int(random.integers(3, min(part, 4) + 1))
                start = place * part + int(random.integers(0, part - length + 1))
                segments.append((start, start + length, word))
            yield Video(split, f"{group}{number}", duration, segments, article)


def of_baselines(kind: str, about: str) -> Iterator[Video]:
    """Yield videos whose steps are where ``kind`` expects them if it knows this input."""
    for number in range(20):
        split = "val_seen" if number % 3 == 0 else "train"
        if about == "duration":
            duration = int(20 * 1.15**number)
            segment = (0.8 * duration, 0.9 * duration) if kind == "place" else (duration / 2 - 2, duration / 2 + 2)
            yield Video(split, "A", duration, [(*segment, "one")], ["one"])
        else:
            activity, n, length = ("A", 4, 12) if number % 2 else ("B", 6, 3)
            texts = [f"step{k}" for k in range(n)]
            order = range(n) if kind == "duration" else np.random.default_rng(n).permutation(n).tolist()
            middles = [(text, LENGTH * (place + 0.5) / n) for text, place in zip(texts, order, strict=True)]
            segments = [(middle - length / 2, middle + length / 2, text) for text, middle in middles]
            yield Video(split, activity, LENGTH, segments, texts)


def write(videos: Sequence[Video], blind: str, rows: Path) -> None:
    """Write a release and features into the current folder.

    blind: the input that tells nothing: without ``article``, each video has its own, whose steps are in any order and
    have one text; without ``video``, rows are zeros; without ``duration``, there are equally many in all videos.
    """
    random, ids, steps = np.random.default_rng(0), dict[tuple[str, str], int](), list[tuple[Any, ...]]()
    names, annotated = dict[str, list[str]]({split: [] for split in SPLITS}), dict[str, Any]()
    for number, each in enumerate(videos):
        name, activity, article = f"{each.split}-{number}", each.activity, each.article
        if blind == "article":
            activity, article = f"{activity} {number}", random.permutation(article).tolist()
        for place, text in enumerate(article):
            if (activity, text) not in ids:
                ids[activity, text] = step = 2 * len(ids) + 3
                said = "do it" if blind == "article" else f"do {text}"
                steps.append((step, activity, place, "none", place + 1, said, ""))
        names[each.split].append(name)
        shown = [(ids[activity, text], [a, b]) for a, b, text in each.segments if text in article]
        annotated[name] = {
            "subset": each.split,
            "activity": activity,
            "annotations": [{"id": step, "segment": bounds} for step, bounds in shown],
        }
        array = random.normal(0, 0.05, (LENGTH if blind == "duration" else each.duration, DIMENSION))
        for start_s, end_s, text in each.segments:
            array[int(start_s) : int(end_s)] += 6 * vector(text)[:DIMENSION]
        np.save(rows / f"{name}.npy", (array * (blind != "video")).astype(np.float32))
    listed = io.StringIO()
    header = ("global_step_index", "activity", "step_index", "variation", "variation_index", "headline", "paragraph")
    csv.writer(listed).writerows([header, *steps])
    write_release(RELEASES, "v1", {TAXONOMY: listed.getvalue(), VIDEOS: names})
    write_release(RELEASES, "annotations", {ANNOTATIONS: annotated})
    Path("tower.py").write_text(tower(vector))
    import_folder(Folder(rows), "planted", "htstep", 1.0)


Scores = Callable[[str, str, str], tuple[float, float]]
"""The mean average precision per query and R@1 of a kind on videos for an input, without the input ``blind``."""


@pytest.fixture(scope="module")
def scores(tmp_path_factory: pytest.TempPathFactory) -> Scores:
    """Scores of a method that is fitted on train and predicts val; each is computed once."""

    def made(kind: str, about: str, blind: str) -> tuple[float, float]:
        entry, block = ENTRIES.get(kind, kind), KINDS[kind].options
        split = "val_unseen" if kind in ("actionformer_t", "umt", "mt_bce") else "val_seen"
        with chdir(tmp_path_factory.mktemp("planted")):
            videos = [*(of_baselines(kind, about) if about else of_heads(seed=0))]
            write(videos, blind, tmp_path_factory.mktemp("rows"))
            options = {block: CONFIG.get(block, {}) | OPTIONS.get(block, {})}
            of = inputs(entry, match={"key": ""}, entries={entry: {"splits": [split]}}, **options)
            of.benchmark.method(of.entry.kind)().fit(of, 0, Path("fit"))
            found = predicted(of, Path("fit"))
            assert [each.video for each in found] == [each.video for each in of.evaluated]
            for each in found if not blind else []:
                assert {*each.steps} <= {*each.article}
                assert len(each.article) == len(each.times_s) == len(each.ordered_s)
                assert list(each.scores) == sorted(each.scores, reverse=True)
                assert all(0 <= a < b <= len(of.bank(split)[each.video]) for a, b in each.segments)
            scored = values(of, found)
        of_queries, of_seconds = (float(scored[f"{split}_{name}"].values.mean()) for name in ("query_map", "r1"))
        return of_queries, of_seconds

    return cache(made)


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have networks of few layers without dropout, and ActionFormer's average follow after few updates."""
    pytest.importorskip("torch")
    from stepline.benchmarks.htstep.methods import actionformer, umt
    from stepline.models import actionformer_training

    levels: dict[str, Any] = {"arch": (1, 1, 2), "ranges": ((0, 4), (4, 8), (8, 64)), "head_layers": 2}
    monkeypatch.setattr(actionformer, "ActionFormerConfig", partial(ActionFormerConfig, **levels))
    sure: dict[str, Any] = {"decoder_layers": 1, "dropout": 0.0, "video_dropout": 0.0, "text_dropout": 0.0}
    monkeypatch.setattr(umt, "UmtConfig", partial(UmtConfig, **sure))
    fit = actionformer_training.fit_actionformer
    monkeypatch.setattr(actionformer_training, "fit_actionformer", partial(fit, average=0.5))


@pytest.mark.parametrize(("kind", "about"), PLANTED)
def test_what_is_planted_in_an_input_is_lost_without_it(kind: str, about: str, scores: Scores) -> None:
    """Without texts, a head finds one of the four shown words by chance; without rows, one of about 20 seconds."""
    world = about if KINDS[kind].options == "baselines" else ""
    (queries, seconds), (blind_queries, blind_seconds) = scores(kind, world, ""), scores(kind, world, about)
    assert seconds > 85
    assert blind_seconds < 50
    assert queries > blind_queries + 20
