"""The transcripts of a data set: sentences and their embeddings."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from stepline import paths
from stepline.asr import released, transcript
from stepline.asr.languages import ENGLISH, MULTI
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

    source: the recogniser, see ``Speech.readable``, or ``released`` if the authors' own transcripts are configured.
    bring: a clause that says how to get transcripts. videos: the videos with a transcript.
    """

    def __init__(self, pipeline: Pipeline) -> None:
        """List the existing transcripts. A file is read when its video is requested."""
        if _are_released(pipeline):
            self.source, self.bring = "released", _fetch(pipeline)
            self.videos, self._lines = _released(pipeline)
            self._languages: Mapping[str, str] = {}
        else:
            self.source, self.bring = pipeline.speech.readable.engine, _how_to_transcribe(pipeline)
            folder = paths.transcripts(pipeline.name, self.source)
            self._languages = _languages(pipeline, folder)
            self.videos = frozenset(self._languages)
            self._lines = lambda video: transcript.read(folder / f"{video}.parquet")
        self._read: dict[str, tuple[Sentence, ...]] = {}

    def __call__(self, video: str) -> tuple[Sentence, ...]:
        """Return the non-empty sentences of a video, ordered by start; () if there is no transcript."""
        if video not in self._read:
            lines = self._lines(video) if video in self.videos else ()
            texts = (replace(line, text=" ".join(line.text.split())) for line in lines)
            self._read[video] = tuple(sorted((line for line in texts if line.text), key=lambda line: line.start_s))
        return self._read[video]

    def language(self, video: str) -> str:
        """Return the tag of the language of a video's transcript; "" if it is not known, or not one language."""
        language = self._languages.get(video, ENGLISH)
        return "" if language == MULTI else language


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
        return "add `speech` to its `stages` and run `snakemake`"
    engine, needs = pipeline.speech.engine, pipeline.speech.missing
    if not needs:
        return "run `snakemake`"
    fill = {"package": "install {0}", "key": "set {0}", "weights": "run `{1}`"}
    steps = [fill[need.kind].format(need.what, how_to_get(need.what)) for need in needs]
    return f"{', '.join(steps)} and run `snakemake`, because {engine} needs it, or set `asr.engine: pocketsphinx`"


def _languages(pipeline: Pipeline, folder: Path) -> dict[str, str]:
    """Return the language of each transcript in a recogniser's folder."""
    manifests = [read_manifest(path) for path in pipeline.videos.manifests(folder) if path.exists()]
    made = (each for manifest in manifests for each in manifest.items())
    return {video: record.get("language", ENGLISH) for video, record in made if record["status"] == "present"}


def _released(pipeline: Pipeline) -> tuple[frozenset[str], Callable[[str], Lines]]:
    """Return the transcripts of a study's first existing release, or of HiREST's archive."""
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
    """The embeddings of sentences by one encoder, each computed once for all searches of the data set."""

    def __init__(self, name: str, dataset: str) -> None:
        """Open the store. name: a sentence encoder. Raises MissingError if its files are missing."""
        self.encoder = SentenceEncoder(name)
        self._folder = paths.spec_record(self.encoder.spec).parent / dataset / "search" / "sentences"
        self._store: TextStore | None = None

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the (N, D) embeddings of ``texts``; missing ones are computed and stored."""
        with suppress(StoreError):
            if self._store:
                return self._store(texts)
        write_json(paths.spec_record(self.encoder.spec), self.encoder.spec.record())
        with one_thread():
            encode_texts(texts, self.encoder, self._folder, what=f"{self.encoder.spec.name} sentences")
        self._store = TextStore(self._folder, self.encoder.spec)
        return self._store(texts)
