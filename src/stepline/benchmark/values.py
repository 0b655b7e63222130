"""The result of scoring: a number for each sample, window, segment or query."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True)
class Values:
    """One metric of the predictions of one seed.

    videos: (N,) the video of each unit; equal and in the same order for every seed. units: what ``videos`` are, in the
    plural, if not videos; an interval is drawn over them. values: (N,) in percent or counts;
    NaN excludes a unit. weights: (N,), None for equal weights. counts: such as ``n_listed``, the number of videos that
    the release lists, ``n_samples``, and ``n_videos`` if it is not the number of included ``videos``. drawn: whether
    the values depend on the seed. draw_sd: if guesses score their expectation, the standard deviation that the mean
    would have if they were drawn. interval: whether units of different videos are independent, so that an interval over
    videos is meaningful. corpus: the value of all units together if it is not their mean, as for BLEU; it has no
    interval.
    """

    videos: Sequence[str]
    values: "NDArray[np.float64]"
    weights: "NDArray[np.float64] | None" = None
    counts: Mapping[str, int | None] = field(default_factory=dict)
    units: str = "videos"
    drawn: bool = True
    draw_sd: float | None = None
    interval: bool = True
    corpus: float | None = None
