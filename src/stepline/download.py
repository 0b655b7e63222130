"""Downloads: the mirror first, then http(s) or yt-dlp; whole and checked, or recorded with a reason."""

import os
import re
import shutil
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from urllib.parse import urlsplit

import httpx
from filelock import FileLock

from stepline.availability import Record, Status, check_video_id, read_availability, write_availability
from stepline.datasets.schema import Video
from stepline.errors import DownloadError
from stepline.io import atomic_path, read_json, sha256_file, write_json, write_text
from stepline.mirror import Wanted, cached_sha256, find

PROBE_S = 10.0
ATTEMPTS = 3
LONGEST_WAIT_S = 60.0
RUN = f"{os.getpid()}-{time.time_ns()}"
"""Names this process where it is no job of a workflow run."""
SINGLE = "b[ext=mp4][height<=?720][protocol!*=m3u8]"
"""What yt-dlp takes without ffmpeg: one file with picture and sound, no stream that would need repair."""
MERGED = f"bv*[ext=mp4][height<=720]+ba[ext=m4a]/{SINGLE}"
GONE = re.compile(
    r"private video|video is private|(video|recording) (is no longer available|(has been|was) (removed|deleted))"
    r"|account .*(terminated|closed)|isn.t available any ?more|unable to download webpage: HTTP Error (404|410)",
    re.IGNORECASE,
)
"""What yt-dlp reports where the site says that a video is gone for good, rather than blocked, busy or not yet there."""


class GoneError(DownloadError):
    """A download that the site says it no longer has."""


def _shown(text: str) -> str:
    """Return ``text`` with no user name or password in its addresses."""
    return re.sub(r"(?<=://)[^/?#\s]*@", "", text)


def unreachable(url: str) -> str:
    """Return why the host of ``url`` does not answer, or "" where it does: one probe of at most 10 s per host and run.

    The jobs of one workflow run (``STEPLINE_RUN``) share what the first of them found.
    """
    try:
        host = urlsplit(url).netloc.rpartition("@")[2]
        valid = bool(urlsplit(url).hostname) and urlsplit(url).port != 0
    except ValueError:
        valid = False
    if not valid:
        return f"{_shown(url)} has no valid host and port"
    memory = Path(".stepline/probes") / f"{os.environ.get('STEPLINE_RUN') or RUN}-{host.replace(':', '-')}.json"
    memory.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(".stepline/probes.lock"):
        if not memory.exists():
            why = _probe(f"{urlsplit(url).scheme}://{host}/")
            write_json(memory, {"reason": why and f"{host} is unreachable ({why})"})
        return str(read_json(memory)["reason"])


def _probe(url: str) -> str:
    """Return why ``url`` does not answer, or "".

    Looking up a name and trying its addresses in turn obey no timeout, so the probe has a thread that is left behind.
    """
    answers = [f"no answer in {PROBE_S:g} s"]

    def ask() -> None:
        try:
            httpx.head(url, timeout=PROBE_S)
            answers.append("")
        except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
            answers.append(str(error) or type(error).__name__)

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(PROBE_S)
    return answers[-1]


def fetch_file(url: str, path: Path, *, sha256: str = "", size: int = 0) -> None:
    """Download ``url`` to ``path``; a cut transfer goes on where it stopped, also in a later run.

    It starts again where the server does not say that the file is still the same one, by ETag or Last-Modified.
    Raises GoneError where the server says 404 or 410, DownloadError where the host does not answer or refuses, or the
    file stays short or has another sha256.
    """
    if reason := unreachable(url):
        raise DownloadError(reason)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    for attempt in range(1, ATTEMPTS + 1):
        try:
            _transfer(url, part, size)
            break
        except httpx.InvalidURL as error:
            raise DownloadError(f"{_shown(url)}: {error}") from None
        except (httpx.RequestError, _WorthRetryingError) as error:
            wait_s = getattr(error, "wait_s", 0.0)
            if wait_s > LONGEST_WAIT_S:
                raise DownloadError(f"{_shown(url)}: {error}, asks to wait {wait_s:.0f} s") from None
            if attempt == ATTEMPTS:
                reason = str(error) or type(error).__name__
                raise DownloadError(f"{_shown(url)}: {reason} ({attempt} attempts)") from None
            time.sleep(max(wait_s, 2.0 ** (attempt - 1)))
    _version_of(part).unlink()
    if sha256 and (got := sha256_file(part)) != sha256:
        part.unlink()
        raise DownloadError(f"{_shown(url)}: wrong checksum: sha256 is {got}, expected {sha256}")
    with atomic_path(path) as whole:
        part.replace(whole)


class _WorthRetryingError(Exception):
    """A transfer that another attempt may complete, after ``wait_s`` seconds where the server asks for them."""

    def __init__(self, reason: str, wait_s: float = 0.0) -> None:
        super().__init__(reason)
        self.wait_s = wait_s


def _version_of(part: Path) -> Path:
    """Return the file that says of which version on the server ``part`` is a part."""
    return part.with_suffix(".version")


def _transfer(url: str, part: Path, size: int) -> None:
    kept = _version_of(part).read_text() if part.exists() and _version_of(part).exists() else ""
    have = part.stat().st_size if kept else 0
    headers = {"Range": f"bytes={have}-", "If-Range": kept} if have else {}
    headers["Accept-Encoding"] = "identity"
    with httpx.stream("GET", url, headers=headers, follow_redirects=True, timeout=60) as response:
        status, version = response.status_code, _version(response)
        resumed = status == 206
        if status == 416 or (resumed and version not in ("", kept)):
            part.unlink(missing_ok=True)
            raise _WorthRetryingError("the partial file does not fit the one on the server")
        if status == 429 or status >= 500:
            raise _WorthRetryingError(f"HTTP {status}", retry_after(response))
        if status in (404, 410):
            raise GoneError(f"{_shown(url)}: HTTP {status}")
        if status >= 400:
            raise DownloadError(f"{_shown(url)}: HTTP {status}")
        if not resumed:
            part.unlink(missing_ok=True)
            write_text(_version_of(part), version)
        with open(part, "ab") as file:
            file.writelines(response.iter_bytes())
        length = response.headers.get("content-length")
    expected = size or (int(length) + have * resumed if length else 0)
    got = part.stat().st_size
    if expected and got < expected:
        raise _WorthRetryingError(f"truncated: {got} of {expected} bytes")
    if expected and got > expected:
        part.unlink()
        raise DownloadError(f"{_shown(url)}: wrong length: {got} of {expected} bytes")


def _version(response: httpx.Response) -> str:
    """Return what tells this version of the file from others, fit for If-Range: RFC 9110, 13.1.5; "" where nothing."""
    tag = str(response.headers.get("etag", ""))
    return tag if re.fullmatch('"[!-~]*"', tag) else str(response.headers.get("last-modified", ""))


def retry_after(response: httpx.Response) -> float:
    """Return the wait that the server asks for, in seconds; 0 where it asks for none. RFC 9110, 10.2.3."""
    asked = response.headers.get("retry-after", "")
    if asked.isdecimal():
        return float(asked)
    try:
        return max(0.0, (parsedate_to_datetime(asked) - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError):
        return 0.0


def fetch_video(video: Video, folder: Path) -> Record:
    """Bring ``video`` to ``folder/<id>.mp4`` (a link where the mirror holds it) and return its record.

    The record stands in ``folder/<id>.json`` too, from where its attempts go on counting in the next run. Raises
    ReleaseError where the id is no file name.
    """
    memory = folder / f"{check_video_id(video.id)}.json"
    before = read_availability(memory).get(video.id) if memory.exists() else None
    record = _bring(video, folder / f"{video.id}.mp4", before or Record(video=video.id, status="missing"))
    write_availability(memory, [record])
    return record


def _bring(video: Video, path: Path, before: Record) -> Record:
    attempts, source = before.attempts, _shown(video.url)
    held = find(Wanted(path=video.path))
    if held is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        if not (path.is_symlink() and path.resolve() == held.resolve()):
            path.unlink(missing_ok=True)
            path.symlink_to(held.resolve())
        return _present(video, path, "mirror", attempts)
    if path.is_symlink():
        path.unlink()
    if path.exists():
        return _present(video, path, source, attempts, before.reason if before.status == "present" else "")
    if not video.url:
        reason = f"not in the mirror at {video.path}"
        return Record(video=video.id, status="missing", reason=reason, attempts=attempts)
    attempts += 1
    note = ""
    try:
        if "youtube.com" in video.url:
            note = _yt_dlp(video.url, path)
        else:
            fetch_file(video.url, path, sha256=video.sha256)
    except DownloadError as error:
        status: Status = "gone" if isinstance(error, GoneError) else "failed"
        return Record(video=video.id, status=status, reason=str(error), source=source, attempts=attempts)
    return _present(video, path, source, attempts, note)


def _present(video: Video, path: Path, source: str, attempts: int, note: str = "") -> Record:
    sha256 = cached_sha256(path)
    if video.sha256 and sha256 != video.sha256:
        reason = f"wrong checksum: sha256 is {sha256}, expected {video.sha256}"
        return Record(video=video.id, status="mismatched", reason=reason, source=source, attempts=attempts)
    return Record(
        video=video.id,
        status="present",
        reason=note,
        path=str(path),
        sha256=sha256,
        size=path.stat().st_size,
        source=source,
        attempts=attempts,
    )


def _yt_dlp(url: str, path: Path) -> str:
    """Download ``url`` to ``path`` and return what was given up for lack of ffmpeg, which merges picture and sound."""
    if reason := unreachable(url):
        raise DownloadError(reason)
    path.parent.mkdir(parents=True, exist_ok=True)
    merges = shutil.which("ffmpeg") is not None
    command = [sys.executable, "-m", "yt_dlp", "--no-playlist", "--quiet", "--no-progress", "--continue"]
    command += ["--format", MERGED if merges else SINGLE, "--merge-output-format", "mp4"]
    command += ["--output", str(path.with_name(f".{path.stem}.%(format_id)s.%(ext)s"))]
    command += ["--print", "after_move:filepath", "--", url]
    result = subprocess.run(command, capture_output=True, encoding="utf-8", errors="replace", check=False)
    part = Path(result.stdout.strip() or "nothing")
    if result.returncode or not part.is_file():
        errors = [line for line in result.stderr.splitlines() if line.startswith("ERROR")]
        reason = _shown(errors[-1].removeprefix("ERROR: ")) if errors else f"yt-dlp failed with {result.returncode}"
        if GONE.search(reason):
            raise GoneError(reason)
        if "Requested format is not available" in reason:
            needs = "ffmpeg is not installed, and there is no" if not merges else "there is no"
            reason = f"{needs} mp4 of at most 720 lines with picture and sound in one file"
        raise DownloadError(reason)
    with atomic_path(path) as whole:
        part.replace(whole)
    return "" if merges else "without ffmpeg: the best single file, where merged ones may have up to 720 lines"
