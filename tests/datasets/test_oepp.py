from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from stepline.datasets import oepp
from stepline.datasets.oepp import (
    BASE_POOL,
    DATASETS,
    EVENTS_FILE,
    FILES,
    PARTS,
    RELEASES,
    SPLIT_FILES,
    Step,
    clusters,
    events,
    load,
    pool,
    records,
    statistics,
    text_features,
)
from stepline.errors import ReleaseError
from stepline.mirror import Wanted
from tests.benchmarks.oepp.synthetic import BOTH, DIMENSION, EVENTS, NOVEL, VIDEOS, contents
from tests.datasets.fetched import write_release

N_EVENTS = {"train": 4, "val": 4, "base": 4, "novel": 2}
TRAIN, NOVEL_FILE, VECTORS = SPLIT_FILES["train"], SPLIT_FILES["novel"], oepp.FEATURE_FILES["s3d"]


@pytest.fixture(scope="module")
def synthetic() -> dict[str, Any]:
    return contents()


def changed(synthetic: dict[str, Any], path: str, change: Callable[[Any], object]) -> None:
    """Write the release with one of its files changed, as if it had come so."""
    content = deepcopy(synthetic[path])
    change(content)
    write_release(RELEASES, "split1", synthetic | {path: content})


class TestReleased:
    @pytest.fixture(autouse=True)
    def _release(self, synthetic: dict[str, Any]) -> None:
        write_release(RELEASES, "split1", synthetic)

    def test_parts_keep_the_order_and_the_steps_of_their_files(self, synthetic: dict[str, Any]) -> None:
        for part in PARTS:
            videos, listed = load("split1", part), synthetic[SPLIT_FILES[part]]
            assert len(videos) == VIDEOS[part] * N_EVENTS[part]
            assert [f"{record['dataset']}_{record['vid']}" for record in listed] == [video.id for video in videos]
            for video, record in zip(videos, listed, strict=True):
                assert (video.event, video.domain) == (record["task_name"], record["domain"])
                assert video.source_event == str(record["task_id_old"])
                assert video.steps == tuple(
                    Step(action=each["action"], start_s=each["segment"][0], end_s=each["segment"][1])
                    for each in record["anno"]
                )
        assert records("split1")["val"] == synthetic[SPLIT_FILES["val"]]

    def test_one_youtube_video_may_stand_in_both_sources(self) -> None:
        assert [video.id for video in load("split1", "train") if video.vid == BOTH] == [
            f"COIN_{BOTH}",
            f"CrossTask_{BOTH}",
        ]

    def test_actions_that_differ_in_a_space_are_two_classes(self) -> None:
        base = pool("split1", "base")
        assert {"make the detergent", "make the  detergent", " wipe the bathtub"} <= {*base}
        assert pool("split1", "train") == pool("split1", "val") == base
        vectors = text_features("split1", "videoclip")
        assert vectors["make the detergent"] == vectors["make the  detergent"] != vectors["stir mixture"]
        assert {*map(len, vectors.values())} == {DIMENSION}

    def test_events_have_their_actions_in_both_wordings(self) -> None:
        found = events("split1")
        assert list(found) == list(EVENTS)
        assert found["MakeTea"].actions[1] == "prepare and add the tea"
        assert found["MakeTea"].refined[1] == "add tea"

    def test_the_part_of_an_event_follows_from_the_videos(self) -> None:
        listed = clusters("split1")
        assert [event.cluster for event in listed] == [0, 0, 0, 1, 1, 1]
        assert {event.event for event in listed if event.part == "novel"} == {*NOVEL}
        assert {event.part for event in listed} == {"base", "novel"}

    def test_statistics_count_each_part(self) -> None:
        total, *parts = statistics("split1")
        assert (total.part, total.domains, total.events, total.actions, total.videos) == ("total", 2, 6, 14, 48)
        assert [(line.part, line.events, line.actions, line.videos) for line in parts] == [
            ("train", 4, 10, 20),
            ("val", 4, 10, 8),
            ("base", 4, 10, 8),
            ("novel", 2, 6, 12),
        ]
        assert total.segments == sum(line.segments for line in parts)

    def test_a_changed_file_is_not_read(self) -> None:
        (RELEASES.folder("split1") / TRAIN).write_text("[]")
        with pytest.raises(ReleaseError, match="has changed since it was fetched: run `stepline fetch oepp/split1`"):
            load("split1", "val")


def of(record: Callable[[dict[str, Any]], object]) -> Callable[[Any], None]:
    """Change the first record."""

    def change(content: Any) -> None:
        record(content[0])

    return change


@pytest.mark.parametrize(
    ("path", "change", "message"),
    [
        (TRAIN, of(lambda r: r.pop("domain")), "is not in OEPP's format: KeyError: 'domain'"),
        (TRAIN, of(lambda r: r.update(length=9)), "has 1 actions and the length 9"),
        (TRAIN, of(lambda r: r.update(anno=[], length=0)), "has 0 actions and the length 0"),
        (TRAIN, of(lambda r: r.update(dataset="NIV")), "has the source 'NIV', not COIN or CrossTask"),
        (TRAIN, of(lambda r: r.update(vid="../a")), r"video id 'COIN_\.\./a' is not allowed"),
        (TRAIN, of(lambda r: r["anno"][0].update(segment=[5, 4])), "the segment 5.0, 4.0 of .* is not valid"),
        (TRAIN, of(lambda r: r["anno"][0].update(segment=[5, float("inf")])), "5.0, inf of .* is not valid"),
        (TRAIN, of(lambda r: r["anno"][0].update(segment=[float("nan"), 5])), "nan, 5.0 of .* is not valid"),
        (TRAIN, of(lambda r: r["anno"][0].update(segment=[5])), "not enough values"),
        (TRAIN, of(lambda r: r["anno"][0].update(action="make the   detergent")), "which base_action_pool_1.json does"),
        (TRAIN, of(lambda r: r["anno"][0].update(action="cut oranges")), "which base_action_pool_1.json does not list"),
        (TRAIN, of(lambda r: r.update(task_name="MakeSoap")), "event 'MakeSoap', which task_info.json does not list"),
        (TRAIN, lambda c: c.append(c[0]), "COIN_train-MakeTea-0 is listed twice, in train and train"),
        (
            NOVEL_FILE,
            of(lambda r: r.update(vid=BOTH)),
            f"novel_dataset_1.json: COIN_{BOTH} is listed twice, in train and novel",
        ),
        (
            NOVEL_FILE,
            of(lambda r: r.update(task_name="MakeTea")),
            "MakeTea is also an event of the base parts",
        ),
        (BASE_POOL, lambda c: c.append(c[0]), "base_action_pool_1.json lists an action twice"),
        (BASE_POOL, lambda c: c.clear(), "base_action_pool_1.json is not a list of actions"),
        (
            EVENTS_FILE,
            lambda c: c["MakeTea"].update(action_num=9),
            "MakeTea has 4 actions and 4 refined, but action_num is 9",
        ),
        (EVENTS_FILE, lambda c: c.update(new=1), "task_info.json is not a list of events"),
    ],
)
def test_damage_is_one_line(
    synthetic: dict[str, Any], path: str, change: Callable[[Any], object], message: str
) -> None:
    changed(synthetic, path, change)
    with pytest.raises(ReleaseError, match=message) as raised:
        load("split1", "val")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c.pop("stir mixture"), "has no vector of 'stir mixture'"),
        (lambda c: c.update(new=[[1.0]]), "contains vectors of different lengths"),
        (lambda c: c["stir mixture"][0].__setitem__(0, float("nan")), "or non-finite numbers"),
        (lambda c: c.clear(), "contains vectors of different lengths"),
        (lambda c: c.update(new=[1.0, 2.0]), "contains no vectors of actions"),
    ],
)
def test_damaged_vectors_are_one_line(synthetic: dict[str, Any], change: Callable[[Any], object], message: str) -> None:
    changed(synthetic, VECTORS, change)
    with pytest.raises(ReleaseError, match=message):
        text_features("split1", "s3d")


def test_before_anything_is_fetched_there_are_no_videos_and_each_release_says_what_to_run() -> None:
    assert DATASETS["openevent"].videos() == ()
    assert not any(map(oepp.RELEASES.is_there, FILES))
    for release, verb in {"split1": "fetch oepp/split1", "rebuilt": "oepp rebuild"}.items():
        with pytest.raises(ReleaseError, match=f"holds no release: run `stepline {verb}`"):
            pool(release, "base")


def test_the_data_set_lists_all_videos_of_a_fetched_release(synthetic: dict[str, Any]) -> None:
    write_release(RELEASES, "split1", synthetic)
    found = {video.id: video for video in DATASETS["openevent"].videos()}
    assert len(found) == 48
    video = found["COIN_base-MakeTea-1"]
    assert video.split == found["COIN_novel-CleanToilet-0"].split == "test"
    assert video.url == "https://www.youtube.com/watch?v=base-MakeTea-1"
    assert video.path == "openevent/videos/COIN_base-MakeTea-1.mp4"


def test_a_release_is_found_in_the_mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPLINE_MIRROR", str(tmp_path))
    assert not oepp.RELEASES.is_there("crosstask")
    (tmp_path / "crosstask").mkdir()
    (tmp_path / "crosstask/crosstask_release.zip").write_bytes(b"zip")
    assert oepp.RELEASES.is_there("crosstask")


def test_files_are_pinned_but_crosstasks() -> None:
    for release, files in FILES.items():
        for file in files:
            assert (file.wanted == Wanted(path="crosstask/crosstask_release.zip")) == (release == "crosstask")
            assert file.wanted.path.partition("/")[0] == {"split1": "oepp"}.get(release, release)
            assert file.url.endswith(f"/{file.path}")
