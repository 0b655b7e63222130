"""A network on a device: from batches of clips to vectors."""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from ctypes import CDLL
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from stepline import devices
from stepline.errors import StoreError
from stepline.features.encoder import Encoder
from stepline.spec import ClipSpec

M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4
"""Parameters of glibc's ``mallopt``."""


def device_of(options: Mapping[str, Any]) -> torch.device:
    """Return the device of networks. options: the configuration's ``features``.

    Raises StoreError if there is no such device.
    """
    return torch.device(devices.use(options, torch.cuda.is_available))


def _keep_freed_memory() -> None:
    """Make glibc reuse freed blocks of any size: new pages for large blocks cost S3D up to a tenth of its time."""
    with suppress(AttributeError):
        mallopt = CDLL(None).mallopt
        mallopt(M_MMAP_MAX, 0)
        mallopt(M_TRIM_THRESHOLD, 2**31 - 1)


class Network(Encoder):
    """A network on a device.

    The same batch gives the same bytes on the same device with the same number of threads: it uses deterministic
    kernels and no TF32.
    """

    def __init__(
        self, spec: ClipSpec, module: torch.nn.Module, device: torch.device | str, batch_size: int | None
    ) -> None:
        """Move ``module`` to a device. batch_size: as in ``Encoder``."""
        torch.backends.cudnn.benchmark = False
        torch.backends.cudnn.deterministic = True
        torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
        self.device = torch.device(device)
        super().__init__(spec, self.device.type, batch_size)
        if self.device.type == "cpu":
            _keep_freed_memory()
        self.module = module.eval().to(self.device)
        self._memory = torch.empty(0)  # reused for all inputs: glibc's heap grows if large blocks come and go
        self._inputs = self._memory
        self._mean = torch.tensor(spec.mean, device=self.device).view(1, 3, 1, 1, 1)
        self._std = torch.tensor(spec.std, device=self.device).view(1, 3, 1, 1, 1)

    def _rows(self, clips: NDArray[Any], shown: NDArray[np.bool_]) -> NDArray[np.float32]:
        try:
            self._inputs = self._normalised(clips, shown)
            with torch.inference_mode(), self._precision():
                vectors = self.module(self._inputs)
            return np.array(vectors.float().cpu().numpy())
        except torch.OutOfMemoryError:
            raise StoreError(
                f"{self.spec.name}: {len(clips)} clips do not fit into the GPU's memory: lower features.batch_size"
            ) from None

    def _precision(self) -> AbstractContextManager[object]:
        if self.spec.compute == "float32":
            return nullcontext()
        return torch.autocast(self.device.type, getattr(torch, self.spec.compute))

    def _normalised(self, clips: NDArray[Any], shown: NDArray[np.bool_]) -> torch.Tensor:
        tensors = [torch.from_numpy(each) for each in (clips, shown)]
        if self.device.type == "cuda":
            tensors = [each.pin_memory().to(self.device, non_blocking=True) for each in tensors]
        pixels, there = tensors
        if self._memory.numel() < pixels.numel():
            self._memory = torch.empty(pixels.numel(), device=self.device)
        inputs = self._memory[: pixels.numel()].view(pixels.shape).copy_(pixels).permute(0, 4, 1, 2, 3)
        inputs.div_(255).sub_(self._mean).div_(self._std)
        return inputs.mul_(there[:, None, :, None, None])

    def _not_finite(self) -> str:
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
        with torch.inference_mode(), self._precision():
            self.module(self._inputs)
        for hook in hooks:
            hook.remove()
        return f"its layer {found[0]}" if found else super()._not_finite()
