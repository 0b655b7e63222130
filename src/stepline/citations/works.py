"""The registry of works, with their references and their licences if Stepline knows them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import stepline
from stepline.backbones.named import LIBRARIES
from stepline.backbones.presets.clip import NAMED
from stepline.backbones.registry import presets, towers
from stepline.backbones.sentence import MODELS
from stepline.backbones.weights import WEIGHTS
from stepline.io import packaged_yaml

FOLDER = Path(__file__).parent
BY_NAME = tuple(f"{prefix}:" for prefix in LIBRARIES)
"""Prefixes of the names of models from a library."""
LICENSED = ("backbone", "data set", "features", "language model", "recogniser", "tool")
"""Roles of works that have a licence or terms; methods and metrics are Stepline's own code."""


@dataclass(frozen=True)
class Work:
    """A data set, network, tool and the like.

    role: such as ``backbone``. cite: keys of ``references``. licence: "" if unknown.
    """

    role: str
    name: str
    cite: tuple[str, ...]
    licence: str


@cache
def works() -> dict[str, dict[str, dict[str, Any]]]:
    """Return the content of ``works.yaml``."""
    content: dict[str, dict[str, dict[str, Any]]] = packaged_yaml(FOLDER / "works.yaml")
    return content


@cache
def references() -> dict[str, str]:
    """Return the BibTeX entries by key, in file order, with Stepline's version filled in."""
    text = (FOLDER / "references.bib").read_text(encoding="utf-8").replace("VERSION", stepline.__version__)
    return {found[1]: found[0] for found in re.finditer(r"^@\w+\{(\S+),\n.*?^\}", text, re.MULTILINE | re.DOTALL)}


def work(role: str, group: str, name: str) -> Work:
    """Return a work by its group and name in the registry; an unregistered work has no references."""
    known = works()[group].get(name, {})
    return Work(role, name, tuple(known.get("cite", ())), known.get("licence", ""))


def backbones(text: str) -> list[Work]:
    """Return the networks and encoders that a text in a record or an entry names, if any."""
    name = str(works()["aliases"].get(text, text))
    spec = presets().get(name) or towers().get(name)
    names: Sequence[str] = spec.weights if spec else [name]
    return [_backbone(each) for each in names if each in works()["backbones"] or each.startswith(BY_NAME)]


def metrics(name: str) -> list[Work]:
    """Return a metric and the networks that compute it. name: may begin with the name of a split."""
    known = (key for key in works()["metrics"] if name == key or name.endswith(f"_{key}"))
    if (key := max(known, key=len, default="")) == "":
        return []
    return [work("metric", "metrics", key), *map(_backbone, works()["metrics"][key].get("weights", ()))]


def _backbone(name: str) -> Work:
    found = work("backbone", "backbones", name)
    by_name = {key: weights for key, (_, _, weights) in NAMED.items()}
    described = WEIGHTS.get(name) or MODELS.get(name) or by_name.get(name)
    return Work(found.role, found.name, found.cite, found.licence or (described.licence if described else ""))
