"""The heads of article grounding learn what is planted in made features of made videos of HT-Step's real articles."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

pytest.importorskip("torch")

from stepline.datasets.htstep import RELEASES, articles, taxonomy
from stepline.fetch import fetch_release
from stepline.metrics.grounding import PredictedSegments, TrueSegments, article_grounding
from stepline.models import actionformer_grounding, step_grounding, umt_grounding
from stepline.models.actionformer import ActionFormer
from stepline.models.actionformer_config import ActionFormerConfig, Decoding
from stepline.models.actionformer_training import fit_actionformer
from stepline.models.grounding import GroundedSegments, GroundedVideo
from stepline.models.narrations import narrated_video
from stepline.models.step_grounding import StepGrounding
from stepline.models.step_grounding_config import StepGroundingConfig
from stepline.models.step_grounding_training import fit_step_grounding
from stepline.models.training import loaded, restore
from stepline.models.umt import Umt
from stepline.models.umt_config import UmtConfig
from stepline.models.umt_training import fit_umt
from tests.datasets.htstep_made import make_annotations, make_candidates

pytestmark = pytest.mark.slow
TEXT, FEATURE = 24, 32
"""Channels of the texts of steps, and of rows."""
ROW_S, SHORTEST, LONGEST, LEAST = 6, 24, 64, 3
"""Seconds from row to row, rows of a video at least and at most, and of a segment at least, so that videos are few."""
KNOWN, WHOLE, UNKNOWN = (1, 2, 4, 7, 10, 15, 21), 35, (3, 6, 9, 12)
"""Steps of the articles that are learned, of an activity in all its variations, and of the articles that are not."""
LEARNED, HELD_OUT = 7, 3
"""Videos of an article."""
ALIKE, LEARNED_ALIKE = (8,) * 7, 12
"""Steps of the articles, and videos that are learned of each, where steps look alike."""
LOOKS = np.random.default_rng(0).standard_normal((TEXT, FEATURE)) * (FEATURE / TEXT) ** 0.5
"""The linear map from the text of a step to the rows that show it."""
OPTIONS: dict[str, Any] = {"batch_size": 8, "epochs": 16, "learning_rate": 5e-3}


@dataclass(frozen=True, kw_only=True)
class Study:
    """Videos of articles, and what their steps are.

    ids: of the S steps, ascending, by number. texts: (S, TEXT). train, seen: of the same articles; unseen: of others.
    """

    ids: NDArray[np.int64]
    texts: NDArray[np.float32]
    train: Sequence[GroundedVideo]
    seen: Sequence[GroundedVideo]
    unseen: Sequence[GroundedVideo]


Says = Callable[[GroundedVideo], tuple[GroundedSegments, NDArray[np.floating[Any]]]]
"""A video -> its segments, and the (T, K) scores of its rows and the steps of its article."""


class Found(NamedTuple):
    """Mean average precision in both readings, and the part of the shown steps whose highest row shows them."""

    official: float
    per_query: float
    recall: float


@pytest.fixture(autouse=True)
def _taxonomy(real_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPLINE_MIRROR", str(real_data))
    fetch_release(RELEASES, "v1")


@cache
def listed(seed: int) -> dict[tuple[int, ...], list[Any]]:
    """Return the records of made videos by the steps that are asked for: those of the article, or 35 of an activity."""
    asked, of_activity = make_candidates(seed), defaultdict[str, list[int]](list)
    for (activity, _), ids in articles().items():
        of_activity[activity] += ids
    found = defaultdict[tuple[int, ...], list[Any]](list)
    for video, record in make_annotations(seed, ["train"]).items():
        whole = of_activity[record["activity"]]
        found[tuple(whole if len(whole) == WHOLE else asked[video])].append(record)
    return found


def study(seed: int = 0, *, shuffled: bool = False, alike: bool = False) -> Study:
    """Return made videos whose rows show their steps by what a linear map makes of the text.

    shuffled: rows are in any order. alike: articles are of 8 steps, of which two look and read the same, half an
    article apart; each is shown at its place in the article, in videos of one length.
    """
    rng = np.random.default_rng(seed)
    known, learned = (ALIKE, LEARNED_ALIKE) if alike else ((*KNOWN, WHOLE), LEARNED)
    chosen: list[tuple[int, ...]] = []
    for length in (*known, *UNKNOWN):
        fitting = (of for of, records in listed(seed).items() if len(records) >= learned + HELD_OUT)
        chosen.append(next(of for of in fitting if len(of) == length and of not in chosen))
    ids = np.array(sorted(step for of in chosen for step in of))
    texts = rng.standard_normal((len(ids), TEXT)).astype(np.float32)
    texts /= np.linalg.norm(texts, axis=1, keepdims=True)
    if alike:
        for of in chosen:
            half = len(of) // 2
            texts[np.searchsorted(ids, of[half : 2 * half])] = texts[np.searchsorted(ids, of[:half])]
    looks = texts @ LOOKS

    def video(record: Any, article: tuple[int, ...]) -> GroundedVideo:
        n = LONGEST if alike else int(np.clip(record["duration"] / ROW_S, SHORTEST, LONGEST))
        bounds, steps = list[tuple[float, float]](), list[int]()
        for each in record["annotations"]:
            start, end = (time_s * n / record["duration"] for time_s in each["segment"])
            more = max(0.0, LEAST - (end - start)) / 2
            if start - more >= (bounds[-1][1] if bounds else 0) and end + more <= n:
                bounds.append((start - more, end + more))
                steps.append(int(np.searchsorted(ids, each["id"])))
        if alike:
            steps = sorted({*steps})
            starts = [article.index(ids[step]) * n / len(article) for step in steps]
            bounds = [(start, start + n / len(article)) for start in starts]
        rows = rng.standard_normal(FEATURE) + 0.5 * rng.standard_normal((n, FEATURE))
        for (start, end), step in zip(bounds, steps, strict=True):
            rows[int(start) : int(np.ceil(end))] = looks[step] + 0.5 * rng.standard_normal(FEATURE)
        return GroundedVideo(
            rows=(rng.permutation(rows) if shuffled else rows).astype(np.float32),
            duration_s=n,
            candidates=np.searchsorted(ids, article),
            segments_s=np.array(bounds).reshape(-1, 2),
            steps=np.array(steps, np.int64),
        )

    def videos(chosen: Sequence[tuple[int, ...]], first: int, n: int) -> list[GroundedVideo]:
        made = [video(record, of) for of in chosen for record in listed(seed)[of][first : first + n]]
        return [each for each in made if len(each.steps)]

    return Study(
        ids=ids,
        texts=texts,
        train=videos(chosen[: len(known)], 0, learned),
        seen=videos(chosen[: len(known)], learned, HELD_OUT),
        unseen=videos(chosen[len(known) :], 0, HELD_OUT),
    )


def uniform(video: GroundedVideo) -> tuple[GroundedSegments, NDArray[np.floating[Any]]]:
    """Equal parts of the video, one of each step in the article's order."""
    n, rows = len(video.candidates), np.arange(len(video.rows)) + 0.5
    edges = np.linspace(0, video.duration_s, n + 1)
    middles = (edges[:-1] + edges[1:]) / 2
    return GroundedSegments(edges[:-1], edges[1:], video.candidates, np.ones(n)), -np.abs(rows[:, None] - middles)


def actionformer(of: Study, path: Path, *, texts: bool, **options: Any) -> Says:
    """Fit ActionFormer with a class for each step, or ActionFormer-T."""
    config = ActionFormerConfig(
        feature_dim=FEATURE,
        classes=None if texts else len(of.ids),
        text_dim=TEXT if texts else None,
        max_length=LONGEST,
        embed=32,
        pyramid_dim=32,
        head_dim=32,
        text_embed=32,
        heads=2,
        arch=(1, 1, 2),
        head_layers=2,
        ranges=((0, 4), (4, 8), (8, 10000)),
        droppath=0.0,
        candidates="article" if texts else "all",
        init_norm=20.0,
    )
    vectors = of.texts if texts else None
    fit_actionformer(config, of.train, path, texts=vectors, warmup_epochs=2, average=0.95, **OPTIONS | options)
    with loaded(path) as tensors:
        model = restore(ActionFormer(config), tensors, "cpu")
    return lambda video: (
        actionformer_grounding.ground(model, video, vectors, settings=Decoding()),
        actionformer_grounding.per_second(model, video, vectors),
    )


def umt(of: Study, path: Path) -> Says:
    """Fit UMT; a query has the text and a word that all have, as rows differ by which of its words they attend to."""
    config = UmtConfig(
        feature_dim=FEATURE,
        text_dim=TEXT,
        hidden=32,
        heads=2,
        feedforward=64,
        decoder_layers=1,
        positions=LONGEST,
        dropout=0.0,
        video_dropout=0.3,
        text_dropout=0.0,
        moments=10,
    )
    words = [np.stack((text, np.full(TEXT, TEXT**-0.5, np.float32))) for text in of.texts]
    fit_umt(config, of.train, path, words=words, **OPTIONS | {"epochs": 32, "batch_size": 16})
    with loaded(path) as tensors:
        model = restore(Umt(config), tensors, "cpu")
    return lambda video: (umt_grounding.ground(model, video, words), umt_grounding.per_second(model, video, words))


MT_BCE = StepGroundingConfig(feature_dim=FEATURE, text_dim=TEXT, width=32, heads=4, joint_layers=2, positions=LONGEST)


def mt_bce(of: Study, path: Path, **options: Any) -> Says:
    """Fit MT+BCE."""
    sentences = [text[None] for text in of.texts]
    fit_step_grounding(MT_BCE, of.train, path, sentences=sentences, **OPTIONS | {"epochs": 24, "warm_up": 20} | options)
    with loaded(path) as tensors:
        model = restore(StepGrounding(MT_BCE), tensors, "cpu")
    return lambda video: (
        step_grounding.ground(model, video, sentences),
        step_grounding.per_second(model, video, sentences),
    )


def evaluated(of: Study, videos: Sequence[GroundedVideo], says: Says) -> Found:
    """Return what is found in videos."""
    article = {step.id: (step.activity, step.variation) for step in taxonomy().values()}
    true, said, recalled = list[Any](), list[Any](), list[bool]()
    for number, each in enumerate(videos):
        segments, scores = says(each)
        bounds = each.segments_s.T
        true += zip([str(number)] * len(each.steps), *bounds, of.ids[each.steps], strict=True)
        start_s, end_s, steps, certain = segments
        said += zip([str(number)] * len(steps), start_s, end_s, of.ids[steps], certain, strict=True)
        best = dict(zip(each.candidates.tolist(), scores.argmax(axis=0) + 0.5, strict=True))
        for step in {*each.steps.tolist()}:
            start, end = bounds[:, each.steps == step]
            recalled.append(bool(((start <= best[step]) & (best[step] < end)).any()))
    columns = TrueSegments(*map(list, zip(*true, strict=True))), PredictedSegments(*map(list, zip(*said, strict=True)))
    official = article_grounding(*columns, article)
    per_query = article_grounding(*columns, article, reading="per_query")
    return Found(official.mean, per_query.mean, float(np.mean(recalled)))


HEADS: dict[str, Callable[[Study, Path], Says]] = {
    "actionformer": partial(actionformer, texts=False),
    "actionformer_t": partial(actionformer, texts=True),
    "umt": umt,
    "mt_bce": mt_bce,
}


BOUNDS = {
    "actionformer": Found(official=0.55, per_query=0.5, recall=0.6),
    "actionformer_t": Found(official=0.55, per_query=0.5, recall=0.6),
    "umt": Found(official=0.22, per_query=0.15, recall=0.4),
    "mt_bce": Found(official=0.55, per_query=0.5, recall=0.55),
}
"""What is found in held-out videos of the learned articles at least."""
OTHERS = Found(official=0.15, per_query=0.1, recall=0.35)
"""What is found in videos of other articles at least, by a head that reads texts."""
NOTHING = Found(official=0.2, per_query=0.1, recall=0.25)
"""What is found at most where there is nothing to learn."""


@pytest.mark.long  # tests/benchmarks/htstep/test_heads.py has a smaller one
@pytest.mark.parametrize("head", HEADS)
def test_each_head_learns_what_is_shown_and_nothing_from_shuffled_rows(head: str, tmp_path: Path) -> None:
    shown, shuffled = study(), study(shuffled=True)
    for videos in (shown.train, shown.seen):
        assert {len(each.candidates) for each in videos} == {*KNOWN, WHOLE}
    says = HEADS[head](shown, tmp_path / "shown.safetensors")
    found = evaluated(shown, shown.seen, says)
    assert all(one > least for one, least in zip(found, BOUNDS[head], strict=True)), found
    if head != "actionformer":
        others = evaluated(shown, shown.unseen, says)
        assert all(one > least for one, least in zip(others, OTHERS, strict=True)), others
    says = HEADS[head](shuffled, tmp_path / "shuffled.safetensors")
    for control in (evaluated(shuffled, shuffled.seen, says), evaluated(shown, shown.seen, uniform)):
        assert all(one < most for one, most in zip(control, NOTHING, strict=True)), control


def narrated(n: int) -> tuple[list[GroundedVideo], NDArray[np.float32]]:
    """Return windows of videos whose rows show what is said, and the texts of the sentences."""
    rng = np.random.default_rng(0)
    said, length = 10, 100
    texts = rng.standard_normal((n * said, TEXT)).astype(np.float32)
    texts /= np.linalg.norm(texts, axis=1, keepdims=True)
    found = []
    for number in range(n):
        rows = rng.standard_normal(FEATURE) + 0.5 * rng.standard_normal((length, FEATURE))
        starts = np.arange(0, length, length // said) + rng.integers(0, 4, said)
        for place, start in enumerate(starts):
            rows[start : start + 5] = texts[number * said + place] @ LOOKS + 0.5 * rng.standard_normal(FEATURE)
        sentences = [(float(start), float(start + 5), "said") for start in starts]
        video = narrated_video(rows, length, sentences, first=number * said, window_s=LONGEST, seed=number)
        assert video is not None
        found.append(video)
    return found, texts


def told_apart(of: Study, videos: Sequence[GroundedVideo], says: Says) -> float:
    """Return the part of the segments in whose middle their step scores higher than the one like it; equal: half."""
    right = []
    for each in videos:
        scores, n = says(each)[1], len(each.candidates)
        places = [each.candidates.tolist().index(step) for step in each.steps.tolist()]
        for (start, end), place in zip(each.segments_s, places, strict=True):
            scored = scores[int((start + end) / 2)]
            more = scored[place] - scored[(place + n // 2) % n]
            right.append(0.5 if abs(more) < 1e-6 else float(more > 0))
    return float(np.mean(right))


def test_steps_that_look_alike_are_told_apart_by_their_place_in_the_article(tmp_path: Path) -> None:
    of = study(alike=True)
    assert {len(each.candidates) for each in of.seen} == {*ALIKE}
    ordered = told_apart(of, of.seen, mt_bce(of, tmp_path / "mt_bce.safetensors", epochs=20))
    assert ordered > 0.85
    says = actionformer(of, tmp_path / "actionformer_t.safetensors", texts=True, epochs=2)
    alike = told_apart(of, of.seen, says)
    assert alike == pytest.approx(0.5, abs=0.1)


def test_a_few_updates_find_more_where_training_begins_with_narrations(tmp_path: Path) -> None:
    of, (videos, texts) = study(), narrated(120)
    begun = tmp_path / "narrations.safetensors"
    mt_bce(replace(of, train=videos, texts=texts), begun, epochs=8)
    without, found = (
        evaluated(of, of.seen, mt_bce(of, tmp_path / "fit.safetensors", epochs=2, begin=begin))
        for begin in (None, begun)
    )
    assert found.official > without.official + 0.1, (found, without)
    assert found.per_query > without.per_query + 0.1, (found, without)
