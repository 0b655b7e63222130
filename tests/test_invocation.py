import getpass
import json
import os
import shlex
from pathlib import Path
from typing import Any, NoReturn

import pytest
import yaml
from snakemake.cli import parse_config

from stepline import cli
from stepline import config as configuration
from stepline.config import keep, load, validate
from stepline.errors import ConfigError
from stepline.invocation import Invocation, command, current, last_run, name_account
from tests.conftest import ROOT, snakemake

TARGET = "results/spacewalk/table2.csv"


def started(*configfiles: str, **overrides: Any) -> None:
    Invocation(configfiles=configfiles, overrides=overrides).keep()


def read(line: str) -> dict[str, Any]:
    """Return what Snakemake reads of a command's ``--config``."""
    words = shlex.split(line)
    read: dict[str, Any] = parse_config(words[words.index("--config") + 1 :])
    return read


def test_files_are_named_as_they_are_from_here_and_without_any_the_target_is_enough(tmp_path: Path) -> None:
    assert command(TARGET, {}) == f"snakemake --cores 8 {TARGET}"
    started(str(tmp_path / "walks.yaml"), "/etc/my walks.yaml")
    assert command(TARGET, {}) == f"snakemake --cores 8 {TARGET} --configfile walks.yaml '/etc/my walks.yaml'"


def test_a_snakefile_of_another_folder_is_named(tmp_path: Path) -> None:
    Invocation(snakefile="/elsewhere/Snakefile", configfiles=(str(tmp_path / "walks.yaml"),)).keep()
    assert command(TARGET, {}) == (
        f"snakemake --snakefile /elsewhere/Snakefile --cores 8 {TARGET} --configfile walks.yaml"
    )
    assert current().verb("accept", "toy", "middle") == "stepline --configfile walks.yaml accept toy middle"


def test_a_change_is_added_to_the_users_own_of_the_same_key_and_a_list_is_given_whole() -> None:
    started(
        strict=False, spacewalk={"releases": ["v2"], "llm": {"url": "http://localhost:80/v1"}, "tables": ["table2"]}
    )
    changes = {"spacewalk": {"llm": {"model": "NAME"}, "tables": ["table2", "table3"], "subset": None}}
    assert command(TARGET, changes) == (
        f"snakemake --cores 8 {TARGET} --config strict=false 'spacewalk={{releases: [v2], "
        'llm: {url: "http://localhost:80/v1", model: NAME}, tables: [table2, table3], subset: null}\''
    )
    assert current().overrides["spacewalk"]["tables"] == ["table2"]


ODD = "- a", "#a", "*a", "{a}", "a\nb", "é", "~/a b", "a=b", "!x"


@pytest.mark.parametrize("value", ["01152020", "x, y: z", "it's", 'a "b"', "", "null", "1e-5", *ODD])
def test_text_comes_back_as_it_was(value: str) -> None:
    assert read(command(TARGET, {"spacewalk": {"a": value, value: ["x", value]}})) == {
        "spacewalk": {"a": value, value: ["x", value]}
    }


def test_what_snakemake_reads_of_it_is_what_was_meant() -> None:
    changes = {
        "shard_hours": 2.5,
        "strict": True,
        "spacewalk": {"last_layer": {"learning_rate": 1e-5, "seeds": [3]}, "subset": {"videos": ["01152020"]}},
        "oepp": {"split_seed": None},
    }
    assert validate(read(command(TARGET, changes))) == validate(changes)


def test_a_named_file_is_the_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPLINE_CONFIG", "walks.yaml")
    assert current() == Invocation(configfiles=(str(tmp_path / "walks.yaml"),))
    assert cli.main(["--configfile", "other.yaml", "summary", "mine"]) == 2
    assert current() == Invocation(configfiles=(str(tmp_path / "other.yaml"),))
    assert command(TARGET, {}).endswith(" --configfile other.yaml")


SAYS = """
from stepline.invocation import command
print(command("results/demo/table2.csv", {"demo": {"tables": ["table2", "table3"]}}), file=open("said", "w"))
"""


@pytest.mark.slow
def test_a_job_knows_how_the_run_was_started_and_its_command_runs(tmp_path: Path) -> None:
    (tmp_path / "my walks.yaml").write_text("demo: {text_encoders: [tfidf], tables: [table2]}")
    for name in ("src", "workflow"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / "says.py").write_text(SAYS)
    (tmp_path / "Snakefile").write_text(
        f"include: {str(ROOT / 'Snakefile')!r}\n"
        "import json\njson.dump(config['demo'], open('demo.json', 'w'))\n"
        "rule says:\n    output: 'said'\n    shell: 'python says.py'\n"
    )
    own = ("--configfile", "my walks.yaml", "--config", "demo={subset: {videos: [soup]}}", "shard_hours=3")
    done = snakemake("--snakefile", "Snakefile", "--cores", "1", "said", *own, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    said = (tmp_path / "said").read_text().strip()
    assert said == (
        "snakemake --cores 8 results/demo/table2.csv --configfile 'my walks.yaml' "
        "--config 'demo={subset: {videos: [soup]}, tables: [table2, table3]}' shard_hours=3"
    )
    asked = snakemake("--snakefile", "Snakefile", *shlex.split(said)[1:], "--dry-run", folder=tmp_path)
    assert asked.returncode == 0, asked.stderr
    demo = json.loads((tmp_path / "demo.json").read_text())
    assert (demo["tables"], demo["subset"]["videos"]) == (["table2", "table3"], ["soup"])
    assert demo["text_encoders"] == ["tfidf"]


def ran(folder: Path, *, content: Any, **overrides: Any) -> None:
    """Note a run with ``mine.yaml``, which has this content."""
    (folder / "mine.yaml").write_text(yaml.safe_dump(content))
    made = Invocation(configfiles=(str(folder / "mine.yaml"),), overrides=overrides)
    made.remember(made.configfiles, keep(validate(content | overrides)))


@pytest.fixture(autouse=True)
def _says_it_again() -> None:
    configuration._say.cache_clear()


def test_a_verb_reads_the_configuration_of_the_last_run_here_and_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ran(tmp_path, content={"shard_hours": 3, "media": {"damaged": "skip"}}, shard_hours="5")
    for _ in range(2):
        assert (load()["shard_hours"], load()["media"]["damaged"]) == (5, "skip")
    assert capsys.readouterr().err == "configuration: mine.yaml --config shard_hours=..., as in the last run here\n"
    assert current().verb("summary", "mine") == "stepline --configfile mine.yaml summary mine"
    (tmp_path / "mine.yaml").write_text("shard_hours: 4")
    assert load()["media"]["damaged"] == "partial", "what the file says now counts"
    (tmp_path / "mine.yaml").unlink()
    with pytest.raises(ConfigError, match=r"mine\.yaml: no such file$"):
        load()


def test_what_is_named_goes_before_the_last_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ran(tmp_path, content={"shard_hours": 3})
    (tmp_path / "other.yaml").write_text("shard_hours: 4")
    assert load("other.yaml")["shard_hours"] == 4
    monkeypatch.setenv("STEPLINE_CONFIG", "other.yaml")
    assert load()["shard_hours"] == 4
    assert capsys.readouterr().err == ""


def test_a_run_by_config_yaml_says_nothing_and_the_part_that_another_workflow_gave_is_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Invocation().remember([], keep(validate({"shard_hours": 7})))
    assert load()["shard_hours"] == 7
    (tmp_path / "config.yaml").write_text("shard_hours: 2")
    Invocation().remember([str(tmp_path / "config.yaml")], keep(validate({"shard_hours": 2})))
    capsys.readouterr()
    assert load()["shard_hours"] == 2
    assert capsys.readouterr().err == ""


def test_an_account_without_a_name_gets_one(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)

    def unknown(uid: int) -> NoReturn:
        raise KeyError(uid)

    monkeypatch.setattr("pwd.getpwuid", unknown)
    name_account()
    assert getpass.getuser() == str(os.getuid())
    monkeypatch.setenv("USER", "ada")
    name_account()
    assert getpass.getuser() == "ada"


def test_a_run_without_the_file_of_the_last_one_says_so(tmp_path: Path) -> None:
    assert not [*Invocation().forgets()]
    ran(tmp_path, content={"shard_hours": 3})
    (line,) = Invocation().forgets()
    assert line.endswith("; the last run here had --configfile mine.yaml")
    assert last_run() is not None
    assert not [*Invocation(configfiles=("other.yaml",)).forgets()]
