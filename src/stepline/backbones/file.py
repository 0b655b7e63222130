"""A model by file: a user's Python file that declares the input of a network and loads the network.

The file is the user's code and is executed: once to read its ``SPEC``, and again in the process that computes.
"""

import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from stepline.backbones.beside import Code, importing
from stepline.backbones.torchvision import make_importable_on_import
from stepline.errors import ConfigError
from stepline.spec import ClipSpec, TextSpec, fixed_size

AnySpec = TypeVar("AnySpec", ClipSpec, TextSpec)


def spec(name: str, path: Path) -> ClipSpec:
    """Return the file's ``SPEC`` under the configured name, with the sha256 of its code next to those of its weights.

    The code includes the local imports of the file, see ``code_sha256``. Raises ConfigError if the file is absent,
    cannot be imported, or has no valid ``SPEC`` or no ``load``.
    """
    found = _named(name, path, "SPEC", ClipSpec, "load")
    if not fixed_size(found.steps):
        raise ConfigError(
            f"{path}: the steps of SPEC, {found.steps}, keep the size of the video: end them with one of "
            '("exact", width, height, METHOD) or ("centre_crop", size, ROUNDING)'
        )
    return found


def text_spec(name: str, path: Path) -> TextSpec:
    """Return the file's ``TEXT``, the spec of its text tower, as ``<name>-text``; raises the errors of ``spec``."""
    return _named(f"{name}-text", path, "TEXT", TextSpec, "load_text")


def load(spec: ClipSpec, files: Mapping[str, Path]) -> Callable[..., Any]:
    """Return the result of the file's ``load(spec, files)``: a ``torch.nn.Module`` or a function of arrays.

    files: the files of its weights and the Python file itself. Raises ConfigError if the call fails or returns anything
    else.
    """
    path = _python(files)
    made = _called(path, "load", spec, files)
    if not callable(made):
        raise ConfigError(
            f"{path}: load(spec, files) returned a {type(made).__name__}: return a torch.nn.Module or a function"
        )
    return made  # type: ignore[no-any-return]


def load_text(spec: TextSpec, files: Mapping[str, Path]) -> Any:
    """Return the result of the file's ``load_text(spec, files)``, a ``stepline.features.text.TextEncoder``.

    Raises ConfigError if the call fails.
    """
    return _called(_python(files), "load_text", spec, files)


def _named(name: str, path: Path, what: str, kind: type[AnySpec], loader: str) -> AnySpec:
    code: Code
    with importing(path) as code:
        module = _imported(path)
        found: Any = _defined(module, path, what)
        if not isinstance(found, kind):
            raise ConfigError(f"{path}: {what} is a {type(found).__name__}, not a stepline.spec.{kind.__name__}")
        _defined(module, path, loader)
        return replace(found, name=name, architecture="file", weights_sha256=(*found.weights_sha256, *code))


def _python(files: Mapping[str, Path]) -> Path:
    return next(path for name, path in files.items() if name.endswith(".py"))


def _called(path: Path, name: str, spec: ClipSpec | TextSpec, files: Mapping[str, Path]) -> Any:
    with importing(path):
        load = _defined(_imported(path), path, name)
        try:
            return load(spec, files)
        except (Exception, SystemExit) as error:
            raise ConfigError(f"{path}: {name}() failed: {_line(error)}") from error


def _defined(module: ModuleType, path: Path, name: str) -> Any:
    if not hasattr(module, name):
        raise ConfigError(f"{path} defines no {name}: see docs/own-backbones.md")
    return getattr(module, name)


def _imported(path: Path) -> ModuleType:
    found = spec_from_file_location(f"stepline_file_{path.stem}", path)
    if not path.is_file() or found is None or found.loader is None:
        raise ConfigError(
            f"{path} is not a Python file: `path` of a backbone must name one, relative to the work folder"
        )
    module = module_from_spec(found)
    sys.modules[module.__name__] = module  # dataclasses look up their module
    make_importable_on_import()
    try:
        found.loader.exec_module(module)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from error
    except (Exception, SystemExit) as error:
        hint = "; move imports that only the computation needs into load()" if isinstance(error, ImportError) else ""
        raise ConfigError(f"{path} cannot be imported: {_line(error)}{hint}") from error
    return module


def _line(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
