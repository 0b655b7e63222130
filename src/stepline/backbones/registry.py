"""The registry of backbones by name: text encoders are `sentence.MODELS`, frame backbones stand here."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from stepline.backbones.histogram import HistogramSpec, describe
from stepline.backbones.sentence import MODELS, sentence_spec
from stepline.errors import ConfigError
from stepline.spec import FrameSpec, ReaderName, Spec

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True)
class FrameBackbone:
    """A backbone that sees one frame at a time. describe: (height, width, 3) RGB uint8 and the spec -> (D,) float32."""

    spec: FrameSpec
    describe: "Callable[[NDArray[np.uint8], Any], NDArray[np.float32]]"


FRAME_BACKBONES = {
    "histogram": FrameBackbone(spec=HistogramSpec(), describe=describe),
}


def frame_spec(name: str, reader: ReaderName) -> FrameSpec:
    """Return the spec of a frame backbone; raise ConfigError where the name is unknown."""
    if name not in FRAME_BACKBONES:
        raise ConfigError(f"backbone {name!r} is not known; choose from {', '.join(FRAME_BACKBONES)}")
    return replace(FRAME_BACKBONES[name].spec, reader=reader)


def spec_of(name: str, reader: ReaderName) -> Spec:
    """Return the spec of a text encoder, or of a frame backbone whose frames ``reader`` reads.

    Raises ConfigError where the name is unknown, and what ``sentence_spec`` raises where weights are absent or wrong.
    """
    if name in FRAME_BACKBONES:
        return frame_spec(name, reader)
    if name in MODELS:
        return sentence_spec(name)
    raise ConfigError(f"backbone {name!r} is not known; choose from {', '.join([*FRAME_BACKBONES, *MODELS])}")
