"""The network and its decoding; that it is the released one is tested in ``parity``."""

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from stepline.models.actionformer import (  # noqa: E402
    ActionFormer,
    Found,
    Level,
    Pyramid,
    Said,
    chosen,
    decoded,
    points,
    sinusoids,
)
from stepline.models.actionformer_config import ActionFormerConfig, Decoding  # noqa: E402
from tests.models.actionformer import SIZES, TEXTS, network, texts  # noqa: E402

CONFIG = ActionFormerConfig(**SIZES)


def batch(*lengths: int, padded: int = 32) -> tuple[Any, Any]:
    draw = torch.Generator().manual_seed(1)
    there = torch.arange(padded) < torch.tensor(lengths)[:, None]
    return torch.randn(len(lengths), padded, SIZES["feature_dim"], generator=draw) * there[..., None], there


@pytest.mark.parametrize("fields", [{}, {"pyramid": "fpn"}, {"relative": True}, {"absolute": True}, {"window": -1}])
def test_what_is_said_of_a_video_does_not_depend_on_its_batch(fields: dict[str, Any]) -> None:
    model, (features, there) = network(**fields), batch(20, 32, 9)
    with torch.inference_mode():
        together = model(features, there)
        for number in range(3):
            alone = model(features[number : number + 1], there[number : number + 1])
            torch.testing.assert_close(alone.logits[0], together.logits[number])
            torch.testing.assert_close(alone.offsets[0], together.offsets[number])
    assert together.there[0].tolist() == [place < 20 for place in points(CONFIG, 32)[:, 0].tolist()]
    assert together.sizes == [32, 16, 8]
    assert (together.offsets >= 0).all()
    assert (together.offsets > 0).any()


def test_some_of_the_steps_can_be_asked_for() -> None:
    features, there = batch(20, 32)
    steps = torch.tensor([5, 0, 3])
    for model, vectors in ((network(), None), (network(sizes=TEXTS), torch.from_numpy(texts()))):
        with torch.inference_mode():
            every, some = model(features, there, vectors), model(features, there, vectors, steps)
        torch.testing.assert_close(some.logits, every.logits[..., steps])
        torch.testing.assert_close(some.offsets, every.offsets)


def test_texts_are_steps_in_any_number_and_order() -> None:
    model, (features, there) = network(sizes=TEXTS), batch(20)
    vectors = torch.from_numpy(texts(11))
    with torch.inference_mode():
        said = model(features, there, vectors)
        again = model(features, there, vectors[[7, 2]])
    assert said.logits.shape == (1, 56, 11)
    torch.testing.assert_close(again.logits, said.logits[..., [7, 2]])
    assert said.logits.std(dim=2).max() > 0.01
    with pytest.raises(ValueError, match="needs the vectors of the steps"):
        model(features, there)


@pytest.mark.parametrize("sizes", [SIZES, TEXTS])
def test_points_begin_near_the_prior(sizes: dict[str, Any]) -> None:
    torch.manual_seed(0)
    model, (features, there) = ActionFormer(ActionFormerConfig(**sizes, prior=0.02)), batch(32)
    vectors = torch.from_numpy(texts()) if sizes is TEXTS else None
    with torch.inference_mode():
        score = model(features, there, vectors).logits.sigmoid()
    assert score.median() == pytest.approx(0.02, rel=0.5)


def test_without_drop_path_channels_have_no_scales() -> None:
    names = {name.rpartition(".")[0] for name in network().state_dict()} - {
        name.rpartition(".")[0] for name in network(droppath=0.0).state_dict()
    }
    assert names == {f"blocks.{number}.{part}" for number in range(3) for part in ("attended", "fed")}


def test_the_first_position_has_sines_of_0() -> None:
    assert sinusoids(3, 4)[0, :, 0].tolist() == [0, 0.5, 0, 0.5]


def test_a_point_is_added_to_the_two_finer_ones_that_it_covers() -> None:
    config = ActionFormerConfig(**SIZES, pyramid="fpn")
    torch.manual_seed(0)
    pyramid = Pyramid(config)
    levels = [Level(torch.randn(1, 8, n), torch.ones(1, 1, n)) for n in (16, 8, 4)]
    with torch.no_grad():
        before = pyramid(levels)[0].rows
        levels[1].rows[:, :, 3] += torch.randn(8)
        changed = (pyramid(levels)[0].rows != before).any(dim=1)[0]
    assert changed.nonzero()[:, 0].tolist() == [5, 6, 7, 8], "and to those beside them, by a kernel of three"


def said_of(scores: list[list[float]], offsets: list[list[float]], there: list[bool], sizes: list[int]) -> Said:
    return Said(torch.tensor([scores]).logit(), torch.tensor([offsets]), torch.tensor([there]), sizes)


def test_equal_scores_are_in_the_order_of_points_then_steps() -> None:
    config = ActionFormerConfig(**SIZES)
    n = 56
    said = said_of([[0.5] * 3] * n, [[1.0, 1.0]] * n, [True] * n, [32, 16, 8])
    found = decoded(said, config, Decoding(most_points=4))
    assert found.steps.tolist() == [0, 1, 2, 0] * 3
    assert found.segments[:, 0].tolist() == [-1, -1, -1, 0, -2, -2, -2, 0, -4, -4, -4, 0]


def test_segments_of_a_twentieth_of_a_row_are_dropped() -> None:
    offsets = [[0.02, 0.02], [0.03, 0.03], *[[0.0, 0.0]] * 54]
    said = said_of([[0.5]] * 56, offsets, [True] * 56, [32, 16, 8])
    found = decoded(said, ActionFormerConfig(**SIZES), Decoding())
    assert found.segments.tolist() == [pytest.approx([0.97, 1.03])]


def test_a_segment_becomes_the_mean_of_all_that_overlap_it() -> None:
    segments = np.array([[0, 10], [0, 8], [20, 30]], np.float32)
    found = Found(segments, np.array([0.75, 0.5, 0.25], np.float32), np.array([0, 1, 0]))
    made = chosen(found, Decoding(nms="hard", per_step=False, iou=0.5, voting=0.5))
    weights = 0.75 * 1, 0.5 * 0.8
    assert made.steps.tolist() == [0, 0]
    assert made.segments[0] == pytest.approx([0, (10 * weights[0] + 8 * weights[1]) / sum(weights)])
    assert made.segments[1].tolist() == [20, 30]
