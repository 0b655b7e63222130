"""Search: the moments of a data set's videos whose features, or whose sentences, are most like a text."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from math import inf
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from stepline import paths
from stepline.asr import released, transcript
from stepline.asr.transcript import Sentence
from stepline.availability import read_manifest
from stepline.backbones.registry import FAMILIES, files_of, own_file, similarity, tower_of
from stepline.backbones.sentence import MODELS, SentenceEncoder, model_files
from stepline.datasets.studies import Study
from stepline.errors import ConfigError, MissingError
from stepline.features.bank import Bank
from stepline.features.text import TextEncoder, TextStore, encode_texts
from stepline.io import write_json
from stepline.pipeline import Pipeline
from stepline.spec import ClipSpec

LONGEST = 500
"""Characters of a text that is searched for."""
AT_ONCE = 4096
"""Rows that are compared together."""


@dataclass(frozen=True)
class Moment:
    """A time of a video and how like the text it is. sentence: what is said, where that was searched."""

    video: str
    time_s: float
    score: float
    sentence: str = ""


@dataclass(frozen=True, kw_only=True)
class Found:
    """What a search found, best first: moments, and the best one of each video.

    backbone: what compared, by ``similarity``, the text with ``what`` of ``searched`` of the ``listed`` videos. unseen:
    words of the text that make no difference to it. window_s: see ``peaks``.
    """

    text: str
    backbone: str
    what: str
    similarity: str
    searched: int
    listed: int
    unseen: tuple[str, ...]
    window_s: float
    moments: tuple[Moment, ...]
    videos: tuple[Moment, ...]


@dataclass(frozen=True)
class _Searched:
    """Rows (T, D) of each video, their times in seconds, ascending, and what is said then."""

    encoder: TextEncoder
    what: str
    similarity: str
    rows: Mapping[str, NDArray[np.floating]]
    times_s: Mapping[str, NDArray[np.float64]]
    sentences: Mapping[str, Sequence[str]]


def search(pipeline: Pipeline, text: str, *, backbone: str | None, top: int, window_s: float) -> Found:
    """Return the ``top`` moments and videos that are most like ``text``: equal inputs give equal results.

    backbone: a network with a text tower, of whose features there are some, or a sentence encoder, for transcripts;
    None is the first such network of the data set, else the first such encoder. Of equal moments the earlier comes
    first, then that of the video whose id is. Raises ConfigError or MissingError where there is nothing to search.
    """
    text = " ".join(text.split())
    if not 0 < len(text) <= LONGEST or not text.isprintable():
        raise ConfigError(f"a text to search for has 1 to {LONGEST} characters that can be printed, not {len(text)}")
    if top < 1 or not 0 <= window_s < inf:
        raise ConfigError(f"top must be at least 1 and window not negative, not {top} and {window_s:g}")
    name = backbone or _first(pipeline)
    searched = _said(pipeline, name) if name in MODELS else _seen(pipeline, name)
    unseen = _unseen(searched.encoder, text)
    if len(unseen) == len(text.split()):
        raise ConfigError(f"{searched.encoder.spec.name} knows no word of {text!r}: choose others")
    query = searched.encoder.encode(searched.encoder.tokens(text)).astype(np.float64)
    moments = []
    for video, rows in searched.rows.items():
        scores = np.concatenate([_scores(part, query, searched.similarity) for part in _parts(rows)])
        times_s, sentences = searched.times_s[video], searched.sentences.get(video)
        for row in peaks(times_s, scores, window_s).tolist():
            said = sentences[row] if sentences else ""
            moments.append(Moment(video, float(times_s[row]), float(scores[row]), said))
    moments.sort(key=lambda moment: (-moment.score, moment.time_s, moment.video))
    best: dict[str, Moment] = {}
    for moment in moments:
        best.setdefault(moment.video, moment)
    return Found(
        text=text,
        backbone=name,
        what=searched.what,
        similarity=searched.similarity,
        searched=len(searched.rows),
        listed=len(pipeline.dataset.videos()),
        unseen=unseen,
        window_s=window_s,
        moments=tuple(moments[:top]),
        videos=tuple(best.values())[:top],
    )


def peaks(times_s: NDArray[np.float64], scores: NDArray[np.float64], window_s: float) -> NDArray[np.intp]:
    """Return the indices of the scores that none less than ``window_s`` away exceeds; of equal ones the earlier's.

    times_s: (T,) ascending. scores: (T,). At least one is returned, all where ``window_s`` is 0.
    """
    rows = np.arange(len(scores))
    first = np.minimum(np.searchsorted(times_s, times_s - window_s, side="right"), rows)
    last = np.maximum(np.searchsorted(times_s, times_s + window_s, side="left"), rows + 1)
    best = np.maximum.reduceat(np.append(scores, -inf), np.column_stack([first, last]).ravel())[::2]
    found = np.flatnonzero(scores == best)
    return found[np.diff(times_s[found], prepend=-inf) >= window_s]


def _parts(rows: NDArray[np.floating]) -> Iterator[NDArray[np.float64]]:
    for first in range(0, len(rows), AT_ONCE):
        yield rows[first : first + AT_ONCE].astype(np.float64)


def _scores(rows: NDArray[np.float64], query: NDArray[np.float64], similarity: str) -> NDArray[np.float64]:
    """Return the (n,) similarities, to six decimals, so that the order does not hang on how sums are rounded."""
    scores = rows @ query
    if similarity == "cosine":
        lengths = np.linalg.norm(rows, axis=1) * np.linalg.norm(query)
        scores = np.divide(scores, lengths, out=np.zeros_like(scores), where=lengths > 0)
    return scores.round(6)


def _unseen(encoder: TextEncoder, text: str) -> tuple[str, ...]:
    """Return the words without which the encoder sees the same: unknown to it, or beyond what it can take."""
    words, tokens = text.split(), encoder.tokens(text)
    without = (" ".join([*words[:place], *words[place + 1 :]]) for place in range(len(words)))
    return tuple(word for word, rest in zip(words, without, strict=True) if encoder.tokens(rest) == tokens)


def _first(pipeline: Pipeline) -> str:
    for name in pipeline.features.computed:
        spec = pipeline.features.spec_of(name)
        own = own_file(name, pipeline.config)
        if isinstance(spec, ClipSpec) and tower_of(spec, own) and _stores(pipeline, name):
            return name
    if not _sentences(pipeline):
        raise MissingError(
            f"{pipeline.name} has neither transcripts nor features of a network with a text tower: run `snakemake`, "
            "which makes transcripts, or see docs/search.md for networks"
        )
    return next((name for name in MODELS if model_files(name)), next(iter(MODELS)))


def _stores(pipeline: Pipeline, name: str) -> list[Path]:
    return [folder for folder in pipeline.features.folders(name) if folder.is_dir()]


def _seen(pipeline: Pipeline, name: str) -> _Searched:
    """Return the features of a network, and the text tower beside it."""
    spec, own = pipeline.features.spec_of(name), own_file(name, pipeline.config)
    tower = tower_of(spec, own) if isinstance(spec, ClipSpec) else None
    if not isinstance(spec, ClipSpec) or tower is None:
        raise ConfigError(
            f"backbone {name} has no text tower: choose a network that has one, see docs/search.md, or search what is "
            f"said by one of {', '.join(MODELS)}"
        )
    stores = _stores(pipeline, name)
    if not stores:
        raise MissingError(f"{pipeline.name} has no features of {name}: add it to its backbones and run `snakemake`")
    bank = Bank.open(stores, spec)
    rows = {video: bank.rows[video] for video in bank if len(bank.rows[video])}
    encoder: TextEncoder = import_module(FAMILIES[tower.architecture]).load_text(tower, files_of(tower.weights, own))
    times_s = {video: _times(bank, video) for video in rows}
    return _Searched(encoder, f"what is seen, by {name}", similarity(spec), rows, times_s, {})


def _times(bank: Bank, video: str) -> NDArray[np.float64]:
    if video in bank.clips:
        return np.array([start_s for start_s, _ in bank.clips[video]])
    return np.concatenate([block.t0_s + block.hop_s * np.arange(block.length) for block in bank.blocks[video]])


def _said(pipeline: Pipeline, name: str) -> _Searched:
    """Return the embeddings of the sentences of the transcripts, each computed once."""
    found = {video: [line for line in lines if line.text.strip()] for video, lines in _sentences(pipeline).items()}
    spoken = {video: lines for video, lines in found.items() if lines}
    if not spoken:
        raise MissingError(f"{pipeline.name} has no transcripts in which something is said: run `snakemake`")
    encoder = SentenceEncoder(name)
    folder = paths.spec_record(encoder.spec).parent / pipeline.name / "search" / "sentences"
    write_json(paths.spec_record(encoder.spec), encoder.spec.record())
    texts = {video: [" ".join(line.text.split()) for line in lines] for video, lines in spoken.items()}
    encode_texts((text for lines in texts.values() for text in lines), encoder, folder, what=f"{name} sentences")
    store = TextStore(folder, encoder.spec)
    return _Searched(
        encoder,
        f"what is said, by {name} on the {_source(pipeline)} transcripts",
        "cosine",
        {video: store(lines) for video, lines in texts.items()},
        {video: np.array([line.start_s for line in lines]) for video, lines in spoken.items()},
        texts,
    )


def _source(pipeline: Pipeline) -> str:
    """Return the recogniser, or ``released`` where the study's own transcripts are configured."""
    study = pipeline.config.get(pipeline.name, {}).get("transcripts") == "released"
    return "released" if study else pipeline.speech.engine


def _sentences(pipeline: Pipeline) -> dict[str, Sequence[Sentence]]:
    """Return what is said in each video that has a transcript."""
    dataset = pipeline.dataset
    if _source(pipeline) == "released":
        assert isinstance(dataset, Study)
        configured = pipeline.config[dataset.name]["releases"]
        there = [name for name in configured if (dataset.folder(name) / "release.json").exists()]
        return {
            video: released.read(dataset.release_file(name, f"data/transcripts/{video}.csv"))
            for name in there[:1]
            for video in dataset.load(name).recordings
        }
    folder = pipeline.speech.folder
    manifests = [path for path in pipeline.speech.manifests if path.exists()]
    present = [
        video for path in manifests for video, made in read_manifest(path).items() if made["status"] == "present"
    ]
    return {video: transcript.read(folder / f"{video}.parquet") for video in present}
