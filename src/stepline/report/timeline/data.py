"""The data of a timeline: lanes on one time axis, in the form that the page's script reads."""

import base64
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from stepline import paths
from stepline.asr.languages import ENGLISH
from stepline.asr.transcript import Sentence
from stepline.benchmark.timed import Timed
from stepline.datasets.segments import known_ends_s, read_segments
from stepline.features.bank import Bank
from stepline.pipeline import Pipeline
from stepline.report import data_address
from stepline.report.shots import read_shots, spread
from stepline.report.summary import end_s
from stepline.report.thumbnails import read_thumbnails
from stepline.report.timeline.likeness import LAGS, strip
from stepline.report.timeline.sound import peaks
from stepline.report.timeline.track import Track
from stepline.search.transcripts import Transcripts

PICTURE_BYTES = 8_000_000
"""Maximum bytes of all pictures on a page; if a video has more, an evenly spaced subset is used."""

Lane = dict[str, Any]


def shot_lane(pipeline: Pipeline, video: str) -> Lane | None:
    """Return the shots with their pictures."""
    if "shots" not in pipeline.demand.stages:
        return None
    shots = read_shots(paths.shots(pipeline.name) / f"{video}.parquet")
    if not shots:
        return None
    kept, note = _pictures(pipeline, video, len(shots))
    return {
        "kind": "shots",
        "name": "Shots",
        "step": "shot",
        "spans": [[round(start_s, 3), round(end_s, 3), f"shot {n}", ""] for n, (start_s, end_s) in enumerate(shots, 1)],
        "pictures": {shot: data_address("image/jpeg", file.read_bytes()) for shot, file in kept.items()},
        "note": note,
    }


def _pictures(pipeline: Pipeline, video: str, n_shots: int) -> tuple[Mapping[int, Path], str]:
    """Return the pictures that fit into a page, by shot index, and a note about missing pictures."""
    if "pictures" not in pipeline.demand.stages:
        return {}, "no pictures: `stages` of the data set does not include them"
    found = read_thumbnails(pipeline.name, [pipeline.videos.shards[video]])
    there = [(n, file) for n, file in found.pictures.get(video, {}).items() if n < n_shots and file.exists()]
    size = sum(file.stat().st_size for _, file in there)
    fit = int(len(there) * PICTURE_BYTES / size) if size > PICTURE_BYTES else len(there)
    kept = dict(there[place] for place in spread(len(there), fit))
    if len(kept) < len(there):
        return (
            kept,
            f"{len(kept)} of {n_shots} shots have a picture here: the limit per page is {PICTURE_BYTES / 1e6:g} MB",
        )
    if len(kept) < n_shots:
        why = found.reasons.get(video, "for all pictures, remove their records and run `snakemake` again")
        return kept, f"{len(kept)} of {n_shots} shots have a picture ({why})"
    return kept, ""


def sound_lane(pipeline: Pipeline, video: str) -> Lane | None:
    """Return the waveform."""
    found = peaks(paths.media(pipeline.name) / video / "audio.wav") if pipeline.demand.media else None
    if found is None:
        return None
    return {"kind": "wave", "name": "Sound", "hop": found.hop_s, "values": base64.b64encode(found.values).decode()}


def sentences(pipeline: Pipeline, video: str) -> tuple[Sequence[Sentence], str]:
    """Return the sentences of a video, and their language; () if there is no transcript or none is configured."""
    transcripts = Transcripts(pipeline)
    wanted = "speech" in pipeline.demand.stages or transcripts.source == "released"
    return (transcripts(video), transcripts.language(video)) if wanted else ((), "")


def speech_lane(said: Sequence[Sentence], language: str) -> Lane | None:
    """Return the sentences. language: a tag, or ""; the page is in English, so that other languages are marked."""
    spans = [[round(each.start_s, 3), round(each.end_s, 3), each.text, ""] for each in said]
    other = {"name": f"Speech ({language})", "lang": language} if language not in ("", ENGLISH) else {}
    return {"kind": "spans", "name": "Speech", "step": "sentence", **other, "spans": spans} if spans else None


def own_segments(pipeline: Pipeline, row: dict[str, Any]) -> list[Track]:
    """Return the user's segments of a video. row: in ``stepline.report.summary``."""
    given = pipeline.dataset.segments
    if not given:
        return []
    video, ids, late = row["video"], {each.id for each in pipeline.dataset.videos()}, list[str]()
    known = known_ends_s(pipeline.name, pipeline.videos.shards[video])
    ends_s = {video: max(end_s(row), known.get(video, 0.0))}
    read = read_segments(pipeline.name, given, ids, ends_s=ends_s, say=late.append)
    spans = [Timed(each.start_s, each.end_s, each.label or "segment") for each in read.get(video, [])]
    return [Track(name="Segments", spans=spans, note="".join(late) or ("" if spans else "none for this video"))]


def track_lane(track: Track) -> Lane:
    """Return labelled spans."""
    return {
        "kind": "spans",
        "name": track.name,
        "step": "predicted" if track.predicted else "segment",
        "spans": [[round(each.start_s, 3), round(each.end_s, 3), each.label, each.verdict] for each in track.spans],
        "note": track.note,
        "rule": track.rule,
    }


def curve_lanes(pipeline: Pipeline, video: str, text: str) -> Iterator[Lane]:
    """Yield the similarity of each moment to a text."""
    from stepline.report.timeline.curve import curves

    for curve in curves(pipeline, video, text):
        times = [round(time_s, 3) for time_s in curve.times_s]
        yield {"kind": "curve", "name": f"“{text}”: {curve.by}", "times": times, "values": curve.values}


def strip_lanes(pipeline: Pipeline, video: str) -> Iterator[Lane]:
    """Yield the similarity of each moment to earlier moments, for each backbone with features."""
    for name in pipeline.features.computed:
        store = pipeline.features.store(name, pipeline.videos.shards[video])
        if not isinstance(store, Path) or not store.exists():
            note = "no features yet" if isinstance(store, Path) else f"not drawn, because the features are at {store}"
            yield {"kind": "strip", "name": name, "values": "", "note": note}
            continue
        found = strip(Bank.open([store], pipeline.features.spec_of(name)), video)
        if isinstance(found, str):
            yield {"kind": "strip", "name": name, "values": "", "note": found}
        else:
            yield {
                "kind": "strip",
                "name": f"{name}: similarity to earlier times",
                "hop": found.hop_s,
                "low": found.low,
                "high": found.high,
                "lags": [lag * found.hop_s for lag in LAGS],
                "values": base64.b64encode(found.values.tobytes()).decode(),
            }
