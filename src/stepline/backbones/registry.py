"""The registry of backbones: the spec of a name, and its missing requirements.

Text encoders are in ``sentence.MODELS`` and the text towers of ``presets``. Frame backbones are defined here. Networks
on clips are ``presets``, models by name (``timm:...``) and models by file (``backbones:`` in the configuration).
"""

import difflib
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from stepline.backbones.histogram import HistogramSpec, describe
from stepline.backbones.named import FORMS, LIBRARIES, weights_name
from stepline.backbones.sentence import MODELS, SentenceEncoder, sentence_spec
from stepline.backbones.weights import how_to_get, locate
from stepline.errors import ConfigError, MissingError
from stepline.mirror import cached_sha256
from stepline.needs import Need, absent, in_order
from stepline.spec import ClipSpec, FrameSpec, Spec, TextSpec

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from stepline.config import Config


@dataclass(frozen=True, kw_only=True)
class FrameBackbone:
    """A backbone of single frames. describe: (height, width, 3) RGB uint8 and the spec -> (D,) float32."""

    spec: FrameSpec
    describe: "Callable[[NDArray[np.uint8], Any], NDArray[np.float32]]"


FRAME_BACKBONES = {
    "histogram": FrameBackbone(spec=HistogramSpec(), describe=describe),
}
FAMILIES = {
    "s3d": "stepline.backbones.s3d",
    "videoclip": "stepline.backbones.videoclip",
    "timesformer": "stepline.backbones.timesformer",
    "egovlp": "stepline.backbones.egovlp",
    "internvideo": "stepline.backbones.internvideo",
    "eva_clip": "stepline.backbones.eva_clip",
    "timm": "stepline.backbones.named",
    "open_clip": "stepline.backbones.named",
    "hf": "stepline.backbones.named",
    "hf-video": "stepline.backbones.named",
    "torchvision": "stepline.backbones.named",
    "file": "stepline.backbones.file",
}
"""Architecture -> its module; ``load`` builds its networks, ``load_text`` its text towers."""
NetworkSpec = TypeVar("NetworkSpec", bound=ClipSpec | TextSpec)
DOT = ("s3d", "videoclip")
"""The architectures whose released code compares by the dot product; all others use the cosine. See `similarity`."""
PACKAGES = {
    "": ("av", "cv2", "PIL"),
    "videoclip": ("tokenizers", "transformers"),
    "timesformer": ("transformers",),
    "egovlp": ("tokenizers", "transformers"),
    "internvideo": ("open_clip",),
    "eva_clip": ("open_clip", "timm"),
    "timm": ("timm",),
    "open_clip": ("open_clip", "tokenizers"),
    "hf": ("safetensors", "tokenizers", "transformers"),
    "hf-video": ("safetensors", "tokenizers", "torchvision", "transformers"),
    "torchvision": ("safetensors", "torchvision"),
}
"""Packages that an architecture needs in addition to torch. A user's own file may not need torch."""


@cache
def presets() -> dict[str, ClipSpec]:
    """Return the papers' networks on clips by name, for all families."""
    return {spec.name: spec for module in _families() for spec in module.PRESETS}


@cache
def towers() -> dict[str, TextSpec]:
    """Return the text towers of the networks by name."""
    return {spec.name: spec for module in _families() for spec in module.TOWERS}


def _families() -> list[Any]:
    names = ("s3d", "timesformer", "internvideo", "eva_clip", "egovlp", "videoclip")
    return [import_module(f"stepline.backbones.presets.{name}") for name in names]


def own_file(name: str, config: "Config") -> Path | None:
    """Return the Python file of a user's own network, or None for any other network."""
    own = config["backbones"].get(name)
    return Path(os.path.expanduser(own["path"])) if own else None


def text_tower(name: str, config: "Config") -> TextSpec | None:
    """Return a text tower by its own name or its network's, without reading weights; None if there is none.

    Raises ConfigError if the name is unknown, MissingError if the description of a model by name is absent.
    """
    if name in towers():
        return towers()[name]
    spec = resolve(name, config)
    return tower_of(spec, own_file(name, config)) if isinstance(spec, ClipSpec) else None


def tower_of(spec: ClipSpec, own: Path | None = None) -> TextSpec | None:
    """Return the text tower that shares the network's embedding space, without reading weights; None if there is none.

    own: the file of a user's own network.
    """
    if own is not None:
        try:
            return import_module(FAMILIES["file"]).text_spec(spec.name, own)  # type: ignore[no-any-return]
        except ConfigError:
            return None
    if spec.architecture in ("open_clip", "hf", "hf-video"):
        try:
            return import_module(FAMILIES[spec.architecture]).text_spec(spec.weights[0])  # type: ignore[no-any-return]
        except ConfigError:
            return None
    return next((tower for tower in towers().values() if _share(tower, spec)), None)


def _share(tower: TextSpec, spec: ClipSpec) -> bool:
    same = (tower.architecture, tower.dimension) == (spec.architecture, spec.dimension)
    return same and {*tower.weights} <= {*spec.weights}


def weights_by_name(config: "Config") -> list[str]:
    """Return the names of the weights of all models by name in the configuration, with tokenizers of text towers.

    The tokenizer of a model whose text tower is not known yet, because its weights are absent, is not among them.
    Raises ConfigError if a name is unknown. Recognisers (``asr``) have weights of their own.
    """
    texts = [text for key, value in config.items() if key != "asr" for text in _texts(value)]
    names = [text for text in texts if text.partition(":")[0] in LIBRARIES and ":" in text]
    found: list[str] = []
    for name in dict.fromkeys([*names, *config["backbones"]]):
        try:
            spec, tower = resolve(name, config), text_tower(name, config)
        except MissingError:
            found.append(weights_name(name))
        else:
            found += [*getattr(spec, "weights", ()), *(tower.weights if tower else ())]
    return [name for name in dict.fromkeys(found) if ":" in name]


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from _texts(each)
    elif isinstance(value, str):
        yield value


def similarity(spec: Spec) -> str:
    """Return how vectors of frames and texts are compared: ``dot product`` or ``cosine``."""
    return "dot product" if isinstance(spec, ClipSpec) and spec.architecture in DOT and not spec.normalise else "cosine"


def networks_of(weights: str) -> list[ClipSpec]:
    """Return the presets that load these weights."""
    return [spec for spec in presets().values() if weights in spec.weights]


def resolve(name: str, config: "Config") -> FrameSpec:
    """Return the configured spec of a frame backbone or network, without reading weights.

    Raises ConfigError if the name is unknown, MissingError if the description of a model by name is absent.
    """
    spec: FrameSpec
    if taken := config["backbones"].keys() & {*FRAME_BACKBONES, *presets(), *towers(), *MODELS}:
        raise ConfigError(f"config: backbones: {min(taken)!r} is taken; choose another name")
    if name in FRAME_BACKBONES:
        spec = FRAME_BACKBONES[name].spec
    elif own := own_file(name, config):
        spec = import_module(FAMILIES["file"]).spec(name, own)
    elif ":" in name:
        spec = import_module(FAMILIES["timm"]).spec(name)
    elif name in presets():
        spec = presets()[name]
    else:
        known = [*FRAME_BACKBONES, *config["backbones"], *presets()]
        close = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {close[0]!r}? " if close else ""
        raise ConfigError(
            f"backbone {name!r} is not known; {hint}choose from {', '.join(known)}, or name a model as {FORMS}, or one "
            "of `backbones:`"
        )
    if isinstance(spec, ClipSpec):
        spec = replace(spec, **{key: config["features"][key] for key in ("compute", "dtype", "batches")})
    return replace(spec, reader=config["media"]["reader"], orientation=config["media"]["orientation"])


def missing(name: str, config: "Config") -> tuple[Need, ...]:
    """Return the packages and weights that a frame backbone or network is missing.

    Raises ConfigError if the name is unknown.
    """
    try:
        spec = resolve(name, config)
    except MissingError:
        return _not_installed(name.partition(":")[0]) or (Need("weights", weights_name(name)),)
    used = [("decord", spec.reader == "decord"), ("obstore", config["features"]["store"])]
    packages = absent(*(Need("package", name) for name, uses in used if uses))
    if not isinstance(spec, ClipSpec):
        return packages
    weights = (Need("weights", each) for each in spec.weights if locate(each) is None)
    return in_order((*_absent(spec.architecture), *packages, *weights))


def text_encoder(name: str, config: "Config") -> Any:
    """Return a sentence encoder or text tower by name, with ``spec``, ``tokens`` and ``encode``, see ``features.text``.

    Raises MissingError if weights are absent.
    """
    if name in MODELS:
        return SentenceEncoder(name)
    spec = spec_of(name, config)
    assert isinstance(spec, TextSpec)
    return import_module(FAMILIES[spec.architecture]).load_text(spec, files_of(spec.weights))


def _absent(architecture: str) -> tuple[Need, ...]:
    """Return the packages that are not installed. Under conda the environment of each rule provides them."""
    return () if os.environ.get("STEPLINE_CONDA") else _not_installed(architecture)


def _not_installed(architecture: str) -> tuple[Need, ...]:
    wanted = (*PACKAGES[""], *(() if architecture == "file" else ("torch",)), *PACKAGES.get(architecture, ()))
    return tuple(Need("package", package) for package in wanted if find_spec(package) is None)


def files_of(weights: tuple[str, ...], own: Path | None = None) -> Mapping[str, Path]:
    """Return the files of these weights by name, and ``own``; raise MissingError if some are absent."""
    found = {own.name: own} if own else {}
    for each in weights:
        files = locate(each)
        if files is None:
            raise MissingError(f"weights {each} are absent: run `{how_to_get(each)}`")
        found |= files
    return found


def spec_of(name: str, config: "Config") -> Spec:
    """Return the spec of a text encoder, frame backbone or network, with the sha256 of its weights.

    Raises ConfigError if the name is unknown, MissingError if weights are absent.
    """
    if name in MODELS:
        return sentence_spec(name)
    spec = towers()[name] if name in towers() else resolve(name, config)
    return with_weights(spec) if isinstance(spec, ClipSpec | TextSpec) else spec


def with_weights(spec: NetworkSpec) -> NetworkSpec:
    """Return the spec of a network or text tower with the sha256 of its weights; raise MissingError without them."""
    known = tuple((file, cached_sha256(path)) for file, path in sorted(files_of(spec.weights).items()))
    return replace(spec, weights_sha256=spec.weights_sha256 + known)
