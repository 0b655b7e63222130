"""The cache key of a transcript and the needs of its engine. The workflow imports this: nothing heavy is imported."""

import os
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

from stepline.asr import weights
from stepline.asr.languages import ENGLISH
from stepline.needs import Need

REVISION = 3
"""The revision of recognition by any engine: raise it with a change that gives other transcripts."""
ENVIRONMENTS = {
    "pocketsphinx": "media",
    "deepgram": "media",
    "whisper": "whisper",
    "faster_whisper": "media",
}
"""Engine, which is also its package's name -> the file in ``envs/`` that installs it."""
THREADS = {"pocketsphinx": 4, "deepgram": 1, "whisper": 4, "faster_whisper": 4}
"""Engine -> its number of threads. It is fixed for networks, as sums depend on it."""
PROCESSES = {"pocketsphinx": 4}
"""Engine -> its number of processes, each with one video at a time, if it holds Python's global lock."""
KEYS = {"deepgram": "DEEPGRAM_API_KEY"}
"""The environment variable with the key of an engine that needs one."""
ELSEWHERE = ("url", "concurrency")
"""Options of the address and speed of an engine, which do not change its transcripts."""


def recogniser(engine: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the cache key of a transcript apart from the audio: the engine, its options, its model's sha256.

    A language is part of the key unless it is English, the only language of earlier versions.
    """
    chosen = {name: value for name, value in options.items() if name not in ELSEWHERE}
    if chosen.get("language") == ENGLISH:
        del chosen["language"]
    if engine in weights.FOLDERS:
        chosen["model"] = weights.identity(engine, chosen["model"])
    return {"engine": engine, "asr_revision": str(REVISION), **chosen}


def missing(engine: str, options: Mapping[str, Any]) -> tuple[Need, ...]:
    """Return the missing needs of the engine: its package, weights or key.

    With ``STEPLINE_CONDA`` set, its rule installs the package. Raises ConfigError if the model's name is unknown.
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
    """Return the engine's key from the environment, or "" if it is not set. It is never written anywhere."""
    return os.environ.get(KEYS[engine], "").strip()


def absent_key(engine: str) -> str:
    """Return the name of the environment variable that the engine needs if it is not set, otherwise ""."""
    return KEYS[engine] if engine in KEYS and not key(engine) else ""
