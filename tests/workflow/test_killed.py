"""A run that is killed, and what the next one makes of it."""

import json
import re
from base64 import urlsafe_b64encode
from pathlib import Path

import pytest

from stepline import open_bank
from tests.conftest import snakemake
from tests.media.clips import CFR_25, make
from tests.workflow.runs import TABLE, killed, messages, network, run, spacewalk

pytestmark = pytest.mark.slow


def test_a_killed_run_is_unlocked_and_goes_on_to_the_same_table(
    small_study: Path, real_data: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "killed"
    folder.mkdir()
    started = folder / "logs/predict/spacewalk.v2.2a-tfidf-zero-shot.60s.log"
    environment = {"STEPLINE_MIRROR": str(real_data)}
    killed("--cores", "1", TABLE, *spacewalk(), folder=folder, when=started.exists, **environment)
    assert not (folder / TABLE).exists()

    locked = snakemake("--cores", "2", TABLE, *spacewalk(), folder=folder, **environment)
    assert locked.returncode == 1
    assert "LockException" in locked.stderr
    unlocked = snakemake("--unlock", folder=folder)
    assert unlocked.returncode == 0, unlocked.stderr
    jobs = run(TABLE, *spacewalk(), folder=folder, mirror=real_data)
    assert "predict 2a-tfidf-zero-shot on v2 at 60s" in jobs
    assert "release files of spacewalk v2" not in jobs
    for path in (TABLE, TABLE.replace(".csv", ".md")):
        assert (folder / path).read_bytes() == (small_study / path).read_bytes()
    assert messages(locked) == []
    assert not [path for path in (folder / "results").rglob(".*") if path.is_file()]


def test_what_a_job_was_writing_at_a_kill_is_made_again(small: Path, real_data: Path) -> None:
    written, begun = small / TABLE, small / ".snakemake/incomplete" / urlsafe_b64encode(TABLE.encode()).decode()
    before = written.read_bytes()
    written.write_text("half a ta")
    begun.write_text('{"external_jobid": null}')
    assert run(TABLE, *spacewalk(), folder=small, mirror=real_data) == [TABLE]
    assert written.read_bytes() == before


def test_a_killed_network_is_named_and_does_not_stop_the_others(tmp_path: Path) -> None:
    (tmp_path / "videos").mkdir()
    make(tmp_path / "videos/a.mp4", CFR_25)
    (tmp_path / "sound.py").write_text(network("sound"))
    dying = "import os, signal", "os.kill(os.getpid(), signal.SIGKILL)"
    (tmp_path / "big.py").write_text(network("big", before=dying[0], body=dying[1]))
    backbones = {name: {"path": f"{name}.py"} for name in ("sound", "big")}
    mine = {"videos": "videos", "backbones": [*backbones], "stages": ["features"]}
    (tmp_path / "c.json").write_text(json.dumps({"backbones": backbones, "datasets": {"mine": mine}}))

    def failed() -> list[str]:
        options = "--cores", "1", "--keep-going", "--configfile", "c.json"
        done = snakemake(*options, folder=tmp_path, lines=True)
        return re.findall(r"  (\w+) on mine, shard 000: it ended .* after the line: computing (.*) \(", done.stderr)

    together = "sound, big in one pass; if it is killed, the next run computes each alone"
    assert failed() == [("sound", together), ("big", "big")]
    assert failed() == [("big", "big")]
    assert len(open_bank("sound", "mine", root=tmp_path)["a"]) == 3
