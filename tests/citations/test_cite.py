import csv
import shutil
from pathlib import Path
from typing import Any

import pytest

from stepline import cli, paths
from stepline.backbones.registry import presets
from stepline.backbones.sentence import MODELS
from stepline.citations.cite import cite
from stepline.config import load
from stepline.io import write_json
from stepline.plans import plan
from tests.conftest import ROOT

COLUMNS = ("table", "entry", "release", "context_s", "metric", "value", "spec", "status")


def table(study: str, file: str, *rows: tuple[str, ...]) -> Path:
    path = Path("results", study, f"{file}.csv")
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", newline="") as out:
        csv.writer(out).writerows([COLUMNS, *rows])
    return path


def record(study: str, release: str, entry: str, spec: str, made_of: dict[str, Any], *inputs: str) -> None:
    blank = {"origin": "", "files": {}}
    content = {
        "spec": spec,
        "record": made_of,
        "options": {},
        "inputs": dict.fromkeys(inputs, ""),
        "versions": {},
        "method": {"module": "", "source": ""},
        "stepline": {"version": "", "commit": ""},
        "releases": {release: blank},
        "invocation": {},
    }
    write_json(paths.predictions(study, release, entry, "all").with_suffix(".json"), content)


def names(target: str) -> list[tuple[str, str]]:
    return [(each.role, each.name) for each in cite(target).works]


@pytest.fixture(autouse=True)
def _config() -> None:
    shutil.copy(ROOT / "config.yaml", "config.yaml")


def test_a_table_cites_what_its_numbers_were_made_of() -> None:
    path = table(
        "pss",
        "table2",
        ("2", "softsoda-s3d", "youcook2", "", "soda_d", "31.2", "aaaaaaaa", "ours"),
        ("2", "softsoda-s3d", "youcook2", "", "miou", "30.1", "aaaaaaaa", "ours"),
        ("2", "pdvc-r3d", "youcook2", "", "meteor", "", "", "needs"),
    )
    spec = presets()["s3d-pss"].record()
    made = {"kind": "pdvc", "features": [spec, {"name": "theirs", "files_sha256": "x"}]}
    record(
        "pss", "youcook2", "softsoda-s3d", "aaaaaaaa", made, "results/pss/fits/youcook2/softsoda-s3d/all/0.safetensors"
    )
    found = cite(str(path))
    assert found.said == f"Works that {path} uses, from the records of 2 of its 3 numbers."
    assert names(str(path)) == [
        ("tool", "stepline"),
        ("benchmark", "pss"),
        ("data set", "youcook2"),
        ("method", "pss/pdvc"),
        ("backbone", "s3d"),
        ("features", "theirs"),
        ("tool", "torch"),
        ("metric", "soda_d"),
        ("tool", "snakemake"),
        ("tool", "numpy"),
    ]
    keys = [each.partition("{")[2].partition(",")[0] for each in found.entries]
    assert keys[:4] == ["stepline", "batra2022closer", "zhou2018towards", "wang2021pdvc"]
    assert len(keys) == len(set(keys))
    assert "vedantam2015cider" not in keys


def test_encoders_recognisers_and_language_models_of_a_record() -> None:
    table("demo", "table2", ("2a", "2a-x", "demo", "", "accuracy", "1", "bbbbbbbb", "ours"))
    encoder = MODELS["minilm"].record()
    service = {"url": "https://example.org/v1", "model": "some-model"}
    record(
        "demo",
        "demo",
        "2a-x",
        "bbbbbbbb",
        {"kind": "tw-finch", "engine": "whisper", "encoders": [encoder], "llm": service},
    )
    assert names("demo")[1:] == [
        ("benchmark", "demo"),
        ("data set", "demo"),
        ("method", "spacewalk/tw-finch"),
        ("backbone", "minilm"),
        ("recogniser", "whisper"),
        ("language model", "some-model"),
        ("tool", "torch"),
        ("tool", "snakemake"),
        ("tool", "numpy"),
    ]


def test_a_number_of_another_spec_counts_nothing() -> None:
    table("demo", "table2", ("2a", "2a-x", "demo", "", "accuracy", "1", "bbbbbbbb", "ours"))
    record("demo", "demo", "2a-x", "cccccccc", {"kind": "tw-finch"})
    assert ("method", "spacewalk/tw-finch") not in names("demo")


@pytest.mark.parametrize("study", ["spacewalk", "pss", "oepp", "hirest", "htstep"])
def test_before_anything_is_computed_the_configuration_says(study: str, capsys: pytest.CaptureFixture[str]) -> None:
    file = plan(load(), study).tables[-1]
    for target in (study, f"results/{study}/{file}.csv"):
        assert cli.main(["cite", target]) == 0
        comment, _, entries = capsys.readouterr().out.partition("\n\n")
        assert (
            comment.splitlines()[0]
            == f"% Works that {target} uses, from the configuration, as nothing is computed yet."
        )
        assert all(line.startswith("% ") for line in comment.splitlines())
        assert entries.startswith("@software{stepline,\n")
        assert entries.count("@") == entries.count("\n}\n")
        assert f"% benchmark  {study} " in comment


def test_an_own_data_set_cites_its_backbones_and_its_recogniser() -> None:
    Path("videos").mkdir()
    Path("videos/a.mp4").touch()
    mine = "{videos: videos, backbones: [histogram, videoclip-oepp, 'open_clip:ViT-B-32-quickgelu/openai']}"
    Path("config.yaml").write_text(f"{{datasets: {{mine: {mine}}}, asr: {{engine: whisper}}}}")
    assert cite("mine").said == "Works that mine uses, from the configuration."
    assert names("results/mine/report.html")[1:-2] == [
        ("data set", "mine"),
        ("backbone", "histogram"),
        ("backbone", "videoclip"),
        ("backbone", "s3d"),
        ("backbone", "open_clip:ViT-B-32-quickgelu/openai"),
        ("tool", "torch"),
        ("recogniser", "whisper"),
    ]


@pytest.mark.parametrize(
    ("target", "line"),
    [
        ("a/b", "'a/b' is not a table: name results/STUDY/TABLE.csv, a study, or a data set"),
        ("results/pss/table9.csv", "'table9' is not one of table1"),
        ("nothing", "dataset 'nothing' is not known"),
    ],
)
def test_what_is_no_table_is_one_line(target: str, line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["cite", target]) == 2
    assert line in capsys.readouterr().err
