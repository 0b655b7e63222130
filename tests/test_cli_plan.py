"""`stepline plan` and `stepline status`, on a list of three videos."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from stepline import cli
from stepline.availability import Record, write_availability, write_manifest
from stepline.io import write_text
from tests.conftest import ROOT
from tests.overview.listed import config


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = cli.main(["--configfile", "listed.yaml", *arguments])
    said = capsys.readouterr()
    return code, said.out, said.err


def test_plan_says_what_a_run_does_and_takes(capsys: pytest.CaptureFixture[str]) -> None:
    config()
    code, out, _ = run(capsys, "plan", "mine")
    assert code == 0
    lines = out.splitlines()
    assert lines[:3] == [
        "stage             jobs  done  to do",
        "download             3     0      3",
        "sound and scores     3     0      3",
    ]
    assert "results/mine/report.html -n --configfile listed.yaml`" in out
    words = " ".join(out.split())
    assert "mine 3 3.0 h" in words
    assert "decoding, with sound and scores 3.0 h 18 min typical" in words
    assert "datasets/mine/videos 4.3 GB" in words
    assert out.endswith("Nothing is missing.\n")


def test_plan_for_machines_says_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    config()
    made = json.loads(run(capsys, "plan", "--json")[1])
    assert made["targets"] == ["results/mine/videos.csv", "results/mine/report.html"]
    assert made["stages"][0] == {"stage": "download", "jobs": 3, "done": 0, "to_do": 3}
    assert made["peak_bytes"] == sum(each["bytes"] for each in made["disk"])
    assert made["missing"] == []


def test_plan_names_what_is_missing_once_with_its_command(capsys: pytest.CaptureFixture[str]) -> None:
    config(mine={"backbones": ["s3d-pss", "s3d-htstep"]})
    out = run(capsys, "plan")[1]
    assert re.split(" {2,}", out.splitlines()[-1]) == [
        "weights:s3d",
        "s3d-pss features of mine, s3d-htstep features of mine",
        "stepline fetch weights/s3d",
    ]


def test_plan_counts_the_lines_of_tables_that_will_have_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    cli.main(["--configfile", str(ROOT / "config.yaml"), "plan", "--json", "results/pss/table1.csv"])
    made = json.loads(capsys.readouterr().out)
    (table,) = made["tables"]
    assert table["table"] == "results/pss/table1.csv"
    assert 0 < table["numbered"] < table["total"]
    needs = {each["need"]: each for each in made["missing"]}
    assert needs["release:pss/youcook2"]["command"] == "stepline fetch pss/youcook2"
    assert needs["release:pss/youcook2"]["lines"] >= len(needs["release:pss/youcook2"]["entries"]) > 0
    assert {each["stage"] for each in made["stages"]} >= {"release files", "predict", "score", "table"}


def test_plan_warns_of_a_disk_that_is_too_small(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    config()
    monkeypatch.setattr("stepline.overview.forecast.Forecast.free_bytes", 10**9)
    assert "Free on this disk: 1.0 GB.\nwarning: the disk does not have enough space" in run(capsys, "plan")[1]


def test_status_names_what_failed_and_counts_all_videos(capsys: pytest.CaptureFixture[str]) -> None:
    config()
    for shard, video in (("000", "a"), ("001", "b")):
        record = Record(video=video, status="failed", reason="HTTP 404")
        write_availability(f"datasets/mine/availability/{shard}.json", [record])
        write_availability(f"datasets/mine/videos/{video}.json", [record])
        write_manifest(
            f"datasets/mine/media/manifests/{shard}.json", {video: {"status": "failed", "reason": "HTTP 404"}}
        )
    write_text("logs/videos/mine.002.log", "2026-11-25 15:17:12,378 ERROR error: the disk is full\n")
    code, out, _ = run(capsys, "status")
    assert code == 0
    lines = out.splitlines()
    assert lines[0] == "stage             jobs  done  running  failed  waiting  time left"
    assert lines[1].split() == ["download", "3", "2", "1", "unknown"]
    assert "mine: 3 videos: 2 failed, 1 waiting\n  2  failed  a, b  HTTP 404" in out
    assert out.endswith("failed:\n  download  mine 002  the disk is full  logs/videos/mine.002.log\n")
    assert "waiting:" not in out
    assert "waiting:\n  " in run(capsys, "status", "--all")[1]
    made = json.loads(run(capsys, "status", "--json")[1])
    assert made["videos"]["mine"]["a"] == {"status": "failed", "reason": "HTTP 404"}
    assert made["jobs"][0]["state"] == "done"


def test_a_target_that_nothing_makes_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    config()
    code, _, err = run(capsys, "status", "results/mine/nothing.html")
    assert code == 2
    assert err.startswith("error: no job writes results/mine/nothing.html: did you mean ")
    assert err.count("\n") == 1


def test_plan_imports_nothing_heavy() -> None:
    code = f"""
import sys
from stepline.cli import main
main(["--configfile", {str(ROOT / "config.yaml")!r}, "plan"])
print({{"av", "cv2", "matplotlib", "pyarrow", "torch"}} & sys.modules.keys(), file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == "set()\n"
    assert "results/spacewalk/table2.csv" in done.stdout
    assert not Path("datasets").exists()
