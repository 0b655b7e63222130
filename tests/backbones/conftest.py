"""The reference of a network, for a module that names its folder ``FOLDER`` and imports its check as ``reference``."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from stepline.backbones import named
from stepline.backbones.weights import locate
from tests.backbones.models import Hub


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


@pytest.fixture
def errors(request: pytest.FixtureRequest, manifest: Any, golden: dict[str, Any]) -> Callable[..., dict[str, float]]:
    """The errors of the small networks, in some outputs of the golden file."""

    def compute(*names: str) -> dict[str, float]:
        arrays = {name: golden[name] for name in ("recipe_json", *names)}
        found = request.module.reference.outputs(manifest, arrays, Path(request.module.FOLDER))
        return {each.name: each.error for each in found}

    return compute


@pytest.fixture(scope="module")
def tensors(manifest: Any) -> dict[str, Any]:
    """The small network's weights, by the names of the published checkpoint."""
    torch = pytest.importorskip("torch")
    from tests.parity import weights

    tiny = manifest["configs"]["tiny"]
    return {name: torch.tensor(array) for name, array in weights(tiny["keys"], tiny["digest_sha256"]).items()}


@pytest.fixture(scope="module")
def photo() -> Image.Image:
    """A picture whose sides and rest after scaling are odd, with detail at all scales."""
    rng = np.random.default_rng(0)
    coarse = Image.fromarray(rng.integers(256, size=(9, 13, 3), dtype=np.uint8)).resize(
        (291, 203), Image.Resampling.BICUBIC
    )
    noise = rng.integers(-20, 20, size=(203, 291, 3))
    return Image.fromarray(np.clip(np.asarray(coarse) + noise, 0, 255).astype(np.uint8))


@pytest.fixture
def hub() -> Hub:
    """Save a model and its processor as the hub's repository would hold them, and return the files."""

    def save(name: str, network: Any, processor: Any) -> dict[str, Path]:
        folder = Path("weights", named.weights(name).name)
        network.save_pretrained(folder)
        processor.save_pretrained(folder)
        found = locate(name)
        assert found is not None
        return found

    return save
