from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from stepline.benchmark import Prediction
from stepline.errors import StoreError
from stepline.needs import Need
from stepline.runs.predictions import read_predictions, write_predictions

Rows = np.ndarray[tuple[int, int], np.dtype[np.float32]]
TEXT = st.text(max_size=3)
NUMBER = st.floats(allow_nan=False, width=32)


@dataclass(frozen=True, kw_only=True)
class Everything(Prediction):
    """A field of each allowed type."""

    whole: int
    number: float
    text: str
    truth: bool
    words: tuple[str, ...] = ()
    spans: tuple[tuple[float, float], ...] = ()
    deep: tuple[tuple[tuple[int, ...], ...], ...] = ()
    maybe: int | None = None
    row: NDArray[np.int64]
    rows: Rows
    maybe_row: NDArray[np.bool_] | None = None
    maybe_rows: Rows | None = None


@dataclass(frozen=True, kw_only=True)
class Light(Prediction):
    """Arrays whose types are text, as where NumPy is not imported."""

    row: "NDArray[np.int32]"
    rows: "np.ndarray[tuple[int, int], np.dtype[np.float64]] | None" = None


def same(first: Any, second: Any) -> bool:
    if not isinstance(first, np.ndarray):
        return bool(type(first) is type(second) and first == second)
    empty = first.ndim == second.ndim == 2 and len(first) == len(second) == 0
    return first.dtype == second.dtype and (empty or np.array_equal(first, second, equal_nan=first.dtype.kind == "f"))


def round_trip(made: list[Any], kind: type[Prediction] = Everything) -> list[Any]:
    write_predictions(Path("p.parquet"), kind, made, spec="abc", needs=[], selection="")
    read, _ = read_predictions(Path("p.parquet"), kind, "abc")
    assert len(read) == len(made)
    for before, after in zip(made, read, strict=True):
        for each in fields(kind):
            assert same(getattr(before, each.name), getattr(after, each.name)), each.name
    return read


USUAL: dict[str, Any] = {
    "seed": 0,
    "split": "test",
    "video": "a",
    "whole": 1,
    "number": 0.5,
    "text": "",
    "truth": True,
    "row": np.zeros(0, np.int64),
    "rows": np.zeros((0, 0), np.float32),
}


def some(**values: Any) -> Everything:
    return Everything(**USUAL | values)


def matrices() -> st.SearchStrategy[Any]:
    return st.integers(0, 3).flatmap(
        lambda width: st.lists(st.lists(NUMBER, min_size=width, max_size=width), max_size=3).map(
            lambda rows: np.array(rows, np.float32).reshape(len(rows), width)
        )
    )


@given(
    st.lists(
        st.builds(
            Everything,
            seed=st.integers(0, 9),
            split=TEXT,
            video=TEXT,
            whole=st.integers(-(2**63), 2**63 - 1),
            number=st.floats(allow_nan=False),
            text=TEXT,
            truth=st.booleans(),
            words=st.lists(TEXT, max_size=3).map(tuple),
            spans=st.lists(st.tuples(NUMBER, NUMBER), max_size=2).map(tuple),
            deep=st.just(((), ((1,), (2, 3)))),
            maybe=st.none() | st.integers(0, 5),
            row=st.lists(st.integers(0, 9), max_size=3).map(lambda each: np.array(each, np.int64)),
            rows=matrices(),
            maybe_row=st.none() | st.just(np.array([True, False])),
            maybe_rows=st.none() | matrices(),
        ),
        max_size=4,
    )
)
def test_what_is_written_is_read(made: list[Everything]) -> None:
    round_trip(made)


def test_nothing_and_numbers_that_are_none_stay_and_arrays_can_be_changed() -> None:
    assert round_trip([]) == []
    round_trip([some(), some()])
    (read,) = round_trip([some(row=np.array([1, 2]), rows=np.array([[np.nan, 1]], np.float32))])
    assert np.isnan(read.rows[0, 0])
    read.row[0] = 5
    read.rows[0, 0] = 5


def test_types_of_arrays_may_be_text() -> None:
    usual: dict[str, Any] = {"seed": 0, "split": "s", "video": "v"}
    row = np.array([1], np.int32)
    round_trip([Light(**usual, row=row, rows=np.ones((2, 3))), Light(**usual, row=row)], Light)


def test_columns_are_the_fields_and_lists_are_lists() -> None:
    round_trip([some(spans=((0.0, 1.5),), rows=np.ones((1, 2), np.float32))])
    (row,) = pq.read_table("p.parquet").to_pylist()
    assert [*row] == [each.name for each in fields(Everything)]
    assert (row["spans"], row["rows"]) == ([[0.0, 1.5]], [[1.0, 1.0]])


def test_equal_predictions_give_equal_bytes() -> None:
    made = [some(rows=np.ones((1, 2), np.float32)), some(text="ä")]
    round_trip(made)
    content = Path("p.parquet").read_bytes()
    round_trip(made)
    assert Path("p.parquet").read_bytes() == content


@pytest.mark.parametrize("hint", [dict[str, int], tuple[int, str], int | str, list[int]])
def test_another_type_is_no_column(hint: Any) -> None:
    kind = dataclass(frozen=True, kw_only=True)(
        type("Wrong", (Prediction,), {"__annotations__": {"field": hint}, "__module__": __name__})
    )
    with pytest.raises(TypeError, match="cannot be a column of predictions"):
        write_predictions(Path("p.parquet"), kind, [], spec="", needs=[], selection="")


class TestAbout:
    def write(self, spec: str = "abc") -> Path:
        path = Path("p.parquet")
        write_predictions(path, Everything, [some()], spec=spec, needs=[Need("java")], selection="chosen")
        return path

    def test_needs_and_selection_stand_beside(self) -> None:
        _, about = read_predictions(self.write(), Everything, "abc")
        assert (about["needs"], about["selection"]) == (["java"], "chosen")

    def test_those_of_another_configuration_are_one_line(self) -> None:
        with pytest.raises(
            StoreError, match="^p.parquet was written with another configuration: run `stepline predict` again$"
        ):
            read_predictions(self.write("abd"), Everything, "abc")

    def test_an_absent_file_is_one_line(self) -> None:
        with pytest.raises(StoreError, match="^p.parquet does not exist: run `stepline predict`$"):
            read_predictions(Path("p.parquet"), Everything, "abc")

    @pytest.mark.parametrize("keep", [0, 100, -4])
    def test_a_damaged_file_is_one_line(self, keep: int) -> None:
        path = self.write()
        path.write_bytes(path.read_bytes()[:keep])
        with pytest.raises(
            StoreError, match=r"^p.parquet is damaged \([^\n]+\): remove it and run `stepline predict` ag"
        ):
            read_predictions(path, Everything, "abc")

    def test_a_file_without_a_field_or_what_stands_beside_is_one_line(self) -> None:
        table = pq.read_table(self.write())
        unsaid = table.replace_schema_metadata({"about": '{"needs":[]}'})
        for written in (table.drop_columns(["whole"]), unsaid, table.replace_schema_metadata(None)):
            pq.write_table(written, "p.parquet")
            with pytest.raises(StoreError, match=r"^p.parquet is damaged \([^\n]+\)"):
                read_predictions(Path("p.parquet"), Everything, "abc")
