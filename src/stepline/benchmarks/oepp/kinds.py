"""How plans are made."""

from dataclasses import dataclass
from typing import Any

from stepline.benchmark import Kind, MethodClass, Prediction

SPLITS = {"val": "val", "base": "test base", "novel": "test novel"}
"""Where plans are evaluated, and as tables call it."""
COUNTED = ("events", "actions", "videos", "segments")
"""What is counted of a release."""
PARTS: dict[str, tuple[str, ...]] = dict.fromkeys(("total", "train", "val", "base", "novel"), ())
HORIZON = {"horizon": int}
"""T, the number of actions of a plan."""
ANY_HORIZON = {"horizon": (int, None)}
"""Without it, that of each video."""
LOSS: dict[str, tuple[str, ...]] = dict.fromkeys(("both", "ce", "mse"), ())
IMAGES: dict[int, tuple[str, ...]] = {1: (), 3: ()}
PLANNED: dict[str, Any] = {"splits": tuple(SPLITS), "environment": "text"}
TRAINED: dict[str, Any] = PLANNED | {
    "trains": True,
    "sees": ("observations", "train", "val", "action_pool"),
    "gpu": True,
}


@dataclass(frozen=True, kw_only=True)
class Plan(Prediction):
    """The plan of one window with one seed.

    index: the place of the window's first action in its video. plan: places in the pool of its split, or NO_ACTION and
    GUESS of `stepline.metrics.plans`.
    """

    index: int
    plan: tuple[int, ...]


def _random() -> MethodClass:
    from stepline.benchmarks.oepp.methods.random import Random

    return Random


def _frequent() -> MethodClass:
    from stepline.benchmarks.oepp.methods.frequent import MostFrequent

    return MostFrequent


def _matching() -> MethodClass:
    from stepline.benchmarks.oepp.methods.matching import Matching

    return Matching


def _heads() -> MethodClass:
    from stepline.benchmarks.oepp.methods.heads import Heads

    return Heads


def _pdpp() -> MethodClass:
    from stepline.benchmarks.oepp.methods.pdpp import Pdpp

    return Pdpp


def _vlm() -> MethodClass:
    from stepline.benchmarks.oepp.methods.vlm import LanguageModel

    return LanguageModel


KINDS = {
    "statistics": Kind(method=None, settings={"part": PARTS}, metrics=COUNTED),
    "random": Kind(method=_random, sees=("action_pool",), settings=ANY_HORIZON, splits=tuple(SPLITS)),
    "frequent": Kind(
        method=_frequent,
        trains=True,
        sees=("train_annotation", "action_pool"),
        settings=ANY_HORIZON,
        splits=tuple(SPLITS),
    ),
    "matching": Kind(method=_matching, sees=("observations", "action_pool"), settings=HORIZON, **PLANNED),
    "mlp": Kind(method=_heads, options="heads", settings={**HORIZON, "loss": LOSS}, **TRAINED),
    "transformer": Kind(method=_heads, options="heads", settings={**HORIZON, "loss": LOSS}, **TRAINED),
    "pdpp": Kind(method=_pdpp, options="pdpp", settings=HORIZON, **TRAINED),
    "vlm": Kind(
        method=_vlm,
        sees=("observations", "action_pool"),
        settings={**ANY_HORIZON, "images": IMAGES},
        splits=("base", "novel"),
        decoded=True,
        environment="vision",
    ),
}
"""A language model is not asked about val: its service is paid for."""
