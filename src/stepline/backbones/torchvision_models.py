"""Video models of torchvision: the features before the classifier.

Frames are those of torchvision's own evaluation, around the middle of each second. Pictures are scaled as in its
transforms, but not rounded to 8 bits before the crop, which changes a value by at most half a level of 255.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torchvision.models import get_model, get_model_weights, list_models, video

from stepline.backbones import checkpoint
from stepline.backbones.named import slug, unknown
from stepline.backbones.still import Moving
from stepline.backbones.weights import File, Weights
from stepline.errors import ConfigError
from stepline.spec import ClipSpec, Step

ORIGIN = "https://docs.pytorch.org/vision/stable/models.html#video-classification"
CLASSIFIERS = ("fc", "classifier", "head")
"""The names of a network's classifier."""


class Clips(Moving):
    """Applies a network to (B, 3, T, H, W) clips as they are."""

    @staticmethod
    def view(clips: Tensor) -> Tensor:
        """Return the clips."""
        return clips


def weights(name: str, model: str) -> Weights:
    """Return the file at torchvision's address; its name ends in the first digits of its sha256."""
    published = _published(name, model)
    file = File(name=published.url.rpartition("/")[2], url=published.url)
    return Weights(name=slug(name), files=(file,), origin=ORIGIN, licence="see its origin")


def describe(name: str, model: str, _: Mapping[str, Path]) -> tuple[ClipSpec, None]:
    """Return the spec of the model's features, with the frames and pictures of its evaluation."""
    published = _published(name, model)
    transform, sampling = published.transforms(), dict(re.findall(r"(frame_rate|clip_len)=([\d.]+)", _text(published)))
    if sampling.keys() != {"frame_rate", "clip_len"} or transform.interpolation.value != "bilinear":
        raise ConfigError(f"{name} does not state the frames or pictures that it takes: write it as a model by file")
    frames, rate = int(sampling["clip_len"]), float(sampling["frame_rate"])
    interval = 1 if rate.is_integer() else 2
    fps = int(rate * interval)
    size, (crop, width) = transform.resize_size, transform.crop_size
    scale: Step = ("short_side", size[0], "bilinear") if len(size) == 1 else ("exact", size[1], size[0], "bilinear")
    if crop != width:
        raise ConfigError(f"{name} takes pictures of {width} x {crop}: only squares are supported: write a file")
    with torch.device("meta"):
        _, dimension = _network(model).eval()(torch.zeros(1, 3, frames, crop, crop)).shape
    clip = ClipSpec(
        name=slug(name),
        label=f"{frames}x{rate:g}fps",
        revision=1,
        architecture="torchvision",
        model=model,
        weights=(name,),
        licence="see its origin",
        fps=fps,
        num_frames=frames,
        interval=interval,
        hop=fps,
        offset=(fps - frames * interval) // 2,
        tail="repeat",
        steps=(scale, ("centre_crop", crop, "round")),
        mean=tuple(transform.mean),
        std=tuple(transform.std),
        output="features",
        dimension=dimension,
    )
    return clip, None


def load(spec: ClipSpec, files: Mapping[str, Path]) -> Clips:
    """Return the network with its weights, loaded strictly but for its classifier, which is not used."""
    (path,) = files.values()
    network, tensors = _network(spec.model), checkpoint.state(path, inside=("state_dict", "model"))
    checkpoint.load(network, tensors, model=spec.model, path=path, ignore=checkpoint.HEADS)
    return Clips(network, network, normalise=spec.normalise)


def _network(model: str) -> Any:
    network = get_model(model.partition("/")[0])
    _drop_classifier(network)
    return network


def _drop_classifier(network: nn.Module) -> None:
    name = next(name for name, _ in network.named_children() if name in CLASSIFIERS)
    setattr(network, name, nn.Identity())


def _text(published: Any) -> str:
    return str(published.meta["_docs"])


def _published(name: str, model: str) -> Any:
    architecture, _, tag = model.partition("/")
    known = {f"{each}/{one.name.lower()}": one for each in list_models(module=video) for one in get_model_weights(each)}
    if f"{architecture}/{tag}" not in known:
        raise unknown(name, "torchvision:", known)
    return known[f"{architecture}/{tag}"]
