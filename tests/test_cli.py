import argparse
import errno
import json
import logging
import os
import re
import shutil
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest

from snakemake_logger_plugin_stepline.stages import Job
from stepline import __version__, cli, paths
from stepline.availability import read_manifest
from stepline.backbones.histogram import HistogramSpec
from stepline.cli import fetch
from stepline.cli.lines import columns
from stepline.cli.parser import make_parser
from stepline.errors import ConfigError
from tests import forked
from tests.conftest import ROOT

STAGES = [
    *("media", "shots", "transcribe", "extract", "thumbnails", "drop", "summary", "fit", "predict", "score", "table"),
    *("picture", "pairs", "examples", "results", "samples", "encode", "figures", "durations"),
]
ACTIONS = next(each for each in make_parser()._actions if isinstance(each, argparse._SubParsersAction))
SHOWN = [each.dest for each in ACTIONS._get_subactions()]
NOBODY = "http://127.0.0.1:9"
"""A proxy that is not there: no test reaches the network."""


def stepline(*arguments: str, mirror: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a verb in the current folder, without a network, in a process of its own that has imported what it needs."""
    environment = {key: value for key, value in os.environ.items() if not key.lower().endswith("_proxy")}
    environment |= {"HTTPS_PROXY": NOBODY, "HTTP_PROXY": NOBODY}
    if mirror is not None:
        environment["STEPLINE_MIRROR"] = str(mirror)
    return forked.run("stepline", arguments, Path.cwd(), environment)


def refused(*arguments: str, mirror: Path | None = None) -> str:
    """Return the one line with which a verb refuses."""
    done = stepline(*arguments, mirror=mirror)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert re.fullmatch(r"error: .+\n", done.stderr), done.stderr
    return done.stderr.removeprefix("error: ").removesuffix("\n")


@pytest.mark.parametrize("arguments", [[], ["--help"]])
def test_the_help_fits_on_a_screen_and_has_every_verb(arguments: list[str]) -> None:
    done = stepline(*arguments)
    assert (done.returncode, done.stderr) == (0 if arguments else 2, "")
    lines = done.stdout.splitlines()
    assert len(lines) <= 45
    assert max(map(len, lines)) <= 80
    assert re.findall(r"^  ([a-z]+)  +[a-z]", done.stdout, re.MULTILINE) == SHOWN
    stages = done.stdout.partition("stages, which the workflow calls")[2].partition("options:")[0]
    assert stages.split()[3:] == STAGES
    assert {*SHOWN, *STAGES} == {*ACTIONS.choices}


def test_the_workflow_calls_verbs_that_are_there() -> None:
    rules = "".join(path.read_text() for path in sorted((ROOT / "workflow").rglob("*.smk")))
    called = set(re.findall(r"python -m stepline --log {log} ([a-z]+)", rules))
    assert called >= {*STAGES}
    assert called <= {*ACTIONS.choices}


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("serach", "verb 'serach' is not known: did you mean `stepline search`?"),
        ("bank exprt", "action 'exprt' is not known: did you mean `stepline bank export`?"),
        ("xyzzy", "verb 'xyzzy' is not known: `stepline --help` lists them"),
    ],
)
def test_an_unknown_verb_gets_the_nearest_one(line: str, hint: str) -> None:
    assert refused(*line.split()) == hint


@pytest.mark.parametrize("verb", ACTIONS.choices)
def test_every_verb_has_help(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        cli.main([verb, "--help"])
    assert end.value.code == 0
    assert f"stepline {verb}" in capsys.readouterr().out


def test_the_version_is_printed() -> None:
    command = [sys.executable, "-m", "stepline", "--version"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == f"stepline {__version__}\n"


@pytest.mark.parametrize("arguments", [["media", "demo"], ["fit", "demo", "--seed", "x"]])
def test_a_wrong_command_line_exits_with_2(arguments: list[str]) -> None:
    done = stepline(*arguments)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


@pytest.fixture
def configured() -> None:
    shutil.copy(ROOT / "config.yaml", "config.yaml")


WRONG = {
    "fetch nope/v2": "study 'nope' is not known; choose from spacewalk, demo",
    "fetch nope": "dataset 'nope' is not known; choose from spacewalk, demo, youcook2, tasty, openevent, hirest",
    "fetch demo": "study 'demo' is not configured; add a key `demo:`",
    "fetch spacewalk/v9": "release 'v9' of spacewalk is not known; choose from v0, v1, v2",
    "fetch ../../x": "study '..' is not known",
    "fetch nope/videos": "dataset 'nope' is not known",
    "fetch spacewalk/videos/999": "spacewalk has no shard '999'; choose from 000, 001, ",
    "fetch weights/clip": "weights 'clip' are not known; choose from s3d, timesformer, internvideo, internvideo-mm",
    "fetch weights/egovlp": "EgoVLP_PT_BEST.pth of egovlp cannot be downloaded: open https://drive.google.com/",
    "fetch weights/mpnet": "huggingface.co is unreachable",
    "fetch spacewalk/v2": "spacewalk/v2/data/annotation.json is required: raw.githubusercontent.com is unreachable",
    "fetch demo/demo": "demo/release/annotation.json is required; set STEPLINE_MIRROR to a folder that contains it",
    "media nope --shard 000": "dataset 'nope' is not known",
    "media spacewalk --shard ../x": "shard '../x' is not a number such as 000",
    "media spacewalk --shard 000": "datasets/spacewalk/availability/000.json does not exist: `stepline media` reads it",
    "shots spacewalk --shard 000": "datasets/spacewalk/media/manifests/000.json does not exist: `stepline sho",
    "transcribe demo --shard 000": "study 'demo' is not configured",
    "extract spacewalk --shard 000 --backbone clip": "spacewalk has no backbone 'clip': choose from none",
    "extract demo --shard 000 --backbone histogram": "study 'demo' is not configured",
    "drop spacewalk --shard 000": "datasets/spacewalk/media/manifests/000.json must first be computed from the videos",
    "thumbnails spacewalk --shard 000": "datasets/spacewalk/availability/000.json does not exist",
    "summary nope": "dataset 'nope' is not known",
    "samples nope --release v2": "study 'nope' is not known",
    "samples spacewalk --release v9": "release 'v9' of spacewalk is not known; choose from v0, v1, v2",
    "encode demo --release demo --task t --video v --encoder minilm": "study 'demo' is not configured",
    "predict spacewalk --release v2 --entry magic --context all": "spacewalk has no entry 'magic'",
    "table demo": "study 'demo' is not configured; add a key `demo:`",
    "report nope": "dataset 'nope' is not known",
    "--configfile absent.yaml table spacewalk": "absent.yaml: no such file",
    "--configfile . table spacewalk": "Is a directory",
    "--log config.yaml/x.log table spacewalk": "config.yaml: ",
}


@pytest.mark.parametrize("line", WRONG)
@pytest.mark.usefixtures("configured")
def test_what_is_not_there_or_not_known_is_one_line(line: str) -> None:
    assert WRONG[line] in refused(*line.split())


def test_a_reader_that_has_enough_is_no_error() -> None:
    command = f"{sys.executable} -m stepline weights list | head -n 1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert (done.stdout.count("\n"), done.stderr) == (1, "")


def test_what_fails_does_not_keep_the_rest_from_being_fetched() -> None:
    Path("videos").mkdir()
    Path("videos/a.mp4").write_text("no video")
    demo = "{text_encoders: [mpnet], video_encoders: []}"
    Path("config.yaml").write_text(f"{{demo: {demo}, datasets: {{mine: {{videos: videos}}}}}}")
    done = stepline("fetch")
    assert done.returncode == 2
    shown, *errors = done.stdout.splitlines(), *done.stderr.splitlines()
    assert shown[-2] == "mine/videos: 0 of 1 videos"
    assert shown[-1].startswith("  a: failed: ")
    assert [line.partition(": ")[2].partition(" ")[0] for line in errors] == ["weights/mpnet:", "demo/demo:", "2"]
    assert errors[-1].endswith(" could not be fetched: weights/mpnet, demo/demo")
    done = stepline("fetch", "mine")
    assert (done.returncode, done.stderr, done.stdout.splitlines()) == (0, "", shown[-2:])


def test_decoding_obeys_the_configured_reader_and_limits() -> None:
    pytest.importorskip("av")
    from tests.media.clips import make

    Path("videos").mkdir()
    make(Path("videos/a.mp4"), [Fraction(i, 25) for i in range(2000)])
    config = {"datasets": {"mine": {"videos": "videos"}}}
    Path("config.yaml").write_text(json.dumps(config))
    assert cli.main(["fetch", "mine/videos/000"]) == 0
    least = {"least_s": 0.001, "s_per_video_s": 0.00001}
    Path("config.yaml").write_text(json.dumps(config | {"media": {"reader": "decord", "limits": least}}))
    spec = HistogramSpec(reader="decord")
    shard = "mine", "--shard", "000"
    for arguments in (["media", *shard], ["extract", *shard, "--backbone", "histogram"]):
        assert cli.main(arguments) == 0
    for manifest in (paths.manifest(paths.media("mine"), "000"), paths.features_manifest("mine", "000", spec)):
        assert read_manifest(manifest)["a"]["reason"] == "decoding takes longer than 0 s: see media.limits"


@pytest.mark.usefixtures("configured")
def test_what_cannot_be_encoded_and_samples_that_a_release_does_not_have_are_one_line(real_data: Path) -> None:
    assert stepline("fetch", "spacewalk/v2", mirror=real_data).returncode == 0
    right = {"release": "v2", "task": "step_recognition", "video": "10062019", "encoder": "minilm"}
    for wrong, line in (
        ({"task": "retrieval"}, "task 'retrieval' is not known; choose from step_recognition"),
        ({"video": "10062091"}, "video '10062091' is not known; choose from "),
        ({"encoder": "clip"}, "encoder 'clip' is not known; choose from minilm, mpnet"),
    ):
        options = [part for key, value in (right | wrong).items() for part in (f"--{key}", value)]
        assert line in refused("encode", "spacewalk", *options)
    asked = "samples", "spacewalk", "--release", "v2"
    assert "no samples of question_answering" in refused(*asked, "--task", "question_answering")
    assert "no samples of dev" in refused(*asked, "--split", "dev")


def test_a_file_where_a_folder_must_be_is_one_line(real_data: Path) -> None:
    Path("datasets").write_text("in the way")
    assert refused("samples", "spacewalk", "--release", "v2", mirror=real_data).startswith("datasets")


def test_the_log_gets_the_error_too() -> None:
    absent = refused("table", "spacewalk")
    assert absent == "config.yaml: no such file; run in its folder, or name another with --configfile"
    line = refused("--log", "logs/deep/fetch.log", "fetch", "weights/clip")
    assert re.fullmatch(rf"\S+ \S+ ERROR error: {re.escape(line)}\n", Path("logs/deep/fetch.log").read_text())


def test_a_log_holds_one_run_and_its_warnings() -> None:
    shutil.copy(ROOT / "config.demo.yaml", "config.yaml")
    for _ in range(2):
        assert stepline("--log", "fetch.log", "fetch", "demo/videos").stderr == ""
        lines = Path("fetch.log").read_text().splitlines()
        assert len(lines) == 5
        assert all(" WARNING " in line and ": missing: not in the mirror at demo/videos/" in line for line in lines)


def test_an_unexpected_error_keeps_its_traceback_and_is_in_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch, "_fetch", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        cli.main(["--log", "logs/fetch/a.log", "fetch", "weights/clip"])
    assert Job("fetch", "", "logs/fetch/a.log", (), (), 0).error() == "ZeroDivisionError: division by zero"


def test_an_error_of_the_system_without_a_file_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def without_locks(_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fetch, "_fetch", without_locks)
    assert cli.main(["--log", "logs/fetch/a.log", "fetch", "weights/clip"]) == 2
    line = f"`stepline fetch` in {os.getcwd()}: No locks available"
    assert capsys.readouterr().err == f"error: {line}\n"
    assert Job("fetch", "", "logs/fetch/a.log", (), (), 0).error() == line


def test_a_mirror_that_is_not_there_is_one_line_even_where_nothing_is_looked_for(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("spacewalk: {}")
    for mirror in (tmp_path / "nowhere", tmp_path / "config.yaml"):
        assert refused("table", "spacewalk", mirror=mirror).startswith(f"STEPLINE_MIRROR={mirror} is not a folder")


def test_a_package_that_is_not_installed_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "av", None)
    monkeypatch.delitem(sys.modules, "stepline.demo.build", raising=False)
    assert cli.main(["demo", "--mirror", str(tmp_path / "m"), "--truth", str(tmp_path / "t.json")]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: the package av is not installed: pip install")


def test_the_help_imports_nothing_heavy() -> None:
    code = "import sys; from stepline import cli; cli.main([]); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in done.stderr.split()}
    assert not loaded & {"numpy", "pyarrow", "torch", "av", "zarr", "matplotlib", "jinja2", "jsonschema", "snakemake"}


def test_foreign_text_reaches_neither_terminal_nor_log_as_it_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    foreign = "\x1b[2J\nmade:\u2028\u202e"

    def run(_: object) -> None:
        logging.getLogger("stepline.fetch").warning("no %s", foreign)
        print(f"left out: {foreign}")
        print(columns([("a", foreign)]))
        raise ConfigError(f"{foreign}: unknown key")

    monkeypatch.setattr("stepline.cli.fetch._fetch", run)
    assert cli.main(["--log", "logs/a.log", "fetch"]) == 2
    out, err = capsys.readouterr()
    escaped = r"\x1b[2J\nmade:\u2028\u202e"
    assert out == "left out: \\x1b[2J\nmade:\\u2028\\u202e\na  " + escaped + "\n"
    assert err == "error: \\x1b[2J made:\\u2028\\u202e: unknown key\n"
    warned, failed = Path("logs/a.log").read_text().splitlines()
    assert warned.endswith(f" WARNING no {escaped}")
    assert failed.endswith(" ERROR error: \\x1b[2J made:\\u2028\\u202e: unknown key")
