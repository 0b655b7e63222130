"""Networks at their published size, from a file of weights to stored features of real footage."""

import gc
import shutil
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("av")
pytest.importorskip("cv2")
pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch

from stepline.availability import write_availability
from stepline.backbones import internvideo, registry
from stepline.backbones.presets.internvideo import TOWERS
from stepline.backbones.weights import WEIGHTS
from stepline.features.bank import Bank
from stepline.features.extract import Work
from stepline.io import read_json
from stepline.media.clip import write_clip
from stepline.spec import ClipSpec
from tests.features.conftest import decoded
from tests.features.reference import distances, footage, rows
from tests.features.test_extract import present, store
from tests.parity import weight

__all__ = ["decoded"]
pytestmark = pytest.mark.slow
CLOSE = 1e-4
VIDEO = "spacewalk2"
END_S = 1.8
"""The end of what is cut out of it."""
LISTED = [(0.3, 1.7)]
PRESETS = registry.presets()
SPECS = (
    PRESETS["s3d-htstep"],
    PRESETS["timesformer-distant"],
    replace(PRESETS["eva_clip-hirest"], placement="middles"),
    PRESETS["egovlp-spacewalk"],
)
"""One of each family that a study of real footage has not; EVA-CLIP sees one frame of a clip."""


def prefixed(tensors: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    return {f"{prefix}{name}": tensor for name, tensor in tensors.items()}


PUBLISHED: dict[str, tuple[str, str, Callable[[Mapping[str, Any]], Any]]] = {
    "s3d": ("s3d", "s3d_howto100m.pth", dict),
    "timesformer": (
        "timesformer",
        "TimeSformer_divST_8x32_224_HowTo100M_pretrained.pth",
        lambda tensors: {"epoch": 1, "model_state": prefixed(tensors, "model."), "cfg": "TRAIN:"},
    ),
    "internvideo": ("internvideo", "pytorch_model.bin", lambda tensors: prefixed(tensors, "clip.")),
    "eva_clip": ("evaclip", "eva_clip_psz14.pt", dict),
    "egovlp": (
        "egovlp",
        "EgoVLP_PT_BEST.pth",
        lambda tensors: {
            "arch": "FrozenInTime",
            "state_dict": prefixed(tensors, "module."),
            "config": Namespace(resume=None),
        },
    ),
    "videoclip": (
        "videoclip",
        "checkpoint_best.pt",
        lambda tensors: {"args": Namespace(arch="mmarch"), "model": prefixed(tensors, "mmmodel.")},
    ),
}
"""By name of the weights: the folder of their manifest, their file, and how it holds them."""


def write(name: str, parity: Path, folder: Path) -> None:
    """Write the files of the weights ``name``, with random values; those that no network on clips reads are empty."""
    described, file, publish = PUBLISHED[name]
    manifest = read_json(parity / described / "manifest.json")
    full = manifest["configs"]["full"] if "configs" in manifest else manifest
    folder.mkdir(parents=True)
    for each in WEIGHTS[name].files:
        (folder / each.name).touch()
    torch.save(publish(_random(full["keys"])), folder / file)


def _random(keys: Mapping[str, Sequence[Any]]) -> dict[str, torch.Tensor]:
    """Return values of the recipe's distributions; tensors of one begin alike, and share memory and room in a file."""
    by = {key: tuple(rule) for key, (_, _, *rule) in keys.items() if rule != ["keep"]}
    sizes = {key: prod(keys[key][0]) for key in by}
    longest = {rule: max(sizes[key] for key in by if by[key] == rule) for rule in set(by.values())}
    drawn = {rule: torch.from_numpy(weight(str(rule), (size,), *rule)) for rule, size in longest.items()}
    return {key: drawn[rule][: sizes[key]].view(keys[key][0]) for key, rule in by.items()}


def test_the_published_file_of_internvideo_fills_both_its_networks(parity: Path, tmp_path: Path) -> None:
    """What they then compute is compared in tests/parity, where no file is read."""
    write("internvideo", parity, tmp_path / "internvideo")
    files = {path.name: path for path in [tmp_path / "internvideo" / PUBLISHED["internvideo"][1]]}
    network = internvideo.load(PRESETS["internvideo-spacewalk"], files)
    assert sum(parameter.numel() for parameter in network.parameters()) > 3e8
    encoder = internvideo.load_text(TOWERS[0], files)
    assert np.isfinite(encoder.encode(encoder.tokens("turn bolt 1"))).all()


@pytest.fixture(scope="module")
def work_folder(parity: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with ``weights/``, which is removed at the end."""
    folder = tmp_path_factory.mktemp("published")
    try:
        for spec in SPECS:
            for name in spec.weights:
                write(name, parity, folder / "weights" / name)
        yield folder
    finally:
        shutil.rmtree(folder)


@pytest.fixture
def _published(work_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in that folder, with EVA's file held to no checksum."""
    monkeypatch.chdir(work_folder)
    files = tuple(replace(file, size=0, sha256="") for file in WEIGHTS["eva_clip"].files)
    monkeypatch.setitem(WEIGHTS, "eva_clip", replace(WEIGHTS["eva_clip"], files=files))


@pytest.fixture
def networks(monkeypatch: pytest.MonkeyPatch) -> dict[str, torch.nn.Module]:
    """Return the networks by family and spec, once they are loaded."""
    made: dict[str, torch.nn.Module] = {}

    def kept(family: str, load: Callable[..., torch.nn.Module]) -> Callable[..., torch.nn.Module]:
        def loaded(spec: ClipSpec, files: Mapping[str, Path]) -> torch.nn.Module:
            made[f"{family}/{spec.name}"] = load(spec, files)
            return made[f"{family}/{spec.name}"]

        return loaded

    for family in {spec.architecture for spec in SPECS}:
        module = import_module(registry.FAMILIES[family])
        monkeypatch.setattr(module, "load", kept(family, module.load))
    return made


def extracted(folder: str, *specs: ClipSpec) -> dict[str, Bank]:
    works = [
        Work(
            spec=spec,
            store=Path(folder, spec.name, "000"),
            files=registry.files_of(spec.weights),
            listed={} if spec.placement == "grid" else {VIDEO: LISTED},
        )
        for spec in specs
    ]
    for _ in works:
        store(Path(), *works, batch_size=1)
        works.append(works.pop(0))
    return {work.spec.name: Bank.open([work.store], work.spec) for work in works}


@pytest.mark.long
@pytest.mark.usefixtures("_published")
def test_real_footage_in_one_decode_for_several_families(
    real_data: Path, networks: dict[str, torch.nn.Module], decoded: list[str]
) -> None:
    path = Path(f"{VIDEO}.mp4")
    write_clip(real_data / "spacewalk/clips" / path, path, 0, END_S)
    write_availability("availability.json", [present(path)])
    banks = extracted("features", *SPECS)
    assert decoded == [VIDEO]
    video = footage(path)
    for spec in SPECS:
        network = networks.pop(f"{spec.architecture}/{spec.name}")
        ours = np.asarray(banks[spec.name][VIDEO], np.float32)
        wanted = rows(spec, video, network, () if spec.placement == "grid" else LISTED)
        assert ours.shape == wanted.shape == (len(wanted), spec.dimension), spec.name
        assert np.isfinite(ours).all(), spec.name
        assert distances(ours, wanted).max() <= CLOSE, spec.name
        del network
        gc.collect()
    again = PRESETS["egovlp-spacewalk"]
    extracted("again", again)
    for file in ("features/c/0/0", "index.parquet"):
        first, second = (Path(folder, again.name, "000", file).read_bytes() for folder in ("features", "again"))
        assert first == second
    written = {each.name for each in Path().iterdir()}
    assert written == {path.name, "availability.json", "manifest.json", "weights", "features", "again"}
