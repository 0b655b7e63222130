from math import log
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from stepline.models.pdvc import Pdvc, PdvcConfig  # noqa: E402

WORDS = 9
FEATURES = torch.randn(32, 10, generator=torch.Generator().manual_seed(0))
SEGMENTS = torch.tensor([[0.1, 0.3], [0.4, 0.6], [0.5, 0.9]])
CAPTIONS = torch.tensor([[1, 2, 0], [3, 0, 0], [4, 5, 6]])


def network(caption_dropout: float) -> Any:
    """A small network that drops nothing but in its captions."""
    torch.manual_seed(0)
    return Pdvc(
        PdvcConfig(
            feature_dim=10,
            vocabulary=WORDS,
            length=32,
            queries=12,
            hidden=32,
            feedforward=32,
            heads=4,
            levels=2,
            most_segments=8,
            words=6,
            caption_hidden=32,
            attention_hidden=16,
            dropout=0.0,
            caption_dropout=caption_dropout,
        )
    )


def losses(model: Any, seed: int) -> dict[str, float]:
    torch.manual_seed(seed)
    with torch.no_grad():
        found = model.losses(FEATURES, SEGMENTS, CAPTIONS, duration_s=100)
    return {name: float(loss) for name, loss in found.items()}


def test_dropout_is_drawn_in_training_alone_and_for_captions_alone() -> None:
    model = network(0.5)
    first, again, other = (losses(model, seed) for seed in (1, 1, 2))
    assert first == again
    assert {name for name, loss in first.items() if loss != other[name]} == {"caption"}
    model.eval()
    whole = losses(network(0.0), 1)
    assert losses(model, 1) == losses(model, 2) == pytest.approx(whole)


def test_what_is_dropped_is_all_that_words_are_said_from() -> None:
    """Of nothing each word is as likely, the end of a caption too; the weight is 2 in each of two layers."""
    assert losses(network(1.0), 1)["caption"] == pytest.approx(2 * 2 * log(WORDS + 1))
    assert losses(network(0.0), 1)["caption"] != pytest.approx(2 * 2 * log(WORDS + 1), rel=1e-4)
