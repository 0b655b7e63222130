"""The values of each query, moment, video and step (Sec. 4.3), as the released evaluator computes them, and ours."""

from collections.abc import Mapping, Sequence

from stepline.benchmark import Values
from stepline.benchmarks.hirest.inputs import HirestInputs
from stepline.benchmarks.hirest.kinds import Found


def values(inputs: HirestInputs, made: Sequence[Found]) -> Mapping[str, Values]:
    """Return each metric of one seed's predictions. A query or video that is not there is left out, and counted."""
    raise NotImplementedError
