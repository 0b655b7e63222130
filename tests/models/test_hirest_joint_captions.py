"""Captions: as they are learned, and beam search against a straight-line one and against all captions there are."""

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from stepline.models.hirest_joint_captions import until_end, written  # noqa: E402
from tests.models.joint import SIZES, network, videos  # noqa: E402

CLS, SEP = 101, 102


def frames(model: Any, n: int, seed: int = 3) -> Any:
    with torch.no_grad():
        return model.encoded(videos(*[SIZES["slots"]] * n, seed=seed))


def following(model: Any, seen: Any, said: list[list[int]]) -> Any:
    """Return the log likelihoods of what follows captions of one length, all words read anew."""
    read = torch.tensor([[CLS, *each] for each in said])
    with torch.no_grad():
        logits = model.decoder(seen.expand(len(said), -1, -1), read, torch.ones_like(read) > 0)
    return logits[:, -1].log_softmax(dim=1)


def test_captions_are_read_and_followed() -> None:
    captions = written([[5, 6], [7, 8, 9, 10, 11, 12]], 5)
    assert captions.read.tolist() == [[CLS, 5, 6, 0, 0], [CLS, 7, 8, 9, 10]]
    assert captions.follows.tolist() == [[5, 6, SEP, 0, 0], [7, 8, 9, 10, SEP]]
    assert captions.there.tolist() == [[True, True, True, False, False], [True] * 5]


def test_what_follows_depends_on_words_before_it_alone() -> None:
    model = network()
    seen = frames(model, 1)
    captions, others = written([[5, 6, 7]], 7), written([[5, 6, 8]], 7)
    said, other = (model.decoder(seen, each.read, each.there) for each in (captions, others))
    assert torch.equal(said[0, :3], other[0, :3])
    assert not torch.allclose(said[0, 3:], other[0, 3:])
    filled = captions._replace(read=captions.read.clone())
    filled.read[0, 5:] = 9
    assert torch.equal(model.decoder(seen, filled.read, filled.there)[0, :5], said[0, :5])


def straight(model: Any, seen: Any, beams: int, words: int) -> tuple[list[list[int]], list[float], int, bool]:
    said: list[list[int]] = [[]]
    scores = torch.zeros(1)
    for step in range(words):
        total = (scores[:, None] + following(model, seen, said)).flatten()
        scores, places = total.topk(beams)
        size = model.config.vocabulary
        said = [[*said[place // size], place % size] for place in places.tolist()]
        if said[0][-1] == SEP:
            return said, scores.tolist(), step + 1, True
    return said, scores.tolist(), words, False


@pytest.mark.parametrize("beams", [1, 2, 3, 5])
def test_beam_search_is_the_straight_line_one_s(beams: int) -> None:
    lengths, unfinished = set(), 0
    for seed in range(3):
        model = network(seed)
        model.decoder.bias.data[SEP] += 2
        seen = frames(model, 5)
        found = model.decoder.search(seen, beams, 7)
        for number in range(5):
            said, scores, steps, done = straight(model, seen[number : number + 1], beams, 7)
            assert found.ids[number, :, :steps].tolist() == said
            assert bool((found.ids[number, :, steps:] == -1).all())
            assert found.scores[number].tolist() == pytest.approx(scores, abs=1e-4)
            assert (int(found.steps[number]), bool(found.done[number])) == (steps, done)
            lengths.add(steps)
            unfinished += any(SEP in each[:-1] for each in said)
    assert len(lengths) > 1
    assert unfinished or beams == 1


def test_a_wide_beam_finds_the_best_of_all_captions() -> None:
    model = network(1)
    model.decoder.bias.data[SEP] -= 9
    seen, size = frames(model, 1), model.config.vocabulary
    first = following(model, seen, [[]])[0]
    both = first[:, None] + following(model, seen, [[word] for word in range(size)])
    found = model.decoder.search(seen, size, 2)
    assert found.ids[0, 0].tolist() == list(divmod(int(both.argmax()), size))
    assert float(found.scores[0, 0]) == pytest.approx(float(both.max()), abs=1e-4)


def test_a_caption_ends_before_its_end_or_filling() -> None:
    assert until_end([5, 6, SEP, 7]) == until_end([5, 6, 0, SEP]) == until_end([5, 6]) == [5, 6]
    assert until_end([SEP]) == []
