"""What `stepline plan` and `stepline status` say before and after a real run on own videos."""

import json
import os
from collections import Counter
from fractions import Fraction
from pathlib import Path

import pytest

from stepline.config import load
from stepline.overview.forecast import Forecast
from stepline.overview.graph import Graph
from stepline.overview.records import to_do
from stepline.overview.state import states, videos
from tests.conftest import snakemake
from tests.workflow.runs import messages

pytest.importorskip("av")
pytestmark = pytest.mark.slow
SECONDS = 20


def clip(path: Path) -> Path:
    import numpy as np

    from tests.media.clips import make

    path.parent.mkdir(parents=True, exist_ok=True)
    return make(
        path,
        [Fraction(i, 10) for i in range(10 * SECONDS)],
        picture=lambda i: np.full((64, 320, 3), 60 if i // 50 % 2 else 220, np.uint8),
        audio=(300 * np.sin(np.arange(16_000 * SECONDS) / 6)).astype(np.int16),
    )


def written(*folders: str) -> int:
    """Return the bytes of all files below folders, those that are linked aside."""
    files = (path for folder in folders for path in Path(folder).rglob("*"))
    return sum(path.stat().st_size for path in files if path.is_file() and not path.is_symlink())


def left() -> Counter[str]:
    return Counter(job.rule for job in to_do(Graph(load("mine.yaml"))))


def test_before_and_after_a_run() -> None:
    clip(Path("clips/one.mp4"))
    clip(Path("clips/two.mp4"))
    Path("clips/broken.mp4").write_bytes(b"no video")
    Path("mine.yaml").write_text(json.dumps({"datasets": {"mine": {"videos": "clips"}}}))
    before = left()
    graph = Graph(load("mine.yaml"))
    forecast = Forecast(graph, to_do(graph))
    estimated = forecast.peak_bytes
    assert [job.rule for job in graph.jobs] == [*before]
    assert forecast.videos[0].hours == pytest.approx(2 * SECONDS / 3600, rel=0.05)
    options = "--cores", "1", "--configfile", "mine.yaml"
    done = snakemake(*options, folder=Path.cwd())
    assert done.returncode == 0, done.stderr
    assert len(messages(done)) == before.total()
    wrote = written("datasets/mine", "features")
    assert wrote / 1.5 < estimated < wrote * 1.5
    assert left() == {}
    after = Graph(load("mine.yaml"))
    assert {state.word for state in states(after, {}).values()} == {"done"}
    became = videos(after.helpers.pipelines["mine"])
    assert became["broken"].status == "failed"
    assert became["broken"].reason.startswith("cannot be decoded")
    assert became["one"].status == became["two"].status == "present"
    measured = {path.stem for path in Path(".stepline/rates").iterdir()}
    assert measured == {"media", "speech.pocketsphinx.cpu"}
    assert {work.cpu.basis for work in Forecast(after, after.jobs).work} <= {"measured"}

    clip(Path("clips/three.mp4"))
    os.remove("datasets/mine/media/one/audio.wav")
    dry = snakemake("-n", *options, folder=Path.cwd())
    assert left().total() == len(messages(dry)) == before.total()
    assert Path("datasets/mine/media/manifests/000.json").exists() is False  # the dry run removes it
