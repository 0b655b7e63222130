"""The forms with the times of rows, read with NumPy and h5py alone."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stepline.cli import main
from stepline.errors import StoreError
from stepline.features.bank import Bank
from stepline.features.export import TIMED, Form, export
from stepline.features.importing import Folder
from tests.features.export.conftest import CLIPS, GAP, SPEC, rows

h5py = pytest.importorskip("h5py")


@dataclass
class Read:
    """An export. about: the values of all videos. videos: by name, the rows, their times, and the other values."""

    about: dict[str, Any]
    videos: dict[str, tuple[np.ndarray, np.ndarray, dict[str, Any]]]


def read(form: Form) -> Read:
    if form == "npy":
        about = json.loads(Path("out/export.json").read_text())
        with np.load("out/times.npz") as times:
            assert {*times} == about["videos"].keys()
            videos = {
                name: (np.load(f"out/{name}.npy"), times[name], values) for name, values in about.pop("videos").items()
            }
        return Read(about, videos)
    with h5py.File("out/features.h5") as file:
        about = {"spec": json.loads(file.attrs["spec"]), "hop_s": file.attrs["hop_s"]}
        videos = {
            name: (
                file[name][()],
                file[name].attrs["times_s"],
                {"whole": file[name].attrs["whole"], "gaps": json.loads(file[name].attrs["gaps"])},
            )
            for name in file
        }
    return Read(about, videos)


@pytest.fixture(params=TIMED)
def form(request: pytest.FixtureRequest) -> Form:
    return request.param  # type: ignore[no-any-return]


def test_rows_have_their_times_and_their_spec(whole: Bank, form: Form) -> None:
    export(whole, Path("out"), form, suffix=".mp4")
    found = read(form)
    assert found.about == {"spec": SPEC.record(), "hop_s": 0.5}
    assert found.videos.keys() == {"a.mp4", "b.mp4.mp4", "ö.mp4"}
    for video in whole:
        part, times_s, about = found.videos[f"{video}.mp4"]
        assert (part.dtype, np.array_equal(part, whole[video])) == (np.float16, True)
        assert times_s.tolist() == [[k * 0.5, (k + 1) * 0.5] for k in range(len(part))]
        assert about == {"whole": True, "gaps": []}


def test_rows_of_parts_have_their_times(parted: Bank, form: Form) -> None:
    export(parted, Path("out"), form)
    found = read(form).videos
    part, times_s, about = found["damaged"]
    assert np.array_equal(part, np.concatenate([rows(2), rows(3, 1)]))
    assert times_s[:, 0].tolist() == [0, 0.5, 2, 2.5, 3]
    assert about == {"whole": False, "gaps": [[*GAP]]}
    assert (found["spans"][1].tolist(), found["spans"][2]["whole"]) == ([[7.5, 8.0]], False)


def test_listed_clips_have_their_times(clipped: Bank, form: Form) -> None:
    export(clipped, Path("out"), form)
    part, times_s, about = read(form).videos["a"]
    for row, (start_s, end_s) in zip(part, times_s, strict=True):
        assert np.array_equal(row, clipped.clip("a", start_s, end_s))
    assert ({tuple(each) for each in times_s.tolist()}, about["whole"]) == ({*CLIPS}, False)


def test_a_video_of_hours_has_the_times_of_all_rows(whole: Bank, form: Form, monkeypatch: pytest.MonkeyPatch) -> None:
    times_s = np.arange(20_000, dtype=float).reshape(-1, 2)
    monkeypatch.setattr("stepline.features.export.job.Export.times_s", lambda job, video: times_s)
    export(whole.without({"b.mp4", "ö"}), Path("out"), form)
    assert np.array_equal(read(form).videos["a"][1], times_s)


def test_rows_of_parts_are_not_imported_as_rows_of_the_whole(
    parted: Bank, form: Form, capsys: pytest.CaptureFixture[str]
) -> None:
    export(parted, Path("out"), form)
    assert [*Folder(Path("out"))] == ["damaged", "spans"]
    with pytest.raises(StoreError, match="spans.* has rows of only parts of its video: remove it"):
        Folder(Path("out"))["spans"]
    assert main(["bank", "import", "out", "--name", "theirs", "--dataset", "mine", "--hop-s", "0.5"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_another_file_of_this_name_is_no_index(whole: Bank) -> None:
    export(whole, Path("out"), "npy")
    for content in ("[]", '{"videos": [1]}', '{"videos": {"a": 1}}'):
        Path("out/export.json").write_text(content)
        assert np.array_equal(Folder(Path("out"))["a"], whole["a"])
