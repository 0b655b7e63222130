"""From a file to stored features, against a plain script, for every preset; other kinds of file are tests/media's."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("av")
pytest.importorskip("cv2")
pytest.importorskip("torch")

import torch

from stepline.availability import write_availability
from stepline.backbones import registry, s3d
from stepline.features.bank import Bank
from stepline.features.compare import Timed, compare
from stepline.features.extract import Work
from stepline.io import read_json
from stepline.spec import ClipSpec
from tests.features.reference import PICTURES, distances, footage, rows
from tests.features.test_extract import present, store
from tests.media.clips import KINDS, copy_from, make
from tests.parity import weights

CLOSE = 1e-4
LISTED = [(0.0, 1.0), (0.4, 1.9), (1.25, 2.0), (2.2, 3.5)]
"""The last one runs over the end of cut.mp4."""


@cache
def drawn(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(0))


class Seeing(torch.nn.Module):
    """A weight for every eighth pixel of every eighth line of every frame, some of them negative."""

    def __init__(self, frames: int) -> None:
        super().__init__()
        self.weights = torch.nn.Parameter(drawn(3 * frames * 28 * 28, 64))

    def forward(self, clips: torch.Tensor) -> torch.Tensor:
        return (clips - clips.mean((1, 2, 3, 4), keepdim=True))[..., 3::8, 3::8].flatten(1) @ self.weights


def load(spec: ClipSpec, files: Mapping[str, Path]) -> Seeing:
    return Seeing(spec.num_frames)


@pytest.fixture(autouse=True)
def _family(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(registry.FAMILIES, "seeing", __name__)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def picture(index: float) -> np.ndarray:
    """Return waves that have moved on in each frame, with a little colour, as footage has."""
    y, x = np.mgrid[0:180, 0:240] / 60
    waves = [np.sin(a * x + b * y + c * index) for a, b, c in ((1.1, 0.7, 0.31), (-0.5, 1.6, 0.23), (1.9, -0.4, 0.17))]
    return np.stack([127 + 40 * sum(waves) + 6 * each for each in waves], axis=2).astype(np.uint8)


def clip(folder: Path, name: str) -> Path:
    """Return a clip of one of the KINDS that shows the waves."""
    times, options = KINDS[name]
    path = make(folder / name, times, picture=picture, options=options)
    return copy_from(path, folder / "edited.mp4", 1.1) if name == "cut.mp4" else path


def extracted(folder: Path, video: Path, *specs: ClipSpec, **options: Any) -> dict[str, Bank]:
    write_availability(folder / "availability.json", [present(video)])
    works = [
        Work(
            spec=spec,
            store=folder / "features" / spec.name / "000",
            files=options.get("files", {}),
            listed={} if spec.placement == "grid" else {video.stem: LISTED},
        )
        for spec in specs
    ]
    for _ in works:
        store(folder, *works, batch_size=2)
        works.append(works.pop(0))
    return {work.spec.name: Bank.open([work.store], work.spec) for work in works}


SPECS = {
    name: replace(spec, architecture="seeing", weights=(), dimension=64, normalise=False, dtype="float32")
    for name, spec in registry.presets().items()
    if name in PICTURES
}


def lag_s(spec: ClipSpec, ours: np.ndarray, wanted: np.ndarray) -> float:
    banks = [
        Timed(name=name, rows={"v": each}, hop_s=spec.hop / spec.fps)
        for name, each in (("ours", ours), ("script", wanted))
    ]
    return next(compare(*banks)).lag_s


@pytest.mark.slow
@pytest.mark.parametrize("name", ["variable.mp4", "cut.mp4"])
def test_stored_features_are_those_of_a_plain_script(name: str, tmp_path: Path) -> None:
    path = clip(tmp_path, name)
    video = footage(path)
    banks = extracted(tmp_path, path, *SPECS.values())
    for spec in SPECS.values():
        ours, listed = banks[spec.name][path.stem], () if spec.placement == "grid" else LISTED
        wanted = rows(spec, video, load(spec, {}), listed)
        assert ours.shape == wanted.shape, spec.name
        assert distances(ours, wanted).max() <= CLOSE, spec.name
        if name == "variable.mp4":  # where one frame later is another row
            wrong = rows(spec, video, load(spec, {}), listed, late=1)
            assert np.median(distances(ours, wrong)) > 10 * CLOSE, spec.name
        if spec.placement == "grid" and len(ours) >= 3:
            assert lag_s(spec, ours, wanted) == 0, spec.name


def test_the_script_s_times_are_those_that_were_written(tmp_path: Path) -> None:
    for name, (times, _) in KINDS.items():
        assert footage(clip(tmp_path, name)).times == (times[:87] if name == "cut.mp4" else times)


@pytest.mark.slow
def test_s3d_s_stored_features_are_those_of_a_plain_script(tmp_path: Path, parity: Path) -> None:
    manifest = read_json(parity / "s3d/manifest.json")
    tensors = {
        key: torch.from_numpy(each) for key, each in weights(manifest["keys"], manifest["digest_sha256"]).items()
    }
    torch.save(tensors, tmp_path / "s3d_howto100m.pth")
    path = clip(tmp_path, "2997.mp4")
    spec = registry.presets()["s3d-htstep"]
    bank = extracted(tmp_path, path, spec, files={"s3d_howto100m.pth": tmp_path / "s3d_howto100m.pth"})[spec.name]
    network = s3d.S3D(spec.output).eval()
    network.load_state_dict(tensors)
    ours, wanted = np.asarray(bank[path.stem], np.float32), rows(spec, footage(path), network)
    assert ours.shape == wanted.shape
    assert distances(ours, wanted).max() <= CLOSE
    assert lag_s(spec, ours, wanted) == 0


def test_published_rounding_is_half_a_period_late(tmp_path: Path) -> None:
    path = make(tmp_path / "a.mp4", [Fraction(i, 10) for i in range(300)], picture=lambda i: picture(0.2 * i))
    exact = SPECS["eva_clip-hirest"]
    late = replace(exact, name="late", frame_rule="ffmpeg_near")
    banks = extracted(tmp_path, path, exact, late)
    assert lag_s(exact, banks[exact.name]["a"], banks["late"]["a"]) == pytest.approx(0.5, abs=0.1)
