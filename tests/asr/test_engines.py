import subprocess
import sys
from pathlib import Path

import pytest

from stepline.asr import engines, weights
from stepline.asr.transcribe import ENGINES
from stepline.config import validate
from stepline.needs import Need
from stepline.plans import pipeline

ENVS = Path(__file__).parents[2] / "envs"
WHISPER = {"model": "small.en", "decoding": "beam", "words": False}


def test_what_is_asked_counts_and_where_it_is_asked_does_not() -> None:
    options = {"model": "nova-3", "url": "https://api.deepgram.com", "concurrency": 4}
    chosen = engines.recogniser("deepgram", options)
    assert chosen == engines.recogniser("deepgram", options | {"url": "http://127.0.0.1", "concurrency": 1})
    assert chosen != engines.recogniser("deepgram", options | {"model": "nova-2"})
    assert chosen != engines.recogniser("pocketsphinx", {})


def test_a_checkpoint_counts_by_its_bytes_and_not_by_its_path(tmp_path: Path) -> None:
    chosen = engines.recogniser("whisper", WHISPER)
    assert chosen["model"] == weights.WHISPER["small.en"][1]
    assert chosen != engines.recogniser("whisper", WHISPER | {"decoding": "hirest"})
    assert chosen != engines.recogniser("whisper", WHISPER | {"words": True})
    for name, content in [("a.pt", b"1"), ("b.pt", b"1"), ("c.pt", b"2")]:
        (tmp_path / name).write_bytes(content)
    a, b, c = (engines.recogniser("whisper", WHISPER | {"model": f"{tmp_path}/{name}.pt"}) for name in "abc")
    assert a == b != c
    assert str(tmp_path) not in str(a)


def test_a_model_of_faster_whisper_counts_by_all_its_files(tmp_path: Path) -> None:
    def identity() -> str:
        return str(engines.recogniser("faster_whisper", {"model": f"{tmp_path}/m"})["model"])

    (tmp_path / "m").mkdir()
    assert identity() == ""
    found = set()
    for name in (*weights.MODEL_FILES, "vocabulary.json"):
        (tmp_path / "m" / name).write_bytes(b"1")
        found.add(identity())
    (tmp_path / "m/README.md").write_bytes(b"1")
    found.add(identity())
    assert len(found) == 3  # none before all of MODEL_FILES are there, then with and without the vocabulary


def test_another_revision_is_another_parameter_of_the_job(monkeypatch: pytest.MonkeyPatch) -> None:
    before = pipeline(validate({"demo": {}}), "demo").speech.params("000")
    monkeypatch.setattr(engines, "REVISION", engines.REVISION + 1)
    assert pipeline(validate({"demo": {}}), "demo").speech.params("000") != before


def test_what_an_engine_lacks_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DEEPGRAM_API_KEY", raising=False)
    monkeypatch.delenv("STEPLINE_CONDA", raising=False)
    monkeypatch.setattr(engines, "find_spec", lambda name: None)
    assert engines.missing("pocketsphinx", {}) == (Need("package", "pocketsphinx"),)
    assert engines.missing("deepgram", {"model": "nova-3"}) == (
        Need("package", "deepgram"),
        Need("key", "DEEPGRAM_API_KEY"),
    )
    assert engines.missing("whisper", WHISPER) == (Need("package", "whisper"), Need("weights", "whisper/small.en"))
    monkeypatch.setenv("STEPLINE_CONDA", "1")
    monkeypatch.setenv("DEEPGRAM_API_KEY", "a")
    assert engines.missing("pocketsphinx", {}) == engines.missing("deepgram", {}) == ()
    assert engines.missing("faster_whisper", {"model": "small.en"}) == (Need("weights", "faster-whisper/small.en"),)
    assert engines.missing("whisper", {"model": f"{tmp_path}/a.pt"}) == (Need("weights", f"{tmp_path}/a.pt"),)
    (tmp_path / "a.pt").touch()
    assert engines.missing("whisper", {"model": f"{tmp_path}/a.pt"}) == ()


def test_every_engine_has_a_package_and_an_environment() -> None:
    schema = validate({})["asr"]
    assert engines.ENVIRONMENTS.keys() == engines.THREADS.keys() == ENGINES.keys()
    for engine, environment in engines.ENVIRONMENTS.items():
        assert (ENVS / f"{environment}.yaml").is_file()
        assert ENGINES[engine](**schema.get(engine, {})).concurrency >= 1


def test_the_workflow_can_ask_without_heavy_packages() -> None:
    code = (
        "import sys; from stepline.asr.engines import missing;"
        "missing('whisper', {'model': 'small.en'}); missing('deepgram', {});"
        "print([m for m in ('numpy', 'torch', 'whisper', 'httpx', 'pyarrow', 'deepgram') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
