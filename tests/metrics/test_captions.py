import importlib.util
import json
import subprocess
from itertools import permutations, product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepline.metrics.captions import Scorer, Tokens, ascii_only, bleu, cider, meteor_stem, rouge_l, tokenise
from stepline.metrics.meteor import missing

REFERENCES = [
    [text.split() for text in group]
    for group in (
        ["whisk the eggs with a pinch of salt in a small bowl"],
        ["slice two onions and fry them in butter", "fry the sliced onions until they are golden brown"],
        ["pour the sauce over the noodles"],
        ["abc123!@#"],
    )
]
CANDIDATES = [
    text.split()
    for text in (
        "whisk the eggs and a pinch of pepper in the bowl",
        "fry the sliced onions in butter until soft and golden brown",
        "pour the sauce",
        "serve it hot",
    )
]
SCORERS: list[Scorer] = [bleu, cider, rouge_l, meteor_stem]

captions = st.lists(st.sampled_from(["add", "the", "salt", "salted", "salting", "pan"]), max_size=6)
segments = st.lists(st.tuples(st.lists(captions, min_size=1, max_size=3), captions), min_size=1, max_size=5)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("Place the eggs, then SALT. ", "place the eggs then salt"),
        ("medium-high heat for 1-2 minutes", "medium-high heat for 1-2 minutes"),
        ("the cook's pan; don't stir, it's hot!", "the cook 's pan do n't stir it 's hot"),
        ("cover (loosely) [with] {foil}", "cover -lrb- loosely -rrb- -lsb- with -rsb- -lcb- foil -rcb-"),
        ("add 1,000 g, 2.5 cups & 1/2 tsp. of salt", "add 1,000 g 2.5 cups & 1/2 tsp of salt"),
        ("a 1.5-quart dish, 38x25x2.5 cm, 75.5g", "a 1.5-quart dish 38x25x2 .5 cm 75.5 g"),
        ("powder,coconut milk", "powder coconut milk"),
        ("mix until smooth.Add salt", "mix until smooth.add salt"),
        ("bake at 350 F. Then cool to 40 c.", "bake at 350 f then cool to 40 c."),
        ("salt, pepper, etc. at 5 p.m. today", "salt pepper etc. at 5 p.m. today"),
        ("M&Ms or M&M's and mac & cheese", "m&m s or m&m 's and mac & cheese"),
        ("you cannot stop, you're gonna stir", "you can not stop you 're gon na stir"),
        ("I'm done, you'd see; they'll wanna eat", "i 'm done you 'd see they 'll wan na eat"),
        ("we've gotta try oil vs. butter", "we 've got ta try oil vs. butter"),
        ("add ‘salt’—then “oil”", "add salt then oil"),
        ("¼ or ¾ cup, ⅓ or ⅔ tsp", "1/4 or 3/4 cup 1/3 or 2/3 tsp"),
        ("3 o'clock at the jalapeno's side", "3 o'clock at the jalapeno 's side"),
        ("cool to -5 or 1 -2 degrees", "cool to -5 or 1 -2 degrees"),
        ("100% rye and/or $5.50 -- what?!", "100 % rye and/or $ 5.50 what ?!"),
        ("“don’t” stir – add ½ cup…", "do n't stir add 1/2 cup"),
        ("crème brûlée at 350˚F/175 °C", "crème brûlée at 350 ˚f/175 ° c"),
        ("'mix' the \"dough\" ``well''", "mix the dough well"),
        ("", ""),
        (" . ", ""),
    ],
)
def test_tokens_are_those_of_the_penn_treebank_without_punctuation(text: str, tokens: str) -> None:
    assert tokenise(text) == tokens.split()


@pytest.mark.slow
def test_tokens_of_real_captions_are_those_of_ptbtokenizer(real_data: Path, tmp_path: Path) -> None:
    """Each sentence of the validation and test parts, beyond ASCII characters taken out and left in."""
    if needs := missing():
        pytest.skip(f"PTBTokenizer needs {' and '.join(map(str, needs))}")
    folder = real_data / "pss" / "data"
    parts = [f"yc2/captiondata/yc2_my_{part}.json" for part in ("val", "test")]
    parts += [f"tasty/captiondata/tasty_{part}_anet_format.json" for part in ("val", "test")]
    videos = [video for part in parts for video in json.loads((folder / part).read_text(encoding="utf-8")).values()]
    written = sorted({" ".join(text.split()) for video in videos for text in video["sentences"]})
    texts = [ascii_only(text) for text in written] + written
    (tmp_path / "texts").write_text("\n".join(texts), encoding="utf-8")
    spec = importlib.util.find_spec("pycocoevalcap")
    jars = [Path(each, "tokenizer", "stanford-corenlp-3.4.1.jar") for each in spec.submodule_search_locations or ()]
    options = ["-Dfile.encoding=UTF-8", "-cp", jars[0], "edu.stanford.nlp.process.PTBTokenizer"]
    options += ["-preserveLines", "-lowerCase", tmp_path / "texts"]
    lines = subprocess.run(["java", *options], capture_output=True, check=True).stdout.decode().split("\n")
    removed = {"''", "'", "``", "`", ".", "?", "!", ",", ":", "-", "--", "...", ";"}
    same = [
        tokenise(text) == [token for token in line.split() if token not in removed]
        for text, line in zip(texts, lines, strict=False)
    ]
    assert len(written) > 9000
    assert all(same[: len(written)])
    assert sum(same[len(written) :]) > 0.999 * len(written)


@given(st.text(st.sampled_from("aBs 19.,:-/'&([!?\n\x1fé’½°˚"), max_size=30))
def test_tokens_hold_no_space_and_ascii_text_gives_ascii_tokens(text: str) -> None:
    assert all(token and not any(each.isspace() for each in token) for token in tokenise(text))
    assert ascii_only(text).isascii()
    assert len(ascii_only(text)) == len(text)
    assert all(token.isascii() for token in tokenise(ascii_only(text)))


def test_a_character_beyond_ascii_is_a_space() -> None:
    assert tokenise(ascii_only("sauté at 350°F")) == ["saut", "at", "350", "f"]


@pytest.mark.parametrize(
    ("n", "corpus", "first", "second", "third"),
    [
        (1, 0.7499999999464286, 0.6640732480845413, 0.9090909090082646, 0.3678794409261896),
        (2, 0.5863019699343051, 0.49248990177428925, 0.6741998623988867, 0.367879440895533),
        (3, 0.44129354188126, 0.3664659341738349, 0.46571647513349596, 0.367879440824001),
        (4, 0.27071709631097984, 4.868356592348002e-05, 0.3352113418723811, 0.011633369375307054),
    ],
)
def test_bleu_is_that_of_pycocoevalcap(n: int, corpus: float, first: float, second: float, third: float) -> None:
    """Values computed with pycocoevalcap 1.2, here and below."""
    found = bleu(REFERENCES, CANDIDATES, n)
    assert found.corpus == pytest.approx(corpus, abs=1e-12)
    assert found.segments == pytest.approx([first, second, third, 0], abs=1e-12)


def test_a_word_counts_as_often_as_in_the_reference_that_has_it_most() -> None:
    assert bleu([[["add", "salt"], ["add", "more"]]], [["add", "add"]], 1).corpus == pytest.approx(1 / 2, abs=1e-8)


def test_bleu_of_an_empty_candidate_is_0() -> None:
    assert bleu([[["add", "salt"]]], [[]]).corpus == 0


def test_the_reference_closest_in_length_decides_the_penalty_the_shorter_of_two() -> None:
    """Of a candidate of 4 and references of 2 and 6 tokens, 2 counts: no penalty."""
    references = [["a", "b"], ["a", "b", "c", "d", "e", "f"]]
    assert bleu([references], [["a", "b", "c", "d"]]).corpus == pytest.approx(1, abs=1e-8)
    assert bleu([references[1:]], [["a", "b", "c", "d"]]).corpus == pytest.approx(np.exp(1 - 6 / 4), abs=1e-8)


def test_cider_is_that_of_pycocoevalcap() -> None:
    found = cider(REFERENCES, CANDIDATES)
    assert found.corpus == pytest.approx(2.457268297016463, abs=1e-12)
    assert found.segments == pytest.approx([3.2272402448692112, 2.5269570920827134, 4.074875851113928, 0], abs=1e-12)


def test_cider_of_a_segment_alone_is_0_and_of_two_unlike_ones_10() -> None:
    """What is in all references says nothing."""
    first, second = ["chop", "all", "of", "the", "onions"], ["bake", "it", "for", "one", "hour"]
    assert cider([[first]], [first]).corpus == 0
    assert cider([[first], [second]], [first, second]).segments == pytest.approx([10, 10])


def test_rouge_is_that_of_pycocoevalcap() -> None:
    found = rouge_l(REFERENCES, CANDIDATES)
    assert found.corpus == pytest.approx(0.5079902974820042, abs=1e-12)
    assert found.segments == pytest.approx([0.6902404526166903, 0.7128547579298832, 0.6288659793814433, 0], abs=1e-12)
    assert rouge_l([[["salt"]], [[]], [["salt"]]], [[], [], ["salt"]]).segments.tolist() == [0, 1, 1]


def test_meteor_by_stems_by_hand() -> None:
    """Precision 2.6 / 3 and recall 2.6 / 4 of two equal words and a stem, in two chunks of three matches."""
    found = meteor_stem([[["bake", "the", "whole", "cake"]]], [["baking", "the", "cake"]])
    precision, recall = 2.6 / 3, 2.6 / 4
    mean = precision * recall / (0.85 * precision + 0.15 * recall)
    assert found.corpus == pytest.approx(mean * (1 - 0.6 * (2 / 3) ** 0.2))
    assert found.segments.tolist() == [found.corpus]


def test_meteor_of_a_corpus_is_that_of_its_sums_and_a_whole_match_has_no_chunk() -> None:
    """Lengths 8 and 9, matches 3, 2 and 1, chunks 0, 2 and 1; METEOR 1.5 with these modules alone says 0.32384."""
    candidates = [["mix", "the", "salt"], ["mix", "the", "pepper", "now"], ["mix"]]
    references = [[["mix", "the", "salt"]], [["mix", "a", "pepper"]], [["mix", "the", "salt"]]]
    found = meteor_stem(references, candidates)
    assert found.corpus == pytest.approx(0.32384383865920374)
    assert found.segments == pytest.approx([1, 0.25396825396825395, 0.14814814814814814])


def test_of_two_words_with_its_stem_a_word_is_that_at_the_nearest_place() -> None:
    """Also where the other is equal: precision 0.6 and recall 0.6 / 3 of a stem, in one chunk of one match."""
    found = meteor_stem([[["salt", "it", "salted"]]], [["salted"]])
    assert found.corpus == pytest.approx(0.6 * 0.2 / (0.85 * 0.6 + 0.15 * 0.2) * (1 - 0.6))


def test_meteor_takes_the_best_reference() -> None:
    assert meteor_stem([[["stir"], ["mix", "it"], ["mix"]]], [["mix"]]).corpus == 1


@settings(max_examples=60)
@given(st.lists(st.sampled_from("abc"), max_size=5), st.lists(st.sampled_from("abc"), max_size=5))
def test_the_alignment_has_the_most_matches_and_the_fewest_chunks(candidate: Tokens, reference: Tokens) -> None:
    """Against all alignments of short captions: fewer chunks of as many equal words is a higher score."""
    best = (0, 0)
    for places in product([*range(len(reference)), None], repeat=len(candidate)):
        taken = [j for j in places if j is not None]
        if len(set(taken)) == len(taken) and all(
            j is None or word == reference[j] for word, j in zip(candidate, places, strict=True)
        ):
            before = [None, *places]
            chunks = sum(
                j is not None and (last is None or j != last + 1) for last, j in zip(before, places, strict=False)
            )
            best = max(best, (len(taken), -chunks))
    matches, chunks = best[0], -best[1]
    expected = 0.0
    if matches:
        precision, recall = matches / len(candidate), matches / len(reference)
        whole = chunks == 1 and matches == len(candidate) == len(reference)
        penalty = 0 if whole else 0.6 * (chunks / matches) ** 0.2
        expected = precision * recall / (0.85 * precision + 0.15 * recall) * (1 - penalty)
    assert meteor_stem([[reference]], [candidate]).corpus == pytest.approx(expected)


@pytest.mark.parametrize("scorer", SCORERS)
def test_segments_in_another_order_have_the_same_scores(scorer: Scorer) -> None:
    there = scorer(REFERENCES, CANDIDATES)
    for order in permutations(range(4)):
        again = scorer([REFERENCES[i] for i in order], [CANDIDATES[i] for i in order])
        assert again.corpus == pytest.approx(there.corpus)
        assert again.segments == pytest.approx(there.segments[list(order)])


@pytest.mark.parametrize(("scorer", "most"), [(bleu, 1), (cider, 10), (rouge_l, 1), (meteor_stem, 1)])
def test_scores_are_in_their_range_and_a_further_reference_never_harms_rouge(scorer: Scorer, most: float) -> None:
    @settings(max_examples=40)
    @given(segments)
    def holds(drawn: list[tuple[list[Tokens], Tokens]]) -> None:
        references, candidates = [each for each, _ in drawn], [each for _, each in drawn]
        found = scorer(references, candidates)
        assert found.segments.shape == (len(drawn),)
        assert 0 <= found.corpus <= most + 1e-9
        assert (found.segments >= 0).all()
        assert (found.segments <= most + 1e-9).all()
        if scorer is not bleu and scorer is not cider:
            first = scorer([group[:1] for group in references], candidates)
            assert (first.segments <= found.segments + 1e-9).all()

    holds()


@given(st.lists(st.sampled_from(["add", "the", "salt"]), min_size=4, max_size=8))
def test_what_is_identical_scores_1(caption: Tokens) -> None:
    assert bleu([[caption]], [caption]).corpus == pytest.approx(1, abs=1e-8)
    assert rouge_l([[caption]], [caption]).corpus == pytest.approx(1)
    assert meteor_stem([[caption]], [caption]).corpus == pytest.approx(1)


@pytest.mark.parametrize("scorer", SCORERS)
def test_segments_that_cannot_be_scored_are_refused(scorer: Scorer) -> None:
    with pytest.raises(ValueError, match="no segments to score"):
        scorer([], [])
    with pytest.raises(ValueError, match="1 segments of references and 2 candidates"):
        scorer([[["a"]]], [["a"], ["b"]])
    with pytest.raises(ValueError, match="a segment has no reference"):
        scorer([[]], [["a"]])
