"""Python files with modules beside them: what they are known by, and which modules they import."""

import sys
from pathlib import Path

import pytest

from stepline import remembered
from stepline.backbones import file
from stepline.backbones.beside import code_sha256
from stepline.backbones.torchvision import make_importable_on_import
from stepline.errors import ConfigError
from stepline.io import write_text
from tests.backbones.test_file import CODE

MODULES = {
    "mine.py": (
        "import os, numpy.linalg, top\nfrom pkg import named, sub\nfrom spread import *\n"
        "def load(spec, files):\n    from late import N\n    return N\n"
    ),
    "top.py": "import second\n",
    "second.py": "",
    "late.py": "N = 1\n",
    "pkg/__init__.py": "from . import inner\nfrom .inner import x\nnamed = 1\n",
    "pkg/inner.py": "from ..beyond import y\nfrom .deep.leaf import z\n",
    "pkg/sub.py": "",
    "pkg/deep/leaf.py": "",
    "spread/__init__.py": "__all__ = ['part']\n",
    "spread/part.py": "",
    "pkg/unused.py": "",
    "unused.py": "",
}

EVERYTHING = """
from typing import TypeVar
T = TypeVar("T", bound=int | str)
@(lambda f: f)
class A(dict[str, T], metaclass=type):
    a: int = 0x_ff
    async def f(self, /, x: T, *y: int, z=..., **w) -> None:
        async for i in x:
            yield f"{i!r:>{z}} {i=}" "b" rf"\\c" if not i else -1.5e3j
def g(x):
    match x:
        case {"a": [1, *_], **rest} | A(a=None) if (n := x): del n
    try: raise ValueError from None
    except* (ValueError, TypeError) as e: global y
    with open(x) as f, f: return [*x, {i: j for i, j in {**x}.items()}][1:, ::2]
"""


@pytest.fixture
def path() -> Path:
    """A file of which all but the modules that are named ``unused`` are part."""
    for name, text in MODULES.items():
        write_text(f"nets/{name}", text)
    return Path("nets/mine.py")


def test_a_file_is_known_by_itself_and_by_all_that_it_imports_beside_it(path: Path) -> None:
    found = dict(code_sha256(path))
    assert {*found} == {name for name in MODULES if "unused" not in name}
    for name in MODULES:
        changed = path.parent / name
        changed.write_text(f"{MODULES[name]}a = 1\n")
        differ = {each for each, sha256 in code_sha256(path) if sha256 != found[each]}
        assert differ == ({name} if "unused" not in name else set())
        changed.write_text(MODULES[name])
    assert dict(code_sha256(path.absolute())) == found


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        ("x = 1", "# -*- coding: utf-8 -*-\nx = (1)  # one\n", True),
        ('def f():\n    "doc"\n    return 1', 'def f():\n\n    """Other."""\n    return 1', True),
        ('def f():\n    "doc"\nx = f.__doc__', 'def f():\n    "other"\nx = f.__doc__', False),
        ("x = 1", "x = 1.0", False),
        ("x = 'é'", "x = 'e'", False),
        ("x = (", "x = ( ", False),
        ("x = '\0'", "x = '\0' ", False),
    ],
)
def test_comments_docstrings_and_layout_do_not_count(before: str, after: str, same: bool) -> None:
    path = Path("mine.py")
    path.write_text(before, encoding="utf-8")
    found = code_sha256(path)
    path.write_text(after, encoding="utf-8")
    assert (code_sha256(path) == found) == same


def test_a_file_that_did_not_change_is_not_parsed_again(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remembered, "SETTLED_S", -1.0)
    monkeypatch.setenv("STEPLINE_RUN", "1")
    found = code_sha256(path)
    monkeypatch.setattr("stepline.backbones.beside._parsed", lambda *_: pytest.fail("parsed"))
    assert code_sha256(path) == found


def test_code_has_one_sha256_in_all_versions_of_python_and_compiled_modules_count_by_their_bytes() -> None:
    write_text("mine.py", EVERYTHING)
    ((_, sha256),) = code_sha256(Path("mine.py"))
    assert sha256[:16] == "f9553d2efd57fe73"
    write_text("mine.py", "import fast\n")
    write_text("fast.so", "1")
    found = code_sha256(Path("mine.py"))
    assert [name for name, _ in found] == ["fast.so", "mine.py"]
    write_text("fast.so", "2")
    assert code_sha256(Path("mine.py")) != found


def test_files_of_two_folders_import_each_what_is_beside_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their modules have the same name, which an imported one has too."""
    sentinel = type(sys)("helper")
    monkeypatch.setitem(sys.modules, "helper", sentinel)
    text = CODE["mine.py"].replace("dimension=48", "dimension=N").replace("from torch import nn", "import helper")
    text = text.replace("nn.Sequential(nn.AdaptiveAvgPool3d((1, 4, 4)), nn.Flatten())", "helper.made()")
    for name, number in (("one", 1), ("two", 2)):
        write_text(f"{name}/mine.py", f"from helper import N\n{text}")
        write_text(f"{name}/helper.py", f"from torch import nn\nN = {number}\ndef made(): return nn.Linear(N, 1)\n")
    make_importable_on_import()
    before = [*sys.meta_path]
    for _ in range(2):
        for name, number in (("one", 1), ("two", 2)):
            path = Path(name, "mine.py")
            spec = file.spec("mine", path)
            assert spec.dimension == number
            assert file.load(spec, {"mine.py": path}).in_features == number
    assert sys.modules["helper"] is sentinel
    assert sys.meta_path == before


def test_a_file_that_is_named_as_a_library_imports_that_and_nothing_else_beside_it() -> None:
    write_text("torch.py", CODE["mine.py"])
    path = Path("torch.py")
    assert [name for name, _ in code_sha256(path)] == ["torch.py"]
    assert type(file.load(file.spec("mine", path), {"torch.py": path})).__module__.startswith("torch.nn.")
    write_text("mine.py", f"from importlib import import_module\nimport_module('beside')\n{CODE['mine.py']}")
    write_text("beside.py", "")
    with pytest.raises(ConfigError, match="No module named 'beside'"):
        file.spec("mine", Path("mine.py").absolute())
