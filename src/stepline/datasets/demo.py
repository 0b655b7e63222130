"""The embedded demo study: five short narrated recordings in the form of a Spacewalk-18 release.

`stepline.demo.build` writes its files. Its script defines their content, so videos and durations are known before.
"""

from functools import cache
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from stepline.datasets.schema import Video
from stepline.errors import MissingError
from stepline.io import read_yaml
from stepline.needs import how_to_install

FPS = 25.0
SAMPLES_PER_VIDEO = 100
MIN_DISTANCE_S = 1.0
"""The minimum distance between query and candidates of retrieval (Spacewalk-18: 30 s)."""
BOUNDARY_S = 0.5
"""The minimum distance of query and candidates from a segment boundary (Spacewalk-18: 15 s)."""


@cache
def script() -> dict[str, Any]:
    """Return the script of the study: footage, recordings, clips and sentences. Callers must not modify it."""
    content: dict[str, Any] = read_yaml(files("stepline").joinpath("demo/script.yaml").read_text(encoding="utf-8"))
    return content


def photograph(name: str) -> Path:
    """Return the path of a photograph in scikit-image; raise MissingError if that is not installed."""
    found = find_spec("skimage")
    if not (found and found.origin):
        raise MissingError(f"the demo needs the photographs of scikit-image: {how_to_install('media')}")
    return Path(found.origin).with_name("data") / name


def videos() -> tuple[Video, ...]:
    """Return the five recordings, 5.4 minutes in total. They exist only in the mirror that the demo is built into."""
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
    """Return the sentences of a recording in the script: text, start and end in seconds."""
    said, start_s = [], 0.0
    for clip in script()["recordings"][video]["clips"]:
        for line in clip["say"]:
            begin_s = start_s + line["at_s"]
            said.append((line["text"], begin_s, begin_s + line["length_s"]))
        start_s += clip["duration_s"]
    return said
