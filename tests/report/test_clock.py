"""Times as readers of pages see them."""

from stepline.report.clock import clock


def test_hours_appear_from_one_hour_on() -> None:
    times_s = (0, 59.99, 3599.9, 3600, 36_061.5)
    assert [clock(time_s) for time_s in times_s] == ["0:00", "0:59", "59:59", "1:00:00", "10:01:01"]
