"""The files of docs/own-backbones.md that need a library which is not installed, with a stand-in for it."""

import sys
from pathlib import Path
from types import ModuleType

import pytest

from stepline.backbones import file
from tests.conftest import ROOT
from tests.docs.pages import blocks

torch = pytest.importorskip("torch")


class Head(torch.nn.Module):
    """Like the head of pytorchvideo: a projection of 2304 channels to classes."""

    def __init__(self) -> None:
        super().__init__()
        self.proj = torch.nn.Linear(2304, 400)


class SlowFast(torch.nn.Module):
    """Takes a list of two pathways, and returns their means over space beside each other, projected."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = torch.nn.ModuleList([Head()])

    def forward(self, pathways: list[torch.Tensor]) -> torch.Tensor:
        slow, fast = pathways
        assert (slow.shape[1:3], fast.shape[1:3]) == ((3, 8), (3, 32))
        means = torch.cat([each.mean((1, 3, 4)) for each in (slow, fast)], 1)
        return self.blocks[-1].proj(torch.nn.functional.pad(means, (0, 2304 - 40)))


def test_slowfast_gets_both_pathways_of_a_clip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hub = ModuleType("pytorchvideo.models.hub")
    hub.slowfast_r50 = SlowFast  # type: ignore[attr-defined]
    for name in ("pytorchvideo", "pytorchvideo.models"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, hub.__name__, hub)
    (block,) = (each for each in blocks(ROOT / "docs/own-backbones.md") if each.text.startswith("# slowfast.py"))
    path = tmp_path / "slowfast.py"
    path.write_text(block.text)
    torch.save({"model_state": SlowFast().state_dict(), "epoch": 1}, tmp_path / "SLOWFAST_8x8_R50.pyth")
    spec = file.spec("slowfast", path)
    assert [name for name, _ in spec.weights_sha256] == ["SLOWFAST_8x8_R50.pyth", "slowfast.py"]
    seconds = torch.arange(32.0)[None, None, :, None, None].expand(2, 3, 32, 4, 4)
    rows = file.load(spec, {path.name: path})(seconds)
    assert rows.shape == (2, spec.dimension)
    assert rows[0, :8].tolist() == [0, 4, 8, 13, 17, 22, 26, 31]
    assert rows[0, 8:40].tolist() == list(range(32))
