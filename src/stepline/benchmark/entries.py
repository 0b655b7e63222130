"""Entries, which are computed, and tables, which show them: as a benchmark's ``tables.yaml`` declares them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from stepline.runs.method import Method


@dataclass(frozen=True, kw_only=True)
class Kind:
    """How predictions are made.

    method: returns the class of the method, which it imports; None where nothing is predicted. revision: of its code:
    raise it with a change that gives other numbers. options: the block of the configuration that decides its training,
    with ``seeds``; "" where nothing is fitted. sees: words of what it may see in any case. settings: those of an entry
    of this kind, each with its allowed values, or ``int`` for any number from 1. metrics: what its predictions can be
    scored by; () is every metric. drawn: whether it draws, so that an entry has ``seeds``. trains: whether it reads the
    training videos. decoded: whether its jobs read the videos themselves. environment: the conda environment of its
    jobs; scored_in: that of its scores. gpu: whether its jobs use a GPU where there is one.
    """

    method: "Callable[[], type[Method[Any, Any]]] | None" = None
    revision: int = 1
    options: str = ""
    sees: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    metrics: tuple[str, ...] = ()
    drawn: bool = False
    trains: bool = False
    decoded: bool = False
    environment: str = "core"
    scored_in: str = "core"
    gpu: bool = False


@dataclass(frozen=True, kw_only=True)
class Entry:
    """What is computed; the head of a ``tables.yaml`` describes its fields.

    made_by: the name of its kind. features: a key of the configuration's ``features``. seeds: one prediction of each.
    sees: words of what it may see, besides its kind's.
    """

    id: str
    made_by: str
    kind: Kind
    features: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    seeds: tuple[int, ...] = (0,)
    sees: tuple[str, ...] = ()

    @property
    def trained(self) -> bool:
        """Whether it is fitted on the training videos."""
        return bool(self.kind.options)

    @property
    def task(self) -> str:
        """The task that it predicts; "" in a benchmark of one."""
        return ""


AnyEntry = TypeVar("AnyEntry", bound=Entry)


@dataclass(frozen=True, kw_only=True)
class Line:
    """How a table names an entry.

    releases: those on which it stands. protocol: ``paper``, or ``beyond`` the paper's. contexts: the window lengths in
    seconds, None for unlimited; () is the benchmark's own choice.
    """

    entry: str
    method: str
    modality: str = ""
    setting: str = ""
    note: str = ""
    protocol: str = "paper"
    releases: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table: its name in the paper, what it is about, the metrics that are its columns, and its lines.

    file: of ``results/<study>/``, without a suffix; a file may hold several tables.
    """

    name: str
    file: str
    title: str
    metrics: tuple[str, ...]
    lines: Sequence[Line]
