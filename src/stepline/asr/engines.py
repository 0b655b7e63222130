"""What a transcript depends on and what its engine needs. The workflow asks too: nothing heavy is imported."""

import os
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

from stepline.asr import weights
from stepline.needs import Need

REVISION = 3
"""Of how a recording is recognised, by any engine: raise it with a change that gives other transcripts."""
ENVIRONMENTS = {
    "pocketsphinx": "asr",
    "deepgram": "asr",
    "whisper": "whisper",
    "faster_whisper": "faster-whisper",
}
"""Engine, which is its package's name too -> the file in ``envs/`` that holds it."""
THREADS = {"pocketsphinx": 4, "deepgram": 1, "whisper": 4, "faster_whisper": 4}
"""Engine -> on how many threads it computes. Fixed for networks, as sums depend on how many share them."""
PROCESSES = {"pocketsphinx": 4}
"""Engine -> by how many processes, as it holds Python's lock, each of which hears a video."""
KEYS = {"deepgram": "DEEPGRAM_API_KEY"}
"""The environment variable with the key of an engine that needs one."""
ELSEWHERE = ("url", "concurrency")
"""Options that say where and how fast an engine is asked, not what for."""


def recogniser(engine: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return what decides a transcript besides the audio: the engine, its options, its model as a sha256."""
    chosen = {name: value for name, value in options.items() if name not in ELSEWHERE}
    if engine in weights.FOLDERS:
        chosen["model"] = weights.identity(engine, chosen["model"])
    return {"engine": engine, "asr_revision": str(REVISION), **chosen}


def missing(engine: str, options: Mapping[str, Any]) -> tuple[Need, ...]:
    """Return what the engine is missing before it can run: its package, weights, a key.

    With ``STEPLINE_CONDA`` set its rule brings the package. Raises ConfigError where its model's name is not known.
    """
    absent: list[Need] = []
    if not os.environ.get("STEPLINE_CONDA") and find_spec(engine) is None:
        absent.append(Need("package", engine))
    if engine in weights.FOLDERS and weights.locate(engine, options["model"]) is None:
        absent.append(Need("weights", weights.item(engine, options["model"])))
    if absent_key(engine):
        absent.append(Need("key", absent_key(engine)))
    return tuple(absent)


def key(engine: str) -> str:
    """Return the engine's key from the environment, "" where it is unset. It is never written anywhere."""
    return os.environ.get(KEYS[engine], "").strip()


def absent_key(engine: str) -> str:
    """Return the environment variable that the engine needs and that is unset, "" where nothing is absent."""
    return KEYS[engine] if engine in KEYS and not key(engine) else ""
