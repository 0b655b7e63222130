"""What decides sound, scores of frames and shots: the configuration alone."""

from stepline.config import Config
from stepline.io import canonical_json
from stepline.media import REVISION, SHOTS_REVISION


def media_params(config: Config) -> str:
    """Return what audio and scores must be made again for, as text."""
    return canonical_json({"revision": REVISION, "limits": config["media"]["limits"]})


def shots_params(config: Config) -> str:
    """Return what shots must be found again for, besides other scores, as text."""
    return canonical_json({"revision": SHOTS_REVISION, **config["shots"]})
