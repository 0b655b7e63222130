"""Entries, which are computed, and the tables that show them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

from stepline import paths


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of prediction.

    method: ``MODULE:CLASS``, with the module relative to the benchmark's package, such as ``methods.linear:Linear``,
    ``:Linear`` in the package's ``__init__``, or a whole name that begins with ``stepline.``; None if nothing is
    predicted. revision: of its code; raise it with a change that alters numbers. options: the block of the
    configuration with its training options, including ``seeds``; "" if nothing is fitted. sees: keywords of the inputs
    it always sees. settings: the settings of an entry: allowed values by key, each with keywords of the inputs it adds;
    ``int`` allows any number from 1, ``str`` the id of another entry. A tuple of one of these and None is an optional
    setting. metrics: the metrics that can score its predictions; () means all. splits: the splits on which its entries
    are evaluated by default. drawn: whether it draws random numbers, so that an entry has ``seeds``. decoded: whether
    its jobs decode videos. environment: the conda environment of its jobs, a file in ``envs/``. scored_in: that of its
    scores. gpu: whether its jobs use a GPU if there is one.
    """

    method: str | None
    revision: int = 1
    options: str = ""
    sees: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    metrics: tuple[str, ...] = ()
    splits: tuple[str, ...] = ("test",)
    drawn: bool = False
    decoded: bool = False
    environment: str = "core"
    scored_in: str = "core"
    gpu: bool = False

    def scores(self, metric: str) -> bool:
        """Return whether its predictions can be scored by a metric."""
        return not self.metrics or metric in self.metrics

    def rule(self, setting: str) -> tuple[Any, bool]:
        """Return the allowed values of a setting, and whether it is optional."""
        allowed = self.settings[setting]
        return (allowed[0], True) if isinstance(allowed, tuple) else (allowed, False)


@dataclass(frozen=True, kw_only=True)
class Entry:
    """An entry of ``tables.yaml`` or of the configuration: a method with its settings.

    kind_name: the key of its kind. features: a key of ``features`` in the configuration. inputs: keywords of inputs it
    may see in addition to those of its kind and settings. seeds: each gives one prediction. splits: the splits on which
    it is evaluated.
    """

    id: str
    kind: Kind
    kind_name: str
    features: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    inputs: tuple[str, ...] = ()
    seeds: tuple[int, ...] = (0,)
    splits: tuple[str, ...] = ("test",)

    @property
    def trained(self) -> bool:
        """Whether it is fitted on the training videos."""
        return bool(self.kind.options)

    @property
    def task(self) -> str:
        """The task that it predicts; "" in a benchmark with a single task."""
        return ""

    @property
    def record(self) -> dict[str, Any]:
        """The fields that determine its predictions."""
        return {
            "kind": self.kind_name,
            "revision": self.kind.revision,
            "settings": dict(self.settings),
            "seeds": list(self.seeds),
        }

    @cached_property
    def sees(self) -> tuple[str, ...]:
        """The keywords of all inputs it may see."""
        rules = {key: self.kind.rule(key)[0] for key, value in self.settings.items() if value is not None}
        chosen = [rule[self.settings[key]] for key, rule in rules.items() if isinstance(rule, Mapping)]
        return tuple(dict.fromkeys([*self.inputs, *self.kind.sees, *(word for words in chosen for word in words)]))


AnyEntry = TypeVar("AnyEntry", bound=Entry)


@dataclass(frozen=True, kw_only=True)
class Line:
    """The line of an entry in a table.

    releases: the releases that show it; () means every release that has the entry. protocol: ``paper``, or ``beyond``
    the paper's. contexts: window lengths in seconds, None for unlimited, or a keyword of the benchmark.
    """

    entry: str
    method: str
    modality: str = ""
    setting: str = ""
    note: str = ""
    protocol: str = "paper"
    releases: tuple[str, ...] = ()
    contexts: str | tuple[float | None, ...] = (None,)


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table: its name in the paper, its title, its metrics (columns) and its lines.

    file: in ``results/<study>/``, without a suffix; a file may hold several tables. task: the task of its entries.
    """

    name: str
    file: str
    title: str
    metrics: tuple[str, ...]
    lines: tuple[Line, ...]
    task: str = ""


@dataclass(frozen=True, kw_only=True)
class Job:
    """One entry on one release at one window length; None means unlimited."""

    release: str
    entry: Any
    context_s: float | None = None

    @property
    def context(self) -> str:
        """The window length in the form used in paths."""
        return paths.context_label(self.context_s)
