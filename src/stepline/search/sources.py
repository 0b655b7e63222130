"""The searchable content of a data set: frames, by a network's features, or speech, by transcripts."""

import hashlib
from dataclasses import astuple, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from stepline import paths
from stepline.asr.languages import ENGLISH
from stepline.backbones.registry import FAMILIES, files_of, own_file, similarity, tower_of
from stepline.backbones.sentence import MODELS, model_files
from stepline.errors import ConfigError, MissingError
from stepline.features.bank import Bank
from stepline.features.opening import open_bank
from stepline.features.pool import check_current
from stepline.features.specs import noted
from stepline.features.text import TextEncoder
from stepline.invocation import current
from stepline.io import read_json
from stepline.paths import Location
from stepline.pipeline import Pipeline
from stepline.search import words
from stepline.search.corpus import Corpus, Floats
from stepline.search.index import Index
from stepline.search.indexed import IndexedCorpus, shallow
from stepline.search.transcripts import Transcripts, Vectors
from stepline.search.words import Vocabulary, WordCorpus, vocabulary
from stepline.spec import ClipSpec, TextSpec

MANY = 1_000_000
"""From this number of rows on, a search without an index names the command that builds one."""
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


def source(
    pipeline: Pipeline, name: str | None, transcripts: Transcripts, *, needs_text: bool = True, exact: bool = False
) -> Source:
    """Return the features of a backbone, or the transcripts with a sentence encoder or by words.

    name: None means the first backbone of the data set with a text tower and features, otherwise the first installed
    sentence encoder, otherwise words. Without ``needs_text`` a backbone needs no text tower. exact: whether an index is
    ignored. Raises ConfigError or MissingError if there is nothing to search.
    """
    name = name or _first(pipeline, transcripts, needs_text)
    if name == words.NAME or name in MODELS:
        return _said(pipeline, name, transcripts)
    return _seen(pipeline, name, needs_text, exact)


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


def _seen(pipeline: Pipeline, name: str, needs_text: bool, exact: bool) -> Source:
    backbone, pooled = of_backbone(pipeline, name)
    if needs_text and tower(pipeline, backbone) is None:
        raise ConfigError(
            f"backbone {name} has no text tower: use `--like VIDEO@TIME`, which needs none, choose a network with a "
            f"text tower (docs/search.md), or search transcripts with one of {', '.join([*MODELS, words.NAME])}"
        )
    bank = bank_of(pipeline, backbone)
    if pooled:
        bank = _pooled(pipeline, pooled, bank)
    corpus, hint = (frames(bank, pipeline, backbone), "") if exact or pooled else _indexed(bank, pipeline, name)
    if not isinstance(corpus, IndexedCorpus):
        bank.fetch()
    corpus.prepare()
    encoder = encoder_of(pipeline, backbone) if needs_text else None
    return Source(name, f"frames, by {name}", encoder, corpus, hint=hint)


def bank_of(pipeline: Pipeline, name: str) -> Bank:
    """Return the features of a network; raise MissingError if there are none."""
    bank = Bank.open(stores(pipeline, name), pipeline.features.spec_of(name))
    if not any(map(bank.length, bank)):
        raise MissingError(f"{pipeline.name} has no features of {name}: add it to its backbones and run `snakemake`")
    return bank


def encoder_of(pipeline: Pipeline, name: str) -> TextEncoder | None:
    """Return the text encoder of a network, None if it has none; raise MissingError if its weights are missing."""
    text = tower(pipeline, name)
    if text is None:
        return None
    encoder: TextEncoder = import_module(FAMILIES[text.architecture]).load_text(
        text, files_of(text.weights, own_file(name, pipeline.config))
    )
    return encoder


def frames(bank: Bank, pipeline: Pipeline, name: str) -> Corpus:
    """Return the rows of a network's features; nothing is read."""
    videos = [video for video in bank if bank.length(video)]
    spans = [_spans(bank, video) for video in videos]
    return Corpus(
        videos=videos,
        parts=[np.asarray(bank.stores[video].rows) for video in videos if not bank.blocks[video][0].offset],
        lengths=[len(each) for each in spans],
        spans_s=np.concatenate(spans),
        similarity=similarity(pipeline.features.spec_of(name)),
        pooled_rows=POOLED,
    )


def identity(bank: Bank) -> str:
    """Return the sha256 of the order, places and sha256 of all rows of a bank."""
    blocks = [astuple(block) for listed in bank.blocks.values() for block in listed]
    return hashlib.sha256(repr(blocks).encode()).hexdigest()


def index_folder(pipeline: Pipeline, name: str) -> Path:
    """Return the folder of the index of a network's features."""
    return paths.index(pipeline.name, pipeline.features.spec_of(name))


def _indexed(bank: Bank, pipeline: Pipeline, name: str) -> tuple[Corpus, str]:
    """Return the rows with their index if it can be used, and otherwise a hint if there should be one."""
    corpus, folder = frames(bank, pipeline, name), index_folder(pipeline, name)
    index, command = Index.read(folder), f"`{current().verb('bank', 'index', name, pipeline.name)}`"
    if index is None:
        many = len(corpus.spans_s) > MANY and not pipeline.config["features"]["store"]
        return corpus, f"an index answers faster: {command} builds it" if many else ""
    if reason := index.refusal(identity(bank)):
        return corpus, f"the index {folder} is not used: {reason}; {command} builds it again"
    return IndexedCorpus(**shallow(corpus), index=index, check=bank.fetch), ""


def of_backbone(pipeline: Pipeline, name: str) -> tuple[str, Path | None]:
    """Return the backbone of features, and the folder of their spec if they were pooled (see ``features.pool``)."""
    pooled = noted(name).get(pipeline.name)
    folder = Path("features", name, pooled) if pooled else Path()
    record = read_json(folder / "spec.json") if pooled else {}
    if "source" not in record:
        return name, None
    return pipeline.features.backbone_of(record["source"].partition("/")[0]), folder


def _pooled(pipeline: Pipeline, folder: Path, bank: Bank) -> Bank:
    """Return the pooled rows with the spec in ``folder``; raise StoreError if those of ``bank`` changed afterwards."""
    at = pipeline.config["features"]["store"] or "."
    pooled = open_bank("/".join(folder.parts[-2:]), pipeline.name, root=at)
    check_current(pooled, bank, pipeline.name)
    return pooled


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
        corpus.prepare()
        return Source(name, what, known, corpus, said=True)
    vectors = Vectors(name, pipeline.name)
    corpus = Corpus(**shape, parts=[vectors(texts)], similarity="cosine")
    corpus.prepare()
    other = sorted({transcripts.language(video) for video in spoken} - {"", ENGLISH})
    way = f"`--backbone {words.NAME}` compares words instead"
    hint = f"{name} was trained on English, and transcripts are in {', '.join(other)}: {way}" if other else ""
    return Source(name, what, vectors.encoder, corpus, said=True, vectors=vectors, hint=hint)
