"""The source of a method: its module, and what that imports of its benchmark and of the models."""

import ast
import hashlib
from functools import cache
from pathlib import Path

import stepline

ROOT = Path(stepline.__file__).parent
MODELS = "stepline.models"
"""Modules that are part of the methods that import them."""


def source_digest(module: str, package: str, folder: Path) -> str:
    """Return the first 8 hex digits of the sha256 of a method's source; comments, docstrings and layout play no part.

    module: of the method, in the ``package`` of its benchmark, whose files are in ``folder``. Nothing is imported.
    """
    found: dict[str, str] = {}
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name not in found and (path := _file(name, package, folder)):
            found[name], imported = _read(path, name)
            waiting += imported
    return hashlib.sha256("\n".join(found[name] for name in sorted(found)).encode()).hexdigest()[:8]


def _file(module: str, package: str, folder: Path) -> Path | None:
    for prefix, place in ((package, folder), (MODELS, ROOT / "models")):
        if module.startswith(f"{prefix}."):
            path = place.joinpath(*module.removeprefix(f"{prefix}.").split("."))
            return next((file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file()), None)
    return None


@cache
def _read(path: Path, module: str) -> tuple[str, tuple[str, ...]]:
    """Return a module's code without comments and docstrings, and the names of what it imports."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    imported: list[str] = []
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if (
            isinstance(body, list)
            and body
            and isinstance(body[0], ast.Expr)
            and isinstance(body[0].value, ast.Constant)
        ):
            body[0] = ast.Pass()
        if isinstance(node, ast.ImportFrom):
            parent = module.rsplit(".", node.level)[0] if node.level else ""
            base = ".".join(filter(None, [parent, node.module]))
            imported += [base, *(f"{base}.{each.name}" for each in node.names)]
    return ast.dump(tree), tuple(imported)
