"""Predictions as Parquet files; the columns follow from the fields of a benchmark's prediction class."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from stepline.benchmark.method import Prediction
from stepline.errors import ConfigError, StoreError
from stepline.io import canonical_json, write_table
from stepline.needs import Need
from stepline.seal import check

AnyPrediction = TypeVar("AnyPrediction", bound=Prediction)
SCALARS = {int: pa.int64(), float: pa.float64(), str: pa.string(), bool: pa.bool_()}


def write_predictions(
    path: Path,
    kind: type[Prediction],
    made: Sequence[Prediction],
    *,
    spec: str,
    needs: Iterable[Need],
    selection: str,
    in_part: Mapping[str, float] | None = None,
) -> None:
    """Write one row per prediction.

    A field is an ``int``, ``float``, ``str`` or ``bool``; a tuple of one of these, or of such tuples; an array of one
    dimension, ``NDArray[T]``, or two, ``np.ndarray[tuple[int, int], np.dtype[T]]`` (an array without rows is read back
    with shape (0, 0)); or any of these or None. A module that does not import NumPy can give array types as text.
    The file's metadata contains the other arguments. spec: the cache key of the job. needs: the missing inputs.
    selection: how settings were chosen. in_part: the missing seconds of each damaged video that was read.
    """
    about: dict[str, Any] = {"spec": spec, "needs": list(map(str, needs)), "selection": selection}
    about |= {"in_part": dict(in_part)} if in_part else {}
    hints = _hints(kind)
    schema = pa.schema([(name, _type(hint)) for name, hint in hints.items()], {"about": canonical_json(about)})
    columns = [_column(kind, field, [_plain(getattr(each, field.name)) for each in made]) for field in schema]
    write_table(path, pa.table(columns, schema=schema))


def read_predictions(path: Path, kind: type[AnyPrediction], spec: str) -> tuple[list[AnyPrediction], Mapping[str, Any]]:
    """Return the predictions of a file, and its ``needs``, ``selection`` and, if present, ``in_part``.

    Raises StoreError if the file is missing or damaged, or if its spec differs from ``spec``.
    """
    if not path.exists():
        raise StoreError(f"{path} does not exist: run `stepline predict`")
    try:
        check(path)
        with pq.ParquetFile(path) as file:
            table = file.read()
        about = json.loads(table.schema.metadata[b"about"])
        if about["spec"] != spec:
            raise StoreError(f"{path} was written with another configuration: run `stepline predict` again")
        hints = _hints(kind)
        columns = [_values(table[name].combine_chunks(), hint) for name, hint in hints.items()]
        made = [kind(**dict(zip(hints, row, strict=True))) for row in zip(*columns, strict=True)]
    except (pa.ArrowException, OSError, KeyError, TypeError, ValueError) as error:
        raise StoreError(f"{path} is damaged ({error}): remove it and run `stepline predict` again") from None
    return made, about


def _hints(kind: type[Prediction]) -> dict[str, Any]:
    """Return the type of each field, without None."""
    hints = get_type_hints(kind, localns={"np": np, "NDArray": NDArray})
    return {field.name: _without_none(hints[field.name]) for field in fields(kind)}


def _without_none(hint: Any) -> Any:
    if get_origin(hint) not in (Union, UnionType):
        return hint
    first, *others = (each for each in get_args(hint) if each is not NoneType)
    return hint if others else first


def _array(hint: Any) -> tuple[Any, int] | None:
    """Return the NumPy type and the number of dimensions of an array type; None for other types."""
    if get_origin(hint) is not np.ndarray:
        return None
    shape, dtype = get_args(hint)
    return get_args(dtype)[0], 2 if get_args(shape) == (int, int) else 1


def _type(hint: Any) -> pa.DataType:
    if hint in SCALARS:
        return SCALARS[hint]
    if array := _array(hint):
        row = pa.list_(pa.from_numpy_dtype(np.dtype(array[0])))
        return row if array[1] == 1 else pa.list_(row)
    if get_origin(hint) is tuple and len(inner := {*get_args(hint)} - {...}) == 1:
        return pa.list_(_type(inner.pop()))
    raise TypeError(f"{hint} cannot be a column of predictions")


def _column(kind: type[Prediction], field: pa.Field, values: Sequence[Any]) -> pa.Array:
    try:
        return pa.array(values, field.type)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise ConfigError(f"{kind.__name__}.{field.name}: a method yielded a value of another type: {error}") from None


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray) else value


def _values(column: Any, hint: Any) -> list[Any]:
    if array := _array(hint):
        return [_numbers(each.values, *array) if each.is_valid else None for each in column]
    return list(map(_tuple, column.to_pylist()))


def _numbers(values: Any, dtype: Any, dimensions: int) -> Any:
    rows = len(values)
    flat = (values if dimensions == 1 else values.flatten()).to_numpy(zero_copy_only=False).astype(dtype)
    return flat if dimensions == 1 else flat.reshape(rows, len(flat) // rows if rows else 0)


def _tuple(value: Any) -> Any:
    return tuple(map(_tuple, value)) if isinstance(value, list) else value
