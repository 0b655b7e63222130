import math
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import stepline
from stepline.errors import StoreError
from stepline.features import store
from stepline.features.bank import Bank
from stepline.features.store import Part
from tests.features.conftest import HOP_S, LINE, SPEC

NAN, INF = float("nan"), float("inf")


def test_a_bank_reads_like_a_mapping_without_copies(folder: Path) -> None:
    bank = stepline.open_bank(folder, "mine")
    assert (list(bank), len(bank), "a" in bank, "z" in bank) == (["a", "b", "c"], 3, True, False)
    assert {video: rows.shape for video, rows in bank.items()} == {"a": (40, 7), "b": (14, 7), "c": (100, 7)}
    assert bank["a"].dtype == np.float16
    assert not bank["a"].flags.writeable
    assert np.shares_memory(bank["b"], bank.window("b", 0, 99))
    for error in (StoreError, KeyError):
        with pytest.raises(error, match="^z has no features: skip it"):
            bank["z"]
    assert bank.get("z") is None
    sent = pickle.dumps(bank)
    assert len(sent) < 2000, "what is sent is what to open"
    assert pickle.loads(sent).spec == bank.spec
    assert np.array_equal(pickle.loads(sent)["c"], bank["c"])


def test_a_flipped_bit_is_found_when_its_video_is_first_read(folder: Path) -> None:
    file = Path(str(stepline.open_bank(folder).stores["a"].location), "features/c/0/0")
    content = bytearray(file.read_bytes())
    content[0] ^= 1
    file.write_bytes(content)
    bank = stepline.open_bank(folder)
    assert len(bank["b"]) == 14
    with pytest.raises(StoreError, match="the rows of a are damaged: "):
        bank["a"]


def test_importing_the_package_brings_no_library(folder: Path) -> None:
    code = "import sys, stepline; assert not {'numpy', 'zarr', 'pyarrow'} & {*sys.modules}; stepline.open_bank"
    subprocess.run([sys.executable, "-c", code], check=True)
    with pytest.raises(AttributeError, match="no attribute 'close_bank'"):
        _ = stepline.close_bank


@pytest.mark.parametrize(
    ("video", "seconds", "wanted"),
    [
        ("a", [0, 0.49, 0.5, 19.99, 3], [0, 0, 1, 39, 6]),
        ("a", np.array([0.1 * 15]), [3]),
        ("b", [2, 3.9, 10, 14.9], [4, 7, 20, 29]),
        ("a", [], []),
    ],
)
def test_a_row_stands_for_the_times_until_the_next(
    folder: Path, video: str, seconds: list[float], wanted: list[int]
) -> None:
    rows = stepline.open_bank(folder).at(video, seconds)
    assert rows.shape == (len(wanted), 7)
    assert rows[:, 0].tolist() == wanted


@pytest.mark.parametrize(("video", "second"), [("a", -0.1), ("a", 20), ("b", 1.9), ("b", 4.0), ("b", 9.9), ("b", 15)])
def test_a_time_without_features_is_one_line(folder: Path, video: str, second: float) -> None:
    with pytest.raises(StoreError, match=f"^{video} has no features at {second:g} s$"):
        stepline.open_bank(folder).at(video, [1 if video == "a" else 2, second])


def test_many_windows_are_one_array_with_a_mask(folder: Path) -> None:
    bank = stepline.open_bank(folder)
    asked = [
        ("a", 1.0, 3.5, [2, 3, 4, 5, 6]),
        ("c", 49.0, 60, [98, 99, None, None, None]),
        ("a", -1.0, 1.5, [None, None, 0, 1, 2]),
        ("a", 0.2, 1.2, [1, 2, None, None, None]),
        ("b", 3.0, 5.5, [6, 7, None, None, None]),
        ("b", 9.0, 11.5, [None, None, 20, 21, 22]),
        ("b", 5.0, 7.5, [None] * 5),
        ("c", 48.0, np.inf, [96, 97, 98, 99, None]),
    ]
    videos, starts, ends, wanted = zip(*asked, strict=True)
    rows, there = bank.windows(videos, starts, ends, length=5)
    assert (rows.shape, rows.dtype, there.shape) == ((8, 5, 7), np.float16, (8, 5))
    assert there.tolist() == [[number is not None for number in line] for line in wanted]
    assert rows[:, :, 3].tolist() == [[number or 0 for number in line] for line in wanted]
    with pytest.raises(StoreError, match="^a has 6 rows from 1 to 4 s, not 5$"):
        bank.windows(["a"], [1], [4], length=5)
    rows, there = bank.windows(["b"], [0], [15], length=30)
    assert there[0].nonzero()[0].tolist() == [*range(4, 8), *range(20, 30)] == rows[0, there[0], 0].tolist()


@pytest.mark.parametrize("many", [4, 300])
def test_means_are_those_of_windows(tmp_path: Path, many: int) -> None:
    rng = np.random.default_rng(0)
    noise = {"a": rng.normal(size=(1000, 5)).astype(np.float16), "b": rng.normal(3, 50, (77, 5)).astype(np.float16)}
    spans = [Part(noise["a"][:300], 0.0, 0.0, 150.0), Part(noise["a"][400:500], 200.0, 200.0, 250.0)]
    store.write(tmp_path / "000", SPEC, noise | {"c": spans}, HOP_S)
    bank = Bank.open([tmp_path / "000"], SPEC)
    videos = ["b", "a", "c"] * many
    starts = rng.uniform(-20, 520, len(videos))
    ends = starts + rng.uniform(0, 400, len(videos)) * rng.integers(0, 2, len(videos))
    wanted = [bank.window(*window).mean(axis=0, dtype=np.float64) for window in zip(videos, starts, ends, strict=True)]
    means = bank.means(videos, starts, ends)
    assert means.shape == (len(videos), 5)
    np.testing.assert_allclose(means, wanted, rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    ("window_s", "stride_s", "whole", "wanted"),
    [
        (20, 20, False, {"a": [0], "b": [0], "c": [0, 20, 40]}),
        (20, 20, True, {"a": [0], "c": [0, 20]}),
        (4, 4, False, {"a": [0, 4, 8, 12, 16], "b": [0, 8, 12], "c": [*range(0, 49, 4)]}),
        (2, 2, True, {"a": [*range(0, 20, 2)], "b": [2, 10, 12], "c": [*range(0, 50, 2)]}),
        (1.5, 5, True, {"a": [0, 5, 10, 15], "b": [10], "c": [*range(0, 50, 5)]}),
        (0.1, 10.2, False, {"a": [0], "b": [], "c": [0]}),
        (0.1, 10.2, True, {"a": [0], "b": [], "c": [0]}),
    ],
)
def test_windows_slide_over_each_video(
    folder: Path, window_s: float, stride_s: float, whole: bool, wanted: dict[str, list[float]]
) -> None:
    bank = stepline.open_bank(folder)
    videos, starts_s, ends_s = bank.sliding(window_s, stride_s, whole=whole)
    found = [(video, start_s) for video in wanted for start_s in wanted[video]]
    assert list(zip(videos, starts_s, strict=True)) == found
    assert ends_s == [start_s + window_s for start_s in starts_s]
    length = math.ceil(window_s / HOP_S)
    _, there = bank.windows(videos, starts_s, ends_s, length=length)
    assert there.any(axis=1).all()
    assert not whole or there.all()
    assert len(bank.means(videos, starts_s, ends_s)) == len(videos)


def test_rows_from_a_later_time_on_are_not_those_of_a_whole_video(tmp_path: Path) -> None:
    store.write(tmp_path / "000", SPEC, {"a": LINE[:4], "b": [Part(LINE[:4], 2.0, 2.0, 4.0)]}, HOP_S)
    bank = Bank.open([tmp_path / "000"], SPEC)
    assert [bank.whole(video) for video in "ab"] == [True, False]


@pytest.mark.parametrize(("hop_s", "window_s"), [(0.1, 0.3), (0.3, 0.9)])
def test_rounded_times_lose_no_window(tmp_path: Path, hop_s: float, window_s: float) -> None:
    store.write(tmp_path / "000", SPEC, {"a": LINE[:30]}, hop_s)
    bank = Bank.open([tmp_path / "000"], SPEC)
    windows = bank.sliding(window_s, window_s, whole=True)
    rows, there = bank.windows(*windows, length=3)
    assert there.all()
    assert rows[:, :, 0].ravel().tolist() == [*range(30)]
    assert bank.at("a", [window_s, 2 * window_s])[:, 0].tolist() == [3, 6]


@pytest.mark.parametrize("seconds", [0, -1, NAN, INF, "4", None])
def test_a_window_has_a_length_in_seconds(folder: Path, seconds: float) -> None:
    bank = stepline.open_bank(folder)
    for name, asked in (("window_s", (seconds, 1)), ("stride_s", (1, seconds))):
        with pytest.raises(StoreError, match=f"^{name} {seconds} is not allowed: give seconds above 0$"):
            bank.sliding(*asked)


def test_windows_are_a_data_set_for_workers(folder: Path) -> None:
    torch = pytest.importorskip("torch")
    bank = stepline.open_bank(folder)
    asked = ["a", "c", "b", "a"], [0, 48, 9, 1], [2, 50, 11, 3]
    windows = bank.torch(*asked, length=4)
    assert isinstance(windows, torch.utils.data.Dataset)
    assert windows.asked == [*zip(*asked, strict=True)]
    labelled = torch.utils.data.StackDataset(pickle.loads(pickle.dumps(windows)), range(len(windows)))
    loader = torch.utils.data.DataLoader(labelled, batch_size=3, shuffle=True, num_workers=1)
    items, labels = zip(*loader, strict=True)
    order = torch.cat(labels)
    assert sorted(order.tolist()) == [0, 1, 2, 3]
    rows, there = (torch.cat(parts).numpy() for parts in zip(*items, strict=True))
    for got, wanted in zip((rows, there), bank.windows(*asked, length=4), strict=True):
        assert got.dtype == wanted.dtype
        assert np.array_equal(got, wanted[order])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda bank: bank.window("a", NAN, 1), "^a: nan to 1 is not a time span: give seconds$"),
        (lambda bank: bank.window("a", 1, NAN), "^a: 1 to nan is not a time span: "),
        (lambda bank: bank.window("a", -INF, 1), "^a: -inf to 1 is not a time span: "),
        (lambda bank: bank.window("a", "0", 1), "^a: 0 to 1 is not a time span: "),
        (lambda bank: bank.window("a", 0, np.ones(2)), "^a: .* is not a time span: "),
        (lambda bank: bank.clip("a", NAN, None), "^a: nan to None is not a time span: "),
        (lambda bank: bank.at("a", [1, NAN]), "^a: nan to nan is not a time span: "),
        (lambda bank: bank.at("a", [INF]), "^a: inf to inf is not a time span: "),
        (lambda bank: bank.at("a", 3), "^seconds must be a list, not 3$"),
    ],
)
def test_what_is_no_time_is_one_line(folder: Path, call: Callable[[Bank], object], message: str) -> None:
    with pytest.raises(StoreError, match=message) as raised:
        call(stepline.open_bank(folder))
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("verb", ["means", "windows", "torch"])
@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ((["a", "c"], [0, NAN], [1, 1]), "^c: nan to 1 is not a time span: "),
        ((["a"], [-INF], [1]), "^a: -inf to 1 is not a time span: "),
        ((["a"], [None], [1]), "^a: None to 1 is not a time span: "),
        ((["a"], [0, 1], [1]), "^1 videos, 2 starts_s, 1 ends_s: give one of each per window$"),
        ((["a"], 0, [1]), "^starts_s must be a list, not 0$"),
        ((["z"], [0], [1]), "^z has no features"),
    ],
)
def test_windows_that_cannot_be_are_refused_at_once(
    folder: Path, verb: str, asked: tuple[object, ...], message: str
) -> None:
    if verb == "torch":
        pytest.importorskip("torch")
    with pytest.raises(StoreError, match=message):
        getattr(stepline.open_bank(folder), verb)(*asked, **({} if verb == "means" else {"length": 5}))


@pytest.mark.parametrize("length", [0, -1, 2.5, None])
def test_a_length_is_a_number_of_rows(folder: Path, length: object) -> None:
    for verb in ("windows", "torch"):
        with pytest.raises(StoreError, match=f"^length {length} is not allowed: give a whole number of rows above 0$"):
            getattr(stepline.open_bank(folder), verb)(["a"], [0], [1], length=length)
