from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepline.benchmarks.oepp.windows import ROWS, observation_rows, windows
from stepline.datasets.oepp import EventVideo, Step, load
from tests.benchmarks.oepp.synthetic import write_releases


def step(start_s: float, end_s: float, action: str = "a") -> Step:
    return Step(action=action, start_s=start_s, end_s=end_s)


def video(*actions: str) -> EventVideo:
    return EventVideo(
        id="COIN_a",
        source="COIN",
        vid="a",
        event="MakeTea",
        source_event="1",
        domain="Drink",
        steps=tuple(step(10 * place, 10 * place + 5, action) for place, action in enumerate(actions)),
    )


def test_windows_take_every_place() -> None:
    found = windows([video("a", "b", "c", "d"), video("x", "y", "z")], 3, "drop")
    assert [(each.index, each.actions) for each in found] == [
        (0, ("a", "b", "c")),
        (1, ("b", "c", "d")),
        (0, ("x", "y", "z")),
    ]
    assert (found[1].start.action, found[1].end.action) == ("b", "d")
    assert not any(each.padded for each in found)


def test_a_short_video_repeats_its_first_action_in_front_or_is_left_out() -> None:
    [found] = windows([video("a", "b")], 4, "repeat_first")
    assert found.actions == ("a", "a", "a", "b")
    assert (found.start.action, found.end.action, found.padded, found.index) == ("a", "b", True, 0)
    assert windows([video("a", "b")], 4, "drop") == []


def test_without_a_horizon_each_video_is_one_window() -> None:
    for padding in ("repeat_first", "drop"):
        found = windows([video("a"), video("a", "b", "c")], None, padding)  # type: ignore[arg-type]
        assert [each.actions for each in found] == [("a",), ("a", "b", "c")]
        assert not any(each.padded for each in found)


def test_windows_of_the_synthetic_release_have_the_horizon_and_end_where_they_say() -> None:
    write_releases(Path())
    videos = {each.id: each for each in load("split1", "train")}
    for horizon in (3, 4):
        found = windows([*videos.values()], horizon, "repeat_first")
        assert any(each.padded for each in found)
        assert not all(each.padded for each in found)
        for each in found:
            steps = videos[each.video].steps
            assert len(each.actions) == horizon
            assert each.start == steps[each.index]
            assert each.end == (steps[-1] if each.padded else steps[each.index + horizon - 1])


def test_released_rows_leave_the_steps() -> None:
    assert observation_rows(step(5, 6), step(9, 9.5), 40, "released") == (5, 6, 7, 7, 8, 9)
    assert observation_rows(step(0, 1), step(0, 1), 40, "released") == (0, 1, 2, -1, 0, 1)
    assert observation_rows(step(9.9, 12), step(9.9, 30), 10, "released") == (9, -1, -1, 7, 8, 9)
    assert observation_rows(step(50, 60), step(50, 60), 2, "released") == (-1, -1, -1, -1, 0, 1)


def test_rows_within_stay_in_the_steps() -> None:
    assert observation_rows(step(5, 9), step(20.5, 26.5), 40, "within") == (5, 6, 7, 24, 25, 26)
    assert observation_rows(step(5, 6), step(8, 10), 40, "within") == (5, 5, 5, 8, 8, 9)
    assert observation_rows(step(5, 5), step(7.2, 7.4), 40, "within") == (5, 5, 5, 7, 7, 7)
    assert observation_rows(step(0, 9), step(8, 30), 10, "within") == (0, 1, 2, 8, 8, 9)
    assert observation_rows(step(9.5, 12), step(9, 12), 10, "within") == (9, 9, 9, 9, 9, 9)


@pytest.mark.parametrize("steps", [(step(10, 12), step(1, 2)), (step(1, 2), step(10.5, 12))])
def test_a_step_that_no_row_shows_is_refused(steps: tuple[Step, Step]) -> None:
    with pytest.raises(ValueError, match=r"'a' begins at 10\S* s, after the last of 10 rows"):
        observation_rows(*steps, 10, "within")


segments = st.tuples(st.floats(0, 30), st.floats(0, 10)).map(lambda both: step(both[0], both[0] + both[1]))


@given(segments, segments, st.integers(31, 45))
def test_rows_within_show_seconds_of_their_step_in_order(start: Step, end: Step, n_rows: int) -> None:
    rows = observation_rows(start, end, n_rows, "within")
    for seen, each in ((rows[:ROWS], start), (rows[ROWS:], end)):
        assert list(seen) == sorted(seen)
        assert all(0 <= row < n_rows and each.start_s < row + 1 and row <= each.end_s for row in seen)
    assert rows[0] == int(start.start_s)


@given(segments, segments, st.integers(0, 45))
def test_released_rows_are_rows_or_zeros(start: Step, end: Step, n_rows: int) -> None:
    rows = observation_rows(start, end, n_rows, "released")
    assert len(rows) == 2 * ROWS
    assert all(row == -1 or 0 <= row < n_rows for row in rows)
