"""Download options: ``download`` in the configuration."""

import re
from dataclasses import dataclass
from pathlib import Path

from stepline.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class DownloadOptions:
    """The options of ``config["download"]``; the schema describes each.

    Raises ConfigError if ``cookies`` is not a readable cookies file.
    """

    max_height: int = 720
    rate_limit: str | None = None
    sleep_s: float = 1
    cookies: str | None = None

    def __post_init__(self) -> None:
        if self.cookies is not None:
            _check_cookies(Path(self.cookies))

    @property
    def rate(self) -> float:
        """The rate limit in bytes per second; 0 for no limit."""
        if self.rate_limit is None:
            return 0.0
        unit = {"K": 1024, "M": 1024**2, "G": 1024**3}.get(self.rate_limit[-1], 1)
        return float(self.rate_limit.rstrip("KMG")) * unit


def _check_cookies(path: Path) -> None:
    """Raise ConfigError if a cookies file is invalid, without repeating its content."""
    try:
        header, *lines = path.read_text().splitlines() or [""]
    except UnicodeDecodeError:
        header, lines = "", []
    except OSError as error:
        reason = f"cannot be read ({error.strerror}): name the cookies file that the browser exported"
        raise ConfigError(f"download.cookies: {path} {reason}") from None
    cookies = [line for line in lines if line.count("\t") == 6]
    if not re.match("#( Netscape)? HTTP Cookie File", header) or not cookies:
        raise ConfigError(f"download.cookies: {path} is not a cookies file in Netscape's format: export it again")
