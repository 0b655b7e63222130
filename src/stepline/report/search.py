"""What a search found, as lines for a terminal and as a page with pictures."""

import os
import re
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

from stepline import paths
from stepline.availability import Record, read_availability
from stepline.download.host import shown
from stepline.features.search import Found, Moment
from stepline.pipeline import Pipeline
from stepline.progress import progress
from stepline.report import data_address, write_html
from stepline.report.shots import read_shots
from stepline.report.thumbnails import read_thumbnails, thumbnails
from stepline.spec import digest

NEAR_S = 5.0
"""How far from a moment the picture of its shot may be, where another can be had."""


class Picture(NamedTuple):
    """A small picture, JPEG, of a video at a time. shot: start and end of the shot that it is of."""

    time_s: float
    shot: tuple[float, float]
    file: Path


def lines(found: Found) -> Iterator[str]:
    """Yield what is printed: how was searched, the moments, and the videos by their best one."""
    yield f"{found.what}; {found.similarity}; {found.searched} of {found.listed} videos"
    if found.unseen:
        yield _unseen(found)
    for what, moments in (("moments", found.moments), ("videos, by their best moment", found.videos)):
        yield ""
        yield what
        width = max(5, *(len(moment.video) for moment in moments))
        head = f"rank  {'video':{width}}  {'time':>8}  {'score':>8}"
        yield f"{head}  sentence" if moments[0].sentence else head
        for rank, moment in enumerate(moments, 1):
            number = f"{rank:4}  {moment.video:{width}}  {clock(moment.time_s):>8}  {moment.score:8.3f}"
            yield f"{number}  {moment.sentence}".rstrip()
    yield ""


def clock(time_s: float) -> str:
    """Return a time as ``h:mm:ss``."""
    return str(timedelta(seconds=int(time_s)))


def write_page(pipeline: Pipeline, found: Found) -> Path:
    """Write the page, ``results/<data set>/search/<text and 8 hex>.html``: equal inputs give equal bytes; return it.

    A moment's picture is that of its shot where this is at most 5 s away, else the frame at the moment, else, of a
    video that is not kept, the nearest that there is.
    """
    words = re.sub(r"[^a-z0-9]+", "-", found.text.lower())[:60].strip("-") or "search"
    asked = digest([found.text, found.backbone, found.window_s, len(found.moments)])
    page = Path("results", pipeline.name, "search", f"{words}-{asked}.html")
    records: dict[str, Record] = {}
    for shard in pipeline.videos.all_shards:
        if (path := paths.availability(pipeline.name, shard)).exists():
            records |= read_availability(path)
    cards = _cards(pipeline, found, records, page)
    write_html(
        page,
        "search.html.j2",
        title=pipeline.dataset.title,
        found=found,
        note=_unseen(found) if found.unseen else "",
        parts={
            "Moments": [cards[moment] for moment in found.moments],
            "Videos, by their best moment": [cards[moment] for moment in found.videos],
        },
    )
    return page


def _unseen(found: Found) -> str:
    return f"{found.backbone} makes nothing of: {', '.join(found.unseen)}"


def _cards(pipeline: Pipeline, found: Found, records: dict[str, Record], page: Path) -> dict[Moment, dict[str, Any]]:
    """Return what is shown of each moment."""
    addresses = {video.id: video.url for video in pipeline.dataset.videos()}
    made = read_thumbnails(pipeline.name, pipeline.videos.all_shards).pictures
    moments: dict[str, list[Moment]] = {}
    for moment in sorted({*found.moments, *found.videos}, key=lambda moment: moment.time_s):
        moments.setdefault(moment.video, []).append(moment)
    cards = {}
    for video, listed in progress(sorted(moments.items()), what="pictures", unit="videos"):
        shots = read_shots(paths.shots(pipeline.name) / f"{video}.parquet")
        there = [
            Picture(sum(shots[shot]) / 2, shots[shot], file)
            for shot, file in made.get(video, {}).items()
            if shot < len(shots) and file.exists()
        ]
        file = Path(records[video].path) if video in records and records[video].path else None
        kept = file if file and file.is_file() else None
        for moment, (picture, note) in zip(listed, _pictures(listed, there, kept), strict=True):
            cards[moment] = {
                "moment": moment,
                "time": clock(moment.time_s),
                "picture": picture and data_address("image/jpeg", picture),
                "note": note,
                "link": _link(kept, addresses.get(video, ""), moment.time_s, page.parent),
            }
    return cards


def _pictures(
    moments: Sequence[Moment], there: Sequence[Picture], kept: Path | None
) -> Iterator[tuple[bytes | None, str]]:
    """Yield a picture of each moment of one video, and what is to be said of it. moments: ascending in time."""
    near = [_of_shot(moment.time_s, there) for moment in moments]
    times_s = [moment.time_s for moment, picture in zip(moments, near, strict=True) if picture is None]
    cut = iter(thumbnails(kept, times_s) if kept else [None] * len(times_s))
    for moment, picture in zip(moments, near, strict=True):
        frame = picture.file.read_bytes() if picture else next(cut)
        if frame or not there:
            yield frame, "" if frame else "no picture: the video is not there any more" if not kept else "no picture"
        else:
            nearest = min(there, key=lambda picture: abs(picture.time_s - moment.time_s))
            yield nearest.file.read_bytes(), f"the picture is of {clock(nearest.time_s)}"


def _of_shot(time_s: float, there: Sequence[Picture]) -> Picture | None:
    inside = (each for each in there if each.shot[0] <= time_s < each.shot[1])
    return next((each for each in inside if abs(each.time_s - time_s) <= NEAR_S), None)


def _link(kept: Path | None, address: str, time_s: float, folder: Path) -> str:
    """Return what opens the video at a time: the file, as seen from ``folder``, else its address, else nothing."""
    if kept:
        return f"{quote(os.path.relpath(kept, folder))}#t={time_s:g}"
    if not address.startswith(("http://", "https://")) or shown(address) != address:
        return ""
    if (urlsplit(address).hostname or "").endswith(("youtube.com", "youtu.be")):
        return f"{address}{'&' if '?' in address else '?'}t={int(time_s)}s"
    return f"{address}#t={int(time_s)}"
