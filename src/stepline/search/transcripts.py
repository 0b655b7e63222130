"""What is said in the videos of a data set: the sentences of its transcripts, and their vectors."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from stepline import paths
from stepline.asr import engines, released, transcript
from stepline.asr.transcript import Sentence
from stepline.asr.weights import how_to_get
from stepline.availability import read_manifest
from stepline.backbones.sentence import SentenceEncoder
from stepline.datasets import hirest
from stepline.datasets.release import how_to_bring
from stepline.datasets.studies import Study
from stepline.errors import StoreError
from stepline.features.text import TextStore, encode_texts
from stepline.io import write_json
from stepline.pipeline import Pipeline, configured_stages
from stepline.search.corpus import one_thread

Lines = Iterable[Sentence]


class Transcripts:
    """The transcripts of a data set's videos.

    source: the recogniser, or ``released`` where the authors' own transcripts are configured. Where the configured
    recogniser has made none, it is the one that has transcripts of the most videos, if there is one. bring: what to do
    for transcripts, as a clause. videos: of which there is a transcript.
    """

    def __init__(self, pipeline: Pipeline) -> None:
        """Look which transcripts there are; a file is read when its video is asked for."""
        if _are_released(pipeline):
            self.source, self.bring = "released", _fetch(pipeline)
            self.videos, self._lines = _released(pipeline)
        else:
            self.source, self.bring = _engine(pipeline), _how_to_transcribe(pipeline)
            self.videos, self._lines = _recognised(pipeline, self.source)
        self._read: dict[str, tuple[Sentence, ...]] = {}

    def __call__(self, video: str) -> tuple[Sentence, ...]:
        """Return the sentences of a video that have words, by their starts; () where there is no transcript."""
        if video not in self._read:
            lines = self._lines(video) if video in self.videos else ()
            texts = (replace(line, text=" ".join(line.text.split())) for line in lines)
            self._read[video] = tuple(sorted((line for line in texts if line.text), key=lambda line: line.start_s))
        return self._read[video]


def transcript_folders(pipeline: Pipeline) -> list[Path]:
    """Return the folders that ``Transcripts`` reads."""
    if not _are_released(pipeline):
        return [pipeline.speech.folder.parent]
    if isinstance(pipeline.dataset, Study):
        return [pipeline.dataset.folder(name) for name in pipeline.config[pipeline.name]["releases"]]
    return [hirest.RELEASES.folder("asr")]


def _are_released(pipeline: Pipeline) -> bool:
    return bool(pipeline.config.get(pipeline.name, {}).get("transcripts") == "released")


def _fetch(pipeline: Pipeline) -> str:
    study = isinstance(pipeline.dataset, Study)
    release = pipeline.config[pipeline.name]["releases"][0] if study else "asr"
    return f"run `{how_to_bring(pipeline.name, release)}`"


def _how_to_transcribe(pipeline: Pipeline) -> str:
    if "speech" not in configured_stages(pipeline.config, pipeline.name):
        return "name `speech` in its `stages` and run `snakemake`"
    engine, needs = pipeline.speech.engine, pipeline.speech.missing
    if not needs:
        return "run `snakemake`"
    fill = {"package": "install {0}", "key": "set {0}", "weights": "run `{1}`"}
    steps = [fill[need.kind].format(need.what, how_to_get(need.what)) for need in needs]
    return f"{', '.join(steps)} and run `snakemake`, as {engine} needs it, or set `asr.engine: pocketsphinx`"


def _engine(pipeline: Pipeline) -> str:
    made = {engine: len(_present(pipeline, engine)) for engine in engines.THREADS}
    configured = pipeline.speech.engine
    return max(made, key=lambda engine: (made[engine] > 0, engine == configured, made[engine]))


def _present(pipeline: Pipeline, engine: str) -> frozenset[str]:
    folder = paths.transcripts(pipeline.name, engine)
    manifests = [read_manifest(path) for path in pipeline.videos.manifests(folder) if path.exists()]
    return frozenset(video for made in manifests for video, record in made.items() if record["status"] == "present")


def _recognised(pipeline: Pipeline, engine: str) -> tuple[frozenset[str], Callable[[str], Lines]]:
    folder = paths.transcripts(pipeline.name, engine)
    return _present(pipeline, engine), lambda video: transcript.read(folder / f"{video}.parquet")


def _released(pipeline: Pipeline) -> tuple[frozenset[str], Callable[[str], Lines]]:
    """Return those of the first of a study's configured releases that is there, or of HiREST's archive."""
    dataset = pipeline.dataset
    if isinstance(dataset, Study):
        names = pipeline.config[dataset.name]["releases"]
        there = [name for name in names if (dataset.folder(name) / "release.json").exists()]
        if there:
            of = partial(dataset.release_file, there[0])
            videos = frozenset(dataset.load(there[0]).recordings)
            return videos, lambda video: released.read(of(f"data/transcripts/{video}.csv"))
    elif (hirest.RELEASES.folder("asr") / "release.json").exists():
        found = hirest.subtitles(video.id for video in dataset.videos())
        return frozenset(found), lambda video: (Sentence(each.text, each.start_s, each.end_s) for each in found[video])
    return frozenset(), lambda _: ()


class Vectors:
    """The vectors of sentences by one encoder; each is computed once for all searches of the data set."""

    def __init__(self, name: str, dataset: str) -> None:
        """name: of a sentence encoder. Raises MissingError where its files are absent."""
        self.encoder = SentenceEncoder(name)
        self._folder = paths.spec_record(self.encoder.spec).parent / dataset / "search" / "sentences"
        self._store: TextStore | None = None

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the (N, D) vectors of ``texts``; those that the store lacks are computed."""
        with suppress(StoreError):
            if self._store:
                return self._store(texts)
        write_json(paths.spec_record(self.encoder.spec), self.encoder.spec.record())
        with one_thread():
            encode_texts(texts, self.encoder, self._folder, what=f"{self.encoder.spec.name} sentences")
        self._store = TextStore(self._folder, self.encoder.spec)
        return self._store(texts)
