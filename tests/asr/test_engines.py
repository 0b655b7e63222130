import pytest

from stepline.asr import engines
from stepline.benchmarks.spacewalk.plan import Plan
from stepline.config import validate


def test_what_is_asked_counts_and_where_it_is_asked_does_not() -> None:
    options = {"model": "nova-3", "url": "https://api.deepgram.com"}
    chosen = engines.recogniser("deepgram", options)
    assert chosen == engines.recogniser("deepgram", options | {"url": "http://127.0.0.1"})
    assert chosen != engines.recogniser("deepgram", options | {"model": "nova-2"})
    assert chosen != engines.recogniser("pocketsphinx", options)


def test_another_revision_is_another_parameter_of_the_job(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = Plan.of(validate({"demo": {}}), "demo")
    before = plan.transcribe_params("000")
    monkeypatch.setattr(engines, "REVISION", engines.REVISION + 1)
    assert plan.transcribe_params("000") != before
