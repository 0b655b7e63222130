"""Shots in reports."""

from pathlib import Path

from stepline.io import read_table

SHOTS_SHOWN = 24


def read_shots(path: Path) -> list[tuple[float, float]]:
    """Return start and end of each shot in seconds; [] if the file does not exist."""
    if not path.exists():
        return []
    table = read_table(path, columns=["start_s", "end_s"])
    return list(zip(table["start_s"].to_pylist(), table["end_s"].to_pylist(), strict=True))


def spread(n: int, most: int) -> list[int]:
    """Return at most ``most`` of the numbers 0..n-1, evenly spaced."""
    return list(range(n)) if n <= most else [round(i * (n - 1) / (most - 1)) for i in range(most)]
