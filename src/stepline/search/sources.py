"""The searchable content of a data set: frames, by a network's features, or speech, by transcripts."""

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from stepline.asr.languages import ENGLISH
from stepline.backbones.registry import FAMILIES, files_of, own_file, similarity, tower_of
from stepline.backbones.sentence import MODELS, model_files
from stepline.errors import ConfigError, MissingError
from stepline.features.bank import Bank
from stepline.features.text import TextEncoder
from stepline.paths import Location
from stepline.pipeline import Pipeline
from stepline.search import words
from stepline.search.corpus import Corpus, Floats
from stepline.search.transcripts import Transcripts, Vectors
from stepline.search.words import Vocabulary, WordCorpus, vocabulary
from stepline.spec import ClipSpec, TextSpec

POOLED = 20
"""Number of rows in the mean of a video's frame features, the best number in HiREST's Table 2."""


@dataclass(frozen=True)
class Source:
    """The content that queries are compared with. name: the backbone. what: a description of content and backbone.

    encoder: the text encoder, None if there is none. said: whether rows are sentences. vectors: the embedding function
    of sentences, if a sentence encoder compares them. hint: a warning about the results, or "".
    """

    name: str
    what: str
    encoder: TextEncoder | Vocabulary | None
    corpus: Corpus
    said: bool = False
    vectors: Vectors | None = None
    hint: str = ""


def source(pipeline: Pipeline, name: str | None, transcripts: Transcripts, *, needs_text: bool = True) -> Source:
    """Return the features of a backbone, or the transcripts with a sentence encoder or by words.

    name: None means the first backbone of the data set with a text tower and features, otherwise the first installed
    sentence encoder, otherwise words. Without ``needs_text`` a backbone needs no text tower. Raises ConfigError or
    MissingError if there is nothing to search.
    """
    name = name or _first(pipeline, transcripts, needs_text)
    if name == words.NAME or name in MODELS:
        return _said(pipeline, name, transcripts)
    return _seen(pipeline, name, needs_text)


def sentence_encoder() -> str | None:
    """Return the first installed sentence encoder, None if there is none."""
    return next((name for name in MODELS if model_files(name)), None)


def _first(pipeline: Pipeline, transcripts: Transcripts, needs_text: bool) -> str:
    for name in pipeline.features.computed:
        if (not needs_text or tower(pipeline, name)) and stores(pipeline, name):
            return name
    if not transcripts.videos:
        features = "features of a backbone with a text tower" if needs_text else "features"
        raise MissingError(
            f"{pipeline.name} has neither transcripts nor {features}: for transcripts {transcripts.bring}; for "
            "features add a backbone from docs/search.md to its `backbones` and run `snakemake`"
        )
    return sentence_encoder() or words.NAME


def tower(pipeline: Pipeline, name: str) -> TextSpec | None:
    """Return the text tower of a network of the data set, None if it has none; raise ConfigError if it is unknown."""
    spec = pipeline.features.spec_of(name)
    return tower_of(spec, own_file(name, pipeline.config)) if isinstance(spec, ClipSpec) else None


def stores(pipeline: Pipeline, name: str) -> list[Location]:
    """Return the existing local stores, or the recorded remote stores."""
    features = pipeline.features
    shards = zip(features.manifests(name), features.stores(name), strict=True)
    return [store for record, store in shards if (store if isinstance(store, Path) else record).exists()]


def _seen(pipeline: Pipeline, name: str, needs_text: bool) -> Source:
    spec, text = pipeline.features.spec_of(name), tower(pipeline, name)
    if text is None and needs_text:
        raise ConfigError(
            f"backbone {name} has no text tower: use `--like VIDEO@TIME`, which needs none, choose a network with a "
            f"text tower (docs/search.md), or search transcripts with one of {', '.join([*MODELS, words.NAME])}"
        )
    bank = Bank.open(stores(pipeline, name), spec)
    videos = [video for video in bank if bank.length(video)]
    if not videos:
        raise MissingError(f"{pipeline.name} has no features of {name}: add it to its backbones and run `snakemake`")
    bank.fetch()
    encoder: TextEncoder | None = None
    if text and needs_text:
        files = files_of(text.weights, own_file(name, pipeline.config))
        encoder = import_module(FAMILIES[text.architecture]).load_text(text, files)
    spans = [_spans(bank, video) for video in videos]
    corpus = Corpus(
        videos=videos,
        parts=[np.asarray(bank.stores[video].rows) for video in videos if not bank.blocks[video][0].offset],
        lengths=[len(each) for each in spans],
        spans_s=np.concatenate(spans),
        similarity=similarity(spec),
        pooled_rows=POOLED,
    )
    return Source(name, f"frames, by {name}", encoder, corpus)


def _spans(bank: Bank, video: str) -> Floats:
    """Return the (T, 2) start and end of each row: the times of a listed clip, otherwise one hop."""
    if video in bank.clips:
        return np.array(list(bank.clips[video]))
    starts = [block.t0_s + block.hop_s * np.arange(block.length) for block in bank.blocks[video]]
    spans: Floats = np.concatenate(starts)[:, None] + np.array([0, bank.hop_s])
    return spans


def _said(pipeline: Pipeline, name: str, transcripts: Transcripts) -> Source:
    spoken = {video: lines for video in sorted(transcripts.videos) if (lines := transcripts(video))}
    if not spoken:
        raise MissingError(f"{pipeline.name} has no transcripts with speech: {transcripts.bring}")
    said = [line for lines in spoken.values() for line in lines]
    texts = [line.text for line in said]
    shape: dict[str, Any] = {
        "videos": list(spoken),
        "lengths": list(map(len, spoken.values())),
        "spans_s": np.array([(line.start_s, line.end_s) for line in said]),
        "pooled_rows": 0,
    }
    what = f"speech, by {name} on the {transcripts.source} transcripts"
    if name == words.NAME:
        known = vocabulary(texts)
        corpus: Corpus = WordCorpus(**shape, parts=[words.rows(texts, known)], similarity="BM25")
        return Source(name, what, known, corpus, said=True)
    vectors = Vectors(name, pipeline.name)
    corpus = Corpus(**shape, parts=[vectors(texts)], similarity="cosine")
    other = sorted({transcripts.language(video) for video in spoken} - {"", ENGLISH})
    way = f"`--backbone {words.NAME}` compares words instead"
    hint = f"{name} was trained on English, and transcripts are in {', '.join(other)}: {way}" if other else ""
    return Source(name, what, vectors.encoder, corpus, said=True, vectors=vectors, hint=hint)
