import pytest

torch = pytest.importorskip("torch")

from hypothesis import given  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from stepline.models.deformable import (  # noqa: E402
    DecoderLayer,
    DeformableAttention,
    EncoderLayer,
    Levels,
    Locations,
    View,
)

LENGTHS = 7, 4, 2


def levels_of(lengths: tuple[int, ...], videos: int = 1) -> Levels:
    sizes = torch.tensor(lengths)
    return Levels(sizes, sizes.cumsum(0) - sizes, torch.ones(videos, len(lengths), dtype=torch.float64), None)


def inputs(reference: int, queries: int = 5) -> tuple[torch.Tensor, View, torch.Tensor, Levels]:
    torch.manual_seed(1)
    levels = levels_of(LENGTHS)
    places = torch.rand(1, queries, reference, dtype=torch.float64)
    return torch.randn(1, queries, 8).double(), levels.view(places, 3), torch.randn(1, sum(LENGTHS), 8).double(), levels


@given(st.integers(0, 2), st.floats(0, 1))
def test_a_location_between_two_rows_is_interpolated_in_its_own_level(level: int, fraction: float) -> None:
    """Rows hold their own places, so what is read at one is that place, but for the ends."""
    levels = levels_of(LENGTHS)
    rows = torch.cat([(torch.arange(n).double() + 0.5) / n + 10 * number for number, n in enumerate(LENGTHS)])
    half = 0.5 / LENGTHS[level]
    location = half + fraction * (1 - 2 * half)
    row, share = levels.neighbours(torch.full((3, 1), location, dtype=torch.float64), "zeros")
    found = (rows[row] * share).sum(dim=-1)[level, 0]
    assert float(found) == pytest.approx(location + 10 * level, abs=1e-9)


@given(st.floats(-1e6, 1e6))
def test_weights_are_between_0_and_1_and_fade_outside(location: float) -> None:
    place = torch.full((3, 1), location, dtype=torch.float64)
    row, share = levels_of(LENGTHS).neighbours(place, "zeros")
    torch.testing.assert_close(levels_of(LENGTHS).neighbours(place, "border")[1].sum(dim=-1), torch.ones(3, 1).double())
    assert bool((share >= 0).all())
    assert bool((share.sum(dim=-1) <= 1 + 1e-9).all())
    assert row.min() >= 0
    assert row.max() < sum(LENGTHS)
    if not -0.25 <= location <= 1.25:
        assert not share.any()


def test_locations_begin_as_a_fan_to_both_sides_in_rows_of_each_level() -> None:
    levels = levels_of((4, 2))
    made = Locations(8, 4, 2, 3).double()
    found = made(torch.randn(1, 1, 8).double(), levels.view(torch.tensor([[[0.5]]]), 3))[0, 0].float()
    fan = torch.tensor([1.0, 2.0, 3.0])
    for head, side in enumerate((1, 0, -1, 0)):
        torch.testing.assert_close(found[head], 0.5 + side * fan / torch.tensor([[4], [2]]))
    centred = Locations(8, 1, 2, 3, centred=True).double()
    found = centred(torch.randn(1, 1, 8).double(), levels.view(torch.tensor([[[0.5, 0.6]]]), 3))[0, 0, 0].float()
    torch.testing.assert_close(found, torch.tensor([[0.4, 0.5, 0.6]] * 2))


def test_layers_keep_shapes_and_their_dropout_is_theirs_alone() -> None:
    queries, view, rows, levels = inputs(2)
    for layer, arguments in (
        (
            EncoderLayer(8, 16, 2, 3, 3, "zeros", 0.5),
            (rows, torch.randn_like(rows), levels.view(torch.rand(1, 13, 1), 3), levels),
        ),
        (
            DecoderLayer(8, 16, 2, 3, 3, "zeros", 0.5),
            (queries, torch.randn_like(queries), view, rows, levels, None),
        ),
    ):
        made = layer.double()
        assert made(*arguments).shape == arguments[0].shape
        assert not torch.equal(made(*arguments), made(*arguments))
        made.eval()
        assert torch.equal(made(*arguments), made(*arguments))


def test_queries_of_the_decoder_see_one_another_but_not_absent_ones() -> None:
    queries, view, rows, levels = inputs(2)
    layer = DecoderLayer(8, 16, 2, 3, 3, "zeros", 0.0).double()
    changed = queries.clone()
    changed[:, 0] += 1
    absent = torch.tensor([[True, False, False, False, False]])
    for hidden, same in ((None, False), (absent, True)):
        found, other = (layer(each, torch.zeros_like(each), view, rows, levels, hidden) for each in (queries, changed))
        assert torch.allclose(found[:, 1:], other[:, 1:]) == same


def test_the_weights_of_all_locations_sum_to_one() -> None:
    """So attention to equal rows does not depend on the query."""
    query, view, rows, levels = inputs(1)
    attention = DeformableAttention(8, 2, len(LENGTHS), 3, "border").double()
    with torch.no_grad():
        attention.weight.weight.normal_()
        found = attention(query, view, rows[:, :1].expand_as(rows), levels)
        expected = attention.output(attention.value(rows[:, :1]))
    torch.testing.assert_close(found, expected.expand_as(found))
