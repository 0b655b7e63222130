"""The verb `head check` and its exit codes."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

from stepline.cli import main
from stepline.models import parity
from stepline.models.parity import compared

ONE, FOUR = np.ones(4, np.float32), np.full(4, 4)


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Files and a head with the given outputs; the command that compares them with ones and fours."""
    (tmp_path / "manifest.json").write_text("{}")
    np.savez(tmp_path / "golden.npz", **{"case/out": ONE, "case/ids": FOUR, "case/in": ONE})

    def with_outputs(out: Any = ONE, ids: Any = FOUR) -> list[str]:
        made = [compared("case/out", out, ONE, 1e-5), compared("case/ids", ids, FOUR, 1e-5)]
        module = SimpleNamespace(outputs=lambda *_: iter(made), is_input=lambda name: name == "case/in")
        monkeypatch.setattr(parity, "import_module", lambda _: module)
        return command(tmp_path / "manifest.json", tmp_path / "golden.npz")

    return with_outputs


def command(manifest: Path, golden: Path, name: str = "pdvc") -> list[str]:
    return ["head", "check", name, "--manifest", str(manifest), "--golden", str(golden)]


def test_the_verb_prints_every_error_beside_what_is_allowed(files: Callable[..., list[str]], capsys: Any) -> None:
    assert main(files(ONE * np.float32(1 + 4e-6))) == 0
    out = capsys.readouterr().out.splitlines()
    assert [line.split() for line in out[:2]] == [
        ["case/out", "4.1e-06", "of", "1.0e-05"],
        ["case/ids", "0.0e+00", "of", "0.0e+00"],
    ]
    assert out[2] == "pdvc is the released head: no error is above what is allowed, the largest 4.1e-06 of 1.0e-05"


@pytest.mark.parametrize("out", [ONE * np.float32(1 + 2e-5), ONE * np.nan, ONE[:2]])
def test_an_error_above_what_is_allowed_is_exit_code_1(out: Any, files: Callable[..., list[str]], capsys: Any) -> None:
    assert main(files(out)) == 1
    printed = capsys.readouterr()
    assert printed.out.splitlines()[0].endswith(" !")
    assert printed.err == "error: pdvc is not the released head: 1 of 2 outputs differ, as case/out\n"


def test_of_whole_numbers_none_may_differ(files: Callable[..., list[str]], capsys: Any) -> None:
    assert main(files(ids=np.array([4, 4, 4, 5]))) == 1
    assert "1 of 2 outputs differ, as case/ids" in capsys.readouterr().err


def test_what_is_not_a_number_is_so_in_both() -> None:
    """As the mean overlap of the pairs of a single segment."""
    nan = np.array([1.0, np.nan], np.float32)
    assert compared("x", nan, nan, 1e-5).agrees
    assert not compared("x", np.array([np.nan, 1.0], np.float32), nan, 1e-5).agrees
    assert not compared("x", np.ones(2, np.float32), nan, 1e-5).agrees


def test_what_cannot_be_compared_is_one_line(files: Callable[..., list[str]], tmp_path: Path, capsys: Any) -> None:
    arguments = files()
    manifest, golden = tmp_path / "manifest.json", tmp_path / "golden.npz"
    whole = golden.read_bytes()
    np.savez(tmp_path / "more.npz", **{"case/out": ONE, "case/other": ONE})
    np.savez(tmp_path / "inputs.npz", **{"case/in": ONE})
    (tmp_path / "half.npz").write_bytes(whole[: len(whole) // 2])
    for given, message in (
        (command(manifest, golden, "uvw"), "head 'uvw' has no parity check; choose from pdvc"),
        (command(tmp_path / "no.json", golden), "no.json is not there"),
        (command(manifest, tmp_path / "more.npz"), "more.npz holds outputs that pdvc has not: case/other"),
        (command(manifest, tmp_path / "inputs.npz"), "inputs.npz holds no outputs"),
        (command(manifest, tmp_path / "half.npz"), "half.npz is damaged or holds no arrays"),
    ):
        assert main(given) == 2, given
        lines = capsys.readouterr().err.splitlines()
        assert len(lines) == 1
        assert message in lines[0]
    assert main(arguments) == 0


def test_another_head_s_files_are_one_line(parity: Path, capsys: Any) -> None:
    pdvc, other = parity / "pdvc", parity / "umt"
    for manifest, golden in ((other, pdvc), (pdvc, other)):
        assert main(command(manifest / "manifest.json", golden / "golden_a.npz")) == 2
        assert len(capsys.readouterr().err.splitlines()) == 1


def test_every_head_has_a_module() -> None:
    for name in parity.CHECKED:
        module = parity.import_module(f"stepline.models.parity.{name}")
        assert callable(module.outputs)
        assert callable(module.is_input)
