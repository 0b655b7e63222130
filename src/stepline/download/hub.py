"""The Hugging Face Hub: the token for gated repositories, in the environment variable ``HF_TOKEN``."""

import os
import re

from stepline.backbones.weights import HUB
from stepline.errors import DownloadError

TOKEN = "HF_TOKEN"


def credentials(url: str) -> dict[str, str]:
    """Return the header with the token if ``url`` is an address of the hub and there is a token; otherwise {}.

    Raises DownloadError, which does not contain the value, if it cannot be a token.
    """
    token = os.environ.get(TOKEN, "").strip()
    if not (token and _is_hub(url)):
        return {}
    if not re.fullmatch("[!-~]+", token):
        raise DownloadError(f"{TOKEN} is not a token: it contains spaces or characters other than ASCII")
    return {"Authorization": f"Bearer {token}"}


def advice(url: str, status: int) -> str:
    """Return what to do if the hub refuses ``url``; "" for other hosts and statuses."""
    if status not in (401, 403) or not _is_hub(url):
        return ""
    origin = url.partition("/resolve/")[0]
    return f": the repository is gated, private or absent: accept its licence at {origin}, then set {TOKEN} to a token"


def _is_hub(url: str) -> bool:
    return url.startswith(f"{HUB}/")
