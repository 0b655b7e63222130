"""What a transcript depends on and what its engine needs. The workflow asks too: nothing heavy is imported."""

import os
from collections.abc import Mapping

REVISION = 1
"""Of how a recording is recognised, by any engine: raise it with a change that gives other transcripts."""
KEYS = {"deepgram": "DEEPGRAM_API_KEY"}
"""The environment variable with the key of an engine that needs one."""


def recogniser(engine: str, options: Mapping[str, str]) -> dict[str, str]:
    """Return what decides a transcript besides the audio: the engine and its options, less where it is asked."""
    chosen = {name: value for name, value in options.items() if name != "url"}
    return {"engine": engine, "asr_revision": str(REVISION), **chosen}


def key(engine: str) -> str:
    """Return the engine's key from the environment, "" where it is unset. It is never written anywhere."""
    return os.environ.get(KEYS[engine], "").strip()


def absent_key(engine: str) -> str:
    """Return the environment variable that the engine needs and that is unset, "" where nothing is absent."""
    return KEYS[engine] if engine in KEYS and not key(engine) else ""
