from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stepline import paths
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
    lines = explain(TABLE, "drawn", "all", "first").splitlines()
    assert lines[0] == "drawn on first at all: Drawn, Table 1 of tiny"
    assert "error on test: 3.5000, 95 % interval 2.5000 to 6.5000" in lines
    assert "near on test: 25.0000, 95 % interval 0.0000 to 33.3333" in lines
    assert "  options: within=1; sees: nothing; 2 videos, 2 listed" in lines
    assert "  e  33.3333  counts 75.00 %" in lines
    assert f"spec {made.spec(job(made, 'drawn'))}: " in "\n".join(lines)
    release = Path("datasets/tiny/first/release.json")
    assert f"  {sha256_file(release)}  {release}" in lines
    assert "release first: https://tiny/1/first/numbers.json" in lines
    predictions = paths.predictions("tiny", "first", "drawn", "all")
    assert lines[-1] == f"  snakemake --cores 8 {TABLE} --forcerun {predictions}"


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
    assert lines[2:5] == ["near on test: no value", "  needs weights:a", "  options: within=1; sees: nothing"]


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
