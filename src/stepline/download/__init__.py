"""Downloads: from the mirror, http(s) or yt-dlp. A file is complete and checked, or its failure is recorded."""

from stepline.download.host import unreachable
from stepline.download.http import GoneError, fetch_file
from stepline.download.options import DownloadOptions
from stepline.download.retry import WorthRetryingError, may_pass, retried, retry_after
from stepline.download.video import fetch_video, remove_leftovers, remove_video

__all__ = [
    "DownloadOptions",
    "GoneError",
    "WorthRetryingError",
    "fetch_file",
    "fetch_video",
    "may_pass",
    "remove_leftovers",
    "remove_video",
    "retried",
    "retry_after",
    "unreachable",
]
