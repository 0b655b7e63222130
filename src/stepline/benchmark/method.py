"""Methods and their predictions."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from stepline.needs import Need


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """What a method says of one video, or of a part of it, with one seed; a subclass adds what it says.

    Its fields make the columns of a Parquet file, see ``stepline.runs.predictions``.
    """

    seed: int
    split: str
    video: str


InputsT = TypeVar("InputsT", contravariant=True)
PredictionT = TypeVar("PredictionT", bound=Prediction, covariant=True)


class Method(Generic[InputsT, PredictionT]):
    """How predictions are made. Made anew for each fit and each prediction.

    selection: how settings were chosen, in words; read after all predictions are made.
    """

    selection = ""

    def fit(self, inputs: InputsT, seed: int, path: Path) -> None:
        """Fit on train, choose on val, and write the checkpoint of one seed to ``path``.

        A fit that was killed goes on where it stopped.
        """
        raise NotImplementedError

    def predict(self, inputs: InputsT, fits: Sequence[Path]) -> Iterable[PredictionT]:
        """Yield the predictions. fits: one checkpoint per seed of the entry, in their order.

        Raises UnavailableError where what is needed turns out not to be there.
        """
        raise NotImplementedError


class UnavailableError(Exception):
    """What is needed turns out not to be there: no error, but a line of a table that says what it needs."""

    def __init__(self, *needs: Need) -> None:
        super().__init__(*needs)
        self.needs = needs
