"""What tables and data sets lack, each once, with its lines and its command."""

from stepline.config import validate
from stepline.overview.graph import Graph
from stepline.overview.lacking import lacking, tables


def test_a_table_lacks_what_its_own_lines_and_metrics_need_with_commands() -> None:
    graph = Graph(validate({"hirest": {}}), ["results/hirest/table2.csv"])
    found = {str(lack.need): lack for lack in lacking(graph)}
    assert {need for need in found if need.startswith("predictions:")} == {
        f"predictions:clip-fine-tuned-{frames}" for frames in (1, 4, 10, 20, 32)
    }
    assert "weights:corenlp" not in found, "SPICE is in another table"
    assert "files: {clip-fine-tuned-1: FOLDER}" in found["predictions:clip-fine-tuned-1"].command
    captions = {
        str(lack.need): lack for lack in lacking(Graph(validate({"hirest": {}}), ["results/hirest/table5.csv"]))
    }
    spice = captions["weights:corenlp"]
    assert (spice.lines, spice.command) == (7, "stepline fetch weights/corenlp")
    (lines,) = tables(Graph(validate({"hirest": {}}), ["results/hirest/table5.csv"]))
    assert (lines.total, lines.numbered) == (7, 1)
