"""Weights that a user supplies or downloads: their files, sources and licences."""

import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from stepline.errors import ConfigError, StoreError
from stepline.io import read_json
from stepline.mirror import cached_sha256, mirror_root

HUB = "https://huggingface.co"
DIGESTS = "sha256.json"
"""The file next to downloaded weights with the sha256 of each file at download."""
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*")
"""The name of a file or folder."""


@dataclass(frozen=True, kw_only=True)
class File:
    """One file. url: a download address that needs no account, except a token for a gated repository; or "".

    size, sha256: in bytes and in hex, as published; 0 and "" if not published. optional: not every repository has it.
    instead: the index that a repository may have in its place, and with it the files that the index lists.
    """

    name: str
    url: str = ""
    size: int = 0
    sha256: str = ""
    optional: bool = False
    instead: str = ""


@dataclass(frozen=True, kw_only=True)
class Weights:
    """The files of one model, all in ``weights/<name>/`` of the work folder or all in that folder of the mirror.

    If no sha256 is published, the first download is trusted, see ``DIGESTS``. Files that a user supplies are not
    checked. by_hand: how to get a file that cannot be downloaded; default: get it from ``origin``.
    """

    name: str
    files: tuple[File, ...]
    origin: str
    licence: str
    by_hand: str = ""

    def __post_init__(self) -> None:
        """Raise ConfigError if a name is not a plain file or folder name."""
        for name in (self.name, *(file.name for file in self.files)):
            if not _NAME.fullmatch(name):
                raise ConfigError(
                    f"weights: {name!r} is not a file or folder name: use letters, digits, `.`, `_` and `-`"
                )


def _transformer(name: str, model: str, licence: str = "Apache-2.0") -> Weights:
    origin = f"{HUB}/{model}"
    files = ("config.json", "model.safetensors", "tokenizer.json")
    return Weights(
        name=name,
        files=tuple(File(name=file, url=f"{origin}/resolve/main/{file}") for file in files),
        origin=origin,
        licence=licence,
    )


_MAVEN = "https://repo1.maven.org/maven2"
_S3D = "https://www.rocq.inria.fr/cluster-willow/amiech/howto100m"
_HIREST = f"{HUB}/j-min/HiREST-baseline"
_HIREST_FILES = f"{_HIREST}/resolve/54e2f8da7a4384fec8a137011399f5e104069032"
_INTERNVIDEO = "https://pjlab-gvm-data.oss-cn-shanghai.aliyuncs.com/internvideo/retrieval/msrvtt"
WEIGHTS = {
    weights.name: weights
    for weights in (
        Weights(
            name="s3d",
            files=(
                File(name="s3d_howto100m.pth", url=f"{_S3D}/s3d_howto100m.pth"),
                File(name="s3d_dict.npy", url=f"{_S3D}/s3d_dict.npy"),
            ),
            origin="https://github.com/antoine77340/S3D_HowTo100M",
            licence="none stated",
            by_hand="get it from a link in https://github.com/antoine77340/S3D_HowTo100M/issues/14",
        ),
        Weights(
            name="timesformer",
            files=(
                File(
                    name="TimeSformer_divST_8x32_224_HowTo100M_pretrained.pth",
                    url="https://dl.fbaipublicfiles.com/video-distant-supervision/"
                    "TimeSformer_divST_8x32_224_HowTo100M_pretrained.pth",
                ),
            ),
            origin="https://github.com/facebookresearch/video-distant-supervision",
            licence="CC-BY-NC-SA-3.0",
        ),
        Weights(
            name="internvideo",
            files=(
                File(
                    name="pytorch_model.bin",
                    url=f"{_INTERNVIDEO}/kc4_finetune_1e-32e-3_77words_12frames_128_16_bothdsl/pytorch_model.bin",
                ),
            ),
            origin="https://github.com/OpenGVLab/InternVideo",
            licence="Apache-2.0",
            by_hand=f"get the file fine-tuned on MSR-VTT from {HUB}/OpenGVLab/InternVideo1.0",
        ),
        Weights(
            name="internvideo-mm",
            files=(
                File(
                    name="InternVideo-MM-L-14.ckpt",
                    url=f"{HUB}/OpenGVLab/InternVideo1.0/resolve/main/InternVideo-MM-L-14.ckpt",
                ),
            ),
            origin="https://github.com/OpenGVLab/InternVideo",
            licence="Apache-2.0",
            by_hand=f"get it from {HUB}/OpenGVLab/InternVideo1.0",
        ),
        Weights(
            name="eva_clip",
            files=(
                File(
                    name="eva_clip_psz14.pt",
                    url=f"{HUB}/BAAI/EVA/resolve/main/eva_clip_psz14.pt",
                    size=2273012515,
                    sha256="fe1d3a90bb88c3816a8c708b8a16c11c93cc323ec9e7bc7a0e8b979449fa9785",
                ),
            ),
            origin="https://github.com/baaivision/EVA",
            licence="MIT",
        ),
        Weights(
            name="egovlp",
            files=(
                File(name="EgoVLP_PT_BEST.pth"),
                File(
                    name="tokenizer.json",
                    url=f"{HUB}/distilbert/distilbert-base-uncased/resolve/main/tokenizer.json",
                ),
            ),
            origin="https://github.com/showlab/EgoVLP",
            licence="MIT",
            by_hand="open https://drive.google.com/file/d/1-cP3Gcg0NGDcMZalgJ_615BQdbFIbcj7/view in a browser and save "
            "it as EgoVLP_PT_BEST.pth",
        ),
        Weights(
            name="frozen-in-time",
            files=(
                File(
                    name="cc-webvid2m-4f_stformer_b_16_224.pth.tar",
                    url="https://www.robots.ox.ac.uk/~maxbain/frozen-in-time/models/"
                    "cc-webvid2m-4f_stformer_b_16_224.pth.tar",
                ),
                File(
                    name="tokenizer.json",
                    url=f"{HUB}/distilbert/distilbert-base-uncased/resolve/main/tokenizer.json",
                ),
            ),
            origin="https://github.com/m-bain/frozen-in-time",
            licence="MIT",
        ),
        Weights(
            name="videoclip",
            files=(
                File(
                    name="checkpoint_best.pt",
                    url="https://dl.fbaipublicfiles.com/MMPT/retri/videoclip/checkpoint_best.pt",
                ),
                File(name="tokenizer.json", url=f"{HUB}/google-bert/bert-base-uncased/resolve/main/tokenizer.json"),
            ),
            origin="https://github.com/facebookresearch/fairseq/tree/main/examples/MMPT",
            licence="CC-BY-NC-4.0",
        ),
        Weights(
            name="hirest-joint",
            files=(
                File(
                    name="HiREST_BEST.pth",
                    url=f"{_HIREST_FILES}/HiREST_BEST.pth",
                    size=252841413,
                    sha256="9f3c207007614fe25a07ec7788f35d122e4bb5eafdfa2775f86cdc3eb6b38100",
                ),
            ),
            origin=_HIREST,
            licence="none stated",
        ),
        Weights(
            name="clip4caption",
            files=(
                File(
                    name="clip4caption_vit-b-32_model.bin",
                    url=f"{_HIREST_FILES}/clip4caption_vit-b-32_model.bin",
                    size=235712437,
                    sha256="e4814e953cb088c2f096ac346b003a750bed4f899b7af7bbd9513d43247837be",
                ),
            ),
            origin=_HIREST,
            licence="none stated",
        ),
        _transformer("mpnet", "sentence-transformers/all-mpnet-base-v2"),
        _transformer("paraphrase-mpnet", "sentence-transformers/paraphrase-mpnet-base-v2"),
        _transformer("roberta-large", "FacebookAI/roberta-large", "MIT"),
        _transformer("nli-deberta-v3-base", "cross-encoder/nli-deberta-v3-base"),
        Weights(
            name="corenlp",
            files=tuple(
                File(name=file, url=f"{_MAVEN}/{folder}/{file}")
                for folder, file in (
                    ("edu/stanford/nlp/stanford-corenlp/3.6.0", "stanford-corenlp-3.6.0.jar"),
                    ("edu/stanford/nlp/stanford-corenlp/3.6.0", "stanford-corenlp-3.6.0-models.jar"),
                    ("org/mozilla/rhino/1.7.14.1", "rhino-1.7.14.1.jar"),
                    ("org/mozilla/rhino-engine/1.7.14.1", "rhino-engine-1.7.14.1.jar"),
                )
            ),
            origin="https://stanfordnlp.github.io/CoreNLP",
            licence="GPL-3.0-or-later AND MPL-2.0",
        ),
    )
}
"""The weights of the published models by name. ``weights_of`` also knows models by name (``timm:...``)."""


def weights_of(name: str) -> Weights:
    """Return the weights with that name; raise ConfigError if it is unknown."""
    if ":" in name:
        found: Weights = import_module("stepline.backbones.named").weights(name)
        return found
    if name not in WEIGHTS:
        raise ConfigError(f"weights {name!r} are not known; choose from {', '.join(WEIGHTS)}, or whisper/<model>")
    return WEIGHTS[name]


def place(weights: Weights) -> Path | None:
    """Return the folder that contains all required files, in the work folder or in the mirror, or None."""
    root = mirror_root()
    for folder in (Path("weights", weights.name), *([root / "weights" / weights.name] if root else [])):
        if all(file.optional or present(folder, file) for file in weights.files):
            return folder
    return None


def present(folder: Path, file: File) -> list[str]:
    """Return the names of the files in ``folder`` that are ``file``, or those in its place; [] if one is absent."""
    names = [file.name]
    if file.instead and not (folder / file.name).is_file():
        names = [file.instead, *parts(folder / file.instead)]
    return names if all((folder / name).is_file() for name in names) else []


def parts(index: Path) -> list[str]:
    """Return the names of the files that an index lists, [] if it is absent; raise StoreError if it is not an index."""
    if not index.is_file():
        return []
    try:
        names = sorted({*read_json(index)["weight_map"].values()})
        valid = all(_NAME.fullmatch(name) for name in names)
    except (AttributeError, KeyError, TypeError, ValueError):
        valid = False
    if not valid:
        raise StoreError(f"{index} is not the index of a model in several files: remove it")
    return names


def locate(name: str) -> dict[str, Path] | None:
    """Return the files by name, all from one folder, downloaded or in the mirror; None if no folder has all of them.

    Raises StoreError if a file is not the published one or differs from the first download.
    """
    weights = weights_of(name)
    folder = place(weights)
    if folder is None:
        return None
    check(name, folder)
    return {each: folder / each for file in weights.files for each in present(folder, file)}


def check(name: str, folder: Path, sha256_of: Callable[[Path], str] = cached_sha256) -> None:
    """Raise StoreError if a file in ``folder`` differs from its published size and sha256, or from its download."""
    remedy = f"remove {folder} and run `{_fetch(name)}`"
    fetched = trusted(folder)
    for file, each in [(wanted, each) for wanted in weights_of(name).files for each in present(folder, wanted)]:
        path = folder / each
        size = path.stat().st_size
        if file.size and size != file.size:
            raise StoreError(f"{path} is not the published file: {size} bytes, expected {file.size}: {remedy}")
        expected = file.sha256 or fetched.get(each, "")
        if expected and (found := sha256_of(path)) != expected:
            what = "the published file" if file.sha256 else "the file that was downloaded"
            raise StoreError(f"{path} is not {what}: sha256 {found}, expected {expected}: {remedy}")


def trusted(folder: Path) -> dict[str, str]:
    """Return the sha256 of each file at its first download to ``folder``; empty if the user supplied the files."""
    found: dict[str, str] = read_json(folder / DIGESTS) if (folder / DIGESTS).is_file() else {}
    return found


def how_to_get(name: str) -> str:
    """Return a command that installs the weights."""
    fetch = _fetch(name)
    supplied = [file.name for file in absent(name) if not file.url]
    return f"{how_to_put(name, supplied)} && {fetch}" if supplied else fetch


def _fetch(name: str) -> str:
    return shlex.join(["stepline", "fetch", f"weights/{name}"])


def absent(name: str) -> list[File]:
    """Return those of the weights' required files that are not in their folder here."""
    weights = weights_of(name)
    folder = Path("weights", weights.name)
    return [file for file in weights.files if not (file.optional or present(folder, file))]


def how_to_put(name: str, files: Sequence[str]) -> str:
    """Return a command that copies files, from where it runs, to the weights' folder, which it makes."""
    return f"install -D -t weights/{weights_of(name).name} {shlex.join(files)}"
