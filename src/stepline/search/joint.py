"""Captioned steps by HiREST's released joint model (Zala et al., CVPR 2023, Sec. 4.2), if its files are available."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from stepline.asr.transcript import Sentence
from stepline.backbones.sentence import model_files
from stepline.backbones.weights import locate
from stepline.features.text import TextEncoder
from stepline.models.hirest_joint_words import Words
from stepline.search.steps import Step

if TYPE_CHECKING:
    from stepline.models.hirest_joint import Joint

WEIGHTS, SENTENCES = "hirest-joint", "minilm"
"""The model, and the encoder of its transcript input."""
FRAMES = ("eva_clip-hirest", "eva_clip-hirest-unnormalised")
"""The backbones of its frame features, which are normalised to unit length."""


def joint_file(backbone: str) -> Path | None:
    """Return the file of the model's weights; None if the backbone does not fit the model or files are missing.

    Raises StoreError if the file has unexpected content.
    """
    files = locate(WEIGHTS) if backbone in FRAMES and model_files(SENTENCES) else None
    return next(iter(files.values())) if files else None


def load_joint(backbone: str) -> "Joint | None":
    """Return the model; None if ``joint_file`` returns None."""
    path = joint_file(backbone)
    if path is None:
        return None
    from stepline.models.hirest_joint_release import load_released

    return load_released(path)


def raw_query(encoder: TextEncoder, text: str) -> NDArray[np.float32]:
    """Return the model's embedding of a text, which is not normalised."""
    from stepline.backbones.clip_text import CausalTextEncoder

    assert isinstance(encoder, CausalTextEncoder), "EVA-CLIP's"
    return CausalTextEncoder(replace(encoder.spec, normalise=False), encoder.network).query(text)


def joint_steps(
    model: "Joint",
    rows: NDArray[np.floating],
    query: NDArray[np.floating],
    lines: Sequence[Sentence],
    vectors: NDArray[np.floating],
    start_s: float,
    end_s: float,
) -> tuple[Step, ...]:
    """Return the captioned steps of a moment; () if the video has more rows than the model has positions.

    rows: (T, 1024) features of the whole video, one per second from 0 s. query: see ``raw_query``. lines, vectors: the
    sentences of the video and their (N, 384) embeddings. The steps cover the moment, as in HiREST's evaluation.
    """
    import torch

    from stepline.models.hirest_joint import Videos
    from stepline.models.hirest_joint_frames import frame_of, speech_rows

    if len(rows) > model.config.positions:
        return ()
    frames = torch.from_numpy(np.asarray(rows, np.float32))[None]
    said = speech_rows([(line.start_s, line.end_s) for line in lines], len(rows))
    heard = np.vstack([vectors, np.zeros_like(vectors[:1])])[said]
    videos = Videos(
        torch.nn.functional.normalize(frames, dim=2),
        torch.from_numpy(np.asarray(query, np.float32))[None],
        torch.from_numpy(np.asarray(heard, np.float32))[None],
        torch.tensor([len(rows)]),
    )
    first, last = (frame_of(time_s, len(rows)) for time_s in (start_s, end_s))
    (found,) = model.segments(videos, torch.tensor([[first, last]]))
    edges = [first, *(edge for edge in found if first < edge < last), last]
    ids = model.captions(videos, torch.zeros(len(edges) - 1, dtype=torch.int64), torch.tensor([*pairwise(edges)]))
    words, times_s = Words(), [start_s, *map(float, edges[1:-1]), end_s]
    captions = [words.decode(each) for each in ids]
    return tuple(Step(*span, caption) for span, caption in zip(pairwise(times_s), captions, strict=True))
