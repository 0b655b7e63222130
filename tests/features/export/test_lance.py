import json
import sys
from pathlib import Path

import numpy as np
import pytest

from stepline.errors import MissingError
from stepline.features.bank import Bank
from stepline.features.export import export
from tests.features.export.conftest import CLIPS, GAP, SPEC, rows

lance = pytest.importorskip("lance")


def test_lance_reads_the_rows(whole: Bank) -> None:
    export(whole, Path("out"), "lance")
    data = lance.dataset("out/features.lance")
    table = data.to_table()
    assert [str(field.type) for field in data.schema] == [
        *("string", "double", "double"),
        "fixed_size_list<item: halffloat>[7]",
    ]
    assert json.loads(data.schema.metadata[b"stepline.spec"]) == SPEC.record()
    videos = np.array(table["video"])
    for video, part in whole.items():
        mine = table.filter(videos == video)
        found = np.stack(mine["vector"].to_numpy())
        assert (found.dtype, np.array_equal(found, part)) == (np.float16, True)
        assert mine["start_s"].to_pylist() == [k * 0.5 for k in range(len(part))]
        assert mine["end_s"].to_pylist() == [k * 0.5 + 0.5 for k in range(len(part))]
    assert videos.tolist() == [*["a"] * 5, *["b.mp4"] * 300, *["ö"] * 2]


def test_lance_searches_the_rows(whole: Bank) -> None:
    export(whole, Path("out"), "lance")
    asked = {"column": "vector", "q": rows(300, 1)[123], "k": 1}
    (found,) = lance.dataset("out/features.lance").to_table(nearest=asked, filter="start_s > 1").to_pylist()
    assert (found["video"], found["start_s"], found["_distance"]) == ("b.mp4", 61.5, 0)


def test_rows_of_parts_have_their_times(parted: Bank) -> None:
    export(parted, Path("out"), "lance")
    table = lance.dataset("out/features.lance").to_table()
    assert table["video"].to_pylist() == [*["damaged"] * 5, "spans"]
    assert table["start_s"].to_pylist() == [0, 0.5, 2, 2.5, 3, 7.5]
    assert json.loads(table.schema.metadata[b"stepline.gaps"]) == {"damaged": [[*GAP]]}


def test_listed_clips_have_their_times(clipped: Bank) -> None:
    export(clipped, Path("out"), "lance")
    lines = lance.dataset("out/features.lance").to_table().to_pylist()
    assert {(line["start_s"], line["end_s"]) for line in lines} == {*CLIPS}
    for line in lines:
        assert line["vector"] == clipped.clip("a", line["start_s"], line["end_s"]).tolist()


def test_another_export_replaces_the_data_set(whole: Bank) -> None:
    export(whole, Path("out"), "lance")
    export(whole.without({"b.mp4"}), Path("out"), "lance")
    assert [path.name for path in Path("out").iterdir()] == ["features.lance"]
    data = lance.dataset("out/features.lance")
    assert (data.count_rows(), data.version) == (7, 1)


def test_an_error_leaves_the_earlier_data_set(whole: Bank, monkeypatch: pytest.MonkeyPatch) -> None:
    export(whole, Path("out"), "lance")

    def full(*arguments: object) -> None:
        raise OSError("LanceError(IO): No space left on device (os error 28)")

    monkeypatch.setattr(lance, "write_dataset", full)
    with pytest.raises(OSError, match="No space left on device: 'out'"):
        export(whole, Path("out"), "lance")
    assert [path.name for path in Path("out").iterdir()] == ["features.lance"]
    assert lance.dataset("out/features.lance").count_rows() == 307


def test_an_absent_package_is_one_line(whole: Bank, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lance", None)
    with pytest.raises(MissingError, match=r"pylance: pip install -c constraints.txt -e '\.\[lance\]'$"):
        export(whole, Path("out"), "lance")
    assert not Path("out").exists()
