"""Digests of the source of methods and scoring, including what they import from their benchmark, models and metrics.

A digest is of the top-level statements of all these modules, without imports, comments, docstrings and layout, each
once and sorted. So it does not depend on the names of modules, nor on which of them has a statement.
"""

import ast
import hashlib
import inspect
import sys
import textwrap
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cache
from importlib.util import resolve_name
from pathlib import Path
from typing import Any

from stepline.syntax import imported, node_text

ROOT = Path(__file__).parents[1]
SHARED = ("models", "metrics", "benchmarks.segments")
"""Packages of Stepline whose modules count as part of the methods that import them."""
SCORING = ("values", "select")
"""The hooks of scoring."""


def source_digest(method: str, declared: Sequence[str]) -> str:
    """Return the first 8 hex digits of the sha256 of a method's source.

    method: as in `Kind`. declared: the modules with the benchmark class, first, and its bases. Neither they nor the
    package's module ``kinds`` count, because they are about all methods, unless the method is defined there; of a
    benchmark outside of Stepline, the readers count. Nothing is imported.
    """
    module, readers = module_of(method, declared[0]), _readers(declared[0])
    imports = imported(readers, package_of(declared[0]))
    found = _statements([module, *imports], declared[0], _apart(declared) - {module})
    return _digest(found | _code(readers))


def scoring_digest(hooks: Iterable[Callable[..., Any]], declared: Sequence[str]) -> str:
    """Return the same digest for scoring functions: their own code and their imports."""
    found: set[str] = set()
    for hook in hooks:
        tree = ast.parse(textwrap.dedent(inspect.getsource(hook)))
        found |= _statements([*imported(tree, hook.__globals__["__package__"])], declared[0], _apart(declared))
        found |= _code(tree)
    return _digest(found)


def _readers(declared: str) -> ast.Module:
    """Return the imports, functions and methods of the module of a benchmark outside of the package, except scoring.

    They read its release. The readers of the package's own benchmarks are in `stepline.datasets`, and do not count.
    """
    if declared.startswith("stepline."):
        return ast.Module([], [])
    tree = ast.parse(Path(inspect.getfile(sys.modules[declared])).read_text(encoding="utf-8"))
    bodies = [tree.body, *(each.body for each in tree.body if isinstance(each, ast.ClassDef))]
    kept = (ast.Import, ast.ImportFrom, ast.FunctionDef)
    found = [
        each for body in bodies for each in body if isinstance(each, kept) and getattr(each, "name", "") not in SCORING
    ]
    return ast.Module(list[ast.stmt](found), [])


def module_of(method: str, declared: str) -> str:
    """Return the name of the module of a kind's method. declared: the module with the benchmark class."""
    name = method.partition(":")[0]
    return name if name.startswith("stepline.") else resolve_name(f".{name}", package_of(declared))


def package_of(declared: str) -> str:
    """Return the name of a benchmark's package. declared: the module with the benchmark class."""
    return sys.modules[declared].__package__ or declared


def module_file(module: str, declared: str) -> Path | None:
    """Return the file of a module of the benchmark's package, of models or of metrics; None if there is none."""
    folder = Path(inspect.getfile(sys.modules[declared])).parent
    shared = ((f"stepline.{name}", ROOT.joinpath(*name.split("."))) for name in SHARED)
    for prefix, place in ((package_of(declared), folder), *shared):
        if module == prefix or module.startswith(f"{prefix}."):
            path = place.joinpath(*module.removeprefix(prefix).split("."))
            return next((file for file in (path / "__init__.py", path.with_suffix(".py")) if file.is_file()), None)
    return None


def _apart(declared: Sequence[str]) -> set[str]:
    return {*declared, f"{package_of(declared[0])}.kinds"}


def _digest(statements: Collection[str]) -> str:
    return hashlib.sha256("\n".join(sorted(statements)).encode()).hexdigest()[:8]


def _statements(waiting: list[str], declared: str, left_out: Collection[str]) -> set[str]:
    """Return the statements of the modules and of their imports."""
    read: set[str] = set()
    found: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name not in read and name not in left_out and (path := module_file(name, declared)):
            statements, others = _read(path, name)
            read.add(name)
            found |= statements
            waiting += others
    return found


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
