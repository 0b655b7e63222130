import itertools
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepline.datasets import shards, spacewalk
from stepline.datasets.schema import Video
from stepline.datasets.shards import assign, read, write
from stepline.errors import StoreError

HOURS = st.lists(st.floats(0.01, 25), max_size=40)
BUDGET = st.floats(0.5, 12)


def listed(hours: list[float]) -> list[Video]:
    return [Video(id=f"v{i}", split="test", duration_s=h * 3600, url="", path=f"{i}.mp4") for i, h in enumerate(hours)]


def totals(videos: list[Video], of: dict[str, str]) -> dict[str, list[float]]:
    groups: dict[str, list[float]] = {}
    for video in videos:
        groups.setdefault(of[video.id], []).append(video.duration_s)
    return groups


@given(HOURS, BUDGET)
def test_no_shard_is_above_its_budget_except_one_long_video(hours: list[float], budget: float) -> None:
    videos = listed(hours)
    of = assign(videos, hours=budget, known={})
    assert list(of) == [video.id for video in videos]
    assert all(sum(group) <= budget * 3600 or len(group) == 1 for group in totals(videos, of).values())


@given(HOURS, BUDGET)
def test_shards_are_numbered_in_order_and_full(hours: list[float], budget: float) -> None:
    videos = listed(hours)
    of = assign(videos, hours=budget, known={})
    assert list(dict.fromkeys(of.values())) == [f"{i:03d}" for i in range(len(set(of.values())))]
    groups = list(totals(videos, of).values())
    for group, following in itertools.pairwise(groups):
        assert sum(group) + following[0] > budget * 3600


@given(HOURS, st.integers(0, 40), BUDGET, BUDGET, st.randoms(use_true_random=False))
def test_a_video_that_has_a_shard_never_moves(
    hours: list[float], n: int, budget: float, later_budget: float, random: object
) -> None:
    videos = listed(hours)
    known = assign(videos[:n], hours=budget, known={})
    later = videos[:]
    random.shuffle(later)  # type: ignore[attr-defined]
    of = assign(later, hours=later_budget, known=known)
    assert {video: of[video] for video in known} == known
    assert of.keys() == {video.id for video in videos}
    grown = {shard for video, shard in of.items() if video not in known}
    newest = max(known.values(), default="000")
    assert all(shard >= newest for shard in grown)
    for shard, group in totals(later, of).items():
        if shard in grown:
            assert sum(group) <= later_budget * 3600 or len(group) == 1


@given(HOURS, BUDGET)
def test_the_same_videos_have_the_same_shards(hours: list[float], budget: float) -> None:
    of = assign(listed(hours), hours=budget, known={})
    assert assign(listed(hours), hours=budget, known={}) == of
    assert assign(listed(hours), hours=budget, known=of) == of


def test_a_shard_may_be_exactly_full() -> None:
    assert assign(listed([1, 1, 1]), hours=2, known={}) == {"v0": "000", "v1": "000", "v2": "001"}


def test_a_very_large_data_set_has_longer_shards_not_more() -> None:
    of = assign(listed([1] * 6000), hours=1, known={})
    assert len({*of.values()}) == 2000
    assert assign(listed([1] * 6000), hours=4, known={})["v3"] == "000"


def test_a_shard_of_a_video_that_is_no_longer_listed_is_not_used_again() -> None:
    videos = listed([1, 1])
    assert assign(videos, hours=1, known={"gone": "004", "v0": "001"}) == {"v0": "001", "v1": "004"}


def test_spacewalk_has_one_recording_per_shard_at_ten_hours() -> None:
    of = assign(spacewalk.videos(), hours=10, known={})
    assert sorted(of.values()) == [f"{i:03d}" for i in range(18)]


def test_shards_come_back(tmp_path: Path) -> None:
    path = tmp_path / "datasets" / "shards.csv"
    assert read(path) == {}
    write(path, {"b": "001", "a": "000"})
    assert path.read_text() == "video,shard\nb,001\na,000\n"
    assert read(path) == {"b": "001", "a": "000"}


@pytest.mark.parametrize(
    "content",
    [
        b"video;shard\na;000\n",
        b"video,shard\na,first\n",
        b"video,shard\na\n",
        b"video,shard\n../x,1\n",
        b"\xff\xfe\x00\n\xff",
        b"video,shard\n" + b"a" * 200_000 + b",000\n",
        "video,shard\na,٠٠٠\n".encode(),
    ],
)
def test_a_damaged_file_is_one_line(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "shards.csv").write_bytes(content)
    with pytest.raises(StoreError, match="shards.csv: must have the columns video,shard and numbers such as 000"):
        shards.read(tmp_path / "shards.csv")
