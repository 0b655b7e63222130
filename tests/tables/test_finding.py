"""The sentences that stand first on a report: each status, ties, the blind baseline, and missing numbers."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest

from stepline.benchmark.words import Metric
from stepline.needs import Need
from stepline.tables import Row, blind_methods, finding
from stepline.tables.status import Status
from tests.tables.numbers import SAMPLE_LIST, build, number, row, score


def said(rows: Sequence[Row], metric: str = "accuracy") -> tuple[str, ...]:
    return finding(rows, rows, metric).sentences


def of(status: Status, count: int = 1) -> list[Row]:
    """Return rows with a number of the paper's and a status."""
    [made] = build([number(entry="a", metric="map")], None)
    return [replace(made, printed="1.0", status=status)] * count


OTHERWISE = "for another release, split or option than the paper's, or a subset of the videos"


class TestAgreement:
    def test_numbers_are_counted_by_status(self) -> None:
        def agreement(*rows: list[Row]) -> str:
            return said([each for part in rows for each in part], "")[0]

        one, many = (
            "Of 1 number that can be compared with the paper's, ",
            "numbers that can be compared with the paper's, ",
        )
        assert agreement(of("exact")) == f"{one}1 agrees to the printed digits."
        assert agreement(of("exact", 2), of("within", 3), of("differs")) == (
            f"Of 6 {many}5 agree (2 to the printed digits, 3 within tolerance) and 1 differs."
        )
        assert agreement(of("inconclusive", 2), of("differs", 2)) == (
            f"Of 4 {many}none agrees within tolerance, "
            "2 are inconclusive (a blind baseline scores as well) and 2 differ."
        )
        assert agreement(of("within"), of("not comparable"), of("inconsistent")) == (
            f"{one}1 agrees within tolerance; 1 is {OTHERWISE}; 1 of the paper's numbers cannot be right."
        )
        assert agreement(of("not comparable", 3)) == (f"No number can be compared with the paper's; 3 are {OTHERWISE}.")

    def test_copies_and_missing_numbers_are_not_compared(self) -> None:
        copied, lacking = of("reference"), of("needs")
        assert said(copied + lacking, "") == ("1 of 1 number is missing.",)


class TestBest:
    def test_the_highest_value_is_named_with_the_papers(self, paper: Path) -> None:
        asked = [number(), number(context_s=180.0, score=score(13.0)), number(entry="x", method="X", score=score(9.0))]
        rows = [each for each in build(asked, paper) if each.status != "needs"]
        assert said(rows)[1].removeprefix("In Table 2a on v0, ") == (
            "MiniLM (L, zero-shot, 3 min) has the highest Acc: 13.00 % (paper: 12.39)."
        )

    @pytest.mark.parametrize(("unit", "value"), [("%", "1.00 %"), ("", "1.00"), ("count", "1")])
    def test_of_a_loss_the_lowest_is_best(self, unit: Literal["%", "", "count"], value: str) -> None:
        rows = build(
            [number(entry=name, method=name, score=score(value)) for name, value in (("a", 2.0), ("b", 1.0))], None
        )
        loss = Metric(title="Loss", unit=unit, lower_is_better=True)
        [sentence] = said([replace(r, measure=loss) for r in rows])
        assert sentence.endswith(f"b (L, zero-shot, 1 min) has the lowest Loss: {value}.")

    def test_an_oracle_is_never_the_best(self) -> None:
        rows = build([number(), number(entry="o", method="O", sees=(SAMPLE_LIST,), score=score(99.0))], None)
        among = "among methods without oracle input"
        assert said(rows) == (f"In Table 2a on v0, MiniLM (L, zero-shot, 1 min) has the highest Acc {among}: 11.22 %.",)

    def test_ties_are_named_and_many_are_counted(self, paper: Path) -> None:
        def tied(names: str) -> str:
            scores = {name: score(11.22 + place / 10_000) for place, name in enumerate(names)}
            asked = [number(entry=name, method=name, modality="", score=each) for name, each in scores.items()]
            return said(build(asked, None))[0]

        alike = "(zero-shot, 1 min)"
        assert f"b {alike} and a {alike} have the highest Acc: 11.22 %" in tied("ba")
        assert f"a {alike}, b {alike}, c {alike} and 2 others have the highest" in tied("abcde")
        asked = [number(entry=name, method=name, score=score(11.22)) for name in ("MiniLM", "Other")]
        assert said([each for each in build(asked, paper) if each.value])[1].endswith("have the highest Acc: 11.22 %.")

    def test_a_method_without_setting_or_window_is_its_name(self) -> None:
        rows = build([number(method="M", modality="", setting="", context_s=None)], None)
        assert said(rows) == ("In Table 2a on v0, M has the highest Acc: 11.22 %.",)
        of_another_table = build([number(table="2b", score=score(99.0))], None)
        assert finding(of_another_table + rows, rows, "accuracy").sentences == said(rows)

    def blind(self, value: float | None, of_method: float = 11.22, **changes: Any) -> str:
        random = number(entry="r", method="Random", score=None if value is None else score(value), **changes)
        return said(build([number(blind="r", score=score(of_method)), random], None))[0]

    def test_the_blind_baseline_stands_beside_it(self) -> None:
        assert self.blind(4.0).endswith("11.22 %; the blind baseline Random scores 4.00 %.")
        assert self.blind(8.0).endswith("Random scores 8.00 %, within the 95 % interval of the best method.")
        assert self.blind(7.99).endswith("Random scores 7.99 %.")
        assert self.blind(9.0).endswith("Random scores 9.00 %, within the 95 % interval of the best method.")
        assert self.blind(12.0).endswith(
            "Random (L, zero-shot, 1 min) has the highest Acc: 12.00 %; Random is a blind baseline."
        )
        assert self.blind(11.22).endswith("have the highest Acc: 11.22 %; Random is a blind baseline.")

    def test_a_blind_baseline_without_a_value_or_at_another_window_says_nothing(self) -> None:
        assert "Random" not in self.blind(None)
        assert "Random" not in self.blind(4.0, context_s=180.0)

        assert "Random" not in self.blind(4.0, split="val")

    @pytest.mark.parametrize(
        ("lower", "random", "uniform", "said"),
        [
            (False, 4.0, 6.0, "the blind baseline Uniform scores 6.00 %."),
            (False, 6.0, 4.0, "the blind baseline Random scores 6.00 %."),
            (True, 15.0, 20.0, "the blind baseline Random scores 15.00 %."),
            (True, 20.0, 13.0, "Uniform scores 13.00 %, within the 95 % interval of the best method."),
        ],
    )
    def test_of_several_blind_baselines_the_best_is_named(
        self, lower: bool, random: float, uniform: float, said: str
    ) -> None:
        asked = [
            number(blind="r"),
            number(entry="b", method="B", blind="u", score=score(12.0 if lower else 10.0)),
            number(entry="r", method="Random", score=score(random)),
            number(entry="u", method="Uniform", score=score(uniform)),
        ]
        loss = Metric(title="Loss", lower_is_better=lower)
        rows = [replace(each, measure=loss) for each in build(asked, None)]
        assert finding(rows, rows, "accuracy").sentences[0].endswith(said)

    def test_the_methods_that_are_blind_baselines(self, paper: Path) -> None:
        asked = [
            number(entry="r", method="Guess", blind="r"),
            number(blind="r"),
            number(entry="u", method="Uniform"),
            number(entry="own", method="Own", blind="u"),
        ]
        assert blind_methods(build(asked, paper)) == ["Guess", "Uniform"]
        assert blind_methods(build([number()], paper)) == []


class TestMissing:
    def lacking(self, entry: str, command: str) -> Any:
        return number(entry=entry, method=entry, score=None, needs=(Need("weights", entry),), command=command)

    def test_the_command_that_computes_most_stands_with_it(self) -> None:
        asked = [number(), self.lacking("a", "one"), self.lacking("b", "two")]
        asked += [replace(asked[2], metric="map"), self.lacking("c", "")]
        made = finding(build(asked, None), [], "")
        assert made.sentences == ("4 of 5 numbers are missing; this command computes 2:",)
        assert made.command == "two"

    def test_one_command_for_all(self) -> None:
        made = finding(build([self.lacking("a", "one")], None), [], "")
        assert (made.sentences, made.command) == (("1 of 1 number is missing; this command computes them:",), "one")

    def test_what_nothing_declares_has_no_command(self, paper: Path) -> None:
        made = finding([row(paper), *(r for r in build([number()], paper) if r.status == "needs")], [], "")
        assert made.sentences[-1] == "4 of 5 numbers are missing."
        assert made.command == ""


def test_without_a_paper_and_without_percentages_all_are_computed() -> None:
    assert said(build([number(metric="videos", score={"metrics": {"videos": {"value": 3}}})], None), "") == (
        "1 number is computed; there is no paper for comparison.",
    )
