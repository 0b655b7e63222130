"""Videos of web pages, downloaded by yt-dlp in a separate process."""

import json
import logging
import os
import re
import shutil
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from functools import cache
from pathlib import Path

from stepline.download.host import YOUTUBE, leave_alone, shown, unreachable
from stepline.download.http import ATTEMPTS, LONGEST_WAIT_S, STALL_S, GoneError
from stepline.download.options import DownloadOptions
from stepline.download.retry import LONGEST, WorthRetryingError, retried
from stepline.errors import DownloadError

log = logging.getLogger(__name__)

LONGEST_S = 4 * 3600.0
"""The maximum time of yt-dlp in seconds, which itself limits only the wait for each byte."""
SINGLE = "b[ext=mp4][height<=?{0}][protocol!*=m3u8]"
"""The format for a machine without ffmpeg: one file with video and audio, and no stream that ffmpeg must repair."""
MERGED = "bv*[ext=mp4][height<={0}]+ba[ext=m4a]/" + SINGLE
JS_RUNTIMES = ("deno", "node", "quickjs", "bun")
YT_DLP = """
import os, runpy, threading
threading.Thread(target=lambda: os._exit(os.read(0, 1) or 1), daemon=True).start()
runpy.run_module("yt_dlp", run_name="__main__", alter_sys=True)
"""
"""The command ``yt-dlp``, which exits when its standard input closes, and so with the process that started it."""
GONE = re.compile(
    r"private video|video is private|(video|recording) (is no longer available|(has been|was) (removed|deleted))"
    r"|account .*(terminated|closed)|isn.t available any ?more|unable to download webpage: HTTP Error (404|410)",
    re.IGNORECASE,
)
"""Messages of yt-dlp for a video that is gone for good, rather than blocked, busy or not yet published."""
BUSY = re.compile(r"HTTP Error 5\d\d|timed out|connection (reset|aborted)|bytes read|remote end closed", re.IGNORECASE)
"""Messages of yt-dlp for temporary errors."""
ENOUGH = re.compile(r"HTTP Error 429|rate-limited|not a bot|captcha", re.IGNORECASE)
"""Messages of yt-dlp for a site that limits the number of requests."""
NO_FORMAT = re.compile("Requested format is not available|No video formats found")
ACCOUNT = re.compile(r"sign in|log ?in|members|registered users|cookies", re.IGNORECASE)
"""Messages of yt-dlp for a video that requires an account."""


def fetch_page(url: str, part: Path, options: DownloadOptions) -> tuple[Path, str, str]:
    """Download the video of the page ``url`` into the folder ``part``. The next call resumes a killed download.

    Returns the file, the id of its format, and the quality that was lost because a program is missing, or "". Raises
    GoneError if the video no longer exists, DownloadError if the site refuses or has no mp4 of at most ``max_height``
    lines.
    """
    if reason := unreachable(url):
        raise DownloadError(reason)
    return retried(lambda: _attempt(url, part, options), attempts=ATTEMPTS, longest_wait_s=LONGEST_WAIT_S)


def _attempt(url: str, part: Path, options: DownloadOptions) -> tuple[Path, str, str]:
    lacks = _lacks_ffmpeg()
    wanted = ["--format", (SINGLE if lacks else MERGED).format(options.max_height)]
    wanted += ["--output", str(part / "%(format_id)s.%(ext)s")]
    wanted += ["--print", "after_move:%(.{filepath,format_id})j"]
    code, out, said = _run(url, wanted, options)
    given_up = "; ".join(filter(None, (lacks, _lacks_for_youtube(said) if YOUTUBE.match(url) else "")))
    if not code and out:
        made = json.loads(out[-1])
        return Path(made["filepath"]), str(made["format_id"]), given_up
    errors = [line.removeprefix("ERROR: ") for line in said if line.startswith("ERROR: ")]
    reason = shown(errors[-1])[:LONGEST] if errors else f"yt-dlp ended with {code} and no video"
    if GONE.search(reason):
        raise GoneError(_without_advice(reason))
    if ENOUGH.search(reason):
        leave_alone(url, _without_advice(reason))
    elif BUSY.search(reason):
        raise WorthRetryingError(_explained(reason, given_up, options))
    raise DownloadError(_explained(reason, given_up, options))


def _explained(reason: str, lacks: str, options: DownloadOptions) -> str:
    """Return yt-dlp's ``reason`` with a hint that may help."""
    if NO_FORMAT.search(reason):
        reason = f"there is no mp4 of at most {options.max_height} lines with picture and sound"
    elif ACCOUNT.search(reason):
        lacks = "" if options.cookies else "cookies of an account may help: set download.cookies"
    elif "HTTP Error 403" not in reason:
        lacks = ""
    return f"{_without_advice(reason)}; {lacks}" if lacks else _without_advice(reason)


def _without_advice(reason: str) -> str:
    return reason.partition(" Use --cookies")[0].rstrip(".")


def _run(url: str, wanted: list[str], options: DownloadOptions) -> tuple[int, list[str], list[str]]:
    """Run yt-dlp with the options ``wanted`` and return its exit status, its output lines and its error lines.

    The address may contain a password: neither it nor the cookies are on the command line or in a named file.
    """
    pause = str(options.sleep_s)
    command = [sys.executable, "-c", YT_DLP, "--ignore-config", "--no-playlist"]
    command += ["--quiet", "--verbose", "--no-progress"]
    command += ["--merge-output-format", "mp4", "--continue", "--abort-on-unavailable-fragments"]
    command += ["--retries", "5", "--fragment-retries", "5", "--retry-sleep", "exp=1:20"]
    command += ["--socket-timeout", str(STALL_S)]
    command += ["--sleep-requests", pause, "--sleep-interval", pause]
    command += [word for runtime in JS_RUNTIMES for word in ("--js-runtimes", runtime)]
    command += ["--limit-rate", options.rate_limit] if options.rate_limit else []
    command += wanted
    with ExitStack() as stack:
        reading, writing = os.pipe()
        stack.callback(os.close, reading)
        stack.callback(os.close, writing)
        secrets = [("--batch-file", url.encode())]
        secrets += [("--cookies", Path(options.cookies).read_bytes())] if options.cookies else []
        handed = []
        for option, content in secrets:
            nameless = stack.enter_context(tempfile.TemporaryFile())
            nameless.write(content)
            nameless.seek(0)
            handed.append(nameless.fileno())
            command += [option, f"/dev/fd/{nameless.fileno()}"]
        try:
            done = subprocess.run(
                command, stdin=reading, pass_fds=handed, capture_output=True, check=False, timeout=LONGEST_S
            )
        except subprocess.TimeoutExpired:
            raise DownloadError(f"yt-dlp did not end in {LONGEST_S:g} s; the next run continues") from None
    out, said = (text.decode(errors="replace").splitlines() for text in (done.stdout, done.stderr))
    return done.returncode, out, said


def _lacks_ffmpeg() -> str:
    return "" if shutil.which("ffmpeg") else "without ffmpeg, which merges picture and sound"


def _lacks_for_youtube(said: list[str]) -> str:
    """Return what yt-dlp is missing for YouTube, whose formats it finds by running YouTube's JavaScript."""
    about = dict(re.findall(r"^\[debug\] (JS runtimes|Optional libraries): (.*)$", "\n".join(said), re.MULTILINE))
    runtimes = [name for name in about.get("JS runtimes", "").split(", ") if "-" in name and "unsupported" not in name]
    lacks = [] if runtimes else [f"a JavaScript runtime ({about.get('JS runtimes', 'none')} found)"]
    lacks += [] if "yt_dlp_ejs" in about.get("Optional libraries", "") else ["the package yt-dlp-ejs"]
    if not lacks:
        return ""
    _warn(f"YouTube offers yt-dlp fewer formats, or none, without {' and '.join(lacks)}: see docs/downloads.md")
    return f"without {' and '.join(lacks)}"


@cache
def _warn(line: str) -> None:
    """Warn once per run."""
    log.warning(line)
