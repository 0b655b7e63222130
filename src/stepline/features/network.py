"""A network on a device: from batches of clips to stored vectors."""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from stepline import devices
from stepline.backbones.registry import FAMILIES
from stepline.errors import SteplineError, StoreError
from stepline.spec import ClipSpec

FRAMES = {"cpu": 16, "cuda": 256}
"""Frames that a network sees at once where nobody says how many clips; more cost a CPU time, for new memory."""
MOST = {"cpu": 8, "cuda": 64}
"""Most clips at once, then: more are no faster."""


def device_of(options: Mapping[str, Any]) -> torch.device:
    """Return the device of networks. options: the configuration's ``features``.

    Raises StoreError where there is no such device.
    """
    return torch.device(devices.use(options, torch.cuda.is_available))


class Network:
    """A network with its weights on a device.

    It computes the same bytes for the same batch on the same device with the same number of threads: deterministic
    kernels, no TF32.
    """

    def __init__(
        self, spec: ClipSpec, files: Mapping[str, Path], device: torch.device | str, batch_size: int | None
    ) -> None:
        """Load the weights in ``files``. batch_size: most clips at once; None is what suits network and device.

        Raises what the architecture's ``load`` raises.
        """
        torch.backends.cudnn.benchmark = False
        torch.backends.cudnn.deterministic = True
        torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
        self.spec, self.device = spec, torch.device(device)
        self.batch_size = batch_size or max(1, min(FRAMES[self.device.type] // spec.num_frames, MOST[self.device.type]))
        module: torch.nn.Module = import_module(FAMILIES[spec.architecture]).load(spec, files)
        self.module = module.eval().to(self.device)
        self._inputs = torch.empty(0)  # used again: glibc's heap grows where large aligned blocks come and go
        self._mean = torch.tensor(spec.mean, device=self.device).view(1, 3, 1, 1, 1)
        self._std = torch.tensor(spec.std, device=self.device).view(1, 3, 1, 1, 1)

    def __call__(self, clips: NDArray[Any], shown: NDArray[np.bool_]) -> NDArray[np.float32]:
        """Return the (n, D) vectors of n <= batch_size clips.

        clips: (n, T, H, W, 3) RGB in [0, 255]. shown: (n, T), False where a frame is none and the network's input 0.
        Raises StoreError, naming the layer, where a value is not finite or larger than what is stored can hold, and
        where the vectors are not the spec's or the GPU's memory is full.
        """
        try:
            inputs = self._normalised(clips, shown)
            with torch.inference_mode(), self._precision():
                vectors = self.module(inputs)
                self._check(vectors, inputs)
        except torch.OutOfMemoryError:
            raise StoreError(
                f"{self.spec.name}: the GPU's memory is full with {len(clips)} clips: lower features.batch_size"
            ) from None
        except SteplineError:
            raise
        except Exception as error:
            raise StoreError(f"{self.spec.name}: its network fails: {type(error).__name__}: {error}") from error
        return np.array(vectors.float().cpu().numpy())

    def _precision(self) -> AbstractContextManager[object]:
        if self.spec.compute == "float32":
            return nullcontext()
        return torch.autocast(self.device.type, getattr(torch, self.spec.compute))

    def _check(self, vectors: torch.Tensor, inputs: torch.Tensor) -> None:
        name, wanted = self.spec.name, (len(inputs), self.spec.dimension)
        if tuple(vectors.shape) != wanted:
            shape = tuple(vectors.shape)
            raise StoreError(f"{name}: its output {self.spec.output} has the shape {shape}, not {wanted}")
        if not bool(torch.isfinite(vectors).all()):
            raise StoreError(f"{name}: {self._first_not_finite(inputs)} gives values that are not finite")
        largest, most = float(vectors.abs().max()), float(np.finfo(self.spec.dtype).max)
        if largest > most:
            raise StoreError(
                f"{name}: its output {self.spec.output} reaches {largest:g}, and {self.spec.dtype} holds up to "
                f"{most:g}: set features.dtype to float32"
            )

    def _normalised(self, clips: NDArray[Any], shown: NDArray[np.bool_]) -> torch.Tensor:
        tensors = [torch.from_numpy(each) for each in (clips, shown)]
        if self.device.type == "cuda":
            tensors = [each.pin_memory().to(self.device, non_blocking=True) for each in tensors]
        pixels, there = tensors
        if self._inputs.numel() < pixels.numel():
            self._inputs = torch.empty(pixels.numel(), device=self.device)
        inputs = self._inputs[: pixels.numel()].view(pixels.shape).copy_(pixels).permute(0, 4, 1, 2, 3)
        inputs.div_(255).sub_(self._mean).div_(self._std)
        return inputs.mul_(there[:, None, :, None, None])

    def _first_not_finite(self, inputs: torch.Tensor) -> str:
        """Return the name of the first layer, in order of computation, whose output is not finite."""
        found: list[str] = []
        hooks = [
            module.register_forward_hook(
                lambda _, __, output, name=name: (
                    found.append(name)
                    if isinstance(output, torch.Tensor) and not bool(torch.isfinite(output).all())
                    else None
                )
            )
            for name, module in self.module.named_modules()
            if name
        ]
        self.module(inputs)
        for hook in hooks:
            hook.remove()
        return f"its layer {found[0]}" if found else f"its output {self.spec.output}"
