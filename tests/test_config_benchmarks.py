"""Benchmarks whose folders the configuration names, and the schema that follows from what they declare."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from stepline.benchmarks.spacewalk.benchmark import Spacewalk
from stepline.config import defaults, load, validate
from stepline.datasets import pss
from stepline.datasets.studies import STUDIES
from stepline.errors import ConfigError

TOY: dict[str, Any] = {
    "title": "Toy",
    "releases": {"first": {"fps": 1}, "second": {"fps": 2}},
    "default_releases": ["first"],
    "datasets": ["toys"],
    "features": {"net": {"default": ["histogram", "other"], "description": "A network."}},
    "entries": {"a": {"kind": "random"}},
    "tables": {1: {"title": "T", "lines": []}, "both": {"target": "table1"}},
}
OPTIONS: dict[str, Any] = {
    "properties": {
        "head": {
            "type": "object",
            "additionalProperties": False,
            "default": {},
            "description": "Of the head.",
            "properties": {
                "epochs": {"type": "integer", "default": 3, "description": "Passes."},
                "seeds": {"$ref": "#/$defs/seeds", "default": [0], "description": "Fits."},
            },
        }
    },
    "metrics": {"rounded": {"type": "boolean", "default": False, "description": "Whether it is."}},
}
NAMED = {"benchmarks": {"toy": "toy"}}


def write(folder: Path, changes: dict[str, Any] | None = None, options: dict[str, Any] | None = OPTIONS) -> None:
    """Write the files of the toy benchmark; a change to None leaves a field out."""
    folder.mkdir()
    declared = {key: value for key, value in (TOY | (changes or {})).items() if value is not None}
    (folder / "tables.yaml").write_text(yaml.safe_dump(declared))
    if options is not None:
        (folder / "options.yaml").write_text(yaml.safe_dump(options))


def test_a_named_folder_has_a_key_with_the_form_that_it_declares(tmp_path: Path) -> None:
    write(tmp_path / "toy")
    config = validate(NAMED | {"toy": {"head": {"epochs": "7"}, "metrics": {"rounded": "true"}}})
    assert config["benchmarks"] == {"toy": "toy"}
    assert config["toy"] == {
        "releases": ["first"],
        "tables": ["table1"],
        "features": {"net": ["histogram", "other"]},
        "subset": None,
        "entries": {},
        "metrics": {"rounded": True, "bootstrap_samples": 10000, "bootstrap_seed": 0},
        "head": {"epochs": 7, "seeds": [0]},
    }
    assert validate(json.loads(json.dumps(config))) == config
    assert defaults("toy", config) == validate(NAMED | {"toy": {}})["toy"]


def test_its_options_may_add_keys_to_the_users_data_sets(tmp_path: Path) -> None:
    rated = {"type": "number", "default": 25, "description": "Frames per second."}
    toy = {"$ref": "#/$defs/benchmark", "properties": {"releases": {"default": ["second"]}}}
    write(tmp_path / "toy", options={**OPTIONS, "dataset": {"rate": rated, "toy": toy}})
    mine = validate(NAMED | {"datasets": {"mine": {"videos": "x", "toy": {}}}})["datasets"]["mine"]
    assert mine["rate"] == 25
    assert mine["toy"] == {**validate(NAMED | {"toy": {}})["toy"], "releases": ["second"]}


def test_a_data_set_with_one_of_these_keys_configures_it(tmp_path: Path) -> None:
    rate = {"type": "number", "description": "Frames per second."}
    write(tmp_path / "toy", options={**OPTIONS, "dataset": {"rate": rate}})
    config = validate(NAMED | {"datasets": {"mine": {"videos": "x", "rate": 25}}})
    assert config["toy"] == validate(NAMED | {"toy": {}})["toy"]
    assert "toy" not in validate(NAMED | {"datasets": {"mine": {"videos": "x"}}})
    assert validate(json.loads(json.dumps(config))) == config


def test_without_options_it_has_what_all_have(tmp_path: Path) -> None:
    write(tmp_path / "toy", {"features": None, "default_releases": None, "datasets": None}, None)
    assert validate(NAMED | {"toy": {}})["toy"] == {
        "releases": ["first", "second"],
        "tables": ["table1"],
        "subset": None,
        "entries": {},
        "metrics": {"bootstrap_samples": 10000, "bootstrap_seed": 0},
    }


def test_a_named_folder_need_not_be_configured_and_its_path_may_start_at_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    write(tmp_path / "toy")
    assert "toy" not in validate(NAMED)
    assert "toy" in validate({"benchmarks": {"toy": "~/toy"}, "toy": {}})
    Path("config.yaml").write_text("benchmarks: {toy: toy}\ntoy: {}\n")
    assert load()["toy"]["tables"] == ["table1"]


@pytest.mark.parametrize(
    ("toy", "line"),
    [
        ({"releases": ["third"]}, "config: toy.releases[0]: 'third' is not allowed; choose from first, second"),
        ({"tables": ["table2"]}, "config: toy.tables[0]: 'table2' is not allowed; choose from table1"),
        ({"features": {"nett": ["x"]}}, "config: toy.features.nett: unknown key; did you mean 'net'? allowed: net"),
        ({"head": {"epochs": "x"}}, "config: toy.head.epochs: 'x' is not allowed; write a whole number"),
        ({"headd": {}}, "config: toy.headd: unknown key; did you mean 'head'? "),
    ],
)
def test_its_values_are_checked(tmp_path: Path, toy: dict[str, Any], line: str) -> None:
    write(tmp_path / "toy")
    with pytest.raises(ConfigError) as error:
        validate(NAMED | {"toy": toy})
    assert str(error.value).startswith(line)


def test_it_takes_no_name_that_is_taken_and_no_data_set_of_the_users_its_own_or_that_of_its_videos(
    tmp_path: Path,
) -> None:
    write(tmp_path / "toy")
    for name in ("strict", "spacewalk", "demo", "oepp", "weights"):
        with pytest.raises(ConfigError, match=f"^config: benchmarks: '{name}' is taken; choose another name$"):
            validate({"benchmarks": {name: "toy"}})
    for name in ("toy", "toys"):
        with pytest.raises(ConfigError, match=f"^config: datasets: '{name}' is taken"):
            validate(NAMED | {"datasets": {name: {"videos": "x"}}})


@pytest.mark.parametrize(
    ("benchmarks", "datasets", "line"),
    [
        ({"first": "toy", "second": "toy"}, ["toys"], "first and second both have the name 'toys', "),
        ({"toy": "toy", "toys": "other"}, ["toys"], "toy and toys both have the name 'toys', "),
        ({"toys": "other", "toy": "toy"}, ["toys"], "toys and toy both have the name 'toys', "),
        ({"tasty": "toy"}, ["toys"], "pss and tasty both have the name 'tasty', "),
        ({"toy": "toy"}, ["spacewalk"], "spacewalk and toy both have the name 'spacewalk', "),
        ({"toy": "toy"}, ["coin"], "htstep and toy both have the name 'coin', "),
        ({"toy": "toy"}, ["weights"], "'weights' is taken; "),
    ],
)
def test_two_benchmarks_have_no_name_in_common_in_either_order(
    tmp_path: Path, benchmarks: dict[str, str], datasets: list[str], line: str
) -> None:
    write(tmp_path / "toy", {"datasets": datasets})
    write(tmp_path / "other", {"datasets": None})
    with pytest.raises(ConfigError) as error:
        validate({"benchmarks": benchmarks})
    assert str(error.value).startswith(f"config: benchmarks: {line}")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("benchmarks", "line"),
    [
        ({"toy": "nowhere"}, "config: benchmarks.toy: {}/nowhere has no tables.yaml; give a benchmark's folder"),
        ({"toy": 3}, "config: benchmarks.toy: 3 is not allowed; write text: put it in quotes"),
        ({"Toy": "toy"}, "config: benchmarks: 'Toy' is not a valid name; use at least two lower-case letters"),
        (
            ["toy"],
            "config: benchmarks: ['toy'] is not allowed; write keys with values, such as benchmarks: {{NAME: path",
        ),
        ({"toy": "a\0b"}, "config: 'a\\x00b' contains a null character"),
    ],
)
def test_a_folder_that_is_none(tmp_path: Path, benchmarks: Any, line: str) -> None:
    with pytest.raises(ConfigError) as error:
        validate({"benchmarks": benchmarks, "toy": {}})
    assert str(error.value).startswith(line.format(tmp_path))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("file", "content", "part"),
    [
        ("tables.yaml", "a: [", "not YAML: "),
        ("tables.yaml", "title: a\ntitle: b\n", "not YAML: line 2: the key 'title' occurs twice"),
        ("tables.yaml", "", "the file: it has no value; write keys with values"),
        ("options.yaml", "", "the file: it has no value; write keys with values"),
        ("options.yaml", "a: [", "not YAML: "),
        ("options.yaml", "propertys: {}", "propertys: unknown key; did you mean 'properties'?"),
        ("options.yaml", "metrics: {x: {type: integer}}", "metrics.x.default: it is required"),
        ("options.yaml", "properties: {x: 5}", "properties.x: 5 is not allowed; write keys with values"),
        (
            "options.yaml",
            "properties: {x: {type: 'integr', default: 1}}",
            "x.type: 'integr' is not allowed in JSON Schema",
        ),
        ("options.yaml", "properties: {x: {$ref: '#/$defs/seedz', default: 1}}", "$ref: 'seedz' is not defined"),
        (
            "options.yaml",
            "properties: {x: {$ref: '#/$defs/benchmark', default: 1}}",
            "$ref: a definition refers to itself",
        ),
    ],
)
def test_a_file_that_is_wrong_is_one_line(tmp_path: Path, file: str, content: str, part: str) -> None:
    write(tmp_path / "toy")
    (tmp_path / "toy" / file).write_text(content)
    with pytest.raises(ConfigError) as error:
        validate(NAMED)
    assert str(error.value).startswith(f"{tmp_path}/toy/{file}: {part}")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"releases": None}, "/tables.yaml: releases: it is required"),
        ({"releases": []}, "/tables.yaml: releases: "),
        ({"releases": {1: {}}}, "/tables.yaml: releases: 1 is not allowed; write text: put it in quotes"),
        ({"releases": ["v 1"]}, "/tables.yaml: releases[0]: 'v 1' is not allowed; use lower-case letters, digits, - "),
        (
            {"releases": {"V1": {}}},
            "/tables.yaml: releases: 'V1' is not a valid name; use lower-case letters, ",
        ),
        ({"datasets": ["a b"]}, "/tables.yaml: datasets[0]: 'a b' is not allowed; use lower-case letters, digits, - "),
        (
            {"entries": {"mid dle": {}}},
            "/tables.yaml: entries: 'mid dle' is not a valid name; use lower-case ",
        ),
        ({"entries": {"../x": {}}}, "/tables.yaml: entries: '../x' is not a valid name; use lower-case letters, "),
        ({"tables": {"a b": {}}}, "/tables.yaml: tables: 'a b' is not a valid name; use letters, digits, - and _"),
        ({"tables": {"a": {"target": "../b"}}}, "/tables.yaml: tables.a.target: '../b' is not allowed; use letters, "),
        ({"entries": {"a": {"target": "b c"}}}, "/tables.yaml: entries.a.target: 'b c' is not allowed; use letters, "),
        ({"relases": []}, "/tables.yaml: relases: unknown key; did you mean 'releases'?"),
        ({"tables": ["table1"]}, "/tables.yaml: tables: ['table1'] is not allowed; write keys with values"),
        ({"default_releases": ["third"]}, ": a default is not allowed: releases[0]: 'third'"),
        (
            {"features": {"net": {"default": ["a", "a"], "description": "x"}}},
            ": a default is not allowed: features.net",
        ),
    ],
)
def test_a_head_that_is_wrong_is_one_line(tmp_path: Path, changes: dict[str, Any], part: str) -> None:
    write(tmp_path / "toy", changes)
    with pytest.raises(ConfigError) as error:
        validate(NAMED)
    assert str(error.value).startswith(f"{tmp_path}/toy{part}")
    assert "\n" not in str(error.value)


def test_what_the_packages_benchmarks_declare_is_what_they_have_and_one_key_leaves_the_others() -> None:
    published = validate({"spacewalk": {}, "pss": {}, "oepp": {}, "demo": {}})
    assert published["spacewalk"]["tables"] == Spacewalk.all_tables()
    assert published["pss"]["releases"] == list(pss.DATASETS)
    assert published["demo"]["releases"] == list(STUDIES["demo"].fps)
    assert published["spacewalk"]["releases"] == list(STUDIES["spacewalk"].fps)
    features = validate({"oepp": {"features": {"videoclip": {"text": "mpnet"}}}})["oepp"]["features"]
    assert features["videoclip"] == {"video": "videoclip-oepp", "text": "mpnet"}
    assert features["mil-nce"] == {"video": "s3d-oepp", "text": "released"}
