"""Encode the texts of one recording into the text store of a text encoder."""

from collections.abc import Iterator

from stepline import paths
from stepline.availability import read_manifest, write_manifest
from stepline.backbones.registry import text_encoder
from stepline.benchmarks.spacewalk.benchmark import Spacewalk
from stepline.benchmarks.spacewalk.demand import texts
from stepline.benchmarks.spacewalk.items import read_items
from stepline.benchmarks.spacewalk.text import load_text
from stepline.features.text import encode_texts
from stepline.io import write_json
from stepline.models.context import SEGMENT_S


def encode(plan: Spacewalk, release_name: str, task: str, video: str, encoder_name: str) -> None:
    """Encode the steps' texts, and the other texts of a recording that `texts` returns for the configured tables.

    Writes a manifest. If the recording has no transcript, the manifest repeats the reason.
    """
    speech, spec = plan.pipeline.speech, plan.pipeline.features.spec_of(encoder_name)
    manifest = paths.text_manifest(plan.name, release_name, task, video, spec)
    if plan.options["transcripts"] == "asr":
        made = read_manifest(paths.manifest(speech.folder, speech.videos.shards[video]))[video]
        if made["status"] != "present":
            write_manifest(manifest, {video: {"status": made["status"], "reason": made["reason"]}})
            return
    release, wanted = plan.released.load(release_name), texts(plan, task, encoder_name)
    text = load_text(plan, release, video)
    items = read_items(release, task, release.recordings[video].split)[video]

    def wanted_texts() -> Iterator[str]:
        for narration, caption in text.step_texts():
            yield from (narration, caption)
        for length_s in wanted["windows"]:
            for window_texts in text.windows(items, length_s):
                yield from window_texts
        if "sentences" in wanted["others"]:
            yield from (sentence.text for sentence in text.sentences)
        if "segments" in wanted["others"]:
            yield from text.segments(SEGMENT_S)

    write_json(paths.spec_record(spec), spec.record())
    encoder = text_encoder(encoder_name, plan.config)
    encode_texts(wanted_texts(), encoder, paths.text_store(plan.name, video, spec), what=f"{encoder_name} {video}")
    write_manifest(manifest, {video: {"status": "present", "reason": ""}}, spec=spec.record())
