"""Parakeet models of transformers: their tokens with times, and the sentences of these tokens."""

import json
from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from stepline.asr.chunks import SEARCHED, quietest
from stepline.asr.transcript import Sentence, Word
from stepline.download.answers import checked
from stepline.media.audio import RATE

if TYPE_CHECKING:
    from stepline.asr.transformers import Loaded

LONGEST = 120 * RATE
"""Maximum number of samples that the network gets at once: its memory grows with their square."""
SHORTEST = RATE // 2
"""Shorter audio is padded with silence."""
PAUSE_S = 0.8
"""A pause of this length ends a sentence."""
ENDS, ENDS_AT_ONCE = (".", "?", "!", "…"), ("。", "？", "！")
"""Characters that end a sentence if the next token begins a word, and those that always do."""
WORD = "▁"
"""The mark of a token that begins a word."""

Token = tuple[str, float, float, float | None]
"""Text, start and end in seconds, probability."""


def answer(loaded: "Loaded", audio: NDArray[np.float32]) -> bytes:
    """Return the tokens of a chunk, at most 120 s at once; each cut is as between chunks."""
    found = []
    for start, part in _parts(audio):
        tokens = (_ctc if loaded.kind == "parakeet_ctc" else _tdt)(
            loaded, np.pad(part, (0, max(0, SHORTEST - len(part))))
        )
        found += [
            [text, start_s + start / RATE, end_s + start / RATE, likely] for text, start_s, end_s, likely in tokens
        ]
    return json.dumps({"tokens": found}).encode()


def is_answer(answer: bytes) -> bool:
    """Return whether an answer is by ``answer``."""
    return answer.startswith(b'{"tokens"')


def _parts(audio: NDArray[np.float32]) -> Iterator[tuple[int, NDArray[np.float32]]]:
    start = 0
    while start < len(audio):
        part = audio[start : start + LONGEST]
        if start + len(part) < len(audio):
            part = part[: LONGEST - SEARCHED + quietest((part[-SEARCHED:] * 32768).astype(np.int16))]
        yield start, part
        start += len(part)


def _inputs(loaded: "Loaded", audio: NDArray[np.float32]) -> Any:
    return loaded.extractor(audio, sampling_rate=RATE, return_tensors="pt").to(loaded.network.device)


def _hop_s(loaded: "Loaded") -> float:
    """Return the seconds of one frame of the network's output."""
    factor: int = loaded.network.config.encoder_config.subsampling_factor
    return float(loaded.extractor.hop_length * factor / RATE)


def _ctc(loaded: "Loaded", audio: NDArray[np.float32]) -> Iterator[Token]:
    """Yield the runs of equal tokens that are not blank; a token's probability is the mean over its frames."""
    made = loaded.network.generate(**_inputs(loaded, audio), return_dict_in_generate=True)
    likely, blank, hop_s = made.logits[0].softmax(-1), loaded.network.config.pad_token_id, _hop_s(loaded)
    for token, run in groupby(enumerate(made.sequences[0].tolist()), key=lambda each: each[1]):
        frames = [frame for frame, _ in run]
        if token != blank and (text := loaded.text(token)):
            mean = float(likely[frames, token].mean())
            yield text, frames[0] * hop_s, (frames[-1] + 1) * hop_s, min(1.0, mean)


def _tdt(loaded: "Loaded", audio: NDArray[np.float32]) -> Iterator[Token]:
    """Yield the tokens with the durations that the network predicts; it returns no probabilities."""
    made = loaded.network.generate(**_inputs(loaded, audio), do_sample=False, num_beams=1)
    config, hop_s, frame = loaded.network.config, _hop_s(loaded), 0
    for token, duration in zip(made.sequences[0].tolist(), made.durations[0].tolist(), strict=True):
        if token not in (config.pad_token_id, config.blank_token_id) and (text := loaded.text(token)):
            yield text, frame * hop_s, (frame + duration) * hop_s, None
        frame += duration


def sentences(answer: bytes) -> list[Sentence]:
    """Return the sentences of an answer.

    A sentence ends at a pause of 0.8 s, after one of ``ENDS`` if the next token begins a word, and after one of
    ``ENDS_AT_ONCE``. The confidence of a word or sentence is the mean over its tokens, None if the model returns none.
    """
    groups: list[list[Token]] = []
    for token in (tuple(token) for token in checked(answer)["tokens"]):
        if not groups or _ends(groups[-1][-1], token):
            groups.append([])
        groups[-1].append(token)
    found = []
    for group in groups:
        words: list[list[Token]] = []
        for token in group:
            if not words or token[0].startswith(WORD):
                words.append([])
            words[-1].append(token)
        said = tuple(Word(*_whole(word)) for word in words if _whole(word)[0])
        if said:
            found.append(Sentence(*_whole(group), words=said))
    return found


def _ends(last: Token, token: Token) -> bool:
    ended = last[0].endswith(ENDS_AT_ONCE) or (last[0].endswith(ENDS) and token[0].startswith(WORD))
    return ended or token[1] - last[2] >= PAUSE_S


def _whole(tokens: list[Token]) -> tuple[str, float, float, float | None]:
    """Return the text, start, end and confidence of consecutive tokens."""
    text = "".join(token[0] for token in tokens).replace(WORD, " ").strip()
    known = [token[3] for token in tokens if token[3] is not None]
    return text, tokens[0][1], max(token[2] for token in tokens), sum(known) / len(known) if known else None
