import pytest

from stepline import paths
from stepline.availability import read_manifest, write_manifest
from stepline.benchmarks.spacewalk import encode
from stepline.datasets.studies import RETRIEVAL, STEP_RECOGNITION
from stepline.features.text import TextStore
from tests.benchmarks.spacewalk.conftest import MadeUp, TinyEncoder


@pytest.mark.parametrize("others", [[], ["sentences"], ["segments"]])
@pytest.mark.parametrize(("task", "table"), [(STEP_RECOGNITION, "2a"), (RETRIEVAL, "2b")])
def test_texts_of_steps_and_of_windows_are_encoded_and_no_others(
    made_up: MadeUp, task: str, table: str, others: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs = made_up.inputs({"kind": "zero-shot", "encoder": "minilm", "table": table})
    plan, spec, text = inputs.benchmark, TinyEncoder.spec, inputs.text("d")
    vars(plan.pipeline.features)["spec_of"] = lambda name: spec
    object.__setattr__(made_up.study, "load", lambda name: made_up.release)
    monkeypatch.setattr(encode, "text_encoder", lambda name, config: TinyEncoder())
    monkeypatch.setattr(encode, "texts", lambda *_: {"windows": [4.0, 6.0], "others": others})
    encode.encode(plan, "demo", task, "d", "minilm")

    expected = {part for texts in text.step_texts() for part in texts}
    times_s = [time_s for item in inputs.items("test")["d"] for time_s in (item.t_s, *item.candidates_s)]
    for half_s in (2.0, 3.0):
        for time_s in times_s:
            spoken = [s.text for s in text.sentences if s.start_s < time_s + half_s and s.end_s > time_s - half_s]
            expected.add(" ".join(spoken))
    expected |= {sentence.text for sentence in text.sentences if "sentences" in others}
    expected |= {*text.segments(12)} if "segments" in others else set()
    store = TextStore(paths.text_store("demo", "d", spec), spec)
    assert len(store.rows) == len(expected)
    assert store([*expected]).shape == (len(expected), 6)
    manifest = read_manifest(paths.text_manifest("demo", "demo", task, "d", spec))
    assert manifest == {"d": {"status": "present", "reason": ""}}


def test_a_recording_without_a_transcript_has_its_reason(made_up: MadeUp) -> None:
    plan = made_up.inputs({"kind": "zero-shot", "encoder": "minilm"}).benchmark
    vars(plan.pipeline.features)["spec_of"] = lambda name: TinyEncoder.spec
    plan.options["transcripts"] = "asr"
    speech = plan.pipeline.speech
    about = {"status": "failed", "reason": "no sound"}
    write_manifest(paths.manifest(speech.folder, speech.videos.shards["d"]), {"d": about})
    encode.encode(plan, "demo", STEP_RECOGNITION, "d", "minilm")
    assert read_manifest(paths.text_manifest("demo", "demo", STEP_RECOGNITION, "d", TinyEncoder.spec)) == {"d": about}
