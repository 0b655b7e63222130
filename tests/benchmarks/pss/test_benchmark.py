from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from stepline.benchmark import Job, Option
from stepline.benchmarks.pss.benchmark import TRACKS, Pss
from stepline.benchmarks.pss.kinds import Segmentation
from stepline.benchmarks.pss.metrics import METRICS
from stepline.config import validate
from stepline.errors import ConfigError
from stepline.needs import Need
from tests.benchmarks.pss.conftest import plan


@pytest.mark.parametrize(
    ("entry", "sees"),
    [
        ("uniform-segments", ("duration",)),
        ("uniform-duration", ("duration",)),
        ("uniform-count", ("duration", "segment_count")),
        ("frequent-uniform", ("train", "duration")),
        ("frequent-given", ("train", "segments")),
        ("procnet", ("video", "train", "val")),
        ("softsoda-s3d-given", ("video", "train", "val", "segments")),
    ],
)
def test_what_an_entry_may_see(entry: str, sees: tuple[str, ...]) -> None:
    assert plan().entries[entry].sees == sees
    assert {each.word for each in Pss.sees if each.oracle} == {"segment_count", "segments"}


class TestWhatIsMissing:
    def test_training_videos_of_tasty(self) -> None:
        made = plan()
        assert made.missing(made.entries["frequent-given"], "tasty") == (Need("release", "pss/tasty-train"),)
        assert made.missing(made.entries["frequent-given"], "youcook2") == ()

    def test_meteor_is_wanted_or_needs_java_and_its_package(self, monkeypatch: pytest.MonkeyPatch) -> None:
        wanted = Need("config", "pss.metrics.meteor", "true")
        for metric in ("meteor", "soda_c"):
            assert plan().missing_of(metric) == [wanted]
        assert plan().missing_of("soda_c_stem") == ()
        monkeypatch.setenv("PATH", "")
        made = plan({"metrics": {"meteor": True}})
        assert Need("java") in made.missing_of("soda_c")
        monkeypatch.setenv("STEPLINE_CONDA", "1")
        assert made.missing_of("soda_c") == ()


class TestWhatDecides:
    def record(self, entry: str, release: str = "youcook2", **changes: object) -> str:
        made = plan(changes)
        return made.predict_params(Job(release=release, entry=made.entries[entry]))

    def test_the_length_of_one_data_set(self, banks: None) -> None:
        other = {"length": {"youcook2": 32, "tasty": 16}}
        assert self.record("softsoda-s3d", "tasty", **other) != self.record("softsoda-s3d", "tasty")
        assert self.record("softsoda-s3d", **other) == self.record("softsoda-s3d")

    def test_the_vocabulary_of_what_writes(self, banks: None) -> None:
        assert self.record("softsoda-s3d", vocabulary="train") != self.record("softsoda-s3d")
        assert self.record("procnet", vocabulary="train") == self.record("procnet")

    def test_training_that_is_not_the_published_one_is_an_option(self, banks: None) -> None:
        made = plan({"features": {"s3d": ["s3d"]}, "pdvc": {"epochs": 3}, "length": {"tasty": 32}})
        entry = made.entries["softsoda-s3d"]
        expected = {
            "features": Option("s3d", "s3d-pss"),
            "epochs": Option(3, 30),
            "vocabulary": Option("released", "released"),
        }
        assert made.named_options(entry, "youcook2") == expected
        assert made.named_options(entry, "tasty") == expected | {"length": Option(32, 150)}
        uniform = plan({"duration": "exact"})
        assert uniform.shown_options(uniform.entries["uniform-count"], "tasty") == {
            "duration": Option("exact", "ceil_seconds")
        }
        procnet = made.entries["procnet"]
        assert made.shown_options(procnet, "tasty").keys() == {"features"}, "no words, and a length of its own"
        assert made.named_options(procnet, "tasty").keys() >= {"features", "anchors", "hidden"}

    def test_the_spec_holds_what_it_held_before(self, releases: None) -> None:
        made = plan()
        assert made.record(Job(release="tasty", entry=made.entries["uniform-count-pooled"])) == {
            "study": "pss",
            "release": "tasty",
            "kind": "uniform",
            "revision": 1,
            "settings": {"by": "count"},
            "splits": ["val", "test"],
            "seeds": [0],
            "subset": None,
            "options": {"duration": "ceil_seconds"},
            "features": [],
        }

    def test_the_spec_of_features_holds_their_length_and_no_seeds_twice(self, banks: None) -> None:
        made = plan({"pdvc": {"seeds": [4], "epochs": 3}})
        record, of_procnet = (
            made.record(Job(release="tasty", entry=made.entries[name])) for name in ("softsoda-s3d", "procnet")
        )
        assert (record["splits"], record["length"]) == (["test"], made.options["length"]["tasty"])
        assert (record["seeds"], record["options"]["epochs"], "seeds" in record["options"]) == ([4], 3, False)
        assert "length" not in of_procnet

    def test_the_rule_of_durations_decides_equal_parts_alone(self, banks: None) -> None:
        assert self.record("uniform-count", duration="exact") != self.record("uniform-count")
        assert self.record("frequent-uniform", duration="exact") != self.record("frequent-uniform")
        assert self.record("frequent-given", duration="exact") == self.record("frequent-given")


def test_jobs_read_the_training_videos_only_where_they_are_used(banks: None) -> None:
    made = plan()
    uniform = Job(release="tasty", entry=made.entries["uniform-segments"])
    fitted = Job(release="tasty", entry=made.entries["pdvc-r3d-given"])
    assert made.predict_inputs(uniform) == [made.release_manifest("tasty")]
    assert made.fit_inputs(fitted)[:-1] == [made.release_manifest("tasty"), made.release_manifest("tasty-train")]


def test_the_training_videos_of_tasty_are_fetched_where_they_are_read() -> None:
    assert plan().releases == ["youcook2", "tasty", "tasty-train"]
    assert plan({"releases": ["youcook2"]}).releases == ["youcook2"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"procnet": {"length": 100}}, r"config: pss.procnet.length: 100 is not allowed; 16 anchors need 123 rows"),
        ({"pdvc": {"words": 2}}, r"config: pss.pdvc.words: 2 is not allowed; write a whole number of at least 3"),
        ({"length": {"tasty": 8}}, r"config: pss.length.tasty: 8 is not allowed; write a whole number of at least 16"),
        (
            {"pdvc": {"seeds": [2**40]}},
            r"config: pss.pdvc.seeds\[0\]: \d+ is not allowed; write a whole number from 0 to 4294967295",
        ),
    ],
)
def test_what_cannot_be_is_one_line(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=f"^{message}"):
        Pss.of(validate({"pss": changes}), "pss")


def test_anchors_may_be_as_long_as_the_video() -> None:
    assert Pss.of(validate({"pss": {"procnet": {"length": 123}}}), "pss").options["procnet"]["length"] == 123


def test_videos_without_segments_are_said_to_have_none() -> None:
    made = plan()
    inputs = made.inputs(Job(release="youcook2", entry=made.entries["uniform-count"]))
    about = {"seed": 0, "split": "test"}
    some = [
        Segmentation(video="a", segments=((0.0, 1.0),), **about),
        Segmentation(video="b", segments=((0.0, 1.0), (1.0, 2.0)), **about),
    ]
    none = Segmentation(video="c", segments=(), **about)
    assert made.select(inputs, some) == (some, "")
    assert made.select(inputs, [*some, none])[1] == "nothing predicted for 1 of 3 videos and seeds: zero"
    seeds = [replace(none, seed=seed) for seed in (0, 1)]
    assert made.select(inputs, seeds)[1] == "nothing predicted for 2 of 2 videos and seeds: zero"
    dropped = plan({"metrics": {"missing": "drop"}})
    assert dropped.select(inputs, [none])[1] == "nothing predicted for 1 of 1 videos and seeds: drop"


@pytest.mark.usefixtures("releases")
def test_videos_of_tasty_are_brought_by_hand() -> None:
    assert plan().how_to_fill(Need("videos", "tasty")) == ('install -D -t "$STEPLINE_MIRROR/tasty/videos" VIDEOS/*.mp4')


def test_the_page_of_worked_examples_is_a_target() -> None:
    assert plan().targets[-1] == "worked_examples.html"
    plan().write_examples()
    assert Path("results/pss/worked_examples.html").exists()


@pytest.mark.parametrize(
    ("entry", "metric", "blind"),
    [
        ("pdvc-s3d", "soda_d", "uniform-segments"),
        ("pdvc-s3d", "soda_c", "frequent-uniform"),
        ("pdvc-r3d-given", "bleu4", "frequent-given"),
        ("pdvc-r3d-given", "soda_d", "uniform-segments"),
        ("procnet", "miou_1fps", "uniform-segments"),
        ("frequent-uniform", "soda_c", "frequent-uniform"),
    ],
)
def test_the_blind_baseline_says_what_the_metric_reads(entry: str, metric: str, blind: str) -> None:
    made = plan()
    assert made.blind(made.entries[entry], metric) == blind


def test_a_metric_names_its_options_and_says_by_what_it_divides() -> None:
    ordered = {metric for metric, each in METRICS.items() if "order" in each.options}
    assert ordered == {"precision", "recall", "soda_d", "soda_c", "soda_c_stem"}
    assert all("missing" in each.options for each in METRICS.values())
    assert len({each.title for each in METRICS.values()}) == len(METRICS)
    divisors = {"precision": "the number of predicted segments", "recall": "the number of true segments"}
    both = "the mean of the numbers of true and predicted segments"
    for metric, divisor in (divisors | dict.fromkeys(("soda_d", "soda_c", "soda_c_stem"), both)).items():
        assert f"divided by {divisor};" in METRICS[metric].definition


def test_a_line_prints_what_its_entry_reads() -> None:
    by = {"segments": "Uniform (Avg #Segments)", "duration": "Uniform (Avg #Duration)", "count": "Uniform (GT)"}
    matchers = {"hungarian": ("PDVC", "Hungarian"), "soda": ("PDVC", "SODA"), "soft_soda": ("Ours", "SoftSODA")}
    proposals = {"uniform": "learned proposals"}
    proposals |= {"learned": "learned proposals", "ground_truth": "ground-truth proposals"}
    made = plan()
    for table, line, _ in made.lines():
        entry, where = made.entries[line.entry], f"table {table.name}, {line.entry}"
        settings = entry.settings
        if entry.kind_name == "uniform":
            assert line.method == by[settings["by"]], where
            assert ("val and test" in line.setting) == (entry.splits == ("val", "test")), where
        if "proposals" in line.setting:
            assert line.setting == proposals[settings["proposals"]], where
        if entry.kind_name == "pdvc" and line.modality:
            assert (line.modality.lower(), line.setting) == (entry.features, matchers[settings["matcher"]][1]), where
        elif entry.kind_name == "pdvc":
            assert line.method == matchers[settings["matcher"]][0], where
            assert entry.features == {"PDVC": "r3d", "Ours": "s3d"}[line.method], where


def test_the_shown_tracks_are_named_as_their_lines() -> None:
    made = plan()
    for entry, label in [*TRACKS.items()][1:]:
        lines = [line for table in made.declared.tables for line in table.lines if line.entry == entry]
        assert {*label.split(", ")} <= {word for line in lines for word in (line.method, line.modality, line.setting)}


def test_captions_learned_with_the_released_vocabulary_have_a_note() -> None:
    def noted(made: Pss, entry: str, metric: str) -> bool:
        table: Any = None
        line: Any = SimpleNamespace(entry=entry)
        return "validation and test" in made.note(table, line, "youcook2", metric)

    assert noted(plan(), "softsoda-s3d", "soda_c")
    assert not noted(plan(), "softsoda-s3d", "soda_d")
    assert not noted(plan(), "frequent-given", "soda_c")
    assert not noted(plan({"vocabulary": "train"}), "softsoda-s3d", "soda_c")
