from pathlib import Path

import pytest

from stepline import paths
from stepline.benchmarks.pss.material import Material
from stepline.benchmarks.pss.plan import Plan
from stepline.benchmarks.pss.predict import predict
from stepline.benchmarks.pss.score import score
from stepline.benchmarks.pss.table import filled_by, table_rows, write_table
from stepline.errors import StoreError
from stepline.io import write_text
from tests.benchmarks.pss.conftest import plan


def compute(made: Plan, target: str) -> None:
    """Predict and score what lacks nothing."""
    for job in made.jobs(target):
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
    assert "duration=exact (the paper: ceil_seconds)" in uniform[0].note


@pytest.mark.usefixtures("releases")
def test_a_subset_is_named() -> None:
    made = plan({"subset": {"fraction": 0.5, "seed": 0}})
    compute(made, "table1")
    (row,) = [r for r in table_rows(made, "table1") if (r.method, r.metric) == ("Uniform (GT)", "soda_d")]
    assert (row.status, row.n_videos, row.n_listed) == ("not comparable", 2, 4)
    assert "subset: 0.5 of each split, seed 0" in row.note


def test_commands() -> None:
    assert filled_by("table2.csv", ()) == ""
    assert filled_by("table2.csv", ("release:pss/tasty-train", "weights:s3d")) == (
        "stepline fetch pss/tasty-train && stepline fetch weights/s3d && snakemake --cores 8 results/pss/table2.csv"
    )
    assert filled_by("table4.csv", ("java",)).startswith("apt install default-jre-headless && ")
    assert filled_by("table4.csv", ("videos:youcook2",)).startswith("stepline fetch youcook2/videos && ")
    assert filled_by("table4.csv", ("videos:tasty",)).startswith("cp VIDEOS/*.mp4 $STEPLINE_MIRROR/tasty/videos/ && ")


@pytest.mark.usefixtures("releases")
def test_a_damaged_score_is_one_line() -> None:
    made = plan()
    compute(made, "table1")
    write_text(paths.scores("pss", "youcook2", "uniform-count", "all"), "[]")
    with pytest.raises(StoreError, match=r"uniform-count/all.json is no score: remove it"):
        table_rows(made, "table1")
