"""The languages of recognisers: their codes, and those that an engine accepts.

The workflow imports this: nothing heavy is imported.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stepline.errors import ConfigError

ENGLISH, AUTO, MULTI = "en", "auto", "multi"
"""The default; detection for each recording; Deepgram's recognition of several languages in one recording."""
_CODES = (
    "en zh de es ru ko fr ja pt tr pl ca nl ar sv it id hi fi vi he uk el ms cs ro da hu ta no th ur hr bg lt la mi ml "
    "cy sk te fa lv bn sr az sl kn et mk br eu is hy ne mn bs kk sq sw gl mr pa si km sn yo so af oc ka be tg sd gu am "
    "yi lo uz fo ht ps tk nn mt sa lb my bo tl mg as tt haw ln ha ba jw su yue"
)
WHISPER = tuple(_CODES.split())
"""Whisper's codes, in its order."""
DEEPGRAM = (*WHISPER, "xh", "zu")
"""The languages that a tag of Deepgram may begin with; which of them a model knows is up to the service."""
WITHOUT_SPACES = {"zh", "yue", "ja", "th", "lo", "km", "my", "bo"}
"""Languages whose words are not separated by spaces."""
TAG = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8})*")
"""A language tag, such as ``de`` or ``de-CH``."""


@dataclass(frozen=True)
class Spoken:
    """A detected language. probability: in [0, 1], or None if the engine returns none."""

    language: str
    probability: float | None = None


def check(engine: str, options: Mapping[str, Any], key: str = "asr.language") -> None:
    """Raise ConfigError if the engine cannot transcribe the language in ``options``; the default is English.

    options: of the engine, with its model. key: the key of the configuration that names the language.
    """
    language = options.get("language", ENGLISH)
    if language == ENGLISH:
        return
    refused = f"{key}: {language!r} is not allowed with {engine}"
    if engine == "pocketsphinx":
        raise ConfigError(f"{refused}, whose model is English; use en, or another asr.engine")
    if engine == "deepgram":
        if language not in (AUTO, MULTI) and not (TAG.fullmatch(language) and language.split("-")[0] in DEEPGRAM):
            raise ConfigError(
                f"{refused}; choose from {', '.join((AUTO, MULTI, *DEEPGRAM))}, or such a code with a region"
            )
        return
    if language not in (AUTO, *WHISPER):
        raise ConfigError(f"{refused}; choose from {', '.join((AUTO, *WHISPER))}")
    if (model := options["model"]).endswith(".en"):
        raise ConfigError(
            f"{refused} and the English model {model}; use en, or set asr.{engine}.model: {model.removesuffix('.en')}"
        )
