"""Weights that a user supplies or fetches: which files, from where, under which licence."""

from dataclasses import dataclass
from pathlib import Path

from stepline.errors import StoreError
from stepline.io import read_json
from stepline.mirror import cached_sha256, mirror_root

_HUB = "https://huggingface.co/sentence-transformers/all-mpnet-base-v2/resolve/main"
DIGESTS = "sha256.json"
"""Beside fetched weights: the sha256 of each file as it came."""


@dataclass(frozen=True, kw_only=True)
class Weights:
    """The files of one backbone. They stand in ``weights/<name>/``, here or in the mirror; never some here, some there.

    None has a published sha256: what was fetched first is trusted, see ``DIGESTS``; what a user supplies is as it is.
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
    """Return the weights' files by name, all of one folder, fetched or in the mirror, or None where none has them all.

    Raises StoreError where a fetched file is no longer what came with the first fetch.
    """
    root = mirror_root()
    for folder in (Path("weights", name), *([root / "weights" / name] if root else [])):
        found = {file: folder / file for file in WEIGHTS[name].files}
        if all(path.is_file() for path in found.values()):
            digests = read_json(folder / DIGESTS) if (folder / DIGESTS).is_file() else {}
            for file, path in found.items():
                if file in digests and cached_sha256(path) != digests[file]:
                    raise StoreError(f"{path} is not what was fetched: remove {folder} and run `{how_to_get(name)}`")
            return found
    return None


def how_to_get(name: str) -> str:
    """Return a command that brings the weights."""
    weights = WEIGHTS[name]
    if weights.urls:
        return f"stepline fetch weights/{name}"
    folder = f"weights/{name}/"
    return f"mkdir -p {folder} && cp {' '.join(weights.files)} {folder}"
