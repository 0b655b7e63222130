"""What sees neither frames nor words."""

from dataclasses import replace
from itertools import pairwise
from random import Random
from types import SimpleNamespace

import pytest

from stepline.benchmark import UnavailableError
from stepline.benchmarks.hirest.inputs import HirestInputs
from stepline.benchmarks.hirest.methods.baselines import MostFrequent, RandomRanking, Uniform
from stepline.datasets import hirest
from stepline.datasets.hirest import Pair
from stepline.needs import Need
from tests.benchmarks.hirest.conftest import inputs, predicted
from tests.benchmarks.hirest.synthetic import QUERIES, recordings

pytestmark = pytest.mark.usefixtures("releases")


def pairs(of: HirestInputs) -> dict[str, Pair]:
    return {pair.video: pair for pair in of.evaluated}


def test_each_query_and_seed_has_an_order_of_its_own() -> None:
    made = predicted(inputs("random"))
    assert [(each.seed, each.query) for each in made] == [(s, query) for s in range(5) for query in QUERIES["test"]]
    orders = {each.ranked for each in made}
    assert len(orders) == len(made)
    assert all(sorted(order or ()) == sorted(hirest.pool()) for order in orders)
    assert {each.pool for each in made} == {len(hirest.pool())}
    assert made == predicted(inputs("random"))
    for each in made:
        drawn = Random(f"{each.seed}-{each.query}").sample([*hirest.pool()], len(hirest.pool()))
        assert each.ranked == tuple(drawn), "the numbers of results/ are of these draws"


def test_the_whole_of_a_large_pool_is_counted() -> None:
    pool = [f"v{number}" for number in range(60)]
    of = SimpleNamespace(
        used=lambda split: [SimpleNamespace(video=video) for video in pool],
        queries={"q": ["v3"]},
        entry=SimpleNamespace(seeds=[4]),
    )
    (made,) = RandomRanking().predict(of, [])  # type: ignore[arg-type]
    assert (made.seed, made.pool) == (4, 60)
    assert made.ranked is not None
    assert len({*made.ranked} & {*pool}) == len(made.ranked) == 50


@pytest.mark.parametrize(("entry", "part"), [("middle-70", 0.7), ("whole", 1.0)])
def test_the_middle_is_as_far_from_both_ends(entry: str, part: float) -> None:
    of = inputs(entry)
    assert [(each.split, each.video) for each in predicted(of)] == [
        (each.split, each.video) for each in recordings() if each.clip and each.split != "train"
    ]
    for each in predicted(of):
        duration_s = pairs(of)[each.video].duration_s
        start_s, end_s = each.moment or ()
        assert end_s - start_s == pytest.approx(part * duration_s)
        assert start_s == pytest.approx(duration_s - end_s)


@pytest.mark.parametrize("entry", ["uniform-7", "uniform-15s"])
def test_equal_parts_fill_the_moment(entry: str) -> None:
    of = inputs(entry)
    counts = set()
    for each in predicted(of):
        (start_s, end_s), parts = pairs(of)[each.video].bounds_s or (), each.segments or ()
        assert (parts[0][0], parts[-1][1]) == pytest.approx((start_s, end_s))
        assert all(one[1] == other[0] for one, other in pairwise(parts))
        assert [b - a for a, b in parts] == pytest.approx([(end_s - start_s) / len(parts)] * len(parts))
        if entry == "uniform-15s":
            assert len(parts) == max(1, round((end_s - start_s) / 15))
        counts.add(len(parts))
    assert counts == {7} if entry == "uniform-7" else len(counts) > 1


def test_a_moment_that_is_shorter_than_a_part_is_one() -> None:
    pair = replace(next(pair for pair in hirest.load("val") if pair.steps), bounds_s=(3.0, 9.0))
    of = SimpleNamespace(entry=SimpleNamespace(settings={"parts": None, "part_s": 15}), evaluated=[pair])
    (made,) = Uniform().predict(of, [])  # type: ignore[arg-type]
    assert made.segments == ((3, 9),)


def test_the_most_frequent_caption_of_train_is_said_of_each_step() -> None:
    of, captions = inputs("frequent"), []
    for each in recordings():
        if each.split == "train" and each.annotated and each.clip:
            captions += [caption.strip().lower() for *_, caption in each.steps]
    expected = max(sorted({*captions}), key=captions.count)
    method = MostFrequent()
    made = list(method.predict(of.staged("predict"), []))
    assert method.selection == f"of {len(captions)} training captions, {captions.count(expected)} are {expected!r}"
    assert {caption for each in made for caption in each.sentences or ()} == {expected}
    assert [len(each.sentences or ()) for each in made] == [len(pair.steps) for pair in of.evaluated if pair.steps]


def test_captions_of_train_are_needed() -> None:
    of = inputs("frequent", subset={"fraction": 0.001, "seed": 23})
    assert of.used("train")
    assert not any(pair.steps for pair in of.used("train"))
    with pytest.raises(UnavailableError) as raised:
        predicted(of)
    assert raised.value.needs == (Need("split", "train"),)
