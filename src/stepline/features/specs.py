"""The specs of the existing features, and the differences between two of them."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stepline import paths
from stepline.errors import ConfigError, StoreError
from stepline.io import read_json

ABSENT = "-"
MEANINGS = {
    "architecture": "the family of networks",
    "batches": "whether a batch has clips of one video or of several",
    "by": "what a pooled row stands for",
    "code_sha256": "the code of a custom backbone",
    "compute": "the number type of the network's arithmetic",
    "dimension": "the length of a vector",
    "dtype": "the number type of stored vectors",
    "files_sha256": "the imported files",
    "fps": "frames per second of the clips' time grid",
    "frame_rule": "the choice of the frame for a time",
    "hop": "frames from one row's clip to the next row's",
    "hop_s": "seconds from row to row",
    "how": "how rows are pooled",
    "interval": "frames from one frame of a clip to the next",
    "label": "the readable part of the folder's name",
    "licence": "the licence of the weights",
    "max_tokens": "the maximum number of tokens of a text",
    "mean": "subtracted from each channel",
    "model": "the model of the family",
    "name": "the backbone",
    "normalise": "whether vectors have length 1",
    "num_frames": "frames of a clip",
    "offset": "frames from a row's time to the start of its clip",
    "orientation": "whether frames are rotated as the file specifies",
    "output": "the layer, and its pooling",
    "placement": "the positions of a clip's frames",
    "pooling": "how token vectors are combined into one",
    "reader": "the library that decodes",
    "revision": "the version of the code's numbers",
    "similarity": "whether pooled rows have length 1",
    "source": "the spec of the rows that are pooled",
    "spans": "the detection of the shots, or the file of the segments",
    "std": "each channel is divided by it",
    "steps": "from the decoded frame to the network's input picture",
    "tail": "the replacement of frames outside the video",
    "tokenizer_sha256": "the tokenizer's file",
    "weights": "the published weights",
    "weights_sha256": "the files of the weights",
}
"""The meaning of each field of a spec; fields of custom backbones have none."""


def compare(first: str, second: str) -> list[tuple[str, str, str, str]]:
    """Return the fields in which two specs differ: name, both values as JSON or ``-``, and the meaning or "".

    first, second: folders ``features/<backbone>/<spec>``, or ``<backbone>/<spec>``. Raises ConfigError if there is no
    such spec, and StoreError if its record is damaged.
    """
    a, b = _record(first), _record(second)
    fields = sorted(key for key in a.keys() | b.keys() if a.get(key, ABSENT) != b.get(key, ABSENT))
    return [(key, _shown(a, key), _shown(b, key), MEANINGS.get(key, "")) for key in fields]


def specs() -> dict[Path, dict[str, bool]]:
    """Return the folders of all specs, each with its datasets, and whether the last plan of the dataset names the spec.

    It is True if no plan names a spec of the backbone: plans do not record text encoders and imported features.
    """
    found: dict[Path, dict[str, bool]] = {}
    for folder in sorted(path.parent for path in Path("features").glob("*/*/spec.json")):
        current = noted(folder.parent.name)
        datasets = sorted(path.name for path in folder.iterdir() if path.is_dir() and path.name != "manifests")
        found[folder] = {dataset: current.get(dataset, folder.name) == folder.name for dataset in datasets}
    return found


def noted(backbone: str) -> dict[str, str]:
    """Return the configured spec of a backbone for each dataset, according to the last plans."""
    path = paths.current_specs(backbone)
    current: dict[str, str] = read_json(path) if path.exists() else {}
    return current


def _record(name: str) -> Mapping[str, Any]:
    folder = next((each for each in (Path(name), Path("features", name)) if (each / "spec.json").is_file()), None)
    if folder is None:
        raise ConfigError(
            f"{name} is not a spec: give a folder features/BACKBONE/SPEC; `stepline specs list` prints all of them"
        )
    record = read_json(folder / "spec.json")
    if not isinstance(record, dict):
        raise StoreError(f"{folder / 'spec.json'} is not a spec record: remove {folder} and run the workflow again")
    return record


def _shown(record: Mapping[str, Any], key: str) -> str:
    return json.dumps(record[key], ensure_ascii=False) if key in record else ABSENT
