import csv
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stepline import paths
from stepline.cli import main
from stepline.errors import ConfigError, MissingError, StoreError
from stepline.io import csv_text, read_json, sha256_file, write_json
from stepline.runs.accept import accept
from stepline.runs.explain import explain
from stepline.runs.verbs import Verbs
from tests.benchmark.tiny import Tiny, declared, job, tiny, write_releases
from tests.runs.test_table import compute

TABLE = Path("results/tiny/table1.csv")


def change(old: str, **cells: str) -> None:
    """Change cells of the first line of the table with a text."""
    with TABLE.open(newline="") as file:
        rows = list(csv.DictReader(file))
    next(row for row in rows if old in ",".join(row.values())).update(cells)
    TABLE.write_text(csv_text(rows[0], (row.values() for row in rows)))


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
    assert lines[:7] == [
        "drawn on first at all: Drawn, Table 1 of tiny",
        "values are in percent, unless a title or definition names another unit; counts are whole numbers",
        "",
        "error on test: 3.5000, 95 % interval 2.5000 to 6.5000 over videos; ours; selection: guessed",
        "  Error: no definition (2 listed; 2 videos; seeds 1: 4.0000, 2: 3.0000)",
        "near on test: 25.0000, 95 % interval 0.0000 to 33.3333 over videos; ours; selection: guessed",
        "  Near: the share of guesses within a distance (within=1; 2 listed; 2 videos; seeds 1: 25.0000, 2: 25.0000)",
    ]
    assert f"spec {made.spec(job(made, 'drawn'))}: " in text
    predictions, score = (
        paths.predictions("tiny", "first", "drawn", "all"),
        paths.scores("tiny", "first", "drawn", "all"),
    )
    assert f"predictions: {predictions}, 8 rows of seed, split, video, place, value" in lines
    assert f"method: tests.benchmark.tiny, source {made.source(made.kinds['drawn'])}" in lines
    assert f"scores: {score}, source {made.scoring_source()}; intervals by bootstrap, " in text
    release, file = Path("datasets/tiny/first/release.json"), Path("datasets/tiny/first/numbers.json")
    assert {f"  {sha256_file(each)}  {each}" for each in (release, file)} <= {*lines}
    assert "release first: https://tiny/1/first/numbers.json" in lines
    assert f"to compute it again: snakemake --cores 8 {score} --forcerun {predictions}" in lines
    mean = "the value is the mean of 2 videos, each counts 25.00 to 75.00 %"
    assert lines[-3:] == [
        "single values:",
        f"  error: {mean}; lowest e 2.5000, f 6.5000; highest f 6.5000, e 2.5000",
        f"  near: {mean}; lowest f 0.0000, e 33.3333; highest e 33.3333, f 0.0000",
    ]


def test_options_are_printed_beside_all_that_decides_the_predictions(tmp_path: Path) -> None:
    write_releases()
    made = tiny(tmp_path, releases=["first"], entries={"drawn": {"seeds": [3, 4]}})
    of = job(made, "drawn")
    Verbs(made).predict("first", "drawn", "all")
    Verbs(made).score("first", "drawn", "all")
    lines = explain(made.scores(of)).splitlines()
    assert 'options: {"seeds": [3, 4]}' in lines
    assert f"spec {made.spec(of)}: {json.dumps(made.record(of), sort_keys=True)}" in lines


def test_one_metric_and_every_video_are_printed_where_they_are_asked_for(made: Tiny) -> None:
    lines = explain(TABLE, "drawn", "all", "first", metric="near", videos=True).splitlines()
    assert lines[3].startswith("near on test: ")
    assert lines[5] == ""
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
    Verbs(made).table("table1")
    score.unlink()
    for words in ((score,), (TABLE, "drawn", "all", "first")):
        with pytest.raises(MissingError, match=f"^{score} does not exist: run `snakemake --cores 8 {score}`$"):
            explain(*words)
    TABLE.unlink()
    with pytest.raises(ConfigError, match="^results/tiny/table1.csv is no score: name results/STUDY/scores/"):
        explain(TABLE)


def test_an_interval_says_over_what_it_was_drawn(made: Tiny) -> None:
    path = paths.scores("tiny", "first", "drawn", "all")
    score = read_json(path)
    score["metrics"]["error"] |= {"units": "queries"}
    score["metrics"]["near"] |= {"ci": None}
    write_json(path, score)
    text = explain(path)
    assert "error on test: 3.5000, 95 % interval 2.5000 to 6.5000 over queries" in text.splitlines()
    assert "  error: the value is the mean of 2 queries, " in text
    assert "bootstrap" in text
    assert "bootstrap" not in explain(path, metric="near")


def test_a_small_value_has_four_digits(made: Tiny) -> None:
    path = paths.scores("tiny", "first", "drawn", "all")
    score = read_json(path)
    score["metrics"]["near"] |= {"value": 5.4932e-5, "ci": [0, 0.000123456]}
    write_json(path, score)
    change("drawn,Drawn,,,,near", value="0.0001", ci_low="0.0000", ci_high="0.0001")
    for text in (explain(path), explain(TABLE, "drawn", "all", "first")):
        assert "near on test: 5.493e-05, 95 % interval 0.0000 to 0.0001235 over videos" in text
    change("drawn,Drawn,,,,near", value="0.2000")
    assert "near on test: 0.2000, 95 % interval" in explain(TABLE, "drawn", "all", "first")
    score["metrics"]["near"] |= {"value": -12.34561, "ci": None, "seeds": [3], "per_seed": [-12.34561]}
    write_json(path, score)
    assert explain(path, metric="near").splitlines()[3:5] == [
        "near on test: -12.3456",
        "  Near: the share of guesses within a distance (within=1; 2 listed; 2 videos)",
    ], "of one seed the value is that of all"


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
    assert "m8: 249.5000, not the value, is the mean of 500 videos, each counts 0.20 %" in text
    assert "lowest v0 0.0000, v1 1.0000, v2 2.0000; highest v499 499.0000, v498 498.0000, v497 497.0000" in text
    write_json(path, record | {"inputs": {name: inputs[name] for name in [*inputs][:5]}})
    lines = explain(score).splitlines()
    assert [f"  {sha256}  {name}  (deleted)" in lines for name, sha256 in inputs.items()] == [True] * 5 + [False] * 95
    assert not [line for line in lines if "the list of 5 files" in line]
    write_json(path, record | {"inputs": inputs, "releases": {f"r{number}": release for number in range(5)}})
    write_json(score, found | {"metrics": {f"m{number}": each for number in range(18)}})
    text = explain(score)
    assert len(text.splitlines()) <= 60
    assert text.endswith("definitions and single values: name one of these 18 metrics with --metric")


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
    text = explain(TABLE, "drawn", "all", "first")
    assert [text.count(part) for part in ("error on test", "near on test", "  Near: ", "  near: ")] == [1, 1, 1, 1]
    change("180,near", paper="20", status="differs")
    text = explain(TABLE, "drawn", "all", "first")
    assert "near on test at 180s: 25.0000, 95 % interval 0.0000 to 33.3333 over videos; the paper prints 20: " in text
    assert [text.count(part) for part in ("near on test", "  Near: ", "  near: ")] == [2, 1, 1]
    for context, paper in (("60s", False), ("180s", True)):
        text = explain(TABLE, "drawn", context, "first")
        assert (text.count("near on test"), "the paper prints 20" in text) == (1, paper)


def test_windows_with_one_score_are_one_metric(made: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Tiny, "contexts", lambda self, table, line: [(each, None) for each in range(60, 360, 60)])
    Verbs(made).table("table1")
    assert "  Near: " in explain(TABLE, "drawn", "all", "first")


def test_what_was_not_computed_or_has_no_record_is_made_again(made: Tiny) -> None:
    with pytest.raises(
        MissingError, match="^fitted on first at all was not computed: it needs features:net/first; run `"
    ):
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


def test_a_line_that_was_not_computed_names_each_need_once(made: Tiny) -> None:
    fetch = "stepline fetch first/videos && stepline bank import FOLDER"
    change(
        "fitted,Fitted,,,,error",
        note="no method here; needs videos:first, features:net/first",
        command=f"{fetch} && run",
    )
    change("fitted,Fitted,,,,near", note="needs package:a, features:net/first; a line", command="install && run")
    with pytest.raises(MissingError) as error:
        explain(TABLE, "fitted", "all", "first")
    said = "fitted on first at all was not computed: it needs package:a, videos:first, features:net/first"
    assert str(error.value) == f"{said}; run `{fetch} && install && run`"
    with pytest.raises(MissingError, match="it needs package:a, features:net/first; run `install && run`$"):
        explain(TABLE, "fitted", "all", "first", metric="near")
    change("fitted,Fitted,,,,near", command="")
    with pytest.raises(MissingError, match="it needs package:a, features:net/first$"):
        explain(TABLE, "fitted", "all", "first", metric="near")


def test_a_counted_metric_needs_nothing_of_the_others(made: Tiny) -> None:
    change("fitted,Fitted,,,,error", value="19672", status="exact", note="", command="")
    for metric in ("error", ""):
        with pytest.raises(ConfigError, match="^fitted on first has no predictions: its numbers are the paper's, or "):
            explain(TABLE, "fitted", "all", "first", metric=metric)
    with pytest.raises(MissingError, match="^fitted on first at all was not computed: it needs features:net/first; "):
        explain(TABLE, "fitted", "all", "first", metric="near")


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (lambda content: content + b"\xff", "'utf-8' codec can't decode byte 0xff .*"),
        (lambda content: b"\xff" + content, "'utf-8' codec can't decode byte 0xff .*"),
        (lambda content: content + b"table1,drawn", "a line has more or fewer cells than the head"),
        (lambda content: content.replace(b"\n", b",x\n", 2), "a line has more or fewer cells than the head"),
        (lambda content: content + b'"', "unexpected end of data"),
        (lambda content: content.replace(b"Drawn,,,,", b"Drawn,,,x,"), "could not convert string to float: 'x'"),
    ],
)
def test_a_damaged_table_is_one_line(made: Tiny, damage: Callable[[bytes], bytes], why: str) -> None:
    TABLE.write_bytes(damage(TABLE.read_bytes()))
    with pytest.raises(StoreError, match=rf"^{TABLE} is damaged \({why}\): remove it and run the same again$"):
        explain(TABLE, "drawn", "all", "first")


def test_a_table_in_another_folder_is_named_in_its_own(made: Tiny) -> None:
    copied = Path("copy/table1.csv")
    copied.parent.mkdir()
    TABLE.rename(copied)
    path = "results/copy/predictions/first/drawn/all.parquet"
    with pytest.raises(MissingError, match=f"^{path} does not exist: name the table in its own folder, results/STUDY"):
        explain(copied, "drawn", "all", "first")


def test_a_metric_without_a_value_says_once_what_it_needs(made: Tiny) -> None:
    rows = TABLE.read_text().splitlines()
    header = rows[0].split(",")
    cells = next(dict(zip(header, row.split(","), strict=True)) for row in rows if ",drawn," in row and ",near," in row)
    counts = ("value", "paper", "ci_low", "ci_high", "n_videos", "n_listed", "n_samples", "n_queries")
    bare = {**cells, **dict.fromkeys(counts, ""), "status": "needs", "note": "needs weights:a"}
    TABLE.write_text("\n".join([rows[0], ",".join(bare[name] for name in header)]) + "\n")
    lines = explain(TABLE, "drawn", "all", "first").splitlines()
    assert lines[3:5] == [
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
    with pytest.raises(ConfigError, match="^results/tiny/videos.csv has no column table, so its lines name no "):
        explain(Path("results/tiny/videos.csv"), "x", "all", "first")
    TABLE.write_text(TABLE.read_text().replace("spec", "digest", 1))
    with pytest.raises(ConfigError, match="^results/tiny/table1.csv has no column spec, "):
        explain(TABLE, "drawn", "all", "first")


def test_the_command_takes_a_whole_line_or_none(made: Tiny, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", str(TABLE), "drawn", "all", "first", "--metric", "near", "--videos"]) == 0
    assert capsys.readouterr().out == explain(TABLE, "drawn", "all", "first", metric="near", videos=True) + "\n"
    assert main(["explain", str(TABLE), "drawn"]) == 2
    assert "a line of results/tiny/table1.csv has three names, ENTRY CONTEXT RELEASE, not 1" in capsys.readouterr().err
