from collections.abc import Iterator
from fractions import Fraction
from math import isnan
from pathlib import Path

import numpy as np
import pytest

from stepline import paths
from stepline.availability import write_availability
from stepline.backbones.histogram import HistogramSpec
from stepline.cli import main
from stepline.errors import StoreError
from stepline.features import store
from stepline.features.compare import Comparison, Timed, compare
from stepline.features.extract import Work
from stepline.io import write_json
from tests.features.test_extract import present
from tests.features.test_extract import store as extracted
from tests.media.clips import make

pytest.importorskip("cv2")


def scene(times_s: np.ndarray, d: int = 32, seed: int = 0) -> np.ndarray:
    """Return (T, d) features of a video in which all moves slowly, beside something that never changes."""
    rng = np.random.default_rng(seed)
    speeds, starts = rng.uniform(0.2, 1.2, d), rng.uniform(0, 6, d)
    return np.sin(times_s[:, None] * speeds + starts).astype(np.float32) + 2


def timed(rows: np.ndarray, hop_s: float = 1.0, name: str = "one") -> Timed:
    return Timed(name=name, rows={"v": rows}, hop_s=hop_s)


def the(comparisons: Iterator[Comparison]) -> Comparison:
    [comparison] = comparisons
    return comparison


SECONDS = np.arange(60.0)


def test_equal_rows_are_alike_without_lag_and_the_worst_second_is_named() -> None:
    found = the(compare(timed(scene(SECONDS)), timed(scene(SECONDS))))
    assert (found.video, found.n_rows, found.lag_s) == ("v", 60, 0)
    assert (found.mean, found.least, found.mean_at_lag) == pytest.approx((1, 1, 1), abs=1e-6)
    other = scene(SECONDS)
    other[17] = -other[17]
    other[20] = 0
    found = the(compare(timed(scene(SECONDS)), timed(other)))
    assert (found.least, found.least_s) == (pytest.approx(-1), 17)
    assert found.mean == pytest.approx(57 / 60)


def test_rows_of_the_same_clips_are_compared() -> None:
    rows = scene(SECONDS[:3])
    first = Timed(name="one", rows={"v": rows}, hop_s=1, clips={"v": {(0, 4): 0, (4, 6): 1, (6, 9): 2}})
    other = np.stack([-rows[2], 2 * rows[1], rows[0]])
    second = Timed(name="two", rows={"v": other}, hop_s=1, clips={"v": {(6, 9): 0, (4, 6): 1, (9, 12): 2}})
    found = the(compare(first, second))
    assert (found.n_rows, found.least, found.least_s) == (2, pytest.approx(-1), 6)
    assert isnan(found.lag_s)
    with pytest.raises(StoreError, match="^one has rows of spans, two has rows at regular times: pool its rows too$"):
        the(compare(timed(rows, name="two"), first))


def test_large_values_are_compared_like_small_ones() -> None:
    rows = scene(SECONDS)
    for scale in (1e20, 1e-30):
        found = the(compare(timed(rows * np.float32(scale)), timed(scene(SECONDS + 2))))
        small = the(compare(timed(rows), timed(scene(SECONDS + 2))))
        assert (found.mean, found.least, found.lag_s) == (pytest.approx(small.mean), pytest.approx(small.least), 2)


@pytest.mark.parametrize("hops_s", [(1.0, 1.0), (1.0, 0.25), (0.25, 1.0), (0.5, 0.5), (1.0, 0.4)])
@pytest.mark.parametrize("lag_s", [0, 0.5, -0.5, 0.2, 3, -4.5])
@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_a_lag_is_found_by_time(hops_s: tuple[float, float], lag_s: float, noise: float) -> None:
    rng = np.random.default_rng(1)
    banks = []
    for hop_s, late_s in zip(hops_s, (0, lag_s), strict=True):
        rows = scene(np.arange(round(90 / hop_s)) * hop_s + late_s)
        banks.append(timed(rows + noise * rng.normal(size=rows.shape).astype(np.float32), hop_s))
    found = the(compare(*banks))
    assert found.lag_s == pytest.approx(lag_s, abs=0.1)
    assert found.mean_at_lag > 0.99


def test_the_lengths_of_rows_move_no_lag() -> None:
    lengths = np.random.default_rng(3).uniform(0.01, 100, (2, 90, 1)).astype(np.float32)
    seconds = np.arange(90)
    of_any_length = (timed(scene(seconds) * lengths[0]), timed(scene(seconds + 0.3) * lengths[1]))
    assert the(compare(*of_any_length)).lag_s == the(compare(timed(scene(seconds)), timed(scene(seconds + 0.3)))).lag_s


def test_of_lags_that_fit_as_well_the_nearest_to_zero_is_taken() -> None:
    turning = np.eye(2)[np.arange(40) % 2]
    assert the(compare(timed(turning), timed(turning))).lag_s == 0


def test_noise_alone_moves_nothing() -> None:
    """Between two rows lies their mean, which has less noise than either: that must not pass for a lag."""
    rng = np.random.default_rng(2)
    noisy = [scene(SECONDS / 20) + 0.05 * rng.normal(size=(60, 32)).astype(np.float32) for _ in range(2)]
    assert the(compare(timed(noisy[0]), timed(noisy[1]))).lag_s == 0


@pytest.mark.parametrize("rows", [scene(SECONDS)[:2], np.ones((60, 32), np.float32), np.zeros((60, 32), np.float32)])
def test_where_nothing_changes_there_is_no_lag(rows: np.ndarray) -> None:
    found = the(compare(timed(rows), timed(rows)))
    assert isnan(found.lag_s)
    assert isnan(found.mean_at_lag)
    assert found.mean == pytest.approx(1)


def test_other_dimensions_and_other_videos_are_one_line() -> None:
    with pytest.raises(StoreError, match="^v: one has 32 dimensions, two has 16$"):
        list(compare(timed(scene(SECONDS)), timed(scene(SECONDS, 16), name="two")))
    with pytest.raises(StoreError, match="^one and two have no video in common: see --prefix and --suffix$"):
        list(compare(timed(scene(SECONDS)), Timed(name="two", rows={"w": scene(SECONDS)}, hop_s=1)))


def moving(index: int) -> np.ndarray:
    """Return a picture in which a bar wanders, at 30 a second."""
    second = index / 30
    picture = np.full((64, 320, 3), 40, np.uint8)
    left = int(140 + 90 * np.sin(0.4 * second) + 40 * np.sin(0.7 * second + 1))
    picture[8:56, left : left + 40] = (250, 120, 30)
    return picture


def test_the_half_second_of_ffmpeg_s_fps_filter_shows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    clip = make(tmp_path / "a.mp4", [Fraction(i, 30) for i in range(900)], picture=moving)
    write_availability("availability.json", [present(clip)])
    specs = [HistogramSpec(fps=1), HistogramSpec(fps=1, frame_rule="ffmpeg_near")]
    for spec in specs:
        extracted(Path(), Work(spec=spec, store=paths.features("clip", "000", spec)))
        write_json(paths.spec_record(spec), spec.record())
    folders = [str(paths.spec_record(spec).parent) for spec in specs]
    for order, wanted in ((folders, 0.5), (folders[::-1], -0.5)):
        assert main(["bank", "compare", *order, "--dataset", "clip"]) == 0
        line = capsys.readouterr().out.splitlines()[1].split()
        assert line[:2] == ["a", "30"]
        assert float(line[5]) == pytest.approx(wanted, abs=0.1)
        assert float(line[6]) > float(line[2])


def test_users_features_are_compared_with_a_bank(capsys: pytest.CaptureFixture[str]) -> None:
    spec = HistogramSpec()
    write_json(paths.spec_record(spec), spec.record())
    store.write(paths.features("mine", "000", spec), spec, {"v": scene(SECONDS), "w": scene(SECONDS)}, 1)
    Path("theirs").mkdir()
    np.save("theirs/v.mp4.npy", scene(SECONDS + 2))
    command = ["bank", "compare", "histogram", "theirs", "--suffix", r"\.mp4"]
    assert main(command) == 2
    assert "error: theirs does not contain the times of its rows: set --hop-s" in capsys.readouterr().err
    assert main([*command, "--hop-s", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4
    assert lines[-1].startswith("best lag +2.00 s (median; above 0 the second is late), mean cosine there 1.0")
    for hop_s in ("0", "-1", "nan", "inf"):
        assert main([*command, "--hop-s", hop_s]) == 2
        said = capsys.readouterr()
        assert f"error: {hop_s} s from row to row is not allowed: give a finite number above 0" in said.err
        assert said.out == ""
    assert main(["bank", "compare", "histogram", "histogram", "--hop-s", "1"]) == 2
    assert "histogram and histogram both contain the times of their rows: remove --hop-s" in capsys.readouterr().err
    assert main([*command[:-2], "--hop-s", "1"]) == 2
    said = capsys.readouterr()
    assert ("have no video in common" in said.err, said.out) == (True, "")
    Path("histogram").mkdir()
    assert main([*command, "--hop-s", "1"]) == 0
