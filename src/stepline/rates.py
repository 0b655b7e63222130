"""The measured speeds of stages on this machine, for the forecasts of `stepline plan`. No job reads them."""

from pathlib import Path

from stepline.io import read_json, write_json

FOLDER = Path(".stepline/rates")
LEAST_S = 60.0
"""The least length of video for a measurement, in seconds: with less, the start-up time dominates."""


def note(work: str, *, video_s: float, spent_s: float) -> None:
    """Record the time that the work took for some video, if the video is long enough or there is no record yet.

    work: a name that is valid in a file name, such as ``media`` or ``network.s3d-pss.cpu``.
    """
    path = FOLDER / f"{work}.json"
    if video_s >= LEAST_S or (video_s > 0 and not path.exists()):
        write_json(path, {"video_s": round(video_s, 3), "spent_s": round(spent_s, 3)})


def measured(work: str) -> float | None:
    """Return the last measured time of the work in seconds per second of video, or None if there is none."""
    path = FOLDER / f"{work}.json"
    if not path.exists():
        return None
    kept = read_json(path)
    return float(kept["spent_s"] / kept["video_s"])
