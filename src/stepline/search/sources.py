"""What can be searched of a data set: what is seen, by a network's features, or what is said, by transcripts."""

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import numpy as np

from stepline.backbones.registry import FAMILIES, files_of, own_file, similarity, tower_of
from stepline.backbones.sentence import MODELS, model_files
from stepline.errors import ConfigError, MissingError
from stepline.features.bank import Bank
from stepline.features.text import TextEncoder
from stepline.paths import Location
from stepline.pipeline import Pipeline, configured_stages
from stepline.search.corpus import Corpus, Floats
from stepline.search.transcripts import Transcripts, Vectors
from stepline.spec import ClipSpec, TextSpec

POOLED = 20
"""Rows whose mean stands for a video that is seen: the best number in HiREST's Table 2."""


@dataclass(frozen=True)
class Source:
    """What texts are compared with, and by what. name: of the network or sentence encoder. what: both, in words.

    vectors: where sentences are compared, what makes their vectors.
    """

    name: str
    what: str
    encoder: TextEncoder
    corpus: Corpus
    vectors: Vectors | None = None


def source(pipeline: Pipeline, name: str | None, transcripts: Transcripts) -> Source:
    """Return what a network's features are, or the transcripts by a sentence encoder.

    name: None is the first network of the data set that has a text tower and features, else the first sentence encoder
    that is installed. Raises ConfigError or MissingError where there is nothing to search.
    """
    name = name or _first(pipeline, transcripts)
    return _said(pipeline, name, transcripts) if name in MODELS else _seen(pipeline, name)


def sentence_encoder() -> str | None:
    """Return the first sentence encoder whose files are there."""
    return next((name for name in MODELS if model_files(name)), None)


def _first(pipeline: Pipeline, transcripts: Transcripts) -> str:
    for name in pipeline.features.computed:
        if tower(pipeline, name) and stores(pipeline, name):
            return name
    if not transcripts.videos:
        wanted = "speech" in configured_stages(pipeline.config, pipeline.name)
        bring = f"run `{transcripts.bring}`, which brings transcripts" if wanted else "name `speech` in its `stages`"
        raise MissingError(
            f"{pipeline.name} has neither transcripts nor features of a network with a text tower: {bring}, or see "
            "docs/search.md for networks"
        )
    return sentence_encoder() or next(iter(MODELS))


def tower(pipeline: Pipeline, name: str) -> TextSpec | None:
    """Return the text tower of a network of the data set, None where it has none; raise ConfigError of a wrong name."""
    spec = pipeline.features.spec_of(name)
    return tower_of(spec, own_file(name, pipeline.config)) if isinstance(spec, ClipSpec) else None


def stores(pipeline: Pipeline, name: str) -> list[Location]:
    """Return the stores that are there; the remote ones of which there is a record."""
    features = pipeline.features
    shards = zip(features.manifests(name), features.stores(name), strict=True)
    return [store for record, store in shards if (store if isinstance(store, Path) else record).exists()]


def _seen(pipeline: Pipeline, name: str) -> Source:
    spec, text = pipeline.features.spec_of(name), tower(pipeline, name)
    if not isinstance(spec, ClipSpec) or text is None:
        raise ConfigError(
            f"backbone {name} has no text tower: choose a network that has one, see docs/search.md, or search what is "
            f"said by one of {', '.join(MODELS)}"
        )
    bank = Bank.open(stores(pipeline, name), spec)
    videos = [video for video in bank if bank.length(video)]
    if not videos:
        raise MissingError(f"{pipeline.name} has no features of {name}: add it to its backbones and run `snakemake`")
    files = files_of(text.weights, own_file(name, pipeline.config))
    bank.fetch()
    encoder: TextEncoder = import_module(FAMILIES[text.architecture]).load_text(text, files)
    spans = [_spans(bank, video) for video in videos]
    corpus = Corpus(
        videos=videos,
        parts=[np.asarray(bank.stores[video].rows) for video in videos if not bank.blocks[video][0].offset],
        lengths=[len(each) for each in spans],
        spans_s=np.concatenate(spans),
        similarity=similarity(spec),
        pooled_rows=POOLED,
    )
    return Source(name, f"what is seen, by {name}", encoder, corpus)


def _spans(bank: Bank, video: str) -> Floats:
    """Return start and end of what each row stands for, (T, 2): of a listed clip its own, else a hop."""
    if video in bank.clips:
        return np.array(list(bank.clips[video]))
    starts = [block.t0_s + block.hop_s * np.arange(block.length) for block in bank.blocks[video]]
    spans: Floats = np.concatenate(starts)[:, None] + np.array([0, bank.hop_s])
    return spans


def _said(pipeline: Pipeline, name: str, transcripts: Transcripts) -> Source:
    spoken = {video: lines for video in sorted(transcripts.videos) if (lines := transcripts(video))}
    if not spoken:
        raise MissingError(f"{pipeline.name} has no transcripts in which something is said: run `{transcripts.bring}`")
    vectors = Vectors(name, pipeline.name)
    said = [line for lines in spoken.values() for line in lines]
    corpus = Corpus(
        videos=list(spoken),
        parts=[vectors([line.text for line in said])],
        lengths=list(map(len, spoken.values())),
        spans_s=np.array([(line.start_s, line.end_s) for line in said]),
        similarity="cosine",
        pooled_rows=0,
    )
    what = f"what is said, by {name} on the {transcripts.source} transcripts"
    return Source(name, what, vectors.encoder, corpus, vectors)
