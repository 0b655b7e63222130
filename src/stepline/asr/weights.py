"""Checkpoints of Whisper and faster-whisper: their names, locations and download commands.

The workflow imports this: nothing heavy is imported.
"""

import hashlib
import os
import shlex
from pathlib import Path

from stepline.errors import ConfigError
from stepline.io import canonical_json
from stepline.mirror import cached_sha256, mirror_root

_WHISPER = "https://openaipublic.azureedge.net/main/whisper/models"
_SHA256 = {
    "tiny.en": "d3dd57d32accea0b295c96e26691aa14d8822fac7d9d27d5dc00b4ca2826dd03",
    "tiny": "65147644a518d12f04e32d6f3b26facc3f8dd46e5390956a9424a650c0ce22b9",
    "base.en": "25a8566e1d0c1e2231d1c762132cd20e0f96a85d16145c3a00adf5d1ac670ead",
    "base": "ed3a0b6b1c0edf879ad9b11b1af5a0e6ab5db9205f891f668f8b0e6c6326e34e",
    "small.en": "f953ad0fd29cacd07d5a9eda5624af0f6bcf2258be67c92b79389873d91e0872",
    "small": "9ecf779972d90ba49c06d968637d720dd632c55bbf19d441fb42bf17a411e794",
    "medium.en": "d7440d1dc186f76616474e0ff0b3b6b879abc9d1a4926b7adfa41db2d497ab4f",
    "medium": "345ae4da62f9b3d59415adc60127b97c714f32e89e936602e85993674d08dcb1",
    "large-v1": "e4b87e7e0bf463eb8e6956e646f1e277e901512310def2c24bf0e11bd3c28e9a",
    "large-v2": "81f7c96c852ee8fc832187b0132e569d6c3065a3252ed18e56effd0b6a73e524",
    "large-v3": "e5b1a55b89c1367dacf97e3e19bfd829a01529dbfdeefa8caeb59b3f1b81dadb",
    "large-v3-turbo": "aff26ae408abcba5fbf8813c21e62b0941638c5f6eebfb145be0c9839262a19a",
}
WHISPER = {name: (f"{_WHISPER}/{sha256}/{name}.pt", sha256) for name, sha256 in _SHA256.items()}
"""Whisper's checkpoints: name -> URL and sha256, as listed in https://github.com/openai/whisper."""
FASTER_WHISPER = {name: f"Systran/faster-whisper-{name}" for name in _SHA256} | {
    "large-v3-turbo": "mobiuslabsgmbh/faster-whisper-large-v3-turbo"
}
"""faster-whisper's models: name -> repository of the hub, as in https://github.com/SYSTRAN/faster-whisper."""
FOLDERS = {"whisper": "whisper", "faster_whisper": "faster-whisper"}
"""Engine -> the folder of its models in ``weights/``."""
MODEL_FILES = ("config.json", "model.bin", "tokenizer.json")
"""The required files of a faster-whisper model."""
MORE_FILES = ("preprocessor_config.json", "vocabulary.json", "vocabulary.txt")
"""Its optional files, which are read if they exist."""


def locate(engine: str, model: str) -> Path | None:
    """Return the checkpoint's file (whisper) or the model's folder (faster_whisper), or None if it does not exist.

    model: a name, for a model in ``weights/`` or in the mirror, or a path, which contains a ``/``. Raises ConfigError
    if a name is unknown. The content of a named checkpoint is checked when it is loaded.
    """

    def is_whole(path: Path) -> bool:
        return path.is_file() if engine == "whisper" else all((path / name).is_file() for name in MODEL_FILES)

    return next(filter(is_whole, _places(engine, model)), None)


def identity(engine: str, model: str) -> str:
    """Return the model's sha256: pinned for Whisper's names, otherwise of its files; "" if it is absent."""
    path = locate(engine, model)
    if engine == "whisper" and model in WHISPER:
        return WHISPER[model][1]
    if path is None:
        return ""
    if engine == "whisper":
        return cached_sha256(path)
    files = {name: cached_sha256(path / name) for name in MODEL_FILES + MORE_FILES if (path / name).is_file()}
    return hashlib.sha256(canonical_json(files).encode()).hexdigest()


def item(engine: str, model: str) -> str:
    """Return the model's name in a need ``weights:<name>``."""
    return model if "/" in model else f"{FOLDERS[engine]}/{model}"


def how_to_get(absent: str) -> str:
    """Return a command that downloads or copies the model that ``item`` named."""
    folder, _, name = absent.partition("/")
    if folder == FOLDERS["whisper"] and name in WHISPER:
        return f"stepline fetch weights/{absent}"
    if folder == FOLDERS["faster_whisper"] and name in FASTER_WHISPER:
        return f"hf download {FASTER_WHISPER[name]} --local-dir weights/{absent}"
    place = Path(os.path.expanduser(absent))
    return f"mkdir -p {shlex.quote(str(place.parent))} && cp -r MODEL {shlex.quote(str(place))}"


def _places(engine: str, model: str) -> list[Path]:
    if "/" in model:
        return [Path(os.path.expanduser(model))]
    names = WHISPER if engine == "whisper" else FASTER_WHISPER
    if model not in names:
        raise ConfigError(f"asr.{engine}.model: {model!r} is not allowed; choose from {', '.join(names)}, or a path")
    path = Path("weights", FOLDERS[engine], f"{model}.pt" if engine == "whisper" else model)
    root = mirror_root()
    return [path, root / path] if root else [path]
