from stepline.datasets import demo
from stepline.datasets.schema import SPLITS


def test_there_are_five_videos_that_only_a_mirror_holds():
    videos = demo.videos()
    assert sorted(video.split for video in videos) == ["test", "test", "train", "train", "val"]
    assert {video.split for video in videos} == set(SPLITS)
    assert len({video.id for video in videos}) == 5
    assert all(video.url == "" and video.path == f"demo/videos/{video.id}.mp4" for video in videos)


def test_durations_are_whole_frames_and_minutes_in_all():
    durations = [video.duration_s for video in demo.videos()]
    assert all(abs(duration * demo.FPS - round(duration * demo.FPS)) < 1e-6 for duration in durations)
    assert all(60 <= duration <= 75 for duration in durations)
    assert 5 * 60 <= sum(durations) <= 6 * 60


def test_every_step_is_previewed_in_order_and_then_done():
    for name, recording in demo.script()["recordings"].items():
        steps = list(range(1, len(recording["steps"]) + 1))
        assert [clip["step"] for clip in recording["clips"][: len(steps)]] == steps, name
        done = [clip["label"] for clip in recording["clips"][len(steps) :]]
        assert set(done) == {-1, 0, *steps}, name
        assert done.index(-1) == len(done) - 1, name
        assert len(steps) in (4, 5), name


def test_a_step_and_its_neighbours_look_different():
    for name, recording in demo.script()["recordings"].items():
        own = [step["footage"] for step in recording["steps"]] + [recording["irrelevant_footage"]]
        assert len(set(own)) == len(own), name
        last = recording["clips"][-2]["label"]
        assert own[last - 1] != recording["tail_footage"], name
