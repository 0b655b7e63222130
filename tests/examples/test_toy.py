"""The smallest benchmark outside of the package, and the same with more of what a benchmark can have."""

import csv
import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.docs.conftest import environment
from tests.workflow.runs import by_entry

TOY, FULLER = ROOT / "examples/toy", Path(__file__).parent / "fuller"
MOMENTS = {
    "train": [{"video": "c", "duration_s": 100, "start_s": 40, "end_s": 80}],
    "val": [{"video": "d", "duration_s": 10, "start_s": 1, "end_s": 2}],
    "test": [
        {"video": "a", "duration_s": 100, "start_s": 20, "end_s": 80},
        {"video": "b", "duration_s": 50, "start_s": 5, "end_s": 20},
    ],
}
SNAKEMAKE = "snakemake", "--snakefile", str(ROOT / "Snakefile"), "--cores", "1"
RUN = *SNAKEMAKE, "results/toy/table1.csv", "results/toy/report.html", "--configfile", "toy.yaml"


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the toy and its moments."""
    folder = tmp_path_factory.mktemp("toy")
    shutil.copytree(TOY, folder / "toy")
    (folder / "toy.yaml").write_text("benchmarks: {toy: toy}\ntoy: {}\n")
    (folder / "mirror/toy").mkdir(parents=True)
    (folder / "mirror/toy/moments.json").write_text(json.dumps(MOMENTS))
    return folder


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    known = environment(STEPLINE_MIRROR="mirror")
    done = subprocess.run(command, cwd=folder, env=known, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done


def rows(folder: Path, table: str) -> dict[tuple[str, str], dict[str, str]]:
    return by_entry(folder, f"results/toy/{table}.csv")


@pytest.mark.slow
def test_the_toy_runs(toy: Path) -> None:
    run(toy, *RUN)
    explained = run(toy, "stepline", "explain", "results/toy/table1.csv", "middle", "all", "v1")
    found = rows(toy, "table1")
    assert {key: (row["value"], row["status"]) for key, row in found.items()} == {
        ("middle", "iou"): ("59.5238", "differs"),
        ("middle", "recall"): ("50.0000", "exact"),
        ("whole", "iou"): ("45.0000", "ours"),
        ("whole", "recall"): ("50.0000", "ours"),
    }
    assert found["middle", "iou"]["inputs"] == "duration"
    assert "iou on test: 59.5238" in explained.stdout
    assert "Nothing to be done" in run(toy, *RUN).stderr


@pytest.mark.slow
def test_a_metric_that_is_added_is_computed_from_the_predictions_that_exist(toy: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(toy, tmp_path / "toy", symlinks=True))
    run(folder, *RUN)
    predictions = {path: path.stat().st_mtime_ns for path in (folder / "results/toy/predictions").rglob("*.parquet")}
    added = {
        "__init__.py": ("metrics = {", 'metrics = {"length": Metric(title="Length", definition="its seconds"), '),
        "method.py": (
            'return {"iou"',
            'return {"length": Values(values=np.array([p.end_s - p.start_s for p in made]), **about), "iou"',
        ),
        "tables.yaml": ("metrics: [iou", "metrics: [length, iou"),
    }
    for name, change in added.items():
        text = (folder / "toy" / name).read_text()
        assert text.count(change[0]) == 1
        (folder / "toy" / name).write_text(text.replace(*change))
    run(folder, "stepline", "--configfile", "toy.yaml", "accept", "toy")
    run(folder, *RUN)
    found = rows(folder, "table1")
    assert {key: row["value"] for key, row in found.items() if key[1] != "recall"} == {
        ("middle", "length"): "52.5000",
        ("middle", "iou"): "59.5238",
        ("whole", "length"): "75.0000",
        ("whole", "iou"): "45.0000",
    }
    assert {path: path.stat().st_mtime_ns for path in predictions} == predictions


@pytest.mark.long
@pytest.mark.slow
def test_the_fuller_toy_runs(toy: Path) -> None:
    for path in FULLER.iterdir():
        if path.name != "more.txt":
            shutil.copy(path, toy / "toy")
    with (toy / "toy/__init__.py").open("a") as package:
        package.write((FULLER / "more.txt").read_text())
    tables = [f"results/toy/{name}.csv" for name in ("table1", "table2", "pairs")]
    snakemake = *SNAKEMAKE, *tables, "--configfile", "toy.yaml"
    run(toy, *snakemake)
    found = rows(toy, "table1")
    assert {entry: row["value"] for (entry, metric), row in found.items() if metric == "iou"} == {
        "middle": "59.5238",
        "learned": "33.3333",
        "rounded": "87.5000",
        "network": "",
    }
    assert (found["learned", "iou"]["seeds"], found["rounded", "iou"]["inputs"]) == ("0;1", "moment")
    assert found["network", "iou"]["note"] == "needs package:toy_network"
    assert found["network", "iou"]["command"].startswith("pip install toy_network && snakemake --snakefile ")
    assert rows(toy, "table2")["statistics", "videos"]["value"] == "2"
    with open(toy / "results/toy/pairs.csv", newline="", encoding="utf-8") as file:
        assert [(row["metric"], row["difference"]) for row in csv.DictReader(file)] == [
            ("iou", "-26.1905"),
            ("recall", "0.0000"),
        ]
    run(toy, *snakemake, "--config", "toy={metrics: {threshold: 0.3}, place: {keep: 0.5}}")
    again = rows(toy, "table1")
    recall = again["middle", "recall"]
    assert (recall["options"], recall["status"]) == ("threshold=0.3", "not comparable")
    assert "threshold=0.3 (published: 0.5)" in recall["note"]
    assert again["learned", "iou"]["options"] == "keep=0.5"
    assert again["middle", "iou"]["options"] == ""
