"""OpenAI's Whisper, run locally: https://github.com/openai/whisper."""

import pickle
from collections.abc import Mapping
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
from stepline.backbones import checkpoint
from stepline.errors import MissingError, StoreError
from stepline.mirror import cached_sha256

if TYPE_CHECKING:
    import whisper  # type: ignore[import-untyped]

DECODING: dict[str, dict[str, Any]] = {
    "greedy": {"temperature": 0.0, "condition_on_previous_text": False, "fp16": False},
    "beam": {"temperature": 0.0, "beam_size": 5, "condition_on_previous_text": False, "fp16": False},
    "hirest": {
        "temperature": (0.15, 0.35, 0.55, 0.75, 0.95),
        "best_of": 5,
        "beam_size": 5,
        "patience": 1.0,
        "length_penalty": None,
        "suppress_tokens": "-1",
        "condition_on_previous_text": True,
        "compression_ratio_threshold": 2.4,
        "logprob_threshold": -1.0,
        "no_speech_threshold": 0.6,
        "fp16": True,
    },
}
"""Decoding options. The first two never sample, never retry at a higher temperature and ignore previous text."""
SEED = 0
MOST_LAYERS = 100
"""The maximum number of layers of each half of a user's network; the largest Whisper has 32."""


class Whisper:
    """A recogniser. model: a name or a path, see ``weights.locate``. decoding: a key of ``DECODING``. words: add words.

    language: a code, or ``auto``, which detects the language of each chunk. on: the configuration's ``features``, with
    the device of networks.
    """

    concurrency = 1

    def __init__(
        self,
        *,
        model: str,
        decoding: str,
        words: bool,
        language: str = ENGLISH,
        on: Mapping[str, Any] = devices.CPU,
    ) -> None:
        """Prepare the options; nothing is loaded yet. If all answers are cached, no checkpoint is needed."""
        options = {"model": model, "decoding": decoding, "words": words, "language": language}
        self.parameters = recogniser("whisper", options)
        self._model, self._language, self._on = model, language, on
        self._options = DECODING[decoding] | {"word_timestamps": words}

    def answer(self, samples: NDArray[np.int16]) -> bytes:
        """Return Whisper's segments, with their language if it is detected.

        Sampling is deterministic on the same device.
        """
        import torch

        path = weights.locate("whisper", self._model)
        if path is None:
            absent = weights.item("whisper", self._model)
            raise MissingError(f"Whisper's checkpoint {self._model} is absent: run `{weights.how_to_get(absent)}`")
        device = devices.use(self._on, torch.cuda.is_available)
        model = _load(self._model, path, self.parameters["model"], device)
        torch.set_num_threads(THREADS["whisper"])
        torch.backends.cudnn.allow_tf32 = False
        torch.manual_seed(SEED)
        options = self._options | {"fp16": self._options["fp16"] and model.device.type == "cuda"}
        try:
            spoken = _detected(model, samples) if self._language == AUTO else None
            language = spoken.language if spoken else self._language
            if language not in _languages(model):
                raise StoreError(
                    f"{path} does not know the language {language!r}: choose another model or asr.language"
                )
            result = model.transcribe(samples.astype(np.float32) / 32768, language=language, **options)
        except RuntimeError as error:
            raise StoreError(f"Whisper fails on {device}: {' '.join(str(error).split())[:200]}") from None
        return segments.answer(result["segments"], spoken)

    def heard(self, answer: bytes) -> Heard:
        """Return one sentence per segment, and the detected language."""
        return segments.heard(answer)


def _languages(model: "whisper.Whisper") -> tuple[str, ...]:
    from whisper.tokenizer import LANGUAGES  # type: ignore[import-untyped]

    return (*LANGUAGES,)[: model.num_languages] if model.is_multilingual else (ENGLISH,)


def _detected(model: "whisper.Whisper", samples: NDArray[np.int16]) -> Spoken:
    from whisper.audio import N_FRAMES, N_SAMPLES, log_mel_spectrogram, pad_or_trim  # type: ignore[import-untyped]

    if not model.is_multilingual:
        return Spoken(ENGLISH)
    spectra = [log_mel_spectrogram(each, model.dims.n_mels, padding=N_SAMPLES) for each in segments.windows(samples)]
    inputs = (pad_or_trim(each, N_FRAMES).to(model.device) for each in spectra)
    return segments.likeliest([model.detect_language(each)[1] for each in inputs])


def _own(path: Path) -> "whisper.Whisper":
    """Return the network of a user's checkpoint, which must have the bytes of a network of its dimensions."""
    from whisper.model import ModelDimensions, Whisper  # type: ignore[import-untyped]

    held = checkpoint.read(path)
    dims = ModelDimensions(**held["dims"])
    layers = dims.n_audio_layer * dims.n_audio_state**2 + dims.n_text_layer * dims.n_text_state**2
    others = (dims.n_audio_ctx + 3 * dims.n_mels) * dims.n_audio_state + dims.n_vocab * dims.n_text_state
    most_layers = max(dims.n_audio_layer, dims.n_text_layer)
    heads = dims.n_text_layer * dims.n_text_head
    if most_layers > MOST_LAYERS or 12 * layers + others + dims.n_text_ctx**2 + heads > path.stat().st_size:
        raise ValueError("its dimensions are not those of its tensors")
    network = Whisper(dims)
    network.load_state_dict(held["model_state_dict"])
    return network


@cache
def _load(model: str, path: Path, sha256: str, device: str) -> "whisper.Whisper":
    import whisper

    if cached_sha256(path) != sha256:
        raise StoreError(f"{path} is not Whisper's checkpoint {model}: remove it and fetch it again")
    try:
        if model in weights.WHISPER:
            loaded = whisper.load_model(model, device, download_root=str(path.parent))
        else:
            loaded = _own(path).to(device)
    except (RuntimeError, EOFError, KeyError, TypeError, ValueError, StoreError, pickle.UnpicklingError) as error:
        said = " ".join(str(error).split())[:200]
        raise StoreError(f"{path} is not a Whisper checkpoint ({type(error).__name__}: {said})") from None
    if not all(part.isfinite().all() for part in loaded.parameters()):
        raise StoreError(f"{path} is not a Whisper checkpoint: it contains NaN or infinite values")
    return loaded
