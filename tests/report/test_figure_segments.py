from stepline.report.figure_segments import segments
from stepline.report.figures import render


def test_overlapping_segments_stand_on_levels_of_their_own() -> None:
    axes = segments(10, {"a": [(0, 5), (6, 9)], "b": [(1, 9), (1, 4), (4, 8)]}).axes[0]
    boxes = [path.get_extents() for bar in axes.collections for path in bar.get_paths()]
    assert [round(box.height, 2) for box in boxes] == [0.71, 0.71, 0.36, 0.36, 0.36]
    assert [round(box.y0, 2) for box in boxes[2:]] == [1.0, 0.62, 0.62]
    assert [(box.x0, box.x1) for box in boxes] == [(0, 5), (6, 9), (1, 9), (1, 4), (4, 8)]
    assert [text.get_text() for text in axes.texts] == ["1", "2", "1", "2", "3"]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["a", "b"]


def test_the_same_segments_give_the_same_bytes() -> None:
    assert render(segments(4, {"a": [(0, 1)]})) == render(segments(4, {"a": [(0, 1)]}))
