import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stepline import paths
from stepline.cli import main
from stepline.errors import ConfigError, MissingError, StoreError
from stepline.io import read_json, sha256_file, write_json
from stepline.runs.accept import accept
from stepline.runs.explain import explain
from stepline.runs.verbs import Verbs
from tests.benchmark.tiny import Tiny, declared, job, tiny, write_releases
from tests.runs.test_table import compute

TABLE = Path("results/tiny/table1.csv")


@pytest.fixture
def made(tmp_path: Path) -> Tiny:
    write_releases()
    made = tiny(tmp_path, releases=["first"])
    compute(made, "table1")
    Verbs(made).table("table1")
    return made


def test_all_that_is_behind_a_line_is_said(made: Tiny) -> None:
    text = explain(TABLE, "drawn", "all", "first")
    lines = text.splitlines()
    assert lines[:6] == [
        "drawn on first at all: Drawn, Table 1 of tiny",
        "",
        "error on test: 3.5000, 95 % interval 2.5000 to 6.5000; ours; selection: guessed",
        "  Error: no definition (2 listed; 2 videos; seeds 1: 4.0000, 2: 3.0000)",
        "near on test: 25.0000, 95 % interval 0.0000 to 33.3333; ours; selection: guessed",
        "  Near: the share of guesses within a distance (within=1; 2 listed; 2 videos; seeds 1: 25.0000, 2: 25.0000)",
    ]
    assert f"spec {made.spec(job(made, 'drawn'))}: " in text
    predictions, score = (
        paths.predictions("tiny", "first", "drawn", "all"),
        paths.scores("tiny", "first", "drawn", "all"),
    )
    assert f"predictions: {predictions}, 8 rows of seed, split, video, place, value" in lines
    assert f"method: tests.benchmark.tiny, source {made.source(made.kinds['drawn'])}" in lines
    assert f"scores: {score}, source {made.scoring_source()}; intervals by bootstrap over videos, " in text
    release, file = Path("datasets/tiny/first/release.json"), Path("datasets/tiny/first/numbers.json")
    assert {f"  {sha256_file(each)}  {each}" for each in (release, file)} <= {*lines}
    assert "release first: https://tiny/1/first/numbers.json" in lines
    assert f"to compute it again: snakemake --cores 8 {score} --forcerun {predictions}" in lines
    mean = "the value is the mean of 2 videos, each counts 25.00 to 75.00 %"
    assert lines[-3:] == [
        "by video:",
        f"  error: {mean}; lowest e 2.5000, f 6.5000; highest f 6.5000, e 2.5000",
        f"  near: {mean}; lowest f 0.0000, e 33.3333; highest e 33.3333, f 0.0000",
    ]


def test_one_metric_and_every_video_are_printed_where_they_are_asked_for(made: Tiny) -> None:
    lines = explain(TABLE, "drawn", "all", "first", metric="near", videos=True).splitlines()
    assert lines[2].startswith("near on test: ")
    assert lines[4] == ""
    assert lines[-2:] == ["    e  33.3333  counts 75.00 %", "    f  0.0000  counts 25.00 %"]
    with pytest.raises(ConfigError, match=rf"^{TABLE} has no metric 'far' of drawn; its metrics are error, near$"):
        explain(TABLE, "drawn", "all", "first", metric="far")


def test_a_score_is_explained_without_its_table(made: Tiny) -> None:
    score = paths.scores("tiny", "first", "drawn", "all")
    of_line = explain(TABLE, "drawn", "all", "first").splitlines()
    TABLE.unlink()
    lines = explain(score).splitlines()
    assert lines[0] == "drawn on first at all of tiny"
    beside = "; ours; selection: guessed"
    assert [line.removesuffix(beside) for line in of_line[1:] if not line.startswith("sees: ")] == lines[1:]
    with pytest.raises(
        MissingError, match=f"^{TABLE} does not exist: run `snakemake .*`, or name the score of one line"
    ):
        explain(TABLE, "drawn", "all", "first")
    score.unlink()
    with pytest.raises(MissingError, match=f"^{score} does not exist: run `snakemake --cores 8 {score}`$"):
        explain(score)
    with pytest.raises(ConfigError, match="^results/tiny/table1.csv is no score: name results/STUDY/scores/"):
        explain(TABLE)


def test_a_score_without_numbers_says_what_it_needs(made: Tiny) -> None:
    score = paths.scores("tiny", "first", "drawn", "all")
    write_json(score, {**read_json(score), "metrics": {}, "needs": ["java"]})
    with pytest.raises(MissingError, match=f"^{score} has no number; its job needs java$"):
        explain(score)


def test_the_timeline_of_a_video_is_named_where_a_benchmark_has_one(
    made: Tiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "over time" not in explain(TABLE, "drawn", "all", "first")
    monkeypatch.setattr(Tiny, "in_time", lambda self, inputs, video, made: None)
    Verbs(made).score("first", "drawn", "all")
    shown = "show first VIDEO --entry drawn --release first --context all"
    assert f"to see one video over time: stepline {shown}" in explain(TABLE, "drawn", "all", "first").splitlines()


def test_a_line_with_many_metrics_videos_and_files_is_short(made: Tiny) -> None:
    score = paths.scores("tiny", "first", "drawn", "all")
    found = read_json(score)
    values = {f"v{number}": float(number) for number in range(500)}
    each = found["metrics"]["error"] | {"per_video": values, "weights": dict.fromkeys(values, 1)}
    path = paths.predictions("tiny", "first", "drawn", "all").with_suffix(".json")
    record = read_json(path)
    inputs = {f"input{number:02}": f"{number:064}" for number in range(100)}
    release = record["releases"]["first"] | {"files": inputs}
    write_json(path, record | {"inputs": inputs, "releases": {f"r{number}": release for number in range(5)}})
    write_json(score, found | {"metrics": {f"m{number}": each for number in range(9)}})
    text = explain(score)
    assert len(text.splitlines()) <= 60
    assert f"  the list of 100 files, of which 100 were changed or deleted since: {path}" in text
    listed = "".join(f"{sha256}  {name}\n" for name, sha256 in inputs.items())
    assert hashlib.sha256(listed.encode()).hexdigest() in text
    assert "m8: 249.5000, not the value, is the mean of 500 units" in text
    assert "lowest v0 0.0000, v1 1.0000, v2 2.0000; highest v499 499.0000, v498 498.0000, v497 497.0000" in text
    write_json(score, found | {"metrics": {f"m{number}": each for number in range(18)}})
    text = explain(score)
    assert len(text.splitlines()) <= 60
    assert text.endswith("definitions, and values by video: name one of these 18 metrics with --metric")


def test_what_was_computed_before_scores_said_what_they_are_is_explained(made: Tiny) -> None:
    path = paths.scores("tiny", "first", "drawn", "all")
    score = {key: value for key, value in read_json(path).items() if key not in ("bootstrap", "shown_in")}
    words = ("title", "definition", "options", "split")
    for result in score["metrics"].values():
        for word in words:
            del result[word]
    write_json(path, score)
    assert "error on test: 3.5000" in explain(TABLE, "drawn", "all", "first")
    assert "error on : 3.5000" in explain(path)


@pytest.mark.parametrize(
    ("commit", "said"),
    [
        ("a" * 40, f"predicted by Stepline 0.1.0 at commit {'a' * 40}"),
        (f"{'a' * 40} and local changes", f"predicted by Stepline 0.1.0 at commit {'a' * 40} and local changes"),
        ("", "predicted by Stepline 0.1.0, no commit on record"),
    ],
)
def test_the_code_is_a_commit_or_a_version(made: Tiny, commit: str, said: str) -> None:
    path = paths.predictions("tiny", "first", "drawn", "all").with_suffix(".json")
    record = read_json(path)
    write_json(path, record | {"stepline": {"version": "0.1.0", "commit": commit}})
    assert said in explain(TABLE, "drawn", "all", "first").splitlines()


def test_damaged_predictions_are_one_line(made: Tiny) -> None:
    path = paths.predictions("tiny", "first", "drawn", "all")
    path.write_bytes(b"x")
    with pytest.raises(StoreError, match=f"^{path} is damaged "):
        explain(TABLE, "drawn", "all", "first")
    path.unlink()
    assert f"predictions: {path}, deleted" in explain(TABLE, "drawn", "all", "first").splitlines()


def test_what_became_of_inputs_is_said(made: Tiny) -> None:
    release = Path("datasets/tiny/first/release.json")
    release.write_text("{}")
    assert f"{release}  (changed since)" in explain(TABLE, "three", "all", "first")
    release.unlink()
    assert f"{release}  (deleted)" in explain(TABLE, "three", "all", "first")


def test_a_line_of_another_window_is_that_of_its_job(made: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Tiny, "contexts", lambda self, table, line: [(60, None), (180, None)])
    Verbs(made).table("table1")
    text = explain(TABLE, "three", "180s", "first")
    assert text.startswith("three on first at 180s: Three")
    assert text.count("error on test: 2.5000") == 1
    assert f"predictions: {paths.predictions('tiny', 'first', 'three', 'all')}, " in text


def test_what_was_not_computed_or_has_no_record_is_made_again(made: Tiny) -> None:
    with pytest.raises(MissingError, match="^fitted on first at all was not computed: needs features:net/first: "):
        explain(TABLE, "fitted", "all", "first")
    path = paths.predictions("tiny", "first", "three", "all")
    path.with_suffix(".json").unlink()
    with pytest.raises(MissingError, match="^three on first at all has predictions without a record: ") as error:
        explain(TABLE, "three", "all", "first")
    assert f"`snakemake --cores 8 {TABLE} --forcerun {path}`" in str(error.value)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda made: made.pop("method"), "method: it is required"),
        (lambda made: made["method"].pop("source"), "method.source: it is required"),
        (lambda made: made.update(releases={"first": []}), r"releases.first: \[\] is not allowed"),
        (lambda made: made["invocation"].update(cores=8), "invocation.cores: unknown key; allowed: configfiles, over"),
    ],
)
def test_a_record_in_another_form_is_one_line(made: Tiny, change: Callable[[Any], Any], why: str) -> None:
    predictions = paths.predictions("tiny", "first", "three", "all")
    path = predictions.with_suffix(".json")
    record = read_json(path)
    change(record)
    write_json(path, record)
    for verb in (lambda: explain(TABLE, "three", "all", "first"), lambda: accept(type(made), "tiny", "constant")):
        with pytest.raises(
            StoreError, match=rf"^{path} is damaged or from another version of Stepline \({why}"
        ) as error:
            verb()
        assert str(error.value).endswith(f"again with `snakemake --cores 8 {predictions} --forcerun {predictions}`")
    assert list(made.stale()) == []


def test_a_damaged_score_is_one_line(made: Tiny) -> None:
    path = paths.scores("tiny", "first", "three", "all")
    write_json(path, {"needs": []})
    with pytest.raises(StoreError, match=f"^{path} is not a score: remove it"):
        explain(TABLE, "three", "all", "first")


def test_what_is_not_predicted_is_one_line(tmp_path: Path) -> None:
    write_releases()
    lines = [{"entry": "people", "method": "P"}]
    Verbs(tiny(tmp_path, declared(tables={"table1": {"title": "T", "metrics": ["n"], "lines": lines}}))).table("table1")
    with pytest.raises(
        ConfigError, match="^people on first has no predictions: its numbers are the paper's, or counts"
    ):
        explain(TABLE, "people", "all", "first")


def test_a_metric_without_a_value_says_once_what_it_needs(made: Tiny) -> None:
    rows = TABLE.read_text().splitlines()
    header = rows[0].split(",")
    cells = next(dict(zip(header, row.split(","), strict=True)) for row in rows if ",drawn," in row and ",near," in row)
    counts = ("value", "paper", "ci_low", "ci_high", "n_videos", "n_listed", "n_samples", "n_queries")
    bare = {**cells, **dict.fromkeys(counts, ""), "status": "needs", "note": "needs weights:a"}
    TABLE.write_text("\n".join([rows[0], ",".join(bare[name] for name in header)]) + "\n")
    lines = explain(TABLE, "drawn", "all", "first").splitlines()
    assert lines[2:4] == [
        "near on test: no value; needs weights:a",
        "  Near: the share of guesses within a distance (within=1; 2 listed; 2 videos; seeds 1: 25.0000, 2: 25.0000)",
    ]


def test_what_no_table_has_is_one_line(made: Tiny) -> None:
    with pytest.raises(MissingError, match="^three on first at 60s has no line; choose a window length from all$"):
        explain(TABLE, "three", "60s", "first")
    with pytest.raises(ConfigError, match="^results/tiny/table1.csv has no line for 'x' on 'first'; its entries"):
        explain(TABLE, "x", "all", "first")
    with pytest.raises(
        ConfigError, match="^results/tiny/table1.csv has no line for 'drawn' on 'v9'; its releases are first$"
    ):
        explain(TABLE, "drawn", "all", "v9")
    with pytest.raises(MissingError, match="^results/tiny/table9.csv does not exist: run `snakemake"):
        explain(Path("results/tiny/table9.csv"), "x", "all", "first")
    Path("results/tiny/videos.csv").write_text("video,status\na,present\n")
    with pytest.raises(ConfigError, match="^results/tiny/videos.csv has no entries: name a table of a study"):
        explain(Path("results/tiny/videos.csv"), "x", "all", "first")


def test_the_command_takes_a_whole_line_or_none(made: Tiny, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", str(TABLE), "drawn", "all", "first", "--metric", "near", "--videos"]) == 0
    assert capsys.readouterr().out == explain(TABLE, "drawn", "all", "first", metric="near", videos=True) + "\n"
    assert main(["explain", str(TABLE), "drawn"]) == 2
    assert "a line of results/tiny/table1.csv has three names, ENTRY CONTEXT RELEASE, not 1" in capsys.readouterr().err
