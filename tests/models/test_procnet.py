from dataclasses import replace
from math import log
from typing import Any

import pytest

torch = pytest.importorskip("torch")


from stepline.models.matching import ordered, temporal_order  # noqa: E402
from stepline.models.procnet import ProcNet, ProcNetConfig, Proposals  # noqa: E402

L, D = 32, 8
SMALL = ProcNetConfig(feature_dim=D, length=L, hidden=16, kernels=(3, 4, 3), pool=(3, 4), max_segments=6, dropout=0.0)
CELLS = 8
NOISE = torch.randn(1, L, D, generator=torch.Generator().manual_seed(5))


def made(config: ProcNetConfig = SMALL) -> Any:
    torch.manual_seed(0)
    return ProcNet(config)


def plain(config: ProcNetConfig = SMALL) -> Any:
    """A network of zeros: each anchor is a proposal of score 0.5, each cell and the end are as likely."""
    model = made(config)
    for parameter in model.parameters():
        torch.nn.init.zeros_(parameter)
    return model


def video(generator: Any) -> tuple[Any, Any]:
    """One to three segments with gaps; features say where they are, where they start and where they end."""

    def drawn(low: int, high: int) -> int:
        return int(torch.randint(low, high, (), generator=generator))

    features = 0.2 * torch.randn(L, D, generator=generator)
    segments: list[tuple[int, int]] = []
    end = drawn(0, 8)
    while len(segments) < 3 and (stop := end + 2 * drawn(1, 6) + 1) <= L:
        features[end:stop, 0] += 1
        features[end, 1] += 1
        features[stop - 1, 2] += 1
        segments.append((end, stop))
        end = stop + drawn(1, 10)
    return features[None], torch.tensor(segments) / L


def soda_f1(true: Any, predicted: Any) -> float:
    """Eq. 6, of one video."""
    if not len(predicted):
        return 0.0
    (start, end), (other_start, other_end) = true.T[:, :, None], predicted[temporal_order(predicted)].T[:, None]
    both = (torch.minimum(end, other_end) - torch.maximum(start, other_start)).clamp(min=0)
    overlap = both / (end - start + other_end - other_start - both)
    return 2 * float(overlap[ordered(-overlap, complete=False)].sum()) / (len(true) + len(predicted))


@pytest.mark.slow
def test_what_features_say_is_learned_and_found_better_than_by_equal_parts() -> None:
    generator = torch.Generator().manual_seed(0)
    train, held_out = ([video(generator) for _ in range(count)] for count in (40, 30))
    model = made(replace(SMALL, offset_scale=0.2))
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
    losses = []
    for _ in range(8):
        losses.append(0.0)
        for number in torch.randperm(len(train)).tolist():
            optimiser.zero_grad()
            loss = model.loss(*train[number])
            loss.backward()
            optimiser.step()
            losses[-1] += float(loss.detach()) / len(train)
    assert losses[-1] < 0.65 * losses[0]
    found = [soda_f1(true, model.predict(features)[0]) for features, true in held_out]
    parts = [torch.arange(len(true) + 1) / len(true) for _, true in held_out]
    equal = [
        soda_f1(true, torch.stack([each[:-1], each[1:]], 1)) for (_, true), each in zip(held_out, parts, strict=True)
    ]
    assert sum(found) / len(found) > sum(equal) / len(equal) + 0.1


def test_the_loss_is_the_sum_of_three() -> None:
    """By hand: of a segment of 11 rows the anchors one row beside have IoU 10 / 12, and boundaries that are 1 off."""
    segment = torch.tensor([[10.0, 21.0]]) / L
    found = plain().loss(NOISE, segment).item()
    assert found == pytest.approx(log(2) + (0 + 1 + 1) / 3 + log(CELLS + 1))
    alone = torch.tensor([[10.0, 13.0]]) / L
    assert plain().loss(NOISE, alone).item() == pytest.approx(log(2) + 0 + log(CELLS + 1))
    none = torch.tensor([[10.0, 14.0]]) / L
    assert plain().loss(NOISE, none).item() == pytest.approx(log(2) + log(CELLS + 1))


@pytest.mark.parametrize(
    ("segments", "boundary"),
    [
        ([[10, 13.75]], 0.75**2 / 2),  # of 3 rows an anchor with an IoU of 0.8 itself
        ([[0, 10.5]], 0.5**2 / 2),  # of 11 rows an anchor from row 0 on, but not that from row -1 on, with 10 / 11.5
        ([[2, 5], [10, 21]], (0 + 0 + 1 + 1) / 4),  # each anchor is for the segment that it overlaps
    ],
)
def test_boundaries_are_learned_of_anchors_in_the_video_that_overlap_a_segment(
    segments: list[list[float]], boundary: float
) -> None:
    found = plain().loss(NOISE, torch.tensor(segments) / L).item()
    assert found == pytest.approx(log(2) + boundary + log(CELLS + 1))


def stirred(config: ProcNetConfig) -> Any:
    """A network whose parameters all have an effect."""
    model = made(config)
    for name, parameter in model.named_parameters():
        if "bias" in name:
            torch.nn.init.normal_(parameter, 0, 0.3)
        else:
            parameter.data *= 2
    return model


def recurrent(w: dict[str, Any], name: str, rows: Any, suffix: str = "") -> Any:
    """Return the outputs of an LSTM, one row after the other."""
    gates = rows @ w[f"{name}.weight_ih_l0{suffix}"].T + w[f"{name}.bias_ih_l0{suffix}"]
    output = cell = torch.zeros(gates.shape[1] // 4)
    found = []
    for row in gates:
        both = row + w[f"{name}.weight_hh_l0{suffix}"] @ output + w[f"{name}.bias_hh_l0{suffix}"]
        into, kept, new, out = both.chunk(4)
        cell = kept.sigmoid() * cell + into.sigmoid() * new.tanh()
        output = out.sigmoid() * cell.tanh()
        found.append(output)
    return torch.stack(found)


def proposed(config: ProcNetConfig, w: dict[str, Any], rows: Any) -> tuple[Any, Any]:
    """Return logits and segments of all anchors, written out."""
    backward = recurrent(w, "context", rows.flip(0), "_reverse").flip(0)
    seen = torch.cat([rows, recurrent(w, "context", rows), backward], dim=1)
    seen = (seen @ w["project.weight"].T + w["project.bias"]).clamp(min=0)
    first, step, count = config.kernels
    logits, segments = torch.zeros(count, len(rows)), torch.zeros(count, len(rows), 2)
    for number in range(count):
        size = first + number * step
        for row in range(len(rows)):
            begin = row - (size - 1) // 2
            said = torch.zeros(3)
            if begin >= 0 and begin + size <= len(rows):
                said = (w[f"anchors.{number}.weight"] * seen[begin : begin + size].T).sum(dim=(1, 2))
                said = said + w[f"anchors.{number}.bias"]
            middle = row + 0.5 + config.offset_scale * said[1].tanh() * size
            half = size / 2 * (config.offset_scale * said[2].tanh()).exp()
            logits[number, row] = said[0]
            segments[number, row] = torch.stack([middle - half, middle + half])
    return logits, segments


SCALED = replace(SMALL, offset_scale=0.3, kernels=(3, 5, 4))


@pytest.mark.usefixtures("float64")
def test_proposals_are_written_out() -> None:
    model, rows = stirred(SCALED), torch.randn(L, D)
    logits, segments = model(rows[None])
    expected = proposed(SCALED, {name: each.detach() for name, each in model.named_parameters()}, rows)
    torch.testing.assert_close((logits, segments), expected, rtol=1e-9, atol=1e-9)
    assert logits.std() > 0.3


@pytest.mark.usefixtures("float64")
def test_the_sequence_is_written_out() -> None:
    """Its inputs are the scores of all cells, the place of the one before, and the mean of that one's rows."""
    model, rows = stirred(SCALED), torch.randn(L, D)
    w = {name: each.detach() for name, each in model.named_parameters()}
    logits, segments = proposed(SCALED, w, rows)
    cells, scores = [], []
    for kernels in (range(3), range(3, 4)):
        for begin in range(0, L, 4):
            best = max((logits[k, r], k, r) for k in kernels for r in range(begin, begin + 4))
            scores.append(best[0].sigmoid())
            cells.append(segments[best[1:]])

    def said(cells_before: list[int]) -> Any:
        inputs = []
        for previous in (16, *cells_before):
            start, end = (0, L) if previous == 16 else cells[previous].tolist()
            within = [row for number, row in enumerate(rows) if start < number + 1 and number < end]
            content = torch.stack(within).mean(dim=0) @ w["content.weight"].T + w["content.bias"]
            inputs.append(torch.cat([torch.stack(scores), w["place.weight"][previous], content]))
        return recurrent(w, "sequence", torch.stack(inputs)) @ w["choice.weight"].T + w["choice.bias"]

    chosen: list[int] = []
    while len(chosen) < 6 and (cell := int(said(chosen)[-1].argmax())) != 16:
        chosen.append(cell)
    assert len({*chosen}) > 2
    found, found_scores = model.predict(rows[None])
    torch.testing.assert_close(found, torch.stack([cells[cell] for cell in chosen]).clamp(0, L) / L)
    torch.testing.assert_close(found_scores, torch.stack([scores[cell] for cell in chosen]))

    truth = torch.tensor([[2.0, 9.0], [11.0, 30.0]])
    nearest = [min(range(16), key=lambda cell: float((cells[cell] - each).norm())) for each in truth]
    likelihood = said(nearest).log_softmax(dim=1)[[0, 1, 2], [*nearest, 16]]
    model.config = replace(SCALED, positives=0, negatives=0, positive_iou=2.0)  # nothing but the sequence is learned
    torch.testing.assert_close(model.loss(rows[None], truth / L), -likelihood.mean(), rtol=1e-9, atol=0)


def given(model: Any, logits: Any, segments: Any) -> Any:
    """Let a network propose what it is given."""
    model.forward = lambda features: Proposals(logits, segments)
    return model


@pytest.mark.parametrize(("positives", "negatives", "drawn"), [(2, 5, (2, 5)), (9, 5, (3, 11)), (100, 100, (3, 41))])
def test_so_many_samples_are_drawn_and_negatives_stand_in_for_positives(
    positives: int, negatives: int, drawn: tuple[int, int]
) -> None:
    """Of 96 anchors, 78 lie in the video; of those 3 are positives and 41 negatives."""
    config = replace(SMALL, positives=positives, negatives=negatives)
    model = plain(config)
    logits, segments = (each.detach() for each in model(NOISE))
    logits.requires_grad_()
    segments.requires_grad_()
    given(model, logits, segments).loss(NOISE, torch.tensor([[10.0, 21.0]]) / L).backward()
    moved = segments.grad.abs().sum(dim=2) > 0
    off = (segments.detach() - torch.tensor([10.0, 21.0])).clamp(-1, 1)
    torch.testing.assert_close(segments.grad[moved], off[moved] / 3)
    assert moved.any()
    assert int((logits.grad < 0).sum()) == drawn[0]
    assert int((logits.grad > 0).sum()) == drawn[1]
    outside = (segments[..., 0] < 0) | (segments[..., 1] > L)
    assert not logits.grad[outside].any()


def test_samples_are_drawn_by_the_global_generator() -> None:
    model = made(replace(SMALL, positives=2, negatives=2))
    segments = torch.tensor([[3.0, 10.0], [12.0, 23.0]]) / L

    def loss(seed: int) -> float:
        torch.manual_seed(seed)
        found: float = model.loss(NOISE, segments).item()
        return found

    assert loss(1) == loss(1)
    assert len({loss(seed) for seed in range(5)}) > 1


def test_segments_may_come_in_any_order() -> None:
    model = made()
    segments = torch.tensor([[3.0, 10.0], [12.0, 23.0], [25.0, 28.0]]) / L
    assert model.loss(NOISE, segments).item() == pytest.approx(model.loss(NOISE, segments.flip(0)).item())


def test_decoding_takes_the_first_of_equals_until_the_limit() -> None:
    """The first proposal of the first cell is the shortest anchor at row 0, of which rows 0 and 1 are in the video."""
    segments, scores = plain().predict(NOISE)
    assert segments.tolist() == [[0, 2 / L]] * 6
    assert scores.tolist() == [0.5] * 6


def test_decoding_ends_where_the_end_is_likeliest() -> None:
    model = plain()
    model.choice.bias.data[CELLS] = 1
    segments, scores = model.predict(NOISE)
    assert segments.shape == (0, 2)
    assert scores.shape == (0,)


def test_what_lies_beside_the_video_is_left_out() -> None:
    model = plain()
    logits, segments = model(NOISE)
    found, scores = given(model, logits, segments - 40).predict(NOISE)
    assert len(found) == len(scores) == 0


def test_prediction_is_the_same_while_training_and_leaves_no_gradient() -> None:
    model = made(replace(SMALL, dropout=0.9))
    model.choice.bias.data[CELLS] = -9
    first = model.train().predict(NOISE)
    second = model.eval().predict(NOISE)
    assert [each.tolist() for each in first] == [each.tolist() for each in second]
    assert not any(each.requires_grad for each in first)


def test_rows_and_kernels_that_a_cell_does_not_divide_are_in_the_last_one() -> None:
    model = made(replace(SMALL, pool=(2, 5)))
    assert model.cells == 2 * 7
    assert model.choice.out_features == 15
    model.loss(NOISE, torch.tensor([[0.9, 1.0]])).backward()


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="a kernel of 123 rows does not fit into a video of 100"):
        ProcNet(ProcNetConfig(length=100))
    with pytest.raises(ValueError, match=r"features of one video must be \(1, 32, 8\), not \(2, 32, 8\)"):
        made().predict(NOISE.repeat(2, 1, 1))
    for wrong in (torch.zeros(0, 2), torch.zeros(2)):
        with pytest.raises(ValueError, match="segments must be"):
            made().loss(NOISE, wrong)


def test_defaults_are_those_of_the_paper_and_its_second_code() -> None:
    model = ProcNet(ProcNetConfig())
    assert model.sizes == list(range(3, 124, 8))
    assert model.cells == 200
