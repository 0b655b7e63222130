"""The values of captions, of each step."""

from collections.abc import Mapping, Sequence

from stepline.benchmark import Values
from stepline.benchmarks.hirest.inputs import HirestInputs
from stepline.datasets.hirest import Pair


def values(
    inputs: HirestInputs, split: str, pairs: Mapping[str, Pair], sentences: Mapping[str, Sequence[str]]
) -> dict[str, Values]:
    """Return each metric of the captions."""
    raise NotImplementedError
