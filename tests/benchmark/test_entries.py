from pathlib import Path

import pytest

from stepline.benchmark import Entry, Job, Kind, Option
from tests.benchmark.tiny import declared, tiny

BY = {"ends": ("recording",), "start": ()}
KIND = Kind(
    method=None, sees=("video",), settings={"by": BY, "how": (BY, None), "n": int, "of": str}, metrics=("error",)
)


def entry(**settings: object) -> Entry:
    return Entry(id="a", kind=KIND, kind_name="k", inputs=("train", "video"), settings=settings)


class TestSees:
    def test_what_it_says_then_what_its_kind_and_settings_say_each_once(self) -> None:
        assert entry(by="start", n=3, of="b").sees == ("train", "video")
        assert entry(by="ends").sees == ("train", "video", "recording")

    def test_a_setting_that_may_be_left_out_counts_where_it_is_given(self) -> None:
        assert entry(by="start", how="ends").sees == ("train", "video", "recording")
        assert entry(by="start", how=None).sees == ("train", "video")


def test_a_kind_without_metrics_can_be_scored_by_all() -> None:
    assert Kind(method=None).scores("anything")
    assert KIND.scores("error")
    assert not KIND.scores("near")


def test_an_entry_is_evaluated_where_its_kind_is_unless_it_says_it(tmp_path: Path) -> None:
    pooled = {"kind": "constant", "settings": {"number": 3}, "splits": ["val", "test"]}
    made = tiny(tmp_path, declared(entries={"three": pooled})).entries
    assert made["three"].splits == ("val", "test")
    assert made["drawn"].splits == made["drawn"].kind.splits == ("test",)


@pytest.mark.parametrize(("context_s", "label"), [(None, "all"), (180, "180s"), (2.5, "2.5s")])
def test_a_job_has_its_window_length_as_in_paths(context_s: float | None, label: str) -> None:
    assert Job(release="r", entry=entry(), context_s=context_s).context == label


def test_an_option_differs_from_the_published_value_and_from_the_default_where_none_is_known() -> None:
    assert Option(3, 4).differs
    assert not Option(3, 3).differs
    assert Option(3, 4, said=False).differs
    assert not Option(None, None, said=False).differs
    assert Option(3, None).differs
