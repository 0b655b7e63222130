"""What methods read: which videos are used, what is said in them, and what is missing."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stepline.asr.transcript import Sentence, write
from stepline.availability import write_manifest
from stepline.benchmark import Job
from stepline.benchmarks.htstep.inputs import HtstepInputs
from stepline.benchmarks.htstep.methods.videos import Articles
from stepline.datasets.htstep import NARRATIONS, RELEASES
from stepline.errors import ConfigError, StoreError
from stepline.features.bank import Bank
from stepline.features.importing import Folder, import_folder
from stepline.needs import Need
from tests.benchmarks.htstep.conftest import inputs, plan
from tests.benchmarks.htstep.synthetic import SILENT, crosstask_videos, narrations, videos, write_banks, write_releases
from tests.datasets.fetched import write_release

EVALUATED = ("val_seen", "test_seen", "test_unseen", "val_unseen")


def of_splits(*splits: str) -> set[str]:
    return {each.video for each in videos() if each.split in splits}


def used(of: HtstepInputs, split: str) -> set[str]:
    return {each.video for each in of.used(split)}


def subset_of(entry: str, chosen: list[str]) -> HtstepInputs:
    """Return what an entry reads where the subset holds these videos."""
    of = inputs(entry, subset={"fraction": 0.5})
    of.__dict__["_chosen"] = frozenset(chosen)
    return of


@pytest.mark.usefixtures("banks")
class TestUsed:
    def test_evaluated_are_all_videos_of_the_entry_s_splits(self) -> None:
        assert [each.video for each in inputs("place").evaluated] == [
            each.video for split in EVALUATED for each in videos() if each.split == split
        ]
        seen = inputs("actionformer")
        assert {each.video for each in seen.evaluated} == of_splits("val_seen", "test_seen")

    def test_silent_videos_are_used_and_those_without_a_transcript_are_not(self) -> None:
        of = inputs("tfidf")
        assert SILENT in used(of, "val_seen")
        of.subtitles.pop(SILENT)  # type: ignore[attr-defined]
        assert used(of, "val_seen") == of_splits("val_seen") - {SILENT}
        assert used(inputs("place"), "val_seen") == of_splits("val_seen")

    def test_a_subset_chooses_of_all_splits_and_not_of_coin(self) -> None:
        some = ["train-0-0", "train-1-1", SILENT]
        of = subset_of("aft", some)
        assert used(of, "train") == {"train-0-0", "train-1-1"}
        assert [each.video for each in of.evaluated] == [SILENT]
        assert of.missing("fit") == of.missing("predict") == ()
        assert used(subset_of("aft-narrations", some), "narrations") == {"train-0-0", "train-1-1"}

    def test_train_has_the_videos_with_segments(self) -> None:
        write_releases("train")
        of = inputs("place")
        assert used(of, "train") == set()
        assert of.missing("fit") == (Need("split", "train"),)

    def test_videos_whose_steps_are_not_known_are_not_evaluated(self) -> None:
        Path("datasets/htstep/candidates/release.json").unlink()
        assert {each.video for each in inputs("place").evaluated} == of_splits("val_seen")
        of = inputs("place", entries={"place": {"splits": ["test_seen"]}})
        assert of.missing("predict") == (Need("release", "htstep/candidates"),)

    def test_crosstask_has_all_videos_of_its_tasks(self) -> None:
        of = inputs("uniform", "crosstask")
        assert [(each.activity, each.video) for each in of.evaluated] == [
            ({"1001": "Make Coffee", "1002": "Wash Car"}[task], video) for task, video in crosstask_videos()
        ]
        assert {step.activity for step in of.steps.values()} == {"Make Coffee", "Wash Car"}
        assert of.missing("predict") == ()

    def test_the_bank_of_the_predicted_videos_is_the_one_that_is_read(self) -> None:
        for entry, release, split in (("place", "v1", "val_seen"), ("uniform", "crosstask", "crosstask")):
            of = inputs(entry, release)
            assert [*of.read] == [of.bank(split)]
        assert [*inputs("vina").read] == []

    def test_features_of_parts_of_videos_are_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(self: Bank) -> None:
            raise StoreError("parts")

        monkeypatch.setattr(Bank, "check_whole", refuse)
        with pytest.raises(StoreError, match="parts"):
            inputs("place").used("train")

    def test_a_video_s_features_are_its_own(self) -> None:
        of = inputs("place")
        assert len(of.bank("val_seen")[SILENT]) == next(each.duration for each in videos() if each.video == SILENT)
        assert len(inputs("uniform", "crosstask").bank("crosstask")["ct-1001-0"]) == 60


class TestNarrations:
    @pytest.mark.usefixtures("banks")
    def test_they_are_of_train_alone_whatever_is_evaluated(self) -> None:
        for changes in ({}, {"entries": {"aft-narrations": {"splits": ["val_seen"]}}}):
            listed = [each.video for each in inputs("aft-narrations", **changes).used("narrations")]
            assert listed == [each.video for each in videos() if each.split == "train"]
        assert [*inputs("tfidf").subtitles] == [each.video for each in videos()], "in the released order"

    @pytest.mark.usefixtures("banks")
    def test_they_are_of_another_data_set_whatever_the_subset(self) -> None:
        of = inputs("aft-narrations", narrations={"dataset": "crosstask"}, subset={"fraction": 0.3})
        said = {video: ({"start": [1.0], "end": [2.0], "text": ["so"]}) for _, video in crosstask_videos()}
        write_release(RELEASES, "narrations", {NARRATIONS: narrations() | said})
        assert [each.video for each in of.used("narrations")] == [*dict.fromkeys(said)]
        assert {len(of.bank("narrations")[video]) for video in said} == {60}
        heard = inputs("tfidf", narrations={"dataset": "crosstask"})
        assert {*heard.subtitles} == {each.video for each in videos()}, "what is not trained hears its own videos"

    @pytest.mark.usefixtures("banks")
    def test_speech_of_videos_without_features_is_not_learned(self) -> None:
        of = inputs("aft-narrations")
        of.subtitles["unknown"] = of.subtitles["train-0-0"]  # type: ignore[index]
        assert len(Articles(of).learned(0).videos) == len(of.used("narrations")) == len(of_splits("train"))

    @pytest.mark.usefixtures("banks")
    def test_they_are_of_videos_in_which_something_is_said(self) -> None:
        of = inputs("aft-narrations")
        of.subtitles["train-0-0"] = ()  # type: ignore[index]
        assert used(of, "narrations") == of_splits("train") - {"train-0-0"}

    @pytest.mark.usefixtures("banks")
    def test_a_recogniser_s_transcripts_are_read_where_they_are_present(self) -> None:
        of = inputs("tfidf", transcripts="asr", features={"s3d": ["planted"]})
        speech = of.benchmark.footage["htstep"].pipeline.speech
        first, *others = speech.manifests
        write(speech.folder / f"{SILENT}.parquet", [Sentence("Stir it", 1.0, 2.5)])
        write_manifest(
            first,
            {SILENT: {"status": "present"}, "val_seen-0-1": {"status": "gone"}, "val_seen-0-2": {"status": "failed"}},
        )
        for path in others:
            write_manifest(path, {})
        assert used(of, "val_seen") == {SILENT}
        [said] = of.subtitles[SILENT]
        assert (said.start_s, said.end_s, said.text) == (1.0, 2.5, "Stir it")


class TestMissing:
    """Some splits may be empty, as long as one is not."""

    def test_features_of_one_split_are_enough(self, releases: None, tmp_path_factory: pytest.TempPathFactory) -> None:
        write_banks(tmp_path_factory.mktemp("rows"), without=(*of_splits("test_seen", "test_unseen", "val_unseen"),))
        of = inputs("aft")
        assert of.missing("predict") == of.missing("fit") == ()
        assert {each.video for each in of.evaluated} == of_splits("val_seen")
        few = inputs("aft", entries={"aft": {"splits": ["test_seen"]}})
        assert few.missing("predict") == (Need("features", "planted/htstep"),)
        assert few.missing("fit") == ()

    def test_without_features_of_train_a_fit_and_what_is_made_of_it_are_missing_them(
        self, releases: None, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        write_banks(tmp_path_factory.mktemp("rows"), without=(*of_splits("train"),))
        need = (Need("features", "planted/htstep"),)
        for entry, release in (("aft", "v1"), ("aft-crosstask", "crosstask"), ("mt-bce-vina", "v1")):
            assert inputs(entry, release).missing("predict") == need, entry
        assert inputs("aft").missing("fit") == inputs("place").missing("predict") == need
        assert inputs("uniform").missing("predict") == ()

    def test_a_transfer_needs_the_videos_that_its_head_is_trained_on_alone(
        self, releases: None, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        write_banks(tmp_path_factory.mktemp("rows"), without=(*of_splits(*EVALUATED),))
        assert inputs("aft-crosstask", "crosstask").missing("predict") == ()
        assert inputs("aft").missing("predict") == (Need("features", "planted/htstep"),)

    def test_a_bank_of_other_videos_is_told(self, releases: None, tmp_path: Path) -> None:
        (tmp_path / "rows").mkdir()
        np.save(tmp_path / "rows/strange.npy", np.ones((3, 2), np.float32))
        import_folder(Folder(tmp_path / "rows"), "planted", "htstep", 1.0)
        of = inputs("uniform")
        of.__dict__["subtitles"] = {}
        assert of.missing("predict") == (Need("features", "planted/htstep"),)

    @pytest.mark.usefixtures("banks")
    def test_a_subset_of_no_video_of_a_stage_is_too_small(self) -> None:
        of = subset_of("aft", [SILENT])
        assert of.missing("fit") == of.missing("predict") == (Need("split", "train"),)
        assert subset_of("aft-narrations", [SILENT]).missing("fit") == (Need("split", "narrations"),)
        of = subset_of("uniform", ["train-0-0"])
        assert of.missing("predict") == tuple(Need("split", split) for split in EVALUATED)

    @pytest.mark.usefixtures("banks")
    def test_where_no_video_has_a_transcript_transcripts_are_missing(self) -> None:
        of = inputs("tfidf")
        of.__dict__["subtitles"] = {}
        assert of.missing("predict") == (Need("transcripts", "htstep"),)
        del of.bank("val_seen").blocks[SILENT]
        of.__dict__["subtitles"] = {SILENT: ()}
        assert of.missing("predict") == (Need("videos", "htstep"),), "of others there are features"


class TestBegin:
    @pytest.mark.usefixtures("banks")
    def test_a_fit_begins_with_the_same_seed_or_the_first(self) -> None:
        made = plan({"actionformer": {"seeds": [4, 2]}})
        of = made.inputs(Job(release="v1", entry=made.entries["aft-narrations-htstep"]))
        before = made.fits(Job(release="v1", entry=made.entries["aft-narrations"]))
        assert [of.begin(seed) for seed in (4, 2, 9)] == [before[0], before[1], before[0]]
        assert made.inputs(Job(release="v1", entry=made.entries["aft"])).begin(4) is None


@pytest.mark.parametrize(("hop_s", "error"), [(3.2, ConfigError), (0.5, ConfigError), (1.0, None)])
def test_features_are_a_row_a_second(releases: None, tmp_path: Path, hop_s: float, error: Any) -> None:
    (tmp_path / "rows").mkdir()
    np.save(tmp_path / f"rows/{SILENT}.npy", np.ones((3, 2), np.float32))
    import_folder(Folder(tmp_path / "rows"), "planted", "htstep", hop_s)
    of = inputs("uniform")
    if error is None:
        assert [each.video for each in of.evaluated] == [SILENT]
        return
    with pytest.raises(
        (error, StoreError), match=rf"features 'planted' have one row per {hop_s} s; HT-Step needs one per second"
    ):
        of.used("val_seen")
