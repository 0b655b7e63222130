"""The recording that the whole run leaves out, stage by stage."""

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("av")
pytest.importorskip("cv2")
pytest.importorskip("scenedetect")

from stepline import config, paths
from stepline.backbones.histogram import HistogramSpec
from stepline.datasets.studies import study
from stepline.features.extract import Work, extract
from stepline.fetch import fetch_release, fetch_videos
from stepline.io import read_json, write_json
from stepline.media.prepare import Media, prepare
from stepline.plans import pipeline
from stepline.shots import Detection, detect
from tests.demo import truth as checks
from tests.media.clips import LIMITS

VIDEO, SHARD = "bicycle", "000"


@pytest.mark.slow
def test_the_recording_as_built_passes(
    mirror: Path, truth: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEPLINE_MIRROR", str(mirror))
    fetch_videos(pipeline(config.validate({"demo": {}}), "demo"), SHARD)
    availability = paths.availability("demo", SHARD)
    write_json(availability, {"videos": {VIDEO: read_json(availability)["videos"][VIDEO]}})
    media, shots, spec = paths.media("demo"), paths.shots("demo"), HistogramSpec()
    prepare(availability, Media(media), paths.manifest(media, SHARD), limits=LIMITS)
    given = paths.manifest(media, SHARD), media, shots, paths.manifest(shots, SHARD)
    detect(*given, Detection(detector="content", threshold=27, min_shot_s=0.6))
    work = Work(spec=spec, store=paths.features("demo", SHARD, spec))
    options = {"device": "cpu", "batch_size": None, "decoders": 1}
    manifest, lock = paths.features_manifest("demo", SHARD, spec), paths.features_lock("demo", SHARD)
    extract(availability, [work], manifest, lock=lock, limits=LIMITS, options=options)
    fetch_release(study("demo"), "demo")
    built = {**truth, "videos": {VIDEO: truth["videos"][VIDEO]}}
    for check in (checks.check_videos, checks.check_shots, checks.check_features, checks.check_steps):
        check(tmp_path, built)
