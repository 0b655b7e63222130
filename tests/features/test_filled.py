"""Rows of damaged videos and spans, filled: where they begin and end, and from which row each is."""

from math import inf

import numpy as np

from stepline.features.filled import filled
from stepline.features.store import Block


def block(t0_s: float, length: int, hop_s: float) -> Block:
    """Return a block of some rows, of which the first is at ``t0_s``."""
    times = {"t0_s": t0_s, "hop_s": hop_s, "start_s": 0.0, "end_s": inf}
    return Block(video="a", offset=0, length=length, sha256="s", source_sha256="f", **times)


def test_each_span_has_its_own_rows_from_its_start_to_its_last_row() -> None:
    blocks = [block(1.0, 1, 1.0), block(4.0, 1, 1.0), block(7.0, 2, 1.0)]
    made, rows = filled(blocks, np.array([[1], [4], [7], [8]]), [[0.0, 4.0], [4.0, 6.0], [6.5, 12.0]])
    assert [(each.t0_s, each.offset, each.length, each.start_s, each.end_s) for each in made] == [
        (0.0, 0, 2, 0.0, 4.0),
        (4.0, 2, 1, 4.0, 6.0),
        (7.0, 3, 2, 6.5, 12.0),
    ]
    assert rows[:, 0].tolist() == [1, 1, 4, 7, 8]


def test_a_span_that_starts_at_a_row_but_for_rounding_has_that_row() -> None:
    made, rows = filled([block(0.3, 3, 0.1)], np.array([[3], [4], [5]]), [[3 * 0.1, 1.0]])
    assert (len(made), rows[:, 0].tolist()) == (1, [3, 4, 5])
