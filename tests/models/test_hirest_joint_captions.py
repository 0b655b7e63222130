"""Captions as they are learned, beam search against all captions there are, and where a caption ends."""

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


def test_words_do_not_attend_to_the_padding_before_them() -> None:
    model = network(1)
    seen, read = frames(model, 1), torch.tensor([[CLS, 5, 0, 0]])
    other = torch.tensor([[CLS, 5, 9, 0]])
    with torch.no_grad():
        logits, changed = (model.decoder(seen, each, read > 0) for each in (read, other))
    assert torch.allclose(logits[0, [0, 1, 3]], changed[0, [0, 1, 3]], atol=1e-5)
    assert not torch.allclose(logits[0, 2], changed[0, 2], atol=1e-2)


def test_a_wide_beam_finds_the_best_of_all_captions() -> None:
    model = network(1)
    model.decoder.bias.data[SEP] -= 9
    seen, size = frames(model, 1), model.config.vocabulary
    first = following(model, seen, [[]])[0]
    both = first[:, None] + following(model, seen, [[word] for word in range(size)])
    found = model.decoder.search(seen, size, 2)
    assert found.ids[0, 0].tolist() == list(divmod(int(both.argmax()), size))
    assert float(found.scores[0, 0]) == pytest.approx(float(both.max()), abs=1e-4)


def test_a_hypothesis_has_the_likelihood_of_its_words() -> None:
    """Also one whose words were first those of another."""
    model = network(1)
    model.decoder.bias.data[SEP] -= 9
    seen = frames(model, 2)
    found = model.decoder.search(seen, 3, 4)
    for caption, hypotheses, scores in zip(seen, found.ids.tolist(), found.scores.tolist(), strict=True):
        for words, score in zip(hypotheses, scores, strict=True):
            said = (float(following(model, caption[None], [words[:n]])[0, words[n]]) for n in range(4))
            assert score == pytest.approx(sum(said), abs=1e-4)


def test_a_caption_ends_before_its_end_or_filling() -> None:
    assert until_end([5, 6, SEP, 7]) == until_end([5, 6, 0, SEP]) == until_end([5, 6]) == [5, 6]
    assert until_end([SEP]) == []
