import argparse
import errno
import os
from pathlib import Path

import numpy as np
import pytest

from stepline.cli.parser import make_parser
from stepline.errors import ConfigError, StoreError
from stepline.features.bank import Bank
from stepline.features.export import FORMS, TIMED, Form, export
from stepline.features.export.job import Export
from tests.features.export.conftest import rows

UNTIMED = [form for form in FORMS if form not in TIMED]


def needs(form: Form) -> None:
    pytest.importorskip({"pt": "torch", "hdf5": "h5py"}.get(form, "numpy"))


def test_the_command_line_offers_all_forms() -> None:
    def actions(parser: argparse.ArgumentParser, name: str) -> argparse.ArgumentParser:
        of = next(each for each in parser._actions if isinstance(each, argparse._SubParsersAction))
        return of.choices[name]

    parser = actions(actions(make_parser(), "bank"), "export")
    assert next(each.choices for each in parser._actions if each.dest == "form") == FORMS


def test_files_of_a_video_are_what_others_read(whole: Bank) -> None:
    for form in ("npy", "dict", "hdf5", "pt"):
        needs(form)
        export(whole, Path(form), form, prefix="x_", suffix=".mp4")
    import h5py
    import torch

    assert np.array_equal(np.load("npy/x_b.mp4.mp4.npy"), rows(300, 1))
    held = np.load("dict/x_a.mp4.npy", allow_pickle=True).item()
    assert (held["name"], held["frames_features"].tolist()) == ("a", rows(5, 3).tolist())
    with h5py.File("hdf5/features.h5") as file:
        assert (list(file), file["x_ö.mp4"][()].tolist()) == (
            ["x_a.mp4", "x_b.mp4.mp4", "x_ö.mp4"],
            rows(2, 2).tolist(),
        )
    assert torch.load("pt/x_a.mp4.pt", weights_only=True).tolist() == rows(5, 3).tolist()
    assert Path("pt/x_a.mp4.pt").stat().st_size < 3000


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("naming", [{"prefix": "../"}, {"prefix": "x/"}, {"suffix": "/x"}])
def test_names_are_of_one_file(whole: Bank, form: Form, naming: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match="is not a plain file name: give another --prefix or --suffix$"):
        export(whole, Path("out"), form, **naming)
    assert not Path("out").exists()


@pytest.mark.parametrize("form", UNTIMED)
def test_forms_without_times_have_whole_videos_only(parted: Bank, form: Form) -> None:
    with pytest.raises(StoreError, match="^damaged has features of only parts .*`--form npy` and `--form hdf5`"):
        export(parted, Path("out"), form)
    assert not Path("out").exists()


def test_a_bank_without_videos_is_one_line(whole: Bank) -> None:
    with pytest.raises(StoreError, match="^there is no video to export$"):
        export(whole.without(whole), Path("out"), "npy")
    assert not Path("out").exists()


@pytest.mark.parametrize("kind", [OSError, RuntimeError])
def test_a_library_that_only_quotes_a_full_disk_is_one_line(
    whole: Bank, monkeypatch: pytest.MonkeyPatch, kind: type[Exception]
) -> None:
    def full(job: Export) -> None:
        raise kind(f"write failed: {os.strerror(errno.ENOSPC)}")

    monkeypatch.setattr("stepline.features.export._WRITE", {"hdf5": full})
    with pytest.raises(OSError, match="No space left") as raised:
        export(whole, Path("out"), "hdf5")
    assert (raised.value.errno, raised.value.filename) == (errno.ENOSPC, "out")


@pytest.mark.parametrize("form", FORMS)
def test_the_same_bank_gives_the_same_bytes(whole: Bank, form: Form) -> None:
    needs(form)
    for out in ("one", "two"):
        export(whole, Path(out), form)
    export(whole, Path("two"), form)
    files = [sorted(path.relative_to(out) for path in Path(out).rglob("*.*")) for out in ("one", "two")]
    assert files[0] == files[1]
    assert all(Path("one", file).read_bytes() == Path("two", file).read_bytes() for file in files[0])
