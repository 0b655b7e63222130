import pytest

from stepline.errors import StoreError
from stepline.needs import Need, absent, in_order


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
    needs = Need("java"), Need("package", "pytest"), Need("package", "no_such_package")
    monkeypatch.setenv("PATH", "")
    assert absent(*needs) == (needs[0], needs[2])
    monkeypatch.setenv("STEPLINE_CONDA", "1")
    assert absent(*needs) == ()


def test_each_need_once_in_order() -> None:
    ordered = Need("java"), Need("labels", "a"), Need("videos", "b"), Need("videos", "a"), Need("key", "X")
    assert in_order([ordered[4], ordered[2], ordered[1], ordered[3], ordered[2], ordered[0]]) == ordered
