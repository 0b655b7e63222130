"""Speech models of Hugging Face transformers: Whisper, and Parakeet with CTC or TDT.

https://huggingface.co/docs/transformers/model_doc/whisper, https://huggingface.co/docs/transformers/model_doc/parakeet
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepline import devices
from stepline.asr import parakeet, segments, weights
from stepline.asr.engine import Heard
from stepline.asr.engines import THREADS, recogniser
from stepline.asr.languages import AUTO, ENGLISH, Spoken
from stepline.errors import MissingError, StoreError
from stepline.media.audio import RATE

CLASSES = {
    "whisper": "WhisperForConditionalGeneration",
    "parakeet_ctc": "ParakeetForCTC",
    "parakeet_tdt": "ParakeetForTDT",
}
"""``model_type`` in ``config.json`` -> the class of the network."""


class Transformers:
    """A recogniser that decodes greedily, in float32. model: a name or a folder, see ``weights.locate``.

    language: a code, or ``auto``, which detects the language of each chunk; Parakeet models take none. on: the
    configuration's ``features``, with the device of networks.
    """

    concurrency = 1

    def __init__(self, *, model: str, language: str = ENGLISH, on: Mapping[str, Any] = devices.CPU) -> None:
        """Prepare the options; nothing is loaded yet. If all answers are cached, no model is needed."""
        self.parameters = recogniser("transformers", {"model": model, "language": language})
        self._model, self._language, self._on = model, language, on

    def answer(self, samples: NDArray[np.int16]) -> bytes:
        """Return Whisper's segments, with their language if it is detected, or Parakeet's tokens."""
        import torch

        path = weights.locate("transformers", self._model)
        if path is None:
            how = weights.how_to_get(weights.item("transformers", self._model))
            needed = ", ".join(weights.NETWORK_FILES)
            raise MissingError(f"the model {self._model} of transformers ({needed}) is absent: run `{how}`")
        device = devices.use(self._on, torch.cuda.is_available)
        loaded = _load(path, device)
        torch.set_num_threads(THREADS["transformers"])
        torch.backends.cudnn.allow_tf32 = False
        audio = samples.astype(np.float32) / np.float32(32768)
        try:
            with torch.inference_mode():
                if loaded.kind != "whisper":
                    return parakeet.answer(loaded, audio)
                spoken = _detected(loaded, samples) if self._language == AUTO else None
                language = spoken.language if spoken else self._language
                if language not in loaded.languages:
                    raise StoreError(
                        f"{path} does not know the language {language!r}: choose another model or asr.language"
                    )
                return segments.answer(_segments(loaded, audio, language), spoken)
        except (RuntimeError, ValueError) as error:
            said = " ".join(str(error).split())[:200]
            raise StoreError(f"{path} fails on {device} ({type(error).__name__}: {said})") from None

    def heard(self, answer: bytes) -> Heard:
        """Return one sentence per segment of Whisper, and the language; for Parakeet see ``parakeet.sentences``."""
        return Heard(parakeet.sentences(answer)) if parakeet.is_answer(answer) else segments.heard(answer)


@dataclass(frozen=True)
class Loaded:
    """A network with its feature extractor and tokenizer.

    kind: a key of ``CLASSES``. languages: of Whisper.
    """

    kind: str
    network: Any
    extractor: Any
    tokenizer: Any
    languages: tuple[str, ...]

    def text(self, token: int) -> str:
        """Return the text of a token as in the vocabulary; "" if it is unknown or special."""
        return "" if token in self._special else self.tokenizer.id_to_token(token) or ""

    @cached_property
    def _special(self) -> set[int]:
        return {token for token, added in self.tokenizer.get_added_tokens_decoder().items() if added.special}


@cache
def _load(path: Path, device: str) -> Loaded:
    """Return the model in a folder; no code in it is run."""
    import torch

    from stepline.backbones.torchvision import make_importable

    make_importable()
    import transformers
    from tokenizers import Tokenizer
    from transformers import AutoConfig, AutoFeatureExtractor, GenerationConfig

    from stepline.backbones import checkpoint

    transformers.logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    transformers.logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    local = {"local_files_only": True, "trust_remote_code": False}
    kind = weights.model_type(path)
    if kind not in CLASSES:
        raise StoreError(f"{path} is a model of the kind {kind!r}; transcription needs one of {', '.join(CLASSES)}")
    try:
        config = AutoConfig.from_pretrained(path, **local)
        network, found = getattr(transformers, CLASSES[kind]).from_pretrained(
            None,
            config=config,
            state_dict=checkpoint.state(path / "model.safetensors"),
            dtype=torch.float32,
            output_loading_info=True,
        )
        if kind == "whisper" or (path / "generation_config.json").is_file():
            network.generation_config = GenerationConfig.from_pretrained(path, local_files_only=True)
        if kind == "parakeet_tdt" and network.generation_config.decoder_start_token_id is None:
            network.generation_config.decoder_start_token_id = config.blank_token_id
        extractor = AutoFeatureExtractor.from_pretrained(path, **local)  # type: ignore[no-untyped-call]
        tokenizer = Tokenizer.from_file(str(path / "tokenizer.json"))
    except StoreError:
        raise
    except Exception as error:  # noqa: BLE001 - the libraries raise errors of many kinds for damaged files
        said = " ".join(str(error).split())[:200]
        raise StoreError(f"{path} is not a speech model of transformers ({type(error).__name__}: {said})") from None
    if wrong := sorted([*found["missing_keys"], *found["unexpected_keys"]]):
        raise StoreError(f"{path}/model.safetensors does not fit config.json: {len(wrong)} tensors ({wrong[0]}, ...)")
    if not all(part.isfinite().all() for part in network.parameters()):
        raise StoreError(f"{path}/model.safetensors contains NaN or infinite values")
    if extractor.sampling_rate != RATE:
        raise StoreError(f"{path} needs audio at {extractor.sampling_rate} Hz; Stepline has {RATE} Hz")
    languages = _languages(path, network.generation_config) if kind == "whisper" else ()
    return Loaded(kind, network.eval().requires_grad_(False).to(device), extractor, tokenizer, languages)


def _languages(path: Path, generation: Any) -> tuple[str, ...]:
    if getattr(generation, "no_timestamps_token_id", None) is None:
        raise StoreError(
            f"{path}/generation_config.json is of an old version, without the tokens of times: get it again"
        )
    if not getattr(generation, "is_multilingual", False):
        return (ENGLISH,)
    return tuple(token.strip("<|>") for token in generation.lang_to_id)


def _detected(loaded: Loaded, samples: NDArray[np.int16]) -> Spoken:
    import torch

    if loaded.languages == (ENGLISH,):
        return Spoken(ENGLISH)
    generation, device = loaded.network.generation_config, loaded.network.device
    tokens = [generation.lang_to_id[f"<|{language}|>"] for language in loaded.languages]
    start = torch.tensor([[generation.decoder_start_token_id]], device=device)
    found = []
    for window in segments.windows(samples):
        features = loaded.extractor(window, sampling_rate=RATE, return_tensors="pt").input_features.to(device)
        logits = loaded.network(input_features=features, decoder_input_ids=start, use_cache=False).logits[0, -1]
        found.append(dict(zip(loaded.languages, logits[tokens].softmax(-1).tolist(), strict=True)))
    return segments.likeliest(found)


def _segments(loaded: Loaded, audio: NDArray[np.float32], language: str) -> list[dict[str, Any]]:
    """Return Whisper's segments by transformers' long-form generation: greedy, without retries and previous text.

    Segments that begin in the silence with which the last window is filled are left out.
    """
    generation = loaded.network.generation_config
    whole = {"truncation": False, "padding": "longest"} if len(audio) > segments.WINDOW else {}
    features = loaded.extractor(audio, sampling_rate=RATE, return_tensors="pt", **whole).input_features
    spoken = {"language": language, "task": "transcribe"} if loaded.languages != (ENGLISH,) else {}
    chosen = _Chosen()
    made = loaded.network.generate(
        features.to(loaded.network.device),
        return_timestamps=True,
        return_segments=True,
        condition_on_prev_tokens=False,
        temperature=0.0,
        num_beams=1,
        logits_processor=[chosen],
        **spoken,
    )
    windows: dict[int, int] = {}
    found = []
    for segment in made["segments"][0]:
        probabilities, prompt = chosen.windows[windows.setdefault(id(segment["result"]), len(windows))]
        first, last = (place - prompt for place in segment["idxs"])
        tokens = [token for token in segment["tokens"].tolist() if token < generation.no_timestamps_token_id]
        start_s, end_s = float(segment["start"]), float(segment["end"])
        if tokens and start_s < len(audio) / RATE:
            text = loaded.tokenizer.decode(tokens, skip_special_tokens=True)
            mean = sum(probabilities[first:last]) / (last - first)
            found.append({"start": start_s, "end": end_s, "text": text, "avg_logprob": mean})
    return found


class _Chosen:
    """Records the log probabilities of the chosen tokens, and the length of the prompt, for each window."""

    def __init__(self) -> None:
        self.windows: list[tuple[list[float], int]] = []
        self._length = 0

    def __call__(self, tokens: Any, scores: Any) -> Any:
        length = tokens.shape[-1]
        if length <= self._length or not self.windows:
            self.windows.append(([], length))
        self._length = length
        self.windows[-1][0].append(float(scores[0].log_softmax(-1).max()))
        return scores
