"""The commands that bring what is missing."""

import pytest

from stepline.needs import Need
from stepline.pipeline import how_to_fill


@pytest.mark.parametrize(
    ("need", "command"),
    [
        (Need("weights", "mpnet"), "stepline fetch weights/mpnet"),
        (Need("weights", "whisper/tiny"), "stepline fetch weights/whisper/tiny"),
        (Need("key", "X"), "export X=..."),
        (Need("videos", "demo"), "stepline fetch demo/videos"),
        (Need("split", "val"), ""),
    ],
)
def test_a_need_has_its_command(need: Need, command: str) -> None:
    assert how_to_fill(need) == command
