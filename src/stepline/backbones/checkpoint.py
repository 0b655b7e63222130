"""Checkpoints: read without executing code and checked against the network."""

import pickle
import struct
import warnings
import zipfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from stepline.errors import StoreError

if TYPE_CHECKING:
    import torch

Tensors = dict[str, "torch.Tensor"]
HEADS = ("classifier.*", "cls_head.*", "fc.*", "head.*", "mlp_head.*", "projection_head.*", "projector.*")
"""Names of the parameters after the features, which fine-tuning replaces."""

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
    "BoolStorage": "bool",
}
_NO_CHECKPOINTS = {
    b"<": "a web page (Google Drive sends one instead of a large file): open its address in a browser, save the file",
    b"version https://git-lfs": "a Git LFS pointer: download the file that it refers to",
}
_DAMAGE = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    EOFError,
    ImportError,
    LookupError,
    MemoryError,
    RuntimeError,
    TypeError,
    ValueError,
    pickle.UnpicklingError,
    struct.error,
    zipfile.BadZipFile,
)
"""The errors that reading a damaged or hostile file can raise."""


class Stub:
    """A placeholder for an object whose class is not imported. It keeps the object's state."""

    def __new__(cls, *_: Any, **__: Any) -> Any:
        """Accept any arguments."""
        made = super().__new__(cls)
        made.state = {}
        return made

    state: Any

    def __setstate__(self, state: Any) -> None:
        """Keep the state."""
        self.state = state

    def __setitem__(self, key: Any, value: Any) -> None:
        """Ignore an item."""

    def append(self, value: Any) -> None:
        """Ignore a value."""

    extend = add = append

    def __call__(self, *_: Any, **__: Any) -> Any:
        """Return another."""
        return Stub()


class _Dict(dict[Any, Any]):
    """An OrderedDict whose attributes are not restored."""

    def __setstate__(self, state: Any) -> None:
        """Ignore the state."""


class _Tensor(Stub):
    """Replaces ``torch._utils._rebuild_tensor_v2``: a view of a buffer of one data type, within its bounds."""

    def __new__(cls, storage: Any, offset: int, size: Any, stride: Any, *_: Any) -> Any:
        import torch

        buffer, dtype = storage
        flat = torch.frombuffer(buffer, dtype=dtype) if buffer else torch.empty(0, dtype=dtype)
        return flat.as_strided(size, stride, offset)


class _Parameter(Stub):
    """Replaces ``torch._utils._rebuild_parameter``: returns the tensor."""

    def __new__(cls, tensor: Any, *_: Any) -> Any:
        return tensor


_ALLOWED = {
    ("collections", "OrderedDict"): _Dict,
    ("torch._utils", "_rebuild_tensor"): _Tensor,
    ("torch._utils", "_rebuild_tensor_v2"): _Tensor,
    ("torch._utils", "_rebuild_parameter"): _Parameter,
}


class _Unpickler(pickle.Unpickler):
    """Reads dictionaries, lists, numbers, texts and tensors. Any other class or function becomes a ``Stub``.

    archive: the zip file that contains the bytes of the tensors, and their folder in it. Without an archive the bytes
    follow the object.
    """

    def __init__(self, file: BinaryIO, archive: tuple[zipfile.ZipFile, str] | None = None) -> None:
        super().__init__(file, encoding="utf-8")
        self.archive = archive
        self.buffers: dict[Any, bytearray] = {}

    def find_class(self, module: str, name: str) -> Any:
        import torch

        if module == "torch" and name in _STORAGES:
            return getattr(torch, _STORAGES[name])
        return _ALLOWED.get((module, name)) or type(name, (Stub,), {"__module__": module})

    def persistent_load(self, saved: Any) -> Any:
        if saved[0] == "module":
            return saved[1]
        _, dtype, key, _, count, *view = saved
        if any(view):
            raise ValueError("the storage of a tensor is part of another storage")
        if key not in self.buffers:
            size = count * dtype.itemsize
            if self.archive is None:
                self.buffers[key] = bytearray(size)
            else:
                archive, folder = self.archive
                member = archive.getinfo(f"{folder}/data/{key}")
                if not size == member.file_size == member.compress_size:
                    raise ValueError(f"tensor {key} has {member.file_size} of {size} bytes, or is compressed")
                self.buffers[key] = bytearray(archive.read(member))
        return self.buffers[key], dtype


def read(path: Path) -> Any:
    """Return the object in a checkpoint (.pt, .pth, .bin, .ckpt, .safetensors), its tensors on the CPU.

    No class or function named in the file is imported or called; those that tensors do not need become a ``Stub``.
    Raises StoreError if the file is damaged or is not a checkpoint.
    """
    import torch
    from safetensors import SafetensorError
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
        try:
            with warnings.catch_warnings(action="ignore"):
                return torch.load(path, map_location="cpu", weights_only=True, mmap=zipped)
        except _DAMAGE:
            return _read_zip(path) if zipped else _read_legacy(path)
    except (*_DAMAGE, SafetensorError) as error:
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise StoreError(f"{path} is damaged or no checkpoint ({reason}): get it again") from None


def _read_zip(path: Path) -> Any:
    with zipfile.ZipFile(path) as archive:
        folder = next(name for name in archive.namelist() if name.endswith("/data.pkl")).removesuffix("/data.pkl")
        with archive.open(f"{folder}/data.pkl") as file:
            return _Unpickler(file, (archive, folder)).load()  # type: ignore[arg-type]


def _read_legacy(path: Path) -> Any:
    """Return the object of a file written before PyTorch 1.6: magic number, version, system, object, keys, buffers."""
    with open(path, "rb") as file:
        try:
            magic = _Unpickler(file).load()
        except _DAMAGE:
            magic = None
        if magic != _LEGACY_MAGIC:
            raise StoreError(f"{path} is not a PyTorch checkpoint, or is incomplete: get it again")
        for _ in ("version", "system"):
            _Unpickler(file).load()
        unpickler = _Unpickler(file)
        held = unpickler.load()
        for key in _Unpickler(file).load():
            buffer = unpickler.buffers[key]
            file.seek(8, 1)
            if file.readinto(buffer) != len(buffer):
                raise EOFError("it ends early")
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
    left = [("", held)]
    while left:
        name, each = left.pop()
        if isinstance(each, torch.Tensor):
            yield name, each
        inner = each.state if objects and isinstance(each, Stub) else each
        if isinstance(inner, Mapping) and id(inner) not in seen:
            seen.add(id(inner))
            left += [(f"{name}.{key}" if name else str(key), value) for key, value in [*inner.items()][::-1]]


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
