"""The works of a features job, through its verb."""

from fractions import Fraction
from pathlib import Path

import pytest

import stepline
from stepline import paths
from stepline.availability import read_manifest
from stepline.cli import main
from stepline.config import load
from stepline.features.work import works
from stepline.fetch import fetch_videos
from stepline.pipeline import Pipeline
from tests.media.clips import make

pytest.importorskip("av")
PROBE = """
from stepline.spec import ClipSpec
SPEC = ClipSpec(name="probe", label="rgb", revision=1, architecture="file", weights=(), licence="Apache-2.0",
    fps=1, num_frames=2, placement="ends", tail="TAIL", steps=(("exact", 64, 64, "pil_bilinear"),), mean=(0, 0, 0),
    std=(1, 1, 1), output="mean colour", dimension=3)
def load(spec, files):
    return lambda clips: clips.mean(axis=(2, 3, 4)) * 255
"""
CONFIG = """
backbones: {probe: {path: probe.py}}
datasets: {mine: {videos: videos, clips: clips.csv, backbones: [probe], stages: [features]}}
"""
CLIPS = "video,start_s,end_s\na,0,1\na,1,2.5\na,1.5,30\na,25,100\nb,0,2\nb,50,60\nc,7,9\nd,0,1\n"


@pytest.mark.parametrize("tail", ["drop", "repeat"])
def test_clips_after_the_end_are_left_out_and_the_others_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tail: str
) -> None:
    """Ends that are only rounded stay as they are listed, unless the backbone refuses clips that end after the end."""
    monkeypatch.chdir(tmp_path)
    dropped = tail == "drop"
    Path("videos").mkdir()
    for name in ("a.mp4", "b.mkv", "c.mp4", "d.mp4"):
        make(Path("videos", name), [Fraction(i, 10) for i in range(20)])  # by their headers, they end at 1.93 s
    for file, content in (("probe.py", PROBE.replace("TAIL", tail)), ("clips.csv", CLIPS), ("config.yaml", CONFIG)):
        Path(file).write_text(content)
    pipeline = Pipeline.of(load("config.yaml"), "mine")
    params = pipeline.features.params("probe", "000")
    a, b, *_ = (record.duration_s for record in fetch_videos(pipeline, "000"))
    extract = ["extract", "mine", "--shard", "000", "--backbone", "probe"]
    assert main(extract) == 0
    bank = stepline.open_bank("probe", "mine")
    assert {video: [*clips] for video, clips in bank.clips.items()} == {
        "a": [(0, 1), (1, a if dropped else 2.5), (1.5, a)],
        "b": [(0, b if dropped else 2)],
        "d": [(0, 1)],
    }
    spec = pipeline.features.spec_of("probe")
    record = read_manifest(paths.features_manifest("mine", "000", spec))
    late = (
        "clips.csv: 4 of 8 clips lie after the end of their video (3 left out, 1 cut to its end), the first in line 4: "
        "a ends at 1.9 s; times are in seconds"
    )
    assert {video: (each["status"], each["n_rows"], each["reason"]) for video, each in record.items()} == {
        "a": ("present", 3, late),
        "b": ("present", 1, late),
        "c": ("present", 0, f"no clip of it is listed; {late}"),
        "d": ("present", 1, ""),
    }
    assert Pipeline.of(load("config.yaml"), "mine").features.params("probe", "000") == params
    rows = paths.features("mine", "000", spec) / "features/c/0/0"
    inode = rows.stat().st_ino
    assert (main(extract), rows.stat().st_ino) == (0, inode)


def test_the_other_backbones_of_its_environment_are_computed_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("videos").mkdir()
    make(Path("videos/a.mp4"), [Fraction(i, 10) for i in range(20)])
    Path("probe.py").write_text(PROBE.replace("TAIL", "repeat").replace('placement="ends"', 'placement="grid"'))
    Path("config.yaml").write_text("""
backbones: {probe: {path: probe.py}, own: {path: probe.py, env: own.yaml}}
datasets: {mine: {videos: videos, backbones: [histogram, probe, own], stages: [features]}}
""")
    pipeline = Pipeline.of(load("config.yaml"), "mine")
    together = {name: [each.spec.name for each in works(pipeline, name, "000")] for name in ("probe", "own")}
    assert together == {"probe": ["probe", "histogram"], "own": ["own"]}
