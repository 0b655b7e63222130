"""OEPP on a small release: fits, predictions, scores, tables and lists, what runs again, and a fit that is killed."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

from stepline.datasets.oepp import FEATURE_FILES, PARTS, load
from stepline.features.importing import Folder, import_folder
from tests.benchmarks.oepp.synthetic import CROSSTASK, DIMENSION, EVENTS, NOVEL, VIDEOS, contents, write_releases
from tests.conftest import snakemake
from tests.datasets.oepp_sources import write_coin
from tests.workflow.runs import Study, killed, rows

pytestmark = pytest.mark.slow
ABSENT = "frequent-t4", "matching-t4", "mlp-t4", "pdpp-t4", "transformer-t3-ce"
"""Of four actions are also random plans and the Transformer's, of one loss also MSE's."""
BANKS = ("videoclip-released", "s3d-p3iv")
"""The paper's own features, by the names under which they are imported."""
TEXT = "./actions.json"
CONFIG: dict[str, Any] = {
    "tables": ["table2", "table4", "table5", "table7", "table8"],
    "features": {"videoclip": {"video": BANKS[0]}, "mil-nce": {"video": BANKS[1], "text": TEXT}},
    "heads": {"epochs": 2, "batch_size": 16, "seeds": [0]},
    "pdpp": {
        "epochs": 2,
        "steps": 2,
        "batch_size": 8,
        "width": 32,
        "diffusion_steps": 4,
        "sampling_steps": 2,
        "seeds": [0, 1],
    },
    "metrics": {"bootstrap_samples": 100},
    "entries": {name: {"kind": "vlm", "features": "", "settings": {"images": 1}} for name in ABSENT},
}
STUDY = Study("oepp", CONFIG)
TABLES = STUDY.results(*(f"{table}.csv" for table in CONFIG["tables"]))
LISTS = STUDY.results("table9.csv", "table10.csv")
PAGE = "results/oepp/report.html"
VALUED = ["exact", "within", "inconsistent", "differs", "ours"]
BASE = [name for name in EVENTS if name not in NOVEL]


def write(folder: Path) -> None:
    """Write the releases, and features: noise as both banks, a row a second of each video, by way of ``folder``."""
    write_releases()
    write_coin()
    random = np.random.default_rng(5)
    for name in BANKS:
        for video in (video for part in PARTS for video in load("split1", part)):
            rows = random.normal(size=(int(video.steps[-1].end_s) + 2, DIMENSION))
            np.save(folder / f"{video.id}.npy", rows.astype(np.float32))
        import_folder(Folder(folder), name, "openevent", 1.0)
    Path(TEXT).write_text(json.dumps(contents()[FEATURE_FILES["s3d"]]))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A work folder in which the small study's tables and page, and the lists, are made."""
    return STUDY.whole(tmp_path_factory, write, *TABLES, *LISTS, PAGE, "results/oepp/all")


def test_every_line_has_a_number_but_for_the_language_model(whole: Path) -> None:
    found = [row for table in TABLES for row in rows(whole, table)]
    assert {row["table"] for row in found} == {"2", "4", "5", "7", "8"}
    listed = {
        f"test {part}": len(NOVEL if part == "novel" else BASE) * VIDEOS[part] for part in PARTS if part != "train"
    }
    for row in found:
        if row["method"] == "GPT-4o" or row["entry"] in ABSENT:
            assert (row["status"], row["value"]) == ("needs", "")
            wanted = "--configfile oepp.json --config 'oepp={llm: {model: NAME}}'"
            assert row["command"].endswith(f"results/oepp/table{row['table']}.csv {wanted}")
            continue
        other = row["modality"] == "MIL-NCE" or "epochs=2" in row["options"].split(";")
        assert row["status"] in (["not comparable", "ours"] if other else VALUED), row
        assert float(row["value"]) >= 0
        if row["table"] != "8":
            assert float(row["value"]) <= 100
            assert row["n_videos"] == row["n_listed"] == str(listed.get(row["split"], listed["test base"]))


def test_the_planners_are_told_by_how_they_were_fitted(whole: Path) -> None:
    assert len(STUDY.fits(whole)) == 1 + 4 + 2 * 2
    found = [row for row in rows(whole, TABLES[0]) if row["setting"] == "T=3"]
    by_method = {row["method"]: row for row in found if row["metric"] == "novel_acc"}
    for method, seeds in (("MLP-based", "0"), ("Transformer-based", "0"), ("PDPP*", "0;1")):
        row = by_method[method]
        assert row["seeds"] == seeds
        assert bool(row["value_sd"]) == (method == "PDPP*")
        assert re.search(
            r"fitted on (\d+) of \1 training windows; epoch with the best success rate on val", row["note"]
        )
        assert "epochs=2" in row["options"].split(";")
    assert by_method["Random"]["value"] == by_method["Random"]["ci_low"] == by_method["Random"]["ci_high"]


def test_a_table_shows_the_same_fit_as_another(whole: Path) -> None:
    def numbers(table: str) -> set[str]:
        return {
            row["value"]
            for row in rows(whole, f"results/oepp/{table}.csv")
            if (row["method"], row["setting"], row["metric"]) == ("Transformer-based", "T=3", "base_acc")
            and row["modality"] in ("", "CE+MSE", "VideoCLIP")
        }

    assert len(numbers("table2")) == 1
    assert numbers("table2") == numbers("table4") == numbers("table5")


def test_lists_and_the_page_stand_beside_the_tables(whole: Path) -> None:
    events, actions = ([row["status"] for row in rows(whole, each)] for each in LISTS)
    assert len(events) - events.count("absent") == len(EVENTS)
    assert {"exact", "ours", "absent"} == {*actions}
    assert "Planning for base and novel events" in (whole / PAGE).read_text()


def test_only_what_depends_on_a_change_runs_again(copied: Path) -> None:
    assert STUDY.run(copied, *TABLES, *LISTS, PAGE) == []
    scored = STUDY.run(copied, TABLES[3], metrics=CONFIG["metrics"] | {"miou": "batch"})
    assert {job.split()[0] for job in scored} == {"score", TABLES[3]}
    batched = [row for row in rows(copied, TABLES[3]) if row["metric"] == "base_miou" and row["value"]]
    assert {row["status"] for row in batched} <= {"not comparable", "ours"}
    vectors = json.loads((copied / TEXT).read_text())
    vectors["stir mixture"][0][0] += 1
    (copied / TEXT).write_text(json.dumps(vectors))
    jobs = STUDY.run(copied, *TABLES, PAGE, dry=True)
    assert {job.split()[1] for job in jobs if job.startswith(("fit ", "predict "))} == {
        "matching-t3-mil-nce",
        "transformer-t3-mil-nce",
        "pdpp-t3-mil-nce",
    }


def test_longer_plans_are_the_entries_of_two_more_tables(copied: Path) -> None:
    tables = [f"table{number}" for number in range(2, 9)]
    jobs = STUDY.run(copied, *(f"results/oepp/{table}.csv" for table in tables), dry=True, tables=tables)
    kinds = ("frequent", "matching", "mlp", "pdpp", "random", "transformer")
    longer = {f"{kind}-t{horizon}" for kind in kinds for horizon in (5, 6)}
    assert {job.split()[1] for job in jobs if " on " in job} == longer
    assert {job for job in jobs if " on " not in job} >= {"results/oepp/table3.csv", "results/oepp/table6.csv"}


def test_lines_of_the_rebuilt_release_are_not_comparable(copied: Path) -> None:
    jobs = STUDY.run(copied, TABLES[3], TABLES[4], "results/oepp/rebuilt.csv", releases=["split1", "rebuilt"])
    assert "results/oepp/rebuilt.csv" in jobs
    assert {job.split()[3] for job in jobs if " on " in job} == {"rebuilt"}
    found = [row for table in (TABLES[3], TABLES[4]) for row in rows(copied, table) if row["release"] == "rebuilt"]
    assert {row["status"] for row in found} <= {"not comparable", "ours", "needs"}
    videos = {row["method"]: row["value"] for row in found if row["metric"] == "videos"}
    of_base = sum(VIDEOS[part] for part in PARTS if part != "novel")
    assert videos["Total"] == str(of_base * (len(BASE) - len(CROSSTASK)) + VIDEOS["novel"] * len(NOVEL))


def test_a_killed_fit_goes_on(copied: Path) -> None:
    target = "results/oepp/fits/split1/pdpp-t3/all/0.safetensors"
    pdpp = CONFIG["pdpp"] | {"epochs": 12}
    (copied / "oepp.json").write_text(json.dumps({"oepp": CONFIG | {"pdpp": pdpp}}))
    kept = copied / f"{target}.state"
    killed("--cores", "1", "--configfile", "oepp.json", "--", target, folder=copied, when=kept.exists)
    assert not (copied / target).exists()
    state, mark = load_file(kept), np.array([0.125])
    state["found"][:1] = mark
    with safe_open(kept, "numpy") as file:
        save_file(state, kept, metadata={key: value for key, value in file.metadata().items() if key != "seal"})
    assert snakemake("--unlock", folder=copied).returncode == 0
    assert STUDY.run(copied, target, pdpp=pdpp) == ["fit pdpp-t3 on split1 at all, seed 0"]
    assert load_file(copied / target)["val_loss"][:1] == mark
    assert not kept.exists()
