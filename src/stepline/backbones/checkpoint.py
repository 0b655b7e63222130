"""Checkpoints: read without executing code and checked against the network."""

import math
import mmap
import os
import struct
import sys
import zipfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from io import BufferedReader, BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stepline.errors import StoreError
from stepline.pickled import Stub, parse

if TYPE_CHECKING:
    import torch

Tensors = dict[str, "torch.Tensor"]
HEADS = ("classifier.*", "cls_head.*", "fc.*", "head.*", "mlp_head.*", "projection_head.*", "projector.*")
"""Names of the parameters after the features, which fine-tuning replaces."""
LONGEST_NAME = 300
"""The maximum number of characters of a tensor's full name; longer ones are of no network, and may fill the memory."""

_LEGACY_MAGIC = 0x1950A86A20F9469CFC6C
_STORAGES = {
    "DoubleStorage": "float64",
    "FloatStorage": "float32",
    "HalfStorage": "float16",
    "BFloat16Storage": "bfloat16",
    "LongStorage": "int64",
    "IntStorage": "int32",
    "ShortStorage": "int16",
    "CharStorage": "int8",
    "ByteStorage": "uint8",
    "UntypedStorage": "uint8",
    "QInt8Storage": "int8",
    "QUInt8Storage": "uint8",
    "QInt32Storage": "int32",
    "BoolStorage": "bool",
    "ComplexDoubleStorage": "complex128",
    "ComplexFloatStorage": "complex64",
}
_MOST_AXES = 16
_NO_CHECKPOINTS = {
    b"<": "a web page (Google Drive sends one instead of a large file): open its address in a browser, save the file",
    b"version https://git-lfs": "a Git LFS pointer: download the file that it refers to",
}


def _made(stub: Stub) -> Any:
    """Return the tensor that a call in a checkpoint makes, or the stub of any other call."""
    import torch

    (module, name), arguments = stub.name, stub.arguments
    if name == "_rebuild_from_type_v2":
        return _made(Stub(arguments[0].name, arguments[2]))
    if module != "torch._utils" or not name.startswith("_rebuild_"):
        return stub
    if name in ("_rebuild_parameter", "_rebuild_parameter_with_state"):
        return arguments[0]
    if name not in ("_rebuild_tensor", "_rebuild_tensor_v2", "_rebuild_tensor_v3"):
        return torch.empty(0, device="meta")
    (content, dtype), offset, size, stride = arguments[:4]
    if name == "_rebuild_tensor_v2" and any(arguments[6:]):
        raise ValueError(f"a tensor is stored with {arguments[6]}")
    if name == "_rebuild_tensor_v3":
        dtype = vars(torch)[arguments[6].name[1]]
    flat = torch.frombuffer(content, dtype=dtype) if content else torch.empty(0, dtype=dtype)
    if len(size) > _MOST_AXES or not all(isinstance(n, int) for n in size) or math.prod(size) > len(flat):
        raise ValueError(f"a tensor has more values than its storage, which has {len(flat)}")
    return flat.as_strided(size, stride, offset)


def _stored(bytes_of: Callable[[str, int], Any]) -> Callable[[Any], Any]:
    """Return the function that returns the storage of a persistent id. bytes_of: the bytes of a key, of this size."""

    def storage(saved: Any) -> Any:
        import torch

        if saved[0] == "module":
            return saved[1]
        _, kind, key, _, count, *view = saved
        if any(view) or not isinstance(key, str) or not isinstance(count, int):
            raise ValueError("the storage of a tensor is part of another storage, or is no storage")
        dtype = getattr(torch, _STORAGES[kind.name[1]])
        return bytes_of(key, count * dtype.itemsize), dtype

    return storage


def read(path: Path) -> Any:
    """Return the object in a checkpoint (.pt, .pth, .bin, .ckpt, .safetensors), its tensors on the CPU.

    No class or function named in the file is imported or called; those that tensors do not need become a ``Stub``.
    Tensors that are sparse, quantized or without values are on the device ``meta``. Those of a zip file are mapped into
    memory; nothing else takes more memory than in proportion to the size of the file. Raises StoreError if the file is
    damaged or is not a checkpoint.
    """
    from safetensors.torch import load_file

    with open(path, "rb") as file:
        start = file.read(64).lstrip()
        if not start:
            raise StoreError(f"{path} is empty: get it again")
        for mark, what in _NO_CHECKPOINTS.items():
            if start.startswith(mark):
                raise StoreError(f"{path} is {what}")
        zipped = start.startswith(b"PK\x03\x04")
        try:
            if path.suffix == ".safetensors":
                return load_file(path)
            if zipped and not zipfile.is_zipfile(path):
                raise StoreError(f"{path} is cut off: it ends after {path.stat().st_size} bytes: get it again")
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
            return _read_zip(path, mapped) if zipped else _read_legacy(path, file, mapped)
        except StoreError:
            raise
        except Exception as error:
            reason = " ".join(str(error).split())[:LONGEST_NAME] or type(error).__name__
            raise StoreError(f"{path} is damaged or no checkpoint ({reason}): get it again") from error


def _read_zip(path: Path, mapped: mmap.mmap) -> Any:
    with zipfile.ZipFile(path) as archive:
        members = {member.filename: member for member in archive.infolist()}
    content = memoryview(mapped)

    def bytes_of(name: str) -> memoryview:
        member = members[f"{folder}/{name}"]
        if member.compress_type != zipfile.ZIP_STORED:
            raise ValueError(f"{name} is compressed")
        start = member.header_offset + 30 + sum(struct.unpack_from("<HH", mapped, member.header_offset + 26))
        return content[start : start + member.file_size]

    def of_storage(key: str, size: int) -> memoryview:
        found = bytes_of(f"data/{key}")
        if len(found) != size:
            raise ValueError(f"tensor {key} has {len(found)} of {size} bytes")
        return found

    folder = next((name for name in members if name.endswith("/data.pkl")), "").removesuffix("/data.pkl")
    if f"{folder}/byteorder" in members and bytes_of("byteorder") != sys.byteorder.encode():
        raise ValueError("its bytes are in another order than those of this machine")
    return parse(BytesIO(bytes_of("data.pkl")), _made, _stored(of_storage))


def _read_legacy(path: Path, file: BufferedReader, mapped: mmap.mmap) -> Any:
    """Return the object of a file written before PyTorch 1.6: magic number, version, system, object, keys, buffers."""
    other = StoreError(f"{path} is not a PyTorch checkpoint, or is incomplete: get it again")
    try:
        if parse(mapped) != _LEGACY_MAGIC:
            raise other
    except Exception as error:
        raise other from error
    for _ in ("version", "system"):
        parse(mapped)
    buffers: dict[str, bytearray] = {}
    left = len(mapped)

    def bytes_of(key: str, size: int) -> bytearray:
        nonlocal left
        if key not in buffers:
            left -= size
            if left < 0:
                raise ValueError("its tensors have more bytes than the file")
            buffers[key] = bytearray(size)
        return buffers[key]

    held = parse(mapped, _made, _stored(bytes_of))
    keys = parse(mapped)
    file.seek(mapped.tell())
    for key in keys:
        buffer = buffers.pop(key if isinstance(key, str) else "")
        file.seek(8, os.SEEK_CUR)
        if file.readinto(buffer) != len(buffer):
            raise EOFError("it ends early")
    if buffers:
        raise EOFError(f"it has no bytes of {len(buffers)} tensors")
    return held


def state(path: Path, *, inside: Sequence[str] = (), prefix: str = "") -> Tensors:
    """Return the tensors of a checkpoint whose names begin with ``prefix``, by name without the prefix.

    inside: keys that may contain the tensors; the first one present is followed, repeatedly. Names of tensors in other
    dictionaries begin with the keys of these, joined with dots. Raises the errors of ``read``, and StoreError if there
    are no such tensors.
    """
    import torch

    held = whole = read(path)
    while isinstance(held, Mapping) and (key := next((key for key in inside if key in held), None)):
        held = held[key]
    tensors = {name.removeprefix(prefix): value for name, value in _named(held) if name and name.startswith(prefix)}
    if not tensors:
        what = f"tensors whose names begin with {prefix!r}" if prefix else "tensors by name"
        raise StoreError(f"{path} holds no {what}; {looks_like(whole)}")
    if odd := next((name for name, value in tensors.items() if value.is_meta or value.layout != torch.strided), None):
        raise StoreError(f"{path}: {odd} has no values, or is sparse: save the checkpoint with dense tensors of values")
    return tensors


def unwrapped(tensors: Tensors, network: "torch.nn.Module", *, model: str, path: Path) -> tuple[Tensors, str]:
    """Return the tensors that are the network's within another one, by name without the prefix, and the prefix.

    Training wraps a network in others, so that its names begin with ``module.``, ``_orig_mod.`` or ``backbone.``, and
    adds heads next to it. The prefix is the one before most of the network's names; it is "" if no other is before more
    of them. Whether all names are there is for the caller to check. Raises StoreError if several prefixes fit equally
    well, as those of a student and its teacher.
    """
    wanted = network.state_dict()
    fits: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0])
    for name, value in tensors.items():
        for start in (0, *(place + 1 for place, letter in enumerate(name) if letter == ".")):
            if (own := wanted.get(name[start:])) is not None:
                fits[name[:start]][0] += 1
                fits[name[:start]][1] += _form(value) == _form(own)
    most = max(fits.values(), default=[0, 0])
    best = sorted(prefix for prefix, fit in fits.items() if fit == most)
    if not best or "" in best:
        return tensors, ""
    if len(best) > 1:
        among = " and ".join(map(repr, best[:2]))
        raise StoreError(
            f"{path} has the names of {model} {len(best)} times, as after the prefixes {among}: keep one of them"
        )
    return {name.removeprefix(best[0]): value for name, value in tensors.items() if name.startswith(best[0])}, best[0]


def load(network: "torch.nn.Module", tensors: Tensors, *, model: str, path: Path, ignore: Sequence[str] = ()) -> None:
    """Load the tensors into the network, converted to the floating-point type of its parameters.

    Names may have a prefix, see ``unwrapped``. Raises StoreError if a name is missing, if a name is unknown to the
    network and matches no pattern in ``ignore``, or if a shape or kind differs.
    """
    wanted = network.state_dict()
    inner, prefix = unwrapped(tensors, network, model=model, path=path)
    ours = {name: value for name, value in inner.items() if name in wanted}
    missing = [name for name in wanted if name not in ours]
    unexpected = [
        name for name in inner if name not in wanted and not any(fnmatchcase(name, pattern) for pattern in ignore)
    ]
    others = [
        f"{name} is {_form(value)}, not {_form(wanted[name])}"
        for name, value in ours.items()
        if _form(value) != _form(wanted[name])
    ]
    check(model, path, prefix, {"missing": missing, "unexpected": unexpected, "of another form": others}, tensors)
    network.load_state_dict({name: value.to(wanted[name].dtype) for name, value in ours.items()}, assign=True)


def check(model: str, path: Path, prefix: str, wrong: Mapping[str, Sequence[str]], tensors: Tensors) -> None:
    """Raise StoreError if there are names in ``wrong``, by what is wrong with them. prefix: of all names, or ""."""
    counted = [
        f"{len(names)} {what} ({', '.join(names[:3])}{', ...' if len(names) > 3 else ''})"
        for what, names in wrong.items()
        if names
    ]
    if counted:
        after = f"after the prefix {prefix!r}, " if prefix else ""
        raise StoreError(f"{path} is not {model}: {after}{'; '.join(counted)}; {looks_like(tensors)}")


def _form(tensor: "torch.Tensor") -> str:
    kind = "floats" if tensor.is_floating_point() else str(tensor.dtype).removeprefix("torch.")
    return f"{list(tensor.shape)} {kind}"


def looks_like(held: Any) -> str:
    """Return which public model a checkpoint resembles by its names and shapes, as the end of an error message."""
    shapes = {name: tuple(tensor.shape) for name, tensor in _named(held, objects=True)}
    for model, wanted in _MODELS:
        if all(any(_fits(name, shape, *each) for name, shape in shapes.items()) for each in wanted.items()):
            return f"it looks like {model}"
    return f"it looks like no known model (its first name is {next(iter(shapes), 'absent')!r})"


_Shape = tuple[int | None, ...]


def _named(held: Any, *, objects: bool = False) -> Iterator[tuple[str, "torch.Tensor"]]:
    """Yield each tensor in nested dictionaries, and with ``objects`` in the states of stubs, with its full name."""
    import torch

    seen: set[int] = set()
    left: list[Iterator[tuple[str, Any]]] = [iter([("", held)])]
    while left:
        name, each = next(left[-1], (None, None))
        if name is None:
            left.pop()
            continue
        if isinstance(each, torch.Tensor):
            yield name, each
        inner = each.state if objects and isinstance(each, Stub) else each
        if isinstance(inner, Mapping) and id(inner) not in seen:
            seen.add(id(inner))
            left.append(_children(name, inner))


def _children(name: str, held: Mapping[Any, Any]) -> Iterator[tuple[str, Any]]:
    for key, value in held.items():
        if isinstance(key, str | int) and len(full := f"{name}.{key}" if name else str(key)) <= LONGEST_NAME:
            yield full, value


def _fits(name: str, shape: _Shape, wanted_name: str, wanted: _Shape) -> bool:
    same_length = len(shape) == len(wanted)
    return (
        f".{name}".endswith(f".{wanted_name}")
        and same_length
        and all(size in (None, found) for size, found in zip(wanted, shape, strict=True))
    )


_MODELS: tuple[tuple[str, dict[str, _Shape]], ...] = (
    ("S3D MIL-NCE (s3d_howto100m.pth)", {"conv1.conv1.weight": (64, 24, 2, 4, 4), "fc.weight": (512, 1024)}),
    (
        "torchvision's S3D of Kinetics",
        {"features.0.0.0.weight": (64, 3, 1, 7, 7), "classifier.1.weight": (None, 1024, 1, 1, 1)},
    ),
    (
        "TimeSformer of HowTo100M by distant supervision (TimeSformer_divST_8x32_224_HowTo100M_pretrained.pth)",
        {"blocks.0.temporal_fc.weight": (768, 768), "head.weight": (10588, 768)},
    ),
    (
        "TimeSformer trained to classify, on Kinetics or the tasks of HowTo100M (TimeSformer_divST_*.pyth)",
        {"blocks.0.temporal_fc.weight": (768, 768), "head.weight": (None, 768)},
    ),
    ("TimeSformer without its head", {"blocks.0.temporal_fc.weight": (768, 768)}),
    (
        "InternVideo MM-L-14, pre-trained (InternVideo-MM-L-14.ckpt)",
        {"state_dict.clip.visual.transformer.temporal_cls_token": (1, 1, 1024)},
    ),
    (
        "InternVideo MM-L-14, fine-tuned for retrieval (pytorch_model.bin)",
        {"clip.visual.transformer.temporal_cls_token": (1, 1, 1024)},
    ),
    ("InternVideo MM-L-14", {"visual.transformer.temporal_cls_token": (1, 1, 1024)}),
    (
        "EVA-01-CLIP g/14 (eva_clip_psz14.pt)",
        {"visual.pos_embed": (1, 257, 1408), "text.text_projection": (768, 1024)},
    ),
    (
        "EVA01_CLIP_g_14_plus, which has another text tower than eva_clip_psz14.pt",
        {"visual.pos_embed": (1, 257, 1408), "text.text_projection": (1024, 1024)},
    ),
    ("open_clip's copy of EVA-01-CLIP g/14", {"visual.trunk.pos_embed": (1, 257, 1408)}),
    (
        "EgoVLP or Frozen in Time (EgoVLP_PT_BEST.pth)",
        {"video_model.temporal_embed": (1, None, 768), "txt_proj.1.weight": (256, 768)},
    ),
    ("VideoCLIP (checkpoint_best.pt)", {"video_encoder.videomlp.linear1.weight": (768, 512)}),
    ("OpenAI's CLIP ViT-L/14", {"visual.conv1.weight": (1024, 3, 14, 14), "visual.positional_embedding": (257, 1024)}),
    ("a CLIP of another size", {"visual.conv1.weight": (None, 3, None, None), "text_projection": (None, None)}),
    (
        "an MPNet sentence encoder (model.safetensors of all-mpnet-base-v2 or paraphrase-mpnet-base-v2)",
        {"embeddings.word_embeddings.weight": (30527, 768), "encoder.relative_attention_bias.weight": (32, 12)},
    ),
    (
        "a MiniLM sentence encoder (model.safetensors of all-MiniLM-L6-v2)",
        {"embeddings.word_embeddings.weight": (30522, 384)},
    ),
    (
        "HiREST's joint model (HiREST_BEST.pth)",
        {"segment_predictor.0.weight": (1, 768), "visual.embeddings.word_embeddings.weight": (768, 512)},
    ),
    (
        "CLIP4Caption (clip4caption_vit-b-32_model.bin)",
        {"visual_norm2d.weight": (512,), "visual.embeddings.word_embeddings.weight": (768, 512)},
    ),
    (
        "BERT",
        {"embeddings.word_embeddings.weight": (None, 768), "encoder.layer.0.attention.self.query.weight": (768, 768)},
    ),
    (
        "DistilBERT",
        {"embeddings.word_embeddings.weight": (None, 768), "transformer.layer.0.attention.q_lin.weight": (768, 768)},
    ),
)
"""Public models with names and shapes that identify them, most specific first. None matches any size."""
