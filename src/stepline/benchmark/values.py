"""What scoring makes of predictions and truth: a number for each sample, window, segment or query."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True)
class Values:
    """One metric of one seed's predictions.

    videos: (N,) of the units; they are the same, in the same order, with every seed. values: (N,) in percent or counts;
    NaN leaves a unit out. weights: (N,), None where all count the same. counts: such as ``n_listed``, the videos that
    the release lists, ``n_samples``, and ``n_videos``, where it is not the number of ``videos`` that are not left out.
    drawn: whether the seed plays a part. draw_sd: where guesses count with their expectation, the standard deviation
    that the mean would have if they were drawn. interval: whether units of different videos are independent, so that an
    interval over videos means something. corpus: the value of all units together, where the metric has one that is not
    their mean, such as BLEU; it has no interval.
    """

    videos: Sequence[str]
    values: "NDArray[np.float64]"
    weights: "NDArray[np.float64] | None" = None
    counts: Mapping[str, int | None] = field(default_factory=dict)
    drawn: bool = True
    draw_sd: float | None = None
    interval: bool = True
    corpus: float | None = None
