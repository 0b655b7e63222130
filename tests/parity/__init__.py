"""Parity checks: a network with weights from a fixed recipe reproduces the outputs of its reference implementation.

``python -m tests.parity NAME --manifest M --golden G`` compares a network of ``NETWORKS``. Its module here has
``outputs(manifest, golden, folder)``. It builds the network for every configuration in the manifest for which the
golden file has outputs, fills it with ``weights``, and yields an ``Output`` for each of them under its name in the
golden file. folder is the manifest's. A module may define ``INPUTS``, the parts of names that mark inputs in its golden
file. If outputs of the real weights are public, it also has ``anchors(folder)``, which loads the local weights and
yields an ``Output`` for each public output in the folder.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import torch

NETWORKS = (
    "s3d",
    "timesformer",
    "internvideo",
    "eva_clip",
    "egovlp",
    "videoclip",
    "actionformer",
    "hirest_joint",
    "pdvc",
    "tan",
    "umt",
)
TOLERANCE = 1e-5
"""The largest allowed relative L2 error of an output, in float32."""
ABSOLUTE = 1e-4
"""The largest allowed difference, in any value, between a text's vector and the public vector from the real weights."""
INPUTS = ("recipe_json", "input_ids", "attention_mask", "vfeats", "vmask", "caps", "cmasks")
"""Parts of names that mark inputs in a golden file; all other arrays are outputs."""

Array = NDArray[Any]
Golden = Mapping[str, Array]
"""The arrays of a golden file by name; ``recipe`` returns the recipe of its inputs."""


@dataclass(frozen=True)
class Output:
    """One output: ours and the reference's, of the same shape. tolerance: the largest allowed error of floats."""

    name: str
    ours: Array
    reference: Array
    tolerance: float = TOLERANCE

    @property
    def error(self) -> float:
        """The L2 norm of the difference divided by the reference's; infinite if only our output is not finite."""
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
        """The largest allowed error; 0 for integers and booleans."""
        return 0.0 if self.reference.dtype.kind in "biu" else self.tolerance

    @property
    def agrees(self) -> bool:
        """Whether the error is allowed; NaN is not, nor an infinite error."""
        return np.isfinite(self.error) and self.error <= self.allowed


def check(name: str, manifest: Path, golden: Path) -> Iterator[Output]:
    """Yield every output of a network, filled by the recipe of ``manifest``, with the output in ``golden``.

    Raises ValueError if the golden file has no outputs, or one that was not compared.
    """
    module, arrays = import_module(f"tests.parity.{name}"), read_golden(golden)
    inputs = {*getattr(module, "INPUTS", INPUTS)}
    left = {each for each in arrays if not {*each.split("/")} & inputs}
    if not left:
        raise ValueError(f"{golden} has no outputs")
    for output in module.outputs(json.loads(manifest.read_bytes()), arrays, manifest.parent):
        left.discard(output.name)
        yield output
    if left:
        raise ValueError(f"{golden} has outputs that {name} does not have: {', '.join(sorted(left))}")


def deviation(name: str, error: float, allowed: float) -> Output:
    """Return an output of which only its error is known."""
    return Output(name, np.asarray(error), np.zeros(()), allowed)


def text_anchor(embed: Callable[[str], Array], public: Path, vectors: str) -> Output:
    """Return the largest absolute difference of a text's vector, by ``embed``, from its row in ``vectors``.

    public: a file with N values ``text`` and the (N, D) ``vectors``.
    """
    arrays = read_golden(public)
    ours = np.stack([embed(text) for text in arrays["text"].tolist()])
    return deviation(f"{public.stem}/{vectors}", np.abs(ours - arrays[vectors]).max(), ABSOLUTE)


def read_golden(path: Path) -> dict[str, Array]:
    """Return the arrays of a golden file."""
    with np.load(path) as loaded:
        return dict(loaded)


def recipe(golden: Golden) -> dict[str, Any]:
    """Return the recipe of the golden file's inputs."""
    made: dict[str, Any] = json.loads(str(golden["recipe_json"]))
    return made


def seed_of(name: str) -> int:
    """Return the seed that is derived from a name."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "little")


def weights(
    keys: Mapping[str, Sequence[Any]], digest: str, added: Mapping[str, Iterable[tuple[int, float]]] | None = None
) -> dict[str, Array]:
    """Return the weights of a manifest's ``keys``, which maps each name to [shape, dtype, rule(, scale)].

    The rule ``keep`` (constant buffers) omits an array. The rule ``tied`` uses the array of another name, which is in
    place of the scale. added: pairs of an index and an amount that is added there, by name. Raises ValueError if the
    weights do not match ``digest``, the sha256 of all names and bytes in the order of the names.
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
        raise ValueError("the recipe's weights do not match the manifest's digest_sha256")
    return filled


def emptied(network: "torch.nn.Module") -> "torch.nn.Module":
    """Return a network that is to be filled without its random values, which take as much memory as its weights."""
    import torch

    for parameter in network.parameters():
        parameter.data = torch.zeros(()).expand(parameter.shape)
    return network


def drawn(keys: Mapping[str, Sequence[Any]], prefix: str) -> dict[str, "torch.Tensor"]:
    """Return the weights whose names begin so, for which no digest is compared: if they differ, so do the outputs."""
    import torch

    named = {key: rest for key, rest in keys.items() if key.startswith(prefix)}
    return {
        key: torch.from_numpy(np.asarray(weight(key, tuple(shape), *rule))) for key, (shape, _, *rule) in named.items()
    }


def in_turns(
    blocks: "torch.nn.ModuleList", keys: Mapping[str, Sequence[Any]], prefix: str
) -> dict[str, "torch.Tensor"]:
    """Let each block have its weights, whose names begin so, only while it computes: all together take gigabytes.

    Return what the network is filled with in place of them: zeros of their shapes, which take no memory.
    """
    import torch

    zeros = {key: torch.zeros(()).expand(shape) for key, (shape, *_) in keys.items() if key.startswith(prefix)}

    def fill(block: torch.nn.Module, tensors: Mapping[str, torch.Tensor], own: str) -> None:
        held = {key.removeprefix(own): value for key, value in tensors.items() if key.startswith(own)}
        block.load_state_dict(held, assign=True)

    for number, block in enumerate(blocks):
        own = f"{prefix}{number}."
        block.register_forward_pre_hook(lambda block, _, own=own: fill(block, drawn(keys, own), own))
        block.register_forward_hook(lambda block, *_, own=own: fill(block, zeros, own))
    return zeros


def weight(key: str, shape: tuple[int, ...], rule: str, scale: float = 1.0) -> Array:
    """Return the array of a name and a rule; raise ValueError if the rule is unknown."""
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
    raise ValueError(f"the manifest's rule {rule!r} of {key} is unknown")


def _normal(key: str, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """Return the normal samples of ``key``'s generator, drawn in blocks: drawing all at once takes twice the time."""
    drawn, block = np.empty(shape, np.float32), np.empty(1 << 15)
    flat = drawn.reshape(-1)
    rng = np.random.default_rng(seed_of(key))
    for start in range(0, flat.size, len(block)):
        part = flat[start : start + len(block)]
        part[:] = rng.standard_normal(out=block[: len(part)])
    return drawn


def video01(name: str, shape: Iterable[int], sha256: str = "") -> NDArray[np.float32]:
    """Return the (B, 3, T, H, W) input of that name, in [0, 1): random blocks of 4 frames x 32 x 32 pixels, and noise.

    Raises ValueError if ``sha256`` is given and does not match its bytes.
    """
    batch, _, frames, height, width = shape
    rng = np.random.default_rng(seed_of(name))
    low = rng.random((batch, 3, -(-frames // 4), -(-height // 32), -(-width // 32)))
    low = low.repeat(4, 2).repeat(32, 3).repeat(32, 4)[:, :, :frames, :height, :width]
    video = (0.8 * low + 0.2 * rng.random((batch, 3, frames, height, width))).astype(np.float32)
    return same_input(name, video, sha256) if sha256 else video


def clips(made: Mapping[str, Any], mean: Sequence[float], std: Sequence[float]) -> NDArray[np.float32]:
    """Return the normalised (B, 3, T, H, W) input of a case. If its ``shape`` has four dimensions, T is 1."""
    batch, colours, *frames, height, width = made["shape"]
    video = video01(made["name"], (batch, colours, *(frames or [1]), height, width))
    return same_input(made["name"], normalised(video, mean, std), made["sha256"])


def normalised(video: NDArray[np.float32], mean: Sequence[float], std: Sequence[float]) -> NDArray[np.float32]:
    """Return (B, 3, T, H, W) pictures with a mean subtracted, divided by a deviation of each colour."""
    centre, scale = (np.array(each, np.float32)[:, None, None, None] for each in (mean, std))
    return np.asarray((video - centre) / scale)


def same_input(name: str, made: Array, sha256: str) -> Array:
    """Return an input made by the recipe; raise ValueError if its bytes differ from the golden file's."""
    if hashlib.sha256(made.tobytes()).hexdigest() != sha256:
        raise ValueError(f"the recipe's input {name} differs from the golden file's")
    return made
