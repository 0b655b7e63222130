"""The vocabulary of tables: metrics, inputs that a method may see, and options with their published values."""

from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A column of a table.

    title: its heading. definition: a sentence from which its values can be computed by hand, for `stepline explain`.
    unit: "count" for whole numbers, "" for other numbers that are not percentages; their unit is in the title. Only
    percentages are drawn and determine the best method. lower_is_better: its direction. options: the keys of
    ``metrics`` in the configuration that affect it, without those of intervals.
    """

    title: str
    definition: str = ""
    unit: Literal["%", "count", ""] = "%"
    lower_is_better: bool = False
    options: tuple[str, ...] = ()


@dataclass(frozen=True)
class Sees:
    """An input that a method may see: its keyword in the column ``inputs``, and its description.

    oracle: no real system would have it. split: the split of the release, if it is one. fields: the fields of evaluated
    units that belong to it; reading one is an error for a method that does not see it.
    """

    word: str
    text: str
    oracle: bool = False
    split: str = ""
    fields: tuple[str, ...] = ()


VIDEO = Sees("video", "the video")
DURATION = Sees("duration", "the video's duration")
TRAIN = Sees("train", "the training recordings", split="train")
VAL = Sees("val", "the validation recordings", split="val")
SPEECH = Sees("speech", "the transcript")


@dataclass(frozen=True)
class Option:
    """The value of a named option, and the published value; numbers with another value are not comparable.

    published: the default if the paper does not state it; ``said`` is then False.
    """

    value: Any
    published: Any
    said: bool = True

    @property
    def differs(self) -> bool:
        """Whether the value differs from the published one, or from the default."""
        return bool(self.value != self.published)
