"""Read-out, losses and matching on the released text vectors of OpenEvent's actions."""

import math
from pathlib import Path

import numpy as np
import pytest

from stepline.benchmarks.oepp.methods.matching import ranked
from stepline.datasets import oepp
from stepline.datasets.oepp import Features, Part
from stepline.fetch import fetch_release

torch = pytest.importorskip("torch")
DETERGENT = ("make the  detergent", "make the detergent")
ALIKE = {
    ("videoclip", "base"): [DETERGENT],
    ("s3d", "base"): [
        DETERGENT,
        ("take out the shell", "take off the shell"),
        ("remove the label", "remove label"),
    ],
}
"""Classes with one vector: S3D's text knows not every word."""


@pytest.fixture(autouse=True)
def _release(real_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPLINE_MIRROR", str(real_data))
    fetch_release(oepp.RELEASES, "split1")


def vectors(features: Features, part: Part) -> np.ndarray:
    found = oepp.text_features("split1", features)
    return np.array([found[action] for action in oepp.pool("split1", part)], dtype=np.float32)


@pytest.mark.parametrize("features", ["videoclip", "s3d"])
@pytest.mark.parametrize("part", ["base", "novel"])
def test_each_vector_is_read_as_its_own_action_and_equal_ones_as_the_first(features: Features, part: Part) -> None:
    from stepline.models.plan_loss import read_out

    text, pool = vectors(features, part), oepp.pool("split1", part)
    expected = np.arange(len(pool))
    for alike in ALIKE.get((features, part), ()):
        first, second = sorted(map(pool.index, alike))
        assert (text[first] == text[second]).all()
        expected[second] = first
    assert read_out(torch.from_numpy(text)[None], torch.from_numpy(text)).numpy()[0].tolist() == expected.tolist()
    assert ranked(text.astype(np.float64), text.astype(np.float64), cosine=True)[:, 0].tolist() == expected.tolist()


def test_vectors_are_not_unit_vectors_so_that_the_dot_product_ranks_otherwise() -> None:
    text = vectors("videoclip", "base").astype(np.float64)
    lengths = np.linalg.norm(text, axis=1)
    assert 2.2 < lengths.min() < lengths.max() < 5.8
    assert (ranked(text, text, cosine=False)[:, 0] != ranked(text, text, cosine=True)[:, 0]).any()


def test_probabilities_in_place_of_logits_leave_the_cross_entropy_between_two_bounds() -> None:
    from stepline.models.plan_loss import plan_loss

    text = torch.from_numpy(vectors("videoclip", "base"))
    n, labels = len(text), torch.arange(len(text))[:, None]
    low, high = (math.log(math.e + n - 1) - part for part in (1, 0))
    assert (low, high) == pytest.approx((3.82, 4.82), abs=0.005)
    right = plan_loss(text[labels], text, labels, loss="ce").item()
    wrong = plan_loss(-text[labels], text, labels, loss="ce").item()
    assert low < right < wrong < high
    assert plan_loss(text[labels], text, labels, loss="mse").item() == 0
    assert plan_loss(text[labels], text, labels, loss="ce", ce_mode="plain").item() < 1
