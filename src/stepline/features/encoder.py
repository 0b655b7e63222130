"""From clips to vectors: by a torch network on a device, or by a NumPy function, which needs no torch."""

import logging
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from stepline import devices
from stepline.backbones.registry import FAMILIES
from stepline.errors import SteplineError, StoreError
from stepline.spec import ClipSpec

if TYPE_CHECKING:
    import torch

log = logging.getLogger(__name__)

FRAMES = {"cpu": 16, "cuda": 256}
"""Frames per batch if no batch size is configured. More are not faster on a CPU and use more memory."""
MOST = {"cpu": 8, "cuda": 64}
"""The largest batch in clips, if no batch size is configured. More are not faster."""


class Encoder(ABC):
    """Computes vectors of clips. batch_size: the maximum number of clips per call. runs_on: ``cpu`` or ``cuda``."""

    def __init__(self, spec: ClipSpec, device: str, batch_size: int | None) -> None:
        """device: ``cpu`` or ``cuda``. batch_size: of one forward pass; None chooses one for the spec and device."""
        self.spec, self.runs_on = spec, device
        self.batch_size = batch_size or max(1, min(FRAMES[device] // spec.num_frames, MOST[device]))

    def __call__(self, clips: NDArray[Any], shown: NDArray[np.bool_]) -> NDArray[np.float32]:
        """Return the (n, D) vectors of n <= batch_size clips.

        clips: (n, T, H, W, 3) RGB in [0, 255]. shown: (n, T), False where there is no frame and the input is 0. Raises
        StoreError if a value is not finite, with the name of the network's layer, or too large for the stored dtype, if
        the vectors do not have the spec's shape, and if the GPU's memory is full.
        """
        try:
            rows = self._rows(clips, shown)
        except SteplineError:
            raise
        except (Exception, SystemExit) as error:
            raise StoreError(f"{self.spec.name}: its network fails: {type(error).__name__}: {error}") from error
        self._check(rows, len(clips))
        return rows

    @abstractmethod
    def _rows(self, clips: NDArray[Any], shown: NDArray[np.bool_]) -> NDArray[np.float32]:
        """Return the vectors, not checked, in newly allocated memory."""

    def _not_finite(self) -> str:
        """Return the part of the network that produced values that are not finite in the last call."""
        return f"its output {self.spec.output}"

    def _check(self, rows: NDArray[np.float32], n: int) -> None:
        name, output, wanted = self.spec.name, self.spec.output, (n, self.spec.dimension)
        if rows.shape != wanted:
            raise StoreError(f"{name}: its output {output} has the shape {rows.shape}, not {wanted}")
        if not np.isfinite(rows).all():
            raise StoreError(f"{name}: {self._not_finite()} has values that are not finite")
        largest, most = float(np.abs(rows).max()), float(np.finfo(self.spec.dtype).max)
        if largest > most:
            raise StoreError(
                f"{name}: its output {output} reaches {largest:g}, and {self.spec.dtype} holds up to {most:g}: "
                "set features.dtype to float32"
            )


class Function(Encoder):
    """A function on the CPU: from (B, 3, T, H, W) float32, normalised, to (B, D)."""

    def __init__(self, spec: ClipSpec, function: Callable[[NDArray[np.float32]], Any], batch_size: int | None) -> None:
        super().__init__(spec, "cpu", batch_size)
        self.function = function

    def _rows(self, clips: NDArray[Any], shown: NDArray[np.bool_]) -> NDArray[np.float32]:
        mean, std = (np.array(each, np.float32)[:, None, None, None] for each in (self.spec.mean, self.spec.std))
        inputs = np.array(clips.transpose(0, 4, 1, 2, 3), np.float32, order="C")
        inputs /= 255
        inputs -= mean
        inputs /= std
        inputs *= shown[:, None, :, None, None]
        return np.array(self.function(inputs), np.float32)


class Encoders:
    """The encoders of a process."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        """options: the configuration's ``features``."""
        self._options = options

    def load(self, spec: ClipSpec, files: Mapping[str, Path]) -> Encoder:
        """Return the encoder of ``spec``, with the weights in ``files``.

        Torch is imported only for networks. A GPU is reserved before a network is loaded, because loading may query the
        GPUs. Only loading a custom file shows whether it is a function, so a GPU, if wanted, is reserved for it too.
        Raises the errors of the architecture's ``load``, and StoreError if there is no such device, or if the network
        cannot be loaded for another reason, as when it does not fit into memory.
        """
        if spec.architecture != "file" or devices.wanted(self._options["device"]):
            _ = self._device
        log.info("loading %s", spec.name)
        try:
            return self._loaded(spec, files)
        except (SteplineError, ModuleNotFoundError, OSError):
            raise
        except Exception as error:
            raise StoreError(f"{spec.name}: its network cannot be loaded: {type(error).__name__}: {error}") from error

    def _loaded(self, spec: ClipSpec, files: Mapping[str, Path]) -> Encoder:
        made = import_module(FAMILIES[spec.architecture]).load(spec, files)
        torch = sys.modules.get("torch")
        if torch is None or not isinstance(made, torch.nn.Module):
            return Function(spec, made, self._options["batch_size"])
        from stepline.features.network import Network

        return Network(spec, made, self._device, self._options["batch_size"])

    @cached_property
    def _device(self) -> "torch.device":
        from stepline.features.network import device_of

        return device_of(self._options)
