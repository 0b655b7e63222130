import json
from pathlib import Path

import pytest

from stepline.datasets import pss
from stepline.datasets.pss import DATASETS, FILES, RELEASES, SPLIT_FILES, load, vocabulary
from stepline.datasets.schema import SPLITS
from stepline.errors import ReleaseError
from stepline.fetch import fetch_release
from tests.benchmarks.pss.synthetic import VIDEOS, write_releases
from tests.datasets.fetched import write_release


def write_test(content: object) -> None:
    """Replace the videos of YouCook2's test split."""
    release, path = SPLIT_FILES["youcook2"]["test"]
    write_release(RELEASES, release, {path: content})


class TestReleases:
    @pytest.fixture(autouse=True)
    def _releases(self) -> None:
        write_releases()

    def test_splits_have_their_videos_without_the_prefix(self) -> None:
        for dataset in DATASETS:
            for split, number in VIDEOS.items():
                expected = [f"{dataset}-{split}-{each}" for each in range(number)]
                assert list(load(dataset, split)) == expected  # type: ignore[arg-type]

    def test_segments_are_sorted_with_their_sentences(self) -> None:
        content = {"v_a": {"duration": 9, "timestamps": [[4, 6], [1, 9], [1, 2]], "sentences": ["c ", "b", " a"]}}
        write_test(content)
        procedure = load("youcook2", "test")["a"]
        assert procedure.segments == ((1.0, 2.0), (1.0, 9.0), (4.0, 6.0))
        assert procedure.sentences == ("a", "b", "c")
        assert procedure.duration_s == 9.0

    @pytest.mark.parametrize(
        "record",
        [
            {"duration": 9, "timestamps": [[4, 4]], "sentences": ["a"]},
            {"duration": 9, "timestamps": [[-1, 4]], "sentences": ["a"]},
            {"duration": 9, "timestamps": [], "sentences": []},
            {"duration": 9, "timestamps": [[1, 2]], "sentences": []},
            {"duration": 9, "timestamps": [[1]], "sentences": ["a"]},
            {"timestamps": [[1, 2]], "sentences": ["a"]},
            {"duration": 0, "timestamps": [[1, 2]], "sentences": ["a"]},
            {"duration": float("nan"), "timestamps": [[1, 2]], "sentences": ["a"]},
            {"duration": 9, "timestamps": [[1, float("inf")]], "sentences": ["a"]},
            {"duration": float("inf"), "timestamps": [[1, 2]], "sentences": ["a"]},
            {"duration": 9, "timestamps": [[9, 12]], "sentences": ["a"]},
            [1],
        ],
    )
    def test_another_form_is_one_line(self, record: object) -> None:
        write_test({"v_a": record})
        with pytest.raises(ReleaseError, match=r"yc2_my_test.json is not in PSS's format: [^\n]+$"):
            load("youcook2", "test")

    def test_an_id_that_is_a_path_is_refused(self) -> None:
        content = {"v_../a": {"duration": 9, "timestamps": [[1, 2]], "sentences": ["a"]}}
        write_test(content)
        with pytest.raises(ReleaseError, match=r"video id '\.\./a' is not allowed"):
            load("youcook2", "test")

    def test_a_video_of_two_splits_is_refused(self) -> None:
        train, val = (SPLIT_FILES["tasty"][split] for split in SPLITS[:2])
        content = {}
        for release, path in (train, val):
            content |= json.loads((RELEASES.folder(release) / path).read_text())
        write_release(RELEASES, train[0], {train[1]: content})
        with pytest.raises(ReleaseError, match="tasty-val-0 is in both train and val"):
            DATASETS["tasty"].videos()

    def test_a_video_that_stands_twice_is_refused(self) -> None:
        record = {"duration": 9, "timestamps": [[1, 2]], "sentences": ["a"]}
        write_test({"v_a": record, "a": record})
        with pytest.raises(ReleaseError, match="contains a video twice, with and without v_"):
            load("youcook2", "test")

    def test_ids_of_words_are_numbers_also_where_they_are_text(self) -> None:
        assert vocabulary("youcook2") == vocabulary("tasty")
        assert set(map(type, vocabulary("tasty").values())) == {int}

    def test_a_changed_file_is_not_read(self) -> None:
        file = RELEASES.folder("tasty") / SPLIT_FILES["tasty"]["val"][1]
        file.write_text("{}")
        with pytest.raises(ReleaseError, match="has changed since it was fetched: run `stepline fetch pss/tasty`"):
            load("tasty", "val")

    def test_videos_are_those_of_all_splits_with_addresses(self) -> None:
        found = {video.id: video for video in DATASETS["youcook2"].videos()}
        assert len(found) == sum(VIDEOS.values())
        video = found["youcook2-val-1"]
        assert (video.split, video.duration_s) == ("val", 60.0)
        assert video.url == "https://www.youtube.com/watch?v=youcook2-val-1"
        assert all(not video.url for video in DATASETS["tasty"].videos())


def test_a_file_is_named_by_its_split() -> None:
    names = {"youcook2": "yc2", "tasty": "tasty"}
    for dataset, splits in SPLIT_FILES.items():
        for split, (release, path) in splits.items():
            assert Path(path).name.startswith(names[dataset])
            assert f"_{split}" in Path(path).name
            assert path in FILES[release]


def test_there_are_no_videos_before_the_release() -> None:
    assert DATASETS["youcook2"].videos() == ()
    assert not RELEASES.is_there("youcook2")


def test_files_without_a_digest_are_looked_for_at_their_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPLINE_MIRROR", str(tmp_path))
    assert not RELEASES.is_there("tasty-train")
    (path,) = FILES["tasty-train"]
    file = tmp_path / "pss" / path
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"a": {"duration": 9, "timestamps": [[1, 2]], "sentences": ["b"]}}))
    assert RELEASES.is_there("tasty-train")
    assert [video.id for video in DATASETS["tasty"].videos()] == ["a"]
    fetch_release(pss.RELEASES, "tasty-train")
    assert list(load("tasty", "train")) == ["a"]
