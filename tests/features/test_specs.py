import json
from pathlib import Path

import pytest

from stepline import cli, paths
from stepline.backbones.histogram import HistogramSpec
from stepline.backbones.presets import s3d
from stepline.features.specs import MEANINGS, compare
from stepline.io import write_json
from stepline.spec import ClipSpec, TextSpec


def put(spec: HistogramSpec) -> Path:
    write_json(paths.spec_record(spec), spec.record())
    return paths.spec_record(spec).parent


def test_the_fields_that_differ_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    first, second = put(HistogramSpec()), put(HistogramSpec(fps=2, orientation="stored"))
    assert compare(str(first), str(second).removeprefix("features/")) == [
        ("fps", "5", "2", MEANINGS["fps"]),
        ("orientation", "-", '"stored"', MEANINGS["orientation"]),
    ]
    assert cli.main(["specs", "diff", str(first), str(second)]) == 0
    header, *lines = capsys.readouterr().out.splitlines()
    assert header.split() == ["field", str(first), str(second), "meaning"]
    assert [line.split()[:3] for line in lines] == [["fps", "5", "2"], ["orientation", "-", '"stored"']]
    assert cli.main(["specs", "diff", str(first), str(first)]) == 0
    assert capsys.readouterr().out == "the specs are equal\n"


def test_every_field_of_a_network_or_tower_has_a_meaning() -> None:
    fields = {*ClipSpec.__dataclass_fields__, *TextSpec.__dataclass_fields__}
    assert fields - MEANINGS.keys() == set()
    assert {*s3d.PRESETS[0].record()} <= fields


def test_what_is_no_spec_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["specs", "diff", "histogram/x-12345678", "y"]) == 2
    assert capsys.readouterr().err.startswith("error: histogram/x-12345678 is not a spec: give a folder features")
    Path("features/x/y").mkdir(parents=True)
    Path("features/x/y/spec.json").write_text("[]")
    assert cli.main(["specs", "diff", "x/y", "x/y"]) == 2
    assert "features/x/y/spec.json is not a spec record" in capsys.readouterr().err


def test_the_list_says_which_data_sets_have_features_and_are_configured(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["specs", "list"]) == 0
    assert capsys.readouterr().out == "there are no features here\n"
    now, old = put(HistogramSpec()), put(HistogramSpec(fps=2))
    for folder in (now / "mine", old / "mine", old / "other", old / "manifests"):
        folder.mkdir()
    Path("features/histogram/current.json").write_text(json.dumps({"mine": now.name}))
    assert cli.main(["specs", "list"]) == 0
    lines = sorted(" ".join(line.split()) for line in capsys.readouterr().out.splitlines()[1:])
    assert lines == sorted([f"{now} mine", f"{old} mine (not configured), other"])
