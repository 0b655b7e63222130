"""Scores of captions, by hand, on the small release and its planted rows."""

from collections.abc import Sequence

import numpy as np
import pytest

from stepline.benchmark import Values
from stepline.benchmarks.hirest import texts
from stepline.benchmarks.hirest.methods.found import found
from stepline.benchmarks.hirest.metrics import missing_scorer
from stepline.benchmarks.hirest.score import values
from stepline.datasets.hirest import Pair
from stepline.metrics import step_captions
from stepline.metrics.captions import Scores
from tests.benchmarks.hirest.conftest import inputs
from tests.benchmarks.hirest.synthetic import planted, vector

WRONG = "zzz"
WITHOUT_JAVA = {"bootstrap_samples": 100, "meteor": False}


def scored() -> tuple[list[Pair], dict[str, Values]]:
    """Return val's pairs with steps, the last one first, and the scores where all but each first caption are right."""
    of = inputs("frequent", metrics=WITHOUT_JAVA)
    pairs = [pair for pair in of.truth("val") if pair.steps][::-1]
    said = [(WRONG, *(step.caption.strip().upper() for step in pair.steps[1:])) for pair in pairs]
    return pairs, dict(values(of, [found(pair, sentences=each) for pair, each in zip(pairs, said, strict=True)]))


@pytest.mark.usefixtures("releases")
def test_captions_are_compared_step_by_step_in_percent_whatever_their_case() -> None:
    pairs, scores = scored()
    rouge = scores["val_rouge_l"]
    assert rouge.videos == [pair.video for pair in pairs for _ in pair.steps]
    assert rouge.values == pytest.approx([100 * (n > 0) for pair in pairs for n in range(len(pair.steps))])
    n = sum(len(pair.steps) for pair in pairs)
    assert rouge.counts == {"n_listed": len(pairs), "n_samples": n}
    assert rouge.corpus is None
    stem = scores["val_meteor_stem"]
    assert stem.corpus is not None
    assert np.nanmean(stem.values) != pytest.approx(stem.corpus)
    assert 50 < stem.corpus < 100
    assert "val_meteor" not in scores
    assert "val_clip_score" not in scores


@pytest.mark.usefixtures("releases")
def test_a_video_without_captions_is_left_out_and_counted() -> None:
    of = inputs("frequent", metrics=WITHOUT_JAVA)
    first, *others = [pair for pair in of.truth("val") if pair.steps]
    rouge = values(of, [found(pair, sentences=["x"] * len(pair.steps)) for pair in others])["val_rouge_l"]
    assert first.video not in rouge.videos
    assert rouge.counts == {"n_listed": len(others) + 1, "n_samples": sum(len(pair.steps) for pair in others)}


@pytest.mark.usefixtures("banks")
def test_clip_score_is_a_fraction_of_the_steps_whose_video_has_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    from stepline.features.bank import Bank

    absent = [pair.video for pair in inputs("frequent").truth("val") if pair.steps][2]
    there = Bank.__contains__
    monkeypatch.setattr(Bank, "__contains__", lambda self, video: video != absent and there(self, video))
    towers: list[str] = []
    tower = texts.query_encoder
    monkeypatch.setattr(texts, "query_encoder", lambda made, key: towers.append(key) or tower(made, key))
    pairs, scores = scored()
    assert {*towers} == {"clip"}
    rows, expected = planted(), []
    for pair in pairs:
        for n, step in enumerate(pair.steps):
            frames = rows[pair.video][[int(t) for t in np.linspace(step.start_s, step.end_s - 1, 4)]]
            cosines = frames @ vector(step.caption.strip().upper() if n else WRONG) / np.linalg.norm(frames, axis=1)
            expected.append(np.nan if pair.video == absent else cosines.mean())
    assert scores["val_clip_score"].values == pytest.approx(expected, nan_ok=True, abs=1e-6)
    assert scores["val_clip_score"].corpus is None
    n = sum(len(pair.steps) for pair in pairs)
    assert scores["val_rouge_l"].counts["n_samples"] == n
    assert scores["val_clip_score"].counts["n_samples"] == n - sum(map(np.isnan, expected)) < n


def unlike(references: Sequence[str], candidates: Sequence[str]) -> Scores:
    """Score candidates by another rule than references, and the corpus by a rule of its own."""
    segments = [len(theirs) + len(ours) / 1000 for theirs, ours in zip(references, candidates, strict=True)]
    return Scores(len("".join(candidates)) / len("".join(references)), np.array(segments))


@pytest.mark.usefixtures("releases")
def test_every_scorer_gets_each_reference_and_the_caption_of_its_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first video has no prediction. Two metrics are fractions, and three have a value of the whole corpus."""
    monkeypatch.setattr("stepline.benchmarks.hirest.captions.SCORERS", dict.fromkeys(step_captions.SCORERS, unlike))
    monkeypatch.setattr("stepline.benchmarks.hirest.benchmark.missing_scorer", lambda name: [])
    of = inputs("frequent", metrics={"bootstrap_samples": 100, "meteor": True})
    listed = [pair for pair in of.truth("val") if pair.steps]
    pairs = listed[:0:-1]
    said = {pair.video: [f"{pair.video} {'x' * n}" for n in range(len(pair.steps))] for pair in pairs}
    scores = values(of, [found(pair, sentences=tuple(said[pair.video])) for pair in pairs])
    references = [step.caption.strip() for pair in pairs for step in pair.steps]
    expected = unlike(references, [caption for pair in pairs for caption in said[pair.video]])
    assert scores.keys() == {f"val_{name}" for name in step_captions.SCORERS}
    for name in step_captions.SCORERS:
        made, scale = scores[f"val_{name}"], 1 if name == "bert_score" else 100
        assert made.values == pytest.approx(scale * expected.segments), name
        corpus = scale * expected.corpus if name in ("meteor", "bleu4", "meteor_stem") else None
        assert made.corpus == pytest.approx(corpus), name
        assert made.videos == [pair.video for pair in pairs for _ in pair.steps]
        assert made.counts == {"n_listed": len(listed), "n_samples": len(references)}


def test_a_plan_says_the_needs_that_the_metrics_have(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    for module in ("stepline.needs", "stepline.metrics.transformer"):
        monkeypatch.setattr(f"{module}.find_spec", lambda name: None)
    for name in step_captions.SCORERS:
        assert {*missing_scorer(name)} == {*step_captions.missing(name)}, name
    monkeypatch.setattr("stepline.benchmarks.hirest.metrics.locate", lambda name: {name: name})
    for name in step_captions.SCORERS:
        there = {need for need in step_captions.missing(name) if need.kind == "weights"}
        assert {*missing_scorer(name)} == {*step_captions.missing(name)} - there, name
