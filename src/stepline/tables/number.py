"""A requested number of a table."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from stepline.benchmark.words import Option, Sees
from stepline.needs import Need


@dataclass(frozen=True, kw_only=True)
class Number:
    """One metric of one entry on one release with one context length.

    title: the subject of the table. modality: such as ``L`` or ``V+L``; empty or ``-`` if there is none. context_s:
    None if unlimited. sees: the inputs of the method. options: by name; a number is not comparable if an option differs
    from the published value. paper_release: the release of the paper's numbers, empty if any release is comparable.
    score: the content of the score file, None if there is none; then ``needs`` lists the missing inputs and ``command``
    computes the number. ``n_videos``, ``n_listed`` and ``n_samples`` of a metric override those of the score. blind:
    the entry of the blind baseline in the same table, on the same release, at the same context. reference: the number
    is copied from the paper. subset: the evaluated part of the split, empty for the full split.
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
