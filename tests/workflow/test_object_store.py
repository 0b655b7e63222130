"""The embedded study, with its features in the work folder and on object storage."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from stepline.cli import main
from stepline.features import objects
from tests.conftest import snakemake
from tests.features.test_objects import content, names
from tests.object_storage import KEY, SECRET, ObjectStorage
from tests.workflow.runs import DEMO_TABLE, HISTOGRAMS, messages

pytestmark = pytest.mark.slow
PREDICTIONS = "results/demo/predictions/demo/2a-histogram-zero-shot/4s.parquet"
COMPUTED = "histogram on demo, shard 000"


def go(folder: Path, mirror: Path, *options: str, store: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run the study, with its stores at ``store``."""
    (folder / "config.yaml").write_text(json.dumps({"demo": HISTOGRAMS, "features": {"store": store}}))
    words = ["--cores", "2", *options, "--configfile", "config.yaml", "--", DEMO_TABLE]
    return snakemake(*words, folder=folder, STEPLINE_MIRROR=str(mirror))


def lose(folder: Path) -> None:
    """Remove what was predicted from the features, and what was made from that."""
    for path in (DEMO_TABLE, PREDICTIONS, PREDICTIONS.replace("predictions", "scores").replace("parquet", "json")):
        (folder / path).unlink()


def test_features_may_stand_on_object_storage(
    demo_mirror: Path,
    histograms: Path,
    tmp_path: Path,
    storage: ObjectStorage,
    remote: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    local = Path(shutil.copytree(histograms, tmp_path / "local", symlinks=True))
    (made,) = local.glob("features/histogram/*/demo/000")
    (manifest,) = local.glob("features/histogram/*/manifests/*.json")
    place = made.relative_to(local / "features")

    # The same from the videos on, with the store on object storage.
    far = Path(shutil.copytree(local, tmp_path / "far", symlinks=True))
    lose(far)
    shutil.rmtree(far / "features")
    done = go(far, demo_mirror, store=remote)
    assert done.returncode == 0, done.stderr
    assert COMPUTED in messages(done)
    assert names(f"{remote}/{place}") == content(made)
    assert not list(far.rglob("zarr.json"))
    for path in (manifest.relative_to(local), DEMO_TABLE, PREDICTIONS):
        assert (far / path).read_bytes() == (local / path).read_bytes()

    # Another machine that has the records and the bucket goes on from there.
    other = Path(shutil.copytree(far, tmp_path / "other", symlinks=True))
    lose(other)
    storage.asked.clear()
    done = go(other, demo_mirror, store=remote)
    assert done.returncode == 0, done.stderr
    assert COMPUTED not in messages(done)
    assert {each.method for each in storage.asked} == {"GET", "HEAD"}
    assert (other / DEMO_TABLE).read_bytes() == (far / DEMO_TABLE).read_bytes()

    # Where the store that the records tell of is elsewhere now, nothing is planned, and who reads it says what to do.
    elsewhere = f"{remote}-elsewhere"
    assert "Nothing to be done" in go(local, demo_mirror, "--dry-run", store=elsewhere).stdout
    lose(local)
    done = go(local, demo_mirror, store=elsewhere)
    assert done.returncode != 0
    line = f"error: {elsewhere}/{place}: it is absent or damaged: copy the store there, or run `stepline verify` and"
    assert line in done.stderr
    assert "Traceback" not in done.stderr
    monkeypatch.chdir(local)
    assert main(["verify"]) == 2
    assert capsys.readouterr().out == f"{elsewhere}/{place} is missing or damaged\n"
    done = go(local, demo_mirror, store=elsewhere)
    assert done.returncode == 0, done.stderr
    assert COMPUTED in messages(done)
    assert names(f"{elsewhere}/{place}") == content(made)
    assert (far / DEMO_TABLE).read_bytes() == (local / DEMO_TABLE).read_bytes()

    written = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert not [each for each in (KEY, SECRET) if each.encode() in written]
    assert objects.folders(remote) == ["histogram"]
