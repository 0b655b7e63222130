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
from stepline.backbones import parity as recipe
from stepline.backbones import registry
from stepline.backbones.parity import TOLERANCE, check
from stepline.backbones.parity import eva_clip as eva_clip_parity
from stepline.backbones.weights import WEIGHTS
from stepline.features.bank import Bank
from stepline.features.extract import Work
from stepline.io import read_json
from stepline.media.cut import copy_spans
from stepline.spec import ClipSpec
from tests.features.reference import distances, footage, rows
from tests.features.test_extract import decoded, present, store

__all__ = ["decoded"]
pytestmark = pytest.mark.slow
CLOSE = 1e-4
VIDEO = "spacewalk2"
FIRST = [[0.0, 0.8]]
"""What is cut out of it; a second more comes with it."""
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


def write(name: str, parity: Path, folder: Path, *, by_the_recipe: bool = False) -> None:
    """Write the files of the weights ``name``, with random values; those that no network on clips reads are empty."""
    described, file, publish = PUBLISHED[name]
    manifest = read_json(parity / described / "manifest.json")
    full = manifest["configs"]["full"] if "configs" in manifest else manifest
    tensors = _by_the_recipe(full) if by_the_recipe else _random(full["keys"])
    folder.mkdir(parents=True)
    for each in WEIGHTS[name].files:
        (folder / each.name).touch()
    torch.save(publish(tensors), folder / file)


def _by_the_recipe(described: Any) -> dict[str, torch.Tensor]:
    arrays = recipe.weights(described["keys"], described["digest_sha256"])
    return {key: torch.from_numpy(np.asarray(array)) for key, array in arrays.items()}


def _random(keys: Mapping[str, Sequence[Any]]) -> dict[str, torch.Tensor]:
    """Return values of the recipe's distributions; tensors of one begin alike, and share memory and room in a file."""
    by = {key: tuple(rule) for key, (_, _, *rule) in keys.items() if rule != ["keep"]}
    sizes = {key: prod(keys[key][0]) for key in by}
    longest = {rule: max(sizes[key] for key in by if by[key] == rule) for rule in set(by.values())}
    drawn = {rule: torch.from_numpy(recipe._weight(str(rule), (size,), *rule)) for rule, size in longest.items()}
    return {key: drawn[rule][: sizes[key]].view(keys[key][0]) for key, rule in by.items()}


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


@pytest.fixture(autouse=True)
def _published(work_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in that folder, with EVA's file held to no checksum."""
    monkeypatch.chdir(work_folder)
    files = tuple(replace(file, size=0, sha256="") for file in WEIGHTS["eva_clip"].files)
    monkeypatch.setitem(WEIGHTS, "eva_clip", replace(WEIGHTS["eva_clip"], files=files))


@pytest.fixture
def eva_clip(parity: Path, tmp_path: Path) -> Iterator[Path]:
    """The published size's weights by the recipe: a file of 5 GB, which is removed at the end."""
    try:
        write("eva_clip", parity, tmp_path / "recipe", by_the_recipe=True)
        yield tmp_path / "recipe/eva_clip_psz14.pt"
    finally:
        shutil.rmtree(tmp_path / "recipe")


def test_the_published_size_of_eva_clip_gives_the_reference_outputs(
    eva_clip: Path, parity: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = eva_clip_parity.weights

    def filled(keys: Mapping[str, Any], digest: str) -> Mapping[str, Any]:
        if "visual.blocks.39.norm1.weight" not in keys:
            return small(keys, digest)
        held = torch.load(eva_clip, mmap=True)
        return {name: tensor.numpy() for name, tensor in held.items()}

    monkeypatch.setattr(eva_clip_parity, "weights", filled)
    folder = parity / "evaclip"
    found = {each.name: each.error for each in check("eva_clip", folder / "manifest.json", folder / "golden_a.npz")}
    assert {"full/visual_cls_normed", "full/image_embed", "full/text_embed"} <= set(found)
    assert max(found.values()) <= TOLERANCE


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
            folder=Path(folder, spec.name, "000"),
            files=registry.files_of(spec.weights),
            listed={} if spec.placement == "grid" else {VIDEO: LISTED},
        )
        for spec in specs
    ]
    for _ in works:
        store(Path(), *works, batch_size=1)
        works.append(works.pop(0))
    return {work.spec.name: Bank.open([work.folder], work.spec) for work in works}


def test_real_footage_in_one_decode_for_several_families(
    real_data: Path, networks: dict[str, torch.nn.Module], decoded: list[str]
) -> None:
    path = Path(f"{VIDEO}.mp4")
    copy_spans([real_data / "spacewalk/clips" / path], path, FIRST)
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
