from pathlib import Path

import pytest

from stepline.needs import Need
from stepline.service import KEY, missing, record

OPTIONS = {"model": "m", "url": "https://api.openai.com/v1", "max_tokens": 1, "concurrency": 4}
PAID = [Need("key", KEY)]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(KEY, raising=False)


def test_a_model_must_be_named() -> None:
    assert missing("toy", OPTIONS | {"model": None}, []) == [Need("config", "toy.llm.model", "NAME")]


def test_openai_wants_a_key_until_all_predictions_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    made = [Path("a.parquet"), Path("b.parquet")]
    assert missing("toy", OPTIONS, made) == PAID
    made[0].touch()
    assert missing("toy", OPTIONS, made) == PAID
    made[1].touch()
    assert missing("toy", OPTIONS, made) == []
    monkeypatch.setenv(KEY, " ")
    assert missing("toy", OPTIONS, [Path("c.parquet")]) == PAID
    monkeypatch.setenv(KEY, "sk-x")
    assert missing("toy", OPTIONS, [Path("c.parquet")]) == []


@pytest.mark.parametrize("url", ["http://localhost:8000/v1", "https://api.openai.com.example.org/v1"])
def test_another_service_may_want_none(url: str) -> None:
    assert missing("toy", OPTIONS | {"url": url}, [Path("c.parquet")]) == []


def test_how_many_are_asked_at_once_decides_no_answer() -> None:
    assert record(OPTIONS) == {"model": "m", "url": "https://api.openai.com/v1", "max_tokens": 1}
