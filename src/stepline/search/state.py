"""The state of a search's input files, which the search prompt compares before each query."""

import os
from collections.abc import Iterator
from pathlib import Path

from stepline.backbones.registry import own_file
from stepline.backbones.sentence import MODELS, model_files
from stepline.backbones.weights import locate
from stepline.config.declarations import folders
from stepline.pipeline import Pipeline
from stepline.remembered import seen
from stepline.search import words
from stepline.search.joint import joint_file
from stepline.search.sources import index_folder, of_backbone, sentence_encoder, stores, tower
from stepline.search.transcripts import transcript_folders
from stepline.spec import digest


def state(pipeline: Pipeline, backbone: str | None) -> str:
    """Return a digest of all inputs of ``Searcher.open``; equal digests mean equal answers.

    The digest contains inode, size and times of files, and the records of stores on object storage. Raises ConfigError
    and StoreError like ``Searcher.open``.
    """
    files = sorted({file for place in _places(pipeline, backbone) for file in _below(place)})
    return digest([pipeline.config, [video.id for video in pipeline.dataset.videos()], seen(files)[0]])


def _places(pipeline: Pipeline, backbone: str | None) -> Iterator[Path]:
    """Yield the files and folders of transcripts, releases, the user's benchmarks, features and weights."""
    yield from transcript_folders(pipeline)
    yield from Path("datasets", pipeline.name).glob("*/release.json")
    for name in pipeline.config["benchmarks"]:
        yield from folders(pipeline.config)[name].glob("*.yaml")
    encoders = sentence_encoder(), backbone
    for name in MODELS:
        yield from ((model_files(name) or {}) if name in encoders else {}).values()
    for name in [backbone] if backbone else pipeline.features.computed:
        if name in (*MODELS, words.NAME):
            continue
        name, pooled = of_backbone(pipeline, name)
        if text := tower(pipeline, name):
            yield from pipeline.features.manifests(name)
            yield from (store for store in stores(pipeline, name) if isinstance(store, Path))
            yield index_folder(pipeline, name)
            yield from (file for each in text.weights for file in (locate(each) or {}).values())
            yield from filter(None, [own_file(name, pipeline.config), joint_file(name), pooled])


def _below(place: Path) -> Iterator[str]:
    if not place.is_dir():
        yield str(place)
    for folder, _, names in os.walk(place):
        yield from (f"{folder}/{name}" for name in names)
