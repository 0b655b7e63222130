"""A function of arrays in the place of a network."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
import torch

from stepline import devices
from stepline.backbones import file
from stepline.errors import StoreError
from stepline.features.encoder import Encoders, Function
from stepline.features.network import Network
from tests.backbones.test_file import without_torch
from tests.conftest import ROOT
from tests.features import toy
from tests.features.test_extract import present
from tests.features.test_networks import bank, shard
from tests.media.clips import CFR_25, make

SPEC = replace(toy.SPEC, name="function", dimension=3)
OPTIONS = {"device": "cpu", "batch_size": None, "jobs_per_gpu": 1}
FILE = """
from tests.features.toy import SPEC
def load(spec, files):
    {body}
"""


def clips(n: int = 2, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    shown = np.ones((n, 4), bool)
    shown[-1, 2:] = False
    return np.random.default_rng(seed).integers(0, 256, (n, 4, 32, 32, 3), np.uint8), shown


def own(folder: Path, body: str, **options: Any) -> Any:
    path = folder / "mine.py"
    path.write_text(FILE.format(body=body))
    return Encoders(OPTIONS | options).load(replace(SPEC, architecture="file"), {path.name: path})


def test_a_function_sees_what_a_network_sees() -> None:
    seen = []

    def means(inputs: np.ndarray) -> np.ndarray:
        seen.append((inputs.dtype, inputs.shape, inputs.flags.c_contiguous, bool(inputs[-1, :, 2:].any())))
        return inputs.mean((2, 3, 4))

    rows = Function(SPEC, means, None)(*clips())
    np.testing.assert_allclose(rows, Network(SPEC, toy.Means(), "cpu", None)(*clips()), rtol=1e-5)
    assert rows.dtype == np.float32
    assert seen == [(np.float32, (2, 3, 4, 32, 32), True, False)]
    assert Function(SPEC, means, None).batch_size == Network(SPEC, toy.Means(), "cpu", None).batch_size == 4


class Pixel(torch.nn.Module):
    """One pixel of one frame, half of the time."""

    def __init__(self) -> None:
        super().__init__()
        self.dropout = torch.nn.Dropout()

    def forward(self, clips: torch.Tensor) -> torch.Tensor:
        return self.dropout(clips[:, :, 1, 3, 5])


def test_the_axes_of_clips_are_batch_colour_time_height_and_width_and_nothing_is_dropped() -> None:
    pixels, shown = clips()
    wanted = (pixels[:, 1, 3, 5] / 255 - SPEC.mean) / SPEC.std
    for encoder in (Function(SPEC, lambda inputs: inputs[:, :, 1, 3, 5], None), Network(SPEC, Pixel(), "cpu", None)):
        np.testing.assert_allclose(encoder(pixels, shown), wanted, rtol=1e-5)


def test_a_network_uses_deterministic_kernels_and_no_tf32() -> None:
    cudnn, matmul = torch.backends.cudnn, torch.backends.cuda.matmul
    cudnn.benchmark = cudnn.allow_tf32 = matmul.allow_tf32 = True
    cudnn.deterministic = False
    Network(SPEC, Pixel(), "cpu", None)
    assert (cudnn.benchmark, cudnn.allow_tf32, matmul.allow_tf32, cudnn.deterministic) == (False, False, False, True)


def test_a_network_computes_in_the_precision_of_the_spec() -> None:
    whole, half = (
        Network(replace(toy.SPEC, compute=compute), toy.load(toy.SPEC, {}), "cpu", None)(*clips())
        for compute in ("float32", "bfloat16")
    )
    assert 1e-4 < np.abs(half / whole - 1).max() < 0.05


@pytest.mark.parametrize(
    ("function", "error"),
    [
        (lambda x: x.mean((2, 3)), "its output pooled has the shape (2, 3, 32), not (2, 3)"),
        (lambda x: x.mean((2, 3, 4))[:1], "its output pooled has the shape (1, 3), not (2, 3)"),
        (lambda x: x.mean((2, 3, 4)) * np.nan, "its output pooled has values that are not finite"),
        (lambda x: x.mean((2, 3, 4)) * 1e7, "its output pooled reaches "),
        (lambda x: np.full((2, 3), -7e4, np.float32), "its output pooled reaches 70000"),
        (lambda x: x[9], "its network fails: IndexError: index 9 is out of bounds"),
        (lambda x: [object()], "its network fails: TypeError: "),
    ],
)
def test_what_does_not_fit_is_one_line_that_names_the_backbone(function: Callable[..., Any], error: str) -> None:
    with pytest.raises(StoreError, match=f"^function: {re.escape(error)}"):
        Function(SPEC, function, None)(*clips())


@pytest.mark.parametrize(("dtype", "value"), [("float16", 65504), ("float32", 1e30)])
def test_values_may_be_as_large_as_the_stored_type_holds(dtype: Literal["float16", "float32"], value: float) -> None:
    rows = Function(replace(SPEC, dtype=dtype), lambda x: np.full((2, 3), value, np.float32), None)(*clips())
    assert (rows == np.float32(value)).all()


def test_what_a_file_gives_decides(tmp_path: Path) -> None:
    function = own(tmp_path, "return lambda clips: clips.mean((2, 3, 4))")
    network = own(tmp_path, "from tests.features.toy import Means\n    return Means()")
    assert isinstance(function, Function)
    assert isinstance(network, Network)
    assert own(tmp_path, "return lambda clips: clips.mean((2, 3, 4))", batch_size=3).batch_size == 3
    assert own(tmp_path, "from tests.features.toy import Means\n    return Means()", batch_size=5).batch_size == 5
    np.testing.assert_allclose(function(*clips()), network(*clips()), rtol=1e-5)


def test_a_gpu_is_taken_before_a_file_may_look_at_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "visible", lambda: ["0"])
    monkeypatch.setattr(devices, "use", lambda *_: os.environ.update(TAKEN="yes") or "cpu")
    monkeypatch.setenv("TAKEN", "no")
    body = "import os\n    taken = os.environ['TAKEN']\n    return lambda clips: taken"
    assert own(tmp_path, body, device="cpu").function(0) == "no"
    assert own(tmp_path, body, device="auto").function(0) == "yes"


STORED = """
import sys
from pathlib import Path
from stepline.backbones import file
from stepline.backbones.picture import picture
from stepline.features.extract import Work
from tests.features.test_extract import store
folder = Path(sys.argv[1])
path = folder / "mine.py"
spec = file.spec("mine", path)
store(folder, Work(spec=spec, store=folder / "features/mine/000", files={path.name: path}))
sys.exit("torch" in sys.modules)
"""


def test_rows_of_a_function_are_stored_and_torch_is_not_imported(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(without_torch())
    shard(tmp_path, present(make(tmp_path / "a.mp4", CFR_25)))
    subprocess.run([sys.executable, "-c", STORED, str(tmp_path)], cwd=ROOT, check=True)
    spec = file.spec("mine", path)
    rows = np.asarray(bank(tmp_path, spec).rows["a"])
    assert rows.shape == (3, 48)
    assert rows.dtype == np.float16
    assert np.abs(rows).max() > 0
