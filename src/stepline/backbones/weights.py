"""Weights that a user supplies or fetches: which files, from where, under which licence."""

from dataclasses import dataclass
from pathlib import Path

from stepline.mirror import Wanted, find

_HUB = "https://huggingface.co/sentence-transformers/all-mpnet-base-v2/resolve/main"


@dataclass(frozen=True, kw_only=True)
class Weights:
    """The files of one backbone. They stand in ``weights/<name>/``, here or in the mirror.

    urls: where each can be downloaded without an account, in the order of ``files``; empty where that is nowhere.
    """

    name: str
    files: tuple[str, ...]
    origin: str
    licence: str
    urls: tuple[str, ...] = ()


WEIGHTS = {
    weights.name: weights
    for weights in (
        Weights(
            name="mpnet",
            files=("config.json", "model.safetensors", "tokenizer.json"),
            origin="https://huggingface.co/sentence-transformers/all-mpnet-base-v2",
            licence="Apache-2.0",
            urls=(f"{_HUB}/config.json", f"{_HUB}/model.safetensors", f"{_HUB}/tokenizer.json"),
        ),
        Weights(
            name="egovlp",
            files=("EgoVLP_PT_BEST.pth",),
            origin="https://github.com/showlab/EgoVLP",
            licence="MIT",
        ),
        Weights(
            name="videoclip",
            files=("checkpoint_best.pt", "s3d_howto100m.pth", "s3d_dict.npy"),
            origin="https://github.com/facebookresearch/fairseq/tree/main/examples/MMPT",
            licence="CC-BY-NC-4.0",
        ),
        Weights(
            name="internvideo",
            files=("pytorch_model.bin",),
            origin="https://github.com/OpenGVLab/InternVideo",
            licence="Apache-2.0",
        ),
    )
}


def locate(name: str) -> dict[str, Path] | None:
    """Return the weights' files by name, fetched or in the mirror, or None where one is absent."""
    found = {}
    for file in WEIGHTS[name].files:
        local = Path("weights") / name / file
        path = local if local.is_file() else find(Wanted(path=f"weights/{name}/{file}"))
        if path is None:
            return None
        found[file] = path
    return found


def how_to_get(name: str) -> str:
    """Return a command that brings the weights."""
    weights = WEIGHTS[name]
    if weights.urls:
        return f"stepline fetch weights/{name}"
    folder = f"$STEPLINE_MIRROR/weights/{name}/"
    return f"mkdir -p {folder} && cp {' '.join(weights.files)} {folder}"
