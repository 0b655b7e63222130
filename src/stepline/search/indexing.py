"""Building the index of a bank, and measuring its recall."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import product
from math import isqrt
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepline.errors import ConfigError, MissingError
from stepline.features.bank import Bank
from stepline.io import atomic_dir, sha256_file, write_arrays, write_sealed
from stepline.models.moments import pooled, uniform_rows
from stepline.needs import how_to_install
from stepline.pipeline import Pipeline
from stepline.progress import Progress
from stepline.search.corpus import AT_ONCE, SMALL, Corpus, Floats, Places
from stepline.search.index import ARRAYS, FAISS, RECORD, ROWS, TEXTS, Index, Recall
from stepline.search.searcher import encoded
from stepline.search.sources import bank_of, encoder_of, frames, identity, index_folder

Singles = NDArray[np.float32]

VERBS = "cut", "wash", "open", "fold", "measure", "pour", "mix", "remove", "hold", "paint", "clean", "attach"
THINGS = "the onion", "a paper box", "the lid", "a piece of wood", "the hair", "the dough", "a screw", "the plant"
INSTRUCTIONS = tuple(f"{verb} {thing}" for verb, thing in product(VERBS, THINGS))
"""The texts with which recall is measured."""
FEW = 20
"""With fewer queries, recall is not measured."""
QUERIES, HELD = 200, 100
"""Number of rows with which recall is measured, and of their videos."""
AIM = 0.98
"""The recall@10 up to which more lists and more candidates are tried."""
TRAINED, ROUNDS = 64, 10
"""Number of training rows per list, and the rounds of k-means."""
SAMPLED = 10_000
"""Number of stored rows, with which the usual scores of a query are estimated."""
BLOCK = 1 << 24
"""Number of values per block: 64 MiB in single precision."""
FIRST_LISTS, FIRST_LOOK, LAST_LOOK = 4, 64, 2048
"""The number of lists that are searched at least, and of candidates per result at least and at most."""
SEED, THREADS = 0, 2
"""Fixed, as the bytes of an index depend on both."""


def build(pipeline: Pipeline, name: str) -> Index:
    """Build the index of a network's features and write its folder, see ``paths.index``.

    Raises ConfigError if the features are too few or on object storage, MissingError if there are none or if faiss is
    not installed, and StoreError if features are damaged.
    """
    try:
        import faiss  # noqa: F401
    except ModuleNotFoundError:
        raise MissingError(f"an index needs the package faiss: {how_to_install('index')}") from None
    if store := pipeline.config["features"]["store"]:
        raise ConfigError(f"features on {store} cannot have an index, as it reads single rows: copy them to the disk")
    bank, folder = bank_of(pipeline, name), index_folder(pipeline, name)
    corpus = frames(bank, pipeline, name)
    n_rows = len(corpus.spans_s)
    if n_rows <= SMALL or len(corpus.videos) < 2:
        raise ConfigError(
            f"{name} has {n_rows:,} rows of {len(corpus.videos)} videos of {pipeline.name}: an index needs more than "
            f"{SMALL:,} rows and two videos; a search compares fewer rows in an instant"
        )
    encoder = encoder_of(pipeline, name)
    vectors = [encoded(encoder, text) for text in INSTRUCTIONS if encoder.tokens(text)] if encoder else []
    with atomic_dir(folder) as made:
        write(made, corpus, bank, np.array(vectors, np.float32).reshape(len(vectors), bank.dimension))
    index = Index.read(folder)
    assert index is not None
    return index


def write(folder: Path, corpus: Corpus, bank: Bank, texts: Singles) -> None:
    """Write the files of an index to an empty folder. texts: (n, D) vectors of the texts that recall is measured with.

    The rows that recall is measured with are of videos that the index does not contain at that time.
    """
    import faiss

    number, dimension = len(corpus.spans_s), bank.dimension
    held = uniform_rows(len(corpus.videos), min(HELD, max(len(corpus.videos) // 10, 1))).tolist()
    asked = np.concatenate([corpus.numbers(video) for video in held])
    asked = asked[uniform_rows(len(asked), min(QUERIES, len(asked)))]
    queries = {ROWS: _singles(corpus, asked), TEXTS: texts}
    queries = {kind: each for kind, each in queries.items() if len(each) >= FEW}
    best = {kind: faiss.ResultHeap(len(each), 100, keep_max=True) for kind, each in queries.items()}

    lists = 1 << (isqrt(number) // 4).bit_length() - 1
    code = f"RR{dimension},IVF{lists},RaBitQ"
    index: Any = faiss.index_factory(dimension, code, faiss.METRIC_INNER_PRODUCT)
    clustering = faiss.extract_index_ivf(index).cp
    clustering.seed, clustering.niter, clustering.max_points_per_centroid = SEED, ROUNDS, TRAINED
    faiss.omp_set_num_threads(THREADS)
    index.train(_singles(corpus, uniform_rows(number, min(TRAINED * lists, number))))
    means = np.empty((len(corpus.videos), dimension))
    recalls: dict[str, Recall] = {}
    with Progress("index", "rows", number) as shown:
        rest = [video for video in range(len(corpus.videos)) if video not in held]
        for numbers, rows in _blocks(corpus, bank, rest, means):
            index.add_with_ids(rows, numbers)
            for kind, each in queries.items():
                scores, places = faiss.knn(each, rows, min(100, len(rows)), faiss.METRIC_INNER_PRODUCT)
                best[kind].add_result(scores, numbers[places])
            shown.add(len(rows))
        for kind, each in queries.items():
            best[kind].finalize()
            among = f"{len(each[1::2])} {'rows of other videos' if kind == ROWS else 'short texts'}"
            recalls[kind] = measured(index, each, best[kind].I, among)
        for numbers, rows in _blocks(corpus, bank, held, means):
            index.add_with_ids(rows, numbers)
            shown.add(len(rows))
    faiss.write_index(index, str(folder / FAISS))
    sample = corpus.taken(uniform_rows(number, min(SAMPLED, number))).astype(corpus.parts[0].dtype)
    write_arrays(folder / ARRAYS, means=means, sample=sample)
    record = {
        "bank": identity(bank),
        "similarity": corpus.similarity,
        "rows": number,
        "dimension": dimension,
        "code": code,
        "seed": SEED,
        "faiss": faiss.__version__,
        "recall": {kind: asdict(each) for kind, each in recalls.items()},
        "sha256": {name: sha256_file(folder / name) for name in (FAISS, ARRAYS)},
    }
    write_sealed(folder / RECORD, record)


def measured(index: Any, queries: Singles, exact: Places, among: str) -> Recall:
    """Return the recall with as many lists and candidates as half of the queries need for ``AIM``.

    It is measured with the other half. exact: (n, 100), the numbers of the rows that are most similar to the queries.
    """
    import faiss

    all_lists = faiss.extract_index_ivf(index).nlist
    lists, look = FIRST_LISTS, FIRST_LOOK
    while (found := _found(index, lists, look, queries[::2], exact[::2], 10)) < AIM:
        wider = [
            each for each in ((2 * lists, look), (lists, 2 * look)) if each[0] <= all_lists and each[1] <= LAST_LOOK
        ]
        gains = [_found(index, *each, queries[::2], exact[::2], 10) - found for each in wider]
        if not wider:
            break
        lists, look = wider[int(np.argmax(gains))]
    at = [_found(index, lists, look, queries[1::2], exact[1::2], k) for k in (10, 100)]
    return Recall(queries=among, at_10=at[0], at_100=at[1], lists=lists, look=look)


def _found(index: Any, lists: int, look: int, queries: Singles, exact: Places, k: int) -> float:
    """Return the mean part of the ``k`` best rows of each query that are among its candidates."""
    import faiss

    faiss.extract_index_ivf(index).nprobe = lists
    candidates = index.search(queries, look * k)[1]
    found = [np.isin(best[:k], near).mean() for best, near in zip(exact, candidates, strict=True)]
    return round(float(np.mean(found)), 4)


def _blocks(corpus: Corpus, bank: Bank, videos: Sequence[int], means: Floats) -> Iterator[tuple[Places, Singles]]:
    """Yield the numbers and rows of videos in blocks, and write the mean of each video; rows are checked before."""
    size = max(BLOCK // bank.dimension, 1)
    numbers, block, filled = np.empty(size, np.int64), np.empty((size, bank.dimension), np.float32), 0
    for video in videos:
        rows, of = bank[corpus.videos[video]], corpus.numbers(video)
        means[video] = pooled(rows, min(corpus.pooled_rows, len(rows)), "dot product")
        while len(rows):
            taken = min(size - filled, len(rows))
            block[filled : filled + taken], numbers[filled : filled + taken] = rows[:taken], of[:taken]
            rows, of, filled = rows[taken:], of[taken:], filled + taken
            if filled == size:
                yield numbers, _scaled(block, corpus)
                filled = 0
    if filled:
        yield numbers[:filled], _scaled(block[:filled], corpus)


def _singles(corpus: Corpus, numbers: Places) -> Singles:
    """Return rows in single precision, scaled to unit length if they are compared by cosine."""
    blocks = (corpus.taken(numbers[first : first + AT_ONCE]) for first in range(0, len(numbers), AT_ONCE))
    return _scaled(np.concatenate([block.astype(np.float32) for block in blocks]), corpus)


def _scaled(rows: Singles, corpus: Corpus) -> Singles:
    import faiss

    if corpus.similarity == "cosine":
        faiss.normalize_L2(rows)
    return rows
