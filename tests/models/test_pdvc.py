from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from stepline.metrics import soda_d, uniform  # noqa: E402
from stepline.models.pdvc import Pdvc, PdvcConfig, sinusoids  # noqa: E402
from stepline.models.pdvc_loss import Predicted, as_boxes, match, segment_losses  # noqa: E402

LENGTH, D, WORDS = 32, 10, 9
TINY: dict[str, Any] = {
    "feature_dim": D,
    "vocabulary": WORDS,
    "length": LENGTH,
    "queries": 12,
    "hidden": 32,
    "feedforward": 32,
    "heads": 4,
    "levels": 2,
    "dropout": 0.0,
    "most_segments": 8,
    "words": 6,
    "caption_hidden": 32,
    "attention_hidden": 16,
    "caption_dropout": 0.0,
}
FEATURES = torch.randn(LENGTH, D, generator=torch.Generator().manual_seed(0))
SEGMENTS = torch.tensor([[0.1, 0.3], [0.4, 0.6], [0.5, 0.9]])
CAPTIONS = torch.tensor([[1, 2, 0], [3, 0, 0], [4, 5, 6]])
MATCHERS = "hungarian", "soda", "soft_soda"


@pytest.fixture(autouse=True)
def deterministic() -> Iterator[None]:
    """As in a fit, but without the filling of new memory, which takes time."""
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    torch.utils.deterministic.fill_uninitialized_memory = False
    yield
    torch.utils.deterministic.fill_uninitialized_memory = True
    torch.use_deterministic_algorithms(False)


def network(seed: int = 0, **changes: Any) -> Pdvc:
    torch.manual_seed(seed)
    return Pdvc(PdvcConfig(**TINY | changes))


def trained(model: Pdvc, steps: int, learning_rate: float = 2e-3) -> list[float]:
    optimiser = torch.optim.Adam(model.parameters(), lr=learning_rate)
    found = []
    for _ in range(steps):
        optimiser.zero_grad()
        loss = model.loss(FEATURES, SEGMENTS, CAPTIONS, duration_s=100)
        loss.backward()
        optimiser.step()
        found.append(loss.item())
    return found


def test_the_defaults_are_the_release_s_for_youcook2() -> None:
    config = PdvcConfig(feature_dim=512, vocabulary=1607)
    with torch.device("meta"):
        model = Pdvc(config)
    assert [len(layers) for layers in (model.project, model.encoder, model.decoder, model.boxes)] == [4, 2, 2, 2]
    assert model.queries.weight.shape == (100, 1024)
    assert model.captions.logits.weight.shape == (1608, 512)
    assert model.counts[0].weight.shape == (21, 512)


@pytest.mark.parametrize("matcher", MATCHERS)
def test_the_loss_is_finite_and_falls_and_reaches_every_parameter(matcher: Any) -> None:
    model = network(matcher=matcher)
    losses = trained(model, 6, 4e-3)
    assert np.isfinite(losses).all()
    assert losses[-1] < 0.8 * losses[0]
    model.zero_grad()
    model.loss(FEATURES, SEGMENTS, CAPTIONS, duration_s=100).backward()
    untouched = {name for name, each in model.named_parameters() if each.grad is None or not each.grad.any()}
    assert not untouched


def test_the_loss_is_the_sum_of_its_parts_and_soft_soda_has_one_more() -> None:
    for matcher in MATCHERS:
        model = network(matcher=matcher)
        parts = model.losses(FEATURES, SEGMENTS, CAPTIONS, duration_s=100)
        assert set(parts) == {"score", "giou", "count", "caption"} | ({"soft"} if matcher == "soft_soda" else set())
        total = model.loss(FEATURES, SEGMENTS, CAPTIONS, duration_s=100)
        torch.testing.assert_close(total, sum(parts.values()))


@pytest.mark.parametrize("matcher", MATCHERS)
def test_the_losses_are_those_of_both_layers_each_with_its_own_matching(matcher: Any) -> None:
    model = network(matcher=matcher)
    trained(model, 3)
    parts = model.losses(FEATURES, SEGMENTS, CAPTIONS, duration_s=100)
    rows, levels = model._encode(FEATURES, 100)
    expected: dict[str, Any] = {"caption": 0}
    for queries, view, predicted in model._decode(rows, levels, None):
        assert predicted is not None
        chosen, end = match(model.config, predicted, SEGMENTS)
        for name, loss in segment_losses(model.config, predicted, SEGMENTS, chosen, end).items():
            expected[name] = expected.get(name, 0) + loss
        for number, query in enumerate(chosen.split(1)):
            caption = CAPTIONS[number : number + 1]
            expected["caption"] += 2 * model.captions.loss(queries[query], view.of(query), rows, levels, caption) / 3
    assert parts.keys() == expected.keys()
    for name, loss in parts.items():
        torch.testing.assert_close(loss, expected[name])


@pytest.mark.parametrize("matcher", MATCHERS)
def test_two_fits_of_one_seed_are_the_same_bytes(matcher: Any) -> None:
    """With dropout, which draws from the global generator."""
    states = []
    for seed in (1, 1, 2):
        model = network(seed, matcher=matcher, dropout=0.3, caption_dropout=0.5)
        trained(model, 3)
        states.append({name: value.numpy().tobytes() for name, value in model.state_dict().items()})
    assert states[0] == states[1]
    assert states[0] != states[2]


def test_levels_halve_and_each_position_is_encoded_with_the_duration() -> None:
    model = network(levels=3)
    for layer in model.encoder:
        torch.nn.init.normal_(layer.attention.locations.offset.weight)
    rows, levels = model._encode(FEATURES, 100)
    assert levels.lengths.tolist() == [32, 16, 8]
    assert levels.starts.tolist() == [0, 32, 48]
    assert rows.shape == (56, 32)
    assert not torch.allclose(rows, model._encode(FEATURES, 50)[0])
    assert torch.equal(model._encode(FEATURES, 256)[0], model._encode(FEATURES, 1000)[0])


def test_sinusoids_by_hand() -> None:
    found = sinusoids(torch.tensor([0.0, 0.25]), 4)
    angle = np.pi / 2
    expected = [[0, 1, 0, 1], [np.sin(angle), np.cos(angle), np.sin(angle / 100), np.cos(angle / 100)]]
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_queries_begin_short_and_unlikely_and_each_layer_refines_the_boxes_before() -> None:
    model = network(decoder_layers=3)
    rows, levels = model._encode(FEATURES, 100)
    first, second, third = model._decode(rows, levels, None)
    assert first.predicted is not None
    assert second.predicted is not None
    placed = model.queries.weight[:, :32]
    centre = model.reference(placed).sigmoid()[:, 0]
    torch.testing.assert_close(first.view.centre, centre)
    torch.testing.assert_close(first.view.unit, torch.tensor([[1 / 32, 1 / 16]]).expand(12, 2))
    length = torch.full((12,), 1 / (1 + np.exp(2)), dtype=torch.float32)
    torch.testing.assert_close(first.predicted.boxes, torch.stack((centre, length), dim=1))
    torch.testing.assert_close(second.view.centre, centre)
    torch.testing.assert_close(second.view.unit, (length / 8)[:, None].expand(12, 2))
    torch.testing.assert_close(second.predicted.boxes, first.predicted.boxes)
    assert not second.view.centre.requires_grad
    torch.testing.assert_close(first.predicted.counts, model.counts[0](first.queries.max(dim=0).values))
    torch.testing.assert_close(second.predicted.logits, model.scores[1](second.queries)[:, 0])
    torch.testing.assert_close(torch.stack([each.bias.sigmoid() for each in model.scores]), torch.full((3, 1), 0.01))
    torch.nn.init.constant_(model.boxes[1][-1].bias, 1.0)
    first, second, third = model._decode(rows, levels, None)
    torch.testing.assert_close(second.predicted.boxes, (first.predicted.boxes.logit() + 1).sigmoid())
    torch.testing.assert_close(third.view.centre, second.predicted.boxes[:, 0])


class Said(Pdvc):
    """A network that says what it is told: segments, scores, a number, and captions with likelihoods."""

    def __init__(self, segments: Any, scores: Any, number: int, captions: Any, likelihoods: Any) -> None:
        torch.manual_seed(0)
        super().__init__(PdvcConfig(**TINY))
        said = Predicted(torch.tensor(scores).logit(), as_boxes(torch.tensor(segments)), torch.eye(9)[number])
        self.said, self.words = said, (torch.tensor(captions), torch.tensor(likelihoods))

    def _decode(self, *arguments: Any) -> Any:
        self.captions.decode = lambda *_: self.words  # type: ignore[method-assign]
        return [layer._replace(predicted=self.said) for layer in super()._decode(*arguments)]


def test_as_many_segments_as_counted_are_chosen_by_both_scores_and_put_in_order() -> None:
    """The last has the best score, but its words have -6 / 2^2. The first have -1 and -9 / 3^2; one has no words."""
    segments = [[0.125, 0.375], [0.5, 0.75], [0.125, 0.25], [0.375, 0.5]]
    captions = [[3, 0, 0], [4, 5, 6], [0, 0, 0], [7, 8, 0]]
    said = segments, [0.5, 0.6, 0.05, 0.9], 3, captions, [-1.0, -9.0, 0.0, -6.0]
    found = Said(*said).eval().decode(FEATURES, duration_s=100)
    np.testing.assert_allclose(found.segments, [[0.125, 0.25], [0.125, 0.375], [0.5, 0.75]], atol=1e-6)
    np.testing.assert_allclose(found.scores, [0.05, 0.5, 0.6], atol=1e-6)
    assert found.captions == [[], [3], [4, 5, 6]]


@pytest.mark.parametrize(("number", "expected"), [(0, 1), (1, 1), (2, 2), (8, 2)])
def test_one_segment_at_least_and_no_more_than_queries_are_found(number: int, expected: int) -> None:
    said = Said([[0.2, 0.4], [-0.2, 1.5]], [0.4, 0.3], number, [[3], [4]], [-1.0, -1.0])
    found = said.eval().decode(FEATURES, duration_s=100)
    assert len(found.segments) == len(found.scores) == len(found.captions) == expected
    assert [0.0, 1.0] in found.segments.tolist() or expected == 1


def test_captions_are_greedy_and_end_at_0_or_at_the_most_words() -> None:
    model = network().eval()
    rows, levels = model._encode(FEATURES, 100)
    queries, view, _ = model._decode(rows, levels, None)[-1]
    with torch.no_grad():
        model.captions.logits.weight.mul_(30)
        words, likelihoods = model.captions.decode(queries, view, rows, levels)
        assert words.shape[1] <= 6
        for query, (caption, likelihood) in enumerate(zip(words, likelihoods, strict=True)):
            length = int((caption > 0).sum())
            assert not caption[length:].any()
            expected, given = 0.0, []
            for number in range(min(length + 1, 6)):
                one = torch.tensor([query])
                seen, state = model.captions._begin(queries[one], view.of(one), rows, levels)
                for word in [0, *given]:
                    embedded = model.captions.of_word(model.captions.embed(torch.tensor([word])))
                    state = model.captions._step(embedded, state, seen)
                best, word = model.captions.logits(state[0])[0].log_softmax(dim=0).max(dim=0)
                assert int(word) == (int(caption[number]) if number < length else 0)
                expected += float(best) if number < length else 0
                given.append(int(word))
            assert float(likelihood) == pytest.approx(expected, abs=1e-4)
        model.captions.logits.bias[0] = 1e4
        words, likelihoods = model.captions.decode(queries, view, rows, levels)
        assert words.shape == (12, 0)
        assert not likelihoods.any()


def test_what_comes_after_the_end_of_a_caption_is_not_said() -> None:
    model = network().eval()
    rows, levels = model._encode(FEATURES, 100)
    queries, view, _ = model._decode(rows, levels, None)[-1]
    script = iter(torch.tensor([[3, 1, 2], [0, 4, 2], [5, 0, 0], [6, 6, 0]]))
    model.captions.__dict__["logits"] = lambda _: 50.0 * torch.nn.functional.one_hot(next(script), WORDS + 1)
    words, _ = model.captions.decode(queries[:3], view.of(torch.arange(3)), rows, levels)
    assert words.tolist() == [[3, 0], [1, 4], [2, 2]]


def test_the_caption_loss_is_of_words_and_end_alone_and_of_each_caption_alike() -> None:
    model = network().eval()
    rows, levels = model._encode(FEATURES, 100)
    queries, view, _ = model._decode(rows, levels, None)[-1]

    def loss(chosen: list[int], captions: list[list[int]]) -> float:
        which = torch.tensor(chosen)
        found = model.captions.loss(queries[which], view.of(which), rows, levels, torch.tensor(captions))
        return found.item()

    alone = loss([0], [[1, 2]]), loss([1], [[3]]), loss([2], [[4, 5, 6]])
    together = loss([0, 1, 2], [[1, 2, 0, 0], [3, 0, 0, 0], [4, 5, 6, 0]])
    assert together == pytest.approx(np.mean(alone), rel=1e-5)
    with torch.no_grad():
        model.captions.logits.weight.zero_()
        model.captions.logits.bias[0] = np.log(90.0)
    assert loss([0], [[1, 2, 3]]) == pytest.approx((3 * np.log(99) + np.log(99 / 90)) / 4, rel=1e-5)


def test_captions_see_the_video_about_their_query() -> None:
    """A caption's likelihood changes with the rows near its segment, and not with those elsewhere."""
    model = network(proposals="ground_truth").double().eval()
    rows, levels = model._encode(FEATURES.double(), 100)
    queries, view, _ = model._decode(rows, levels, SEGMENTS.double())[-1]

    def loss(changed: int) -> float:
        other = rows.clone()
        other[changed] += 1
        return model.captions.loss(queries[:1], view.of(torch.tensor([0])), other, levels, torch.tensor([[1]])).item()

    same = model.captions.loss(queries[:1], view.of(torch.tensor([0])), rows, levels, torch.tensor([[1]])).item()
    assert loss(int(0.2 * LENGTH)) != same
    assert loss(int(0.8 * LENGTH)) == same


def test_only_as_many_words_are_learned_as_leave_room_for_beginning_and_end() -> None:
    model = network()
    long = torch.tensor([[1, 2, 3, 4, 5, 6]] * 3)
    cut = torch.tensor([[1, 2, 3, 4]] * 3)
    torch.testing.assert_close(
        model.loss(FEATURES, SEGMENTS, long, duration_s=100), model.loss(FEATURES, SEGMENTS, cut, duration_s=100)
    )


def test_given_segments_are_captioned_as_they_are() -> None:
    model = network(proposals="ground_truth")
    losses = trained(model, 40, 1e-2)
    assert losses[-1] < 0.2 * losses[0]
    assert set(model.losses(FEATURES, SEGMENTS, CAPTIONS, duration_s=100)) == {"caption"}
    assert all(each.grad.any() for each in model.parameters())
    given = SEGMENTS[[2, 0, 1]]
    found = model.eval().decode(FEATURES, duration_s=100, segments=given)
    assert torch.equal(found.segments, given)
    assert found.scores.tolist() == [1, 1, 1]
    assert found.captions == [[4, 5, 6], [1, 2], [3]]


def test_what_cannot_be_learned_is_one_line() -> None:
    model = network()
    for segments, reason in (
        (SEGMENTS[:0], "0 segments cannot be learned by 12 queries"),
        (SEGMENTS.repeat(5, 1), "15 segments cannot be learned by 12 queries"),
        (SEGMENTS.flip(0), "the segments are not sorted by start and end"),
    ):
        with pytest.raises(ValueError, match=reason):
            model.loss(FEATURES, segments, CAPTIONS, duration_s=100)
    with pytest.raises(ValueError, match="segments are given with learned proposals"):
        model.decode(FEATURES, duration_s=100, segments=SEGMENTS)
    with pytest.raises(ValueError, match="no segments are given with ground_truth proposals"):
        network(proposals="ground_truth").decode(FEATURES, duration_s=100)
    with pytest.raises(ValueError, match="hidden is 48, not a multiple of 32 and of 4 heads"):
        network(hidden=48)


Video = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


def planted(seed: int, n: int, *, shuffled: bool = False) -> list[Video]:
    """Videos of 3 to 5 segments: a row says whether it is in one, in which, and whether that begins or ends there."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(n):
        count = rng.integers(3, 6)
        segments = 2 * np.sort(rng.choice(LENGTH // 2 + 1, 2 * count, replace=False)).reshape(count, 2)
        features = 0.1 * rng.standard_normal((LENGTH, D))
        for number, (start, end) in enumerate(segments):
            features[start:end, [0, 1 + number]] += 1
            features[start, 7] += 1
            features[end - 1, 8] += 1
        rows = torch.from_numpy(rng.permutation(features) if shuffled else features).float()
        found.append((rows, torch.from_numpy(segments / LENGTH).float(), torch.arange(1, count + 1)[:, None]))
    return found


def learned(videos: list[Video]) -> Pdvc:
    epochs = 15
    model = network(hidden=64, feedforward=64, encoder_layers=1, matcher="soda", count_weight=2.0)
    optimiser = torch.optim.Adam(model.parameters(), lr=1.5e-3, weight_decay=1e-4, fused=True)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 1.5e-3, total_steps=epochs * len(videos), pct_start=0.1)
    for _ in range(epochs):
        for index in torch.randperm(len(videos)).tolist():
            optimiser.zero_grad()
            model.loss(*videos[index], duration_s=100).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
            schedule.step()
    return model.eval()


def score(model: Pdvc, videos: list[Video]) -> float:
    """Return the mean SODA-D F1."""
    found = [model.decode(features, duration_s=100).segments for features, _, _ in videos]
    return float(np.mean([soda_d(true, each).f1 for (_, true, _), each in zip(videos, found, strict=True)]))


def baseline(videos: list[Video]) -> float:
    """Return the mean SODA-D F1 of four equal parts, the mean number of segments."""
    return float(np.mean([soda_d(true, uniform(1, 4)).f1 for _, true, _ in videos]))


@pytest.mark.slow
def test_planted_segments_are_found_and_captioned_also_in_new_videos() -> None:
    train, new = planted(0, 48), planted(1, 16)
    model = learned(train)
    assert score(model, train) > 0.9
    assert score(model, new) > 0.85 > 2 * baseline(new)
    captions = [(model.decode(rows, duration_s=100).captions, words.tolist()) for rows, _, words in new]
    counted = [found == true for found, true in captions if len(found) == len(true)]
    assert len(counted) > 8
    assert np.mean(counted) > 0.8


@pytest.mark.slow
def test_nothing_of_a_new_video_is_found_where_its_rows_are_shuffled() -> None:
    new = planted(1, 16, shuffled=True)
    assert score(learned(planted(0, 48, shuffled=True)), new) < baseline(new)
