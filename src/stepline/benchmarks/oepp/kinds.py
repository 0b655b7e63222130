"""How plans are made."""

from dataclasses import dataclass
from functools import partial

from stepline.benchmark import Imported, Kind, Prediction
from stepline.benchmarks.oepp.metrics import COUNTED, SPLITS
from stepline.datasets import oepp

METHODS = f"{__package__}.methods"
HORIZON, ANY = {"horizon": int}, {"horizon": (int, None)}
"""T, the number of actions of a plan; without it, that of each video."""
SEEING = ("observations", "action_pool")
PARTS: dict[str, tuple[str, ...]] = dict.fromkeys(("total", *oepp.PARTS), ())
LOSS: dict[str, tuple[str, ...]] = dict.fromkeys(("both", "ce", "mse"), ())
IMAGES: dict[int, tuple[str, ...]] = dict.fromkeys((1, 3), ())


@dataclass(frozen=True, kw_only=True)
class Plan(Prediction):
    """The plan of one window with one seed.

    index: the place of the window's first action in its video. plan: places in the pool of its split, or NO_ACTION and
    GUESS of `stepline.metrics.plans`.
    """

    index: int
    plan: tuple[int, ...]


PLANNED = partial(Kind, splits=tuple(SPLITS))
TRAINED = partial(
    PLANNED, trains=True, sees=("observations", "train", "val", "action_pool"), environment="text", gpu=True
)
HEADS = TRAINED(method=Imported(f"{METHODS}.heads", "Heads"), options="heads", settings={**HORIZON, "loss": LOSS})
KINDS = {
    "statistics": Kind(method=None, settings={"part": PARTS}, metrics=COUNTED),
    "random": PLANNED(method=Imported(f"{METHODS}.random", "Random"), sees=("action_pool",), settings=ANY),
    "frequent": PLANNED(
        method=Imported(f"{METHODS}.frequent", "MostFrequent"),
        trains=True,
        sees=("train_annotation", "action_pool"),
        settings=ANY,
    ),
    "matching": PLANNED(
        method=Imported(f"{METHODS}.matching", "Matching"), sees=SEEING, settings=HORIZON, environment="text"
    ),
    "mlp": HEADS,
    "transformer": HEADS,
    "pdpp": TRAINED(method=Imported(f"{METHODS}.pdpp", "Pdpp"), options="pdpp", settings=HORIZON),
    "vlm": Kind(
        method=Imported(f"{METHODS}.vlm", "LanguageModel"),
        sees=SEEING,
        settings={**ANY, "images": IMAGES},
        splits=("base", "novel"),
        decoded=True,
        environment="vision",
    ),
}
"""A language model is not asked about val: its service is paid for."""
