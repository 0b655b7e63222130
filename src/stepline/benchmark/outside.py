"""Errors in the code of a benchmark's folder, as one line that names the place."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from traceback import extract_tb
from typing import TYPE_CHECKING, Any

from stepline.errors import ConfigError, SteplineError

if TYPE_CHECKING:
    from stepline.benchmark.declared import Declared

PREFIX = "stepline_benchmark_"
"""The beginning of the name under which the package of a custom benchmark is imported; its key follows."""


@contextmanager
def one_line(plan: "Declared[Any]", hook: str) -> Iterator[None]:
    """Raise ConfigError with the place and the text of an error in a hook, unless it is a one-line error already."""
    try:
        yield
    except SteplineError:
        raise
    except Exception as error:
        raise ConfigError(f"{type(plan).__name__}.{hook}: {described(error, plan.folder)}") from error


def described(error: Exception, folder: Path) -> str:
    """Return the text of an error after the innermost line of the folder's code that led to it, if there is one."""
    text = how_to_import(error) or f"{type(error).__name__}{': ' if str(error) else ''}{error}"
    frames = [frame for frame in extract_tb(error.__traceback__) if Path(frame.filename).is_relative_to(folder)]
    return f"{frames[-1].filename}, line {frames[-1].lineno}: {text}" if frames else text


def how_to_import(error: Exception) -> str:
    """Return how to import the module that was not found, if it is of a custom benchmark; otherwise ""."""
    name = error.name or "" if isinstance(error, ModuleNotFoundError) else ""
    wanted, _, rest = name.partition(".")
    for module, package in sys.modules.items():
        if not (module.startswith(PREFIX) and hasattr(package, "__path__")):
            continue
        folder = Path(package.__path__[0])
        if wanted == module:
            return f"{folder} has no module {rest}"
        if wanted in {module.removeprefix(PREFIX), folder.name, *(file.stem for file in folder.glob("*.py"))}:
            return (
                f"no package {name} is installed: the modules of a benchmark import each other relatively, as in "
                "`from . import NAME` or `from .MODULE import NAME`"
            )
    return ""
