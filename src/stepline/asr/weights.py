"""Checkpoints of Whisper, faster-whisper and transformers: their names, locations and download commands.

The workflow imports this: nothing heavy is imported.
"""

import hashlib
import os
import re
import shlex
from pathlib import Path

from stepline.errors import ConfigError
from stepline.io import canonical_json, read_json
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
FOLDERS = {"whisper": "whisper", "faster_whisper": "faster-whisper", "transformers": "transformers"}
"""Engine -> the folder of its models in ``weights/``."""
MODEL_FILES = ("config.json", "model.bin", "tokenizer.json")
"""The required files of a faster-whisper model."""
MORE_FILES = ("preprocessor_config.json", "vocabulary.json", "vocabulary.txt")
"""Its optional files, which are read if they exist."""
NETWORK_FILES = ("config.json", "model.safetensors", "tokenizer.json")
"""The required files of a model of transformers."""
MORE_NETWORK_FILES = ("generation_config.json", "preprocessor_config.json", "processor_config.json")
"""Its other files. Whisper needs the first, and each model one of the others."""
HUB_MODEL = re.compile(r"hf:([A-Za-z0-9][\w.-]*)/([A-Za-z0-9][\w.-]*)(?:@([\w][\w.-]*))?")
"""The name of a model of the hub: owner, name and revision."""


def locate(engine: str, model: str) -> Path | None:
    """Return the checkpoint's file (whisper) or the model's folder (other engines), or None if it does not exist.

    model: a name, for a model in ``weights/`` or in the mirror, or a path, which contains a ``/``. Raises ConfigError
    if a name is unknown. The content of a named checkpoint is checked when it is loaded.
    """
    required = {"faster_whisper": MODEL_FILES, "transformers": NETWORK_FILES}.get(engine)

    def is_whole(path: Path) -> bool:
        return all((path / name).is_file() for name in required) if required else path.is_file()

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
    names = NETWORK_FILES + MORE_NETWORK_FILES if engine == "transformers" else MODEL_FILES + MORE_FILES
    files = {name: cached_sha256(path / name) for name in names if (path / name).is_file()}
    return hashlib.sha256(canonical_json(files).encode()).hexdigest()


def item(engine: str, model: str) -> str:
    """Return the model's name in a need ``weights:<name>``."""
    if engine == "transformers" and (named := HUB_MODEL.fullmatch(model)):
        owner, name, revision = named.groups("main")
        return f"{FOLDERS[engine]}/{owner}/{name}@{revision}"
    return model if "/" in model else f"{FOLDERS[engine]}/{model}"


def is_parakeet(engine: str, model: str) -> bool:
    """Return whether a model of transformers is there and, by its ``config.json``, is a Parakeet model."""
    path = locate(engine, model) if engine == "transformers" else None
    return path is not None and model_type(path).startswith("parakeet")


def model_type(path: Path) -> str:
    """Return the kind of a model of transformers, such as ``whisper``, from ``config.json`` in its folder."""
    found = read_json(path / "config.json")
    return str(found.get("model_type", "")) if isinstance(found, dict) else ""


def how_to_get(absent: str) -> str:
    """Return a command that downloads or copies the model that ``item`` named."""
    folder, _, name = absent.partition("/")
    if folder == FOLDERS["whisper"] and name in WHISPER:
        return f"stepline fetch weights/{absent}"
    if folder == FOLDERS["faster_whisper"] and name in FASTER_WHISPER:
        return f"hf download {FASTER_WHISPER[name]} --local-dir weights/{absent}"
    if folder == FOLDERS["transformers"] and (named := HUB_MODEL.fullmatch(f"hf:{name}")) and named[3]:
        what = f"{named[1]}/{named[2]} --revision {named[3]} --include '*.json' --include model.safetensors"
        return f"hf download {what} --local-dir {_hub_folder(*named.groups())}"
    place = Path(os.path.expanduser(absent))
    return f"mkdir -p {shlex.quote(str(place.parent))} && cp -r MODEL {shlex.quote(str(place))}"


def _places(engine: str, model: str) -> list[Path]:
    if engine == "transformers" and (named := HUB_MODEL.fullmatch(model)):
        path = _hub_folder(*named.groups("main"))
    elif "/" in model and not model.startswith("hf:"):
        return [Path(os.path.expanduser(model))]
    elif engine == "transformers":
        raise ConfigError(
            f"asr.transformers.model: {model!r} is not allowed; write hf:<owner>/<name>, "
            "hf:<owner>/<name>@<revision>, or a path, which contains a /"
        )
    else:
        names = WHISPER if engine == "whisper" else FASTER_WHISPER
        if model not in names:
            raise ConfigError(
                f"asr.{engine}.model: {model!r} is not allowed; choose from {', '.join(names)}, or a path"
            )
        path = Path("weights", FOLDERS[engine], f"{model}.pt" if engine == "whisper" else model)
    root = mirror_root()
    return [path, root / path] if root else [path]


def _hub_folder(owner: str, name: str, revision: str) -> Path:
    return Path("weights", FOLDERS["transformers"], f"{owner}--{name}@{revision}")
