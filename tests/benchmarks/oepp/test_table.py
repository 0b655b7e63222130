from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from stepline import paths
from stepline.benchmarks.oepp.benchmark import Oepp
from stepline.datasets.oepp import RELEASES
from stepline.io import write_json
from stepline.needs import Need
from stepline.runs.table import table_rows, write_table
from stepline.runs.verbs import Verbs
from stepline.tables import Row
from tests.benchmarks.oepp.conftest import plan
from tests.benchmarks.oepp.synthetic import CONFIG

BATCH = {**CONFIG["metrics"], "miou": "batch"}


def compute(made: Oepp, file: str) -> None:
    """Predict and score what is missing nothing and is not trained."""
    for job in made.jobs(file):
        if not job.entry.trained:
            Verbs(made).predict(job.release, job.entry.id, job.context)
            Verbs(made).score(job.release, job.entry.id, job.context)


def measured(made: Oepp, file: str, value: float = 26.3) -> None:
    """Write scores of that value for all jobs of a table."""
    each = {"value": value, "sd": 1.0, "ci": None, "seeds": [42], "n_videos": 4, "n_listed": 4}
    content = {"metrics": dict.fromkeys(Oepp.metrics, each), "needs": [], "status": "present", "selection": "chosen"}
    for job in made.jobs(file):
        write_json(paths.scores("oepp", job.release, job.entry.id, job.context), content)


def by_line(rows: list[Row], *keys: str) -> Mapping[Any, Row]:
    return {tuple(getattr(row, key) for key in keys): row for row in rows}


@pytest.mark.usefixtures("releases")
class TestWithoutFeatures:
    def test_lines_have_numbers_or_reasons_and_commands(self) -> None:
        made = plan()
        compute(made, "table2")
        rows = table_rows(made, "table2")
        assert len(rows) == sum(len(table.metrics) for table, _, _ in made.lines("table2"))
        wanting = [row for row in rows if row.status == "needs"]
        assert {row.method for row in wanting} == {"Matching", "MLP-based", "Transformer-based", "PDPP*"}
        assert {row.needs for row in wanting} == {(Need("features", "planted/openevent"),)}
        assert {row.value for row in wanting} == {None}
        assert {row.command for row in wanting} == {
            "stepline oepp import FOLDER --name planted && snakemake --cores 8 results/oepp/table2.csv"
        }
        found = by_line(rows, "method", "setting", "metric")
        random = found["Random", "T=3", "base_sr"]
        assert (random.printed, random.split, random.difference) == ("<0.01", "test base", None)
        assert random.value == pytest.approx(100 / 10**3)
        assert random.inputs == ("action_pool",)
        assert found["Most frequent plan", "T=4", "novel_acc"].status == "ours"
        assert "uniform guesses" in found["Most frequent plan", "T=4", "novel_acc"].note
        write_table(made, "table2")
        text = Path("results/oepp/table2.md").read_text()
        assert text.startswith("# OEPP: Table 2\n")
        assert "| PDPP* |" in text.replace("\\", "")
        assert len(Path("results/oepp/table2.csv").read_text().splitlines()) == 1 + len(rows)

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

    def test_numbers_of_the_paper_that_cannot_be_right_say_why(self) -> None:
        made = plan()
        compute(made, "table2")
        found = by_line(table_rows(made, "table2"), "method", "setting", "metric")
        wrong = found["Random", "T=3", "novel_acc"]
        assert (wrong.status, wrong.difference) == ("inconsistent", None)
        assert "the paper's number cannot be right: " in wrong.note
        assert found["Random", "T=3", "base_acc"].status == "differs"

    def test_counts_stand_beside_the_papers(self) -> None:
        found = by_line(table_rows(plan(), "table8"), "method", "metric")
        assert [found["Train", m].value for m in ("events", "actions", "videos", "segments")][::2] == [4, 20]
        assert (found["Test novel", "actions"].value, found["Total", "videos"].value) == (6, 48)
        assert {row.status for row in found.values()} == {"differs"}
        assert found["Total", "events"].difference == 6 - 43
        assert (found["Total", "events"].options_text, found["Total", "events"].spec) == ("", "")

    def test_a_subset_is_named_and_cannot_be_compared(self) -> None:
        made = plan({"subset": {"fraction": 0.5, "seed": 0}})
        compute(made, "table2")
        row = by_line(table_rows(made, "table2"), "method", "setting", "metric")["Random", "T=3", "base_acc"]
        assert row.status == "not comparable"
        assert "subset: 0.5 of each split, seed 0" in row.note
        assert (row.n_videos or 0) < (row.n_listed or 0) == 8


def test_counts_of_a_release_that_is_not_there_need_it() -> None:
    row = table_rows(plan(), "table8")[0]
    assert (row.status, row.needs) == ("needs", (Need("release", "oepp/split1"),))
    assert row.command == "stepline fetch oepp/split1 && snakemake --cores 8 results/oepp/table8.csv"


def test_the_released_counts_are_the_papers(real_data: Path) -> None:
    folder = RELEASES.folder("split1")
    folder.mkdir(parents=True)
    files = {file.path: file.wanted.sha256 for file in RELEASES.release_files("split1")}
    for path in files:
        (folder / path).symlink_to(real_data.resolve() / "oepp" / path)
    write_json(folder / "release.json", {"files": files})
    assert {row.status for row in table_rows(plan(), "table8")} == {"exact"}


@pytest.mark.usefixtures("banks")
class TestWithFeatures:
    def test_other_features_cannot_be_compared_and_say_of_which_files(self) -> None:
        made = plan({"heads": {}, "pdpp": {}, "tables": ["table2"]})
        measured(made, "table2")
        found = by_line(table_rows(made, "table2"), "method", "setting", "metric")
        row = found["Transformer-based", "T=3", "base_sr"]
        assert (row.status, row.value, row.seeds) == ("not comparable", 26.3, (42,))
        assert "features=planted (published: videoclip-oepp)" in row.note
        assert "imported files: features/planted/imported-" in row.note
        assert "selection: chosen" in row.note
        assert row.options_text == "features=planted;padding=repeat_first;rows=released;text=released"
        assert len(row.spec) == 8
        assert "imported files" not in found["Random", "T=3", "base_sr"].note

    def test_the_papers_own_files_are_compared(self) -> None:
        Path("features/planted").rename("features/videoclip-released")
        own = {"features": {"videoclip": {"video": "videoclip-released"}}, "heads": {}, "tables": ["table2"]}
        made = plan(own)
        measured(made, "table2")
        found = by_line(table_rows(made, "table2"), "method", "setting", "metric")
        assert found["Transformer-based", "T=3", "base_sr"].status == "within"  # 26.27, tolerance 1
        assert found["Transformer-based", "T=3", "base_acc"].status == "differs"
        changed = found["PDPP*", "T=3", "base_sr"]
        assert changed.status == "not comparable"
        assert "width=32 (published: 256)" in changed.note
        padded = table_rows(plan({**own, "windows": {"padding": "drop"}}), "table2")
        assert by_line(padded, "method", "setting", "metric")["MLP-based", "T=3", "base_sr"].status == "not comparable"
        batch = by_line(table_rows(plan({**own, "metrics": BATCH}), "table2"), "method", "setting", "metric")
        assert batch["Transformer-based", "T=3", "base_miou"].status == "not comparable"
        assert batch["Transformer-based", "T=3", "base_sr"].status == "within"


def test_published_features_are_imported_by_their_own_verb() -> None:
    assert plan().how_to_fill(Need("features", "s3d-p3iv/openevent")) == "stepline oepp import FOLDER --name s3d-p3iv"
    assert plan().how_to_fill(Need("release", "oepp/rebuilt")) == "stepline oepp rebuild"
