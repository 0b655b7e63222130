from math import log
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from stepline.models.pdvc import Pdvc  # noqa: E402
from stepline.models.pdvc_config import PdvcConfig  # noqa: E402

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


def losses(model: Any, seed: int) -> list[dict[str, float]]:
    torch.manual_seed(seed)
    with torch.no_grad():
        found = model.losses(FEATURES[None], [SEGMENTS], [CAPTIONS], durations_s=torch.tensor([100.0]))
    return [{name: float(loss) for name, loss in layer.items()} for layer in found]


def test_dropout_is_drawn_in_training_alone_and_for_captions_alone() -> None:
    model = network(0.5)
    first, again, other = (losses(model, seed) for seed in (1, 1, 2))
    assert first == again
    for one, two in zip(first, other, strict=True):
        assert {name for name, loss in one.items() if loss != two[name]} == {"caption"}
    model.eval()
    whole = losses(network(0.0), 1)
    assert losses(model, 1) == losses(model, 2)
    assert losses(model, 1) == [pytest.approx(layer) for layer in whole]


def test_what_is_dropped_is_all_that_words_are_said_from() -> None:
    """Of nothing each word is as likely, the end of a caption too."""
    for dropped, kept in zip(losses(network(1.0), 1), losses(network(0.0), 1), strict=True):
        assert dropped["caption"] == pytest.approx(log(WORDS + 1))
        assert kept["caption"] != pytest.approx(log(WORDS + 1), rel=1e-4)
