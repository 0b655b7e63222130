"""The results of the video stages in a study's report."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stepline.asr.transcript import Sentence
from stepline.availability import Record
from stepline.report import data_address
from stepline.report.shots import SHOTS_SHOWN, spread

SENTENCES_SHOWN = 12


@dataclass(frozen=True, kw_only=True)
class Stages:
    """The results of the video stages, by video.

    availability: the records of the listed videos. shots: (start, end) in seconds. pictures: thumbnails by shot index,
    as written by ``write_thumbnails``. without_pictures: why pictures are missing. transcripts: the recognised
    sentences. scripts: the true sentences, if known.
    """

    availability: Sequence[Record] = ()
    shots: Mapping[str, Sequence[tuple[float, float]]] = field(default_factory=dict)
    pictures: Mapping[str, Mapping[int, Path]] = field(default_factory=dict)
    without_pictures: Mapping[str, str] = field(default_factory=dict)
    transcripts: Mapping[str, Sequence[Sentence]] = field(default_factory=dict)
    scripts: Mapping[str, Sequence[Sentence]] = field(default_factory=dict)


def stage_values(stages: Stages) -> dict[str, Any]:
    """Return the values of the stages for the page's template."""
    return {
        "availability": stages.availability,
        "shots": {
            video: {
                "count": len(shots),
                "shown": _shown(shots, stages.pictures.get(video, {})),
                "reason": stages.without_pictures.get(video, ""),
            }
            for video, shots in stages.shots.items()
        },
        "speech": {
            video: _speech(sentences, stages.scripts.get(video, ())) for video, sentences in stages.transcripts.items()
        },
        "shots_shown": SHOTS_SHOWN,
        "sentences_shown": SENTENCES_SHOWN,
    }


def _shown(
    shots: Sequence[tuple[float, float]], pictures: Mapping[int, Path]
) -> list[tuple[int, tuple[float, float], str]]:
    """Return the number, the times and the picture URL of each displayed shot."""
    shown = []
    for shot in spread(len(shots), SHOTS_SHOWN):
        there = shot in pictures and pictures[shot].exists()
        shown.append((shot + 1, shots[shot], data_address("image/jpeg", pictures[shot].read_bytes()) if there else ""))
    return shown


def _speech(sentences: Sequence[Sentence], script: Sequence[Sentence]) -> list[tuple[Sentence, str]]:
    """Return each sentence with the script's text at the same time."""
    return [
        (said, " ".join(line.text for line in script if line.start_s < said.end_s and line.end_s > said.start_s))
        for said in sentences[:SENTENCES_SHOWN]
    ]
