"""Gaps: stretches of a video's time of which no picture can be had."""

from collections.abc import Sequence

Gap = tuple[float, float, str]
"""start_s, end_s and why, in one line. Those of a video are ascending and apart."""
SAID = 5
"""Of more gaps the first are named."""


def read_gaps(given: Sequence[Sequence[float | str]]) -> list[Gap]:
    """Return gaps as JSON has them."""
    return [(float(start_s), float(end_s), str(why)) for start_s, end_s, why in given]


def said(gaps: Sequence[Gap]) -> str:
    """Return in a line which times are absent and why, such as ``2.000 to 3.400 s: damaged``; "" of none."""
    named = [f"{start_s:.3f} to {end_s:.3f} s: {why}" for start_s, end_s, why in gaps[:SAID]]
    return "; ".join([*named, *([f"and {len(gaps) - SAID} more"] if len(gaps) > SAID else [])])


def absent_s(gaps: Sequence[Gap]) -> float:
    """Return how many seconds are absent."""
    return sum(end_s - start_s for start_s, end_s, _ in gaps)
