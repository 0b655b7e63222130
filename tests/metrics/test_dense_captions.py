import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepline.metrics.captions import Scores, Tokens, bleu, cider, meteor_stem, rouge_l
from stepline.metrics.dense_captions import Captioned, similarity, summarisation


def captioned(**sentences: tuple[float, float]) -> Captioned:
    return Captioned(np.array(list(sentences.values())).reshape(-1, 2), [each.replace("_", " ") for each in sentences])


TRUTH = {
    "soup": captioned(
        chop_the_onions_and_the_garlic=(0, 10),
        fry_the_onions_in_butter=(12, 20),
        add_the_stock_and_let_the_soup_simmer=(20, 31.5),
    ),
    "salad": Captioned(np.array([[3.0, 9], [8, 16]]), ["wash the lettuce", "mix the lettuce with oil & vinegar"]),
    "tea": captioned(boil_the_water=(1, 4)),
    "toast": captioned(toast_the_bread=(0, 5)),
}
PREDICTED = {
    "soup": captioned(
        chop_onions_and_garlic=(0, 9),
        fry_the_onions_in_the_butter=(10, 21),
        add_stock=(12, 31),
        let_the_soup_simmer_slowly=(21, 31.5),
    ),
    "salad": Captioned(
        np.array([[3.0, 9], [9, 16], [20, 22]]),
        ["wash the lettuce", "mix lettuce with oil (and vinegar)", "serve the salad"],
    ),
    "tea": captioned(),
    "pie": captioned(bake_the_pie=(0, 1)),
}


def first_of_the_reference(references: list[list[Tokens]], candidates: list[Tokens]) -> Scores:
    """A scorer that says how often the candidate has the reference's first token, and how many pairs there are."""
    hits = [candidate.count(group[0][0]) for group, candidate in zip(references, candidates, strict=True)]
    return Scores(float(len(candidates)), np.array(hits, dtype=np.float64))


def test_summarisation_is_that_of_densevid() -> None:
    """Values of evaluate2018 with pycocoevalcap 1.2. A video without predictions, or with none listed, has 0."""
    found = summarisation(TRUTH, PREDICTED, {"B4": bleu, "C": cider, "R": rouge_l})
    assert found["B4"] == pytest.approx([0.2906140165057039, 5.043438230428168e-05, 0, 0], abs=1e-12)
    assert found["C"] == pytest.approx([2.6225551860819563, 3.2337624369919933, 0, 0], abs=1e-12)
    assert found["R"] == pytest.approx([0.47779028537243173, 0.50202802359882, 0, 0], abs=1e-12)


def test_every_pair_counts_and_a_prediction_without_one_counts_once() -> None:
    """IoU of the prediction with both is 1 / 2 and a bit less: two pairs at 0.3, from 0.5 on one without."""
    truth = {"v": Captioned(np.array([[0.0, 4], [4, 8]]), ["a", "b"])}
    predicted = {"v": Captioned(np.array([[0.0, 8]]), ["c"])}
    seen: list[tuple[list[list[Tokens]], list[Tokens]]] = []

    def record(references: list[list[Tokens]], candidates: list[Tokens]) -> Scores:
        seen.append((references, candidates))
        return Scores(float(len(candidates)), np.zeros(len(candidates)))

    assert summarisation(truth, predicted, {"pairs": record})["pairs"].tolist() == [5 / 4]
    without = ([[["abc123!@#"]]], [["c"]])
    assert seen == [([[["a"]], [["b"]]], [["c"], ["c"]]), without, without, without]


@pytest.mark.parametrize("tenths", [3, 5, 7, 9])
def test_a_pair_at_a_threshold_itself_counts(tenths: int) -> None:
    """Of so long segments the 1e-8 s of an IoU's union are lost: it is the threshold to the last bit."""
    truth = {"v": Captioned(np.array([[0.0, 10 * 2.0**28]]), ["a"])}
    predicted = {"v": Captioned(np.array([[0.0, tenths * 2.0**28]]), ["a"])}
    found = summarisation(truth, predicted, {"R": rouge_l})["R"]
    assert found.tolist() == [sum(threshold <= tenths / 10 for threshold in (0.3, 0.5, 0.7, 0.9)) / 4]


def test_the_order_of_predictions_does_not_matter() -> None:
    segments, sentences = PREDICTED["soup"]
    turned = PREDICTED | {"soup": Captioned(segments[::-1], sentences[::-1])}
    for scorer in (bleu, cider, rouge_l, meteor_stem):
        there = summarisation(TRUTH, PREDICTED, {"x": scorer})["x"]
        assert summarisation(TRUTH, turned, {"x": scorer})["x"] == pytest.approx(there)


def test_the_truth_itself_has_the_best_scores() -> None:
    found = summarisation(TRUTH, TRUTH, {"R": rouge_l, "M": meteor_stem})
    assert found["R"] == pytest.approx([1] * 4)
    assert found["M"] == pytest.approx([1] * 4)


def test_as_many_sentences_as_segments() -> None:
    broken = Captioned(np.zeros((2, 2)), ["boil the water"])
    for truth, predicted in (({"tea": broken}, {}), (TRUTH, {"tea": broken})):
        with pytest.raises(ValueError, match="tea has not as many sentences as segments"):
            summarisation(truth, predicted, {"R": rouge_l})


def test_soda_takes_predictions_for_references() -> None:
    truth, predicted = ["Salt.", "salt salt pan"], ["salt the pan", "pan", "sauté"]
    assert similarity(truth, predicted, first_of_the_reference).tolist() == [[1, 0, 0], [2, 1, 0]]
    assert similarity(truth, predicted, first_of_the_reference, swapped=False).tolist() == [[1, 0, 0], [1, 0, 0]]


def test_a_letter_beyond_ascii_counts_as_a_space() -> None:
    assert similarity(["sauté"], ["saut"], rouge_l).tolist() == [[1]]


@given(st.lists(st.sampled_from(TRUTH["soup"].sentences), max_size=4), st.lists(st.just("fry the onion"), max_size=3))
def test_similarity_is_of_each_with_each(truth: list[str], predicted: list[str]) -> None:
    found = similarity(truth, predicted, meteor_stem)
    assert found.shape == (len(truth), len(predicted))
    for i, ours in enumerate(truth):
        for j, theirs in enumerate(predicted):
            assert found[i, j] == similarity([ours], [theirs], meteor_stem)[0, 0]
