"""How fast this machine did the work of stages before: what `stepline plan` forecasts from. No job reads it."""

from pathlib import Path

from stepline.io import read_json, write_json

FOLDER = Path(".stepline/rates")
LEAST_S = 60.0
"""Of video: in less, starting takes much of the time."""


def note(work: str, *, video_s: float, spent_s: float) -> None:
    """Keep how many seconds the work took for so many seconds of video, where it is enough to tell, or nothing is kept.

    work: a name fit for a file, such as ``media`` or ``network.s3d-pss.cpu``.
    """
    path = FOLDER / f"{work}.json"
    if video_s >= LEAST_S or (video_s > 0 and not path.exists()):
        write_json(path, {"video_s": round(video_s, 3), "spent_s": round(spent_s, 3)})


def measured(work: str) -> float | None:
    """Return how many seconds the work took for a second of video when it was done last; None where it never was."""
    path = FOLDER / f"{work}.json"
    if not path.exists():
        return None
    kept = read_json(path)
    return float(kept["spent_s"] / kept["video_s"])
