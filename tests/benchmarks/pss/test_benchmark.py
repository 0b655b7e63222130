from pathlib import Path

import pytest

from stepline import paths
from stepline.benchmark import Job, Option
from stepline.benchmarks.pss.benchmark import Pss
from stepline.config import validate
from stepline.errors import ConfigError
from stepline.needs import Need
from tests.benchmarks.pss.conftest import plan
from tests.benchmarks.pss.synthetic import CONFIG


@pytest.mark.parametrize(
    ("entry", "sees"),
    [
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


class TestWhatIsMissing:
    def test_uniform_parts_miss_nothing_before_anything_is_there(self) -> None:
        made = plan()
        assert made.missing(made.entries["uniform-duration"], "youcook2") == ()

    def test_a_backbone_needs_its_weights_and_the_list_of_videos(self) -> None:
        made = plan({"features": {"s3d": ["s3d-pss"]}})
        assert made.missing(made.entries["pdvc-s3d"], "youcook2") == (
            Need("release", "pss/youcook2"),
            Need("weights", "s3d"),
        )

    def test_training_videos_of_tasty(self) -> None:
        made = plan()
        assert made.missing(made.entries["frequent-given"], "tasty") == (Need("release", "pss/tasty-train"),)
        assert made.missing(made.entries["frequent-given"], "youcook2") == ()

    def test_nothing_once_all_is_there(self, banks: None) -> None:
        made = plan()
        assert {made.missing(made.entries[entry], release) for entry, release in made.pairs()} == {()}

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

    def test_options_of_training_decide_what_is_trained_alone(self, banks: None) -> None:
        other = {"pdvc": {**CONFIG["pdvc"], "gamma": 0.1}}
        assert self.record("softsoda-s3d", **other) != self.record("softsoda-s3d")
        assert self.record("procnet", **other) == self.record("procnet")
        assert self.record("uniform-segments", **other) == self.record("uniform-segments")

    def test_other_features_decide_what_reads_them_alone(self, banks: None) -> None:
        other = {"features": {**CONFIG["features"], "s3d": ["r3d"]}}
        assert self.record("pdvc-s3d", **other) != self.record("pdvc-s3d")
        assert self.record("pdvc-r3d", **other) == self.record("pdvc-r3d")

    def test_the_length_of_one_data_set(self, banks: None) -> None:
        other = {"length": {"youcook2": 32, "tasty": 16}}
        assert self.record("softsoda-s3d", "tasty", **other) != self.record("softsoda-s3d", "tasty")
        assert self.record("softsoda-s3d", **other) == self.record("softsoda-s3d")

    def test_a_subset_and_seeds(self, banks: None) -> None:
        subset = {"subset": {"fraction": 0.5, "seed": 0}}
        assert self.record("uniform-count", **subset) != self.record("uniform-count")
        seeds = {"pdvc": {**CONFIG["pdvc"], "seeds": [0]}}
        assert self.record("pdvc-r3d", **seeds) != self.record("pdvc-r3d")

    @pytest.mark.parametrize(
        "changes",
        [
            {"subset": {"fraction": 0.5, "seed": 0}},
            {"duration": "exact"},
            {"vocabulary": "train"},
            {"releases": ["tasty"]},
        ],
    )
    def test_a_table_is_written_again(self, banks: None, changes: dict[str, object]) -> None:
        assert plan(changes).table_params("table3") != plan().table_params("table3")

    def test_training_that_is_not_the_published_one_is_an_option(self, banks: None) -> None:
        made = plan({"features": {"s3d": ["s3d"]}, "pdvc": {"epochs": 3}, "length": {"tasty": 32}})
        entry = made.entries["softsoda-s3d"]
        expected = {
            "features": Option("s3d", "s3d-pss"),
            "epochs": Option(3, 30),
            "vocabulary": Option("released", "released"),
        }
        assert made.shown_options(entry, "youcook2") == expected
        assert made.shown_options(entry, "tasty") == expected | {"length": Option(32, 150)}
        assert plan().shown_options(plan().entries["procnet"], "tasty").keys() >= {"features", "anchors", "hidden"}

    def test_metrics_decide_scores_alone(self, banks: None) -> None:
        other = {"metrics": {**CONFIG["metrics"], "order": "start"}}
        assert self.record("softsoda-s3d", **other) == self.record("softsoda-s3d")
        job = Job(release="youcook2", entry=plan().entries["softsoda-s3d"])
        assert plan(other).score_params(job) != plan().score_params(job)

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

    def test_the_rule_of_durations_decides_equal_parts_alone(self, banks: None) -> None:
        assert self.record("uniform-count", duration="exact") != self.record("uniform-count")
        assert self.record("frequent-uniform", duration="exact") != self.record("frequent-uniform")
        assert self.record("frequent-given", duration="exact") == self.record("frequent-given")


def test_jobs_read_the_training_videos_only_where_they_are_used(banks: None) -> None:
    made = plan()
    uniform = Job(release="tasty", entry=made.entries["uniform-segments"])
    fitted = Job(release="tasty", entry=made.entries["pdvc-r3d-given"])
    assert made.predict_inputs(uniform) == [made.release_manifest("tasty")]
    (bank,) = Path("features/r3d").glob("*/tasty")
    inputs = [made.release_manifest("tasty"), made.release_manifest("tasty-train"), bank.parent / "spec.json"]
    assert made.fit_inputs(fitted) == inputs
    fits = [paths.fit("pss", "tasty", "pdvc-r3d-given", "all", seed) for seed in (0, 1)]
    assert made.predict_inputs(fitted) == [*inputs, *fits]


def test_the_training_videos_of_tasty_are_fetched_where_they_are_read() -> None:
    assert plan().releases == ["youcook2", "tasty", "tasty-train"]
    assert plan({"releases": ["youcook2"]}).releases == ["youcook2"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"procnet": {"length": 100}}, r"config: pss.procnet.length: 100 is not allowed; 16 anchors need 123 rows"),
        ({"pdvc": {"words": 2}}, r"config: pss.pdvc.words: 2 is less than the minimum of 3"),
        ({"length": {"tasty": 8}}, r"config: pss.length.tasty: 8 is less than the minimum of 16"),
        ({"pdvc": {"seeds": [2**40]}}, r"config: pss.pdvc.seeds\[0\]: \d+ is greater than the maximum"),
    ],
)
def test_what_cannot_be_is_one_line(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=f"^{message}"):
        Pss.of(validate({"pss": changes}), "pss")


@pytest.mark.parametrize(
    ("need", "command"),
    [
        (Need("release", "pss/tasty-train"), "stepline fetch pss/tasty-train"),
        (Need("weights", "s3d"), "stepline fetch weights/s3d"),
        (Need("java"), "apt install default-jre-headless"),
        (Need("videos", "youcook2"), "stepline fetch youcook2/videos"),
        (Need("videos", "tasty"), "cp VIDEOS/*.mp4 $STEPLINE_MIRROR/tasty/videos/"),
        (Need("features", "r3d/tasty"), "stepline bank import FOLDER --name r3d --dataset tasty --hop-s 1"),
    ],
)
def test_commands_that_bring_what_is_missing(need: Need, command: str) -> None:
    assert plan().filled_by("table4.csv", [need]) == f"{command} && snakemake --cores 8 results/pss/table4.csv"


def test_the_page_of_worked_examples_is_a_target() -> None:
    assert plan().targets == (
        "table1.csv",
        "table2.csv",
        "table3.csv",
        "table4.csv",
        "report.html",
        "worked_examples.html",
    )
    plan().write_examples()
    assert Path("results/pss/worked_examples.html").exists()
