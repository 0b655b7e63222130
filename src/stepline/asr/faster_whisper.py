"""faster-whisper, Whisper on CTranslate2: https://github.com/SYSTRAN/faster-whisper."""

from collections.abc import Mapping
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from stepline import devices
from stepline.asr import segments, weights
from stepline.asr.engine import Heard
from stepline.asr.engines import THREADS, recogniser
from stepline.asr.languages import AUTO, ENGLISH, Spoken
from stepline.errors import MissingError, StoreError
from stepline.io import read_json
from stepline.media.audio import RATE

if TYPE_CHECKING:
    import faster_whisper  # type: ignore[import-untyped]

BEAMS = {"greedy": 1, "beam": 5}
COMPUTE = {"float32": "float32", "float16": "float16", "int8": "int8_float32"}
"""CTranslate2's names, with the same arithmetic on all devices: its own ``int8`` depends on the device for the rest."""


class FasterWhisper:
    """A recogniser. model: a name or a path, see ``weights.locate``. decoding: a key of ``BEAMS``. words: add words.

    language: a code, or ``auto``, which detects the language of each chunk. on: the configuration's ``features``, with
    the device of networks.
    """

    concurrency = 1

    def __init__(
        self,
        *,
        model: str,
        decoding: str,
        compute_type: str,
        words: bool,
        language: str = ENGLISH,
        on: Mapping[str, Any] = devices.CPU,
    ) -> None:
        """Prepare the options; nothing is loaded yet. If all answers are cached, no model is needed."""
        options = {"model": model, "decoding": decoding, "compute_type": compute_type, "words": words}
        self.parameters = recogniser("faster_whisper", options | {"language": language})
        self._model, self._language, self._on = model, language, on
        self._compute_type = compute_type
        self._options: dict[str, Any] = {"beam_size": BEAMS[decoding], "word_timestamps": words}

    def answer(self, samples: NDArray[np.int16]) -> bytes:
        """Return faster-whisper's segments, with their language if it is detected, without sampling."""
        import ctranslate2  # type: ignore[import-untyped]

        path = weights.locate("faster_whisper", self._model)
        if path is None:
            absent = weights.item("faster_whisper", self._model)
            needed = ", ".join(weights.MODEL_FILES)
            how = weights.how_to_get(absent)
            raise MissingError(f"faster-whisper's model {self._model} ({needed}) is absent: run `{how}`")
        # The library's word alignment fails on less than 0.02 s.
        padded = np.pad(samples, (0, max(0, RATE - len(samples))))
        device = devices.use(self._on, lambda: ctranslate2.get_cuda_device_count() > 0)
        if COMPUTE[self._compute_type] not in (known := ctranslate2.get_supported_compute_types(device)):
            can = ", ".join(name for name, computed in COMPUTE.items() if computed in known)
            raise StoreError(
                f"asr.faster_whisper.compute_type: {self._compute_type} does not run on {device}; use {can}"
            )
        model = _load(path, COMPUTE[self._compute_type], device)
        try:
            spoken = _detected(model, samples) if self._language == AUTO else None
            language = spoken.language if spoken else self._language
            if language not in model.supported_languages or not _has(model, language):
                raise StoreError(
                    f"{path} does not know the language {language!r}: choose another model or asr.language"
                )
            found, _ = model.transcribe(
                padded.astype(np.float32) / 32768,
                language=language,
                temperature=0.0,
                condition_on_previous_text=False,
                **self._options,
            )
            return segments.answer([asdict(segment) for segment in found], spoken)
        except RuntimeError as error:
            raise StoreError(f"faster-whisper fails on {device}: {' '.join(str(error).split())[:200]}") from None

    def heard(self, answer: bytes) -> Heard:
        """Return one sentence per segment, and the detected language."""
        return segments.heard(answer)


def _has(model: "faster_whisper.WhisperModel", language: str) -> bool:
    return not model.model.is_multilingual or model.hf_tokenizer.token_to_id(f"<|{language}|>") is not None


def _detected(model: "faster_whisper.WhisperModel", samples: NDArray[np.int16]) -> Spoken:
    if not model.model.is_multilingual:
        return Spoken(ENGLISH)
    return segments.likeliest([dict(model.detect_language(each)[2]) for each in segments.windows(samples)])


@cache
def _load(path: Path, compute_type: str, device: str) -> "faster_whisper.WhisperModel":
    import faster_whisper

    for file in path.glob("*.json"):
        read_json(file)
    try:
        return faster_whisper.WhisperModel(
            str(path),
            device=device,
            compute_type=compute_type,
            cpu_threads=THREADS["faster_whisper"],
            local_files_only=True,
        )
    except (RuntimeError, ValueError) as error:
        said = " ".join(str(error).split())[:200]
        raise StoreError(f"{path} is not a faster-whisper model ({said})") from None
