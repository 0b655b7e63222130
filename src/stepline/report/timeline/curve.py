"""The similarity of each moment of a video to a text."""

from dataclasses import dataclass

from stepline.pipeline import Pipeline
from stepline.search.searcher import checked, encoded
from stepline.search.sources import sentence_encoder, source, tower
from stepline.search.transcripts import Transcripts


@dataclass(frozen=True)
class Curve:
    """The similarity to a text. times_s: (N,) of what is compared; values: (N,). by: what compares."""

    by: str
    times_s: list[float]
    values: list[float]


def curves(pipeline: Pipeline, video: str, text: str) -> list[Curve]:
    """Return the similarity to a text by each network with a text tower and, for the transcript, a sentence encoder.

    Raises ConfigError or MissingError as ``stepline search`` does where nothing can be compared with a text.
    """
    text = checked(text, 1, 0)
    transcripts = Transcripts(pipeline)
    names: list[str | None] = [name for name in pipeline.features.computed if tower(pipeline, name)]
    names += [name for name in [sentence_encoder()] if name and video in transcripts.videos and transcripts(video)]
    found = []
    for name in names or [None]:
        compared = source(pipeline, name, transcripts)
        corpus = compared.corpus
        if video in corpus.videos:
            numbers = corpus.numbers(corpus.videos.index(video))
            scores = corpus.scores(numbers, encoded(compared.encoder, text)).round(4)
            found.append(Curve(compared.what, corpus.spans_s[numbers, 0].tolist(), scores.tolist()))
    return found
