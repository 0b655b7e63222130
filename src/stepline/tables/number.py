"""A number that a table asks for."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from stepline.benchmark.words import Option, Sees
from stepline.needs import Need


@dataclass(frozen=True, kw_only=True)
class Number:
    """One entry on one release at one context by one metric.

    title: what the table is about. modality: such as ``L`` or ``V+L``, or empty or ``-`` where it has none. context_s:
    None where it is unlimited. sees: what the method may see. options: by name; another value than the published one
    cannot be compared. paper_release: the release on which the paper's numbers were made, empty where any will do.
    score: the content of the score file, None where there is none; then ``needs`` says what is missing and ``command``
    what fills it. A metric's own ``n_videos``, ``n_listed`` and ``n_samples`` win over those of the whole score.
    blind: the entry that says what a method gets that sees nothing, in the same table, on the same release, at the same
    context. reference: the number is copied from the paper. subset: what part of the split is evaluated, empty where
    all of it.
    """

    table: str
    title: str
    entry: str
    method: str
    modality: str
    setting: str
    context_s: float | None
    metric: str
    release: str
    split: str
    protocol: str = "paper"
    sees: tuple[Sees, ...] = ()
    options: Mapping[str, Option] = field(default_factory=dict)
    paper_release: str = ""
    spec: str = ""
    note: str = ""
    command: str = ""
    score: Mapping[str, Any] | None = None
    needs: tuple[Need, ...] = ()
    blind: str = ""
    reference: bool = False
    subset: str = ""
