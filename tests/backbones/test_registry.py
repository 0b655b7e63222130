from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from stepline import needs
from stepline.backbones import registry
from stepline.backbones.registry import missing, networks_of, presets, resolve, similarity, spec_of, towers
from stepline.backbones.weights import WEIGHTS
from stepline.config import validate
from stepline.errors import ConfigError, MissingError
from stepline.needs import Need
from stepline.spec import ClipSpec


def config(**top: Any) -> dict[str, Any]:
    return validate(top)


def test_every_preset_has_its_own_name_known_weights_and_a_known_family() -> None:
    for name, spec in (presets() | towers()).items():
        assert spec.name == name
        assert set(spec.weights) <= set(WEIGHTS)
        assert spec.architecture in registry.FAMILIES
    assert len({spec.id + spec.name for spec in presets().values()}) == len(presets())


def test_a_version_as_released_differs_from_the_exact_one_in_how_it_is_sampled() -> None:
    released = [name for name in presets() if name.endswith("-as-released")]
    assert len(released) == 9
    for name in released:
        exact, published = presets()[name.removesuffix("-as-released")].record(), presets()[name].record()
        changed = {key for key in exact if exact[key] != published[key]} - {"name", "label"}
        assert changed, name
        assert changed <= {"frame_rule", "steps", "tail", "placement", "output"}, name


def test_precision_reader_and_what_is_stored_come_from_the_configuration() -> None:
    changed = config(features={"compute": "bfloat16", "dtype": "float32"}, media={"reader": "decord"})
    spec = resolve("s3d-htstep", changed)
    assert isinstance(spec, ClipSpec)
    assert (spec.compute, spec.dtype, spec.reader) == ("bfloat16", "float32", "decord")
    assert spec.id != resolve("s3d-htstep", config()).id
    assert resolve("histogram", changed).reader == "decord"


@pytest.mark.parametrize(
    ("package", "used"),
    [("decord", {"media": {"reader": "decord"}}), ("obstore", {"features": {"store": "s3://bucket"}})],
)
@pytest.mark.parametrize("name", ["histogram", "s3d-pss"])
def test_what_reads_videos_or_stores_rows_is_missing_where_it_is_not_installed(
    name: str, package: str, used: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("STEPLINE_CONDA", raising=False)
    monkeypatch.setattr(needs, "find_spec", lambda each: None if each == package else each)
    before = missing(name, config())
    assert {*missing(name, config(**used))} == {Need("package", package), *before}
    monkeypatch.setenv("STEPLINE_CONDA", "1")
    assert missing(name, config(**used)) == missing(name, config())


def test_the_orientation_is_part_of_a_spec_only_where_it_is_not_the_default() -> None:
    upright, stored = (resolve("histogram", config(media={"orientation": each})) for each in ("upright", "stored"))
    assert "orientation" not in upright.record()
    assert stored.record() == upright.record() | {"orientation": "stored"}
    assert resolve("s3d-htstep", config()).id == replace(resolve("s3d-htstep", config()), orientation="upright").id


def test_a_name_that_is_taken_is_refused_and_one_that_is_unknown_is_one_line_with_the_nearest() -> None:
    for name in ("histogram", "s3d-htstep", "minilm", "egovlp-text"):
        with pytest.raises(ConfigError, match=f"^config: backbones: '{name}' is taken; choose another name$"):
            resolve("histogram", config(backbones={name: {"path": "mine.py"}}))
    with pytest.raises(
        ConfigError, match="^backbone 's3d-htsep' is not known; did you mean 's3d-htstep'\\? choose from"
    ):
        resolve("s3d-htsep", config())


def test_weights_that_are_absent_are_lacking_and_their_bytes_are_in_the_spec() -> None:
    assert missing("videoclip-oepp", config()) == (Need("weights", "videoclip"), Need("weights", "s3d"))
    assert missing("histogram", config()) == ()
    with pytest.raises(MissingError, match="^weights s3d are absent: run `"):
        spec_of("s3d-htstep", config())
    folder = Path("weights/s3d")
    folder.mkdir(parents=True)
    for file in WEIGHTS["s3d"].files:
        (folder / file.name).write_text(file.name)
    assert missing("s3d-htstep", config()) == ()
    first = spec_of("s3d-htstep", config())
    (folder / "s3d_howto100m.pth").write_text("another")
    assert spec_of("s3d-htstep", config()).id != first.id


def test_packages_that_are_absent_are_lacking_unless_each_rule_has_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "find_spec", lambda name: None if name == "timm" else "found")
    assert missing("eva_clip-hirest", config())[0] == Need("package", "timm")
    monkeypatch.setenv("STEPLINE_CONDA", "1")
    assert missing("eva_clip-hirest", config()) == (Need("weights", "eva_clip"),)
    monkeypatch.delenv("STEPLINE_CONDA")
    monkeypatch.setattr(registry, "find_spec", lambda package: None if package == "torch" else 1)
    Path("mine.py").write_text(OWN)
    assert missing("mine", config(backbones={"mine": {"path": "mine.py"}})) == (), "a user's file may do without torch"


def test_what_s3d_and_videoclip_make_is_compared_by_the_dot_product_unless_it_has_length_1() -> None:
    for name in ("s3d-dropdtw", "videoclip-oepp"):
        assert similarity(presets()[name]) == "dot product"
        assert similarity(replace(presets()[name], normalise=True)) == "cosine"
    for name in ("eva_clip-hirest-unnormalised", "histogram"):
        assert similarity(resolve(name, config())) == "cosine"


def test_weights_name_the_networks_that_they_are_for() -> None:
    names = {"eva_clip-hirest", "eva_clip-hirest-as-released", "eva_clip-hirest-unnormalised"}
    assert {spec.name for spec in networks_of("eva_clip")} == names


OWN = """
from __future__ import annotations
import dataclasses
from stepline.spec import ClipSpec, TextSpec
@dataclasses.dataclass
class Size:
    width: int = 16
SPEC = ClipSpec(
    name="x", label="x", revision=1, architecture="file", weights=(), licence="MIT", num_frames=1,
    steps=(("exact", Size().width, 16, "pil_bicubic"),), mean=(0, 0, 0), std=(1, 1, 1), output="o", dimension=2,
)
def load(spec, files): ...
"""
TOWER = """
TEXT = TextSpec(
    name="x", label="x", revision=1, architecture="file", weights=(), licence="MIT", max_tokens=4, output="o",
    dimension=2,
)
def load_text(spec, files): ...
"""


def test_a_file_may_bring_a_text_tower() -> None:
    path = Path("mine.py")
    own = config(backbones={"mine": {"path": str(path)}})
    for content, wanted in ((OWN, None), (OWN + TOWER, "mine-text")):
        path.write_text(content)
        spec = spec_of("mine", own)
        assert isinstance(spec, ClipSpec)
        assert registry.own_file("mine", own) == path
        tower = registry.tower_of(spec, path)
        assert (tower and tower.name) == wanted
    assert registry.own_file("histogram", own) is None
    assert registry.files_of((), path) == {"mine.py": path}
