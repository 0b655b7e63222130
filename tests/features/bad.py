"""A network whose second layer gives what is no number."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from stepline.spec import ClipSpec


class Root(torch.nn.Module):
    def forward(self, values: torch.Tensor) -> torch.Tensor:
        return (-values.abs() - 1).sqrt()


class Bad(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.third = torch.nn.Identity(), Root(), torch.nn.Identity()

    def forward(self, clips: torch.Tensor) -> torch.Tensor:
        return self.third(self.second(self.first(clips))).mean(dim=(2, 3, 4))


def load(spec: ClipSpec, files: Mapping[str, Path]) -> Any:
    return Bad()
