import pytest

from stepline.datasets import oepp
from stepline.datasets.oepp import PARTS
from stepline.errors import ConfigError
from tests.benchmarks.oepp.conftest import inputs
from tests.benchmarks.oepp.synthetic import CONFIG, write_bank

pytestmark = pytest.mark.usefixtures("banks")


class TestWindows:
    def test_all_are_listed_and_used_where_their_features_are_there(self) -> None:
        of = inputs("matching-t3")
        for part in PARTS:
            assert of.used(part) == of.truth(part)
            assert {len(window.actions) for window in of.truth(part)} == {3}
            videos = oepp.load("split1", part)
            assert len(of.truth(part)) == sum(max(1, len(video.steps) - 2) for video in videos)
        video = of.truth("base")[1].video
        del of.bank.blocks[video]
        assert {each.video for each in of.truth("base")} - {each.video for each in of.used("base")} == {video}

    def test_short_videos_are_left_out_by_an_option(self) -> None:
        of = inputs("random-t3", windows={"padding": "drop"})
        assert len(of.truth("novel")) == sum(max(0, len(v.steps) - 2) for v in oepp.load("split1", "novel"))

    def test_labels_are_places_in_the_pool_of_the_part(self) -> None:
        of = inputs("random-whole")
        for part in PARTS:
            for window, label in zip(of.truth(part), of.labels(part, of.truth(part)), strict=True):
                assert tuple(of.pool(part)[place] for place in label) == window.actions
        assert set(of.pool("base")) != set(of.pool("novel"))

    def test_rows_of_other_seconds_are_one_line(self, tmp_path_factory: pytest.TempPathFactory) -> None:
        write_bank(tmp_path_factory.mktemp("hop"), "slow", 2.0)
        of = inputs("matching-t3", features=CONFIG["features"] | {"videoclip": {"video": "slow"}})
        with pytest.raises(ConfigError, match="^features 'slow' have one row per 2 s; OEPP needs one per second$"):
            of.used("base")
