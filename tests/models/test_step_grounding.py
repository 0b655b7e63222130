import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from stepline.models.blobs import BlobConfig, blobs  # noqa: E402
from stepline.models.grounding import GroundedVideo  # noqa: E402
from stepline.models.step_grounding import (  # noqa: E402
    Articles,
    Sentences,
    StepGrounding,
    ground,
    per_second,
)
from stepline.models.step_grounding_config import StepGroundingConfig  # noqa: E402
from stepline.models.tan import TEMPERATURE  # noqa: E402

CONFIG = StepGroundingConfig(feature_dim=6, text_dim=5, width=16, heads=2, joint_layers=2, positions=24)
RNG = np.random.default_rng(0)
ONE = [RNG.standard_normal((1, 5)).astype(np.float32) for _ in range(6)]
MORE = [RNG.standard_normal((n, 5)).astype(np.float32) for n in (2, 1, 4, 1, 3, 28)]


@pytest.fixture
def model() -> StepGrounding:
    torch.manual_seed(0)
    made = StepGrounding(CONFIG).eval()
    with torch.no_grad():
        for each in made.parameters():
            each.add_(0.2 * torch.randn(each.shape))
    return made


def video(rows: int, *candidates: int, duration_s: float | None = None) -> GroundedVideo:
    return GroundedVideo(
        rows=np.random.default_rng(rows).standard_normal((rows, 6)).astype(np.float32),
        duration_s=rows if duration_s is None else duration_s,
        candidates=np.array(candidates),
        segments_s=np.zeros((0, 2)),
        steps=np.zeros(0, np.int64),
    )


def beside(videos: list[GroundedVideo], sentences: Any, start: int = 0) -> Articles:
    rows, candidates = [each.rows for each in videos], [each.candidates for each in videos]
    return Sentences(sentences).beside(rows, candidates, torch.full((len(videos),), start))


def test_sentences_stand_beside_the_rows_in_the_order_of_the_article() -> None:
    found = beside([video(4, 2, 0), video(3, 5)], MORE, start=1)
    assert found.features.shape == (2, 4, 6)
    assert found.there.tolist() == [[True] * 4, [True] * 3 + [False]]
    assert found.start.tolist() == [1, 1]
    assert found.step.tolist() == [[0] * 4 + [1] * 2 + [-1] * 22, [0] * 28]
    np.testing.assert_array_equal(found.texts[0], np.concatenate([MORE[2], MORE[0], np.zeros((22, 5))]))
    np.testing.assert_array_equal(found.texts[1], MORE[5])
    assert found.counted.shape == (2, 4, 2)
    assert found.counted.sum().item() == 4 * 2 + 3 * 1
    with pytest.raises(ValueError, match="^step 1 has no sentence$"):
        Sentences([ONE[0], ONE[1][:0]])


def test_the_logits_are_cosines_of_outputs_over_the_temperature(model: StepGrounding) -> None:
    given = beside([video(7, 3, 1, 4)], ONE)
    places = model.temporal_pos_embed[None, :7]
    rows = model.video_rows(given.features, places)
    texts = model.text_rows(given.texts) + model.ln_position_init(model.text_temporal_pos_embed[:3])
    video_out, text_out = model.joint(rows, texts, None, None)
    expected = torch.nn.functional.cosine_similarity(video_out[-1][0][:, None], text_out[-1][0], dim=2)
    torch.testing.assert_close(model(given)[0], expected / 0.07)


@pytest.mark.parametrize("sentences", [ONE, MORE])
def test_a_batch_says_of_each_video_what_it_says_of_that_alone(model: StepGrounding, sentences: Any) -> None:
    videos = [video(9, 0, 1, 2), video(5, 4), video(12, 5, 3)]
    together = model(beside(videos, sentences))
    assert together.shape == (3, 12, 3)
    for number, each in enumerate(videos):
        alone = model(beside([each], sentences))[0]
        torch.testing.assert_close(together[number, : alone.shape[0], : alone.shape[1]], alone)


def test_a_step_s_place_in_the_article_matters(model: StepGrounding) -> None:
    """Without positions the logits of a step would be the same wherever it stands."""
    one, other = (model(beside([video(8, *order)], ONE))[0] for order in ((0, 1, 2), (2, 1, 0)))
    assert not torch.allclose(one, other.flip(1), atol=0.05)
    torch.nn.init.zeros_(model.text_temporal_pos_embed)
    one, other = (model(beside([video(8, *order)], ONE))[0] for order in ((0, 1, 2), (2, 1, 0)))
    torch.testing.assert_close(one, other.flip(1), atol=1e-4, rtol=1e-4)


def test_sentences_of_a_step_share_a_position_and_its_outputs_maximum(model: StepGrounding) -> None:
    given = beside([video(8, 2, 0)], MORE)
    swapped = given._replace(texts=given.texts[:, [3, 1, 0, 2, 5, 4]])
    torch.testing.assert_close(model(given), model(swapped))
    across = given._replace(texts=given.texts[:, [4, 1, 2, 3, 0, 5]])
    assert not torch.allclose(model(given), model(across), atol=0.05)
    table = model.text_temporal_pos_embed[given.step[0]]
    rows = model.video_rows(given.features, model.temporal_pos_embed[None, :8])
    video_out, out = model.joint(rows, model.text_rows(given.texts) + model.ln_position_init(table), None, None)
    pooled = torch.stack((out[-1][0, :4].amax(0), out[-1][0, 4:].amax(0)))
    expected = torch.nn.functional.cosine_similarity(video_out[-1][0][:, None], pooled, dim=2) / TEMPERATURE
    torch.testing.assert_close(model(given)[0], expected)


def test_a_step_said_twice_is_as_said_once_in_the_pool(model: StepGrounding) -> None:
    loss = model(beside([video(6, 0, 1)], [np.repeat(ONE[0], 3, axis=0), ONE[1]])).sum()
    loss.backward()
    assert all(each.grad is None or each.grad.isfinite().all() for each in model.parameters())


def test_the_first_row_has_the_start_s_position_and_more_rows_than_positions_share_them_all(
    model: StepGrounding,
) -> None:
    short, long = video(6, 0, 1), video(30, 0, 1)
    moved = model(beside([short], ONE, start=5))
    assert not torch.allclose(moved, model(beside([short], ONE)), atol=0.01)
    model.temporal_pos_embed.data = model.temporal_pos_embed.data.roll(-5, 0)
    torch.testing.assert_close(model(beside([short], ONE)), moved)
    table = torch.nn.functional.interpolate(model.temporal_pos_embed.T[None], 30, mode="linear")[0].T
    wide = StepGrounding(replace(CONFIG, positions=30)).eval()
    wide.load_state_dict(
        model.state_dict()
        | {
            "temporal_pos_embed": table,
            "text_temporal_pos_embed": torch.cat((model.text_temporal_pos_embed, table[:6])),
        }
    )
    torch.testing.assert_close(wide(beside([long], ONE)), model(beside([long], ONE)))


def test_an_article_of_more_steps_than_positions_is_one_line(model: StepGrounding) -> None:
    with pytest.raises(ValueError, match="^an article of 25 steps has more than the 24 positions$"):
        model(beside([video(3, *range(25))], [ONE[0]] * 25))


def test_the_loss_by_hand(model: StepGrounding, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two seconds and three steps, of which the last is never shown; a second video of one second and one step."""
    logits = torch.tensor([[[1.0, -2, 0], [0.5, 3, -1]], [[2.0, 9, 9], [9, 9, 9]]])
    shown = torch.tensor([[[1, 0, 0], [1, 1, 0]], [[0, 0, 0], [0, 0, 0]]]).bool()
    monkeypatch.setattr(StepGrounding, "forward", lambda *_: logits)
    given = beside([video(2, 0, 1, 2), video(1, 3)], ONE)
    softplus = [math.log1p(math.exp(x)) for x in (-1, -2, 0, -0.5, -3, -1)]
    assert float(model.loss(given, shown)) == pytest.approx((sum(softplus) + math.log1p(math.exp(2))) / 7)
    first = beside([video(2, 0, 1, 2)], ONE)
    monkeypatch.setattr(StepGrounding, "forward", lambda *_: logits[:1])
    assert float(model.loss(first, shown[:1])) == pytest.approx(sum(softplus) / 6)


@pytest.mark.parametrize("steps", [1, 35])
def test_articles_of_one_to_35_steps_have_a_confidence_of_each_second(steps: int) -> None:
    torch.manual_seed(0)
    model = StepGrounding(replace(CONFIG, positions=40)).eval()
    sentences = [RNG.standard_normal((1, 5)).astype(np.float16) for _ in range(50)]
    asked = video(33, *RNG.permutation(50)[:steps].tolist())
    found = per_second(model, asked, sentences)
    assert found.shape == (33, steps)
    assert ((found >= 0) & (found <= 1)).all()
    given = beside([asked], sentences)
    np.testing.assert_allclose(found, model(given)[0].sigmoid().detach().numpy(), atol=1e-5)


def test_segments_are_the_blobs_of_the_confidences_with_the_steps_numbers(model: StepGrounding) -> None:
    asked = video(20, 4, 2, duration_s=18.3)
    config = BlobConfig(least=0.001)
    expected, found = blobs(per_second(model, asked, ONE), config), ground(model, asked, ONE, config)
    inside = expected.start_s < 18.3
    assert found.step.tolist() == np.array([4, 2])[expected.step[inside]].tolist()
    assert found.score.tolist() == expected.score[inside].tolist()
    assert found.end_s.tolist() == np.minimum(expected.end_s, 18.3)[inside].tolist()
    assert set(found.step.tolist()) == {2, 4}
    assert (found.end_s > found.start_s).all()
