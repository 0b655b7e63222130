"""The campaign of all parts: how long each is worked on, what is counted, and where it is shown."""

import sys
import time
from pathlib import Path

import pytest

from tests.chaos import __main__ as chaos


def test_a_part_is_worked_on_until_its_time_is_over_and_at_least_once() -> None:
    seeds: list[int] = []

    def campaign(seed: int, n: int) -> dict[str, int]:
        seeds.extend(range(seed, seed + n))
        return {"cases": n}

    assert chaos.work("part", campaign, 7, time.monotonic() - 1) == {"cases": 1}
    assert seeds == [7]


def test_a_broken_promise_is_printed_and_counted_and_others_go_on(capsys: pytest.CaptureFixture[str]) -> None:
    calls: list[tuple[int, int]] = []

    def campaign(seed: int, n: int) -> dict[str, int]:
        calls.append((seed, n))
        if seed == 1:
            raise AssertionError("it broke")
        time.sleep(0.3)
        return {"cases": n, "wrong results": 0}

    counts = chaos.work("part", campaign, 1, time.monotonic() + 0.2)
    assert counts["broken promises"] == 1
    assert "| part | wrong results | 0 |" in chaos.table({"part": counts})
    assert counts["cases"] == sum(n for seed, n in calls if seed != 1) > 0
    assert "part.campaign(1, 1): it broke" in capsys.readouterr().err


@pytest.mark.parametrize("broken", [False, True])
def test_counts_are_shown_where_no_promise_was_broken(
    broken: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def campaign(seed: int, n: int) -> dict[str, int]:
        assert not broken
        return {r"cases \1": n}

    page = tmp_path / "chaos.md"
    page.write_text("before\n<!-- counts -->\nold\n<!-- end -->\nafter\n")
    monkeypatch.setattr(chaos, "PAGE", page)
    monkeypatch.setattr(chaos, "parts", lambda: {"part": campaign})
    monkeypatch.setattr(sys, "argv", ["chaos", "--minutes", "0", "--seed", "3"])
    assert chaos.main() == broken
    shown = "| part | broken promises | 1 |" if broken else r"| part | cases \1 | 1 |"
    assert shown in capsys.readouterr().out
    text = page.read_text()
    assert ("old" in text) == broken
    assert (shown in text) != broken
    assert text.startswith("before\n<!-- counts -->\n")
    assert text.endswith("<!-- end -->\nafter\n")


def test_the_page_has_a_place_for_the_counts() -> None:
    assert len(chaos.SHOWN.findall(chaos.PAGE.read_text(encoding="utf-8"))) == 1
    assert next(iter(chaos.parts())) == "events"
