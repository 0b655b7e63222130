"""Methods and their predictions."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from stepline.needs import Need


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """The prediction of a method for one video, or for a part of it, with one seed. Subclasses add fields.

    The fields are the columns of a Parquet file, see ``stepline.runs.predictions``.
    """

    seed: int
    split: str
    video: str


InputsT = TypeVar("InputsT", contravariant=True)
PredictionT = TypeVar("PredictionT", bound=Prediction, covariant=True)


class Method(Generic[InputsT, PredictionT]):
    """A prediction method. Each fit and each prediction job creates its own instance.

    selection: a description of how settings were chosen, read after all predictions.
    """

    selection = ""

    def fit(self, inputs: InputsT, seed: int, path: Path) -> None:
        """Fit on train, select on val, and write the checkpoint of one seed to ``path``.

        A killed fit resumes where it stopped.
        """
        raise NotImplementedError

    def predict(self, inputs: InputsT, fits: Sequence[Path]) -> Iterable[PredictionT]:
        """Yield the predictions. fits: one checkpoint per seed of the entry, in order.

        Raises UnavailableError if an input turns out to be unavailable.
        """
        raise NotImplementedError


class UnavailableError(Exception):
    """An input is unavailable. This is not a failure: the line of the table names what it needs."""

    def __init__(self, *needs: Need) -> None:
        super().__init__(*needs)
        self.needs = needs
