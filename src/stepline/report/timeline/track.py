"""Labelled spans of a video under one name."""

from collections.abc import Sequence
from dataclasses import dataclass

from stepline.benchmark.timed import Timed


@dataclass(frozen=True, kw_only=True)
class Track:
    """Spans in the order of their starts. note: why there are none. rule: what an error is. predicted: not true."""

    name: str
    spans: Sequence[Timed] = ()
    note: str = ""
    rule: str = ""
    predicted: bool = False
