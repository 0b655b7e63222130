"""Each revision beside a digest of the source that it stands for.

The workflow does not see imported modules: it makes numbers again where a revision changes, not where code does. So
``revisions.json`` holds what the source was when somebody last said that its revision is right.
After a change run ``python -m tests.backbones.test_revisions`` from the repository's root; that writes the file anew.
"""

import hashlib
import json
from pathlib import Path

import pytest
from stepline.benchmarks.spacewalk.entries import KINDS
from stepline.benchmarks.spacewalk.plan import SCORING

from stepline.asr.engines import REVISION as ASR
from stepline.backbones.named import REVISION as NAMED
from stepline.backbones.registry import FRAME_BACKBONES, presets, towers
from stepline.backbones.sentence import sentence_spec
from stepline.benchmark.source import code_text
from stepline.benchmarks.oepp.benchmark import Oepp
from stepline.benchmarks.pss.benchmark import Pss
from stepline.media import REVISION as MEDIA
from stepline.media import SHOTS_REVISION as SHOTS

SOURCE = Path(__file__).parents[2] / "src" / "stepline"
RECORDED = Path(__file__).with_name("revisions.json")
BENCHMARK = "benchmarks/spacewalk"
PSS = "benchmarks/pss"
OEPP = "benchmarks/oepp"
ROWS = [
    *(f"features/{name}.py" for name in ("clips", "frames", "cache")),
    *(f"media/{name}.py" for name in ("decode", "decord", "read", "spans", "timeline")),
]
"""From a video to the rows of a backbone, whichever it is."""
CLIPS = [*ROWS, "features/network.py", "backbones/picture.py"]
"""The same for networks."""
FAMILIES = {
    "s3d": ["s3d"],
    "videoclip": ["videoclip", "s3d"],
    "timesformer": ["timesformer"],
    "egovlp": ["egovlp"],
    "internvideo": ["internvideo", "clip_text"],
    "eva_clip": ["eva_clip", "clip_text"],
}
SOURCES = {
    "histogram": ["backbones/histogram.py", *ROWS],
    **{family: [*(f"backbones/{name}.py" for name in names), *CLIPS] for family, names in FAMILIES.items()},
    "named": [
        *(f"backbones/{name}.py" for name in ("named", "hf_models", "open_clip_models", "still", "timm_models")),
        *CLIPS,
    ],
    "media": [f"media/{name}.py" for name in ("audio", "cut", "decode", "one_pass", "prepare", "scores", "spans")],
    "shots": ["shots.py"],
    "asr": [
        f"asr/{name}.py"
        for name in (
            "chunks",
            "deepgram",
            "faster_whisper",
            "pocketsphinx",
            "segments",
            "transcribe",
            "transcript",
            "whisper",
        )
    ],
    "sentence": ["backbones/sentence.py"],
    "kinds": [
        *(f"{BENCHMARK}/{name}.py" for name in ("features", "items", "material", "samples", "text", "windows")),
        *sorted(str(path.relative_to(SOURCE)) for path in (SOURCE / BENCHMARK / "methods").glob("*.py")),
        "features/bank.py",
        *(f"models/{name}.py" for name in ("all_layer", "context", "hmm", "lfb", "linear", "training", "tw_finch")),
    ],
    "scoring": [
        f"{BENCHMARK}/score.py",
        *(f"metrics/{name}.py" for name in ("accuracy", "average_precision", "bootstrap", "threshold")),
    ],
    "pss kinds": [
        *(f"{PSS}/{name}.py" for name in ("inputs", "words")),
        *sorted(str(path.relative_to(SOURCE)) for path in (SOURCE / PSS / "methods").glob("*.py")),
        *("datasets/pss.py", "features/bank.py", "features/resize.py", "metrics/segments.py", "metrics/soda.py"),
        "runs/inputs.py",
        *(f"models/{name}.py" for name in ("deformable", "matching", "procnet", "training")),
        *(f"models/{name}.py" for name in ("pdvc", "pdvc_captions", "pdvc_loss")),
    ],
    "pss scoring": [
        *(f"{PSS}/score.py", "runs/score.py"),
        *(f"metrics/{name}.py" for name in ("bootstrap", "captions", "dense_captions", "meteor", "segments", "soda")),
    ],
    "oepp kinds": [
        *(f"{OEPP}/{name}.py" for name in ("features", "inputs", "pictures", "prompts", "windows")),
        *sorted(str(path.relative_to(SOURCE)) for path in (SOURCE / OEPP / "methods").glob("*.py")),
        *("datasets/oepp.py", "datasets/openevent.py", "features/bank.py"),
        *(f"models/{name}.py" for name in ("diffusion", "plan_loss", "planners", "training")),
    ],
    "oepp scoring": [f"{OEPP}/score.py", "runs/score.py", "metrics/bootstrap.py", "metrics/plans.py"],
}
REVISIONS = {
    "histogram": FRAME_BACKBONES["histogram"].spec.revision,
    **{
        family: {
            spec.name: spec.revision
            for spec in (*presets().values(), *towers().values())
            if spec.architecture == family
        }
        for family in FAMILIES
    },
    "named": NAMED,
    "media": MEDIA,
    "shots": SHOTS,
    "asr": ASR,
    "sentence": sentence_spec("minilm").revision,
    "kinds": {name: kind.revision for name, kind in KINDS.items()},
    "scoring": SCORING,
    "pss kinds": {name: kind.revision for name, kind in Pss.kinds.items()},
    "pss scoring": Pss.revision,
    "oepp kinds": {name: kind.revision for name, kind in Oepp.kinds.items()},
    "oepp scoring": Oepp.revision,
}
WHERE = {
    "histogram": "revision of HistogramSpec",
    **{family: f"revision of the specs in backbones/presets/{family}.py" for family in FAMILIES},
    "named": "REVISION in backbones/named.py",
    "media": "REVISION in media/__init__.py",
    "shots": "SHOTS_REVISION in media/__init__.py",
    "asr": "REVISION in asr/engines.py",
    "sentence": "revision in sentence_spec",
    "kinds": "revision of each such kind in KINDS (entries.py)",
    "scoring": "SCORING in plan.py",
    "pss kinds": "revision of each such kind in KINDS (benchmarks/pss/kinds.py)",
    "pss scoring": "revision of Pss (benchmarks/pss/benchmark.py)",
    "oepp kinds": "revision of each such kind in KINDS (benchmarks/oepp/kinds.py)",
    "oepp scoring": "revision of Oepp (benchmarks/oepp/benchmark.py)",
}


def digest(source: str) -> str:
    """Return 16 hex digits of the code alone."""
    return hashlib.sha256(code_text(source).encode()).hexdigest()[:16]


def current(name: str) -> dict[str, object]:
    return {
        "revision": REVISIONS[name],
        "sources": {path: digest((SOURCE / path).read_text(encoding="utf-8")) for path in SOURCES[name]},
    }


@pytest.mark.parametrize("name", SOURCES)
def test_the_revision_was_looked_at_since_the_source_changed(name: str) -> None:
    recorded, now = json.loads(RECORDED.read_text(encoding="utf-8")).get(name), current(name)
    assert recorded == now, (
        f"the source of {name} or its revision changed. Where numbers change, raise the {WHERE[name]}; then, in either "
        "case, run: python -m tests.backbones.test_revisions"
    )


def test_every_module_of_a_backbone_is_recorded() -> None:
    not_numbers = {"__init__.py", "registry.py", "weights.py", "checkpoint.py", "file.py", "torchvision.py"}
    modules = {path.name for path in (SOURCE / "backbones").glob("*.py")} - not_numbers
    assert modules == {Path(path).name for paths in SOURCES.values() for path in paths if path.startswith("backbones")}
    metrics = {f"metrics/{path.name}" for path in (SOURCE / "metrics").glob("*.py")}
    assert metrics - {"metrics/__init__.py", "metrics/agreement.py"} == {
        path
        for name in ("scoring", "pss scoring", "oepp scoring")
        for path in SOURCES[name]
        if path.startswith("metrics/")
    }


if __name__ == "__main__":
    RECORDED.write_text(json.dumps({name: current(name) for name in SOURCES}, indent=2) + "\n", encoding="utf-8")
    print(f"{RECORDED} holds the source as it is now")
