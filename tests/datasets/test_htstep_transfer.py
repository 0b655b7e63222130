from typing import Any

import pytest

from stepline.datasets.htstep import RELEASES, Recording, Segment, Step
from stepline.datasets.htstep_transfer import Sentence, coin, crosstask, crosstask_pool, narrations, texts_of
from stepline.errors import ReleaseError
from tests.datasets import test_coin, test_crosstask
from tests.datasets.fetched import write_release
from tests.datasets.test_htstep import write


def write_crosstask(**changed: str) -> None:
    """Write CrossTask's release; changed: contents by their paths without the suffix."""
    write_release(RELEASES, "crosstask", test_crosstask.release(**changed))


class TestCrossTask:
    def test_a_video_of_two_tasks_stands_once_for_each(self) -> None:
        write_crosstask()
        assert [(each.activity, each.video, each.steps) for each in crosstask()] == [
            ("Make a Latte", "a-1", (0, 1, 2)),
            ("Make Irish Coffee", "a-1", (3, 4)),
            ("Make a Latte", "val_1", (0, 1, 2)),
        ]
        assert crosstask()[0] == Recording(
            video="a-1",
            split="crosstask",
            activity="Make a Latte",
            steps=(0, 1, 2),
            segments=(
                Segment(start_s=10.25, end_s=12.5, step=2, match=""),
                Segment(start_s=4.0, end_s=5.75, step=0, match=""),
            ),
            labelled=True,
        )

    def test_the_pool_of_splits_has_the_listed_videos_without_those_for_validation(self) -> None:
        write_crosstask(videos_val="53193,val_1,u\n77721,none,u\n53193,val_2,u\n")
        listed = {"Make a Latte": {"a-1", "none"}, "Make Irish Coffee": {"a-1"}}
        assert crosstask_pool(False) == listed
        assert crosstask_pool(True) == {
            "Make a Latte": listed["Make a Latte"] | {"val_1", "val_2"},
            "Make Irish Coffee": {"a-1", "none"},
        }

    def test_steps_are_texts_of_tasks(self) -> None:
        write_crosstask()
        assert list(texts_of("crosstask")) == [0, 1, 2, 3, 4]
        assert texts_of("crosstask")[4] == Step(
            id=4, activity="Make Irish Coffee", variation="", index=2, headline="stir mixture", paragraph=""
        )

    def test_a_video_with_an_empty_annotation_is_left_out(self) -> None:
        write_crosstask(**{"annotations/77721_a-1": ""})
        assert [each.activity for each in crosstask()] == ["Make a Latte", "Make a Latte"]

    def test_of_a_step_that_is_listed_twice_the_first_place_counts(self) -> None:
        write_crosstask(
            tasks_primary="53193\nMake a Latte\nu\n3\nstir,press,stir\n\n77721\nMake Irish Coffee\nu\n2\nx,y\n"
        )
        assert [(each.activity, each.steps) for each in crosstask()[:2]] == [
            ("Make a Latte", (0, 1)),
            ("Make Irish Coffee", (2, 3)),
        ]
        assert [each.step for each in crosstask()[0].segments] == [0, 0]

    def test_tasks_of_one_title_are_refused(self) -> None:
        write_crosstask(tasks_primary="53193\nTea\nu\n3\na,b,c\n\n77721\nTea\nu\n2\na,d\n")
        with pytest.raises(ReleaseError, match=r"crosstask_release.zip has two tasks with the same title$"):
            crosstask()

    def test_what_is_absent_is_named(self) -> None:
        with pytest.raises(ReleaseError, match="run `stepline fetch htstep/crosstask`"):
            texts_of("crosstask")


class TestCoin:
    def write(self, action: str = "boil") -> None:
        def record(*labels: str) -> dict[str, Any]:
            return {
                "class": "Tea",
                "recipe_type": 1,
                "annotation": [{"label": label, "segment": [1, 2.5]} for label in labels],
            }

        made = test_coin.release(
            [{"b": record("pour", action)}, {"none": record()}],
            [{"a": record("boil")}],
            [("Food", "Fish"), ("Food", "Tea")],
            [(0, "Fish", 0, "boil"), (1, "Tea", 1, "boil"), (1, "Tea", 2, "pour")],
        )
        write_release(RELEASES, "coin", made)

    def test_steps_are_numbered_over_all_events(self) -> None:
        self.write()
        assert [(each.video, each.activity, each.steps, each.split) for each in coin()] == [
            ("b", "Tea", (1, 2), "coin"),
            ("a", "Tea", (1, 2), "coin"),
        ]
        assert coin()[0].segments == (
            Segment(start_s=1.0, end_s=2.5, step=2, match=""),
            Segment(start_s=1.0, end_s=2.5, step=1, match=""),
        )
        assert [(step.activity, step.index, step.headline) for step in texts_of("coin").values()] == [
            ("Fish", 1, "boil"),
            ("Tea", 1, "boil"),
            ("Tea", 2, "pour"),
        ]

    def test_an_action_that_its_event_does_not_list_is_refused(self) -> None:
        self.write("steam")
        with pytest.raises(ReleaseError, match=r"^b has 'steam', which COIN's taxonomy does not list$"):
            coin()


class TestNarrations:
    def write(self, content: Any) -> None:
        write("narrations", narrations=content)

    def test_they_are_those_asked_for_that_are_there(self) -> None:
        spoken = {"start": [3, 0.5], "end": [4.5, 3.5], "text": ["now stir", " hello"]}
        self.write({"a": {"start": [], "end": [], "text": []}, "b": spoken, "c": None})
        assert narrations(["b", "none", "a"]) == {
            "b": (Sentence(start_s=3.0, end_s=4.5, text="now stir"), Sentence(start_s=0.5, end_s=3.5, text=" hello")),
            "a": (),
        }

    @pytest.mark.parametrize(
        "record",
        [
            None,
            [],
            {"start": [1], "end": [2]},
            {"start": [1, 2], "end": [2, 3], "text": ["x"]},
            {"start": [2], "end": [1], "text": ["x"]},
            {"start": [-1], "end": [1], "text": ["x"]},
            {"start": [0], "end": [float("nan")], "text": ["x"]},
            {"start": [0], "end": [float("inf")], "text": ["x"]},
            {"start": [0], "end": [True], "text": ["x"]},
            {"start": ["0"], "end": [1], "text": ["x"]},
            {"start": [0], "end": [1], "text": [float("nan")]},
            {"start": [0], "end": [1], "text": "x"},
        ],
    )
    def test_another_form_is_one_line_that_names_the_video(self, record: Any) -> None:
        self.write({"a": record})
        with pytest.raises(ReleaseError, match=r"narrations.json: a has no narration in HowTo100M's format: [^\n]+\Z"):
            narrations(["a"])
        assert narrations(["b"]) == {}

    @pytest.mark.parametrize("content", ["{", "[]"])
    def test_what_is_no_object_is_one_line(self, content: str) -> None:
        self.write(content)
        with pytest.raises(ReleaseError, match=r"narrations.json [^\n]+\Z"):
            narrations([])
