"""Files of features and checkpoints that are damaged or hostile: rows, tensors or one line, and no more memory.

``python -m tests.chaos.strangers SEED N`` reads the files of the seeds from SEED on.
"""

import contextlib
import io
import json
import os
import pickle
import pickletools
import random
import resource
import struct
import sys
import time
import warnings
import zipfile
import zlib
from argparse import Namespace
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping
from functools import cache
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any

import h5py
import numpy as np
import torch
from safetensors.numpy import save

from stepline.backbones import checkpoint
from stepline.backbones.histogram import HistogramSpec
from stepline.errors import StoreError
from stepline.features import importing, store
from stepline.features.importing import Folder
from stepline.media.process import Limits

MOST_BYTES = 256 << 20
"""The memory that reading any of these files may take; the largest has 2 MB."""
MOST_S = 20.0
BATCH = 200
"""Files per process. A process that dies is one broken promise."""
ROWS = np.random.default_rng(0).normal(size=(12, 7)).astype(np.float32)
HUGE = (0, 1, 255, 1 << 16, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 40, (1 << 63) - 1, 1 << 63, (1 << 64) - 1)
LEGACY = b"".join(pickle.dumps(each, 2) for each in (0x1950A86A20F9469CFC6C, 1001, {"little_endian": True}))


def npy(pickled: bytes) -> bytes:
    """Return a ``.npy`` of an array of objects."""
    made = io.BytesIO()
    np.lib.format.write_array_header_1_0(made, {"descr": "|O", "fortran_order": False, "shape": ()})
    return made.getvalue() + pickled


def pt(pickled: bytes, members: Mapping[str, bytes] = MappingProxyType({"0": ROWS.tobytes()}), how: int = 0) -> bytes:
    """Return a checkpoint whose object is ``pickled``. how: the compression of the members."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("archive/data.pkl", pickled, 0 if members else how)
        for name, content in members.items():
            archive.writestr(f"archive/data/{name}", content, how)
    return made.getvalue()


def h5(write: Callable[[h5py.File], object]) -> bytes:
    """Return an HDF5 file."""
    made = io.BytesIO()
    with h5py.File(made, "w") as file:
        write(file)
    return made.getvalue()


def saved(content: Any, zipped: bool = True) -> bytes:
    """Return a checkpoint that torch writes."""
    made = io.BytesIO()
    torch.save(content, made, _use_new_zipfile_serialization=zipped)
    return made.getvalue()


class Call:
    """Pickles as a call, and as what it sets."""

    def __init__(self, function: Any, *arguments: Any, state: Any = None) -> None:
        self.reduced = (function, arguments) if state is None else (function, arguments, state)

    def __reduce__(self) -> Any:
        return self.reduced


def dictionary(rows: Any) -> Any:
    """Return what ``np.save`` pickles of a dictionary."""
    return np.array({"frames_features": rows, "ids": np.array(["a", None], object), "score": np.float64(1)}, object)


@cache
def whole() -> dict[str, bytes]:
    """Return undamaged files by name."""
    plain = io.BytesIO()
    np.save(plain, ROWS)
    tensors = {
        "a.weight": torch.from_numpy(ROWS).T,
        "a.bias": torch.ones(3, dtype=torch.bfloat16),
        "n": torch.tensor(2),
    }
    held = {"state_dict": OrderedDict(tensors), "args": Namespace(lr=[1e-3]), "own": torch.nn.Parameter(torch.ones(2))}
    files = {"plain.npy": plain.getvalue(), "a.safetensors": save({"a": ROWS, "b": ROWS[0]})}
    for protocol in range(6):
        files[f"{protocol}.npy"] = npy(pickle.dumps(dictionary(ROWS), protocol))
    files["old.npy"] = files["2.npy"].replace(b"numpy._core.", b"numpy.core.")
    for zipped in (True, False):
        files[f"held{zipped}.pt"] = saved(held, zipped)
        files[f"bare{zipped}.pt"] = saved(torch.from_numpy(ROWS), zipped)
    for name, options in {
        "contiguous": {},
        "chunks": {"chunks": (5, 7), "maxshape": (None, 7)},
        "gzip": {"compression": "gzip", "shuffle": True, "fletcher32": True, "chunks": (5, 7)},
        "lzf": {"compression": "lzf", "chunks": (12, 7)},
    }.items():
        files[f"{name}.h5"] = h5(lambda file, options=options: file.create_dataset("a", data=ROWS, **options))
    with TemporaryDirectory() as folder:
        store.write(Path(folder), HistogramSpec(), {"a": ROWS[:, :7]}, 1.0)
        for name in ("features/zarr.json", "features/c/0/0", "index.parquet"):
            files[f"{name}.store"] = Path(folder, name).read_bytes()
    return files


def array(content: Any, code: str, shape: Any, state: Any = None) -> Any:
    """Return an object that pickles as an array, by its bytes and the arguments of its dtype."""
    dtype = Call(np.dtype, code, False, True, state=state or (3, "<", None, None, None, -1, -1, 0))
    return Call(np._core.numeric._frombuffer, content, dtype, shape, "C")


def tensor(*view: Any, key: str = "0", n: int = ROWS.size) -> bytes:
    """Return the pickle of a tensor: its offset, sizes and strides in a storage of ``n`` values."""
    made = io.BytesIO()
    pickler = pickle.Pickler(made, 2)
    pickler.persistent_id = lambda each: each.stored if isinstance(each, Storage) else None  # type: ignore[method-assign]
    pickler.dump({"a": Call(torch._utils._rebuild_tensor_v2, Storage(key, n), *view, False, OrderedDict())})
    return made.getvalue()


class Storage:
    """Pickles as the persistent id of a storage."""

    def __init__(self, key: str, n: int) -> None:
        self.stored = "storage", torch.FloatStorage, key, "cpu", n


NAME = b"\x8c\x06module\x8c\x04name\x93"
LONG = b"X" + struct.pack("<I", 1 << 20) + b"k" * (1 << 20)
KEY = b"K\x01\x85" + b"2\x86" * 60
PICKLES = {
    "a memo of 2 GB": b"\x80\x02]r" + struct.pack("<I", 1 << 27) + b".",
    "a frame of 8 EB": b"\x80\x04\x95" + struct.pack("<Q", 1 << 63) + b"N.",
    "bytes of 1 TB": b"\x80\x04\x8e" + struct.pack("<Q", 1 << 40) + b"N.",
    "a text of 1 TB": b"\x80\x04\x8d" + struct.pack("<Q", 1 << 40) + b"N.",
    "a bytearray of 1 TB": b"\x80\x05\x96" + struct.pack("<Q", 1 << 40) + b"N.",
    "a number of 2 GB": b"\x80\x02\x8b" + struct.pack("<I", (1 << 31) - 1) + b"\1.",
    "a number of many digits": b"L" + b"9" * 100_000 + b"L\n.",
    "an external buffer": b"\x80\x05\x97.",
    "an extension": b"\x80\x02\x82\x01.",
    "a key that takes ever to hash": b"\x80\x02}" + KEY + b"Ns.",
    "a deep key": b"\x80\x02}K\x01" + b"\x85" * 100_000 + b"Ns.",
    "a set that takes ever to hash": b"\x80\x04\x8f(" + KEY + b"\x90.",
    "deep lists": b"\x80\x02" + b"]" * 100_000 + b"a" * 99_999 + b".",
    "deep objects": b"\x80\x04" + NAME + b"q\0)R" + b"h\0)R" * 100_000 + b"b" * 100_000 + b".",
    "ever longer names": b"\x80\x02}" + LONG + b"q\0" + b"}h\0" * 999 + b"N" + b"s" * 1000 + b".",
    "a dictionary copied often": b"\x80\x02]" + b"K\x01K\x02\x86a" * 20_000
    + b"q\0000ccollections\nOrderedDict\nq\1" + b"0h\1h\0\x85R" * 20_000 + b".",
    "a text encoded often": b"\x80\x02c_codecs\nencode\nq\0" + LONG + b"X\x06\0\0\0latin1\x86q\1]"
    + b"h\0h\1Ra" * 10_000 + b".",
    "a name joined often": b"\x80\x04" + LONG + b"\x94]" + b"h\0h\0\x93a" * 10_000 + b".",
    "items of a class": b"\x80\x04" + NAME + b"}X\x01\0\0\0aK\x01sb.",
    "many lists": b"\x80\x02(" + b"]" * 100_000 + b"l.",
    "itself": b"\x80\x02]q\0h\0a.",
}  # fmt: skip
"""Pickles that ask for memory, time or the stack."""
FORGED = {
    "a pointer": lambda: Call(
        set, (array(b"A" * 8, "V8", (1,), (3, "|", (np.dtype("O"), (1,)), None, None, 8, 1, 0)),)
    ),
    "a field of objects": lambda: array(
        b"A" * 8, "V8", (1,), (3, "|", None, ("a",), {"a": (np.dtype("O"), 0)}, 8, 1, 0)
    ),
    "objects": lambda: array(b"A" * 64, "O8", (2, 4)),
    "outside": lambda: array(b"A" * 8, "f4", (1 << 20, 256)),
    "any size": lambda: array(b"A" * 8, "f4", (-1, 1)),
    "none": lambda: array(b"", "f4", (1 << 40, 0)),
    "a list as a shape": lambda: array(b"A" * 8, "f4", [[1], 2]),
    "a dtype of text": lambda: array(b"A" * 8, "f4,O", (1, 2)),
    "an odd float": lambda: array(b"A" * 8, "f3", (1, 2)),
    "an odd order": lambda: array(b"A" * 8, "f4", (1, 2), (3, "x", None, None, None, -1, -1, 0)),
    "no bytes": lambda: array(7, "f4", (1, 2)),
}
"""Arrays whose words do not fit their bytes."""
VIEWS: dict[str, tuple[Any, ...]] = {
    "expanded": (0, (1 << 40, 1), (0, 1)),
    "beyond": (80, (12,), (1,)),
    "overflowing": (0, (1 << 32, 1 << 32), (1 << 32, 1 << 32)),
    "negative": (-1, (4, 4), (-4, 1)),
    "of many axes": (0, (1,) * 100_000, (0,) * 100_000),
    "of text": (0, ("a" * 1000, 1 << 30), (1, 1)),
    "of other lengths": (0, (3, 4), (1,)),
}


def _chunk(content: bytes, **options: Any) -> Callable[[h5py.File], object]:
    def write(file: h5py.File) -> None:
        made = file.create_dataset("a", (4, 8), "f4", chunks=(4, 8), **options)
        made.id.write_direct_chunk((0, 0), content)

    return write


def _virtual(file: h5py.File) -> None:
    layout = h5py.VirtualLayout((4, 8), "f4")
    layout[:] = h5py.VirtualSource("other.h5", "x", (4, 8))
    file.create_virtual_dataset("a", layout)


def _loop(file: h5py.File) -> None:
    file["a"] = h5py.SoftLink("/a")
    file.create_group("b")["c"] = file["b"] if "b" in file else file["/"]


HDF5: dict[str, Callable[[h5py.File], object]] = {
    "external": lambda file: file.create_dataset("a", (4, 8), "f4", external=[("/etc/passwd", 0, 128)]),
    "virtual": _virtual,
    "a link to another file": lambda file: file.__setitem__("a", h5py.ExternalLink("other.h5", "/x")),
    "a link to itself": _loop,
    "a short chunk": _chunk(zlib.compress(b"AAAA"), compression="gzip"),
    "a short plain chunk": _chunk(b"AAAA"),
    "a short chunk of LZF": _chunk(b"\x03AAAA", compression="lzf"),
    "a long chunk": _chunk(zlib.compress(bytes(1 << 30)), compression="gzip"),
    "a chunk of scale and offset": _chunk(b"A" * 8, scaleoffset=3),
    "a chunk of szip": _chunk(b"A" * 8, compression="szip"),
    "no chunk": lambda file: file.create_dataset("a", (4, 8), "f4", chunks=(4, 8)),
    "a huge chunk": lambda file: file.create_dataset(
        "a", (4, 8), "f4", chunks=(1 << 15, 1 << 14), maxshape=(None, None)
    ),
    "huge": lambda file: file.create_dataset("a", (1 << 40, 8), "f4", chunks=(1 << 10, 8), compression="gzip"),
    "huge and contiguous": lambda file: file.create_dataset("a", (1 << 40, 8), "f4"),
    "texts": lambda file: file.create_dataset("a", (4, 8), h5py.string_dtype()),
    "references": lambda file: file.create_dataset("a", (4, 8), h5py.ref_dtype),
    "fields": lambda file: file.create_dataset("a", (4, 8), np.dtype([("a", "f4")])),
    "sub-arrays": lambda file: file.create_dataset("a", (4,), np.dtype(("f4", (1 << 10,)))),
    "a type": lambda file: file.__setitem__("a", np.dtype("f4")),
    "nothing": lambda file: file.create_dataset("a", data=h5py.Empty("f4")),
}


def _zarr(**other: Any) -> bytes:
    return json.dumps(json.loads(whole()["features/zarr.json.store"]) | other).encode()


def _grid(rows: int) -> dict[str, Any]:
    return {"name": "regular", "configuration": {"chunk_shape": [rows, 7]}}


@cache
def hostile() -> dict[str, tuple[str, bytes]]:
    """Return files that ask for what is not theirs, by what they are: their suffix or name in a store, and bytes."""
    files = {f"{what}.npy": (".npy", npy(content)) for what, content in PICKLES.items()}
    files |= {f"{what} in legacy.pt": (".pt", LEGACY + content) for what, content in PICKLES.items()}
    files |= {f"{what}.pt": (".pt", pt(content)) for what, content in PICKLES.items()}
    files |= {f"an array: {what}": (".npy", npy(pickle.dumps(dictionary(make()), 4))) for what, make in FORGED.items()}
    files |= {f"a tensor {what}": (".pt", pt(tensor(*view))) for what, view in VIEWS.items()}
    files |= {f"{what}.h5": (".h5", h5(write)) for what, write in HDF5.items()}
    header = {"descr": "<f4", "fortran_order": False}
    for shape in ((1 << 40, 7), (1 << 62, 1 << 62), (-1, 7)):
        made = io.BytesIO()
        np.lib.format.write_array_header_1_0(made, header | {"shape": shape})
        files[f"{shape}.npy"] = ".npy", made.getvalue() + b"A" * 28
    n = 1 << 40
    for what, content in {
        "a storage of 4 TB": LEGACY + tensor(0, (n,), (1,), n=n) + pickle.dumps(["0"], 2),
        "a member of 4 TB": pt(tensor(0, (n,), (1,), n=n)),
        "a compressed pickle": pt(b"]" * (1 << 26), {}, zipfile.ZIP_DEFLATED),
        "compressed values": pt(tensor(0, (n,), (1,), n=1 << 26), {"0": bytes(1 << 28)}, zipfile.ZIP_DEFLATED),
    }.items():
        files[what] = ".pt", content
    files["a header of 8 EB"] = ".safetensors", struct.pack("<Q", 1 << 63) + b"{}"
    wide = {"a": {"dtype": "F32", "shape": [n, 7], "data_offsets": [0, 28]}}
    header_ = json.dumps(wide).encode()
    files["a shape of 2^40 rows.safetensors"] = ".safetensors", struct.pack("<Q", len(header_)) + header_ + b"A" * 28
    for what, other in {
        "gzip": {"codecs": [{"name": "gzip", "configuration": {"level": 9}}]},
        "a shape of 2^40 rows": {"shape": [n, 7]},
        "a chunk of 2^40 rows": {"shape": [n, 7], "chunk_grid": _grid(n)},
        "plain chunks": {"codecs": [{"name": "bytes", "configuration": {"endian": "little"}}], "chunk_grid": _grid(1)},
    }.items():
        files[f"{what} in a store"] = "features/zarr.json.store", _zarr(**other)
    return files


def damaged(draw: random.Random) -> tuple[str, bytes]:
    """Return the name and the bytes of an undamaged file with damage: of its bytes, or of the pickle in it."""
    name = draw.choice([*whole()])
    if name.endswith(".npy") and draw.random() < 0.2:
        return name, npy(opcodes(draw))
    if name.endswith(".pt") and draw.random() < 0.2:
        return name, pt(opcodes(draw)) if draw.random() < 0.5 else LEGACY + opcodes(draw)
    content = bytearray(whole()[name])
    if name.startswith("heldTrue") and draw.random() < 0.5:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            pickled = bytearray(archive.read("archive/data.pkl"))
            members = {each[13:]: archive.read(each) for each in archive.namelist() if "/data/" in each}
        change(pickled, draw)
        return name, pt(bytes(pickled), members)
    change(content, draw)
    return name, bytes(content)


def change(content: bytearray, draw: random.Random) -> None:
    """Change a few bytes."""
    for _ in range(draw.choice([1, 1, 2, 4, 16])):
        at = draw.randrange(len(content) + 1)
        length = draw.choice([1, 2, 4, 8, 40])
        match draw.randrange(7):
            case 0 if at < len(content):
                content[at] ^= 1 << draw.randrange(8)
            case 1:
                content[at : at + length] = draw.randbytes(length)
            case 2:
                del content[at : at + length]
            case 3:
                content[at:at] = content[at : at + length * 8] * draw.randrange(1, 50)
            case 4:
                content[at : at + 8] = draw.choice(HUGE).to_bytes(8, draw.choice(["little", "big"]))
            case 5:
                content[at : at + 4] = (draw.choice(HUGE) & 0xFFFFFFFF).to_bytes(4, draw.choice(["little", "big"]))
            case 6 if draw.random() < 0.2:
                del content[at:]


NAMES = [("collections", "OrderedDict"), ("torch._utils", "_rebuild_tensor_v2"), ("torch", "FloatStorage")]
NAMES += [("torch._utils", "_rebuild_tensor_v3"), ("torch._utils", "_rebuild_parameter"), ("builtins", "set")]
NAMES += [("torch._tensor", "_rebuild_from_type_v2"), ("numpy", "dtype"), ("numpy.core.multiarray", "_reconstruct")]
NAMES += [("numpy._core.numeric", "_frombuffer"), ("_codecs", "encode"), ("os", "system"), ("numpy", "ndarray")]


def opcodes(draw: random.Random) -> bytes:
    """Return a pickle of opcodes in random order, with what arrays and tensors need on the stack."""
    texts = ["latin1", "f4", "<", "C", "0", "cpu", "storage", "frames_features", "state_dict", "a.weight"]
    made = [b"\x80\x04"]
    codes = {each.name: each.code.encode("latin1") for each in pickletools.opcodes if each.arg is None}
    for _ in range(draw.randrange(2, 60)):
        kind = draw.randrange(8)
        if kind == 0:
            made += [b"c%b\n%b\n" % tuple(each.encode() for each in draw.choice(NAMES))]
        elif kind == 1:
            text = draw.choice(texts).encode()
            made += [b"\x8c%c%b" % (len(text), text)]
        elif kind == 2:
            made += [b"K%c" % draw.randrange(8)]
        elif kind == 3:
            made += [b"h%c" % draw.randrange(4), b"\x94"]
        elif kind == 4:
            made += [b"C%c%b" % (28, ROWS.tobytes()[:28])]
        else:
            made += [
                draw.choice([*codes.values()])
                if draw.random() < 0.5
                else draw.choice([b"R", b"b", b"(", b"t", b"\x94"])
            ]
    return b"".join([*made, b"."])


def read(folder: Path, name: str, content: bytes) -> str:
    """Return what became of reading a file in an empty folder: ``read`` or ``refused``; raise any other error."""
    try:
        if name.endswith(".store"):
            _read_store(folder, name, content)
        else:
            _read_file(folder / f"a{name if name.startswith('.') else Path(name).suffix}", content)
    except StoreError as error:
        said, cause = str(error), error.__cause__
    else:
        return "read"
    assert "\n" not in said, f"it has several lines: {said}"
    assert len(said) < 2000, f"it has a long line: {said[:100]}"
    assert not isinstance(cause, MemoryError), f"it asks for memory: {said}"
    assert "needs more than" not in said, f"it asks for memory: {said}"
    return "refused"


def _read_store(folder: Path, name: str, content: bytes) -> None:
    for other, held in whole().items():
        if other.endswith(".store"):
            (folder / other).parent.mkdir(parents=True, exist_ok=True)
            (folder / other.removesuffix(".store")).write_bytes(content if other == name else held)
    opened = store.read(folder)
    store.fetch([(opened, [block for blocks in opened.blocks.values() for block in blocks])])


def _read_file(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    if path.suffix in (".pt", ".safetensors") and isinstance(checkpoint.read(path), dict):
        for each in checkpoint.state(path, inside=("state_dict",)).values():
            each.float().sum()
    else:
        features = Folder(path)
        for video in features:
            assert np.isfinite(features[video]).all(), "its rows are not finite"


def _peak() -> int:
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) << 10


def _work(cases: list[tuple[str, str, bytes]], report: Any) -> None:
    """Read files, and report the number of each before and what became of it after."""
    warnings.simplefilter("ignore")
    importing.HDF5 = Limits(memory_mb=MOST_BYTES >> 20, least_s=MOST_S, s_per_video_s=0)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + 8 * MOST_BYTES, used + 8 * MOST_BYTES))
    for what, name, content in cases:
        report.write(f"{what}\t")
        report.flush()
        Path("/proc/self/clear_refs").write_text("5")
        before, started = _peak(), time.process_time()
        try:
            with TemporaryDirectory() as folder:
                became = read(Path(folder), name, content)
        except BaseException as error:
            report.write(f"broken: {' '.join(repr(error).split())[:500]}\n")
            raise
        more, took_s = _peak() - before, time.process_time() - started
        if more > MOST_BYTES or took_s > MOST_S:
            became = f"broken: it takes {more >> 20} MB and {took_s:.0f} s"
        report.write(f"{became}\n")
        report.flush()


def results(cases: list[tuple[str, str, bytes]]) -> dict[str, str]:
    """Return what became of each file, by what it is. A process reads them; its death is the result of its last one."""
    became: dict[str, str] = {}
    torch.set_num_threads(1)  # a forked process cannot use its parent's threads
    while cases:
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            with contextlib.suppress(BaseException), open(writing, "w") as report:
                _work(cases[:BATCH], report)
            os._exit(0)
        os.close(writing)
        with open(reading) as report:
            lines = [line.rstrip("\n").split("\t") for line in report]
        _, status = os.waitpid(child, 0)
        for what, how in lines:
            became[what] = how or f"broken: signal {os.WTERMSIG(status)}"
        cases = cases[max(1, len(lines)) :]
    return became


def campaign(seed: int, n: int) -> dict[str, int]:
    """Read the files of the seeds from ``seed`` on, and those that are hostile with the seed 0."""
    cases = [(f"seed {each}", *damaged(random.Random(each))) for each in range(seed, seed + n)]
    if seed == 0:
        cases += [(what, *file) for what, file in hostile().items()]
        cases += [(f"whole {name}", name, content) for name, content in whole().items()]
    became = results(cases)
    broken = [f"{what}: {how}" for what, how in became.items() if how.startswith("broken")]
    broken += [f"{what}: {how}" for what, how in became.items() if what.startswith("whole") and how != "read"]
    assert not broken, "\n".join(broken)
    return dict(Counter(f"files {how}" for how in became.values()))


if __name__ == "__main__":
    for first in count(int(sys.argv[1]), BATCH):
        if first >= int(sys.argv[1]) + int(sys.argv[2]):
            break
        print(first, campaign(first, min(BATCH, int(sys.argv[1]) + int(sys.argv[2]) - first)), flush=True)
