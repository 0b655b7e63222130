from pathlib import Path

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.patches import Rectangle

from stepline.report.figure_plans import RIGHT, TRUE, WRONG, PlannedWindow, horizons, plans
from stepline.report.figures import render
from stepline.tables import Number
from tests.report.figures import points
from tests.tables.numbers import build, number

PAPER = """\
table,method,modality,setting,context_s,metric,split,paper,rerun,decimals,tolerance,tolerance_source,evidence,note
6,Random,,T=3,,base_sr,test,<0.01,,2,,,,
6,MLP,,T=3,,base_sr,test,29.44,,2,,,,
6,MLP,,T=4,,base_sr,test,17.79,,2,,,,
6,MLP,,whole video,,base_sr,test,5.00,,2,,,,
"""
LONG = "restore the fixed battery components and the back cover"


def line(method: str, horizon: int, value: float) -> Number:
    measured = {"value": value, "ci": [value - 1, value + 1], "sd": None, "seeds": [0]}
    return number(
        table="6", title="All horizons", entry=f"{method}-{horizon}", method=method, modality="",
        setting=f"T={horizon}", context_s=None, metric="base_sr", release="split1",
        score={"metrics": {"base_sr": measured}},
    )  # fmt: skip


def test_a_method_has_one_curve_over_the_horizons_beside_the_papers(tmp_path: Path) -> None:
    (tmp_path / "paper.csv").write_text(PAPER)
    asked = [line("MLP", 3, 28.0), line("MLP", 4, 18.0), line("Random", 3, 0.001)]
    figure = horizons(build(asked, tmp_path / "paper.csv"), "base_sr")
    drawn = points(figure, 0)
    assert sorted(drawn.values()) == [[0.001], [28.0, 18.0], [29.44, 17.79]]
    assert [list(drawn[key]) for key in drawn if key[1]] == [[29.44, 17.79]]
    assert [label.get_text() for label in figure.axes[0].get_xticklabels()] == ["3", "4"]
    assert (figure.axes[0].get_ylabel(), figure.axes[0].get_xlabel()) == ("Base SR (%)", "horizon (actions)")


def test_steps_are_right_by_place_and_say_so_by_colour_and_sign() -> None:
    window = PlannedWindow(title="v", true=("a", "b", "c"), plans={"m": ("a", "c", None)})
    axes = plans([window]).axes[0]
    boxes = [patch.get_edgecolor() for patch in axes.patches]
    assert len(set(boxes[:3])) == 1
    assert boxes[4] == boxes[5] != boxes[3]
    assert [text.get_text() for text in axes.texts] == [
        *("v", "true plan", "", "a", "", "b", "", "c"),
        *("m", RIGHT[0], "a", WRONG[0], "c", WRONG[0], "(no action of the pool)"),
    ]
    assert len({TRUE[0], RIGHT[0], WRONG[0]}) == 3


def test_the_longest_actions_stay_inside_their_boxes() -> None:
    windows = [
        PlannedWindow(title="long", true=(LONG.upper(),) * 6, plans={"m": (LONG.upper(),) * 6}),
        PlannedWindow(title="short", true=("a", "b", "c"), plans={"m": (LONG, None, "c")}),
    ]
    figure = plans(windows)
    renderer = FigureCanvasAgg(figure).get_renderer()
    axes = figure.axes[0]
    boxes = [patch.get_window_extent() for patch in axes.patches if isinstance(patch, Rectangle)]
    assert len(boxes) == 2 * 6 + 2 * 3
    inside = [text for text in axes.texts if text.get_ha() == "left" and text.get_fontsize() == 8 and text.get_text()]
    for text in inside:
        extent = text.get_window_extent(renderer)
        assert any(
            box.x0 <= extent.x0 and extent.x1 <= box.x1 and box.y0 <= extent.y0 and extent.y1 <= box.y1 for box in boxes
        ), text.get_text()
    assert not any(a.overlaps(b) for place, a in enumerate(boxes) for b in boxes[:place])


def test_the_same_windows_give_the_same_bytes() -> None:
    window = PlannedWindow(title="v", true=("a",), plans={})
    assert render(plans([window])) == render(plans([window]))
