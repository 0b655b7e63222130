"""Features of videos, and vectors of actions: released ones, from a file, or from an encoder."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from stepline.backbones.registry import spec_of, text_encoder, towers
from stepline.backbones.sentence import MODELS, model_files
from stepline.backbones.weights import locate
from stepline.benchmark import Entry, Option
from stepline.config import Config
from stepline.datasets import oepp
from stepline.errors import ConfigError, ReleaseError, StoreError
from stepline.io import sha256_file
from stepline.needs import Need

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from stepline.benchmarks.oepp.inputs import OeppInputs

RELEASED: dict[str, oepp.Features] = {"videoclip": "videoclip", "mil-nce": "s3d"}
"""The released text vectors for each key of ``features`` in the configuration."""
ALIKE = {
    "videoclip": ("videoclip-oepp", "videoclip-oepp-as-released", "videoclip-released"),
    "mil-nce": ("s3d-oepp", "s3d-oepp-as-released", "s3d-p3iv"),
}
"""Features with numbers comparable to the paper's: presets of its recipe, and its files imported under these names."""


def check_text(name: str, where: str) -> None:
    """Raise ConfigError if the name at the key ``where`` provides no vectors of actions."""
    known = ("released", *towers(), *MODELS)
    if "/" in name:
        _check_file(Path(name).expanduser(), where)
    elif name not in known:
        raise ConfigError(f"{where}: {name!r} is not one of {', '.join(known)}, nor a path with /")


def _check_file(file: Path, where: str) -> None:
    if not file.is_file():
        raise ConfigError(f"{where}: '{file}' does not exist; give a JSON file")
    try:
        vectors = oepp.read_vectors(file)
    except (ReleaseError, StoreError):
        raise ConfigError(
            f"{where}: '{file}' is not allowed; give vectors of one length as JSON, {{action: [[number, ...]]}}"
        ) from None
    if oepp.is_here("split1"):
        absent = {*oepp.pool("split1", "base"), *oepp.pool("split1", "novel")} - vectors.keys()
        if absent:
            raise ConfigError(f"{where}: '{file}' has no vector of the action {min(absent)!r}; add it")


def missing_text(entry: Entry, options: Config) -> list[Need]:
    """Return the missing weights of the encoder of an entry's actions. options: OEPP's."""
    name = _text(entry, options)
    if name in MODELS:
        return [] if model_files(name) else [Need("weights", name)]
    return [Need("weights", each) for each in (towers()[name].weights if name in towers() else ()) if not locate(each)]


def text_record(entry: Entry, options: Config, config: Config) -> Any:
    """Return the cache key of the vectors of an entry's actions; "" if it reads none."""
    name = _text(entry, options)
    if name == "released":
        return f"released {RELEASED[entry.features]}"
    if "/" in name:
        return sha256_file(Path(name).expanduser())
    return spec_of(name, config).record() if name else ""


def feature_options(entry: Entry, options: Config) -> dict[str, Option]:
    """Return the options of an entry's features; {} if it has no features."""
    if not entry.features:
        return {}
    name, alike = options["features"][entry.features]["video"], ALIKE[entry.features]
    return {
        "features": Option(name, name if name in alike else alike[0]),
        "text": Option(_text(entry, options), "released"),
        "rows": Option(options["windows"]["rows"], "released"),
    }


def vectors(inputs: "OeppInputs", split: str) -> "NDArray[np.float32]":
    """Return the (N, D) vectors of the actions in a split's pool, not normalised.

    Raises ConfigError if a file of vectors has no vector of an action.
    """
    import numpy as np

    features, pool = inputs.entry.features, inputs.pool(split)
    name = _text(inputs.entry, inputs.options)
    if name == "released":
        found = oepp.text_features(inputs.release, RELEASED[features])
    elif "/" in name:
        found = oepp.read_vectors(Path(name).expanduser())
    else:
        return _encoded(name, pool, inputs.benchmark.config)
    if absent := [action for action in pool if action not in found]:
        raise ConfigError(f"oepp.features.{features}.text: {name!r} has no vector of the action {absent[0]!r}; add it")
    return np.array([found[action] for action in pool], dtype=np.float32)


def _text(entry: Entry, options: Config) -> str:
    return str(options["features"][entry.features]["text"]) if entry.features else ""


def _encoded(name: str, pool: tuple[str, ...], config: Config) -> "NDArray[np.float32]":
    from stepline.features.text import kept

    return kept("openevent", "actions", pool, text_encoder(name, config))(pool)
