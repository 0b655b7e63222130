"""Steps by HiREST's joint model: what it is given and what becomes of what it says, with a small random network."""

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("tokenizers")

from stepline.asr.transcript import Sentence  # noqa: E402
from stepline.backbones.sentence import model_files  # noqa: E402
from stepline.models.hirest_joint import Joint, Videos  # noqa: E402
from stepline.models.hirest_joint_config import JointConfig  # noqa: E402
from stepline.models.hirest_joint_words import Words  # noqa: E402
from stepline.search import joint  # noqa: E402
from stepline.search.joint import joint_steps, load_joint  # noqa: E402

CONFIG = JointConfig(
    feature_dim=6, text_dim=5, asr_dim=3, embed=8, hidden=24, layers=1, feedforward=32, positions=64, words=6, slots=4
)
LINES = [Sentence("first", 0.5, 12.0), Sentence("short", 13.1, 13.9), Sentence("last", 20.0, 70.0)]


@pytest.fixture(scope="module")
def model() -> Joint:
    torch.manual_seed(2)
    made = Joint(CONFIG).eval().requires_grad_(False)
    for name, parameter in made.named_parameters():
        parameter.normal_()
        if "decoder" in name and "bias" in name:
            parameter.zero_()
    return made


@pytest.fixture(scope="module")
def given() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    rows, query, vectors = (rng.normal(size=shape) for shape in ((60, 6), 5, (3, 3)))
    return {"rows": (rows / 100).astype(np.float16), "query": query, "lines": LINES, "vectors": vectors}


@pytest.mark.skipif(model_files("minilm") is None, reason="all-MiniLM-L6-v2 is not installed")
def test_steps_are_the_models_and_fill_the_moment(model: Joint, given: dict[str, Any]) -> None:
    steps = joint_steps(model, **given, start_s=9.5, end_s=52.0)
    speech = np.zeros((60, 3))
    speech[0:12], speech[20:60] = given["vectors"][0], given["vectors"][2]
    rows = given["rows"].astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    seen = (torch.tensor(each, dtype=torch.float32)[None] for each in (rows, given["query"], speech))
    videos = Videos(*seen, torch.tensor([60]))
    (found,) = model.segments(videos, torch.tensor([[10, 52]]))
    assert len(found) > 1
    inside = [frame for frame in found if 10 < frame < 52]
    assert [step.start_s for step in steps] == [9.5, *inside]
    assert [step.end_s for step in steps] == [*inside, 52.0]
    edges = torch.tensor([10, *inside, 52])
    ids = model.captions(videos, torch.zeros(len(steps), dtype=torch.int64), torch.stack([edges[:-1], edges[1:]], 1))
    assert [step.label for step in steps] == [Words().decode(each) for each in ids]
    assert len({step.label for step in steps}) > 1


@pytest.mark.skipif(model_files("minilm") is None, reason="all-MiniLM-L6-v2 is not installed")
def test_each_step_takes_time_and_a_video_may_have_as_many_rows_as_the_model_has_places(
    model: Joint, given: dict[str, Any]
) -> None:
    rows = np.vstack([given["rows"], given["rows"][:4]])
    steps = joint_steps(model, **given | {"rows": rows}, start_s=0.0, end_s=60.0)
    assert steps[0].start_s == 0
    assert all(step.start_s < step.end_s for step in steps)


def test_a_video_longer_than_the_model_has_places_has_no_such_steps(model: Joint, given: dict[str, Any]) -> None:
    long = given | {"rows": np.ones((65, 6))}
    assert joint_steps(model, **long, start_s=0, end_s=60) == ()


def test_the_model_is_at_hand_where_weights_and_features_are(monkeypatch: pytest.MonkeyPatch) -> None:
    from stepline.models import hirest_joint_release

    monkeypatch.setattr(hirest_joint_release, "load_released", lambda path: path)
    monkeypatch.setattr(joint, "model_files", lambda name: {"config.json": None} if name == "minilm" else None)
    monkeypatch.setattr(joint, "locate", lambda name: {"HiREST_BEST.pth": "file"} if name == "hirest-joint" else None)
    assert load_joint("eva_clip-hirest") == load_joint("eva_clip-hirest-unnormalised") == "file"
    assert load_joint("eva_clip-hirest-as-released") is None
    monkeypatch.setattr(joint, "locate", lambda name: None)
    assert load_joint("eva_clip-hirest") is None
