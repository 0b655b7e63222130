"""Any model by name: ``timm:<name>``, ``open_clip:<name>/<tag>`` and ``hf:<repository>@<revision>``.

A model sees one picture at a time, one each second where nothing else is asked for, prepared as its own configuration
says. That comes from the library, whose import takes seconds: what was found is kept in ``.stepline/named``.
"""

import dataclasses
import difflib
import os
import re
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stepline.backbones.presets.clip import NAMED
from stepline.backbones.weights import File, Weights, how_to_get, locate
from stepline.errors import ConfigError, MissingError
from stepline.io import read_json, write_json
from stepline.mirror import cached_sha256
from stepline.spec import ClipSpec, TextSpec, digest

if TYPE_CHECKING:
    import torch

    from stepline.backbones.clip_text import TextEncoder

CACHE = Path(".stepline/named")
REVISION = 1
"""Counts the changes of what is kept there."""
HUB = "https://huggingface.co"
LIBRARIES = {
    "timm": ("timm", "timm_models"),
    "open_clip": ("open_clip_torch", "open_clip_models"),
    "hf": ("transformers", "hf_models"),
}
"""The distribution, and the module here, behind each prefix."""


def spec(name: str) -> ClipSpec:
    """Return the spec of a model's pictures.

    Raises ConfigError where the name is unknown or the model is none of single pictures, MissingError where its library
    is not installed, or its configuration, which stands beside the weights of ``hf``, is absent.
    """
    clip, _ = _specs(name)
    return clip


def text_spec(name: str) -> TextSpec:
    """Return the spec of a model's text tower; raise what ``spec`` raises, and ConfigError where it has none."""
    _, text = _specs(name)
    if text is None:
        raise ConfigError(
            f"{name} has no text tower with a tokenizer that is at hand: choose a CLIP, or a SigLIP of hf"
        )
    return text


def weights(name: str) -> Weights:
    """Return which files a model needs; raise ConfigError where it is unknown, MissingError without its library."""
    if name in NAMED:
        return NAMED[name][2]
    found = _kept("weights", name, (), lambda module, model: dataclasses.asdict(module.weights(name, model)))
    return Weights(**{**found, "files": tuple(File(**file) for file in found["files"])})


def load(spec: ClipSpec, files: Mapping[str, Path]) -> "torch.nn.Module":
    """Return the network of ``spec``; raise StoreError where the files are not the model's."""
    network: torch.nn.Module = _module(spec.architecture).load(spec, files)
    return network


def load_text(spec: TextSpec, files: Mapping[str, Path]) -> "TextEncoder":
    """Return the text tower of ``spec``; raise StoreError where the files are not the model's."""
    encoder: TextEncoder = _module(spec.architecture).load_text(spec, files)
    return encoder


def slug(name: str) -> str:
    """Return the name as that of a folder."""
    return re.sub(r"[^a-z0-9_.]+", "-", name.lower()).strip("-.")


def unknown(name: str, prefix: str, known: Iterable[str]) -> ConfigError:
    """Return the error that ``name`` is none of ``known``, which follow ``prefix``."""
    close = difflib.get_close_matches(name.removeprefix(prefix), list(known), n=3)
    hint = f"did you mean {' or '.join(prefix + each for each in close)}?" if close else "no known name is close"
    return ConfigError(f"backbone {name!r} is not known: {hint}")


def _specs(name: str) -> tuple[ClipSpec, TextSpec | None]:
    if name in NAMED:
        return NAMED[name][:2]
    files: Mapping[str, Path] = {}
    if name.startswith("hf:"):
        found = locate(name)
        if found is None:
            raise MissingError(f"weights {name} are absent: run `{how_to_get(name)}`")
        files = found

    def describe(module: Any, model: str) -> list[dict[str, Any] | None]:
        return [described and dataclasses.asdict(described) for described in module.describe(name, model, files)]

    clip, text = _kept("specs", name, [cached_sha256(path) for path in files.values()], describe)
    return ClipSpec(**_tuples(clip)), text and TextSpec(**_tuples(text))


def _kept(kind: str, name: str, digests: Iterable[str], make: Callable[[Any, str], Any]) -> Any:
    """Return what ``make`` gives of the library's module and the name within it, from the file where it is kept."""
    prefix, _, model = name.partition(":")
    if prefix not in LIBRARIES or not model:
        raise ConfigError(
            f"backbone {name!r} is not known: a model by name is timm:<name>, open_clip:<name>/<tag> or "
            "hf:<repository>@<revision>"
        )
    distribution, _ = LIBRARIES[prefix]
    if find_spec(distribution.removesuffix("_torch")) is None:
        raise MissingError(f"backbone {name} needs the package {distribution}: install stepline[vision]")
    key = digest([REVISION, name, version(distribution), *digests])
    path = CACHE / f"{slug(name)}-{kind}-{key}.json"
    if not path.is_file():
        write_json(path, make(_module(prefix), model))
    return read_json(path)


def _module(prefix: str) -> Any:
    from stepline.backbones.torchvision import make_importable

    os.environ["HF_HUB_OFFLINE"] = "1"
    make_importable()
    return import_module(f"stepline.backbones.{LIBRARIES[prefix][1]}")


def _tuples(value: Any) -> Any:
    """Return plain values with tuples for lists, as specs have them."""
    if isinstance(value, dict):
        return {key: _tuples(each) for key, each in value.items()}
    return tuple(_tuples(each) for each in value) if isinstance(value, list) else value
