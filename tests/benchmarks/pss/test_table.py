from pathlib import Path

import pytest
from stepline.benchmarks.pss.material import Material
from stepline.benchmarks.pss.plan import Plan
from stepline.benchmarks.pss.predict import predict
from stepline.benchmarks.pss.report import write_report
from stepline.benchmarks.pss.table import table_rows, write_table

from stepline import paths
from stepline.benchmarks.pss.score import score
from stepline.errors import StoreError
from stepline.io import write_json, write_text
from stepline.tables import METRICS
from tests.benchmarks.pss.conftest import plan


def compute(made: Plan, target: str) -> None:
    """Predict and score what lacks nothing and is not trained."""
    for job in made.jobs(target):
        if job.entry.trained:
            continue
        place = "pss", job.release, job.entry.id, job.context
        material = Material(made, job.release, job.entry)
        predict(material, [], paths.predictions(*place))
        score(material, paths.predictions(*place), paths.scores(*place))


@pytest.mark.usefixtures("releases")
def test_what_is_lacking_has_its_reason_and_a_command() -> None:
    made = plan()
    compute(made, "table3")
    rows = table_rows(made, "table3")
    assert len(rows) == 3 * (6 + 6 + 3)
    wanting = [row for row in rows if row.status == "needs"]
    assert {(row.method, row.release): row.needs for row in wanting} == {
        (method, release): (f"features:{name}/{release}",)
        for method, name in (("ProcNet", "resnet34"), ("PDVC", "r3d"), ("Ours", "s3d"))
        for release in ("youcook2", "tasty")
    }
    assert wanting[0].command == (
        "stepline bank import FOLDER --name resnet34 --dataset youcook2 --hop-s 1 && "
        "snakemake --cores 8 results/pss/table3.csv"
    )
    assert {row.value is None for row in wanting} == {True}
    write_table(made, "table3")
    text = Path("results/pss/table3.md").read_text()
    assert "## Table 3: Segmentation, release tasty" in text
    assert "| ProcNet |" in text


@pytest.mark.usefixtures("releases")
def test_other_features_and_durations_cannot_be_compared() -> None:
    made = plan({"duration": "exact"})
    compute(made, "table1")
    uniform = [row for row in table_rows(made, "table1") if row.method == "Uniform (GT)" and row.printed]
    assert {row.status for row in uniform} == {"not comparable"}
    assert "duration=exact (published: ceil_seconds)" in uniform[0].note


@pytest.mark.usefixtures("releases")
def test_a_subset_is_named() -> None:
    made = plan({"subset": {"fraction": 0.5, "seed": 0}})
    compute(made, "table1")
    (row,) = [r for r in table_rows(made, "table1") if (r.method, r.metric) == ("Uniform (GT)", "soda_d")]
    assert (row.status, row.n_videos, row.n_listed) == ("not comparable", 2, 4)
    assert "subset: 0.5 of each split, seed 0" in row.note


def test_commands() -> None:
    assert plan().filled_by("table2.csv", ()) == ""
    assert plan().filled_by("table2.csv", ("release:pss/tasty-train", "weights:s3d")) == (
        "stepline fetch pss/tasty-train && stepline fetch weights/s3d && snakemake --cores 8 results/pss/table2.csv"
    )
    assert plan().filled_by("table4.csv", ("java",)).startswith("apt install default-jre-headless && ")
    assert plan().filled_by("table4.csv", ("videos:youcook2",)).startswith("stepline fetch youcook2/videos && ")
    assert (
        plan()
        .filled_by("table4.csv", ("videos:tasty",))
        .startswith("cp VIDEOS/*.mp4 $STEPLINE_MIRROR/tasty/videos/ && ")
    )


@pytest.mark.usefixtures("banks")
def test_changed_training_cannot_be_compared_and_says_of_which_files() -> None:
    made = plan({"pdvc": {"epochs": 7, "hidden": 32}})
    measured = {"value": 36.8, "sd": 1.0, "ci": None, "seeds": [0]}
    content = {"metrics": dict.fromkeys(METRICS, measured), "needs": [], "n_videos": 4, "n_listed": 4, "selection": ""}
    for job in made.jobs("table2"):
        write_json(paths.scores("pss", job.release, job.entry.id, job.context), content)
    (row,) = [r for r in table_rows(made, "table2") if (r.entry, r.metric) == ("pdvc-r3d", "soda_d")]
    assert row.status == "not comparable"
    assert "epochs=7 (published: 30); hidden=32 (published: 512)" in row.note
    assert "imported files: features/r3d/imported-" in row.note
    (row,) = [r for r in table_rows(made, "table2") if (r.entry, r.metric) == ("pdvc-r3d", "soda_c_stem")]
    assert "the released vocabulary was counted on validation and test videos too" in row.note


@pytest.mark.usefixtures("banks")
def test_a_score_that_no_job_of_this_run_made_waits_for_the_next() -> None:
    made = plan()
    compute_untrained = [job for job in made.jobs("table1") if not job.entry.trained]
    assert len(compute_untrained) == 3
    compute(made, "table1")
    rows = [row for row in table_rows(made, "table1") if row.method == "PDVC"]
    assert {row.needs for row in rows} == {("score:pdvc-r3d",)}
    assert rows[0].command == "snakemake --cores 8 results/pss/table1.csv"


@pytest.mark.usefixtures("releases")
def test_the_page_is_made_of_any_table() -> None:
    made = plan({"tables": ["table1"], "releases": ["youcook2"]})
    compute(made, "table1")
    write_report(made, Path("report.html"))
    assert Path("report.html").read_text().count("<figcaption>") == 1 + 3
    assert Path("table2.svg").exists()


@pytest.mark.usefixtures("releases")
def test_a_damaged_score_is_one_line() -> None:
    made = plan()
    compute(made, "table1")
    write_text(paths.scores("pss", "youcook2", "uniform-count", "all"), "[]")
    with pytest.raises(StoreError, match=r"uniform-count/all.json is no score: remove it"):
        table_rows(made, "table1")
