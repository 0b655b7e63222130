import tarfile
from pathlib import Path

import numpy as np
import pytest

from stepline.features.bank import Bank
from stepline.features.export import export, webdataset
from tests.features.export.conftest import CLIPS, GAP, SPEC, rows

wds = pytest.importorskip("webdataset")


def read(folder: str = "out", pattern: str = "*.tar") -> dict[str, dict]:
    shards = sorted(map(str, Path(folder).glob(pattern)))
    return {each["json"]["video"]: each for each in wds.WebDataset(shards, shardshuffle=False).decode()}


def test_webdataset_reads_the_rows(whole: Bank) -> None:
    export(whole, Path("out"), "webdataset", suffix=".mp4")
    found = read()
    assert [each["__key__"] for each in found.values()] == ["a%2Emp4", "b%2Emp4%2Emp4", "ö%2Emp4"]
    assert found.keys() == whole.keys()
    for video, sample in found.items():
        assert sample["npy"].dtype == np.float16
        assert np.array_equal(sample["npy"], whole[video])
        assert sample["times.npy"].tolist() == [[k * 0.5, (k + 1) * 0.5] for k in range(len(whole[video]))]
    about = {"video": "a", "dimension": 7, "hop_s": 0.5, "spec": SPEC.record(), "gaps": []}
    assert found["a"]["json"] == about


def test_a_loader_batches_the_videos(whole: Bank) -> None:
    loading = pytest.importorskip("torch.utils.data")
    export(whole, Path("out"), "webdataset")
    data = wds.WebDataset("out/features-000000.tar", shardshuffle=False).decode().to_tuple("npy", "json")
    batches = [*loading.DataLoader(data.batched(2, collation_fn=list), batch_size=None, num_workers=0)]
    assert [[about["video"] for _, about in batch] for batch in batches] == [["a", "b.mp4"], ["ö"]]
    assert np.array_equal(batches[0][1][0], rows(300, 1))


def test_rows_of_parts_have_their_times(parted: Bank) -> None:
    export(parted, Path("out"), "webdataset")
    found = read()
    assert found["damaged"]["times.npy"][:, 0].tolist() == [0, 0.5, 2, 2.5, 3]
    assert np.array_equal(found["damaged"]["npy"], np.concatenate([rows(2), rows(3, 1)]))
    assert found["damaged"]["json"]["gaps"] == [[*GAP]]
    assert found["spans"]["times.npy"].tolist() == [[7.5, 8.0]]


def test_listed_clips_have_their_times(clipped: Bank) -> None:
    export(clipped, Path("out"), "webdataset")
    sample = read()["a"]
    for row, times_s in zip(sample["npy"], sample["times.npy"], strict=True):
        assert np.array_equal(row, clipped.clip("a", *times_s))
    assert {tuple(times_s) for times_s in sample["times.npy"].tolist()} == {*CLIPS}


def test_shards_have_a_maximum_size_and_replace_all_earlier_ones(whole: Bank, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webdataset, "SHARD_BYTES", 1500)
    export(whole, Path("out"), "webdataset")
    names = [f"features-00000{number}.tar" for number in range(3)]
    assert sorted(path.name for path in Path("out").iterdir()) == names
    assert read().keys() == whole.keys()
    Path("out/features-mine.tar").touch()
    monkeypatch.setattr(webdataset, "SHARD_BYTES", 10**6)
    export(whole.without({"a"}), Path("out"), "webdataset")
    assert sorted(path.name for path in Path("out").iterdir()) == [names[0], "features-mine.tar"]
    assert {*read("out", names[0])} == {"b.mp4", "ö"}


def test_an_error_leaves_the_earlier_shards(whole: Bank, monkeypatch: pytest.MonkeyPatch) -> None:
    export(whole, Path("out"), "webdataset")
    before = Path("out/features-000000.tar").read_bytes()

    def full(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tarfile.TarFile, "addfile", full)
    with pytest.raises(OSError, match="No space left on device: 'out/features.tar'"):
        export(whole.without({"a"}), Path("out"), "webdataset")
    assert [path.name for path in Path("out").iterdir()] == ["features-000000.tar"]
    assert Path("out/features-000000.tar").read_bytes() == before
