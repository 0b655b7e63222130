"""Models by name, in the ``FORMS`` of libraries.

An image model gets one frame per second, a video model (``hf-video``, ``torchvision``) a clip. The preprocessing is
that of the model's own configuration. It comes from the library, whose import takes seconds, so it is cached in
``.stepline/named``.
"""

import dataclasses
import difflib
import os
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stepline.backbones.presets.clip import NAMED
from stepline.backbones.weights import File, Weights, how_to_get, locate
from stepline.errors import ConfigError, MissingError
from stepline.io import canonical_json, parse_json, read_json, write_cache, write_text
from stepline.mirror import cached_sha256
from stepline.spec import ClipSpec, TextSpec, digest

if TYPE_CHECKING:
    import torch

    from stepline.backbones.clip_text import TextEncoder

CACHE = Path(".stepline/named")
REVISION = 3
"""The version of the cached content."""
TOKENIZER = "#tokenizer"
"""The suffix of weights names for the tokenizer of a text tower."""
LIBRARIES = {
    "timm": ("timm", "timm_models"),
    "open_clip": ("open_clip_torch", "open_clip_models"),
    "hf": ("transformers", "hf_models"),
    "hf-video": ("transformers", "hf_video_models"),
    "torchvision": ("torchvision", "torchvision_models"),
}
"""Prefix -> the distribution and the module of this package."""
FORMS = (
    "timm:<name>, open_clip:<name>/<tag>, hf:<owner>/<name>@<revision> (images), "
    "hf-video:<owner>/<name>@<revision> or torchvision:<name>/<weights> (videos)"
)
"""The forms of the names."""


def spec(name: str) -> ClipSpec:
    """Return the spec of a model.

    Raises ConfigError if the name is unknown or the model cannot be used by name. Raises MissingError if its library is
    not installed or, for ``hf`` and ``hf-video``, if its configuration, which is stored with the weights, is absent.
    """
    clip, _ = _specs(name)
    return clip


def text_spec(name: str) -> TextSpec:
    """Return the spec of a model's text tower; raises the errors of ``spec``, and ConfigError if it has none."""
    _, text = _specs(name)
    if text is None:
        raise ConfigError(f"{name} has no text tower: choose a CLIP or a SigLIP")
    return text


def weights(name: str) -> Weights:
    """Return the weights of a model; raise ConfigError if it is unknown, MissingError without its library."""
    if name in NAMED:
        return NAMED[name][2]
    found = _kept("weights", name, (), lambda module, model: dataclasses.asdict(module.weights(name, model)))
    return Weights(**{**found, "files": tuple(File(**file) for file in found["files"])})


def load(spec: ClipSpec, files: Mapping[str, Path]) -> "torch.nn.Module":
    """Return the network of ``spec``; raise StoreError if the files do not belong to the model."""
    network: torch.nn.Module = _module(spec.architecture).load(spec, files)
    return network


def load_text(spec: TextSpec, files: Mapping[str, Path]) -> "TextEncoder":
    """Return the text tower of ``spec``; raise StoreError if the files do not belong to the model."""
    encoder: TextEncoder = _module(spec.architecture).load_text(spec, files)
    return encoder


def weights_name(name: str) -> str:
    """Return the name of a model's weights: its own, without the choice of frames that follows ``#``."""
    return name.partition("#")[0]


def slug(name: str) -> str:
    """Return the name in a form that is valid as a folder name."""
    return re.sub(r"[^a-z0-9_.]+", "-", name.lower()).strip("-.")


def unknown(name: str, prefix: str, known: Iterable[str]) -> ConfigError:
    """Return the error for a ``name`` that is not in ``known``; known names lack the ``prefix``."""
    close = difflib.get_close_matches(name.removeprefix(prefix), list(known), n=3)
    hint = f"did you mean {' or '.join(prefix + each for each in close)}?" if close else "no known name is close"
    return ConfigError(f"backbone {name!r} is not known: {hint}")


def _specs(name: str) -> tuple[ClipSpec, TextSpec | None]:
    if name in NAMED:
        return NAMED[name][:2]
    files: Mapping[str, Path] = {}
    if name.startswith(("hf:", "hf-video:")):
        found = locate(name)
        if found is None:
            of = weights_name(name)
            raise MissingError(f"weights {of} are absent: run `{how_to_get(of)}`")
        files = found

    def describe(module: Any, model: str) -> list[dict[str, Any] | None]:
        return [described and dataclasses.asdict(described) for described in module.describe(name, model, files)]

    clip, text = _kept("specs", name, [cached_sha256(path) for path in files.values()], describe)
    return ClipSpec(**_tuples(clip)), text and TextSpec(**_tuples(text))


def _kept(kind: str, name: str, digests: Iterable[str], make: Callable[[Any, str], Any]) -> Any:
    """Return the result of ``make`` for the library's module and the name within it, from the cache if possible.

    An entry of the cache is of the installed version. A job of an environment without the library uses the last entry.
    """
    prefix, _, model = name.partition(":")
    if prefix not in LIBRARIES or not model:
        raise ConfigError(f"backbone {name!r} is not known: a model by name is {FORMS}")
    distribution, _ = LIBRARIES[prefix]
    path = CACHE / f"{slug(name)}-{kind}-{digest([REVISION, name, *digests])}.json"
    kept = read_json(path) if path.is_file() else {"version": None}
    here = find_spec(distribution.removesuffix("_torch")) is not None
    installed = version(distribution) if here else kept["version"]
    if installed is None:
        raise MissingError(f"backbone {name} needs the package {distribution}: install stepline[vision]")
    if installed == kept["version"]:
        return kept["content"]
    content = canonical_json({"version": installed, "content": make(_module(prefix), model)})
    if kind == "weights":  # from the network, to which the next command may have no access
        with suppress(OSError):
            write_text(path, content)
    else:
        write_cache(path, content)
    return parse_json(content)["content"]


def _module(prefix: str) -> Any:
    from stepline.backbones.torchvision import make_importable

    os.environ["HF_HUB_OFFLINE"] = "1"
    make_importable()
    return import_module(f"stepline.backbones.{LIBRARIES[prefix][1]}")


def _tuples(value: Any) -> Any:
    """Return plain values with lists replaced by tuples, as in specs."""
    if isinstance(value, dict):
        return {key: _tuples(each) for key, each in value.items()}
    return tuple(_tuples(each) for each in value) if isinstance(value, list) else value
