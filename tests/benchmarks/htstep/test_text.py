"""Grounding by what is said, by hand."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import count
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from stepline.benchmark import UnavailableError
from stepline.benchmarks.htstep import texts
from stepline.benchmarks.htstep.kinds import Found
from stepline.benchmarks.htstep.methods.text import TextGrounding
from stepline.datasets.htstep import Recording, Step
from stepline.datasets.htstep_transfer import Sentence
from stepline.needs import Need
from stepline.spec import TextSpec
from tests.benchmarks.htstep.conftest import inputs, predicted
from tests.benchmarks.htstep.synthetic import SILENT, videos

Said = Sequence[tuple[float, float, str]]
HEADLINES = {4: "cut onion", 7: "fry onion", 9: "serve rice"}
"""The article, whose ids have gaps."""


class Words:
    """An encoder: words are at right angles, a text is their sum."""

    NUMBERS: defaultdict[str, int] = defaultdict(count().__next__)
    spec = TextSpec(
        name="words", label="sum", revision=1, architecture="file", weights=(), licence="MIT", max_tokens=99,
        output="sum", dimension=64,
    )  # fmt: skip

    def tokens(self, text: str) -> list[int]:
        return [*text.encode()]

    def encode(self, tokens: list[int]) -> NDArray[np.float32]:
        total = np.zeros(self.spec.dimension)
        for word in bytes(tokens).decode().lower().split():
            total[self.NUMBERS[word]] += 1
        return total.astype(np.float32)


@pytest.fixture(autouse=True)
def _words(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have sentences encoded by `Words` in tests that make inputs up."""
    own = texts.encoder
    monkeypatch.setattr(texts, "encoder", lambda made, key: Words() if made is None else own(made, key))


def ground(by: str, order: str, said: Mapping[str, Said], duration: int = 30) -> list[Found]:
    """Return what is predicted of videos in which this is said."""
    lines = {
        video: tuple(Sentence(start_s=a, end_s=b, text=text) for a, b, text in listed) for video, listed in said.items()
    }
    steps = {
        step: Step(id=step, activity="Dinner", variation="", index=k, headline=text, paragraph="")
        for k, (step, text) in enumerate(HEADLINES.items(), start=1)
    }
    listed = [
        Recording(video=video, split="val_seen", activity="Dinner", steps=(*HEADLINES,), segments=(), labelled=False)
        for video in said
    ]
    of: Any = SimpleNamespace(
        entry=SimpleNamespace(settings={"by": by, "order": order}),
        benchmark=None,
        subtitles=lines,
        evaluated=listed,
        predicted=["val_seen"],
        steps=steps,
        bank=lambda split: dict.fromkeys(said, np.zeros((duration, 1))),
    )
    return list(TextGrounding().predict(of, []))


SAID: Said = [
    (10.0, 12.0, "fry onion"),
    (2.0, 4.0, "cut onion"),
    (20.0, 22.0, "serve rice"),
    (25.0, 27.0, "salt"),
]


@pytest.mark.parametrize("by", ["tfidf", "mpnet"])
@pytest.mark.parametrize("order", ["free", "article"])
def test_the_sentence_that_is_like_a_headline_is_its_segment(by: str, order: str) -> None:
    (made,) = ground(by, order, {"a": SAID})
    best = dict(reversed([*zip(made.steps, made.segments, strict=True)]))
    assert best == {4: (2, 4), 7: (10, 12), 9: (20, 22)}
    assert made.scores[:3] == pytest.approx((1, 1, 1), abs=1e-6)
    assert list(made.scores) == sorted(made.scores, reverse=True)
    assert made.article == (4, 7, 9)
    assert made.times_s == made.ordered_s == (2, 10, 20)


def test_without_an_order_the_five_best_sentences_of_each_step_are_segments() -> None:
    many = [(float(at), at + 1.0, "fry onion" if at < 7 else "serve rice") for at in range(8)]
    (made,) = ground("mpnet", "free", {"a": many})
    assert [segment for step, segment in zip(made.steps, made.segments, strict=True) if step == 7] == [
        (float(at), at + 1.0) for at in range(5)
    ]
    assert made.steps.count(9) == 1
    assert made.scores[made.steps.index(4)] == pytest.approx(0.5)
    (made,) = ground("mpnet", "free", {"a": [(0.0, 1.0, "onion" + 30 * " salt")]})
    assert made.steps == (4, 7), "also one that is little like a headline"
    assert made.scores == pytest.approx([0.5**0.5 / 901**0.5] * 2)


def test_in_the_article_s_order_a_step_has_one_sentence_or_none() -> None:
    said = [(0.0, 2.0, "serve rice"), (4.0, 6.0, "cut onion"), (8.0, 9.0, "fry onion"), (12.0, 13.0, "serve it")]
    (free,), (ordered,) = (ground("mpnet", order, {"a": said}) for order in ("free", "article"))
    assert (0.0, 2.0) in free.segments
    assert {*zip(ordered.steps, ordered.segments, strict=True)} == {(4, (4, 6)), (7, (8, 9)), (9, (12, 13))}
    (few,) = ground("mpnet", "article", {"a": said[:2]})
    assert [*zip(few.steps, few.segments, strict=True)] == [(9, (0.0, 2.0))]
    (skipped,) = ground("mpnet", "article", {"a": [said[0], (4.0, 6.0, "salt"), (8.0, 9.0, "salt")]})
    assert [*zip(skipped.steps, skipped.segments, strict=True)] == [(9, (0.0, 2.0))], "also of as many sentences"


def test_equal_scores_are_in_the_order_of_sentences_then_of_steps() -> None:
    spans = [(5.0, 6.0), (1.0, 3.0), (1.0, 2.0)]
    (made,) = ground("mpnet", "free", {"a": [(*span, "onion") for span in spans]})
    assert [*zip(made.steps, made.segments, strict=True)] == [(step, span) for span in sorted(spans) for step in (4, 7)]


@pytest.mark.parametrize("n", [6, 8])
def test_sentences_that_differ_by_rounding_alone_are_in_their_order(n: int) -> None:
    said = [(2.0 * at, 2.0 * at + 1, " ".join(["cut onion fry"] * (at + 1))) for at in range(n)]
    (made,) = ground("tfidf", "free", {"a": [*said, (20.0, 21.0, "salt"), (24.0, 25.0, "rice onion")]})
    of_cut = [segment for step, segment in zip(made.steps, made.segments, strict=True) if step == 4]
    assert of_cut == [each[:2] for each in said[:5]]
    assert made.times_s[0] == 0


def test_tf_idf_is_fitted_on_the_sentences_of_the_video() -> None:
    alone = ground("tfidf", "free", {"a": SAID})[0]
    others = ground("tfidf", "free", {"a": SAID, "b": [(0.0, 1.0, "onion onion rice")]})[0]
    assert alone == others
    rare, common = [(0.0, 1.0, "cut"), (2.0, 3.0, "onion")], [(4.0, 5.0, "onion"), (6.0, 7.0, "salt")]
    for said, equal in ((rare, True), ([*rare, *common], False)):
        (made,) = ground("tfidf", "free", {"a": said})
        cut, onion = (
            made.scores[[*zip(made.steps, made.segments, strict=True)].index((4, span))] for span in ((0, 1), (2, 3))
        )
        assert (cut == onion) == equal
        assert cut >= onion


@pytest.mark.parametrize("by", ["tfidf", "mpnet"])
@pytest.mark.parametrize("order", ["free", "article"])
def test_a_silent_video_has_times_and_no_segment(by: str, order: str) -> None:
    silent, _ = ground(by, order, {"a": [(0.0, 1.0, " "), (3.0, 3.0, "cut onion")], "b": SAID})
    assert silent.segments == silent.steps == silent.scores == ()
    assert silent.times_s == (0, 0, 0)
    assert len(silent.ordered_s) == 3
    with pytest.raises(UnavailableError) as raised:
        ground(by, order, {"a": []})
    assert raised.value.needs == (Need("transcripts", "htstep"),)


def test_of_sentences_at_the_same_time_the_most_similar_counts_and_one_behind_the_video_not() -> None:
    said = [(1.2, 3.5, "onion"), (2.0, 5.0, "cut onion"), (40.0, 42.0, "cut onion"), (20.0, 22.0, "serve")]
    (made,) = ground("mpnet", "free", {"a": said})
    assert made.times_s == (2, 1, 20)
    (made,) = ground("mpnet", "free", {"a": [(0.0, 2.0, "onion"), (3.0, 5.0, "cut onion"), (3.5, 6.0, "onion")]})
    assert made.times_s == (3, 0, 0)


def test_a_sentence_counts_in_every_second_that_it_touches() -> None:
    said = [(0.75, 2.5, "cut fry serve onion rice"), (10.0, 11.0, "serve it on a warm plate")]
    (made,) = ground("mpnet", "article", {"a": said})
    assert made.ordered_s == (0, 1, 2)


@pytest.mark.usefixtures("banks")
@pytest.mark.parametrize("entry", ["tfidf", "tfidf-ordered", "mpnet", "mpnet-ordered"])
def test_planted_narrations_are_grounded(entry: str) -> None:
    of = inputs(entry)
    made = {each.video: each for each in predicted(of)}
    assert [*made] == [each.video for each in of.evaluated]
    assert made[SILENT].segments == ()
    shown = [each for each in videos() if each.split == "val_seen" and each.video != SILENT]
    hits = [
        segment[:2] in made[each.video].segments
        for each in shown
        for segment in each.segments
        if entry in ("tfidf", "mpnet") or sum(segment[2] == other[2] for other in each.segments) == 1
    ]
    assert np.mean(hits) > 0.9
