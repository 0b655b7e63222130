"""A run that is killed, and what the next one makes of it."""

from base64 import urlsafe_b64encode
from pathlib import Path

import pytest

from tests.conftest import snakemake
from tests.workflow.runs import TABLE, killed, messages, run, spacewalk

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
