"""Predictions as Parquet: the columns follow from the fields of a benchmark's class of predictions."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from stepline.benchmark.method import Prediction
from stepline.errors import StoreError
from stepline.io import atomic_path, canonical_json
from stepline.needs import Need

AnyPrediction = TypeVar("AnyPrediction", bound=Prediction)
SCALARS = {int: pa.int64(), float: pa.float64(), str: pa.string(), bool: pa.bool_()}


def write_predictions(
    path: Path, kind: type[Prediction], made: Sequence[Prediction], *, spec: str, needs: Iterable[Need], selection: str
) -> None:
    """Write a row per prediction.

    Fields are ``int``, ``float``, ``str``, ``bool``, ``tuple[T, ...]`` of these or of tuples of them, ``NDArray[T]`` of
    one dimension, and ``NDArray[T] | None`` of two (a list of rows). spec, of the job; needs, what was missing; and
    selection, how settings were chosen, stand in the file's metadata.
    """
    about = {"spec": spec, "needs": list(map(str, needs)), "selection": selection}
    hints = _hints(kind)
    schema = pa.schema([(name, _type(hint)) for name, hint in hints.items()], {"about": canonical_json(about)})
    columns = [_column([getattr(each, name) for each in made], schema.field(name).type) for name in hints]
    with atomic_path(path) as part:
        pq.write_table(pa.table(columns, schema=schema), part)


def read_predictions(path: Path, kind: type[AnyPrediction], spec: str) -> tuple[list[AnyPrediction], Mapping[str, Any]]:
    """Return what `write_predictions` wrote, and ``needs`` and ``selection``.

    Raises StoreError where the file is absent, damaged or made by another configuration than that of ``spec``.
    """
    if not path.exists():
        raise StoreError(f"{path} is not there: run `stepline predict`")
    try:
        table = pq.read_table(path)
        about = json.loads(table.schema.metadata[b"about"])
        if about["spec"] != spec:
            raise StoreError(f"{path} was made by another configuration: run `stepline predict` again")
        hints = _hints(kind)
        columns = [_values(table[name].combine_chunks(), hint) for name, hint in hints.items()]
        made = [kind(**dict(zip(hints, row, strict=True))) for row in zip(*columns, strict=True)]
    except (pa.ArrowException, OSError, KeyError, TypeError, ValueError) as error:
        raise StoreError(f"{path} is damaged ({error}): remove it and run `stepline predict` again") from None
    return made, about


def _hints(kind: type[Prediction]) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in fields(kind)}


def _array(hint: Any) -> tuple[Any, int] | None:
    """Return the NumPy type and the number of dimensions of an array's hint; None of anything else."""
    if get_origin(hint) in (Union, UnionType):
        (inner,) = (each for each in get_args(hint) if each is not NoneType)
        found = _array(inner)
        return None if found is None else (found[0], 2)
    return (get_args(get_args(hint)[1])[0], 1) if get_origin(hint) is np.ndarray else None


def _type(hint: Any) -> pa.DataType:
    if hint in SCALARS:
        return SCALARS[hint]
    if array := _array(hint):
        inner = pa.from_numpy_dtype(np.dtype(array[0]))
        return pa.list_(inner) if array[1] == 1 else pa.list_(pa.list_(inner))
    if get_origin(hint) is tuple:
        return pa.list_(_type(get_args(hint)[0]))
    raise TypeError(f"{hint} cannot be a column of predictions")


def _column(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    if not any(isinstance(each, np.ndarray) for each in values):
        return pa.array(values, kind)
    inner = kind.value_type
    arrays = [[] if each is None else each for each in values]
    offsets = np.cumsum([0, *map(len, arrays)], dtype=np.int32)
    if pa.types.is_list(inner):
        rows = [each for each in arrays if len(each)]
        widths = np.concatenate([np.full(len(each), each.shape[1]) for each in rows])
        flat = pa.array(np.concatenate([each.ravel() for each in rows]), inner.value_type)
        content = pa.ListArray.from_arrays(np.concatenate([[0], widths.cumsum()]).astype(np.int32), flat)
    else:
        content = pa.array(np.concatenate(arrays), inner)
    return pa.ListArray.from_arrays(offsets, content, mask=pa.array([each is None for each in values]))


def _values(column: Any, hint: Any) -> list[Any]:
    if array := _array(hint):
        return [None if not each.is_valid else _matrix(each.values, *array) for each in column]
    if get_origin(hint) is tuple:
        return [_tuple(each) for each in column.to_pylist()]
    return column.to_pylist()  # type: ignore[no-any-return]


def _matrix(values: Any, dtype: Any, dimensions: int) -> Any:
    if dimensions == 1:
        return values.to_numpy(zero_copy_only=False).astype(dtype, copy=False)
    return values.flatten().to_numpy(zero_copy_only=False).reshape(len(values), -1)


def _tuple(value: Any) -> Any:
    return tuple(map(_tuple, value)) if isinstance(value, list) else value
