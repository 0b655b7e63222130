from pathlib import Path

import pytest

import stepline
from stepline import needs
from stepline.errors import StoreError
from stepline.needs import Need, absent, how_to_install, in_order
from tests.conftest import ROOT


@pytest.mark.parametrize(
    "text", ["weights:s3d-pss", "java", "config:oepp.llm.model=NAME", "features:r3d/youcook2", "key:OPENAI_API_KEY"]
)
def test_text_and_back(text: str) -> None:
    assert str(Need.parse(text)) == text


def test_a_value_belongs_to_the_configuration_alone() -> None:
    assert Need.parse("config:spacewalk.text_encoders=mpnet") == Need("config", "spacewalk.text_encoders", "mpnet")
    assert Need.parse("videos:a=b") == Need("videos", "a=b")


def test_another_text_is_an_error_of_one_line() -> None:
    with pytest.raises(StoreError, match="'moon:dust' is not a need"):
        Need.parse("moon:dust")


def test_what_is_not_here_is_absent_where_jobs_have_no_environments(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = Need("java"), Need("package", "pytest"), Need("package", "no_such_package")
    monkeypatch.setenv("PATH", "")
    assert absent(*wanted) == (wanted[0], wanted[2])
    monkeypatch.setenv("STEPLINE_CONDA", "1")
    assert absent(*wanted) == ()


def test_an_extra_is_installed_in_a_checkout_or_for_a_release(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "stepline").symlink_to(ROOT / "src/stepline")  # as jobs import it
    for file in (needs.__file__, str(tmp_path / "stepline/needs.py")):
        monkeypatch.setattr(needs, "__file__", file)
        assert how_to_install("s3") == "pip install -c constraints.txt -e '.[s3]'"
    monkeypatch.setattr(needs, "__file__", str(tmp_path / "site-packages/stepline/needs.py"))
    assert how_to_install("s3") == f"pip install 'stepline[s3]=={stepline.__version__}'"


def test_each_need_once_in_order() -> None:
    ordered = Need("java"), Need("labels", "a"), Need("videos", "b"), Need("videos", "a"), Need("key", "X")
    assert in_order([ordered[4], ordered[2], ordered[1], ordered[3], ordered[2], ordered[0]]) == ordered
