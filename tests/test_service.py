from pathlib import Path

import pytest

from stepline.needs import Need
from stepline.service import KEY, missing, record

OPTIONS = {"model": "m", "url": "https://api.openai.com/v1", "max_tokens": 1, "concurrency": 4}
PAID = [Need("key", KEY)]


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


def test_a_model_must_be_named_another_service_may_want_no_key_and_how_many_are_asked_decides_no_answer() -> None:
    assert missing("toy", OPTIONS | {"model": None}, []) == [Need("config", "toy.llm.model", "NAME")]
    for url in ("http://localhost:8000/v1", "https://api.openai.com.example.org/v1"):
        assert missing("toy", OPTIONS | {"url": url}, [Path("c.parquet")]) == []
    assert record(OPTIONS) == {"model": "m", "url": "https://api.openai.com/v1", "max_tokens": 1}
