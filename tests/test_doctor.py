import json
import shutil
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace

import pytest

from stepline import cli, doctor, slurm
from stepline.asr import engines
from stepline.backbones.weights import WEIGHTS
from stepline.doctor import Check
from stepline.io import write_text
from tests.conftest import ROOT

SECRET = "sk-this-is-secret"


def run(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> dict[tuple[str, str], Check]:
    """Return the lines of `doctor --json` by area and name."""
    assert cli.main([*words, "doctor", "--json"]) == code
    return {(each["area"], each["name"]): Check(**each) for each in json.loads(capsys.readouterr().out)}


@pytest.fixture(autouse=True)
def _demo(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slurm, "partitions", dict)
    shutil.copy(ROOT / "config.demo.yaml", "config.yaml")


def test_every_line_says_what_it_found(capsys: pytest.CaptureFixture[str]) -> None:
    found = run(capsys)
    assert found["system", "Python"].state == "ok"
    assert f"snakemake {metadata.version('snakemake')}" in found["packages", "stepline"].text
    assert {name for area, name in found if area == "weights"} == {*WEIGHTS}
    java = found["system", "Java"]
    assert (java.state == "ok") == (shutil.which("java") is not None)
    s3d = found["weights", "s3d"]
    assert (s3d.state, s3d.command) == ("absent", "stepline fetch weights/s3d")
    assert "github.com/antoine77340" in s3d.text
    table = found["computable now", "results/demo/table2.csv"]
    assert table.text == "0 of 21 lines; missing: release:demo/demo (21), videos:demo (14)"
    assert found["missing", "release:demo/demo"].command
    assert cli.main(["doctor"]) == 0
    printed = capsys.readouterr().out
    assert all(f"\n{area}\n" in f"\n{printed}" for area, _ in found)
    assert all(check.text in printed for check in found.values())


def test_what_tables_and_pages_are_missing_has_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    Path("videos").mkdir()
    Path("videos/a.mp4").touch()
    Path("config.yaml").write_text(
        "{datasets: {mine: {videos: videos, backbones: [histogram, s3d-pss]}}, asr: {engine: whisper},"
        " spacewalk: {tables: [table2, table2b_minilm]}}"
    )
    found = run(capsys)
    table = found["computable now", "results/spacewalk/table2.csv"]
    assert table.state == "missing"
    assert "weights:mpnet (13)" in table.text
    assert found["computable now", "results/spacewalk/table2b_minilm.csv"].state == "ok"
    page = found["computable now", "results/mine/report.html"]
    assert page.text.startswith(
        "1 videos, 1 of 3 backbones and recognisers; missing: weights:s3d (1), weights:whisper/"
    )
    assert found["missing", "weights:s3d"].command == "stepline fetch weights/s3d"
    assert found["missing", "weights:s3d"].text == "for 2 of these results"
    assert found["missing", "weights:whisper/small.en"].command == "stepline fetch weights/whisper/small.en"
    model = found["missing", "config:spacewalk.llm.model=NAME"]
    assert model.text == "for 1 of these results: set spacewalk.llm.model to NAME in the configuration"
    assert found["weights", "s3d"].state == "missing"
    assert found["weights", "eva_clip"].state == "absent"


def test_keys_are_there_or_not_and_never_shown_and_json_is_valid_in_a_folder_with_control_characters(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    key = engines.KEYS["deepgram"]
    monkeypatch.delenv(key, raising=False)
    check = run(capsys)["keys", key]
    assert (check.state, check.text, check.command) == ("absent", "not set", f"export {key}=...")
    monkeypatch.setenv(key, SECRET)
    assert run(capsys)["keys", key].text == "set"
    for words in (["doctor"], ["doctor", "--json"]):
        assert cli.main(words) == 0
        assert SECRET not in "".join(capsys.readouterr())
    Path("a\x9b").mkdir()
    monkeypatch.chdir("a\x9b")
    assert any("a\x9b" in check.text for check in run(capsys).values())


@pytest.mark.parametrize(
    ("config", "area", "text"),
    [
        ("demo: {tables: [table9]}", "configuration", "table9"),
        ("datasets: {mine: {videos: nowhere}}", "computable now", "nowhere does not exist: name the folder"),
        ("{demo: {}, features: {device: cuda}}", "hardware", "features.device is cuda"),
    ],
)
def test_what_the_configuration_needs_and_is_broken_ends_with_1(
    config: str, area: str, text: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "visible", list)
    Path("config.yaml").write_text(config)
    assert cli.main(["doctor", "--json"]) == 1
    out, err = capsys.readouterr()
    (broken,) = [Check(**each) for each in json.loads(out) if each["state"] == "broken"]
    assert broken.area == area
    assert text in broken.text
    assert err == f"error: broken: {broken.name}\n"


def test_a_mirror_that_is_no_folder_and_damaged_weights_are_broken(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path("weights/eva_clip")
    folder.mkdir(parents=True)
    (folder / WEIGHTS["eva_clip"].files[0].name).write_text("no weights")
    assert "is not the published file" in run(capsys, code=1)["weights", "eva_clip"].text
    monkeypatch.setenv("STEPLINE_MIRROR", str(Path("nowhere").absolute()))
    assert "is not a folder" in run(capsys, code=1)["mirror", "STEPLINE_MIRROR"].text


def test_without_a_configuration_the_rest_is_checked(capsys: pytest.CaptureFixture[str]) -> None:
    Path("config.yaml").unlink()
    found = run(capsys)
    assert found["configuration", "config.yaml"].state == "absent"
    assert not [area for area, _ in found if area == "computable now"]
    assert run(capsys, "--configfile", "other.yaml", code=1)["configuration", "other.yaml"].state == "broken"


def test_packages_that_are_not_installed_have_a_command(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def version(name: str) -> str:
        if name in gone:
            raise metadata.PackageNotFoundError
        return "1.0+cpu"

    monkeypatch.setattr(doctor.metadata, "version", version)
    gone = {"timm"}
    check = run(capsys)["packages", "vision"]
    assert (check.state, check.command) == ("absent", "pip install -c constraints.txt -e '.[vision]'")
    assert check.text.startswith("not installed: timm; h5py 1.0+cpu (constraints.txt: ")
    gone = {"scipy"}
    assert run(capsys, code=1)["packages", "stepline"].state == "broken"


def test_another_reader_than_pyav_is_named(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert ("video", "media.reader") not in run(capsys)
    Path("config.yaml").write_text("{media: {reader: decord}}")
    text = "decord, last release in 2021; it refuses files that pyav reads: docs/media.md"
    for gone, state, command in (
        ((), "ok", ""),
        (("decord",), "missing", "pip install -c constraints.txt -e '.[decord]'"),
    ):
        monkeypatch.setattr(doctor, "find_spec", lambda name, gone=gone: None if name in gone else name)
        check = run(capsys)["video", "media.reader"]
        assert (check.state, check.text, check.command) == (state, text, command)


def test_yt_dlps_runtime_is_found_next_to_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(doctor.sysconfig, "get_path", lambda _: str(tmp_path))
    for state, command in (("absent", "pip install -c constraints.txt -e '.[youtube]'"), ("ok", "")):
        [found] = [check for check in doctor._system() if check.name == "JavaScript"]
        assert (found.state, found.command) == (state, command)
        (tmp_path / "deno").touch(0o755)


def test_another_python_is_broken(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for minor, state in ((10, "broken"), (11, "ok"), (13, "ok"), (14, "broken")):
        monkeypatch.setattr(doctor, "sys", SimpleNamespace(version_info=SimpleNamespace(minor=minor)))
        assert next(doctor._system()).state == state


@pytest.fixture
def partition(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Slurm whose default partition is the only one."""
    allowed = slurm.Partition(mem_mb=2000, runtime=60, gpu=0, default=True)
    monkeypatch.setattr(slurm, "partitions", lambda: {"main": allowed})
    Path("videos").mkdir()
    Path("videos/a.mp4").write_bytes(b"a")
    datasets = "{mine: {videos: videos, stages: [features], backbones: [histogram]}}"
    Path("config.yaml").write_text(f"datasets: {datasets}\nmedia: {{limits: {{memory_mb: 1500}}}}\n")


def of_cluster(capsys: pytest.CaptureFixture[str], profile: str, *, code: int) -> dict[str, str]:
    """Return the lines of `doctor --profile mysite` on the cluster, by rule."""
    write_text("mysite/config.yaml", profile)
    assert cli.main(["doctor", "--json", "--profile", "mysite"]) == code
    found = [Check(**each) for each in json.loads(capsys.readouterr().out)]
    return {each.name: each.text.partition(", so")[0] for each in found if each.area == "cluster"}


def test_requests_that_no_partition_allows_are_named(partition: None, capsys: pytest.CaptureFixture[str]) -> None:
    of_main = "is requested, and partition main allows"
    assert of_cluster(capsys, "jobs: 20", code=1) == {
        "videos": f"runtime=72 {of_main} 60",
        "extract": f"mem_mb=2500 {of_main} 2000",
    }
    assert cli.main(["doctor", "--profile", "nosite"]) == 1
    assert "requests  --profile nosite: none of these files exists: nosite/config.yaml" in capsys.readouterr().out


@pytest.mark.parametrize(
    "profile",
    [
        "resources: {mem_mb: 2000, runtime: 60}",
        "resources: [mem_mb=2000, runtime=60]",
        "resources: {mem: 2GB, runtime: 1h}",
        "{resources: {mem_mb: 2000, runtime: 60}, set-resources: {extract: {mem_mb: 9000, runtime: 2d}}}",
        "set-resources: {videos: {runtime: 60}, extract: {runtime: 60, mem_mb: 1900}}",
        "set-resources: ['videos:runtime=60', 'extract:runtime=60', 'extract:mem_mb=1900']",
    ],
)
def test_a_profile_that_requests_less_is_fine(
    partition: None, capsys: pytest.CaptureFixture[str], profile: str
) -> None:
    assert [*of_cluster(capsys, profile, code=0)] == ["requests"]


@pytest.mark.parametrize(
    ("profile", "said"),
    [
        ("default-resources: {slurm_partition: elsewhere}", "partition elsewhere does not exist: Slurm has main"),
        ("set-resources: {extract: {mem: 9GB}}", "mem_mb=9000 is requested, and partition main allows 2000"),
        ("{resources: {mem_mb: }, set-resources: 7}", "mem_mb=2500 is requested, and partition main allows 2000"),
    ],
)
def test_a_profile_that_requests_more_is_not(
    partition: None, capsys: pytest.CaptureFixture[str], profile: str, said: str
) -> None:
    assert of_cluster(capsys, profile, code=1)["extract"] == said
