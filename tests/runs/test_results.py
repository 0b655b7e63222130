"""All results of a benchmark, and the list of them."""

from pathlib import Path

from stepline.io import sha256_file, write_text
from stepline.runs.verbs import Verbs
from tests.benchmark.tiny import declared, tiny

PAIR = ["three", None, "drawn", None]


def test_results_are_tables_their_differences_and_the_page(tmp_path: Path) -> None:
    made = tiny(tmp_path / "all", declared(pairs=[PAIR]))
    assert [path.name for path in made.results] == [
        *("pairs.csv", "pairs.md", "report.html", "table1.csv", "table1.md", "table2.csv", "table2.md")
    ]
    few = tiny(tmp_path / "few", tables=["table2"])
    assert [str(path) for path in few.results] == [
        f"results/tiny/{name}" for name in ("report.html", "table2.csv", "table2.md")
    ]


def test_the_list_has_the_sha256_of_each(tmp_path: Path) -> None:
    made = tiny(tmp_path, tables=["table2"])
    for path in made.results:
        write_text(path, path.name)
    Verbs(made).results()
    listed = [line.split("  ") for line in Path("results/tiny/all").read_text().splitlines()]
    assert listed == [[sha256_file(path), str(path)] for path in made.results]
