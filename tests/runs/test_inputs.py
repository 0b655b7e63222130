from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stepline.availability import Record, write_availability
from stepline.benchmark import Entry
from stepline.needs import Need
from tests.benchmark.tiny import NUMBERS, Tiny, TinyInputs, declared, job, tiny, write_banks, write_releases

TWO = {"features": {"net": ["net", "other"]}}


@pytest.fixture(autouse=True)
def _releases() -> None:
    write_releases()


@pytest.fixture
def banks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    write_banks(tmp_path_factory.mktemp("banks"))
    return tmp_path_factory.mktemp("more")


def inputs(folder: Path, entry: str = "three", **options: Any) -> TinyInputs:
    made = tiny(folder, **options)
    return made.inputs(job(made, entry))


def videos(of: TinyInputs, split: str) -> list[str]:
    return list(dict.fromkeys(unit.video for unit in of.used(split)))


class TestTruth:
    def test_all_units_of_a_split_are_read_once(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        of, asked = inputs(tmp_path), []
        original = TinyInputs.load
        monkeypatch.setattr(TinyInputs, "load", lambda self, split: asked.append(split) or original(self, split))
        for _ in range(2):
            assert [(unit.video, unit.value) for unit in of.truth("test")] == [("e", 2), ("e", 4), ("e", 6), ("f", 8)]
        assert asked == ["test"]

    def test_a_subset_holds_whole_videos(self, tmp_path: Path) -> None:
        assert videos(inputs(tmp_path), "train") == ["a", "b", "c"]
        of = inputs(tmp_path, subset={"fraction": 0.5, "seed": 0})
        (kept,) = videos(of, "test")
        assert [unit.value for unit in of.used("test")] == NUMBERS[kept]
        assert len(of.truth("test")) == 4

    @pytest.mark.parametrize(
        ("entry", "fit", "predict"),
        [("three", ["train"], ["test", "train"]), ("fitted", ["train", "val"], ["test", "train", "val"])],
    )
    def test_a_fit_reads_no_evaluated_split(
        self, tmp_path: Path, entry: str, fit: list[str], predict: list[str]
    ) -> None:
        of = inputs(tmp_path, entry)
        assert (of.splits("fit"), of.splits("predict")) == (fit, predict)

    def test_splits_are_those_of_the_entry(self, tmp_path: Path) -> None:
        pooled = {"kind": "constant", "settings": {"number": 3}, "splits": ["val", "test"]}
        made = tiny(tmp_path, declared(entries={"three": pooled}))
        assert made.inputs(job(made, "three")).splits("predict") == ["val", "test", "train"]

    def test_a_split_that_the_subset_leaves_empty_is_missing(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        of = inputs(tmp_path, subset={"fraction": 0.5, "seed": 0})
        monkeypatch.setattr(Tiny, "chosen", lambda self, dataset: frozenset({"a"}))
        assert (of.missing("fit"), of.missing("predict")) == ((), (Need("split", "test"),))


class TestFeatures:
    def test_a_unit_is_used_where_every_bank_has_its_video(self, tmp_path: Path, banks: Path) -> None:
        of = inputs(tmp_path, "fitted")
        assert (videos(of, "test"), of.missing("fit"), of.missing("predict")) == (["e", "f"], (), ())
        del of.banks[0].blocks["e"]
        assert (videos(of, "test"), of.missing("predict")) == (["f"], ())

    def test_a_split_of_which_no_unit_is_whole_needs_videos(self, tmp_path: Path, banks: Path) -> None:
        write_banks(banks, *NUMBERS, name="other")
        of = inputs(tmp_path, "fitted", **TWO)
        del of.banks[0].blocks["e"], of.banks[1].blocks["f"]
        assert of.missing("predict") == (Need("videos", "first"),)

    def test_a_split_of_which_a_bank_has_nothing_needs_an_import(self, tmp_path: Path, banks: Path) -> None:
        of = inputs(tmp_path, "fitted")
        del of.banks[0].blocks["d"]
        assert of.missing("fit") == of.missing("predict") == (Need("features", "net/first"),)

    def test_a_fit_is_not_missing_test_videos(self, tmp_path: Path, banks: Path) -> None:
        of = inputs(tmp_path, "fitted")
        for video in "ef":
            del of.banks[0].blocks[video]
        assert of.missing("fit") == ()
        assert of.missing("predict") != ()

    def test_a_bank_of_other_ids_needs_an_import(self, tmp_path: Path, banks: Path) -> None:
        write_banks(banks, *NUMBERS, name="other")
        of = inputs(tmp_path, "fitted", **TWO)
        assert of.missing("predict") == ()
        for video in NUMBERS:
            of.banks[1].blocks[f"v_{video}"] = of.banks[1].blocks.pop(video)
        assert of.missing("predict") == (Need("features", "other/first"),)

    def test_rows_are_resized_and_stand_side_by_side(self, tmp_path: Path, banks: Path) -> None:
        write_banks(banks, *NUMBERS, name="other", scale=10)
        of = inputs(tmp_path, "fitted", **TWO)
        rows = of.resized("e", 7)
        assert (rows.shape, rows.dtype, of.dimension) == ((7, 4), np.float32, 4)
        assert (rows == [2, 2, 20, 20]).all()
        assert of.imported == ["net", "other"]
        one = inputs(tmp_path, "fitted", features={"net": ["other"]})
        assert (one.resized("e", 7) == rows[:, 2:]).all()


class TestDecoded:
    def of(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> TinyInputs:
        """Return the inputs of an entry that reads the videos themselves."""
        made = tiny(folder)
        monkeypatch.setattr(Tiny, "decoding", lambda self: [])
        entry: Entry = made.entries["three"]
        object.__setattr__(entry, "kind", type(entry.kind)(**vars(entry.kind) | {"decoded": True}))
        return made.inputs(job(made, "three"))

    def test_a_unit_is_used_where_its_file_is_there(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        of = self.of(tmp_path, monkeypatch)
        file = tmp_path / "e.mp4"
        file.write_bytes(b"")
        (path,) = of.footage.pipeline.videos.availability
        gone = tmp_path / "gone.mp4"
        there = [Record(video=video, status="present", path=str(each)) for video, each in (("e", file), ("f", gone))]
        write_availability(path, [*there, Record(video="a", status="failed")])
        assert videos(of, "test") == ["e"]
        assert of.video_file("e") == file
        assert of.video_file("f") is None
        assert of.video_file("a") is None
