import json
import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from stepline.config import defaults, keep, load, validate
from stepline.config.check import wrong
from stepline.config.declarations import OPTIONS, TABLES, folders, forms, read
from stepline.config.schema import schema_of
from stepline.datasets import htstep, oepp, pss
from stepline.datasets.studies import STUDIES
from stepline.errors import ConfigError
from tests.conftest import ROOT

SCHEMA = schema_of(folders({}))

WRONG: dict[str, tuple[Any, list[str]]] = {
    "unknown key": (
        {"strct": True},
        ["strct: unknown key", "did you mean 'strict'?", "allowed: asr, backbones, benchmarks, datasets, demo"],
    ),
    "unknown key, far from all": ({"qqq": 1}, ["qqq: unknown key; allowed: "]),
    "removed key, crops": (
        {"features": {"crops": {"s3d": "ten"}}},
        ["features.crops: it was removed; delete the key; a backbone of your own can cut several crops"],
    ),
    "unknown key, deep": (
        {"spacewalk": {"last_layer": {"lr": 1}}},
        ["spacewalk.last_layer.lr: unknown key", "learning_rate"],
    ),
    "a reader that was removed": (
        {"media": {"reader": "torchcodec"}},
        ["media.reader: 'torchcodec' was removed; write pyav, the default"],
    ),
    "a recogniser that was removed": (
        {"asr": {"engine": "transformers"}},
        ["asr.engine: 'transformers' was removed; write faster_whisper, with the converted model; docs/transcripts.md"],
    ),
    "options of a recogniser that was removed": (
        {"asr": {"transformers": {"model": "hf:openai/whisper-small"}}},
        ["asr.transformers: it was removed; write faster_whisper, with the converted model; docs/transcripts.md"],
    ),
    "a study of a data set, which was removed": (
        {"datasets": {"mine": {"videos": "x", "study": {"text_encoders": ["tfidf"]}}}},
        ["datasets.mine.study: it was removed; use `segments`, a CSV file of labelled spans, see docs/own-videos.md"],
    ),
    "samples of a data set, which were removed": (
        {"datasets": {"mine": {"videos": "x", "samples": {"per_video": 9}}}},
        ["datasets.mine.samples: it was removed; use `segments`, a CSV file of labelled spans"],
    ),
    "wrong type": ({"strict": "perhaps"}, ["strict: 'perhaps' is not allowed; write true or false"]),
    "a number that is none": (
        {"shard_hours": float("nan")},
        ["shard_hours: nan is not allowed; write a number above 0"],
    ),
    "no end": ({"shard_hours": float("inf")}, ["shard_hours: inf is not allowed; write a number above 0"]),
    "a fraction of a pass": (
        {"spacewalk": {"last_layer": {"epochs": 2.0}}},
        ["epochs: 2.0 is not allowed; write a whole number of at least 1"],
    ),
    "yes for a whole number": (
        {"spacewalk": {"last_layer": {"epochs": True}}},
        ["epochs: true is not allowed; write a whole number of at least 1"],
    ),
    "yes for a number": (
        {"shots": {"min_shot_s": True}},
        ["shots.min_shot_s: true is not allowed; write a number of at least 0"],
    ),
    "no list": (
        {"spacewalk": {"releases": "v2"}},
        ["spacewalk.releases: 'v2' is not allowed; write a list of at least 1 value, such as releases: [v2]"],
    ),
    "no mapping": (
        {"spacewalk": ["v2"]},
        ["spacewalk: ['v2'] is not allowed; write keys with values, such as spacewalk: {releases: [v0, v1, v2]}"],
    ),
    "nothing below the study": (
        {"spacewalk": None},
        ["spacewalk: it has no value; write keys with values, such as spacewalk: {"],
    ),
    "a date that YAML reads as a number": (
        yaml.safe_load("spacewalk: {subset: {videos: [02012021]}}"),
        ["spacewalk.subset.videos[0]: ", "is not allowed; write text: put it in quotes"],
    ),
    "out of range": ({"shard_hours": 0}, ["shard_hours: 0 is not allowed; write a number above 0"]),
    "too much": (
        {"spacewalk": {"subset": {"fraction": 1.5}}},
        ["subset.fraction: 1.5 is not allowed; write a number above 0 and of at most 1"],
    ),
    "no seeds": ({"spacewalk": {"last_layer": {"seeds": []}}}, ["spacewalk.last_layer.seeds: []"]),
    "a seed twice": (
        {"spacewalk": {"last_layer": {"seeds": [1, 1]}}},
        ["seeds: [1, 1] contains a value twice; keep one"],
    ),
    "a place for stores with keys in it": (
        {"features": {"store": "s3://key:secret@bucket/x"}},
        ["features.store: give s3://BUCKET[/PREFIX], without keys, a query or a slash at the end; keys are AWS_*"],
    ),
    **{
        f"no place for stores: {place}": ({"features": {"store": place}}, ["features.store: give s3://BUCKET[/PREFIX]"])
        for place in (
            "features",
            "gs://bucket",
            "s3://",
            "s3://B",
            "s3://bucket/",
            "s3://bucket/a//b",
            "s3://bucket?a=b",
        )
    },
    "wrong choice in a list": (
        {"spacewalk": {"releases": ["v2", "v3"]}},
        ["spacewalk.releases[1]: 'v3' is not allowed; choose from v0, v1, v2, demo"],
    ),
    "two kinds of subset": (
        {"spacewalk": {"subset": {"fraction": 0.5, "hours": 3}}},
        ["spacewalk.subset: ", "'fraction': 0.5", "exactly one of videos, fraction or hours"],
    ),
    "no kind of subset": ({"spacewalk": {"subset": {"seed": 1}}}, ["spacewalk.subset: {'seed': 1} is not allowed"]),
    "a mistyped kind of subset": ({"spacewalk": {"subset": {"hour": 3}}}, ["did you mean 'hours'?"]),
    "an entry's name": (
        {"spacewalk": {"entries": {"../x": {}}}},
        ["spacewalk.entries: '../x' is not a valid name; use lower-case letters, digits and -"],
    ),
    "an entry's name that is a number": ({"spacewalk": {"entries": {5: {}}}}, ["5 is no key: put it in quotes"]),
    "keys that are no text": ({"spacewalk": {"entries": {"x": {1: "a", "b": 2}}}}, ["1 is no key"]),
    "a method that is a number": (
        {"spacewalk": {"entries": {"x": {"method": 3}}}},
        ["spacewalk.entries.x.method: 3 is not allowed; write text: put it in quotes"],
    ),
    "a dataset without videos": (
        {"datasets": {"mine": {}}},
        ["datasets.mine.videos: it is required, such as videos: /path/to/videos"],
    ),
    "a dataset's kind": (
        {"datasets": {"mine": {"videos": "x", "kind": "films"}}},
        ["datasets.mine.kind: 'films' is not allowed; choose from folder, images, list"],
    ),
    "a dataset's name": (
        {"datasets": {"My videos": {"videos": "x"}}},
        ["datasets: 'My videos' is not a valid name; use lower-case letters, digits, - and _, "],
    ),
    "a dataset named like a study": ({"datasets": {"demo": {"videos": "x"}}}, ["datasets: 'demo' is taken"]),
    "a dataset named like what is fetched": ({"datasets": {"weights": {"videos": "x"}}}, ["'weights' is taken"]),
    "a network's name": (
        {"backbones": {"My Net": {"path": "x.py"}}},
        ["backbones: 'My Net' is not a valid name; use lower-case letters, "],
    ),
    "a network without a file": ({"backbones": {"mine": {}}}, ["backbones.mine.path: it is required"]),
    "no batch": (
        {"features": {"batch_size": 0}},
        ["features.batch_size: 0 is not allowed; write a whole number of at least 1, or null"],
    ),
    "a rate that is a number": (
        {"download": {"rate_limit": 500000}},
        ["download.rate_limit: 500000 is not allowed; write text, or null: put it in quotes"],
    ),
    "a path with a null": ({"datasets": {"mine": {"videos": "a\0b"}}}, ["'a\\x00b' contains a null character"]),
    "itself": (yaml.safe_load("&a {spacewalk: *a}"), ["it contains itself"]),
    "a window of a week": (
        {"spacewalk": {"contexts_s": {"step_recognition": [604800]}}},
        ["604800 is not allowed; write a number from 0.001 to 86400"],
    ),
    "a window of nothing": (
        {"spacewalk": {"contexts_s": {"step_recognition": [1e-5]}}},
        ["1e-05 is not allowed; write a number from 0.001"],
    ),
    "a data set's name, with one like it": ({"datasets": {"My Videos!": {"videos": "x"}}}, [", such as my-videos"]),
    "a data set without keys": (
        yaml.safe_load("datasets:\n  mine:\n  videos: /x"),
        ["datasets.mine: it has no value; ", "such as mine: {videos: /path/to/videos}, and indent its keys"],
    ),
    "no indent": (
        yaml.safe_load("datasets:\nmine:\n  videos: /x"),
        ["datasets: it has no value; ", "such as datasets: {mine: {videos: /path/to/videos}}, and indent"],
    ),
    "a path for a data set": (
        {"datasets": {"mine": "/x"}},
        ["datasets.mine: '/x' is not allowed; write keys with values, such as mine: {videos: /path/to/videos}"],
    ),
    "home, as YAML reads it": (
        yaml.safe_load("datasets: {mine: {videos: ~}}"),
        ["datasets.mine.videos: it has no value; write text, such as videos: /path/to/videos"],
    ),
    "text for a list": (
        {"datasets": {"mine": {"videos": "x", "stages": "speech"}}},
        ["mine.stages: 'speech' is not allowed; write a list of at least 1 value, such as stages: [speech]"],
    ),
    "a rate in words": (
        {"download": {"rate_limit": "5 MB"}},
        ["download.rate_limit: '5 MB' is not allowed; write a number of bytes per second, optionally"],
    ),
    "a list": (
        ["spacewalk"],
        ["the file: ['spacewalk'] is not allowed; write keys with values, such as datasets: {mine: {videos: "],
    ),
    "nothing": (None, ["the file: it has no value; write keys with values, such as datasets: {mine: {videos: "]),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_value_is_one_line_with_key_value_and_what_is_allowed(case: str) -> None:
    config, parts = WRONG[case]
    with pytest.raises(ConfigError) as error:
        validate(config)
    line = str(error.value)
    assert line.startswith("config: ")
    assert "\n" not in line
    assert [part for part in parts if part not in line] == []


VALUES: list[Any] = [None, "My Videos", "", 0, -1.5, True, [], [None], {}, {"My Videos": None}, {"a": {"b": 1}}]
JARGON = ("is not of type", "does not match", "is not valid under", "None ", "non-unique", "should be non-empty")


def paths_of(schema: dict[str, Any], above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the path of each key; "mine" is the name where the user chooses one."""
    other = schema.get("additionalProperties")
    for name, child in {**schema.get("properties", {}), **({"mine": other} if isinstance(other, dict) else {})}.items():
        yield (*above, name)
        yield from paths_of(child, (*above, name))


def test_no_error_of_any_key_speaks_the_schemas_language() -> None:
    lines = []
    for path in [(), *paths_of(SCHEMA)]:
        for value in VALUES:
            config = value
            for name in reversed(path):
                config = {name: config}
            lines += [line] if (line := wrong(config, SCHEMA)) else []
    assert len(lines) > 1000
    assert [line for line in lines if "\n" in line or any(word in line for word in JARGON)] == []
    assert [line for line in lines if not re.match("[^:]+: ", line)] == []


@pytest.mark.parametrize(
    ("content", "part"),
    [
        (b"spacewalk: [v2\n  x: {", "not YAML"),
        (b"a: b: c\n", "not YAML: line 1, column 5: mapping values are not allowed in this context: put a value with"),
        (
            b"datasets:\n\tmine: {}\n",
            "line 2, column 1: found character that cannot start any token: indent with spaces",
        ),
        (b"a: [1, 2\n", "close the bracket"),
        (b"a: 'x\n", "close the quotes"),
        (b"\xff\xfe\x00", "not YAML"),
        (b"strict: true\nspacewalk:\n  llm: {}\n  llm: {model: m}\n", "line 4: the key 'llm' occurs twice"),
        (b"- spacewalk\n", "['spacewalk'] is not allowed; write keys with values"),
        (b"", "config.yaml: it is empty"),
    ],
)
def test_a_file_that_is_none(tmp_path: Path, content: bytes, part: str) -> None:
    path = tmp_path / "config.yaml"
    path.write_bytes(content)
    with pytest.raises(ConfigError) as error:
        load()
    assert part in str(error.value)
    assert "\n" not in str(error.value)


def test_the_file_is_the_named_one_else_the_environments_else_config_yaml(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for named in ((), ("elsewhere.yaml",)):
        with pytest.raises(ConfigError, match=rf"^{(*named, 'config.yaml')[0]}: no such file; .*"):
            load(*named)
    for number, name in enumerate(("config.yaml", "environment.json", "named.yaml"), 1):
        (tmp_path / name).write_text(json.dumps({"shard_hours": number}))
    assert load()["shard_hours"] == 1
    monkeypatch.setenv("STEPLINE_CONFIG", "environment.json")
    assert load()["shard_hours"] == 2
    assert load(tmp_path / "named.yaml")["shard_hours"] == 3


@pytest.mark.parametrize("name", ["config.yaml", "config.demo.yaml"])
def test_the_repositorys_configurations_are_valid(name: str) -> None:
    load(ROOT / name)


def test_defaults_are_filled_and_the_callers_values_kept() -> None:
    given: dict[str, Any] = {"spacewalk": {"subset": {"hours": 2}, "metrics": {"threshold_f1": "macro"}}}
    config = validate(given)
    assert given == {"spacewalk": {"subset": {"hours": 2}, "metrics": {"threshold_f1": "macro"}}}
    assert "demo" not in config
    assert config["strict"] is False
    assert config["shots"] == {"detector": "content", "threshold": None, "min_shot_s": 0.6}
    assert config["spacewalk"]["contexts_s"]["intra-video_retrieval"] == [10, 20, 30, 60, 120, 180]
    assert config["spacewalk"]["subset"] == {"hours": 2, "seed": 0}
    assert config["spacewalk"]["metrics"] == {
        "threshold_f1": "macro",
        "average_precision": "interpolated",
        "bootstrap_samples": 10000,
        "bootstrap_seed": 0,
    }
    assert validate(config) == config


def test_the_full_study_is_the_default() -> None:
    assert validate({"spacewalk": {}, "pss": {}, "oepp": {}, "hirest": {}, "htstep": {}}) == load(ROOT / "config.yaml")


def test_the_demo_has_its_own_release_and_filled_defaults_are_not_shared() -> None:
    validate({"spacewalk": {}})["spacewalk"]["releases"].append("v9")
    assert validate({"spacewalk": {}})["spacewalk"]["releases"] == ["v0", "v1", "v2"]
    assert validate({"demo": {}})["demo"] == validate({"spacewalk": {}})["spacewalk"] | {"releases": ["demo"]}


def test_text_stays_text_where_text_is_wanted() -> None:
    entries = {"x": {"note": "no", "method": "2024", "settings": {"parts": "75"}}}
    read = {"x": {"note": "no", "method": "2024", "settings": {"parts": 75}}}
    assert validate({"spacewalk": {"entries": entries}})["spacewalk"]["entries"] == read


def test_a_datasets_defaults_are_filled() -> None:
    config = validate({"datasets": {"mine": {"videos": "12"}}})
    assert config["datasets"] == {"mine": {"kind": "folder", "videos": "12", "backbones": ["histogram"]}}
    assert config["media"]["keep"] == "all"


def test_no_dataset_can_take_a_studys_name() -> None:
    taken = SCHEMA["properties"]["datasets"]["propertyNames"]["not"]["enum"]
    others = ["pss", *pss.DATASETS, "oepp", *oepp.DATASETS, "hirest", *htstep.DATASETS, "segments", "weights"]
    assert taken == sorted([*STUDIES, *others])


def test_numbers_given_as_text_are_read_and_ids_stay_text() -> None:
    text = {
        "strict": "true",
        "spacewalk": {"last_layer": {"epochs": "3"}, "contexts_s": {"step_recognition": ["60", "7.5"]}},
        "demo": {"subset": {"videos": ["01152020"], "seed": "4"}},
    }
    config = validate(text)
    assert config["strict"] is True
    assert config["spacewalk"]["last_layer"]["epochs"] == 3
    assert config["spacewalk"]["contexts_s"]["step_recognition"] == [60, 7.5]
    assert config["demo"]["subset"] == {"videos": ["01152020"], "seed": 4}
    Path("config.yaml").write_text("{shard_hours: 1e-06, spacewalk: {last_layer: {learning_rate: 1E-5}}}")
    assert (load()["shard_hours"], load()["spacewalk"]["last_layer"]["learning_rate"]) == (1e-6, 1e-5)


def objects(schema: dict[str, Any], key: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the schema of each key, with its name."""
    yield key, schema
    for name, child in schema.get("properties", {}).items():
        yield from objects(child, f"{key}.{name}")
    if isinstance(other := schema.get("additionalProperties"), dict):
        yield from objects(other, f"{key}.*")


def test_every_key_is_described_and_unknown_ones_are_errors_everywhere_but_in_entries() -> None:
    assert [key for key, each in objects(SCHEMA) if key.strip(".*") and not each.get("description")] == []
    open_keys = [
        key for key, each in objects(SCHEMA) if "properties" in each and each.get("additionalProperties") is None
    ]
    assert {key for key in open_keys if not key.endswith(".entries.*")} == set()


@pytest.mark.parametrize("name", ["spacewalk", "demo", "pss", "oepp"])
def test_the_defaults_of_a_benchmark_are_what_an_empty_key_gives(name: str) -> None:
    config = validate({name: {}})
    assert defaults(name, validate({name: {"releases": config[name]["releases"][:1]}})) == config[name]


def test_the_schemas_are_json_schemas() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    for each in yaml.safe_load(files("stepline").joinpath("config/declaration.schema.yaml").read_text()).values():
        Draft202012Validator.check_schema(each)


@pytest.mark.parametrize(("given", "read"), [("500000", "500000"), ("5M", "5M"), ("null", None), (None, None)])
def test_a_rate_in_quotes_is_text_and_null_is_none(given: str | None, read: str | None) -> None:
    assert validate({"download": {"rate_limit": given}})["download"]["rate_limit"] == read


@pytest.mark.parametrize(("key", "name"), [("spacewalk", "llm"), ("asr", "deepgram")])
def test_an_address_with_a_password_is_refused_without_showing_it(key: str, name: str) -> None:
    for url in ("http://me:secret@h/v1", "http://h/v1?key=secret", "http://h:secret/v1", "http://[::1/v1"):
        with pytest.raises(ConfigError, match=rf"{key}\.{name}\.url: give http") as caught:
            validate({key: {name: {"url": url}}})
        assert "secret" not in str(caught.value)
    for url in ("http://localhost:8000/v1", "http://[::1]:8000/v1", "https://api.openai.com/v1"):
        assert validate({key: {name: {"url": url}}})[key][name]["url"] == url


def test_the_packages_own_files_are_what_is_not_checked_at_each_start() -> None:
    read(Path(str(files("stepline").joinpath("config.schema.yaml"))))
    for folder in folders({}).values():
        for path in filter(Path.exists, (folder / TABLES, folder / OPTIONS)):
            assert wrong(read(path), forms()[path.name]) == "", path


def test_what_was_kept_is_loaded_and_not_validated_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = validate({"shard_hours": 3})
    path = keep(config)
    path.rename(edited := path.with_name("config-00000000.json"))
    path = keep(config)
    monkeypatch.setattr("stepline.config.validate", lambda _: "validated")
    assert load(path) == config
    assert load(edited) == "validated"
