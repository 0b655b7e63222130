import numpy as np
import pytest

from stepline.metrics.clip_score import clip_score

DRAWN = np.random.default_rng(0)
FRAMES = {"soup": DRAWN.standard_normal((10, 6)) * 3, "tent": DRAWN.standard_normal((4, 6)).astype(np.float16)}


def one(caption: np.ndarray, rows: np.ndarray, start_s: float, end_s: float) -> float:
    """The score of a step, written as a loop over frames."""
    if start_s >= len(rows) or end_s >= len(rows):
        return float("nan")
    cosines = []
    for at in np.linspace(start_s, min(end_s, len(rows)) - 1, 4):
        row = rows[int(at)].astype(float)
        cosines.append(float(caption @ row) / (np.linalg.norm(caption) * np.linalg.norm(row)))
    return float(np.mean(cosines))


def test_each_step_is_that_of_a_loop() -> None:
    steps = [(start, end) for start in range(12) for end in range(start, 12)] + [(0.6, 7.9)]
    videos = ["soup", "tent"] * (len(steps) // 2) + ["soup"]
    captions = DRAWN.standard_normal((len(steps), 6)) * 5
    expected = [one(c, FRAMES[v], *s) for c, v, s in zip(captions, videos, steps, strict=True)]
    found = clip_score(captions, FRAMES, videos, steps)
    assert found == pytest.approx(expected, nan_ok=True)
    assert 0 < np.isnan(found).sum() < len(steps)


def test_frames_are_four_from_the_start_to_the_second_before_the_end() -> None:
    rows = np.eye(10)
    found = [clip_score([row], {"v": rows}, ["v"], [(2, 9)])[0] for row in rows]
    assert np.flatnonzero(found).tolist() == [2, 4, 6, 8]
    assert found[2] == pytest.approx(0.25)


def test_it_is_neither_scaled_nor_cut_off() -> None:
    assert clip_score([[-2.0, 0.0]], {"v": [[3.0, 0.0]] * 3}, ["v"], [(0, 2)]).tolist() == [-1]


@pytest.mark.parametrize(("step", "left_out"), [((1, 3), False), ((1, 4), True), ((4, 4), True), ((5, 2), True)])
def test_a_step_behind_the_last_frame_is_nan(step: tuple[float, float], left_out: bool) -> None:
    assert np.isnan(clip_score([[1.0]], {"v": np.ones((4, 1))}, ["v"], [step])[0]) == left_out


def test_an_empty_step_from_0_has_the_last_frame_too() -> None:
    rows = np.eye(5)
    found = [clip_score([row], {"v": rows}, ["v"], [(0, 0)])[0] for row in rows]
    assert found == pytest.approx([0.75, 0, 0, 0, 0.25])


def test_no_frames_and_no_steps() -> None:
    assert np.isnan(clip_score([[1.0]], {"v": np.zeros((0, 1))}, ["v"], [(0, 1)])).all()
    assert clip_score(np.zeros((0, 3)), {}, [], np.zeros((0, 2))).shape == (0,)


def test_what_does_not_fit_together_is_an_error() -> None:
    with pytest.raises(ValueError, match="^1 captions, 2 videos and 1 steps$"):
        clip_score([[1.0]], FRAMES, ["soup", "tent"], [(0, 1)])
    with pytest.raises(KeyError):
        clip_score([[1.0]], {}, ["soup"], [(0, 1)])
