from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from stepline.asr import engines, transcript
from stepline.asr.transcript import Sentence
from stepline.availability import Record, write_availability, write_manifest
from stepline.benchmark import Entry
from stepline.errors import ConfigError
from stepline.features.store import Damaged
from stepline.needs import Need
from stepline.runs.inputs import Stage
from tests.benchmark.tiny import NUMBERS, VIDEOS, Tiny, TinyInputs, declared, job, tiny, write_banks, write_releases

TWO = {"features": {"net": ["net", "other"]}}


@pytest.fixture(autouse=True)
def _releases() -> None:
    write_releases()


@pytest.fixture
def banks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    write_banks(tmp_path_factory.mktemp("banks"))
    return tmp_path_factory.mktemp("more")


def inputs(folder: Path, entry: str = "three", **options: Any) -> TinyInputs:
    made = tiny(folder, **options)
    return made.inputs(job(made, entry))


def videos(of: TinyInputs, split: str) -> list[str]:
    return list(dict.fromkeys(unit.video for unit in of.used(split)))


class TestTruth:
    def test_all_units_of_a_split_are_read_once(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        of, asked = inputs(tmp_path), []
        original = TinyInputs.load
        monkeypatch.setattr(TinyInputs, "load", lambda self, split: asked.append(split) or original(self, split))
        for _ in range(2):
            assert [(unit.video, unit.value) for unit in of.truth("test")] == [("e", 2), ("e", 4), ("e", 6), ("f", 8)]
        assert asked == ["test"]

    def test_a_subset_holds_whole_videos(self, tmp_path: Path) -> None:
        assert videos(inputs(tmp_path), "train") == ["a", "b", "c"]
        of = inputs(tmp_path, subset={"fraction": 0.5, "seed": 0})
        (kept,) = videos(of, "test")
        assert [unit.value for unit in of.used("test")] == NUMBERS[kept]
        assert len(of.truth("test")) == 4

    @pytest.mark.parametrize(
        ("entry", "fit", "predict"),
        [("three", ["train"], ["test", "train"]), ("fitted", ["train", "val"], ["test", "train", "val"])],
    )
    def test_a_fit_reads_no_evaluated_split(
        self, tmp_path: Path, entry: str, fit: list[str], predict: list[str]
    ) -> None:
        of = inputs(tmp_path, entry)
        assert (of.splits("fit"), of.splits("predict")) == (fit, predict)

    def test_splits_are_those_of_the_entry(self, tmp_path: Path) -> None:
        pooled = {"kind": "constant", "settings": {"number": 3}, "splits": ["val", "test"]}
        made = tiny(tmp_path, declared(entries={"three": pooled}))
        assert made.inputs(job(made, "three")).splits("predict") == ["val", "test", "train"]

    def test_a_split_that_the_subset_leaves_empty_is_missing(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        of = inputs(tmp_path, subset={"fraction": 0.5, "seed": 0})
        monkeypatch.setattr(Tiny, "chosen", lambda self, dataset: frozenset({"a"}))
        assert (of.missing("fit"), of.missing("predict")) == ((), (Need("split", "test"),))

    def test_the_subset_is_that_of_the_releases_data_set(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(Tiny, "chosen", lambda self, dataset: {"first": {"e"}, "second": {"f"}}[dataset.name])
        made = tiny(tmp_path, subset={"fraction": 0.5})
        found = [videos(made.inputs(job(made, "three", release)), "test") for release in ("first", "second")]
        assert found == [["e"], ["f"]]

    def test_options_of_training_are_those_of_its_kind_without_seeds(self, tmp_path: Path) -> None:
        assert inputs(tmp_path, "fitted", head={"epochs": 7, "seeds": [1]}).training == {"epochs": 7}


class TestMethods:
    """What a method gets: only what its entry sees."""

    def of(self, folder: Path, entry: str, stage: Stage = "predict") -> TinyInputs:
        return replace(inputs(folder, entry), stage=stage)

    def test_a_split_that_is_not_declared_is_an_error(self, tmp_path: Path) -> None:
        of = self.of(tmp_path, "drawn")
        assert videos(of, "test") == ["e", "f"]
        message = r"^the method of drawn \(kind drawn\) reads the split train: add 'train' to its `sees`$"
        with pytest.raises(ConfigError, match=message):
            of.used("train")
        with pytest.raises(ConfigError, match="reads the split dev: add a keyword with `split='dev'` to its `sees`$"):
            of.truth("dev")

    def test_a_fit_reads_no_evaluated_split(self, tmp_path: Path) -> None:
        of = self.of(tmp_path, "three", "fit")
        assert [unit.value for unit in of.truth("train")] == [1, 2, 3, 5]
        with pytest.raises(ConfigError, match="reads the split test"):
            of.truth("test")

    def test_the_truth_of_an_evaluated_unit_is_hidden(self, tmp_path: Path) -> None:
        unit = self.of(tmp_path, "three").truth("test")[1]
        assert (unit.video, unit.place) == ("e", 1)
        message = (
            r"^the method of three \(kind constant\) reads `value` of an evaluated unit: add 'truth' to its `sees`$"
        )
        with pytest.raises(ConfigError, match=message):
            _ = unit.value

    def test_what_was_read_before_is_hidden_from_a_stage(self, tmp_path: Path) -> None:
        of = inputs(tmp_path, "three")
        assert of.truth("test")[0].value == 2
        with pytest.raises(ConfigError, match="reads `value` of an evaluated unit"):
            _ = of.staged("predict").truth("test")[0].value

    def test_an_oracle_sees_it_and_so_do_scores(self, tmp_path: Path) -> None:
        assert [unit.value for unit in self.of(tmp_path, "four").truth("test")] == [2, 4, 6, 8]
        assert [unit.value for unit in inputs(tmp_path, "three").truth("test")] == [2, 4, 6, 8]


class TestSpeech:
    @pytest.fixture
    def of(self, tmp_path: Path) -> TinyInputs:
        """Return the inputs of an entry that sees speech; one of two test videos has a transcript."""
        lines = [{"entry": "heard", "method": "Heard"}]
        made = tiny(
            tmp_path,
            declared(
                entries={"heard": {"kind": "heard", "settings": {"number": 3}}},
                tables={"table1": {"title": "Guesses", "metrics": ["error"], "lines": lines}},
            ),
            releases=["first"],
            tables=["table1"],
        )
        speech = made.footage["first"].pipeline.speech
        said = [("open the hatch", 0.0, 4.0), ("ready", 4.0, 5.0), ("go", 6.0, 9.0)]
        transcript.write(speech.folder / "e.parquet", [Sentence(text, start_s, end_s) for text, start_s, end_s in said])
        (manifest,) = speech.manifests
        write_manifest(manifest, {"e": {"status": "present"}, "f": {"status": "failed"}})
        return made.inputs(job(made, "heard"))

    def test_whole_sentences_that_overlap_a_span(self, of: TinyInputs) -> None:
        spans = [(0.0, 4.0), (3.9, 6.0), (4.5, 6.1), (9.0, 20.0)]
        said = [of.said(SimpleNamespace(video="e", start_s=start_s, end_s=end_s)) for start_s, end_s in spans]
        assert said == ["open the hatch", "open the hatch ready", "ready go", ""]

    def test_a_unit_is_used_where_its_video_has_a_transcript(self, of: TinyInputs) -> None:
        assert of.spoken == {"e"}
        assert videos(of, "test") == ["e"]
        assert of.sentences("f") == ()

    @pytest.mark.parametrize(
        ("e", "f", "needs"),
        [("present", "failed", "transcripts:first"), ("failed", "failed", "videos:first"), ("", "", "videos:first")],
    )
    def test_without_any_transcript_the_need_is_that_or_a_video(
        self, of: TinyInputs, e: str, f: str, needs: str
    ) -> None:
        (manifest,), (path,) = of.footage.pipeline.speech.manifests, of.footage.pipeline.videos.availability
        write_manifest(manifest, {"e": {"status": "failed"}})
        there = [Record(video=video, status=status) for video, status in (("e", e), ("f", f)) if status]
        write_availability(path, [*there, Record(video="a", status="present")])
        assert list(map(str, of.missing("predict"))) == [needs]

    def test_the_jobs_declare_the_transcripts(self, of: TinyInputs) -> None:
        benchmark, speech = of.benchmark, of.footage.pipeline.speech
        assert {*speech.manifests} < {*benchmark.predict_inputs(of.job)}
        assert benchmark.record(of.job)["transcripts"] == speech.record
        assert "speech" in of.footage.pipeline.demand.stages

    def test_a_method_that_does_not_see_speech_cannot_read_it(self, tmp_path: Path) -> None:
        other = inputs(tmp_path / "other", "three")
        with pytest.raises(
            ConfigError, match=r"^the method of three .* reads transcripts: add 'speech' to its `sees`$"
        ):
            other.sentences("e")

    def test_a_missing_recogniser_is_a_need(self, of: TinyInputs, monkeypatch: pytest.MonkeyPatch) -> None:
        (manifest,) = of.footage.pipeline.speech.manifests
        manifest.unlink()
        monkeypatch.setattr(engines, "missing", lambda *_: (Need("package", "pocketsphinx"),))
        assert of.benchmark.missing(of.entry, "first") == (Need("package", "pocketsphinx"),)


class TestFeatures:
    def test_a_unit_is_used_where_every_bank_has_its_video(self, tmp_path: Path, banks: Path) -> None:
        of = inputs(tmp_path, "fitted")
        assert (videos(of, "test"), of.missing("fit"), of.missing("predict")) == (["e", "f"], (), ())
        del of.banks[0].blocks["e"]
        assert (videos(of, "test"), of.missing("predict")) == (["f"], ())

    def test_a_split_of_which_no_unit_is_whole_needs_videos(self, tmp_path: Path, banks: Path) -> None:
        write_banks(banks, *NUMBERS, name="other")
        of = inputs(tmp_path, "fitted", **TWO)
        del of.banks[0].blocks["e"], of.banks[1].blocks["f"]
        assert of.missing("predict") == (Need("videos", "first"),)
        del of.banks[1].blocks["e"]
        assert of.missing("predict") == (Need("features", "other/first"),)
        for video in VIDEOS["train"]:
            del of.banks[0].blocks[video]
        assert of.missing("predict") == (Need("videos", "first"),), "of the videos of both splits each bank has some"

    def test_a_split_of_which_a_bank_has_nothing_needs_an_import(self, tmp_path: Path, banks: Path) -> None:
        of = inputs(tmp_path, "fitted")
        del of.banks[0].blocks["d"]
        assert of.missing("fit") == of.missing("predict") == (Need("features", "net/first"),)

    def test_a_fit_is_not_missing_test_videos(self, tmp_path: Path, banks: Path) -> None:
        of = inputs(tmp_path, "fitted")
        for video in "ef":
            del of.banks[0].blocks[video]
        assert of.missing("fit") == ()
        assert of.missing("predict") != ()

    def test_a_bank_of_other_ids_needs_an_import(self, tmp_path: Path, banks: Path) -> None:
        write_banks(banks, *NUMBERS, name="other")
        of = inputs(tmp_path, "fitted", **TWO)
        assert of.missing("predict") == ()
        for video in NUMBERS:
            of.banks[1].blocks[f"v_{video}"] = of.banks[1].blocks.pop(video)
        assert of.missing("predict") == (Need("features", "other/first"),)

    def test_missing_seconds_are_those_of_each_bank(self, tmp_path: Path, banks: Path) -> None:
        write_banks(banks, *NUMBERS, name="other")
        of = inputs(tmp_path, "fitted", **TWO)
        of.banks[0].damaged["e"] = Damaged("k", [], [(5.0, 7.0, "lost"), (9.0, 9.5, "lost")])
        of.banks[1].damaged["f"] = Damaged("k", [], [(0.0, 3.0, "lost")])
        assert of.in_part == {"e": 2.5, "f": 3.0}

    def test_rows_are_resized_and_stand_side_by_side(self, tmp_path: Path, banks: Path) -> None:
        write_banks(banks, *NUMBERS, name="other", scale=10)
        of = inputs(tmp_path, "fitted", **TWO)
        rows = of.resized("e", 7)
        assert (rows.shape, rows.dtype, of.dimension) == ((7, 4), np.float32, 4)
        nearest = [0, 10, 20, 29, 39, 49, 59]
        assert rows.tolist() == [[2, 2 + second, 20, 20 + 10 * second] for second in nearest]
        assert of.imported == ["net", "other"]
        one = inputs(tmp_path, "fitted", features={"net": ["other"]})
        assert (one.resized("e", 7) == rows[:, 2:]).all()

    def test_the_mean_of_each_span_stands_side_by_side(self, tmp_path: Path, banks: Path) -> None:
        write_banks(banks, *NUMBERS, name="other", scale=10)
        of = inputs(tmp_path, "fitted", **TWO)
        asked = [("f", 3.0, 7.5), ("e", 10.0, 12.0), ("f", 0.0, 2.0)]
        spans = [SimpleNamespace(video=video, start_s=start_s, end_s=end_s) for video, start_s, end_s in asked]
        means = [(8, 5), (2, 10.5), (8, 0.5)]
        assert of.pooled(spans).tolist() == [[n, n + second, 10 * n, 10 * (n + second)] for n, second in means]

    def test_features_that_are_not_there_or_not_seen_are_one_line(
        self, tmp_path: Path, banks: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        span = SimpleNamespace(video="e", start_s=3.0, end_s=7.5)
        with pytest.raises(ConfigError, match=r"three .* reads features, and the entry has none: name a key of"):
            inputs(tmp_path, "three").pooled([span])
        of = inputs(tmp_path, "fitted").staged("predict")
        assert len(of.pooled([span])) == 1
        monkeypatch.setitem(vars(of.entry), "sees", ("train", "val"))
        with pytest.raises(ConfigError, match=r"fitted .* reads features: add 'video' to its `sees`$"):
            of.pooled([span])


class TestDecoded:
    def of(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> TinyInputs:
        """Return the inputs of an entry that reads the videos themselves."""
        made = tiny(folder)
        monkeypatch.setattr(Tiny, "decoding", lambda self: [])
        entry: Entry = made.entries["three"]
        object.__setattr__(entry, "kind", type(entry.kind)(**vars(entry.kind) | {"decoded": True}))
        return made.inputs(job(made, "three"))

    def test_a_unit_is_used_where_its_file_is_there(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        of = self.of(tmp_path, monkeypatch)
        file = tmp_path / "e.mp4"
        file.write_bytes(b"")
        (path,) = of.footage.pipeline.videos.availability
        gone = tmp_path / "gone.mp4"
        there = [Record(video=video, status="present", path=str(each)) for video, each in (("e", file), ("f", gone))]
        write_availability(path, [*there, Record(video="a", status="failed")])
        assert videos(of, "test") == ["e"]
        assert of.video_file("e") == file
        assert of.video_file("f") is None
        assert of.video_file("a") is None
        assert path in of.benchmark.predict_inputs(of.job)
