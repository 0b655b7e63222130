"""Video models of Hugging Face transformers: an embedding of each clip, and the text tower if there is one.

A name may end with a choice of frames, written as in the labels of the presets. ``#16x8fps``: 16 frames at 8 fps,
around the middle of each second. ``#16-frames``: the middles of 16 equal parts of each listed clip, as X-CLIP samples
videos (microsoft/VideoX 1744b21, X-CLIP/datasets/build.py). The default is the model's number of frames, around the
middle of each second, at the rate of its processor, or of ``FPS``. Outside of the video the nearest frame is repeated.
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from transformers import AutoImageProcessor, AutoModel, AutoVideoProcessor

from stepline.backbones import hf_models
from stepline.backbones.clip_text import TextEncoder
from stepline.backbones.named import TOKENIZER, slug, weights_name
from stepline.backbones.still import Moving
from stepline.backbones.weights import Weights
from stepline.errors import ConfigError
from stepline.spec import ClipSpec, TextSpec

FILES = ("config.json", "model.safetensors")
PROCESSORS = ("processor_config.json", "video_preprocessor_config.json", "preprocessor_config.json")
"""The files that may contain the processor; transformers uses the first one that has a processor of videos."""
OUTPUTS = {
    "vjepa2": "token_mean",
    "videomae": "token_mean",
    "videoprism_vision_model": "token_mean",
    "timesformer": "first_token",
    "videoprism": "video_embed",
    "xclip": "video_embed",
}
"""Type of a model -> its output.

token_mean: the mean of the encoder's tokens. V-JEPA 2 and VideoPrism have no embedding of a clip without a trained
pooler; VideoMAE is fine-tuned on this mean (``VideoMAEForVideoClassification``). first_token: the class token, which
TimeSformer's classifier reads. video_embed: the embedding that the model compares with texts. X-CLIP adds to the text a
prompt that it computes from the video; without it a text has one vector, which can be compared with all videos.
"""
FPS = {"vjepa2": 4, "videomae": 8}
"""Type of a model -> frames per second in its training.

V-JEPA 2: ``fps: 4`` in facebookresearch/vjepa2 c2963a4, configs/train. VideoMAE: every fourth frame of videos with
about 30 fps (MCG-NJU/VideoMAE 14ef8d8, scripts/kinetics). The others see a few frames of a whole clip.
"""
SPREAD_S = 10
"""The length of such a clip in seconds.

X-CLIP spreads its frames over clips of Kinetics, which have 10 s. TimeSformer sees every 32nd frame: 8 frames in 8.5 s.
VideoPrism's authors state no rate; their examples spread the frames over a whole file (google-deepmind/videoprism).
"""
_CHOICE = re.compile(r"#([1-9]\d*)(?:x([1-9]\d*)fps|-frames)$")


def weights(name: str, model: str) -> Weights:
    """Return the repository's files at the revision, the same for each choice of frames."""
    name, model = (_CHOICE.sub("", each) for each in (name, model))
    if "#" in model.removesuffix(TOKENIZER):
        raise ConfigError(f"backbone {name!r} is not known: after `#` write <frames>x<fps>fps or <frames>-frames")
    return hf_models.hub_weights(name, model, FILES, PROCESSORS)


def describe(name: str, model: str, files: Mapping[str, Path]) -> tuple[ClipSpec, TextSpec | None]:
    """Return the specs of the model, with the preprocessing of its own processor."""
    config = hf_models.configuration(name, files)
    output = OUTPUTS.get(config.model_type)
    if output is None:
        raise ConfigError(f"{name} is a {config.model_type}: models of videos by name are {', '.join(OUTPUTS)}")
    processor = _processor(name, files["config.json"].parent)
    own, frames, fps = _frames(name, config, processor)
    try:
        deviation = min(processor.image_std if processor.do_normalize else [1])
        steps, mean, std, shape = hf_models.verified(name, processor, "torchvision", hf_models.LEVELS / 255 / deviation)
        with torch.device("meta"):
            network = AutoModel.from_config(config).eval()  # type: ignore[no-untyped-call]
            _, dimension = _embedding(network, output)(torch.zeros(1, frames, *shape)).shape
    except (AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        raise ConfigError(f"{name} cannot be used by name with {frames} frames (its own: {own}): {reason}") from None
    of = weights_name(name)
    sampling: dict[str, Any] = {"label": f"{frames}-frames", "placement": "middles"}
    if fps:
        sampling = {"label": f"{frames}x{fps}fps", "fps": fps, "hop": fps, "offset": (fps - frames) // 2}
    clip = ClipSpec(
        name=slug(name),
        revision=1,
        architecture="hf-video",
        model=weights_name(model),
        weights=(of,),
        licence="see its origin",
        num_frames=frames,
        tail="repeat",
        steps=steps,
        mean=mean,
        std=std,
        output=output,
        dimension=dimension,
        **sampling,
    )
    if output != "video_embed":
        return clip, None
    text = TextSpec(
        name=f"{slug(of)}-text",
        label="text_embed",
        revision=1,
        architecture="hf-video",
        weights=(of, f"{of}{TOKENIZER}"),
        licence="see its origin",
        max_tokens=config.text_config.max_position_embeddings,
        output="text_embed",
        dimension=dimension,
    )
    return clip, text


def load(spec: ClipSpec, files: Mapping[str, Path]) -> Moving:
    """Return the network with its weights."""
    network = hf_models.loaded(spec.weights[0], files)
    return Moving(network, _embedding(network, spec.output), normalise=spec.normalise)


def load_text(spec: TextSpec, files: Mapping[str, Path]) -> TextEncoder:
    """Return the text tower with its weights. VideoPrism gets padded texts with a mask, as from its processor."""
    network = hf_models.loaded(spec.weights[0], files)
    padding = network.config.text_config.pad_token_id if network.config.model_type == "videoprism" else None

    def tower(ids: torch.Tensor) -> torch.Tensor:
        mask = None if padding is None else (ids != padding).long()
        vectors: torch.Tensor = network.get_text_features(input_ids=ids, attention_mask=mask).pooler_output
        return vectors

    return TextEncoder(spec, hf_models.tokenizer(files, spec, padding), tower)


def _frames(name: str, config: Any, processor: Any) -> tuple[int, int, int]:
    """Return the model's own number of frames, the chosen number, and their rate, which is 0 for listed clips."""
    vision = getattr(config, "vision_config", config)
    own = getattr(processor, "num_frames", None) or getattr(vision, "frames_per_clip", None) or vision.num_frames
    if choice := _CHOICE.search(name):
        return own, int(choice[1]), int(choice[2] or 0)
    fps = getattr(processor, "fps", None) or FPS.get(config.model_type) or own / SPREAD_S
    return own, own, max(1, round(fps))


def _processor(name: str, folder: Path) -> Any:
    """Return the model's processor of videos, or of images if transformers has no other."""
    reasons = []
    kinds: tuple[Any, ...] = AutoVideoProcessor, AutoImageProcessor
    for kind in kinds:
        try:
            processor = kind.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
        except (ImportError, OSError, KeyError, ValueError) as error:
            reasons.append(" ".join(str(error).split())[:200])
        else:
            processor.do_sample_frames = False
            return processor
    raise ConfigError(f"{name} has no processor that transformers knows: {reasons[0]}")


def _embedding(network: Any, output: str) -> Callable[[torch.Tensor], torch.Tensor]:
    """Return a function from (B, T, 3, H, W) frames to that output. V-JEPA 2's predictor does not run."""
    tokens = getattr(network, "get_vision_features", lambda frames: network(frames).last_hidden_state)
    return {
        "token_mean": lambda frames: tokens(frames).mean(1),
        "first_token": lambda frames: tokens(frames)[:, 0],
        "video_embed": lambda frames: network.get_video_features(frames).pooler_output.flatten(1),
    }[output]
