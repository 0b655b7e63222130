"""Digests of the source of methods and scoring, including imports from their benchmark, models and metrics."""

import ast
import hashlib
import inspect
import textwrap
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from stepline.syntax import code_text, imported

ROOT = Path(__file__).parents[1]
SHARED = ("models", "metrics")
"""Packages of Stepline whose modules count as part of the methods that import them."""


def source_digest(method: Callable[[], Any], package: str, folder: Path, *, apart: str) -> str:
    """Return the first 8 hex digits of the sha256 of a method's source, without comments, docstrings and layout.

    method: of a `Kind`. package: of the benchmark, with its files in ``folder``. apart: the module with the benchmark
    class. Neither it nor the module of ``method`` counts, because both import all methods, unless the method is defined
    there. Nothing is imported.
    """
    own = method.__module__
    waiting = [name for name in _imported_by(method) if _file(name, package, folder)] or [own]
    return _digest(_texts(waiting, package, folder, {apart, own} - {*waiting}))


def scoring_digest(hooks: Iterable[Callable[..., Any]], package: str, folder: Path, *, apart: Collection[str]) -> str:
    """Return the same digest for scoring functions: their own code and their imports.

    apart: modules that do not count, because they import all methods.
    """
    texts = []
    for hook in hooks:
        own = code_text(textwrap.dedent(inspect.getsource(hook)))
        texts += [own, *_texts([*_imported_by(hook)], package, folder, apart)]
    return _digest(texts)


def _digest(texts: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:8]


def _imported_by(function: Any) -> Iterator[str]:
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    return imported(tree, function.__globals__["__package__"])


def _texts(waiting: list[str], package: str, folder: Path, left_out: Collection[str]) -> list[str]:
    """Return the code of the modules and their imports, sorted by name."""
    found: dict[str, str] = {}
    while waiting:
        name = waiting.pop()
        if name not in found and name not in left_out and (path := _file(name, package, folder)):
            found[name], others = _read(path, name)
            waiting += others
    return [found[name] for name in sorted(found)]


def _file(module: str, package: str, folder: Path) -> Path | None:
    for prefix, place in ((package, folder), *((f"stepline.{name}", ROOT / name) for name in SHARED)):
        if module == prefix or module.startswith(f"{prefix}."):
            path = place.joinpath(*module.removeprefix(prefix).split("."))
            return next((file for file in (path / "__init__.py", path.with_suffix(".py")) if file.is_file()), None)
    return None


@cache
def _read(path: Path, module: str) -> tuple[str, tuple[str, ...]]:
    """Return a module's code as text and the names of its imports, including those inside functions."""
    source = path.read_text(encoding="utf-8")
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    return code_text(source), tuple(imported(ast.parse(source), package))
