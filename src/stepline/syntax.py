"""Python code as text without comments, docstrings and layout, and the imports of code."""

import ast
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from importlib.util import resolve_name


@cache
def code_text(source: str | bytes) -> str:
    """Return a module's code as text that does not depend on comments, docstrings and layout.

    It is the same in all versions of Python. Raises SyntaxError or ValueError if it is not Python code, and
    RecursionError if it is nested too deeply.
    """
    return node_text(ast.parse(source))


def node_text(node: ast.AST) -> str:
    """Return the same for a part of the code."""
    return "".join(_text(node))


def _text(node: object) -> Iterator[str]:
    if isinstance(node, list):
        for item in node:
            yield from _text(item)
            yield ","
    elif isinstance(node, ast.AST):
        yield f"{type(node).__name__}("
        for name, value in ast.iter_fields(node):
            if name == "body" and isinstance(value, list):
                value = [statement for statement in value if not _is_docstring(statement)]
            if isinstance(node, ast.JoinedStr):
                value = [part for part in value if getattr(part, "value", None) != ""]  # Python 3.12.1 adds them
            if value is not None and value != [] and name != "kind":
                yield f"{name}="
                yield from _text(value)
        yield ")"
    else:
        yield repr(node)


def _is_docstring(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def imported(tree: ast.AST, package: str) -> Iterator[str]:
    """Yield the names of all imports, also within functions: modules, and imported names that may be submodules.

    package: the package of the code's module, or "". ``from a import *`` yields ``a.*``.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            with suppress(ImportError):  # a relative import beyond the top-level package
                base = resolve_name("." * node.level + (node.module or ""), package)
                yield from (base, *(f"{base}.{each.name}" for each in node.names))
