"""Each revision beside a digest of the source that it stands for.

The workflow does not see imported modules: it makes numbers again where a revision changes, not where code does. So
``revisions.json`` holds what the source was when somebody last said that its revision is right.
After a change run ``python -m tests.backbones.test_revisions`` from the repository's root; that writes the file anew.
"""

import ast
import hashlib
import json
from pathlib import Path

import pytest

from stepline.asr.engines import REVISION as ASR
from stepline.backbones.named import REVISION as NAMED
from stepline.backbones.registry import FRAME_BACKBONES, presets, towers
from stepline.backbones.sentence import sentence_spec
from stepline.media import REVISION as MEDIA
from stepline.media import SHOTS_REVISION as SHOTS
from stepline.plans import BENCHMARKS
from stepline.syntax import code_text, imported

SOURCE = Path(__file__).parents[2] / "src" / "stepline"
RECORDED = Path(__file__).with_name("revisions.json")
ROWS = [
    *(f"features/{name}.py" for name in ("clips", "frames", "cache")),
    *(f"media/{name}.py" for name in ("decode", "decord", "read", "spans", "timeline")),
]
"""From a video to the rows of a backbone, whichever it is."""
CLIPS = [*ROWS, "features/encoder.py", "features/network.py", "backbones/picture.py"]
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
        *(
            f"backbones/{name}.py"
            for name in (
                "named",
                "hf_models",
                "hf_video_models",
                "open_clip_models",
                "still",
                "timm_models",
                "tokens",
                "torchvision_models",
            )
        ),
        *CLIPS,
    ],
    "media": [f"media/{name}.py" for name in ("audio", "decode", "one_pass", "prepare", "scores", "spans")],
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
}
WHERE = {
    "histogram": "revision of HistogramSpec",
    **{family: f"revision of the specs in backbones/presets/{family}.py" for family in FAMILIES},
    "named": "REVISION in backbones/named.py",
    "media": "REVISION in media/__init__.py",
    "shots": "SHOTS_REVISION in media/__init__.py",
    "asr": "REVISION in asr/engines.py",
    "sentence": "revision in sentence_spec",
}


BESIDES = {
    "spacewalk": ["stepline.benchmarks.spacewalk.samples"],
    "oepp": ["stepline.datasets.openevent"],
    "segments": ["stepline.benchmarks.segments.methods", "stepline.benchmarks.segments.zero_shot"],
}
"""What other jobs make and methods read, and methods that have no folder."""


def reached(package: str, *modules: str) -> list[str]:
    """Return the files of modules and of what they import.

    Imports are followed within the benchmark's package, but for its declaration, the models, the metrics and the
    inputs and scores that all share; of data sets and features what is imported itself is named.
    """
    followed = (
        f"stepline.benchmarks.{package}.",
        "stepline.models.",
        "stepline.metrics.",
        "stepline.runs.inputs",
        "stepline.runs.score",
    )
    named = *followed, "stepline.datasets.", "stepline.features."
    declaration = {f"stepline.benchmarks.{package}.{name}" for name in ("benchmark", "kinds")}
    found: dict[str, str] = {}
    waiting = list(modules)
    while waiting:
        module = waiting.pop()
        path = SOURCE.parent / f"{module.replace('.', '/')}.py"
        if module in found or module in declaration or not module.startswith(named) or not path.is_file():
            continue
        found[module] = str(path.relative_to(SOURCE))
        if module in modules or module.startswith(followed):
            waiting += imported(ast.parse(path.read_text(encoding="utf-8")), module.rpartition(".")[0])
    return sorted(found.values())


for benchmark in BENCHMARKS:
    package, of = benchmark.folder.name, f"benchmarks/{benchmark.folder.name}"
    methods = [f"stepline.{of.replace('/', '.')}.methods.{path.stem}" for path in (SOURCE / of).glob("methods/*.py")]
    kinds, scoring = f"{package} kinds", f"{package} scoring"
    SOURCES[kinds] = reached(package, *methods, *BESIDES.get(package, ()))
    SOURCES[scoring] = reached(package, f"stepline.benchmarks.{package}.score", "stepline.runs.score")
    REVISIONS[kinds] = {name: kind.revision for name, kind in benchmark.kinds.items()}
    REVISIONS[scoring] = benchmark.revision
    WHERE[kinds] = f"revision of each such kind ({of})"
    WHERE[scoring] = f"revision of {benchmark.__name__} ({of}/benchmark.py)"


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
    not_numbers = {
        "__init__.py",
        "registry.py",
        "weights.py",
        "checkpoint.py",
        "file.py",
        "beside.py",
        "torchvision.py",
    }
    modules = {path.name for path in (SOURCE / "backbones").glob("*.py")} - not_numbers
    assert modules == {Path(path).name for paths in SOURCES.values() for path in paths if path.startswith("backbones")}
    metrics = {f"metrics/{path.name}" for path in (SOURCE / "metrics").glob("*.py")}
    assert metrics - {f"metrics/{name}.py" for name in ("__init__", "agreement")} == {
        path for paths in SOURCES.values() for path in paths if path.startswith("metrics/")
    }


if __name__ == "__main__":
    RECORDED.write_text(json.dumps({name: current(name) for name in SOURCES}, indent=2) + "\n", encoding="utf-8")
    print(f"{RECORDED} holds the source as it is now")
