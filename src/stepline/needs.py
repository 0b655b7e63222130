"""Needs: things that are missing before something can be computed, with a text form."""

import os
import shutil
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, get_args

from stepline.errors import StoreError

NeedKind = Literal[
    "package",
    "java",
    "release",
    "samples",
    "labels",
    "split",
    "videos",
    "transcripts",
    "features",
    "weights",
    "predictions",
    "config",
    "key",
    "score",
]
"""The kinds of needs, in the order in which a line names them."""


@dataclass(frozen=True, order=True)
class Need:
    """One missing thing; docs/architecture.md, "What is absent", lists the kinds and how to provide each.

    Its text form is ``weights:s3d-pss`` or, for a value that the configuration must have,
    ``config:oepp.llm.model=NAME``. what: the name after the kind; "" for Java. value: only for ``config``.
    """

    kind: NeedKind
    what: str = ""
    value: str = ""

    def __str__(self) -> str:
        """Return the text form, as in scores and tables."""
        return f"{self.kind}{self.what and ':'}{self.what}{self.value and '='}{self.value}"

    @classmethod
    def parse(cls, text: str) -> "Need":
        """Return the need of a text form; raise StoreError if the text is invalid."""
        kind, _, what = text.partition(":")
        if kind not in get_args(NeedKind):
            raise StoreError(f"{text!r} is not a need; its kind must be one of {', '.join(get_args(NeedKind))}")
        what, _, value = what.partition("=") if kind == "config" else (what, "", "")
        return cls(kind, what, value)  # type: ignore[arg-type]


def how_to_install(extra: str = "all") -> str:
    """Return the command that installs an extra of the package: in a checkout, or where a release is installed."""
    if (Path(__file__).resolve().parents[2] / "constraints.txt").exists():
        return f"pip install -c constraints.txt -e '.[{extra}]'"
    return f"pip install 'stepline[{extra}]=={sys.modules['stepline'].__version__}'"


def absent(*needs: Need) -> tuple[Need, ...]:
    """Return the needs of Java and packages that are not installed; none if jobs have their own environments."""
    if os.environ.get("STEPLINE_CONDA"):
        return ()
    return tuple(each for each in needs if not (find_spec(each.what) if each.what else shutil.which(each.kind)))


def in_order(needs: Iterable[Need]) -> tuple[Need, ...]:
    """Return the needs by kind, in the order of ``NeedKind``, without duplicates."""
    kinds = get_args(NeedKind)
    return tuple(sorted(dict.fromkeys(needs), key=lambda need: kinds.index(need.kind)))
