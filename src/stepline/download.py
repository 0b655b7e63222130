"""Downloads: the mirror first, then http(s) or yt-dlp; whole and checked, or recorded with a reason."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from urllib.parse import urlsplit

import httpx
from filelock import FileLock

from stepline.availability import Record, check_video_id
from stepline.datasets.schema import Video
from stepline.errors import DownloadError
from stepline.io import atomic_path, read_json, sha256_file, write_json
from stepline.mirror import Wanted, cached_sha256, find

PROBE_S = 10.0
ATTEMPTS = 3
RUN = f"{os.getpid()}-{time.time_ns()}"
"""Names this process where it is no job of a workflow run."""
VIDEO_FORMAT = "bv*[ext=mp4][height<=720]+ba[ext=m4a]/b[ext=mp4][height<=720]"


def unreachable(url: str) -> str:
    """Return why the host of ``url`` does not answer, or "" where it does: one probe of at most 10 s per host and run.

    The jobs of one workflow run (``STEPLINE_RUN``) share what the first of them found.
    """
    host = urlsplit(url).netloc
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
        except httpx.TransportError as error:
            answers.append(str(error) or type(error).__name__)

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(PROBE_S)
    return answers[-1]


def fetch_file(url: str, path: Path, *, sha256: str = "", size: int = 0) -> None:
    """Download ``url`` to ``path``; a cut transfer goes on where it stopped, also in a later run.

    Raises DownloadError where the host does not answer, the file is not there, stays short, or has another sha256.
    """
    if reason := unreachable(url):
        raise DownloadError(reason)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    for attempt in range(1, ATTEMPTS + 1):
        try:
            _transfer(url, part, size)
            break
        except (httpx.RequestError, _WorthRetryingError) as error:
            if attempt == ATTEMPTS:
                raise DownloadError(f"{url}: {str(error) or type(error).__name__} ({attempt} attempts)") from None
            time.sleep(2.0 ** (attempt - 1))
    if sha256 and (got := sha256_file(part)) != sha256:
        part.unlink()
        raise DownloadError(f"{url}: wrong checksum: sha256 is {got}, expected {sha256}")
    with atomic_path(path) as whole:
        part.replace(whole)


class _WorthRetryingError(Exception):
    """A transfer that another attempt may complete."""


def _transfer(url: str, part: Path, size: int) -> None:
    have = part.stat().st_size if part.exists() else 0
    headers = {"Range": f"bytes={have}-", "Accept-Encoding": "identity"} if have else {"Accept-Encoding": "identity"}
    with httpx.stream("GET", url, headers=headers, follow_redirects=True, timeout=60) as response:
        if response.status_code == 416:
            part.unlink()
            raise _WorthRetryingError("the partial file does not fit the one on the server")
        if response.status_code >= 500:
            raise _WorthRetryingError(f"HTTP {response.status_code}")
        if response.status_code >= 400:
            raise DownloadError(f"{url}: HTTP {response.status_code}")
        resumed = response.status_code == 206
        with open(part, "ab" if resumed else "wb") as file:
            file.writelines(response.iter_bytes())
        length = response.headers.get("content-length")
    expected = size or (int(length) + have * resumed if length else 0)
    got = part.stat().st_size
    if expected and got < expected:
        raise _WorthRetryingError(f"truncated: {got} of {expected} bytes")
    if expected and got > expected:
        part.unlink()
        raise DownloadError(f"{url}: wrong length: {got} of {expected} bytes")


def fetch_video(video: Video, folder: Path, *, before: Record | None) -> Record:
    """Bring ``video`` to ``folder/<id>.mp4`` (a link where the mirror holds it) and return its record.

    before: its record of an earlier run, whose attempts go on counting. Raises ReleaseError where the id is no file
    name.
    """
    path = folder / f"{check_video_id(video.id)}.mp4"
    attempts = before.attempts if before else 0
    held = find(Wanted(path=video.path))
    if held is not None:
        folder.mkdir(parents=True, exist_ok=True)
        if not (path.is_symlink() and path.resolve() == held.resolve()):
            path.unlink(missing_ok=True)
            path.symlink_to(held.resolve())
        return _present(video, path, "mirror", attempts)
    if path.is_symlink():
        path.unlink()
    if path.exists():
        return _present(video, path, before.source if before else video.url, attempts)
    if not video.url:
        return Record(video=video.id, status="missing", reason=f"not in the mirror at {video.path}")
    attempts += 1
    try:
        if "youtube.com" in video.url:
            _yt_dlp(video.url, path)
        else:
            fetch_file(video.url, path, sha256=video.sha256)
    except DownloadError as error:
        return Record(video=video.id, status="failed", reason=str(error), source=video.url, attempts=attempts)
    return _present(video, path, video.url, attempts)


def _present(video: Video, path: Path, source: str, attempts: int) -> Record:
    sha256 = cached_sha256(path)
    if video.sha256 and sha256 != video.sha256:
        reason = f"wrong checksum: sha256 is {sha256}, expected {video.sha256}"
        return Record(video=video.id, status="mismatched", reason=reason, source=source, attempts=attempts)
    return Record(
        video=video.id,
        status="present",
        path=str(path),
        sha256=sha256,
        size=path.stat().st_size,
        source=source,
        attempts=attempts,
    )


def _yt_dlp(url: str, path: Path) -> None:
    if reason := unreachable(url):
        raise DownloadError(reason)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.stem}.part.mp4")
    command = [sys.executable, "-m", "yt_dlp", "--no-playlist", "--quiet", "--no-progress", "--continue"]
    command += ["--format", VIDEO_FORMAT, "--merge-output-format", "mp4", "--output", str(part), url]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode or not part.exists():
        lines = [line for line in result.stderr.splitlines() if line.startswith("ERROR")] or ["yt-dlp failed"]
        raise DownloadError(lines[-1].removeprefix("ERROR: "))
    with atomic_path(path) as whole:
        part.replace(whole)
