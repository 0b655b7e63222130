"""Models of transformers on a GPU; their answers are tested by language and against the library elsewhere."""

from pathlib import Path

import pytest

from stepline.asr import transformers as engine
from stepline.backbones.torchvision import make_importable
from tests.asr.speech import speech
from tests.gpu import GPU

pytest.importorskip("av")
pytest.importorskip("torch")
pytest.importorskip("whisper")
make_importable()
pytest.importorskip("transformers")

from tests.asr import models  # noqa: E402


@pytest.mark.gpu
def test_it_runs_on_a_gpu(tmp_path: Path) -> None:
    model = models.whisper(tmp_path / "model", multilingual=True)
    made = engine.Transformers(model=str(model), language="auto", on={"device": GPU, "jobs_per_gpu": 1})
    assert made.heard(made.answer(speech())).spoken
    assert engine._load(model, GPU).network.device.type == GPU
