"""Search results as lines for the terminal and as a page with pictures."""

import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from stepline import paths
from stepline.asr.languages import ENGLISH
from stepline.download.host import YOUTUBE, shown
from stepline.pipeline import Pipeline
from stepline.progress import progress
from stepline.report import data_address, write_html
from stepline.report.clips import kept_files
from stepline.report.clock import clock
from stepline.report.shots import read_shots
from stepline.report.thumbnails import read_thumbnails, thumbnails
from stepline.search.embedded import LIMIT, script
from stepline.search.searcher import Found, Match, Ranked, Searcher
from stepline.search.steps import Step
from stepline.search.words import LENGTH, SATURATION, UNSPACED
from stepline.spec import digest

NEAR_S = 5.0
"""Maximum distance in seconds of a match from its shot's picture; beyond it, the frame itself is used if possible."""


MATCH_S = 10.0
"""Seconds for which a match plays."""


NO_LINES = f"a page can contain the transcripts of {LIMIT}"
NO_ROWS = f"a page can contain the features of {LIMIT}"


class Picture(NamedTuple):
    """A JPEG thumbnail of a video at a time in seconds. shot: start and end of its shot."""

    time_s: float
    shot: tuple[float, float]
    file: Path


def lines(found: Found) -> Iterator[str]:
    """Yield the printed lines: a description of the search, videos with moments and steps, and matches."""
    yield f"{found.what}; {found.similarity}; {found.searched} of {found.listed} videos"
    yield from hints(found)
    yield f"moment: {found.moments_by}"
    yield f"matches: {found.compared}"
    names = [*(each.video for each in found.videos), *(match.video for match in found.matches)]
    width = max(5, *map(len, names))
    yield ""
    yield f"rank  {'video':{width}}  {'score':>8}"
    for rank, each in enumerate(found.videos, 1):
        yield f"{rank:4}  {each.video:{width}}  {each.score:8.3f}  moment {span(each)}, steps: {each.steps_by}"
        times = [span(step) for step in each.steps]
        for time, step in zip(times, each.steps, strict=True):
            yield f"        {time:{max(map(len, times))}}  {step.label}".rstrip()
    yield ""
    yield "best matches in all videos"
    head = f"rank  {'video':{width}}  {'score':>8}  {'time':>8}"
    yield f"{head}  sentence" if any(match.sentence for match in found.matches) else head
    for rank, match in enumerate(found.matches, 1):
        number = f"{rank:4}  {match.video:{width}}  {match.score:8.3f}  {clock(match.time_s):>8}"
        yield f"{number}  {match.sentence}".rstrip()
    yield ""


def span(part: Ranked | Step) -> str:
    """Return start and end of a moment or step in the format of ``clock``."""
    return f"{clock(part.start_s)}–{clock(part.end_s)}"


def write_page(searcher: Searcher, found: Found, again: str) -> Path:
    """Write the page ``results/<data set>/search/<text and 8 hex>.html`` and return its path.

    Equal inputs produce equal bytes. again: the search command without its query. The picture of a match or a moment is
    the thumbnail of its shot if that is at most 5 s away; otherwise the frame at the time; otherwise, if the video is
    not kept, the nearest thumbnail.
    """
    pipeline = searcher.pipeline
    words = re.sub(r"[^a-z0-9]+", "-", found.text.lower())[:60].strip("-") or "search"
    asked = digest([found.text, found.backbone, found.among, again])
    page = Path("results", pipeline.name, "search", f"{words}-{asked}.html")
    peaks = [Match(each.video, each.peak_s, each.score) for each in found.videos]
    embedded = searcher.embedded
    shown = {match.video for match in (*peaks, *found.matches)} | {*(embedded.videos if embedded else ())}
    videos = dict(_videos(pipeline, shown, page.parent))
    cards = _cards([*peaks, *found.matches], videos)
    results: dict[str, dict[str, Any]] = {}
    for ranked, peak in zip(found.videos, peaks, strict=True):
        steps = [astuple(step) for step in ranked.steps]
        moment = [ranked.start_s, ranked.end_s]
        about = {"peak": ranked.peak_s, "moment": moment, "steps": steps, "stepsBy": ranked.steps_by}
        results[ranked.video] = {**about, "score": ranked.score, **cards[peak], "matches": []}
    for match in found.matches:
        result = results.setdefault(match.video, {"matches": []})
        card = {"time": match.time_s, "score": match.score, "sentence": match.sentence}
        if result.get("peak") == match.time_s:
            result["best"] = card
        else:
            result["matches"].append(card | cards[match])
    data = {
        "videos": {video: each.shown | _language(searcher, video) for video, each in videos.items()},
        "results": [{"video": video, "curve": found.curves[video], **result} for video, result in results.items()],
        "again": again,
        "text": found.text,
        "window": found.window_s,
        "top": found.top,
        "match": MATCH_S,
        "bm25": [SATURATION, LENGTH],
        "unspaced": UNSPACED,
    }
    write_html(
        page,
        "search.html.j2",
        title=pipeline.dataset.title,
        heading=f"Like {found.text}" if found.is_like else f"“{found.text}”",
        found=found,
        hints=hints(found),
        embedded=embedded,
        no_lines=NO_LINES if searcher.transcripts.videos else "there are no transcripts",
        no_rows=NO_ROWS if found.similarity != "BM25" else "a word search has no features",
        data=script(data),
        code=resources.files("stepline.report").joinpath("search.js").read_text(encoding="utf-8"),
    )
    return page


def _language(searcher: Searcher, video: str) -> dict[str, str]:
    """Return the language of a video's sentences if it is not that of the page."""
    language = searcher.transcripts.language(video)
    return {} if language in ("", ENGLISH) else {"lang": language}


def hints(found: Found) -> list[str]:
    """Return the warnings about results, one line each."""
    said = [found.hint] if found.hint else []
    if found.unseen:
        said.append(
            f"{found.backbone} does not know these words, or truncates the text before them: {', '.join(found.unseen)}"
        )
    if found.unsaid:
        said.append(f"no transcript contains the words: {', '.join(found.unsaid)}")
    if not found.spread.stands_out:
        spread = found.spread
        sample = f", by a sample of {spread.sampled:,}" if spread.sampled else ""
        said.append(
            f"no clear match: the best score, {spread.best:.3f}, is within the spread of all {spread.rows:,}{sample} "
            f"(median {spread.usual:.3f}; scores up to {spread.expected:.3f} are usual without a match)"
        )
    return said


@dataclass(frozen=True)
class _Video:
    """The files of a video. kept: the video file. pictures: thumbnails of shots. shown: the data for the page."""

    kept: Path | None
    pictures: tuple[Picture, ...]
    shown: dict[str, Any]


def _videos(pipeline: Pipeline, videos: Collection[str], folder: Path) -> Iterator[tuple[str, _Video]]:
    """Yield the files of each video; paths in the page are relative to ``folder``."""
    files = kept_files(pipeline)
    addresses = {video.id: video.url for video in pipeline.dataset.videos()}
    made = read_thumbnails(pipeline.name, pipeline.videos.all_shards).pictures
    for video in sorted(videos):
        shots = read_shots(paths.shots(pipeline.name) / f"{video}.parquet")
        pictures = tuple(
            Picture(sum(shots[shot]) / 2, shots[shot], file)
            for shot, file in made.get(video, {}).items()
            if shot < len(shots) and file.exists()
        )
        kept = files.get(video)
        shown = {
            "file": kept and _from(folder, kept),
            "path": kept and str(kept),
            "address": None if kept else _address(addresses.get(video, "")),
            "pictures": [(*each.shot, each.time_s, _from(folder, each.file)) for each in pictures],
        }
        yield video, _Video(kept, pictures, shown)


def _from(folder: Path, file: Path) -> str:
    return quote(os.path.relpath(file, folder))


def _cards(matches: Sequence[Match], videos: Mapping[str, _Video]) -> dict[Match, dict[str, Any]]:
    """Return the picture and the note of each match."""
    of: dict[str, list[Match]] = {}
    for match in sorted({*matches}, key=lambda match: match.time_s):
        of.setdefault(match.video, []).append(match)
    cards = {}
    for video, listed in progress(sorted(of.items()), what="pictures", unit="videos"):
        shown = _pictures(listed, videos[video].pictures, videos[video].kept)
        for match, (picture, note) in zip(listed, shown, strict=True):
            cards[match] = {"picture": picture and data_address("image/jpeg", picture), "note": note}
    return cards


def _pictures(
    matches: Sequence[Match], there: Sequence[Picture], kept: Path | None
) -> Iterator[tuple[bytes | None, str]]:
    """Yield the picture and the note of each match in one video. matches: in ascending order of time."""
    near = [_of_shot(match.time_s, there) for match in matches]
    times_s = [match.time_s for match, picture in zip(matches, near, strict=True) if picture is None]
    cut = iter(thumbnails(kept, times_s) if kept else [None] * len(times_s))
    for match, picture in zip(matches, near, strict=True):
        frame = picture.file.read_bytes() if picture else next(cut)
        if frame or not there:
            yield frame, "" if frame else "no picture: the video file no longer exists" if not kept else "no picture"
        else:
            nearest = min(there, key=lambda picture: abs(picture.time_s - match.time_s))
            yield nearest.file.read_bytes(), f"picture at {clock(nearest.time_s)}"


def _of_shot(time_s: float, there: Sequence[Picture]) -> Picture | None:
    inside = (each for each in there if each.shot[0] <= time_s < each.shot[1])
    return next((each for each in inside if abs(each.time_s - time_s) <= NEAR_S), None)


def _address(address: str) -> tuple[str, str] | None:
    """Return the parts of a URL before and after the whole seconds of a time; None if the URL cannot contain a time."""
    if not address.startswith(("http://", "https://")) or shown(address) != address:
        return None
    if YOUTUBE.match(address):
        return f"{address}{'&' if '?' in address else '?'}t=", "s"
    return f"{address}#t=", ""
