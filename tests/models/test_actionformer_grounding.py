"""What is said of a video, in seconds."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from stepline.models.actionformer import Said, chosen, decoded  # noqa: E402
from stepline.models.actionformer_config import Decoding  # noqa: E402
from stepline.models.actionformer_grounding import ground, per_second  # noqa: E402
from tests.models.actionformer import TEXTS, network, texts, videos  # noqa: E402

SETTINGS = Decoding(most=30)


@pytest.mark.parametrize("length", [20, 32, 45])
def test_segments_are_in_seconds_within_the_video_the_best_first(length: int) -> None:
    model, (video,) = network(), videos(length)
    found = ground(model, video, settings=SETTINGS)
    assert len(found.score) == 30
    assert (np.diff(found.score) <= 0).all()
    assert ((found.start_s >= 0) & (found.start_s <= found.end_s) & (found.end_s <= video.duration_s)).all()
    padded = np.zeros((model.config.padded(length), 6), np.float32)
    padded[:length] = video.rows
    with torch.inference_mode():
        said = model(torch.from_numpy(padded)[None], torch.arange(len(padded))[None] < length)
    best = chosen(decoded(said, model.config, SETTINGS), SETTINGS)
    assert found.start_s == pytest.approx(np.clip(best.segments[:, 0] + 0.5, 0, video.duration_s))
    assert found.step.tolist() == best.steps.tolist()
    every = ground(model, video, settings=replace(SETTINGS, nms="none"))
    assert (np.diff(every.score) <= 0).all(), "also without suppression, which sorts"


@pytest.mark.parametrize("with_texts", [False, True])
def test_the_article_s_steps_alone_are_found_by_their_numbers(with_texts: bool) -> None:
    (video,) = videos(30)
    vectors = texts() if with_texts else None
    sizes = {"sizes": TEXTS} if with_texts else {}
    every: Any = ground(network(**sizes), video, vectors, settings=replace(SETTINGS, most=10**6))
    found = ground(network(candidates="article", **sizes), video, vectors, settings=replace(SETTINGS, most=10**6))
    of = np.isin(every.step, video.candidates)
    assert 0 < of.sum() < len(of)
    assert found.step.tolist() == every.step[of].tolist()
    assert found.score == pytest.approx(every.score[of], rel=1e-5)


def test_a_second_has_the_best_of_the_points_that_stand_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    model, (video,) = network(), videos(21)
    scores = torch.full((1, 56, 3), 0.01)
    scores[0, 4, 0] = 0.5
    scores[0, 32 + 3, 1] = 0.6
    scores[0, 48 + 5, 2] = 0.7
    scores[0, 7, 2] = 0.2
    made = Said(scores.logit(), torch.ones(1, 56, 2), torch.ones(1, 56, dtype=torch.bool), [32, 16, 8])
    monkeypatch.setattr(type(model), "forward", lambda *_: made)
    found = per_second(model, video)
    assert found.shape == (21, 3)
    assert np.flatnonzero(found[:, 0] > 0.1).tolist() == [4]
    assert np.flatnonzero(found[:, 1] > 0.1).tolist() == [6, 7]
    assert np.flatnonzero(found[:, 2] > 0.5).tolist() == [20]
    assert found[7, 2] == pytest.approx(0.2)


def test_seconds_have_the_candidates_in_their_order() -> None:
    (video,) = videos(40)
    turned = replace(video, candidates=video.candidates[::-1].copy())
    for model, vectors in ((network(), None), (network(sizes=TEXTS), texts())):
        found = per_second(model, video, vectors)
        assert found.shape == (40, 3)
        assert ((found > 0) & (found < 1)).all()
        assert per_second(model, turned, vectors) == pytest.approx(found[:, ::-1])
