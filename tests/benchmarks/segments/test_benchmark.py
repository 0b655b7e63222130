"""The study of data sets with labelled segments: what follows from the configuration."""

import os
from pathlib import Path

import pytest

from stepline import needs
from stepline.benchmark import Job
from stepline.benchmarks.segments import benchmark
from stepline.benchmarks.segments.benchmark import Segments
from stepline.benchmarks.segments.recognition import Segment
from stepline.config import validate
from stepline.errors import ConfigError, ReleaseError
from stepline.fetch import fetch_release
from stepline.plans import configured, pipeline, plans_of
from tests.benchmarks.segments.conftest import LABELS, plan, vector
from tests.benchmarks.tower import BACKBONES, tower

CLIPS = "video,start_s,end_s\na,0,2\n"


def lines(made: Segments, file: str = "table1") -> list[tuple[str, str, str]]:
    """Return method, modality and data set of each line."""
    return [(line.method, line.modality, release) for _, line, release in made.lines(file)]


def spec(made: Segments, entry: str = "most-frequent") -> str:
    return made.spec(Job(release="mine", entry=made.entries[entry]))


def keys() -> tuple[str, ...]:
    """Return what decides whether the release's job, a prediction and the table of counts are computed again."""
    made = plan()
    return made.release_params("mine"), spec(made), made.table_params("table2")


class TestConfiguration:
    def test_labels_alone_configure_the_study(self) -> None:
        config = plan().config
        assert configured(config) == ["segments", "mine"]
        assert plan().targets == ("table1.csv", "table2.csv", "report.html")
        assert pipeline(config, "mine").targets == ("videos.csv", "report.html")
        assert [made.name for made in plans_of(config, "mine")] == ["segments"]

    @pytest.mark.parametrize("content", ["video,start_s,end_s\na,0,1\n", "video,start_s,end_s,label\na,0,1,\n"])
    def test_without_labels_there_is_no_table(self, content: str) -> None:
        Path("labels.csv").write_text(content)
        made = plan()
        assert (list(made.datasets), made.targets, list(made.lines())) == ([], (), [])
        assert configured(made.config) == ["mine"]
        assert plans_of(made.config, "mine") == []

    @pytest.mark.parametrize("name", ["videos", "rebuilt"])
    def test_a_name_that_is_none_of_a_release_is_one_line(self, name: str) -> None:
        named = validate({"datasets": {name: {"videos": "videos", "segments": "labels.csv"}}})
        with pytest.raises(
            ConfigError, match=f"^config: datasets: '{name}' cannot be the name of a data set with labels"
        ):
            Segments.of(named, "segments")

    def test_data_sets_are_releases(self) -> None:
        Path("others").mkdir()
        Path("others/f.mp4").write_bytes(b"x")
        Path("few.csv").write_text("video,start_s,end_s,label\nf,0,1,wash\n")
        named = {"datasets": {"mine": {"videos": "videos", "segments": "labels.csv"}}}
        few = {"videos": "others", "segments": "few.csv", "backbones": ["histogram", "s3d-pss"]}
        named["datasets"] |= {"more": few, "none": {"videos": "others"}}
        made = Segments.of(validate(named), "segments")
        assert (made.options["releases"], list(made.pipelines)) == (["mine", "more"], ["mine", "more"])
        linear = [("histogram", "mine"), ("histogram", "more"), ("s3d-pss", "more")]
        assert [(modality, data) for method, modality, data in lines(made) if method == "Linear"] == linear
        assert made.pipelines["mine"].demand.targets == ("videos.csv", "report.html")


class TestLines:
    BLIND = ("Most frequent step", "", "mine"), ("Uniform order", "", "mine"), ("Time prior", "", "mine")
    SAID = ("TF-IDF", "speech", "mine")

    def test_each_backbone_has_a_linear_classifier_and_a_zero_shot_line_if_it_has_a_tower(self) -> None:
        Path("tower.py").write_text(tower(vector))
        made = plan(other={"backbones": BACKBONES}, backbones=["histogram", "tower"])
        mine = [("Linear", name, "mine") for name in ("histogram", "tower")]
        assert lines(made) == [*self.BLIND, self.SAID, *mine, ("Zero-shot", "tower", "mine")]
        assert made.features(made.entries["zero-shot-tower"]) == ["tower"]

    def test_a_line_stands_for_the_data_sets_that_have_its_backbone_and_speech(self) -> None:
        assert lines(plan(stages=["features"])) == [*self.BLIND, ("Linear", "histogram", "mine")]
        assert lines(plan(stages=["speech"])) == [*self.BLIND, self.SAID]

    def test_all_that_see_only_times_are_blind_baselines(self) -> None:
        made = plan()
        blind = {name: made.blind(entry, "accuracy") for name, entry in made.entries.items()}
        alone = {name: name for name in ("most-frequent", "uniform-order", "time-prior")}
        assert blind == alone | {"tfidf": "time-prior", "linear-histogram": "time-prior", "statistics": ""}

    def test_a_backbone_of_listed_clips_has_no_line(self) -> None:
        Path("clips.csv").write_text(CLIPS)
        made = plan(backbones=["histogram", "videoclip-spacewalk"], clips="clips.csv")
        assert [modality for method, modality, _ in lines(made) if method == "Linear"] == ["histogram"]

    def test_names_that_look_alike_have_entries_of_their_own(self) -> None:
        for name in ("my_net", "my-net"):
            Path(f"{name}.py").write_text(tower(vector).replace('"tower"', f'"{name}"'))
        named = {name: {"path": f"{name}.py"} for name in ("my_net", "my-net")}
        made = plan(other={"backbones": named}, backbones=[*named])
        found = {made.entries[name].features: name for name in made.entries if name.startswith("linear-")}
        assert found.keys() == named.keys()
        assert all(name.startswith("linear-my-net-") for name in found.values())

    def test_entries_of_backbones_can_be_changed(self) -> None:
        made = plan({"entries": {"linear-histogram": {"splits": ["val"]}}})
        assert made.entries["linear-histogram"].splits == ("val",)

    def test_a_classifier_needs_what_trains_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(needs, "find_spec", lambda name: None)
        monkeypatch.delenv("STEPLINE_CONDA", raising=False)
        made = plan()
        found = {
            name: [*map(str, made.missing(made.entries[name], "mine"))] for name in ("linear-histogram", "time-prior")
        }
        assert found == {"linear-histogram": ["package:torch"], "time-prior": []}

    def test_what_a_text_tower_lacks_is_a_need(self, monkeypatch: pytest.MonkeyPatch) -> None:
        made = plan(backbones=["eva_clip-hirest"])
        needs = made.missing(made.entries["zero-shot-eva-clip-hirest"], "mine")
        assert "weights:eva_clip-hirest" in map(str, needs) or "weights:eva_clip" in map(str, needs)
        assert {need.what for need in needs if need.kind == "weights"} >= {*made.weights} != set()
        monkeypatch.setattr(benchmark, "locate", Path)
        assert made.weights == []


class TestRelease:
    def test_it_is_a_copy_of_the_users_file(self) -> None:
        made = plan()
        manifest = fetch_release(made.released, "mine")
        assert manifest == Path("datasets/segments/mine/release.json")
        assert manifest.with_name("segments.csv").read_text() == LABELS
        assert [each.step for each in made.segments("mine", "test")] == ["wash", "cook", "cut"]
        assert made.counted(made.entries["statistics"], "mine") == {
            "videos": 5,
            "segments": 12,
            "steps": 3,
            "hours": pytest.approx((8 + 6 + 6 + 4 + 6) / 3600),
            "unseen": 0,
        }

    def test_test_segments_whose_label_is_not_trained_are_counted(self) -> None:
        Path("labels.csv").write_text(LABELS.replace("wash,test", "rinse,test").replace("cook,train", "fry,train"))
        made = plan()
        fetch_release(made.released, "mine")
        found = made.counted(made.entries["statistics"], "mine")  # cook is shown by val, too
        assert (found["unseen"], found["steps"]) == (2, 5)

    def test_steps_are_those_of_their_procedures(self, monkeypatch: pytest.MonkeyPatch) -> None:
        times = {"start_s": 4.0, "end_s": 7.0, "duration_s": 6.0}
        found = {
            "train": [Segment(video="a", step="boil", procedure="tea", **times)],
            "test": [Segment(video=video, step="boil", procedure="soup", **times) for video in "de"],
        }
        monkeypatch.setattr(Segments, "segments", lambda self, release, split: found.get(split, []))
        made = plan()
        fetch_release(made.released, "mine")
        counts = made.counted(made.entries["statistics"], "mine")
        assert (counts["segments"], counts["steps"], counts["unseen"]) == (3, 2, 2)
        assert made.split(made.entries["statistics"], "steps") == "all"

    def test_its_job_and_all_predictions_follow_a_change_and_no_new_time(self) -> None:
        before = keys()
        os.utime("labels.csv", (1, 1))
        assert keys() == before
        Path("labels.csv").write_text(LABELS.replace("e,4,6,cut", "e,4,6,wash"))
        assert all(mine != other for mine, other in zip(before, keys(), strict=True))
        Path("labels.csv").write_text(
            LABELS.replace("d,0,2,cut,val", "d,0,2,cut,test").replace("d,2,4,cook,val", "d,2,4,cook,test")
        )
        assert all(mine != other for mine, other in zip(before, keys(), strict=True)), "of the same segments"

    def test_a_video_that_goes_changes_predictions_and_counts(self) -> None:
        release, *others = keys()
        Path("datasets/mine").mkdir(parents=True)
        Path("datasets/mine/shards.csv").write_text("video,shard\n" + "".join(f"{name},000\n" for name in "abcde"))
        Path("videos/c.mp4").unlink()
        same, *changed = keys()
        assert same == release
        assert all(mine != other for mine, other in zip(others, changed, strict=True))

    def test_a_job_reads_the_copy(self) -> None:
        made = plan()
        fetch_release(made.released, "mine")
        Path("datasets/segments/mine/segments.csv").write_text("x")
        with pytest.raises(ReleaseError, match="segments.csv has changed since it was fetched: run `step"):
            list(made.segments("mine", "test"))

    def test_a_segment_ends_with_the_last_one_of_its_video(self) -> None:
        made = plan()
        fetch_release(made.released, "mine")
        found = {(each.video, each.duration_s) for each in made.segments("mine", "train")}
        assert found == {("a", 8), ("b", 6), ("c", 6)}


def test_the_record_of_a_zero_shot_entry_names_its_text_tower() -> None:
    Path("tower.py").write_text(tower(vector))
    made = plan(other={"backbones": BACKBONES}, backbones=["tower"])
    of, other = (made.entries[name] for name in ("zero-shot-tower", "linear-tower"))
    assert made.record(Job(release="mine", entry=of))["text"]["name"] == "tower-text"
    assert "text" not in made.record(Job(release="mine", entry=other))


def test_a_wrong_file_is_one_line() -> None:
    Path("labels.csv").write_text("video,start_s,end_s,text\na,0,1,x\n")
    with pytest.raises(ConfigError, match=r"^labels.csv, line 1: the columns must be video, start_s, end_s and, "):
        plan()
