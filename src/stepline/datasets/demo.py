"""The embedded demo study: five short narrated recordings in the form of a Spacewalk-18 release.

`stepline.demo.build` makes its files; its script says what they hold, so videos and durations are known before that.
"""

from functools import cache
from importlib.resources import files
from typing import Any

from stepline.datasets.schema import Video
from stepline.io import read_yaml

FPS = 25.0
SAMPLES_PER_VIDEO = 100
MIN_DISTANCE_S = 1.0
"""Least distance between query and candidates of retrieval (Spacewalk-18: 30 s)."""
BOUNDARY_S = 0.5
"""Least distance of query and candidates from a segment boundary (Spacewalk-18: 15 s)."""


@cache
def script() -> dict[str, Any]:
    """Return the script of the study: footage, recordings, clips and sentences. Callers leave it as it is."""
    content: dict[str, Any] = read_yaml(files("stepline").joinpath("demo/script.yaml").read_text(encoding="utf-8"))
    return content


def videos() -> tuple[Video, ...]:
    """Return the five recordings, 5.4 minutes in all. Only a mirror holds them: the one that the demo is built into."""
    return tuple(
        Video(
            id=name,
            split=recording["split"],
            duration_s=round(sum(clip["duration_s"] for clip in recording["clips"]), 2),
            url="",
            path=f"demo/videos/{name}.mp4",
        )
        for name, recording in script()["recordings"].items()
    )


def sentences(video: str) -> list[tuple[str, float, float]]:
    """Return what is said in a recording, by its script: text, start and end in seconds."""
    said, start_s = [], 0.0
    for clip in script()["recordings"][video]["clips"]:
        for line in clip["say"]:
            begin_s = start_s + line["at_s"]
            said.append((line["text"], begin_s, begin_s + line["length_s"]))
        start_s += clip["duration_s"]
    return said
