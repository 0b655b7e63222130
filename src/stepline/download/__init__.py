"""Downloads: the mirror first, then http(s) or yt-dlp; whole and checked, or recorded with a reason."""

from stepline.download.host import unreachable
from stepline.download.http import fetch_file, retry_after
from stepline.download.options import DownloadOptions
from stepline.download.video import fetch_video

__all__ = ["DownloadOptions", "fetch_file", "fetch_video", "retry_after", "unreachable"]
