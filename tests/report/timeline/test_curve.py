from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from stepline.errors import ConfigError
from stepline.report.timeline import curve
from stepline.report.timeline.curve import Curve, curves
from stepline.search.corpus import Corpus


def of(*names: str) -> Any:
    return SimpleNamespace(name="mine", features=SimpleNamespace(computed=names))


@pytest.fixture
def searched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Features of two videos by the network ``seen``; nothing is said."""
    rows = np.array([[1, 0], [0, 1], [1, 1], [3, 0]], np.float32)
    spans_s = np.array([[0, 1], [1, 2], [0, 1], [1, 2]], float)
    corpus = Corpus(["a", "b"], [rows], [2, 2], spans_s, "cosine", 0)
    source = SimpleNamespace(
        what="what is seen", corpus=corpus, encoder=SimpleNamespace(query=lambda text: np.array([0, 1], np.float32))
    )
    monkeypatch.setattr(curve, "source", lambda pipeline, name, transcripts: source)
    monkeypatch.setattr(curve, "tower", lambda pipeline, name: name == "seen")
    monkeypatch.setattr(curve, "sentence_encoder", lambda: None)
    monkeypatch.setattr(curve, "Transcripts", lambda pipeline: SimpleNamespace(videos=frozenset()))


def test_each_network_with_a_text_tower_has_a_curve(searched: None) -> None:
    assert curves(of("histogram", "seen"), "b", "pour") == [Curve("what is seen", [0.0, 1.0], [0.7071, 0.0])]
    assert curves(of("seen"), "c", "pour") == []


def test_an_impossible_text_is_refused(searched: None) -> None:
    with pytest.raises(ConfigError, match="the search text must have 1 to 500"):
        curves(of("seen"), "a", " ")
