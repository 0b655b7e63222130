import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import stepline
from stepline import paths
from stepline.backbones import registry
from stepline.backbones.named import slug
from stepline.config import validate
from stepline.datasets import shards
from stepline.errors import StoreError
from stepline.features import store
from stepline.io import write_json
from tests.features.conftest import HOP_S, LINE, SPEC


def test_a_bank_is_found_by_its_names_or_its_folder(folder: Path, tmp_path: Path) -> None:
    for name in (str(folder), folder, f"{SPEC.name}/{SPEC.id}", SPEC.name, tmp_path / folder):
        for dataset in ("mine", None):
            assert stepline.open_bank(name, dataset).videos == {"a", "b", "c"}
    assert stepline.open_bank(SPEC.name, root=tmp_path).spec == SPEC.record()
    store.write(paths.features("yours", "000", SPEC), SPEC, {}, HOP_S)
    with pytest.raises(StoreError, match="has more than one dataset: name one of mine, yours$"):
        stepline.open_bank(SPEC.name)
    other = replace(SPEC, hues=4)
    write_json(paths.spec_record(other), other.record())
    assert stepline.open_bank(SPEC.name, "mine").spec == SPEC.record()
    store.write(paths.features("mine", "000", other), other, {"a": LINE}, HOP_S)
    with pytest.raises(StoreError, match=f"^features/histogram has more than one spec: name one of .*{SPEC.id}"):
        stepline.open_bank(SPEC.name, "mine")
    store.write(paths.features("mine", "001", SPEC), other, {"c": LINE}, HOP_S)
    with pytest.raises(StoreError, match="has another spec: hues is 4, not 8$"):
        stepline.open_bank(folder, "mine")


def test_a_backbone_stands_for_the_spec_that_is_configured(folder: Path, tmp_path: Path) -> None:
    other = replace(SPEC, hues=4)
    write_json(paths.spec_record(other), other.record())
    store.write(paths.features("mine", "000", other), other, {"a": LINE}, HOP_S)
    store.write(paths.features("yours", "000", other), other, {"d": LINE}, HOP_S)
    for configured in (SPEC, other):
        write_json(paths.current_specs(SPEC.name), {"mine": configured.id, "yours": other.id})
        assert stepline.open_bank(SPEC.name, "mine").spec == configured.record()
        assert stepline.open_bank("features/histogram", "mine", root=tmp_path).spec == configured.record()
        assert stepline.open_bank(SPEC.name, "yours").videos == {"d"}
        assert stepline.open_bank(folder, "mine").spec == SPEC.record()
        assert stepline.open_bank(f"{SPEC.name}/{other.id}", "mine").spec == other.record()
    write_json(paths.current_specs(SPEC.name), {"mine": SPEC.id, "yours": other.id})
    with pytest.raises(StoreError, match="has more than one spec: name one of "):
        stepline.open_bank(SPEC.name)
    write_json(paths.current_specs(SPEC.name), {"mine": SPEC.id})
    assert stepline.open_bank(SPEC.name).spec == SPEC.record()
    assert stepline.open_bank(SPEC.name, "yours").spec == other.record()  # the only one with this data set
    write_json(paths.current_specs(SPEC.name), {"mine": "hsv-00000000"})
    said = "^features/histogram/hsv-00000000, the configured spec, holds no features yet: run `snakemake`, or name one "
    with pytest.raises(StoreError, match=f"{said}of .*{SPEC.id}"):
        stepline.open_bank(SPEC.name, "mine")


def test_a_folder_of_the_same_name_does_not_hide_a_bank(folder: Path) -> None:
    (Path(SPEC.name) / "other").mkdir(parents=True)
    assert len(stepline.open_bank(SPEC.name)) == 3
    folder.rename(Path(SPEC.name, SPEC.id))
    assert len(stepline.open_bank(SPEC.name)) == 3


def test_a_model_is_opened_by_its_name_without_its_library(tmp_path: Path) -> None:
    names = ["timm:vit_base_patch16_224.augreg_in21k", "hf:facebook/dinov2-base@main", "a-video:B/c@1"]
    for name in names:
        spec = replace(SPEC, name=slug(name))
        write_json(paths.spec_record(spec), spec.record())
        store.write(paths.features("mine", "000", spec), spec, {"a": LINE}, HOP_S)
    before = sorted(tmp_path.rglob("*"))
    code = (
        "import sys, stepline; root, *names = sys.argv[1:];"
        "print(*[list(stepline.open_bank(name, 'mine', root=root)) for name in names]);"
        "assert not {'open_clip', 'timm', 'torch', 'transformers'} & {*sys.modules}"
    )
    command = [sys.executable, "-c", code, str(tmp_path), *names]
    assert subprocess.run(command, cwd="/", check=True, capture_output=True, text=True).stdout == "['a'] ['a'] ['a']\n"
    assert sorted(tmp_path.rglob("*")) == before


def test_the_name_of_a_model_is_that_of_its_features() -> None:
    name = "open_clip:ViT-B-32-quickgelu/openai"
    assert slug(name) == registry.resolve(name, validate({})).name


def test_features_on_object_storage_need_its_root(folder: Path) -> None:
    write_json(paths.features_manifest("yours", "000", SPEC), {})
    with pytest.raises(
        StoreError, match="/yours has records, but no features: run `snakemake`, or for object storage give its root=$"
    ):
        stepline.open_bank(SPEC.name, "yours")


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (("histogran", "mine"), "features/histogran {}: did you mean 'histogram'? features has histogram; "),
        (("timm:resnet", "mine"), "features/timm-resnet {}: features has histogram; "),
        (("histogram", "mime"), "{spec}/mime {}: did you mean 'mine'? {spec} has mine, yours; "),
        (("histogram/colour", "mine"), "features/histogram/colour {}: features/histogram has {id}; "),
        (("minilm", "mine"), "features/minilm/mean/mine {}: features/minilm/mean has none; "),
        (("features", "mine"), "features/features {}: features has histogram; "),
    ],
)
def test_an_unknown_bank_is_named_with_the_existing_ones(folder: Path, asked: tuple[str, str], message: str) -> None:
    store.write(paths.features("yours", "000", SPEC), SPEC, {}, HOP_S)
    write_json("features/minilm/mean/spec.json", {})
    Path("features/minilm/mean/mine/texts/a").mkdir(parents=True)
    with pytest.raises(StoreError) as raised:
        stepline.open_bank(*asked)
    wanted = message.format("holds no features of videos", spec=folder, id=SPEC.id)
    assert str(raised.value) == wanted + "`snakemake` computes the features that the configuration names"


def test_a_shard_that_is_listed_no_longer_is_left_out(folder: Path) -> None:
    store.write(paths.features("mine", "002", SPEC), SPEC, {"a": LINE[:40]}, HOP_S)
    with pytest.raises(StoreError, match="remove one of them"):
        stepline.open_bank(folder, "mine")
    shards.write(paths.shards("mine"), {"a": "000", "b": "000", "c": "001"})
    assert stepline.open_bank(folder, "mine").videos == {"a", "b", "c"}
