"""What a whole data set waits for."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from stepline import paths, remembered
from stepline.availability import Record, write_availability
from stepline.io import write_json, write_text
from stepline.pipeline import STAGES, media_params
from stepline.pipeline.demand import configured_stages
from tests.conftest import ROOT
from tests.pipeline.own import made


def test_the_table_counts_what_all_stages_made() -> None:
    folders = paths.media("mine"), paths.shots("mine"), paths.transcripts("mine", "pocketsphinx")
    wanted = [paths.manifest(folder, "000") for folder in folders]
    wanted += [paths.availability("mine", "000"), *made().features.manifests("histogram")]
    assert sorted(made().summary_inputs()) == sorted(wanted)


ALL = {"availability", "media", "shots", "thumbnails", "transcripts", "features"}


def test_images_are_not_transcribed_unless_that_is_asked_for() -> None:
    assert configured_stages(made().config, "mine") == {*STAGES}
    for more, stages in (({}, {*STAGES} - {"speech"}), ({"stages": ["speech"]}, {"speech"})):
        images = made(datasets={"mine": {"videos": "clips", "kind": "images", **more}})
        assert configured_stages(images.config, "mine") == stages


@pytest.mark.parametrize(
    ("stages", "wanted"),
    [
        (["shots", "pictures", "speech", "features"], ALL),
        (["features"], {"availability", "features"}),
        (["shots", "pictures", "features"], ALL - {"transcripts"}),
        (["pictures"], {"availability", "media", "shots", "thumbnails"}),
        (["shots", "speech"], {"availability", "media", "shots", "transcripts"}),
    ],
)
def test_what_was_not_asked_for_is_not_made(stages: list[str], wanted: set[str]) -> None:
    mine = {"videos": "clips", "backbones": ["histogram"], "stages": stages}
    found = made(datasets={"mine": mine}, media={"keep": "none"})

    def kinds(paths: list[Path]) -> set[str]:
        return {path.parts[0] if path.parts[0] == "features" else path.parts[2] for path in paths} - {"dropped"}

    assert kinds([*found.summary_inputs(), *found.report_inputs()]) == wanted
    assert kinds(found.drop_inputs("000")) == wanted & {"media", "features", "thumbnails"}
    deepgram = {"asr": {"engine": "deepgram"}, "strict": "speech" not in stages}
    assert bool(made(datasets={"mine": mine}, **deepgram).missing) == ("speech" in stages)
    assert (made(datasets={"mine": mine}).summary_params() == made().summary_params()) == ("speech" in stages)


def test_videos_of_which_nothing_can_be_made_are_not_deleted() -> None:
    mine = {"videos": "clips", "backbones": ["s3d-pss"], "stages": ["features"]}
    assert made(datasets={"mine": mine}, media={"keep": "none"}).videos.dropped == []


def test_keeping_videos_or_not_decides_no_number() -> None:
    one, other = made(), made(media={"keep": "none"})
    assert media_params(one.config) == media_params(other.config)
    assert one.features.params("histogram", "000") == other.features.params("histogram", "000")


VIDEOS, SHARDS = 30, 3
COLOURS = """
from stepline.spec import ClipSpec

SPEC = ClipSpec(
    name="colours", label="mean", revision=1, architecture="file", weights=(), licence="none", fps=1, num_frames=1,
    hop=1, steps=(("exact", 8, 8, "swscale_bicubic"),), mean=(0, 0, 0), std=(1, 1, 1), output="mean", dimension=3,
)


def load(spec, files):
    raise NotImplementedError
"""
OPENED = """
import json, os, sys
from tests.pipeline.own import made
opened = []
made(**json.loads(sys.argv[1]))
sys.addaudithook(lambda event, given: opened.append(str(given[0])) if event == "open" else None)
made(**json.loads(sys.argv[1])).check_records()
print(json.dumps([path for path in opened if not os.path.isabs(path)]))
"""


def opened(given: dict[str, Any]) -> list[str]:
    """Return which files of the work folder a plan opens."""
    path = os.pathsep.join([os.fspath(ROOT), os.fspath(ROOT / "src")])
    done = subprocess.run(
        [sys.executable, "-c", OPENED, json.dumps(given)],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        check=True,
    )
    found: list[str] = json.loads(done.stdout)
    return found


def test_a_plan_of_which_nothing_changed_opens_no_file_per_video_or_backbone(
    clips: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remembered, "SETTLED_S", -1.0)
    monkeypatch.setenv("STEPLINE_RUN", "1")
    lines = [f"v{i:02d},{i % SHARDS:03d}\n" for i in range(VIDEOS)]
    write_text(paths.shards("mine"), "".join(["video,shard\n", *lines]))
    for video in "ab":
        (clips / f"{video}.mp4").unlink()
    for i in range(VIDEOS):
        (clips / f"v{i:02d}.mp4").write_bytes(b"x")
    Path("colours.py").write_text(COLOURS)
    given = {
        "datasets": {"mine": {"videos": str(clips.absolute()), "backbones": ["histogram", "colours"]}},
        "backbones": {"colours": {"path": str(Path("colours.py").absolute())}},
    }
    spoken = paths.transcripts("mine", "pocketsphinx")
    for shard in made(**given).videos.all_shards:
        members = made(**given).videos.members(shard)
        records = [Record(video=video.id, status="present", path=video.file) for video in members]
        write_availability(paths.availability("mine", shard), records)
        for record in records:
            write_availability(paths.videos("mine") / f"{record.video}.json", [record])
            write_json(spoken / f"{record.video}.json", {"n_sentences": 1})
        for path in made(**given).made_from_videos(shard):
            write_json(path, {})
    assert len(made(**given).features.computed) == 2
    made(**given).check_records()
    assert len(opened(given)) <= 3 + 3 * SHARDS  # the list of shards twice, a backbone's file
    write_json(spoken / "v00.json", {"failures": 1})
    (said,) = [path for path in opened(given) if path.endswith("v00.json")]
    assert said == str(spoken / "v00.json")
    Path("clips/v01.mp4").unlink()
    assert "v01" not in {video.id for video in made(**given).videos.members("001")}
