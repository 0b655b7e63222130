"""The texts of one recording -> the text store of a sentence encoder."""

from collections.abc import Iterator

from stepline import paths
from stepline.availability import read_manifest, write_manifest
from stepline.backbones.sentence import SentenceEncoder
from stepline.benchmarks.spacewalk.items import read_items
from stepline.benchmarks.spacewalk.plan import Plan
from stepline.benchmarks.spacewalk.text import load_text
from stepline.features.text import encode_texts
from stepline.io import write_json


def encode(plan: Plan, release_name: str, task: str, video: str, encoder_name: str) -> None:
    """Encode the steps' texts and the windows of all of a recording's samples at all configured lengths.

    Writes a manifest; where the recording has no transcript, it carries the reason on.
    """
    name, source = plan.study.name, plan.study_config["transcripts"]
    encoder = SentenceEncoder(encoder_name)
    manifest = paths.text_manifest(name, release_name, task, video, encoder.spec)
    if source == "asr":
        made = read_manifest(paths.manifest(paths.transcripts(name, plan.engine), plan.shards[video]))[video]
        if made["status"] != "present":
            write_manifest(manifest, {video: {"status": made["status"], "reason": made["reason"]}})
            return
    release = plan.study.load(release_name)
    text = load_text(plan.study, release, video, source=source, engine=plan.engine)
    items = read_items(release, task, release.recordings[video].split)[video]

    def texts() -> Iterator[str]:
        for narration, caption in text.step_texts():
            yield from (narration, caption)
        for length_s in plan.study_config["contexts_s"][task]:
            for item in items:
                for t_s in item.times_s:
                    yield text.window(t_s, length_s)

    write_json(paths.spec_record(encoder.spec), encoder.spec.record())
    encode_texts(texts(), encoder, paths.text_store(name, video, encoder.spec), what=f"{encoder_name} {video}")
    write_manifest(manifest, {video: {"status": "present", "reason": ""}}, spec=encoder.spec.record())
