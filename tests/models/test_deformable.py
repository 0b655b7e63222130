import math

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
    Padding,
    View,
)

LENGTHS = 7, 4, 2


def levels_of(lengths: tuple[int, ...], videos: int = 1) -> Levels:
    sizes = torch.tensor(lengths)
    return Levels(sizes, sizes.cumsum(0) - sizes, torch.ones(videos, len(lengths), dtype=torch.float64), None)


def attention(padding: Padding = "zeros") -> DeformableAttention:
    """Attention whose offsets and weights depend on the query, as after some training."""
    torch.manual_seed(0)
    made = DeformableAttention(8, 2, len(LENGTHS), 3, padding).double()
    for weight in (made.locations.offset.weight, made.weight.weight):
        torch.nn.init.normal_(weight, std=0.5)
    return made


def inputs(reference: int, queries: int = 5) -> tuple[torch.Tensor, View, torch.Tensor, Levels]:
    torch.manual_seed(1)
    levels = levels_of(LENGTHS)
    places = torch.rand(1, queries, reference, dtype=torch.float64)
    return torch.randn(1, queries, 8).double(), levels.view(places, 3), torch.randn(1, sum(LENGTHS), 8).double(), levels


def read(rows: torch.Tensor, location: float, padding: Padding) -> torch.Tensor:
    """What stands at a location in 0..1 among rows, row i at (i + 0.5) / n, with rows of 0 or the edges beyond."""
    place = location * len(rows) - 0.5
    found = torch.zeros_like(rows[0])
    for number in (math.floor(place), math.floor(place) + 1):
        if 0 <= number < len(rows) or padding == "border":
            found = found + rows[min(max(number, 0), len(rows) - 1)] * (1 - abs(place - number))
    return found


@pytest.mark.parametrize("padding", ["zeros", "border"])
@pytest.mark.parametrize("reference", [1, 2])
def test_attention_is_the_weighted_sum_of_what_stands_at_its_locations(reference: int, padding: Padding) -> None:
    made = attention(padding)
    queries, _, rows, levels = inputs(reference)
    places = torch.rand(queries.shape[1], reference, dtype=torch.float64)
    value = made.value(rows[0]).split(LENGTHS)
    offsets = made.locations.offset(queries[0]).view(-1, 2, 3, 3)
    weights = made.weight(queries[0]).view(-1, 2, 9).softmax(dim=2).view(-1, 2, 3, 3)
    expected = torch.zeros(len(places), 8).double()
    outside = 0
    for q, place in enumerate(places):
        for h in range(2):
            for level, length in enumerate(LENGTHS):
                for p in range(3):
                    unit = 1 / length if reference == 1 else place[1] / 2 / 3
                    location = float(place[0] + offsets[q, h, level, p].detach() * unit)
                    outside += not 0 <= location <= 1
                    part = slice(4 * h, 4 * h + 4)
                    expected[q, part] += weights[q, h, level, p] * read(value[level][:, part], location, padding)
    assert outside > 0
    found = made(queries, levels.view(places[None], 3), rows, levels)
    torch.testing.assert_close(found[0], made.output(expected))


def test_videos_of_a_batch_are_each_on_their_own_and_padding_is_zeros() -> None:
    made = attention()
    queries, _, rows, _ = inputs(1)
    other = torch.randn_like(queries), torch.randn_like(rows)
    places = torch.rand(2, queries.shape[1], 1, dtype=torch.float64)
    both = levels_of(LENGTHS, 2)
    found = made(torch.cat((queries, other[0])), both.view(places, 3), torch.cat((rows, other[1])), both)
    for number, (query, row) in enumerate(((queries, rows), other)):
        alone = levels_of(LENGTHS)
        torch.testing.assert_close(
            found[number : number + 1], made(query, alone.view(places[number : number + 1], 3), row, alone)
        )
    padding = torch.zeros(1, sum(LENGTHS), dtype=torch.bool)
    padding[0, [5, 6, 10]] = True
    padded = levels_of(LENGTHS)._replace(padding=padding)
    view = padded.view(places[:1], 3)
    changed = rows.masked_fill(padding[..., None], 7)
    torch.testing.assert_close(made(queries, view, changed, padded), made(queries, view, rows, padded))
    assert not torch.allclose(made(queries, view, rows, padded), made(queries, view, rows, levels_of(LENGTHS)))


def test_a_reference_is_a_fraction_of_the_rows_that_are_not_padding() -> None:
    levels = levels_of((8, 4))._replace(filled=torch.tensor([[0.5, 0.75]]))
    centre, unit = levels.view(torch.tensor([[[0.5]]]), 4)
    assert centre.tolist() == [[[0.25, 0.375]]]
    assert unit.tolist() == [[[1 / 8, 1 / 4]]]
    centre, unit = levels.view(torch.tensor([[[0.5, 0.25]]]), 4)
    assert unit.tolist() == [[[0.5 * 0.25 / 8, 0.75 * 0.25 / 8]]]


@pytest.mark.parametrize("reference", [1, 2])
def test_the_gradients_are_right(reference: int) -> None:
    made = attention()
    queries, view, rows, levels = inputs(reference)

    def of(queries: torch.Tensor, centre: torch.Tensor, unit: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = made(queries, View(centre, unit), rows, levels)
        return found

    given = [each.detach().clone().requires_grad_() for each in (queries, *view, rows)]
    assert torch.autograd.gradcheck(of, given)
    for parameter in made.parameters():
        parameter.grad = None
    made(queries, view, rows, levels).square().sum().backward()
    assert all(bool(parameter.grad.abs().sum() > 0) for parameter in made.parameters())


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
