"""SSIM of real clips: grey levels whose SSIM follows from its formula, and pictures beside a straight-line account."""

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

np = pytest.importorskip("numpy")
av = pytest.importorskip("av")
pytest.importorskip("cv2")
pytest.importorskip("skimage")

from scipy.ndimage import uniform_filter  # noqa: E402

from stepline.availability import Record, write_availability  # noqa: E402
from stepline.benchmark import UnavailableError  # noqa: E402
from stepline.benchmarks.hirest.methods import ssim as module  # noqa: E402
from stepline.benchmarks.hirest.methods.ssim import Ssim, compared  # noqa: E402
from stepline.datasets.hirest import Pair, Step  # noqa: E402
from stepline.media.decode import MediaError, frames  # noqa: E402
from stepline.needs import Need  # noqa: E402
from tests.benchmarks.hirest.conftest import inputs, plan, predicted  # noqa: E402
from tests.benchmarks.hirest.synthetic import recordings  # noqa: E402
from tests.media.clips import make  # noqa: E402

LEVELS = ((20, 100), (30, 50), (50, 62), (64, 124))
"""Until which second a clip has which grey level."""


def flat(second: int) -> Any:
    return np.full((72, 128, 3), next(level for end, level in LEVELS if second < end), np.uint8)


def clip(path: Path, picture: Callable[[int], Any] = flat, n_frames: int = 128) -> Path:
    """Write a clip of two frames a second; picture: of the second."""
    return make(path, [Fraction(i, 2) for i in range(n_frames)], picture=lambda index: picture(index // 2))


def of_levels(a: float, b: float) -> float:
    """Return the SSIM of two flat pictures (Wang et al., 2004)."""
    c1 = (0.01 * 255) ** 2
    return (2 * a * b + c1) / (a**2 + b**2 + c1)


@pytest.fixture(scope="module")
def levels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return clip(tmp_path_factory.mktemp("clips") / "levels.mp4")


IN_PART: dict[str, float] = {}
"""The seconds that were absent of damaged videos."""


def said(videos: dict[str, Path], percent: int = 85, bounds_s: tuple[float, float] = (0, 63), **pair: Any) -> Any:
    """Return what is said of these videos, with what raises it."""
    step = Step(start_s=0, end_s=1, caption="x")
    about = {"duration_s": 63.2, "clippable": True, "bounds_s": bounds_s, "steps": (step,), "split": "val"} | pair
    of: Any = SimpleNamespace(
        in_part=IN_PART,
        entry=SimpleNamespace(id="ssim", settings={"percent": percent}),
        video_file=videos.get,
        evaluated=[Pair(query="q", video=video, **about) for video in videos],
    )
    return list(Ssim().predict(of, []))


def test_a_step_begins_with_the_first_frame_that_differs(levels: Path) -> None:
    assert of_levels(62, 124) == pytest.approx(of_levels(100, 50), abs=0.001)
    assert 0.75 < of_levels(100, 50) < 0.85 < of_levels(50, 62)
    (made,) = said({"a": levels}, 85)
    assert (made.seed, made.split, made.video, made.query) == (0, "val", "a", "q")
    assert made.segments == ((0, 20), (20, 50), (50, 63))
    assert said({"a": levels}, 75)[0].segments == ((0, 63),)
    assert said({"a": levels}, 99)[0].segments == ((0, 20), (20, 30), (30, 50), (50, 63))


def test_a_similarity_equal_to_the_threshold_begins_no_step(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds, similar = np.array([0, 10, 20, 30]), np.array([0.85, 0.84, 0.86])
    monkeypatch.setattr(module, "compared", lambda path, duration_s: (seconds, similar, 0.0))
    assert said({"a": Path("a.mp4")}, 85)[0].segments == ((0, 20), (20, 63))


def test_boundaries_lie_within_the_moment(levels: Path) -> None:
    assert said({"a": levels}, bounds_s=(20, 50))[0].segments == ((20, 50),)
    assert said({"a": levels}, bounds_s=(19.5, 50.5))[0].segments == ((19.5, 20), (20, 50), (50, 50.5))


def test_moments_without_annotated_steps_are_left_out(levels: Path) -> None:
    with pytest.raises(UnavailableError):
        said({"a": levels}, steps=())


def test_frames_are_those_at_32_evenly_spaced_seconds(levels: Path) -> None:
    seconds, similar, _ = compared(levels, 63.2)
    assert seconds.tolist() == list(range(0, 63, 2))
    expected = np.ones(31)
    expected[[9, 14, 24]] = of_levels(100, 50), of_levels(50, 62), of_levels(62, 124)
    assert similar == pytest.approx(expected, abs=0.02)


def test_a_file_that_is_shorter_than_the_video_ends_earlier(levels: Path, tmp_path: Path) -> None:
    assert [compared(levels, duration_s)[0][-1] for duration_s in (63.4, 63.6, 900)] == [62, 63, 63]
    short = clip(tmp_path / "short.mp4", n_frames=5)
    assert compared(short, 900)[0][-1] == 2
    seconds, similar, _ = compared(short, 0.2)
    assert seconds.tolist() == [0] * 32
    assert similar == pytest.approx(np.ones(31))


def test_ssim_is_of_grey_pictures_of_224_in_windows_of_7(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    grid = [random.integers(0, 40, (9, 16, 3)).repeat(8, 0).repeat(8, 1).astype(np.uint8) for _ in range(2)]
    video = clip(tmp_path / "a.mp4", lambda second: grid[second // 2], 8)
    _, similar, _ = compared(video, 4.0)
    grey = []
    for frame in list(frames(video))[:5:4]:
        red, green, blue = np.moveaxis(frame.rgb(398, 224).astype(float), 2, 0)
        grey.append((0.299 * red + 0.587 * green + 0.114 * blue).round())
    assert similar.min() == pytest.approx(straight(*grey), abs=2e-3)
    assert (similar < 0.9).sum() == 1


def straight(a: Any, b: Any) -> float:
    """Return the mean SSIM over windows of 7 x 7 that lie within the pictures, with unbiased (co)variances."""

    def mean(picture: Any) -> Any:
        return uniform_filter(picture, 7)[3:-3, 3:-3]

    c1, c2, unbiased = (0.01 * 255) ** 2, (0.03 * 255) ** 2, 49 / 48
    var_a, var_b = (unbiased * (mean(each * each) - mean(each) ** 2) for each in (a, b))
    both = unbiased * (mean(a * b) - mean(a) * mean(b))
    luminance = (2 * mean(a) * mean(b) + c1) / (mean(a) ** 2 + mean(b) ** 2 + c1)
    return float((luminance * (2 * both + c2) / (var_a + var_b + c2)).mean())


def test_a_video_that_cannot_be_decoded_is_left_out_with_its_reason(
    levels: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    bad = tmp_path / "bad.mp4"
    bad.write_bytes(levels.read_bytes()[:400])
    assert [each.video for each in said({"bad": bad, "good": levels})] == ["good"]
    (record,) = caplog.records
    assert record.getMessage().startswith(f"{bad}: cannot be decoded: ")
    assert record.getMessage().endswith("; the video is left out: replace the file")
    with pytest.raises(UnavailableError) as raised:
        said({"bad": bad})
    assert raised.value.needs == (Need("videos", "hirest"),)
    with pytest.raises(MediaError):
        compared(bad, 60.0)


def test_a_damaged_video_is_counted_with_what_is_absent_of_it(levels: Path, tmp_path: Path) -> None:
    with av.open(str(levels)) as before, av.open(str(tmp_path / "cut.mkv"), "w") as after:
        copied = after.add_stream_from_template(before.streams.video[0])
        for packet in before.demux(before.streams.video[0]):
            if packet.dts is not None:
                packet.stream = copied
                after.mux(packet)
    cut = tmp_path / "cut.mkv"
    cut.write_bytes(cut.read_bytes()[: cut.stat().st_size * 2 // 3])
    IN_PART.clear()
    assert [each.video for each in said({"cut": cut, "good": levels})] == ["cut", "good"]
    assert {"cut": pytest.approx(compared(cut, 63.2)[2])} == IN_PART
    assert IN_PART["cut"] > 5


def test_each_video_is_decoded_once(levels: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    pyav = module.pyav
    monkeypatch.setattr(module, "pyav", lambda *asked: calls.append(asked[0]) or pyav(*asked))
    said({"a": levels, "b": levels})
    assert calls == [levels, levels]


@pytest.mark.usefixtures("releases")
def test_the_videos_that_are_there_are_decoded(levels: Path) -> None:
    of = inputs("ssim-75")
    (manifest,) = of.footage.pipeline.videos.availability
    write_availability(manifest, [])
    assert of.missing("predict") == (Need("videos", "hirest"),)
    there = ("val-0-0", "val-0-2", "test-0-0", "test-0-1", "train-0-0")
    write_availability(manifest, [Record(video=video, status="present", path=str(levels)) for video in there])
    made = predicted(inputs("ssim-75"))
    assert [(each.split, each.video) for each in made] == [("val", "val-0-0"), ("test", "test-0-0")]
    moments = {each.video: each.bounds for each in recordings()}
    for each in made:
        assert each.segments is not None
        assert (each.segments[0][0], each.segments[-1][1]) == moments[each.video]


@pytest.mark.usefixtures("releases")
def test_packages_that_are_absent_are_named_unless_each_rule_has_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = inputs("ssim-75").entry
    assert plan().missing(entry, "v1") == ()
    monkeypatch.setattr("stepline.needs.find_spec", lambda name: None)
    assert plan().missing(entry, "v1") == tuple(Need("package", name) for name in ("av", "cv2", "skimage"))
    monkeypatch.setenv("STEPLINE_CONDA", "1")
    assert plan().missing(entry, "v1") == ()
