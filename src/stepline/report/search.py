"""What a search found, as lines for a terminal and as a page with pictures."""

import os
import re
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

from stepline import paths
from stepline.availability import Record, read_availability
from stepline.download.host import shown
from stepline.pipeline import Pipeline
from stepline.progress import progress
from stepline.report import data_address, write_html
from stepline.report.shots import read_shots
from stepline.report.thumbnails import read_thumbnails, thumbnails
from stepline.search.searcher import Found, Match, Ranked
from stepline.search.steps import Step
from stepline.spec import digest

NEAR_S = 5.0
"""How far from a match the picture of its shot may be, where another can be had."""


class Picture(NamedTuple):
    """A small picture, JPEG, of a video at a time. shot: start and end of the shot that it is of."""

    time_s: float
    shot: tuple[float, float]
    file: Path


def lines(found: Found) -> Iterator[str]:
    """Yield what is printed: how was searched, the videos with their moments and steps, and the matches."""
    yield f"{found.what}; {found.similarity}; {found.searched} of {found.listed} videos"
    if found.unseen:
        yield _unseen(found)
    yield f"moment: {found.moments_by}"
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
    yield f"{head}  sentence" if found.matches[0].sentence else head
    for rank, match in enumerate(found.matches, 1):
        number = f"{rank:4}  {match.video:{width}}  {match.score:8.3f}  {clock(match.time_s):>8}"
        yield f"{number}  {match.sentence}".rstrip()
    yield ""


def clock(time_s: float) -> str:
    """Return a time as ``m:ss``, or ``h:mm:ss`` from an hour on."""
    hours, rest = divmod(int(time_s), 3600)
    return f"{hours}:{rest // 60:02}:{rest % 60:02}" if hours else f"{rest // 60}:{rest % 60:02}"


def span(part: Ranked | Step) -> str:
    """Return start and end of a moment or a step, each as ``clock`` has it."""
    return f"{clock(part.start_s)}–{clock(part.end_s)}"


def write_page(pipeline: Pipeline, found: Found) -> Path:
    """Write the page, ``results/<data set>/search/<text and 8 hex>.html``: equal inputs give equal bytes; return it.

    The picture of a match, or of the best time of a moment, is that of its shot where this is at most 5 s away, else
    the frame at the time, else, of a video that is not kept, the nearest that there is.
    """
    words = re.sub(r"[^a-z0-9]+", "-", found.text.lower())[:60].strip("-") or "search"
    asked = digest([found.text, found.backbone, found.window_s, len(found.matches)])
    page = Path("results", pipeline.name, "search", f"{words}-{asked}.html")
    records: dict[str, Record] = {}
    for shard in pipeline.videos.all_shards:
        if (path := paths.availability(pipeline.name, shard)).exists():
            records |= read_availability(path)
    peaks = [Match(each.video, each.peak_s, each.score) for each in found.videos]
    cards = _cards(pipeline, [*peaks, *found.matches], records, page)
    write_html(
        page,
        "search.html.j2",
        title=pipeline.dataset.title,
        found=found,
        note=_unseen(found) if found.unseen else "",
        span=span,
        videos=[(each, cards[peak]) for each, peak in zip(found.videos, peaks, strict=True)],
        matches=[(match, cards[match]) for match in found.matches],
    )
    return page


def _unseen(found: Found) -> str:
    return f"{found.backbone} makes nothing of: {', '.join(found.unseen)}"


def _cards(
    pipeline: Pipeline, matches: Sequence[Match], records: dict[str, Record], page: Path
) -> dict[Match, dict[str, Any]]:
    """Return what is shown of each match."""
    addresses = {video.id: video.url for video in pipeline.dataset.videos()}
    made = read_thumbnails(pipeline.name, pipeline.videos.all_shards).pictures
    of: dict[str, list[Match]] = {}
    for match in sorted({*matches}, key=lambda match: match.time_s):
        of.setdefault(match.video, []).append(match)
    cards = {}
    for video, listed in progress(sorted(of.items()), what="pictures", unit="videos"):
        shots = read_shots(paths.shots(pipeline.name) / f"{video}.parquet")
        there = [
            Picture(sum(shots[shot]) / 2, shots[shot], file)
            for shot, file in made.get(video, {}).items()
            if shot < len(shots) and file.exists()
        ]
        file = Path(records[video].path) if video in records and records[video].path else None
        kept = file if file and file.is_file() else None
        link = partial(_link, kept, addresses.get(video, ""), page.parent)
        for match, (picture, note) in zip(listed, _pictures(listed, there, kept), strict=True):
            cards[match] = {
                "time": clock(match.time_s),
                "picture": picture and data_address("image/jpeg", picture),
                "note": note,
                "link": link,
            }
    return cards


def _pictures(
    matches: Sequence[Match], there: Sequence[Picture], kept: Path | None
) -> Iterator[tuple[bytes | None, str]]:
    """Yield a picture of each match in one video, and what is to be said of it. matches: ascending in time."""
    near = [_of_shot(match.time_s, there) for match in matches]
    times_s = [match.time_s for match, picture in zip(matches, near, strict=True) if picture is None]
    cut = iter(thumbnails(kept, times_s) if kept else [None] * len(times_s))
    for match, picture in zip(matches, near, strict=True):
        frame = picture.file.read_bytes() if picture else next(cut)
        if frame or not there:
            yield frame, "" if frame else "no picture: the video is not there any more" if not kept else "no picture"
        else:
            nearest = min(there, key=lambda picture: abs(picture.time_s - match.time_s))
            yield nearest.file.read_bytes(), f"the picture is of {clock(nearest.time_s)}"


def _of_shot(time_s: float, there: Sequence[Picture]) -> Picture | None:
    inside = (each for each in there if each.shot[0] <= time_s < each.shot[1])
    return next((each for each in inside if abs(each.time_s - time_s) <= NEAR_S), None)


def _link(kept: Path | None, address: str, folder: Path, time_s: float) -> str:
    """Return what opens the video at a time: the file, as seen from ``folder``, else its address, else nothing."""
    if kept:
        return f"{quote(os.path.relpath(kept, folder))}#t={time_s:g}"
    if not address.startswith(("http://", "https://")) or shown(address) != address:
        return ""
    if (urlsplit(address).hostname or "").endswith(("youtube.com", "youtu.be")):
        return f"{address}{'&' if '?' in address else '?'}t={int(time_s)}s"
    return f"{address}#t={int(time_s)}"
