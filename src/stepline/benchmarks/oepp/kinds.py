"""The kinds of methods of OEPP, and their predictions."""

from dataclasses import dataclass
from typing import Any

from stepline.benchmark import Kind, Prediction
from stepline.benchmarks.oepp.metrics import COUNTED, SPLITS
from stepline.datasets import oepp

HORIZON, ANY = {"horizon": int}, {"horizon": (int, None)}
"""T, the number of actions in a plan; by default, the number of actions in each video."""
ALL = tuple(SPLITS)
SEEING = ("observations", "action_pool")
TRAINED: dict[str, Any] = {
    "sees": ("observations", "train", "val", "action_pool"),
    "splits": ALL,
    "environment": "networks",
    "gpu": True,
}


@dataclass(frozen=True, kw_only=True)
class Plan(Prediction):
    """The plan of one window with one seed.

    index: the index of the window's first action in its video. plan: indices into the pool of its split, or NO_ACTION
    and GUESS of `stepline.metrics.plans`.
    """

    index: int
    plan: tuple[int, ...]


PARTS: dict[str, tuple[str, ...]] = dict.fromkeys(("total", *oepp.PARTS), ())
LOSS: dict[str, tuple[str, ...]] = dict.fromkeys(("both", "ce", "mse"), ())
IMAGES: dict[int, tuple[str, ...]] = dict.fromkeys((1, 3), ())
HEADS = Kind(method="methods.heads:Heads", options="heads", settings={**HORIZON, "loss": LOSS}, **TRAINED)
KINDS = {
    "statistics": Kind(method=None, settings={"part": PARTS}, metrics=COUNTED),
    "random": Kind(method="methods.random:Random", sees=("action_pool",), settings=ANY, splits=ALL),
    "frequent": Kind(
        method="methods.frequent:MostFrequent", sees=("train_annotation", "action_pool"), settings=ANY, splits=ALL
    ),
    "matching": Kind(
        method="methods.matching:Matching", sees=SEEING, settings=HORIZON, splits=ALL, environment="networks"
    ),
    "mlp": HEADS,
    "transformer": HEADS,
    "pdpp": Kind(method="methods.pdpp:Pdpp", options="pdpp", settings=HORIZON, **TRAINED),
    "vlm": Kind(
        method="methods.vlm:LanguageModel",
        sees=SEEING,
        settings={**ANY, "images": IMAGES},
        splits=("base", "novel"),
        decoded=True,
        environment="networks",
    ),
}
"""The methods by kind. A language model does not plan val, because its service costs money."""
