from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stepline import paths
from stepline.backbones.histogram import HistogramSpec
from stepline.features import store
from stepline.features.store import Part
from stepline.io import write_json
from stepline.media.process import Decoder

SPEC = HistogramSpec(dtype="float16")
HOP_S = 0.5
LINE = np.arange(100, dtype=np.float32)[:, None].repeat(7, 1)


@dataclass(frozen=True, kw_only=True)
class ListedSpec(HistogramSpec):
    placement: str = "middles"
    dtype: str = "float16"


def rows(n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).random((n, 7)).astype(np.float16)


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the list of the videos that are decoded from here on."""
    videos: list[str] = []
    decode = Decoder.__call__

    def listed(self: Decoder, work: Any, video: Path, *rest: Any, **limits: Any) -> Iterator[Any]:
        videos.append(video.stem)
        return decode(self, work, video, *rest, **limits)

    monkeypatch.setattr(Decoder, "__call__", listed)
    return videos


@pytest.fixture
def folder() -> Path:
    """Make a bank of two shards: whole videos a and c, spans of b. Row i of each is i, seven times."""
    write_json(paths.spec_record(SPEC), SPEC.record())
    spans = [Part(LINE[4:8], 2.0, 1.9, 4.0), Part(LINE[20:30], 10.0, 10.0, 15.0)]
    store.write(paths.features("mine", "000", SPEC), SPEC, {"a": LINE[:40], "b": spans}, HOP_S)
    store.write(paths.features("mine", "001", SPEC), SPEC, {"c": LINE}, HOP_S)
    return paths.spec_record(SPEC).parent
