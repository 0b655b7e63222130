"""What is said of a run, by Snakemake's events."""

import asyncio
import errno
import io
import json
import logging
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from snakemake_interface_logger_plugins.common import LogEvent

from snakemake_logger_plugin_stepline import LogHandler, attach, stages
from snakemake_logger_plugin_stepline.ending import KILLED
from snakemake_logger_plugin_stepline.errors import in_one_line
from snakemake_logger_plugin_stepline.reasons import in_words
from snakemake_logger_plugin_stepline.run import Run
from snakemake_logger_plugin_stepline.stages import seconds_of
from stepline.availability import Record, write_availability, write_manifest
from stepline.io import write_text
from stepline.progress import record_of

MEDIA = "datasets/mine/media/manifests/{}.json"


def job(number: int, rule: str = "media", reason: str = "", **more: Any) -> dict[str, Any]:
    shard = f"{number:03d}"
    said = {
        "jobid": number,
        "rule_name": rule,
        "rule_msg": f"{rule} of mine, shard {shard}",
        "wildcards": {"dataset": "mine", "shard": shard},
        "log": [f"logs/{rule}/mine.{shard}.log"],
        "input": [f"datasets/mine/availability/{shard}.json"],
        "output": [MEDIA.format(shard)],
        "reason": reason,
    }
    return said | more


@pytest.fixture(autouse=True)
def _shards() -> None:
    seconds_of.cache_clear()
    for shard, broken in (("001", 1), ("002", 8)):
        there = Record(video=f"a{shard}", status="present", duration_s=100.0)
        failed = [Record(video=f"broken{shard}-{n}", status="failed", reason="no video") for n in range(broken)]
        write_availability(f"datasets/mine/availability/{shard}.json", [there, *failed])


@pytest.fixture
def run() -> Run:
    made = Run(io.StringIO(), dry=False)
    made.plan({"media": 2, "page": 1, "all": 1, "total": 4})
    return made


def said(run: Run) -> list[str]:
    return run.screen._stream.getvalue().splitlines()  # type: ignore[attr-defined, no-any-return]


def test_a_stage_counts_seconds_of_video_with_the_total_once_all_jobs_have_started(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = 0.0
    monkeypatch.setattr(stages.time, "monotonic", lambda: now_s)
    run.start(job(1))
    stage = run._stages["sound and scores"]
    stage._began = 0.0
    now_s = 10.0
    write_text(record_of("logs/media/mine.001.log"), json.dumps({"done": 25.0, "total": 50.0}))
    assert stage.line().split(maxsplit=3)[3] == "0/2 jobs, 0:00:50 of video, 5 x real time, 0:00:30 left"
    run.start(job(2))
    assert stage.line().endswith("0/2 jobs, 0:00:50 of 0:03:20 of video, 5 x real time, 0:00:30 left")
    run.finish(1)
    assert stage.line().endswith("1/2 jobs, 0:01:40 of 0:03:20 of video, 10 x real time, 0:00:10 left")
    run.finish(2)
    assert said(run)[-1].endswith("2/2 jobs, 0:03:20 of video, 20 x real time, took 0:00:10")


def test_the_end_counts_all_videos_that_failed_or_are_partial_and_names_five(run: Run) -> None:
    run.start(job(1))
    write_manifest(MEDIA.format("001"), {"a001": {"status": "present", "reason": "", "gaps": [[1, 2]]}})
    run.finish(1)
    run.end()
    end = said(run)[said(run).index("mine: 2 videos, of which 1 partial, 1 failed") :]
    assert end == [
        "mine: 2 videos, of which 1 partial, 1 failed",
        "  a001: partial: 1 gaps",
        "  broken001-0: failed: no video",
    ]


def test_a_reason_stays_within_its_line(run: Run) -> None:
    path = "datasets/mine/availability/001.json"
    write_availability(path, [Record(video="a001", status="gone", reason="odd\x1b[2J\nmade:\u2028\u202e")])
    run.start(job(1, output=[path]))
    run.end()
    assert said(run)[-1] == r"  a001: gone: odd\x1b[2J\nmade:\u2028\u202e"


def test_seconds_without_a_transcript_are_named_at_the_end(run: Run) -> None:
    reason = "no transcript of 12.0 to 100.0 s: the service's answer ends before"
    record = {"status": "present", "reason": reason, "n_sentences": 1, "unheard": [[12.0, 100.0]]}
    path = "datasets/mine/transcripts/deepgram/manifests/001.json"
    write_manifest(path, {"a001": record})
    run.start(job(1, output=[path]))
    run.finish(1)
    run.end()
    assert f"  a001: partial: {reason}" in said(run)


def test_more_than_five_are_counted_and_the_place_of_all_is_named(run: Run) -> None:
    run.start(job(2))
    run.end()
    end = said(run)
    assert "mine: 9 videos, of which 8 failed" in end
    assert end[-1] == "  and 3 more: datasets/mine/availability/"
    write_text("results/mine/videos.csv", "")
    again = Run(io.StringIO(), dry=False)
    again.plan({"media": 1})
    again.start(job(2))
    again.end()
    assert said(again)[-1] == "  and 3 more: results/mine/videos.csv"


def test_failed_jobs_have_their_reason_and_a_log_that_is_not_empty(run: Run) -> None:
    for number in (1, 2):
        run.start(job(number))
    write_text("logs/media/mine.001.log", "2026-01-01 00:00:00,000 ERROR error: features.device: no GPU\n")
    write_text("logs/media/mine.002.log", "")
    for number in (1, 2):
        run.fail({"jobid": number})
    run.log = "here.log"
    run.end()
    assert said(run)[-5:] == [
        "failed: 2 jobs",
        "  media of mine, shard 001: features.device: no GPU (logs/media/mine.001.log)",
        f"  media of mine, shard 002: {KILLED}",
        "Snakemake's own messages: here.log",
        "finished work is kept; the same command continues from there",
    ]


def test_a_killed_job_has_the_last_line_of_its_log(run: Run) -> None:
    run.start(job(1))
    lines = "2026-01-01 00:00:00,000 INFO loading big\n2026-01-01 00:00:01,000 INFO computing big\n"
    write_text("logs/media/mine.001.log", lines)
    run.fail({"jobid": 1})
    run.end()
    ended = f"{KILLED}, after the line: computing big"
    assert f"  media of mine, shard 001: {ended} (logs/media/mine.001.log)" in said(run)


def test_a_job_that_succeeds_at_another_attempt_did_not_fail(run: Run) -> None:
    run.start(job(1))
    run.fail({"jobid": 1})
    run.start(job(1))
    run.finish(1)
    run.end()
    assert not [line for line in said(run) if "failed: 1 job" in line]
    assert "1 of 3 jobs done in 0:00:00" in said(run)


def test_what_is_named_at_the_end_exists(run: Run) -> None:
    write_text("results/mine/videos.csv", "")
    run.start(job(1, output=["results/mine/videos.csv", "results/mine/videos.md"]))
    run.start(job(2, output=["results/mine/report.html"]))
    run.finish(1)
    run.fail({"jobid": 2})
    run.end()
    assert said(run)[said(run).index("made:") :][1] == "  results/mine/videos.csv"
    assert not [line for line in said(run) if "videos.md" in line or "report.html" in line]


def test_touch_is_no_computation_and_names_no_results() -> None:
    write_text("results/mine/videos.csv", "")
    run = Run(io.StringIO(), dry=False, touch=True)
    run.plan({"media": 2})
    for number, output in ((1, "results/mine/videos.csv"), (2, "results/mine/report.html")):
        run.start(job(number, output=[output]))
        run.finish(number)
    run.end()
    assert said(run) == ["nothing was computed; 1 of 2 jobs have files, now up to date"]


def test_a_dry_run_counts_jobs_by_stage_and_reason() -> None:
    run = Run(io.StringIO(), dry=True)
    run.start(job(1, reason="Missing output files: a"))
    run.start(job(2, reason="Params have changed since last execution: before: '1f' now: 'd4'"))
    run.end()
    assert said(run) == [
        "stage               jobs  reason",
        "sound and scores       2  1 x output is missing; 1 x its configuration changed",
        "dry run: nothing was computed; without -n, 2 jobs would run",
    ]


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("Missing output files: a; Input files updated by another job: b", "output is missing"),
        ("Input files updated by another job: b", "an earlier stage runs"),
        ("Updated input files: b", "input changed"),
        ("Code has changed since last execution", "code of the rule changed"),
        ("Set of input files has changed since last execution", "other inputs"),
        ("Forced execution", "requested with --force"),
        ("Something new", "Something new"),
    ],
)
def test_reasons_are_words(reason: str, words: str) -> None:
    assert in_words("media", reason) == words


def handler(**asked: Any) -> LogHandler:
    options = {"stdout": False, "dryrun": False, "printshellcmds": False, "verbose": False, "debug_dag": False}
    settings: Any = SimpleNamespace(**options | {"show_failed_logs": False, "quiet": None} | asked)
    return LogHandler(settings, None)


def event(kind: LogEvent, text: str = "", **more: Any) -> logging.LogRecord:
    record = logging.LogRecord("snakemake", logging.ERROR, "", 0, text, None, None)
    record.__dict__ |= {"event": kind} | more
    return record


@pytest.mark.parametrize("ended", ["died with <Signals.SIGINT: 2>", "returned non-zero exit status 130"])
@pytest.mark.parametrize("interrupted", [True, False])
def test_a_job_that_an_interrupt_ends_first_has_failed_only_if_the_run_is_not_interrupted(
    ended: str, interrupted: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    taking = handler()
    taking.emit(event(LogEvent.RUN_INFO, stats={"media": 2}))
    for number, how in ((1, "returned non-zero exit status 1"), (2, ended)):
        taking.emit(event(LogEvent.JOB_INFO, **job(number)))
        text = f"RuleException:\nCalledProcessError in file \"a.smk\", line 21:\nCommand 'stepline media' {how}.\n"
        taking.emit(event(LogEvent.ERROR, text, exception="RuleException"))
        taking.emit(event(LogEvent.JOB_ERROR, jobid=number))
    taking._run.interrupted = interrupted
    taking.close()
    printed = capsys.readouterr().err
    assert ("0 of 2 jobs done; not finished: media of mine, shard 002" in printed) == interrupted
    assert ("failed: 1 job" if interrupted else "failed: 2 jobs") in printed


def test_messages_that_say_something_are_kept(capsys: pytest.CaptureFixture[str]) -> None:
    taking = handler()
    for level, text in (
        (logging.INFO, "Building DAG of jobs..."),
        (logging.INFO, "Nothing to be done (all requested files are present and up to date)."),
        (logging.DEBUG, "of no use"),
        (logging.WARNING, "a warning\nof two lines\x1b[2J"),
    ):
        taking.emit(logging.LogRecord("snakemake", level, "", 0, text, None, None))
    taking.emit(event(LogEvent.ERROR, "MissingInputException in rule all", exception="MissingInputException"))
    taking.close()
    assert capsys.readouterr().err.splitlines() == [
        "Nothing to be done (all requested files are present and up to date).",
        "a warning",
        r"of two lines\x1b[2J",
        "MissingInputException in rule all",
    ]


@pytest.mark.parametrize(
    "option", [{}, {"printshellcmds": True}, {"verbose": True}, {"quiet": {"all"}}, {"show_failed_logs": True}]
)
def test_who_asks_for_snakemakes_output_gets_it(option: dict[str, Any]) -> None:
    logger = logging.Logger("snakemake")  # noqa: LOG001 - not that of other tests
    default = logging.StreamHandler()
    default.name = "DefaultStreamHandler"
    logger.addHandler(default)
    attach(SimpleNamespace(logger_manager=SimpleNamespace(settings=handler(**option).common_settings, logger=logger)))
    assert [type(each) for each in logger.handlers] == [logging.StreamHandler if option else LogHandler]


def test_the_record_of_a_job_that_was_killed_before_says_nothing(run: Run, tmp_path: Path) -> None:
    record = tmp_path / record_of("logs/media/mine.001.log")
    write_text(record, json.dumps({"done": 25.0, "total": 50.0}))
    run.start(job(1))
    started = run._jobs[1]
    assert started.share() == 0.5
    assert stages.Job(**{**vars(started), "began": started.began + 3600}).share() == 0.0
    write_text(record, "{")
    assert started.share() == 0.0


def test_an_interrupt_waits_for_a_running_event_loop() -> None:
    run = Run(io.StringIO(), dry=False)

    async def work() -> str:
        signal.raise_signal(signal.SIGINT)
        await asyncio.sleep(0.01)
        return "whole"

    assert asyncio.run(work()) == "whole"
    with pytest.raises(KeyboardInterrupt):
        time.sleep(5)
    assert run.interrupted


def test_an_interrupt_waits_until_a_job_is_in_the_pool_and_another_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    Run(io.StringIO(), dry=False)
    start = threading.Thread.start

    def interrupted(thread: threading.Thread) -> None:
        monkeypatch.undo()
        start(thread)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(threading.Thread, "start", interrupted)
    with ThreadPoolExecutor() as pool:
        ended = pool.submit(time.sleep, 0.3)
        with pytest.raises(KeyboardInterrupt):
            time.sleep(5)
        signal.raise_signal(signal.SIGINT)
    assert ended.done()
    assert signal.getsignal(signal.SIGINT) is not signal.SIG_IGN  # which jobs would inherit


def test_an_interrupt_after_the_end_is_ignored() -> None:
    Run(io.StringIO(), dry=False).end()
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_an_interrupt_before_snakemake_imports_the_plugin_is_one_line(tmp_path: Path) -> None:
    script = tmp_path / "snakemake"
    script.write_text("import os, signal, snakemake_logger_plugin_stepline as _; os.kill(os.getpid(), signal.SIGINT)")
    done = subprocess.run([sys.executable, script], capture_output=True, check=False, text=True)
    assert done.stderr == "interrupted: finished work is kept; the same command continues from there\n"
    script.write_text(script.read_text().replace(", snakemake_logger_plugin_stepline as _", ""))
    done = subprocess.run([sys.executable, script], capture_output=True, check=False, text=True)
    assert (done.returncode, done.stderr) == (130, "interrupted: nothing was begun\n")


def test_an_interrupt_and_a_full_disk_while_snakemake_starts_are_one_line() -> None:
    code = "import snakemake_logger_plugin_stepline; raise {}"
    for error, lines in (
        ("KeyboardInterrupt", ["interrupted: finished work is kept; the same command continues from there"]),
        ("ValueError", []),
    ):
        done = subprocess.run([sys.executable, "-c", code.format(error)], capture_output=True, check=False, text=True)
        assert ("Traceback" in done.stderr) == (not lines)
        assert lines in ([], done.stderr.splitlines())
    full = OSError(errno.ENOSPC, "No space left on device", ".snakemake/metadata/a")
    assert in_one_line(full, None).startswith(f"error: the disk is full ({full.filename} on /")
