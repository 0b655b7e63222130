"""What is wrong with a study is said before any job runs."""

from pathlib import Path

import pytest

from tests.conftest import snakemake

WRONG = {
    'spacewalk={subset: {videos: ["10062091"]}}': "config: subset.videos: '10062091' is not listed; choose from ",
    "spacewalk={entries: {2a-random: {kind: magic}}}": "config: spacewalk.entries.2a-random.kind: 'magic' is ",
    "strict=true": "strict: spacewalk lacks ",
}


@pytest.mark.slow
@pytest.mark.parametrize("setting", WRONG)
def test_a_study_that_cannot_be_is_one_line_and_nothing_is_computed(setting: str, tmp_path: Path) -> None:
    done = snakemake("--cores", "1", "results/spacewalk/table2.csv", "--config", setting, folder=tmp_path)
    assert done.returncode == 2
    (line,) = [line for line in done.stderr.splitlines() if "error" in line.lower()]
    assert line.startswith(f"error: {WRONG[setting]}")
    assert "Traceback" not in done.stdout + done.stderr
    assert not (tmp_path / "results").exists()
    assert not (tmp_path / "datasets").exists()


@pytest.mark.slow
def test_a_damaged_record_of_an_earlier_run_is_one_line(tmp_path: Path) -> None:
    damaged = "availability/000.json"
    path = tmp_path / "datasets/spacewalk" / damaged
    path.parent.mkdir(parents=True)
    path.write_text("[]")
    done = snakemake("--cores", "1", "--dry-run", "results/spacewalk/table2.csv", folder=tmp_path)
    assert done.returncode == 2
    (line,) = [line for line in done.stderr.splitlines() if "error" in line.lower()]
    assert line.startswith(f"error: datasets/spacewalk/{damaged}")
    assert "remove it" in line
    assert "Traceback" not in done.stdout + done.stderr


@pytest.mark.slow
def test_a_study_that_is_not_configured_is_one_line(tmp_path: Path) -> None:
    done = snakemake("--cores", "1", "--dry-run", "results/demo/table2.csv", folder=tmp_path)
    assert done.returncode == 2
    (line,) = [line for line in done.stderr.splitlines() if "error" in line.lower()]
    assert line.startswith("error: config: study 'demo' is not configured")


@pytest.mark.slow
def test_a_key_that_stands_twice_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("demo:\n  tables: [table2]\n  tables: [table3]\n")
    done = snakemake("--cores", "1", "--configfile", "mine.yaml", "--dry-run", folder=tmp_path)
    assert done.returncode == 2
    (line,) = [line for line in done.stderr.splitlines() if "error" in line.lower()]
    assert line == f"error: {tmp_path}/mine.yaml: not YAML: line 3: the key 'tables' stands twice; keep one"
