"""CLIPScore of step captions as in HiREST: the mean cosine with four frames of the step (Zala et al. 2023).

Unlike the CLIPScore of Hessel et al. (2021), it is neither scaled by 2.5 nor clipped at 0.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

_FRAMES = 4


def clip_score(
    captions: ArrayLike, frames: Mapping[str, ArrayLike], videos: Sequence[str], steps: ArrayLike
) -> NDArray[np.float64]:
    """Return the (N,) mean cosines, in [-1, 1]; NaN for a step that starts or ends after the last frame.

    captions: (N, D), one vector per step. frames: for each video, (T, D) vectors, one per second from 0. videos: (N,),
    the video of each step. steps: (N, 2) start and end in seconds. Vectors can have any length except 0.

    The frames are at ``int(linspace(start, end - 1, 4))``, so an empty step at 0 uses the first and last frames of the
    video. The corpus score is the mean of all values that are not NaN (evaluate.py of the release).

    Raises KeyError if a video has no frames, ValueError if the numbers of captions, videos and steps differ.
    """
    texts, times = np.asarray(captions, dtype=np.float64), np.asarray(steps, dtype=np.float64)
    if not len(texts) == len(videos) == len(times):
        raise ValueError(f"{len(texts)} captions, {len(videos)} videos and {len(times)} steps")
    values = np.full(len(times), np.nan)
    of = np.array(videos, dtype=object)
    for video in dict.fromkeys(videos):
        rows = np.asarray(frames[video], dtype=np.float64)
        here = np.flatnonzero((of == video) & (times < len(rows)).all(axis=1))
        chosen = np.linspace(times[here, 0], times[here, 1] - 1, _FRAMES, axis=1).astype(np.intp)
        values[here] = np.einsum("nfd,nd->n", _unit(rows)[chosen], _unit(texts[here])) / _FRAMES
    return values


def _unit(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    found: NDArray[np.float64] = vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)
    return found
