from pathlib import Path

import pytest
from stepline.benchmarks.pss.plan import Job, Plan

from stepline import paths
from stepline.config import validate
from stepline.errors import ConfigError, MissingError
from stepline.tables import METRICS, SEES, read_paper
from tests.benchmarks.pss.conftest import plan
from tests.benchmarks.pss.synthetic import CONFIG


def bank_of(name: str, dataset: str) -> Path:
    (folder,) = Path("features", name).glob(f"*/{dataset}")
    return folder.parent


def test_every_line_names_an_entry_and_known_metrics() -> None:
    entries = plan().entries
    for target in Plan.all_tables():
        table = plan().table(target)
        assert {line.entry for line in table.lines} <= entries.keys()
        assert set(table.metrics) <= METRICS.keys()
        lines = [
            (line.method, line.modality, line.setting, release) for line in table.lines for release in line.releases
        ]
        assert len(set(lines)) == len(lines)
    assert {word for entry in entries.values() for word in entry.inputs} <= SEES.keys()


def test_every_number_of_the_paper_has_its_line() -> None:
    for target in Plan.all_tables():
        table = plan().table(target)
        asked = {
            (line.method, line.modality, line.setting, metric, release)
            for line in table.lines
            for release in line.releases
            for metric in table.metrics
        }
        assert {(*key[1:4], *key[5:]) for key in read_paper(Plan.paper_file(target))} <= asked


class TestWhatIsLacking:
    def test_uniform_parts_lack_nothing_before_anything_is_there(self) -> None:
        made = plan()
        assert made.lacking(made.entries["uniform-duration"], "youcook2") == ()

    def test_a_bank_that_is_not_imported(self, releases: None) -> None:
        made = plan()
        entry = made.entries["pdvc-tsn"]
        assert made.lacking(entry, "youcook2") == ("features:tsn-a/youcook2", "features:tsn-b/youcook2")

    def test_a_backbone_lacks_its_weights_and_the_list_of_videos(self) -> None:
        made = plan({"features": {"s3d": ["s3d-pss"]}})
        assert made.lacking(made.entries["pdvc-s3d"], "youcook2") == ("release:pss/youcook2", "weights:s3d")

    def test_training_videos_of_tasty(self) -> None:
        made = plan()
        assert made.lacking(made.entries["frequent-given"], "tasty") == ("release:pss/tasty-train",)
        assert made.lacking(made.entries["frequent-given"], "youcook2") == ()

    def test_nothing_once_all_is_there(self, banks: None) -> None:
        made = plan()
        assert {made.lacking(made.entries[entry], release) for entry, release in made.pairs()} == {()}

    def test_two_banks_of_one_name_are_an_error(self, banks: None) -> None:
        bank = bank_of("r3d", "youcook2")
        other = bank.with_name("imported-00000000")
        other.mkdir()
        for path in bank.iterdir():
            (other / path.name).symlink_to(path.resolve())
        made = plan()
        with pytest.raises(ConfigError, match=r"pss.features: 'r3d' stands for .*imported-00000000/youcook2 and .*:"):
            made.lacking(made.entries["pdvc-r3d"], "youcook2")

    def test_strict_makes_it_an_error(self, releases: None) -> None:
        with pytest.raises(MissingError, match="^strict: pss lacks .*features:r3d/youcook2"):
            Plan.of(validate({"strict": True, "pss": CONFIG}), "pss")


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
        made = plan({"pdvc": {"epochs": 3}, "length": {"tasty": 32}})
        entry = made.entries["softsoda-s3d"]
        assert made.changed(entry, "youcook2") == {"epochs": (3, 30)}
        assert made.changed(entry, "tasty") == {"epochs": (3, 30), "length": (32, 150)}
        expected = {"features": "s3d", "epochs": 3, "vocabulary": "released"}
        assert made.options(entry, "youcook2") == expected
        assert made.options(made.entries["procnet"], "tasty").keys() >= {"features", "anchors", "hidden"}

    def test_metrics_decide_scores_alone(self, banks: None) -> None:
        other = {"metrics": {**CONFIG["metrics"], "order": "start"}}
        assert self.record("softsoda-s3d", **other) == self.record("softsoda-s3d")
        assert plan(other).score_params() != plan().score_params()

    def test_the_rule_of_durations_decides_equal_parts_alone(self, banks: None) -> None:
        assert self.record("uniform-count", duration="exact") != self.record("uniform-count")
        assert self.record("frequent-uniform", duration="exact") != self.record("frequent-uniform")
        assert self.record("frequent-given", duration="exact") == self.record("frequent-given")


def test_jobs_read_the_training_videos_only_where_they_are_used(banks: None) -> None:
    made = plan()
    uniform = Job(release="tasty", entry=made.entries["uniform-segments"])
    fitted = Job(release="tasty", entry=made.entries["pdvc-r3d-given"])
    assert made.predict_inputs(uniform) == [made.release_manifest("tasty")]
    bank = bank_of("r3d", "tasty") / "spec.json"
    assert made.fit_inputs(fitted) == [made.release_manifest("tasty"), made.release_manifest("tasty-train"), bank]
    fits = [paths.fit("pss", "tasty", "pdvc-r3d-given", "all", seed) for seed in (0, 1)]
    assert made.predict_inputs(fitted)[-2:] == fits


def test_no_job_is_one_line() -> None:
    with pytest.raises(ConfigError, match="pss has no entry 'x' on 'youcook2' at 'all'"):
        plan().job("youcook2", "x", "all")
    with pytest.raises(ConfigError, match=r"config: pss.tables: 'table4' is not one of table1; add it there"):
        plan({"tables": ["table1"]}).check_table("table4")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"features": {"s3d": ["timm:nope"]}}, r"config: pss.features.s3d: .*nope"),
        (
            {"features": {"r3d": ["minilm"]}},
            r"config: pss.features.r3d: 'minilm' is not allowed; name a backbone or an",
        ),
        ({"features": {"r3d": ["../x"]}}, r"config: pss.features.r3d: '../x' is not allowed"),
        (
            {"features": {"s3d": ["internvideo-spacewalk"]}},
            r"pss.features.s3d: .* describes listed clips; name a backbone",
        ),
        ({"procnet": {"length": 100}}, r"config: pss.procnet.length: 100 is not allowed; 16 anchors need 123 rows"),
        ({"pdvc": {"words": 2}}, r"config: pss.pdvc.words: 2 is less than the minimum of 3"),
        ({"length": {"tasty": 8}}, r"config: pss.length.tasty: 8 is less than the minimum of 16"),
        ({"pdvc": {"seeds": [2**40]}}, r"config: pss.pdvc.seeds\[0\]: \d+ is greater than the maximum"),
    ],
)
def test_what_cannot_be_is_one_line(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=f"^{message}|{message}"):
        Plan.of(validate({"pss": changes}), "pss")


def test_what_lacks_something_says_what() -> None:
    with pytest.raises(
        MissingError, match="entry 'procnet' on 'tasty' needs release:pss/tasty-train, features:resnet34"
    ):
        plan().job("tasty", "procnet", "all")


def test_videos_that_are_not_kept_go_once_features_are_there(releases: None) -> None:
    features = {"s3d": ["histogram"], "r3d": ["histogram"], "resnet34": ["resnet34"]}
    made = Plan.of(validate({"media": {"keep": "none"}, "pss": {**CONFIG, "features": features}}), "pss")
    footage = made.footage["youcook2"]
    pipeline = footage.pipeline
    manifests = [path for name in pipeline.features.computed for path in footage.inputs(name)]
    assert pipeline.drop_inputs("000") == pipeline.made_from_videos("000") == manifests
    assert made.table_inputs("table1")[-1] == pipeline.videos.dropped[0] == Path("datasets/youcook2/dropped/000.json")
    assert all("tasty" not in str(path) for path in made.table_inputs("table1"))


def test_a_subset_is_drawn_within_each_split(releases: None) -> None:
    chosen = plan({"subset": {"fraction": 0.5, "seed": 0}}).chosen("youcook2")
    assert [sum(f"-{split}-" in video for video in chosen) for split in ("train", "val", "test")] == [5, 2, 2]
