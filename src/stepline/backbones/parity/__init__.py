"""Parity: a model filled by a fixed recipe gives what the reference implementation gave.

A family's module here, and a head's in ``stepline.models.parity``, has ``outputs(manifest, golden, folder)``: it builds
the network for every configuration of the manifest of which the golden file has outputs, fills it with ``weights`` and
yields an ``Output`` for each of them, under the name that it has there; folder is the manifest's. It may have
``INPUTS``, parts of the names under which its golden file holds what is no output. Where outputs of the real
weights are public, the module also has ``anchors(folder)``: it loads the weights at hand and yields an ``Anchor`` for
each of the outputs in the folder.
"""

import hashlib
import json
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepline.errors import ConfigError, StoreError
from stepline.io import read_json

TOLERANCE = 1e-5
"""The largest relative L2 error, in float32, of an output that is the reference's."""
ABSOLUTE = 1e-4
"""The largest difference, in any value, of a text's vector from what the public weights gave for it."""
INPUTS = ("recipe_json", "input_ids", "attention_mask", "vfeats", "vmask", "caps", "cmasks")
"""Parts of the names under which a golden file holds inputs; all others are outputs."""

Array = NDArray[Any]
Golden = Mapping[str, Array]
"""What the golden file holds, by name; ``recipe`` reads how its inputs were made."""


@dataclass(frozen=True)
class Output:
    """One output: ours and the reference's, of one shape; of floats an error of at most ``tolerance`` is allowed."""

    name: str
    ours: Array
    reference: Array
    tolerance: float = TOLERANCE

    @property
    def error(self) -> float:
        """The L2 norm of the difference over that of the reference; infinite where ours alone is not finite."""
        ours, reference = self.ours.astype(np.float64), self.reference.astype(np.float64)
        if ours.shape != reference.shape:
            return float("inf")
        either = ~(np.isnan(ours) & np.isnan(reference))
        ours, reference = ours[either], reference[either]
        if not np.isfinite(ours).all():
            return float("inf")
        norm = float(np.linalg.norm(reference))
        difference = float(np.linalg.norm(ours - reference))
        return difference / norm if norm else difference

    @property
    def allowed(self) -> float:
        """The largest allowed error: none of whole numbers and truth values."""
        return 0.0 if self.reference.dtype.kind in "biu" else self.tolerance

    @property
    def agrees(self) -> bool:
        """Whether the error is allowed; one that is not a number is not."""
        return self.error <= self.allowed


@dataclass(frozen=True)
class Anchor:
    """A public output of the real weights: its name, how far ours is from it, and how far it may be."""

    name: str
    error: float
    allowed: float


def check(package: str, names: Collection[str], name: str, manifest: Path, golden: Path) -> Iterator[Output]:
    """Yield every output of the model ``name``, filled by the recipe of ``manifest``, beside that in ``golden``.

    package, names: where the models' modules are, and which there are. Raises ConfigError where the name is unknown,
    StoreError where a file is not what it should be, or where the golden file holds an output that was not compared.
    """
    if name not in names:
        raise ConfigError(f"{name!r} has no parity check; choose from {', '.join(names)}")
    try:
        described = read_json(manifest)
    except StoreError:
        raise StoreError(f"{manifest} is no manifest of weights, as JSON: give that of {name}") from None
    arrays = read_golden(golden)
    module = import_module(f"{package}.{name}")
    inputs = getattr(module, "INPUTS", INPUTS)
    outputs: Callable[[Any, Golden, Path], Iterator[Output]] = module.outputs
    left = {each for each in arrays if not {*each.split("/")} & {*inputs}}
    if not left:
        raise StoreError(f"{golden} holds no outputs")
    try:
        for output in outputs(described, arrays, manifest.parent):
            left.discard(output.name)
            yield output
    except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
        raise StoreError(f"{manifest} and {golden} are not both of {name}: give that model's own") from error
    if left:
        raise StoreError(f"{golden} holds outputs that {name} has not: {', '.join(sorted(left))}")


def anchors(name: str, folder: Path) -> Iterator[Anchor]:
    """Yield how far the model ``name``, with its real weights, is from each of the public outputs in ``folder``.

    Raises ConfigError where none are known, MissingError where the weights are absent.
    """
    module = import_module(f"stepline.backbones.parity.{name}")
    if not hasattr(module, "anchors"):
        raise ConfigError(f"no outputs of {name} with its real weights are public: leave --anchors out")
    yield from module.anchors(folder)


def text_anchor(embed: Callable[[str], Array], public: Path, vectors: str) -> Anchor:
    """Return the largest absolute difference of a text's vector, by ``embed``, from its row in ``vectors``.

    public: a file with ``text``, N of them, and ``vectors``, (N, D). Raises StoreError where it is damaged.
    """
    arrays = read_golden(public)
    ours = np.stack([embed(text) for text in arrays["text"].tolist()])
    return Anchor(f"{public.stem}/{vectors}", float(np.abs(ours - arrays[vectors]).max()), ABSOLUTE)


def read_golden(path: Path) -> dict[str, Array]:
    """Return the arrays of a golden file; raise StoreError where it is damaged."""
    try:
        with np.load(path, allow_pickle=False) as loaded:
            return dict(loaded)
    except FileNotFoundError:
        raise
    except (EOFError, MemoryError, OSError, TypeError, ValueError, zipfile.BadZipFile, zlib.error):
        raise StoreError(f"{path} is damaged or holds no arrays: get it again") from None


def recipe(golden: Golden) -> dict[str, Any]:
    """Return how the golden file's inputs were made."""
    made: dict[str, Any] = json.loads(str(golden["recipe_json"]))
    return made


def seed_of(name: str) -> int:
    """Return the seed that a name stands for."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "little")


def weights(
    keys: Mapping[str, Sequence[Any]], digest: str, added: Mapping[str, Iterable[tuple[int, float]]] | None = None
) -> dict[str, Array]:
    """Return the weights of a manifest's ``keys``: [shape, dtype, rule(, scale)] by the name of each.

    Those of the rule ``keep`` (constant buffers) are left out; those of the rule ``tied`` are the same as of the name
    in place of the scale. added: what is added after that to some places of some weights. Raises StoreError where they
    do not have the manifest's ``digest``, the sha256 of all names and bytes in the order of the names.
    """
    filled: dict[str, Array] = {}
    sha256 = hashlib.sha256()
    for key in sorted(keys):
        source = keys[key][3] if keys[key][2] == "tied" else key
        shape, _, rule, *scale = keys[source]
        if rule == "keep":
            continue
        if source not in filled:
            filled[source] = weight(source, tuple(shape), rule, *scale)
            for place, amount in (added or {}).get(source, ()):
                filled[source][place] += np.float32(amount)
        filled[key] = filled[source]
        sha256.update(key.encode())
        sha256.update(filled[key].data)
    if sha256.hexdigest() != digest:
        raise StoreError("the recipe's weights are not those of the manifest's digest_sha256")
    return filled


def weight(key: str, shape: tuple[int, ...], rule: str, scale: float = 1.0) -> Array:
    """Return the array of a name and a rule; raise StoreError where the rule is not known."""
    if rule == "zero":
        return np.zeros(shape, np.int64)
    drawn = _normal(key, shape)
    if rule == "norm_weight":
        return np.asarray(np.float32(1) + np.float32(0.02) * drawn)
    if rule == "running_var":
        return np.asarray(np.float32(1) + np.float32(0.1) * np.abs(drawn))
    if rule in ("running_mean", "bias"):
        return np.asarray(np.float32(0.02) * drawn)
    if rule == "scaled":
        drawn *= np.float32(scale)
        return drawn
    raise StoreError(f"the manifest's rule {rule!r} of {key} is not known")


def _normal(key: str, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """Return what the generator of ``key`` draws, block by block: doubles of the whole would take twice the time."""
    drawn, block = np.empty(shape, np.float32), np.empty(1 << 15)
    flat = drawn.reshape(-1)
    rng = np.random.default_rng(seed_of(key))
    for start in range(0, flat.size, len(block)):
        part = flat[start : start + len(block)]
        part[:] = rng.standard_normal(out=block[: len(part)])
    return drawn


def video01(name: str, shape: Iterable[int], sha256: str = "") -> NDArray[np.float32]:
    """Return the (B, 3, T, H, W) input of that name, in [0, 1): random blocks of 4 frames x 32 x 32 pixels, and noise.

    Raises StoreError where ``sha256``, of its bytes, is given and another.
    """
    batch, _, frames, height, width = shape
    rng = np.random.default_rng(seed_of(name))
    low = rng.random((batch, 3, -(-frames // 4), -(-height // 32), -(-width // 32)))
    low = low.repeat(4, 2).repeat(32, 3).repeat(32, 4)[:, :, :frames, :height, :width]
    video = (0.8 * low + 0.2 * rng.random((batch, 3, frames, height, width))).astype(np.float32)
    if sha256 and hashlib.sha256(video.tobytes()).hexdigest() != sha256:
        raise StoreError(f"the recipe's input {name} is not that of the golden file")
    return video
