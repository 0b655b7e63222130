"""The reference of a network, for a module that names its folder ``FOLDER``."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest


@pytest.fixture(scope="module")
def manifest(request: pytest.FixtureRequest, parity: Path) -> Any:
    """What the reference's networks and weights are."""
    return json.loads((parity / request.module.FOLDER / "manifest.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def mistakes(request: pytest.FixtureRequest, parity: Path) -> Any:
    """How far each mistake is from the reference's outputs."""
    return json.loads((parity / request.module.FOLDER / "mutations.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def golden(request: pytest.FixtureRequest, parity: Path) -> dict[str, Any]:
    """The reference's outputs of small networks."""
    with np.load(parity / request.module.FOLDER / "golden_a.npz") as loaded:
        return {name: array for name, array in loaded.items() if not name.startswith("full")}


@pytest.fixture(scope="module")
def tensors(manifest: Any) -> dict[str, Any]:
    """The small network's weights, by the names of the published checkpoint."""
    torch = pytest.importorskip("torch")
    from stepline.backbones.parity import weights

    tiny = manifest["configs"]["tiny"]
    return {name: torch.tensor(array) for name, array in weights(tiny["keys"], tiny["digest_sha256"]).items()}
