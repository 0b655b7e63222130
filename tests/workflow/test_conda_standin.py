"""The stand-in for conda; `test_conda` runs the workflow with it."""

from importlib.metadata import version
from pathlib import Path

import pytest

from tests.workflow.conda_standin import EnvironmentFileError, main, pins


def env(*packages: str, pip: tuple[str, ...] = ()) -> str:
    lines = [f"  - {package}" for package in ("python=3.11", *packages)]
    if pip:
        lines += ["  - pip=1.0", "  - pip:", *(f"      - {package}" for package in pip)]
    return "\n".join(["channels: [conda-forge, nodefaults]", "dependencies:", *lines, ""])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (env("numpy=1.0.0"), f"numpy is {version('numpy')} here and 1.0.0 in the file"),
        (env(pip=("no-such-package==1.0",)), "no-such-package is not installed"),
    ],
    ids=["version", "absent"],
)
def test_a_file_that_differs_from_what_is_installed_is_refused(
    tmp_path: Path, content: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "env.yaml").write_text(content)
    words = "env", "create", "--file", str(tmp_path / "env.yaml"), "--prefix", str(tmp_path / "prefix")
    assert main(str(tmp_path), *words) == 1
    assert message in capsys.readouterr().err
    assert not (tmp_path / "prefix").exists()


def test_pins_are_read_under_the_names_of_pypi() -> None:
    content = env("pytorch=2.13.0", "yt-dlp", pip=("--only-binary=pocketsphinx", "pocketsphinx==5.0.4"))
    assert pins(content) == {
        "python": "3.11", "torch": "2.13.0", "yt-dlp": "", "pip": "1.0", "pocketsphinx": "5.0.4"
    }  # fmt: skip


@pytest.mark.parametrize("package", ["numpy>=2", "numpy==2.4.6", "numpy=2.*"])
def test_a_range_is_refused(package: str) -> None:
    with pytest.raises(EnvironmentFileError, match="neither a name nor name=version"):
        pins(env(package))
