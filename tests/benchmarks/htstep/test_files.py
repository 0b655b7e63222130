"""Predictions of the user in files."""

from pathlib import Path

import pytest

from stepline.errors import ConfigError
from tests.benchmarks.htstep.conftest import inputs, predicted
from tests.benchmarks.htstep.synthetic import videos

pytestmark = pytest.mark.usefixtures("releases")
HEAD = ",video-id,t-start,t-end,label,score\n"


def write(split: str, *rows: str) -> None:
    Path("mine").mkdir(exist_ok=True)
    Path("mine", f"{split}.csv").write_text(HEAD + "".join(f"{place},{row}\n" for place, row in enumerate(rows)))


class TestFiles:
    def test_segments_are_sorted_by_their_scores_and_equal_ones_keep_their_order(self) -> None:
        write("val_seen", "val_seen-0-1,1,2,3,0.5", "val_seen-0-1,3,4,1,0.9", "val_seen-0-1,5,6,5784,0.5")
        made = {each.video: each for each in predicted(inputs("vina", files={"vina": "mine"}))}
        assert [*made] == [each.video for each in videos() if each.split == "val_seen"]
        each = made["val_seen-0-1"]
        assert each.steps == (1, 3, 5784)
        assert each.segments == ((3, 4), (1, 2), (5, 6))
        assert each.scores == (0.9, 0.5, 0.5)
        assert each.article == each.times_s == ()
        assert made["val_seen-0-0"].segments == ()

    def test_splits_without_a_file_have_no_prediction(self) -> None:
        for split in ("val_seen", "test_unseen"):
            write(split)
        made = predicted(
            inputs("vina", files={"vina": "mine"}, entries={"vina": {"splits": ["val_seen", "test_unseen"]}})
        )
        assert [*dict.fromkeys(each.split for each in made)] == ["val_seen", "test_unseen"]
        few = inputs("vina", files={"vina": "mine"}, entries={"vina": {"splits": ["val_seen"]}})
        assert {each.split for each in predicted(few)} == {"val_seen"}
        assert few.missing("predict") == ()
        Path("datasets/htstep/candidates/release.json").unlink()
        unlabelled = inputs("vina", files={"vina": "mine"}, entries={"vina": {"splits": ["test_unseen"]}})
        assert unlabelled.missing("predict") == (), "the user's predictions need no list of steps"

    def test_a_file_may_hold_videos_outside_of_the_subset(self) -> None:
        listed = [each.video for each in videos() if each.split == "val_seen"]
        write("val_seen", *(f"{video},1,2,3,0.5" for video in listed))
        made = predicted(inputs("vina", files={"vina": "mine"}, subset={"fraction": 0.5}))
        assert 0 < len(made) < len(listed)
        assert {each.segments for each in made} == {((1, 2),)}

    def test_a_folder_without_files_is_refused(self) -> None:
        Path("mine").mkdir()
        with pytest.raises(ConfigError, match="^mine has none of val_seen.csv, test_seen.csv, .*: put one there$"):
            predicted(inputs("vina", files={"vina": "mine"}))

    @pytest.mark.parametrize(
        ("row", "reason"),
        [
            ("train-0-0,1,2,3,0.5", "row 0: 'train-0-0' is not a video of the split"),
            ("val_seen-0-1,2,1,3,0.5", "row 0: the segment from 2.0 s to 1.0 s does not end after it starts"),
            ("val_seen-0-1,1,2,5785,0.5", "row 0: the label '5785' is not the number of a step"),
        ],
    )
    def test_a_row_that_is_wrong_is_named(self, row: str, reason: str) -> None:
        write("val_seen", row)
        with pytest.raises(ConfigError, match=f"mine/val_seen.csv, {reason}"):
            predicted(inputs("vina", files={"vina": "mine"}))
