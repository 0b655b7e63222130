"""Digests of the source of methods and scoring, including what they import from their benchmark, models and metrics.

A digest is of the top-level statements of all these modules, without imports, comments, docstrings and layout, each
once and sorted. So it does not depend on the names of modules, nor on which of them has a statement.
"""

import ast
import hashlib
import inspect
import textwrap
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from stepline.syntax import imported, node_text

ROOT = Path(__file__).parents[1]
SHARED = ("models", "metrics")
"""Packages of Stepline whose modules count as part of the methods that import them."""


def source_digest(method: Callable[[], Any], package: str, folder: Path, *, apart: str) -> str:
    """Return the first 8 hex digits of the sha256 of a method's source.

    method: of a `Kind`. package: of the benchmark, with its files in ``folder``. apart: the module with the benchmark
    class. Neither it nor the module of ``method`` counts, because both import all methods, unless the method is defined
    there. Nothing is imported.
    """
    own = method.__module__
    waiting = [name for name in _imported_by(method) if _file(name, package, folder)] or [own]
    return _digest(_statements(waiting, package, folder, {apart, own} - {*waiting}))


def scoring_digest(hooks: Iterable[Callable[..., Any]], package: str, folder: Path, *, apart: Collection[str]) -> str:
    """Return the same digest for scoring functions: their own code and their imports.

    apart: modules that do not count, because they import all methods.
    """
    found: set[str] = set()
    for hook in hooks:
        found |= _code(ast.parse(textwrap.dedent(inspect.getsource(hook))))
        found |= _statements([*_imported_by(hook)], package, folder, apart)
    return _digest(found)


def _digest(statements: Collection[str]) -> str:
    return hashlib.sha256("\n".join(sorted(statements)).encode()).hexdigest()[:8]


def _imported_by(function: Any) -> Iterator[str]:
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    return imported(tree, function.__globals__["__package__"])


def _statements(waiting: list[str], package: str, folder: Path, left_out: Collection[str]) -> set[str]:
    """Return the statements of the modules and of their imports."""
    read: set[str] = set()
    found: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name not in read and name not in left_out and (path := _file(name, package, folder)):
            statements, others = _read(path, name)
            read.add(name)
            found |= statements
            waiting += others
    return found


def _file(module: str, package: str, folder: Path) -> Path | None:
    for prefix, place in ((package, folder), *((f"stepline.{name}", ROOT / name) for name in SHARED)):
        if module == prefix or module.startswith(f"{prefix}."):
            path = place.joinpath(*module.removeprefix(prefix).split("."))
            return next((file for file in (path / "__init__.py", path.with_suffix(".py")) if file.is_file()), None)
    return None


@cache
def _read(path: Path, module: str) -> tuple[frozenset[str], tuple[str, ...]]:
    """Return a module's statements and the names of its imports, including those inside functions."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names = tuple(imported(tree, module if path.name == "__init__.py" else module.rpartition(".")[0]))
    return _code(tree), names


def _code(tree: ast.Module) -> frozenset[str]:
    """Return the top-level statements as text, see the head of the file, and remove imports from the tree."""
    _WithoutImports().visit(tree)
    return frozenset(node_text(ast.Module([each], [])) for each in tree.body) - {node_text(ast.Module([], []))}


class _WithoutImports(ast.NodeTransformer):
    """Removes imports, also those in functions, and an `if` that has nothing else."""

    def visit(self, node: ast.AST) -> ast.AST | None:
        if isinstance(node, ast.Import | ast.ImportFrom):
            return None
        self.generic_visit(node)
        return None if isinstance(node, ast.If) and not node.body + node.orelse else node
