import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from stepline.datasets import spacewalk
from stepline.datasets.schema import SPLITS, Video
from stepline.datasets.subset import describe, select
from stepline.errors import ConfigError

REAL = spacewalk.videos()
VIDEOS = st.lists(st.tuples(st.sampled_from(SPLITS), st.floats(60, 40000)), min_size=1, max_size=30).map(
    lambda rows: [
        Video(id=f"v{i}", split=split, duration_s=seconds, url="", path=f"{i}.mp4")
        for i, (split, seconds) in enumerate(rows)
    ]
)
SEED = st.integers(0, 1000)


def test_without_a_subset_all_are_chosen() -> None:
    assert select(REAL, None) == tuple(video.id for video in REAL)
    assert describe(None) == ""


def test_named_videos_are_chosen_in_the_listed_order() -> None:
    assert select(REAL, {"videos": ["01252020", "10062019"]}) == ("10062019", "01252020")
    assert describe({"videos": ["01252020", "10062019"]}) == "2 named videos"


def test_an_unknown_video_is_named_with_what_there_is() -> None:
    with pytest.raises(ConfigError, match=r"^config: subset.videos: '10062091' is not listed; choose from 10062019, "):
        select(REAL, {"videos": ["10062019", "10062091"]})


@given(VIDEOS, SEED, st.floats(0.001, 1))
def test_a_fraction_leaves_at_least_one_video_per_split_and_stays_within(
    videos: list[Video], seed: int, fraction: float
) -> None:
    check(videos, select(videos, {"fraction": fraction, "seed": seed}), share=fraction)


@given(VIDEOS, SEED, st.floats(0.1, 200))
def test_hours_leave_at_least_one_video_per_split_and_stay_within(videos: list[Video], seed: int, hours: float) -> None:
    total_s = sum(video.duration_s for video in videos)
    check(videos, select(videos, {"hours": hours, "seed": seed}), share=hours * 3600 / total_s)


def check(videos: list[Video], chosen: tuple[str, ...], *, share: float) -> None:
    assert list(chosen) == [video.id for video in videos if video.id in chosen]
    for split in SPLITS:
        all_s = [video.duration_s for video in videos if video.split == split]
        chosen_s = [video.duration_s for video in videos if video.split == split and video.id in chosen]
        assert bool(chosen_s) == bool(all_s)
        assert len(chosen_s) <= 1 or sum(chosen_s) <= share * sum(all_s) + 0.01


@given(VIDEOS, SEED)
def test_the_whole_fraction_is_everything(videos: list[Video], seed: int) -> None:
    assert select(videos, {"fraction": 1.0, "seed": seed}) == select(videos, None)


@given(VIDEOS, SEED, st.floats(0.01, 1), st.floats(0.01, 1))
def test_a_larger_fraction_of_the_same_seed_holds_the_smaller(
    videos: list[Video], seed: int, one: float, other: float
) -> None:
    small, large = sorted((one, other))
    chosen = select(videos, {"fraction": small, "seed": seed})
    assert chosen == select(videos, {"fraction": small, "seed": seed})
    assume(small < large)
    assert set(chosen) <= set(select(videos, {"fraction": large, "seed": seed}))


def test_the_seed_decides() -> None:
    draws = {select(REAL, {"fraction": 0.3, "seed": seed}) for seed in range(20)}
    assert len(draws) > 10
    # The draw is part of what a table says: it must be the same on every machine.
    assert select(REAL, {"fraction": 0.1, "seed": 0}) == ("10062019", "03152022", "11152019")


def test_the_description_says_how_much_and_by_which_seed() -> None:
    assert describe({"fraction": 0.25, "seed": 3}) == "0.25 of each split, seed 3"
    assert describe({"hours": 12, "seed": 0}) == "12 hours, seed 0"


def test_nothing_can_be_chosen_of_nothing() -> None:
    with pytest.raises(ConfigError, match="^config: subset: no videos are listed to choose from; remove it$"):
        select((), {"hours": 1, "seed": 0})
