"""Reading and writing files that are either whole or absent: write to a temporary file, fsync, rename."""

import csv
import hashlib
import io
import json
import os
import re
import shutil
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stepline.aside import OLD, file_beside, folder_beside
from stepline.errors import StoreError
from stepline.seal import CHANGED, KEY, OPEN, check, intact, seal, sealed, sealed_below, unsealed

if TYPE_CHECKING:
    import pyarrow as pa
    import yaml
    from numpy.typing import NDArray


SETTLED_S = 2.0
"""Results from a file that changed less than this long ago are not cached: its next change may have the same time."""


@contextmanager
def atomic_path(path: Path | str) -> Iterator[Path]:
    """Yield a temporary sibling of ``path`` that becomes ``path`` when the block ends without an error.

    The temporary name keeps the suffix, for writers that choose the format by it. An error leaves no files. The
    leftovers of a kill are removed by the next process that writes to the same folder (``aside``).
    """
    path = Path(path)
    with file_beside(path) as part:
        yield part
        _fsync(part)
        part.replace(path)
        _fsync(path.parent)


def _fsync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_bytes(path: Path | str, content: bytes) -> None:
    """Write ``content`` to ``path`` atomically."""
    with atomic_path(path) as part:
        part.write_bytes(content)


def write_text(path: Path | str, content: str) -> None:
    """Write ``content`` to ``path`` atomically, as UTF-8."""
    write_bytes(path, content.encode())


def write_cache(path: Path, content: str) -> None:
    """Write a result that can be computed again, if a run of the workflow computed it and the account may write there.

    So commands that only look (`stepline status`) write nothing.
    """
    if os.environ.get("STEPLINE_RUN"):
        with suppress(OSError):
            write_text(path, content)


def csv_text(header: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    """Return a header and rows as CSV; floats have full precision, so that they are read back exactly."""
    content = io.StringIO()
    csv.writer(content, lineterminator="\n").writerows([header, *rows])
    return content.getvalue()


def write_json(path: Path | str, value: Any) -> None:
    """Write ``value`` to ``path`` atomically, as indented JSON with sorted keys."""
    write_text(path, _indented(value))


def write_sealed(path: Path | str, value: dict[str, Any]) -> None:
    """Write ``value`` as ``write_json`` does, with a seal: ``read_json`` then detects any changed byte."""
    write_bytes(path, sealed(_indented(value | {KEY: OPEN}).encode()))


def _indented(value: Any) -> str:
    return json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def parse_json(content: bytes | str) -> Any:
    """Return the JSON value in ``content``; raise ValueError if it is not JSON, or nested too deeply."""
    try:
        return json.loads(content)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def read_json(path: Path | str) -> Any:
    """Return the JSON value in ``path``, without its seal; raise StoreError if it is damaged."""
    content = Path(path).read_bytes()
    try:
        value = parse_json(content)
    except ValueError as error:
        raise StoreError(f"{path} is not JSON ({error}): remove it and run the same command again") from None
    if not intact(content):
        raise StoreError(f"{path} is damaged ({CHANGED}): remove it and run the same command again")
    if isinstance(value, dict):
        value.pop(KEY, None)
    return value


YAML_CHARACTERS, YAML_VALUES, YAML_LEVELS = 1 << 20, 100_000, 100
"""The maximum size of a YAML file; values count as often as aliases repeat them."""


def packaged_yaml(path: Path) -> Any:
    """Return the YAML value in a file of the package. Its content is checked by tests."""
    import yaml

    return getattr(yaml, "CSafeLoader", yaml.SafeLoader)(path.read_text(encoding="utf-8")).get_single_data()


def read_yaml(text: str) -> Any:
    """Return the YAML value in ``text``, read by libyaml if PyYAML has it.

    Raises yaml.YAMLError if it is not YAML, if a mapping has a key twice, or if it has more characters, values or
    levels than ``YAML_CHARACTERS``, ``YAML_VALUES`` and ``YAML_LEVELS``.
    """
    import yaml

    kind = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    _refuse_depth(text, kind)
    loader = kind(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        _refuse_bombs(node)
        _refuse_duplicates(node)
        return loader.construct_document(node)
    except ValueError as error:
        raise yaml.YAMLError(f"a value is invalid: {error}") from None
    finally:
        loader.dispose()


def _refuse_depth(text: str, kind: Any) -> None:
    """Raise yaml.YAMLError before libyaml composes so many levels that a stack overflow kills the process."""
    import yaml

    if len(text) > YAML_CHARACTERS:
        raise yaml.YAMLError(f"it has more than {YAML_CHARACTERS} characters")
    most = text.count("[") + text.count("{") + max(map(len, re.findall("^[ ?-]*", text, re.MULTILINE)))
    if most < 2000:
        return
    levels = 0
    for event in yaml.parse(text, kind):
        levels += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if levels > YAML_LEVELS:
            raise yaml.YAMLError(f"it has more than {YAML_LEVELS} levels")


def _refuse_bombs(document: "yaml.Node") -> None:
    """Raise yaml.YAMLError if it has too many levels, or too many values once its aliases are expanded."""
    import yaml

    counted: dict[int, tuple[int, int]] = {}
    left, begun = [document], set()
    while left:
        node = left[-1]
        if id(node) in counted:
            left.pop()
            continue
        if isinstance(node, yaml.ScalarNode):
            if node.tag in ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float") and len(node.value) > YAML_LEVELS:
                raise yaml.YAMLError(f"line {node.start_mark.line + 1}: a number has {len(node.value)} characters")
            held = []
        else:
            held = [each for item in node.value for each in (item if isinstance(item, tuple) else [item])]
        if id(node) not in begun:
            begun.add(id(node))
            left += [each for each in held if id(each) not in begun]
            continue
        of = [counted.get(id(each), (0, 0)) for each in held]  # 0 for a node that contains itself
        values, levels = 1 + sum(n for n, _ in of), 1 + max((n for _, n in of), default=0)
        if values > YAML_VALUES or levels > YAML_LEVELS:
            many = f"{YAML_LEVELS} levels" if levels > YAML_LEVELS else f"{YAML_VALUES} values, with its aliases"
            raise yaml.YAMLError(f"it has more than {many}")
        counted[id(node)] = values, levels


def _refuse_duplicates(document: "yaml.Node") -> None:
    """Raise yaml.YAMLError if a mapping has a key twice; keys may override merged keys (``<<``).

    It must run before the document is constructed, which writes merged keys into the nodes.
    """
    import yaml

    left, seen = [document], set()
    while left:
        node = left.pop()
        if isinstance(node, yaml.ScalarNode) or id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            left += node.value
            continue
        keys = set()
        for key, value in node.value:
            left.append(value)
            if not isinstance(key, yaml.ScalarNode) or key.tag == "tag:yaml.org,2002:merge":
                continue
            if (key.tag, key.value) in keys:
                raise yaml.YAMLError(f"line {key.start_mark.line + 1}: the key {key.value!r} occurs twice; keep one")
            keys.add((key.tag, key.value))


def read_table(path: Path | str, columns: list[str] | None = None) -> "pa.Table":
    """Return the Parquet table in ``path``, or some of its columns; raise StoreError if it is damaged."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        check(Path(path))
        with pq.ParquetFile(path) as file:  # ``pq.read_table`` would import pandas
            return file.read(columns)
    except FileNotFoundError:
        raise
    except (pa.ArrowException, OSError, ValueError) as error:
        raise StoreError(f"{path} is damaged ({error}): remove its folder and run the stage that writes it") from None


def write_table(path: Path | str, table: "pa.Table", **options: Any) -> None:
    """Write ``table`` to ``path`` atomically, as sealed Parquet. options: of ``pyarrow.parquet.write_table``."""
    import pyarrow.parquet as pq

    with atomic_path(path) as part:
        pq.write_table(table.replace_schema_metadata({**(table.schema.metadata or {}), KEY: OPEN}), part, **options)
        seal(part)


def write_tensors(
    path: Path | str, tensors: Mapping[str, Any], save: Callable[..., object], about: Mapping[str, str] | None = None
) -> None:
    """Write ``tensors`` to ``path`` atomically, as sealed safetensors with ``about`` as metadata.

    save: ``save_file`` of ``safetensors.numpy`` or ``safetensors.torch``. It replaces the file by another, which only
    its owner can read and no lock protects. So it writes into a folder, from which the content is copied.
    """
    from safetensors import SafetensorError

    with folder_beside(Path(path)) as folder, atomic_path(path) as part:
        try:
            save(tensors, folder / "tensors", metadata={**(about or {}), KEY: OPEN})
        except SafetensorError as error:
            if found := re.search(r"os error (\d+)", str(error)):
                raise OSError(int(found[1]), os.strerror(int(found[1]))) from None
            raise
        shutil.copyfile(folder / "tensors", part)
        seal(part)


def write_arrays(path: Path | str, **arrays: "NDArray[Any]") -> None:
    """Write NumPy arrays to ``path`` atomically, as an uncompressed ``.npz`` with a seal at its end."""
    import numpy as np

    content = io.BytesIO()  # NumPy's own file writing does not report a full disk
    np.savez(content, allow_pickle=False, **arrays)
    write_bytes(path, sealed_below(content.getvalue()))


def read_arrays(path: Path | str) -> dict[str, "NDArray[Any]"]:
    """Return the arrays that ``write_arrays`` wrote; raise StoreError if the file is damaged."""
    import numpy as np

    try:
        with np.load(io.BytesIO(unsealed(Path(path).read_bytes()))) as loaded:
            return dict(loaded)
    except FileNotFoundError:
        raise
    except (OSError, EOFError, ValueError, KeyError, NotImplementedError, zipfile.BadZipFile) as error:
        raise StoreError(f"{path} is damaged ({error}): remove it and run the same command again") from None


def read_member(archive: zipfile.ZipFile, name: str, most_bytes: int) -> bytes:
    """Return a member of an archive.

    Raises KeyError if it is absent, and ValueError if it has more than ``most_bytes``, whatever it states, or is
    compressed by another method than deflate: these expand without a limit.
    """
    if archive.getinfo(name).compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError(f"{name} is compressed by another method than deflate")
    with archive.open(name) as member:
        content = member.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise ValueError(f"{name} has more than {most_bytes} bytes")
    return content


def sha256_file(path: Path | str) -> str:
    """Return the sha256 of the file's bytes, in hex."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def canonical_json(value: Any) -> str:
    """Return ``value`` as JSON without spaces and with sorted keys: equal values give equal text.

    Raises TypeError or ValueError if a value has no such form (objects, NaN, infinities).
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


@contextmanager
def atomic_dir(path: Path | str) -> Iterator[Path]:
    """Yield a new temporary folder next to ``path`` that becomes ``path`` when the block ends without an error.

    An existing ``path`` is first moved aside and then replaced. After a kill between these steps, ``path`` does not
    exist, and the next process that uses the folder (``aside.sweep``) moves the old one back.
    """
    path = Path(path)
    with folder_beside(path) as folder:
        part, old = folder / path.name, folder / OLD
        part.mkdir()
        old.mkdir()
        yield part
        for child in sorted(part.rglob("*")):
            _fsync(child)
        _fsync(part)
        if path.exists():
            path.replace(old / path.name)
        part.replace(path)
        _fsync(path.parent)
