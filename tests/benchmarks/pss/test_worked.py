from pathlib import Path

from stepline.benchmarks.pss.worked import _figure_3, _figure_4, _tables, write_worked_examples


def test_what_is_printed_wrong_is_said() -> None:
    examples = [*_figure_4(), _figure_3()]
    wrong = {
        (example.title, check.what): check.verdict
        for example in examples
        for check in example.checks
        if check.printed and check.verdict != "right"
    }
    assert wrong == {
        ("Fig. 4, Example 1", "SODA-D F1, sorted by start"): "truncated instead of rounded",
        ("Fig. 4, Example 2", "SODA pairs, sorted by start"): "a misprint: p2 would be matched twice",
        ("Fig. 3", "one-to-one recall at tIoU .3: 2 of 3 segments"): "truncated instead of rounded",
        ("Fig. 3", "proposals compared in order"): (
            "the text contradicts its own sum: the term .26 belongs to a third pair"
        ),
    }


def test_what_is_not_printed_is_computed() -> None:
    computed = {check.what: check.computed for check in _figure_3().checks if not check.printed}
    assert computed == {
        "SODA-D precision: 1.5 / 4": "0.3750",
        "SODA-D recall: 1.5 / 3": "0.5000",
        "SODA-D F1": "0.4286",
    }
    assert "3.22" in [check.computed for check in _tables().checks]
    example = next(_figure_4())
    assert example.matrix == [["0.3750", "0.5000", "0.1667"], ["0.2500", "0.0000", "0.2000"]]


def test_both_examples_have_one_score_when_ends_count() -> None:
    scores = {
        check.computed
        for example in _figure_4()
        for check in example.checks
        if check.what == "SODA-D F1, sorted by start and end"
    }
    assert scores == {"30.00"}


def test_the_page_is_written_twice_the_same(tmp_path: Path) -> None:
    path = tmp_path / "worked.html"
    write_worked_examples(path)
    content = path.read_text()
    assert content.count("<h2>") == 4
    assert "data:image/svg+xml" in content
    write_worked_examples(path)
    assert path.read_text() == content
