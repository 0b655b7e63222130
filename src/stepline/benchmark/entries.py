"""Entries, which are computed, and tables, which show them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from typing import Any, TypeVar

from stepline import paths
from stepline.benchmark.method import Method

MethodClass = type[Method[Any, Any]]


@dataclass(frozen=True)
class Imported:
    """The class ``name`` of a module, for `Kind.method`: it is imported when it is called, so that plans stay light."""

    module: str
    name: str

    def __call__(self) -> MethodClass:
        """Return the class."""
        found: MethodClass = getattr(import_module(self.module), self.name)
        return found


@dataclass(frozen=True, kw_only=True)
class Kind:
    """How predictions are made.

    method: imports and returns the method's class; None where nothing is predicted. revision: of its code: raise it
    with a change that gives other numbers. options: the block of the configuration that decides its training, with
    ``seeds``; "" where nothing is fitted. sees: words of what it may see in any case. settings: those of an entry: by
    key the allowed values, each with the words of what it lets the method see; ``int``, any number from 1; ``str``, the
    id of another entry. A tuple of one of these and None is a setting that may be left out. metrics: what its
    predictions can be scored by; () is every metric. splits: where its entries are evaluated, unless they say it.
    drawn: whether it draws, so that an entry has ``seeds``. trains: whether it reads training videos. decoded: whether
    its jobs read the videos themselves. environment: the conda environment of its jobs; scored_in: that of its scores.
    gpu: whether its jobs use a GPU where there is one.
    """

    method: Callable[[], MethodClass] | None
    revision: int = 1
    options: str = ""
    sees: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    metrics: tuple[str, ...] = ()
    splits: tuple[str, ...] = ("test",)
    drawn: bool = False
    trains: bool = False
    decoded: bool = False
    environment: str = "core"
    scored_in: str = "core"
    gpu: bool = False

    def scores(self, metric: str) -> bool:
        """Return whether its predictions can be scored by a metric."""
        return not self.metrics or metric in self.metrics

    def rule(self, setting: str) -> tuple[Any, bool]:
        """Return what a setting may be, and whether it may be left out."""
        allowed = self.settings[setting]
        return (allowed[0], True) if isinstance(allowed, tuple) else (allowed, False)


@dataclass(frozen=True, kw_only=True)
class Entry:
    """What is computed: an entry of ``tables.yaml`` or of the configuration.

    kind_name: the key of its kind. features: a key of the configuration's ``features``. inputs: words of what it may
    see besides what its kind and settings say. seeds: one prediction of each. splits: where it is evaluated.
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
        """The task that it predicts; "" in a benchmark of one."""
        return ""

    @cached_property
    def sees(self) -> tuple[str, ...]:
        """Words of all that it may see."""
        rules = {key: self.kind.rule(key)[0] for key, value in self.settings.items() if value is not None}
        chosen = [rule[self.settings[key]] for key, rule in rules.items() if isinstance(rule, Mapping)]
        return tuple(dict.fromkeys([*self.inputs, *self.kind.sees, *(word for words in chosen for word in words)]))


AnyEntry = TypeVar("AnyEntry", bound=Entry)


@dataclass(frozen=True, kw_only=True)
class Line:
    """How a table names an entry.

    releases: those on which it stands; () is all that have it. protocol: ``paper``, or ``beyond`` the paper's.
    contexts: window lengths in seconds, None for unlimited, or a word that the benchmark reads.
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
    """A table: its name in the paper, what it is about, the metrics that are its columns, and its lines.

    file: of ``results/<study>/``, without a suffix; a file may hold several tables. task: what its entries predict.
    """

    name: str
    file: str
    title: str
    metrics: tuple[str, ...]
    lines: tuple[Line, ...]
    task: str = ""


@dataclass(frozen=True, kw_only=True)
class Job:
    """One entry on one release at one window length; None is unlimited."""

    release: str
    entry: Any
    context_s: float | None = None

    @property
    def context(self) -> str:
        """The window length as it stands in paths."""
        return paths.context_label(self.context_s)
