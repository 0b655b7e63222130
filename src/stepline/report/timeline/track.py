"""Named tracks of labelled spans in a video."""

from collections.abc import Sequence
from dataclasses import dataclass

from stepline.benchmark.timed import Timed


@dataclass(frozen=True, kw_only=True)
class Track:
    """Spans ordered by start. note: why there are none. rule: the definition of errors. predicted: not ground truth."""

    name: str
    spans: Sequence[Timed] = ()
    note: str = ""
    rule: str = ""
    predicted: bool = False
