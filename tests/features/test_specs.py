import json
from pathlib import Path

import pytest

from stepline import cli, paths
from stepline.backbones.histogram import HistogramSpec
from stepline.io import write_json


def put(spec: HistogramSpec) -> Path:
    write_json(paths.spec_record(spec), spec.record())
    return paths.spec_record(spec).parent


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
