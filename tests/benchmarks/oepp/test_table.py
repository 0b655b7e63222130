from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from stepline import paths
from stepline.benchmarks.oepp.benchmark import Oepp
from stepline.io import write_json
from stepline.needs import Need
from stepline.runs.table import table_rows
from stepline.tables import Row
from tests.benchmarks.oepp.conftest import plan
from tests.benchmarks.oepp.synthetic import CONFIG
from tests.runs.test_table import compute

BATCH = {**CONFIG["metrics"], "miou": "batch"}


def measured(made: Oepp, file: str, value: float = 26.3) -> None:
    """Write scores of that value for all jobs of a table, of Random 0."""
    each = {"value": value, "sd": 1.0, "ci": None, "seeds": [42], "n_videos": 4, "n_listed": 4}
    for job in made.jobs(file):
        own = each | ({"value": 0.0} if job.entry.kind_name == "random" else {})
        content = {"metrics": dict.fromkeys(Oepp.metrics, own), "needs": [], "status": "present", "selection": "chosen"}
        write_json(paths.scores("oepp", job.release, job.entry.id, job.context), content)


def by_line(rows: list[Row], *keys: str) -> Mapping[Any, Row]:
    return {tuple(getattr(row, key) for key in keys): row for row in rows}


@pytest.mark.usefixtures("releases")
class TestWithoutFeatures:
    def test_a_number_is_of_its_part_and_what_it_may_see(self) -> None:
        made = plan()
        compute(made, "table2")
        found = by_line(table_rows(made, "table2"), "method", "setting", "metric")
        random = found["Random", "T=3", "base_sr"]
        assert (random.printed, random.split, random.difference) == ("<0.01", "test base", None)
        assert random.value == pytest.approx(100 / 10**3)
        assert "uniform guesses" in found["Most frequent plan", "T=4", "novel_acc"].note

    def test_another_model_has_lines_of_its_own_name_beside_the_papers(self) -> None:
        made = plan({"llm": {"url": "http://127.0.0.1:9/v1", "model": "tiny-vlm"}, "tables": ["table7"]})
        measured(made, "table7")
        found = by_line(table_rows(made, "table7"), "method", "modality", "setting", "metric")
        mine, papers = (found[name, "1 image", "T=3", "base_sr"] for name in ("tiny-vlm", "GPT-4o"))
        assert (mine.value, mine.printed, mine.status) == (26.3, "", "ours")
        assert (papers.value, papers.printed, papers.needs) == (
            None,
            "4.27",
            (Need("config", "oepp.llm.model", "gpt-4o"),),
        )
        assert papers.command.endswith("results/oepp/table7.csv --config 'oepp={llm: {model: gpt-4o}}'")

    def test_counts_stand_beside_the_papers(self) -> None:
        found = by_line(table_rows(plan(), "table8"), "method", "metric")
        assert [found["Train", m].value for m in ("events", "actions", "videos", "segments")][::2] == [4, 20]
        assert (found["Test novel", "actions"].value, found["Total", "videos"].value) == (6, 48)
        assert {row.status for row in found.values()} == {"differs"}
        assert found["Total", "events"].difference == 6 - 43
        assert (found["Total", "events"].options_text, found["Total", "events"].spec) == ("", "")


def test_counts_of_a_release_that_is_not_there_need_it() -> None:
    row = table_rows(plan(), "table8")[0]
    assert (row.status, row.needs) == ("needs", (Need("release", "oepp/split1"),))
    assert row.command == "stepline fetch oepp/split1 && snakemake --cores 8 results/oepp/table8.csv"


def test_miou_of_batches_cannot_be_compared(banks: None) -> None:
    Path("features/planted").rename("features/videoclip-released")
    own = {"features": {"videoclip": {"video": "videoclip-released"}}, "heads": {}, "tables": ["table2"]}
    made = plan({**own, "metrics": BATCH})
    measured(made, "table2")
    found = by_line(table_rows(made, "table2"), "method", "setting", "metric")
    miou = found["Transformer-based", "T=3", "base_miou"]
    assert miou.status == "not comparable"
    assert "miou=batch (published: sample)" in miou.note
    transformer = found["Transformer-based", "T=3", "base_sr"]  # 26.27, tolerance 1
    assert transformer.status == "within"
    assert transformer.note.startswith("tolerance ±1: the paper's error bar over seeds")
    assert "; Random scores 0.00, in this range with probability 0.00; " in transformer.note


def test_published_features_are_imported_by_their_own_verb() -> None:
    assert plan().how_to_fill(Need("features", "s3d-p3iv/openevent")) == "stepline oepp import FOLDER --name s3d-p3iv"
    assert plan().how_to_fill(Need("release", "oepp/rebuilt")) == "stepline oepp rebuild"
