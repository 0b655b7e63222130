"""One row per hop of a damaged video: missing rows are replaced by the nearest one."""

from collections.abc import Sequence
from dataclasses import replace
from math import ceil, inf

import numpy as np

from stepline.features.store import Block
from stepline.features.zarr_file import Rows
from stepline.media.spans import Spans


def filled(blocks: Sequence[Block], rows: Rows, spans: Spans) -> tuple[list[Block], Rows]:
    """Return a block for each of the requested ``spans``, and their rows; no spans mean the whole video.

    blocks, rows: the existing blocks and rows of the video. The rows of a span extend from its start to its last
    existing row. A missing row is replaced by the nearest existing one; of two equally near, by the earlier.
    """
    made: list[Block] = []
    parts: list[Rows] = []
    hop_s, offset = blocks[0].hop_s, 0
    k = np.concatenate([round(block.t0_s / hop_s) + np.arange(block.length) for block in blocks])
    for start_s, end_s in spans or [(0.0, inf)]:
        here = np.flatnonzero((k * hop_s >= start_s - 1e-6) & (k * hop_s < end_s))
        if not len(here):
            continue
        there = k[here]
        wanted = np.arange(ceil(start_s / hop_s - 1e-6), there[-1] + 1)
        after = np.searchsorted(there, wanted)
        before = (np.searchsorted(there, wanted, side="right") - 1).clip(0)
        nearest = np.where(there[after] - wanted < abs(wanted - there[before]), after, before)
        place = replace(blocks[0], offset=offset, length=len(wanted), t0_s=float(wanted[0] * hop_s), sha256="")
        made.append(replace(place, start_s=float(start_s), end_s=float(end_s)))
        parts.append(rows[here[nearest]])
        offset += len(wanted)
    return made, np.concatenate(parts)
