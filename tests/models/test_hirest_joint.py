"""The joint model of HiREST: what each choice changes, its losses and what it says. Its numbers: ``parity``."""

from math import log
from typing import Any

import pytest

torch = pytest.importorskip("torch")


from stepline.models.hirest_joint import together  # noqa: E402
from stepline.models.hirest_joint_captions import written  # noqa: E402
from stepline.models.hirest_joint_config import PAD, SEP  # noqa: E402
from stepline.models.hirest_joint_segments import between  # noqa: E402
from tests.models.joint import SIZES, alone, network, videos  # noqa: E402


def logits(model: Any, batch: Any) -> Any:
    return torch.stack(model.moment_logits(batch), dim=1).detach()


def test_padding_is_attended_to_or_masked_and_nothing_else_of_a_batch_counts() -> None:
    batch = videos(9, 5, 9)
    attended, masked = network(), network(padding="masked")
    for number in (0, 2):
        assert torch.allclose(logits(attended, batch)[number], logits(attended, alone(batch, number))[0], atol=1e-5)
    short = logits(attended, alone(batch, 1))[0]
    assert not torch.allclose(logits(attended, batch)[1, :, :5], short, atol=1e-2)
    assert torch.allclose(logits(masked, batch)[1, :, :5], short, atol=1e-5)
    assert torch.equal(logits(masked, alone(batch, 1)), logits(attended, alone(batch, 1)))


def test_each_choice_changes_what_it_should() -> None:
    batch = videos(9, 5)
    told = logits(network(), batch)
    assert not torch.allclose(logits(network(fusion="sum"), batch), told, atol=1e-2)
    deaf = network(audio=False)
    assert not [name for name, _ in deaf.named_parameters() if name.startswith("speech")]
    assert torch.equal(logits(deaf, batch), logits(deaf, batch._replace(speech=None)))
    other = batch._replace(speech=batch.speech.flip(2))
    assert not torch.allclose(logits(network(), other), told, atol=1e-2)


def test_frames_and_query_are_multiplied_or_added() -> None:
    batch = videos(6)
    for fusion, neutral in (("product", 1.0), ("sum", 0.0)):
        model = network(fusion=fusion)
        model.query.weight.data.zero_()
        model.query.bias.data.fill_(neutral)
        scale = SIZES["embed"] ** -0.5 if fusion == "product" else 1.0
        rest = model.speech(batch.speech) + model.time(model.times(batch)[..., None])
        expected = scale * model.norm(model.frame(batch.features)) + rest
        assert torch.allclose(model.content(batch), expected, atol=1e-5)


def test_a_task_s_loss_reaches_its_own_parameters() -> None:
    model, batch = network(), videos(9, 5)
    frames = torch.tensor([[1, 8], [2, 3]])
    inside = between(frames[:, 0], frames[:, 1], 9)
    steps = model.sampled(batch, torch.tensor([0, 1]), frames)
    losses = {
        "moment": model.moment_loss(batch, frames),
        "segment": model.segment_loss(batch, inside, inside, frames[:, 1]),
        "caption": model.caption_loss(steps, written([[5], [6]], 7)),
    }
    own = {"moment": {"start", "end"}, "segment": {"segment", "boundary"}, "caption": {"decoder"}}
    for task, loss in losses.items():
        model.zero_grad()
        loss.backward(retain_graph=True)
        without = {name.split(".")[0] for name, each in model.named_parameters() if each.grad is None}
        assert without == set().union(*own.values()) - own[task]


def test_a_moment_s_ends_are_found_apart_and_never_in_the_padding() -> None:
    model, batch = network(), videos(9, 5)
    model.start.weight.data.zero_()
    model.end.weight.data.zero_()
    model.start.weight.data[0, 0], model.end.weight.data[0, 0] = 1, -1
    rows = model.encoded(batch)[..., 0].detach()
    found = model.moments(batch)
    assert found[:, 0].tolist() == [int(rows[0].argmax()), int(rows[1, :5].argmax())]
    assert found[:, 1].tolist() == [int(rows[0].argmin()), int(rows[1, :5].argmin())]
    model.start, model.end = model.end, model.start
    assert torch.equal(model.moments(batch), found.flip(1))
    model.start, model.end = model.end, model.start
    best = torch.cat((rows[1, :5], torch.full((4,), float(rows.max()) + 1)))
    model.encoded = lambda _: torch.stack((rows[0], best))[..., None].expand(-1, -1, SIZES["hidden"])
    assert model.moments(batch)[1, 0] == rows[1, :5].argmax()


def test_the_loss_of_a_moment_is_a_mean_over_all_frames_that_are_no_padding() -> None:
    model, batch, moments = network(), videos(9, 5), torch.tensor([[2, 6], [4, 3]])
    costs = []
    for ends, target in zip(model.moment_logits(batch), moments.unbind(1), strict=True):
        for row, length, frame in zip(ends.detach().sigmoid(), (9, 5), target.tolist(), strict=True):
            costs += [-float((row[at] if at == frame else 1 - row[at]).log()) for at in range(length)]
    assert model.moment_loss(batch, moments).item() == pytest.approx(sum(costs) / 28, abs=1e-5)


def test_the_loss_of_captions_is_a_mean_over_all_words_and_the_padding() -> None:
    model, batch, said = network(), videos(9, 5), written([[5], [6, 7, 8]], 7)
    steps = model.sampled(batch, torch.tensor([0, 1]), torch.tensor([[1, 8], [2, 3]]))
    logits = model.decoder(model.encoded(steps), said.read, said.there)
    costs = -logits.log_softmax(dim=2).gather(2, said.follows[..., None])
    assert model.caption_loss(steps, said).item() == pytest.approx(costs.mean().item(), abs=1e-5)


def test_frames_have_the_time_of_their_own_video_and_padding_has_none() -> None:
    model = network()
    assert model.times(videos(5, 3)).tolist() == [[-1, -0.5, 0, 0.5, 1], [-1, 0, 1, 0, 0]]
    assert model.times(videos(1)).tolist() == [[-1]]


def test_a_frame_is_inside_or_not_and_an_end_or_not() -> None:
    model, inside, ends = network(), torch.tensor([[0, 0, 1, 1]]), torch.tensor([[0, 1, 0, 1]])
    rows = model.fused(torch.zeros(1, 4, SIZES["embed"]), inside > 0, ends > 0)
    assert torch.equal(rows, model.inside.weight[inside] + model.boundary.weight[ends])


def test_activations_are_those_of_the_release() -> None:
    def gelu(rows: Any) -> Any:
        return rows * (1 + torch.erf(rows / 2**0.5)) / 2

    model, rows = network(), 3 * torch.randn(4, SIZES["hidden"], generator=torch.Generator().manual_seed(0))
    decoder, layer = model.decoder, model.encoder.layers[0].feed_forward
    time, tanh = rows[:, :1], model.time[0](rows[:, :1]).tanh()
    said = decoder.transform_norm(gelu(decoder.transform(rows)))
    assert torch.allclose(model.time(time), model.time[2](tanh), atol=1e-6)
    assert torch.allclose(layer(rows), layer.norm(rows + layer.outer(gelu(layer.inner(rows)))), atol=1e-6)
    assert torch.allclose(decoder._logits(rows), said @ decoder.words.weight.T + decoder.bias, atol=1e-5)


def test_rows_attend_to_a_memory_with_the_configured_heads() -> None:
    part, draw = network().encoder.layers[0].attention, torch.Generator().manual_seed(0)
    rows, memory = (torch.randn(1, n, SIZES["hidden"], generator=draw) for n in (3, 5))
    theirs = torch.nn.MultiheadAttention(SIZES["hidden"], SIZES["heads"], batch_first=True)
    projected = part.query, part.key, part.value
    theirs.in_proj_weight.data = torch.cat([each.weight for each in projected])
    theirs.in_proj_bias.data = torch.cat([each.bias for each in projected])
    theirs.out_proj = part.output
    expected = part.norm(rows + theirs(rows, memory, memory)[0])
    assert torch.allclose(part(rows, part.memory(memory), None), expected, atol=1e-5)


def test_training_drops_out_of_every_part_and_released_masks_are_added(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    attend = torch.nn.functional.scaled_dot_product_attention

    def noted(*rows: Any, attn_mask: Any, dropout_p: float) -> Any:
        asked.append((attn_mask, dropout_p))
        return attend(*rows, attn_mask=attn_mask)

    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", noted)
    model, batch, said = network(dropout=1.0, layers=1), videos(5, 5), written([[5, 6]], 7)
    for training in (True, False):
        seen = model.train(training).encoded(batch)
        logits = model.decoder(seen[:1], said.read, said.there)
        assert [len(rows.detach().unique(dim=0)) == 1 for rows in (seen.flatten(0, 1), logits[0])] == [training] * 2
    assert [share for _, share in asked] == [1, 1, 1, 0, 0, 0]
    frames, words, of_frames = (mask for mask, _ in asked[:3])
    assert words.dtype == torch.bool
    assert frames.unique().tolist() == of_frames.unique().tolist() == [-10_000]
    layer, rows = model.encoder.layers[0], torch.randn(1, 4, SIZES["hidden"])
    for part, arguments in ((layer.attention, (layer.attention.memory(rows), None)), (layer.feed_forward, ())):
        dropped, whole = (part.train(on)(rows, *arguments) for on in (True, False))
        assert torch.allclose(dropped, part.norm(rows))
        assert not torch.allclose(whole, part.norm(rows))


def test_padding_is_not_inside() -> None:
    model, batch = network(), videos(9, 5)
    marked: list[Any] = []
    fused = model.fused
    model.fused = lambda content, inside, ends: marked.append(inside) or fused(content, inside, ends)
    model.moment_logits(batch)
    assert marked[0].tolist() == [[True] * 9, [True] * 5 + [False] * 4]


def test_steps_end_in_padding_where_it_is_attended_to_and_are_learned_inside_the_moment() -> None:
    batch, moments = videos(9, 5), torch.tensor([[2, 6], [2, 4]])
    for padding, right in (("attended", [7, 5]), ("masked", [7, 4])):
        model = network(padding=padding)
        model.segment.weight.data.zero_()
        first = next(model.growth(batch, moments))
        assert (first.grown.left.tolist(), first.grown.right.tolist()) == ([1, 1], right)
        assert [each.nonzero()[:, 0].tolist() for each in first.ends] == [[1, 2, end] for end in right]
        inside = between(*moments.unbind(1), 9)
        loss = model.segment_loss(batch, inside, inside, moments[:, 1])
        assert loss.item() == pytest.approx((log(5) + log(3)) / 2)


def test_captions_see_sampled_frames_and_nothing_else() -> None:
    model, batch = network(), videos(9, 5)
    of_video, steps = torch.tensor([1, 0, 0]), torch.tensor([[2, 3], [1, 8], [4, 4]])
    said = model.captions(batch, of_video, steps, beams=2)
    assert len(said) == 3
    assert said[0] == model.captions(alone(batch, 1), torch.tensor([0]), steps[:1], beams=2)[0]
    changed = batch._replace(features=batch.features.clone())
    changed.features[0, 5:] += 1
    assert torch.equal(model.sampled(changed, of_video, steps).features, model.sampled(batch, of_video, steps).features)
    sampled = model.sampled(batch, of_video, steps)
    assert torch.equal(sampled.query, batch.query[of_video])
    assert torch.equal(sampled.speech[:, -1], batch.speech[of_video, [3, 4, 4]])
    even = network(caption_frames="uniform")
    assert not torch.equal(
        even.sampled(changed, of_video, steps).features, even.sampled(batch, of_video, steps).features
    )
    assert model.captions(batch, of_video[:0], steps[:0]) == []
    model.decoder.bias.data[[PAD, SEP]] = -99
    assert [len(each) for each in model.captions(batch, of_video, steps)] == [SIZES["words"]] * 3


def test_videos_are_put_together_and_too_long_ones_refused() -> None:
    batch = videos(9, 5, 7)
    again = together([alone(batch, number) for number in range(3)])
    for one, two in zip(batch, again, strict=True):
        assert torch.equal(one, two)
    assert together([alone(batch, 1)._replace(speech=None)]).speech is None
    with pytest.raises(ValueError, match="65 frames are more than the 64 that have a position"):
        network().moments(videos(65))
