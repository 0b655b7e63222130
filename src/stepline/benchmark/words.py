"""The words of tables: metrics, what a method may see, and options beside the published ones."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A column of a table.

    title: at its head. count: a whole number; any other is a percentage. lower_is_better: its direction. options: the
    keys of ``metrics`` in the configuration that decide it, besides those of the intervals.
    """

    title: str
    count: bool = False
    lower_is_better: bool = False
    options: tuple[str, ...] = ()


@dataclass(frozen=True)
class Sees:
    """What a method may see: a word, as it stands in the column ``inputs``, and its text.

    oracle: no system would have it. split: of the release, where it is one.
    """

    word: str
    text: str
    oracle: bool = False
    split: str = ""


VIDEO = Sees("video", "the video")
DURATION = Sees("duration", "the video's duration")
TRAIN = Sees("train", "the training recordings", split="train")
VAL = Sees("val", "the validation recordings", split="val")


@dataclass(frozen=True)
class Option:
    """The value of a named option, and the published one; a number by another value cannot be compared.

    published: the default where the paper says nothing; then ``said`` is False.
    """

    value: Any
    published: Any
    said: bool = True

    @property
    def differs(self) -> bool:
        """Whether the value is another than the published one, or than the default."""
        return bool(self.value != self.published)
