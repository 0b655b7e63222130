"""The workflow as a module of another one, with the package of a checkout or an installed one."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

import stepline
from tests.conftest import ROOT, snakemake
from tests.workflow.runs import SMALL, TABLE, messages, run_alone

USED = """
rule count:
    input: "{table}"
    output: "lines.txt"
    message: "count"
    shell: "wc --lines < {{input}} > {{output}}"

module stepline:
    snakefile: {snakefile}
    config: config
{more}
use rule * from stepline exclude all as stepline_*
"""
RELEASE = "datasets/spacewalk/v2/release.json"


def write_workflow(folder: Path, snakefile: str, *, before: str = "", more: str = "", **changes: object) -> None:
    """Write a workflow of a user's that counts a table's lines. snakefile: of the module, as Python."""
    (folder / "config").mkdir(parents=True, exist_ok=True)
    (folder / "config/config.yaml").write_text(json.dumps({"spacewalk": SMALL | changes}))
    (folder / "workflow").mkdir(exist_ok=True)
    used = USED.format(snakefile=snakefile, more=more, table=TABLE)
    (folder / "workflow/Snakefile").write_text(f'configfile: "config/config.yaml"\n{before}{used}')


def copy_workflow(folder: Path) -> Path:
    """Copy what a workflow references: all but the package."""
    for name in ("workflow", "envs"):
        shutil.copytree(ROOT / name, folder / name)
    for name in ("Snakefile", "config.yaml"):
        shutil.copy(ROOT / name, folder / name)
    return folder


def run_module(folder: Path, *arguments: str, mirror: Path) -> subprocess.CompletedProcess[str]:
    words = "--snakefile", "workflow/Snakefile", "--cores", "1", *arguments
    return snakemake(*words, folder=folder, STEPLINE_MIRROR=str(mirror))


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    """A folder where the package is installed beside one that another Python cannot import, and Snakemake does not."""
    folder = tmp_path / "site-packages"
    folder.mkdir()
    (folder / "stepline").symlink_to(ROOT / "src/stepline")
    (folder / "tqdm.py").write_text("raise SystemExit('of another Python')")
    return folder


@pytest.mark.slow
def test_a_study_goes_on_in_a_module(small: Path, real_data: Path) -> None:
    """Rules of another name, and of another workflow, make the same: only what the table's user adds is run."""
    write_workflow(small, repr(str(ROOT / "workflow/Snakefile")))
    done = run_module(small, mirror=real_data)
    assert done.returncode == 0, done.stderr
    assert messages(done) == ["count"]
    assert "localrules" not in done.stderr
    assert int((small / "lines.txt").read_text()) == len((small / TABLE).read_text().splitlines())

    write_workflow(small, repr(str(ROOT / "Snakefile")), text_encoders=[])
    done = run_module(small, mirror=real_data)
    assert done.returncode == 0, done.stderr
    assert messages(done) == ["count", TABLE]


@pytest.mark.slow
def test_a_module_of_a_repository_uses_the_installed_package(
    tools: Path, packages: Path, real_data: Path, tmp_path: Path
) -> None:
    """As snakedeploy writes it: Snakemake reads the rules and the environments from a clone, which it keeps."""
    source = copy_workflow(tmp_path / "source")
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(source)]
    for words in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "--message=a"], ["tag", "v1"]):
        subprocess.run([*git, *words], check=True)
    cache = tmp_path / "cache"
    clone = cache / "snakemake/snakemake/source-cache/snakemake-git-cache/github.com/a/stepline"
    subprocess.run(["git", "clone", "--quiet", "--bare", source, clone], check=True)
    shutil.rmtree(source)

    write_workflow(tmp_path / "work", 'github("a/stepline", path="workflow/Snakefile", tag="v1")')
    done = run_alone(
        tools, "--use-conda", "--conda-prefix", str(tools / "envs"), "--", RELEASE,
        folder=tmp_path / "work", packages=packages, XDG_CACHE_HOME=str(cache), STEPLINE_MIRROR=str(real_data),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert messages(done) == ["release files of spacewalk v2"]
    assert (tmp_path / "work" / RELEASE).exists()


@pytest.mark.slow
def test_where_the_catalog_looks_for_it_the_workflow_is_the_same(real_data: Path, tmp_path: Path) -> None:
    (tmp_path / "pss.yaml").write_text("pss: {releases: [youcook2], tables: [table1]}")
    planned = [
        snakemake("--dry-run", "--snakefile", str(ROOT / name), "--configfile", "pss.yaml", folder=tmp_path)
        for name in ("Snakefile", "workflow/Snakefile")
    ]
    assert "results/pss/table1.csv" in messages(planned[0])
    assert messages(planned[0]) == messages(planned[1])


@pytest.mark.slow
def test_without_the_package_one_line_says_what_to_install(tools: Path, tmp_path: Path) -> None:
    copy_workflow(tmp_path / "copy")
    done = run_alone(tools, "--dry-run", folder=tmp_path / "copy")
    assert done.returncode == 2
    wanted = f"these rules need Stepline {stepline.__version__}"
    install = f"pip install stepline=={stepline.__version__}"
    assert f"error: {wanted}, the package is not installed: {install}" in done.stderr.splitlines()

    (tmp_path / "other/stepline").mkdir(parents=True)
    (tmp_path / "other/stepline/__init__.py").write_text("__version__ = '0.0.1'")
    done = run_alone(tools, "--dry-run", folder=tmp_path / "copy", packages=tmp_path / "other")
    assert done.returncode == 2
    assert f"error: {wanted}, the package is 0.0.1: {install}" in done.stderr.splitlines()


@pytest.mark.slow
def test_a_prefix_is_one_line(real_data: Path, tmp_path: Path) -> None:
    write_workflow(tmp_path, repr(str(ROOT / "Snakefile")), more='    prefix: "study"')
    done = run_module(tmp_path, "--dry-run", mirror=real_data)
    assert done.returncode == 2
    [line] = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert line == "error: module: jobs write to the work folder: remove `prefix`, and set a folder with `workdir:`"


@pytest.mark.slow
@pytest.mark.parametrize("before", ["", "shell.prefix('set -e -o pipefail; KEPT=${{HOME}}; ')\n"])
def test_the_users_own_shell_stays_as_it_was(real_data: Path, tmp_path: Path, before: str) -> None:
    """What runs before their commands: by default, that a pipe fails where a part of it does."""
    own = 'rule own:\n    output: touch("own.txt")\n    shell: "false | true"\n'
    write_workflow(tmp_path, repr(str(ROOT / "Snakefile")), before=before, more="")
    with open(tmp_path / "workflow/Snakefile", "a") as file:
        file.write(own + 'rule kept:\n    output: "kept.txt"\n    shell: "echo ${{KEPT-none}} > {output}"\n')
    done = run_module(tmp_path, "--keep-going", "--", "own.txt", "kept.txt", mirror=real_data)
    assert done.returncode == 1
    assert not (tmp_path / "own.txt").exists()
    assert (tmp_path / "kept.txt").read_text().strip() == (os.environ["HOME"] if before else "none")
