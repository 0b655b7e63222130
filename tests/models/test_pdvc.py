from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from stepline.metrics import soda_d, uniform  # noqa: E402
from stepline.models.pdvc import Layer, Pdvc  # noqa: E402
from stepline.models.pdvc_captions import Asked  # noqa: E402
from stepline.models.pdvc_config import PdvcConfig  # noqa: E402
from stepline.models.pdvc_loss import Predicted, as_boxes, counter_loss, match, segment_losses, soft_losses  # noqa: E402
from tests.gpu import GPU  # noqa: E402

LENGTH, D, WORDS = 32, 10, 9
TINY: dict[str, Any] = {
    "feature_dim": D,
    "vocabulary": WORDS,
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
Video = tuple[torch.Tensor, torch.Tensor, torch.Tensor]
VIDEO: Video = FEATURES, SEGMENTS, CAPTIONS
S_100 = torch.tensor([100.0])


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


def losses(model: Pdvc, *videos: Video) -> list[dict[str, torch.Tensor]]:
    features, segments, captions = zip(*videos, strict=True)
    return model.losses(torch.stack(features), segments, captions, durations_s=S_100.expand(len(videos)))


def loss(model: Pdvc, *videos: Video) -> torch.Tensor:
    return model.total(losses(model, *videos))


def encoded(model: Pdvc) -> Any:
    return model.encode(model.embed(FEATURES[None], S_100))


def last(model: Pdvc, given: Any = None) -> tuple[Layer, Any, Any]:
    rows, levels = encoded(model)
    return model.layers(rows, levels, given)[-1], rows, levels


def asked(model: Pdvc, layer: Layer, queries: list[int]) -> Asked:
    return model.asked(layer, torch.zeros(len(queries), dtype=torch.long), torch.tensor(queries))


def decoded(model: Pdvc, features: torch.Tensor = FEATURES, given: Any = None) -> Any:
    return model.decode(features[None], durations_s=S_100, segments=given)[0]


def trained(model: Pdvc, steps: int, learning_rate: float = 2e-3) -> list[float]:
    optimiser = torch.optim.Adam(model.parameters(), lr=learning_rate)
    found = []
    for _ in range(steps):
        optimiser.zero_grad()
        value = loss(model, VIDEO)
        value.backward()
        optimiser.step()
        found.append(value.item())
    return found


def test_the_defaults_are_the_release_s_for_youcook2() -> None:
    config = PdvcConfig(feature_dim=512, vocabulary=1607)
    with torch.device("meta"):
        model = Pdvc(config)
    assert [len(layers) for layers in (model.project, model.encoder, model.decoder, model.boxes)] == [4, 2, 2, 2]
    assert model.queries.weight.shape == (100, 1024)
    assert model.captions.logits.weight.shape == (1608, 512)
    assert model.counts[0].weight.shape == (21, 512)
    assert model.decoder[0].attention.weight.weight.shape == (8 * 4 * 4, 512), "heads, levels and points"


@pytest.mark.parametrize("matcher", MATCHERS)
def test_the_loss_is_finite_and_falls_and_reaches_every_parameter(matcher: Any) -> None:
    model = network(matcher=matcher)
    found = trained(model, 6, 4e-3)
    assert np.isfinite(found).all()
    assert found[-1] < 0.8 * found[0]
    model.zero_grad()
    loss(model, VIDEO).backward()
    untouched = {name for name, each in model.named_parameters() if each.grad is None or not each.grad.any()}
    assert untouched == {"given.0.weight", "given.0.bias", "given.1.weight", "given.1.bias"}


def test_the_loss_is_the_weighted_sum_of_its_parts_and_soft_soda_has_one_more() -> None:
    for matcher in MATCHERS:
        model = network(matcher=matcher, soft_weight=3.0)
        weights = {"score": 2, "giou": 4, "count": 0.5, "caption": 2} | ({"soft": 3} if matcher == "soft_soda" else {})
        layers = losses(model, VIDEO)
        assert [set(each) for each in layers] == [set(weights)] * 2
        expected = sum(weights[name] * value for layer in layers for name, value in layer.items())
        torch.testing.assert_close(model.total(layers), expected)


@pytest.mark.parametrize("matcher", MATCHERS)
def test_each_layer_has_its_own_matching_and_losses(matcher: Any) -> None:
    model = network(matcher=matcher)
    trained(model, 3)
    rows, levels = encoded(model)
    for found, layer in zip(losses(model, VIDEO), model.layers(rows, levels), strict=True):
        matched = match(model.config, layer.predicted, [SEGMENTS])
        expected = segment_losses(model.config, layer.predicted, [SEGMENTS], matched)
        if matcher == "soft_soda":
            expected["soft"] = soft_losses(model.config, [matched])[0]
        expected["count"] = counter_loss(model.config, layer.predicted.counts, torch.tensor([3]))
        alone = [
            model.captions.losses(asked(model, layer, [query]), rows, levels, caption[None])
            for query, caption in zip(matched.query.tolist(), CAPTIONS, strict=True)
        ]
        expected["caption"] = torch.cat(alone).mean()
        assert found.keys() == expected.keys()
        for name, value in found.items():
            torch.testing.assert_close(value, expected[name])


@pytest.mark.parametrize("proposals", ["learned", "ground_truth"])
def test_a_batch_says_of_each_video_what_it_says_of_that_alone(proposals: Any) -> None:
    """Segments of another number and captions of another length in each; losses are per segment of the batch."""
    model = network(proposals=proposals).double().eval()
    torch.nn.init.normal_(model.captions.logits.weight)
    rows = torch.randn(LENGTH, D, dtype=torch.float64)
    videos: list[Video] = [(FEATURES.double(), SEGMENTS.double(), CAPTIONS)]
    videos.append((rows, SEGMENTS[:2].double(), torch.tensor([[2, 3, 4, 5], [1, 0, 0, 0]])))
    both = torch.stack([each[0] for each in videos])
    given = None if proposals == "learned" else [each[1] for each in videos]
    found = model.decode(both, durations_s=S_100.repeat(2), segments=given)
    for video, each in zip(videos, found, strict=True):
        alone = decoded(model, video[0], None if given is None else [video[1]])
        torch.testing.assert_close((each.segments, each.scores), (alone.segments, alone.scores))
        assert each.captions == alone.captions
    parts = [losses(model, each) for each in videos]
    for layer, first, second in zip(losses(model, *videos), *parts, strict=True):
        for name, value in layer.items():
            shares = (1 / 2, 1 / 2) if name == "count" else (3 / 5, 2 / 5)
            torch.testing.assert_close(value, shares[0] * first[name] + shares[1] * second[name])


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


def test_a_video_is_as_long_as_its_whole_seconds_of_256_at_most() -> None:
    durations_s = torch.tensor([100, 100.9, 99, 256, 1000])
    first, same, shorter, longest, longer = network().embed(FEATURES.expand(5, -1, -1), durations_s).positions
    assert torch.equal(first, same)
    assert torch.equal(longest, longer)
    assert not torch.allclose(first, shorter)
    model = network()
    ends = torch.tensor([0.9, 1.0, 255.0, 256.0])
    none, one, all_but_one, all_of_them = model.embed(FEATURES.expand(4, -1, -1), ends).positions[..., 16:]
    for more, less, column in ((one, none, 0), (all_of_them, all_but_one, 255)):
        torch.testing.assert_close(more - less, model.duration.weight[:, column].expand(len(more), -1))


def test_a_row_of_each_level_is_placed_at_its_middle() -> None:
    model = network()
    embedded = model.embed(FEATURES[None], S_100)
    first, n = 0, LENGTH
    for level in model.level:
        middle = (torch.arange(n) + 0.5) / n
        angle = 2 * torch.pi * middle
        placed = embedded.positions[0, first : first + n, :2] - level[:2]
        torch.testing.assert_close(placed, torch.stack([angle.sin(), angle.cos()], dim=1), atol=1e-5, rtol=0)
        torch.testing.assert_close(embedded.places[0, first : first + n, 0], middle)
        first, n = first + n, -(-n // 2)
    assert first == embedded.positions.shape[1]


def test_queries_begin_short_and_unlikely_and_where_they_are_placed() -> None:
    model = network(decoder_layers=3)
    first, second, _ = model.layers(*encoded(model))
    centre = model.reference(model.queries.weight[:, :32]).sigmoid()
    length = torch.full((12, 1), 1 / (1 + np.exp(2)), dtype=torch.float32)
    torch.testing.assert_close(first.predicted.boxes, torch.cat((centre, length), dim=1)[None])
    torch.testing.assert_close(second.predicted.boxes, first.predicted.boxes)
    assert not second.reference.requires_grad
    torch.testing.assert_close(torch.stack([each.bias.sigmoid() for each in model.scores]), torch.full((3, 1), 0.01))


@pytest.mark.gpu
def test_a_gpu_gives_the_losses_and_captions_of_a_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)
    model = network(matcher="soft_soda").eval()
    expected, said = losses(model, VIDEO), decoded(model)
    moved = tuple(each.to(GPU) for each in VIDEO)
    found = model.to(GPU).losses(moved[0][None], [moved[1]], [moved[2]], durations_s=S_100.to(GPU))
    for ours, cpu in zip(found, expected, strict=True):
        torch.testing.assert_close({name: loss.cpu() for name, loss in ours.items()}, cpu, rtol=1e-4, atol=1e-5)
    there = model.decode(moved[0][None], durations_s=S_100.to(GPU))[0]
    torch.testing.assert_close(there.segments.cpu(), said.segments, rtol=1e-4, atol=1e-5)
    assert there.captions == said.captions


class Said(Pdvc):
    """A network that says what it is told: segments, scores, a number, and captions with likelihoods."""

    def __init__(self, segments: Any, scores: Any, number: int, captions: Any, likelihoods: Any) -> None:
        torch.manual_seed(0)
        super().__init__(PdvcConfig(**TINY))
        said = Predicted(torch.tensor([scores]).logit(), as_boxes(torch.tensor([segments])), torch.eye(9)[[number]])
        self.said, self.words = said, (torch.tensor(captions), torch.tensor(likelihoods))

    def layers(self, *arguments: Any) -> Any:
        self.captions.decode = lambda *_: self.words  # type: ignore[method-assign]
        n = len(self.words[1])
        return [
            layer._replace(queries=layer.queries[:, :n], predicted=self.said) for layer in super().layers(*arguments)
        ]


def test_as_many_segments_as_counted_are_chosen_by_both_scores_and_put_in_order() -> None:
    """The last has the best score, but its words have -6 / 2^2. The first have -1 and -9 / 3^2; one has no words."""
    segments = [[0.125, 0.375], [0.5, 0.75], [0.125, 0.25], [0.375, 0.5]]
    captions = [[3, 0, 0], [4, 5, 6], [0, 0, 0], [7, 8, 0]]
    said = segments, [0.5, 0.6, 0.05, 0.9], 3, captions, [-1.0, -9.0, 0.0, -6.0]
    found = decoded(Said(*said).eval())
    np.testing.assert_allclose(found.segments, [[0.125, 0.25], [0.125, 0.375], [0.5, 0.75]], atol=1e-6)
    np.testing.assert_allclose(found.scores, [0.05, 0.5, 0.6], atol=1e-6)
    assert found.captions == [[], [3], [4, 5, 6]]


@pytest.mark.parametrize(("number", "expected"), [(0, 1), (1, 1), (2, 2), (8, 2)])
def test_one_segment_at_least_and_no_more_than_queries_are_found(number: int, expected: int) -> None:
    said = Said([[0.2, 0.4], [-0.2, 1.5]], [0.4, 0.3], number, [[3], [4]], [-1.0, -1.0])
    found = decoded(said.eval())
    assert len(found.segments) == len(found.scores) == len(found.captions) == expected
    assert [0.0, 1.0] in found.segments.tolist() or expected == 1


def test_captions_are_greedy_and_end_at_0_or_at_the_most_words() -> None:
    model = network().eval()
    layer, rows, levels = last(model)
    with torch.no_grad():
        model.captions.logits.weight.mul_(30)
        words, likelihoods = model.captions.decode(asked(model, layer, [*range(12)]), rows, levels)
        assert words.shape[1] <= 6
        for query, (caption, likelihood) in enumerate(zip(words, likelihoods, strict=True)):
            length = int((caption > 0).sum())
            assert not caption[length:].any()
            forced = model.captions(asked(model, layer, [query]), rows, levels, caption[None, :length])[0]
            best, chosen = forced.max(dim=1)
            assert chosen.tolist()[: words.shape[1]] == caption.tolist()[: length + 1]
            assert float(likelihood) == pytest.approx(float(best[:length].sum()), abs=1e-4)
        model.captions.logits.bias[0] = 1e4
        words, likelihoods = model.captions.decode(asked(model, layer, [*range(12)]), rows, levels)
        assert words.shape == (12, 0)
        assert not likelihoods.any()


def test_what_comes_after_the_end_of_a_caption_is_not_said() -> None:
    model = network().eval()
    layer, rows, levels = last(model)
    script = iter(torch.tensor([[3, 1, 2], [0, 4, 2], [5, 0, 0], [6, 6, 0]]))
    model.captions.__dict__["logits"] = lambda _: 50.0 * torch.nn.functional.one_hot(next(script), WORDS + 1)
    words, _ = model.captions.decode(asked(model, layer, [0, 1, 2]), rows, levels)
    assert words.tolist() == [[3, 0], [1, 4], [2, 2]]


def drawn(model: Pdvc, seed: int) -> list[dict[str, float]]:
    """Return the losses that a seed draws."""
    torch.manual_seed(seed)
    with torch.no_grad():
        return [{name: float(loss) for name, loss in layer.items()} for layer in losses(model, VIDEO)]


def test_dropout_is_drawn_in_training_alone_and_for_captions_alone() -> None:
    model = network(caption_dropout=0.5)
    first, again, other = (drawn(model, seed) for seed in (1, 1, 2))
    assert first == again
    for one, two in zip(first, other, strict=True):
        assert {name for name, loss in one.items() if loss != two[name]} == {"caption"}
    model.eval()
    assert drawn(model, 1) == drawn(model, 2) == [pytest.approx(layer) for layer in drawn(network(), 1)]


def test_what_is_dropped_is_all_that_words_are_said_from() -> None:
    """Of nothing each word is as likely, the end of a caption too."""
    for dropped, kept in zip(drawn(network(caption_dropout=1.0), 1), drawn(network(), 1), strict=True):
        assert dropped["caption"] == pytest.approx(np.log(WORDS + 1))
        assert kept["caption"] != pytest.approx(np.log(WORDS + 1), rel=1e-4)


def test_only_as_many_words_are_learned_as_leave_room_for_beginning_and_end() -> None:
    model = network()
    long = torch.tensor([[1, 2, 3, 4, 5, 6]] * 3)
    cut = torch.tensor([[1, 2, 3, 4]] * 3)
    torch.testing.assert_close(loss(model, (FEATURES, SEGMENTS, long)), loss(model, (FEATURES, SEGMENTS, cut)))


def test_given_segments_are_captioned_as_they_are() -> None:
    model = network(proposals="ground_truth", count_weight=0.0)
    found = trained(model, 40, 1e-2)
    assert found[-1] < 0.2 * found[0]
    assert [set(each) for each in losses(model, VIDEO)] == [{"count", "caption"}] * 2
    learned_alone = ("queries.", "reference.", "scores.", "boxes.")
    for name, each in model.named_parameters():
        assert (each.grad is not None and bool(each.grad.any())) != name.startswith((*learned_alone, "counts.")), name
    given = SEGMENTS[[2, 0, 1]]
    said = decoded(model.eval(), given=[given])
    assert torch.equal(said.segments, given)
    assert said.scores.tolist() == [1, 1, 1]
    assert said.captions == [[4, 5, 6], [1, 2], [3]]


def test_what_cannot_be_learned_is_one_line() -> None:
    model = network(matcher="soda")
    assert loss(network(), (FEATURES, SEGMENTS.repeat(4, 1), CAPTIONS.repeat(4, 1))).isfinite(), "12 of 12 queries"
    for segments, reason in (
        (SEGMENTS[:0], "0 segments cannot be learned by 12 queries"),
        (SEGMENTS.repeat(5, 1), "15 segments cannot be learned by 12 queries"),
        (SEGMENTS.flip(0), "the segments are not sorted by start and end"),
    ):
        with pytest.raises(ValueError, match=reason):
            loss(model, (FEATURES, segments, CAPTIONS))
    with pytest.raises(ValueError, match="segments are given with learned proposals"):
        decoded(model, given=[SEGMENTS])
    with pytest.raises(ValueError, match="no segments are given with ground_truth proposals"):
        decoded(network(proposals="ground_truth"))
    with pytest.raises(ValueError, match="hidden is 48, not a multiple of 32 and of 4 heads"):
        network(hidden=48)


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
    epochs = 18
    model = network(hidden=64, feedforward=64, encoder_layers=1, matcher="soda", count_weight=2.0)
    optimiser = torch.optim.Adam(model.parameters(), lr=1.5e-3, weight_decay=1e-4, fused=True)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 1.5e-3, total_steps=epochs * len(videos), pct_start=0.1)
    for _ in range(epochs):
        for index in torch.randperm(len(videos)).tolist():
            optimiser.zero_grad()
            loss(model, videos[index]).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
            schedule.step()
    return model.eval()


def score(model: Pdvc, videos: list[Video]) -> float:
    """Return the mean SODA-D F1."""
    found = [decoded(model, features).segments for features, _, _ in videos]
    return float(np.mean([soda_d(true, each).f1 for (_, true, _), each in zip(videos, found, strict=True)]))


def baseline(videos: list[Video]) -> float:
    """Return the mean SODA-D F1 of four equal parts, the mean number of segments."""
    return float(np.mean([soda_d(true, uniform(1, 4)).f1 for _, true, _ in videos]))


@pytest.mark.long
@pytest.mark.slow
def test_planted_segments_are_found_and_captioned_also_in_new_videos() -> None:
    train, new = planted(0, 48), planted(1, 16)
    model = learned(train)
    assert score(model, train) > 0.9
    assert score(model, new) > 0.85 > 2 * baseline(new)
    captions = [(decoded(model, rows).captions, words.tolist()) for rows, _, words in new]
    counted = [found == true for found, true in captions if len(found) == len(true)]
    assert len(counted) > 8
    assert np.mean(counted) > 0.8


@pytest.mark.long
@pytest.mark.slow
def test_nothing_of_a_new_video_is_found_where_its_rows_are_shuffled() -> None:
    new = planted(1, 16, shuffled=True)
    assert score(learned(planted(0, 48, shuffled=True)), new) < baseline(new)
