import pytest

from stepline.models.priors import PARTS, Priors

LABELS = ["mix", "pour", "pour", "bake", "bake", "mix"]
PLACES = [0.1, 0.55, 0.56, 0.9, 1.0, 0.3]


@pytest.fixture
def priors() -> Priors[str]:
    return Priors(LABELS, PLACES)


def test_the_first_of_equally_frequent_labels(priors: Priors[str]) -> None:
    assert priors.most_frequent(0.99) == "mix"
    assert Priors([*LABELS, "bake"], [*PLACES, 0.8]).most_frequent(0) == "bake"


@pytest.mark.parametrize(
    ("place", "label"), [(0, "mix"), (0.33, "mix"), (0.34, "pour"), (0.66, "pour"), (0.67, "bake"), (1, "bake")]
)
def test_labels_in_the_order_of_their_mean_places(priors: Priors[str], place: float, label: str) -> None:
    assert priors.in_order(place) == label


def test_order_is_by_means_not_by_first_places() -> None:
    assert Priors(["b", "a", "b"], [0.0, 0.4, 1.0]).order == ["a", "b"]
    assert Priors(["b", "a"], [0.5, 0.5]).order == ["b", "a"]


def test_the_most_frequent_label_of_a_part(priors: Priors[str]) -> None:
    assert [priors.likeliest(place) for place in (0.1, 0.149, 0.55, 0.599, 1.0)] == [
        "mix",
        "mix",
        "pour",
        "pour",
        "bake",
    ]
    assert PARTS == 20


def test_a_part_without_segments_or_with_a_tie_has_the_label_that_comes_first(priors: Priors[str]) -> None:
    assert priors.likeliest(0.7) == "mix"
    assert Priors(["b", "a", "a", "b"], [0.9, 0.01, 0.02, 0.03]).likeliest(0.02) == "a"
    assert Priors(["b", "a", "b"], [0.9, 0.01, 0.03]).likeliest(0.02) == "b"
