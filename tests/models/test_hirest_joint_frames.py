"""Seconds as frames, subtitles as rows, and what is learned of a video."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from stepline.models.hirest_joint_config import JointConfig  # noqa: E402
from stepline.models.hirest_joint_frames import (  # noqa: E402
    boundaries,
    frame_of,
    slot_frames,
    speech_rows,
)


@pytest.mark.parametrize(
    ("time_s", "frame"), [(0, 0), (0.2, 1), (61, 61), (61.5, 62), (63, 63), (63.1, 63), (900, 63), (-0.5, 0)]
)
def test_a_time_is_the_first_frame_not_before_it(time_s: float, frame: int) -> None:
    assert frame_of(time_s, 64) == frame


def test_subtitles_are_in_whole_seconds_and_the_later_in_the_file_wins() -> None:
    spans_s = [(1.9, 4.0), (6.2, 6.9), (3.0, 5.999), (2.0, 3.0), (9.0, 99.0), (50.0, 60.0)]
    assert speech_rows(spans_s, 11).tolist() == [-1, 0, 3, 2, 2, -1, -1, -1, -1, 4, 4]
    assert speech_rows([], 3).tolist() == [-1] * 3


def test_boundaries_are_distinct_times() -> None:
    """Two times may have one frame, and count as two."""
    assert boundaries([(4, 9), (9, 31), (31, 31), (31, 40)], 47) == [4, 9, 31, 40]
    assert boundaries([(4, 8.5), (8.5, 9)], 47) == [4, 9, 9]
    assert boundaries([(4, 50), (50, 60)], 47) == [4, 46, 46]


def slots(first: int, last: int, frames: int = 20, how: str = "first") -> list[int]:
    config = JointConfig(slots=frames, caption_frames=how)  # type: ignore[arg-type]
    found: list[int] = slot_frames(torch.tensor([[first, last]]), config)[0].tolist()
    return found


def test_slots_are_filled_as_released() -> None:
    """Frame j of n fills the slots from 20 j // n to before 20 (j + 1) // n."""
    for n in range(1, 21):
        expected = [7 + j for j in range(n) for _ in range(20 * j // n, 20 * (j + 1) // n)]
        assert slots(7, 7 + n - 1) == slots(7, 7 + n - 1, how="uniform") == expected
    assert slots(9, 40) == list(range(9, 29))
    assert slots(12, 9) == [9] * 20


def test_of_many_frames_even_ones_can_be_seen() -> None:
    for n in (21, 32, 57):
        expected = np.linspace(0, n - 1, 20).astype(int) + 5
        assert slots(5, 5 + n - 1, how="uniform") == expected.tolist()
    assert slots(5, 9, frames=1, how="uniform") == [5]
