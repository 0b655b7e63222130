from collections import Counter
from dataclasses import replace
from math import ceil
from pathlib import Path

import pytest

from stepline.benchmarks.pss.material import Material
from stepline.benchmarks.pss.methods import make_method
from stepline.benchmarks.pss.predict import fit, lacking, predict
from stepline.benchmarks.pss.predictions import Prediction, read_predictions
from stepline.errors import StoreError
from tests.benchmarks.pss.conftest import plan


def material(entry: str, dataset: str = "youcook2", **changes: object) -> Material:
    made = plan(changes)
    return Material(made, dataset, made.entries[entry])


def predicted(of: Material, fits: list[Path] | None = None) -> list[Prediction]:
    predict(of, fits or [], Path("predictions.parquet"))
    return read_predictions(Path("predictions.parquet"))[0]


@pytest.mark.usefixtures("releases")
class TestBaselines:
    @pytest.mark.parametrize(("dataset", "n"), [("youcook2", 8), ("tasty", 10)])
    def test_the_average_number_of_segments(self, dataset: str, n: int) -> None:
        for p in predicted(material("uniform-segments", dataset)):
            assert len(p.segments) == n
            assert p.segments[0][0] == 0
            assert p.segments[-1][1] == 61  # floor(60) + 1
            assert {round(end_s - start_s, 9) for start_s, end_s in p.segments} == {round(61 / n, 9)}

    def test_the_exact_duration_is_an_option(self) -> None:
        made = predicted(material("uniform-segments", duration="exact"))
        assert {p.segments[-1][1] for p in made} == {60.0}

    @pytest.mark.parametrize(("dataset", "segment_s"), [("youcook2", 19.6), ("tasty", 6)])
    def test_the_average_duration_of_segments(self, dataset: str, segment_s: float) -> None:
        assert {len(p.segments) for p in predicted(material("uniform-duration", dataset))} == {ceil(60 / segment_s)}

    def test_the_annotated_number_of_segments(self) -> None:
        of = material("uniform-count")
        truth = {each.video: len(each.segments) for each in of.used("test")}
        assert {p.video: len(p.segments) for p in predicted(of)} == truth

    def test_more_splits_than_test(self) -> None:
        made = predicted(material("uniform-count-pooled", "tasty"))
        assert Counter(p.split for p in made) == {"val": 4, "test": 4}

    def test_the_most_frequent_sentence_is_of_training(self) -> None:
        of = material("frequent-given")
        counts = Counter(sentence for each in of.used("train") for sentence in each.sentences)
        most = max(counts.values())
        first = min(sentence for sentence, number in counts.items() if number == most)
        for p, each in zip(predicted(of), of.used("test"), strict=True):
            assert p.segments == each.segments
            assert p.sentences == (first,) * len(each.segments)
        assert {len(p.sentences) for p in predicted(material("frequent-uniform"))} == {8}


@pytest.mark.usefixtures("banks")
class TestTrained:
    @pytest.fixture(autouse=True)
    def _torch(self) -> None:
        pytest.importorskip("torch")

    @pytest.mark.parametrize("entry", ["procnet", "softsoda-s3d", "pdvc-r3d-given"])
    def test_a_fit_predicts_every_test_video_by_every_seed(self, entry: str) -> None:
        of = material(entry)
        of = replace(of, entry=replace(of.entry, seeds=(3, 5)))
        fits = [Path(f"{seed}.safetensors") for seed in of.entry.seeds]
        for seed, path in zip(of.entry.seeds, fits, strict=True):
            fit(of, seed, path)
        assert fits[0].read_bytes() != fits[1].read_bytes()
        made = predicted(of, fits)
        assert [(p.seed, p.video) for p in made] == [(seed, each.video) for seed in (3, 5) for each in of.used("test")]
        for p, each in zip(made, of.used("test") * 2, strict=True):
            assert list(p.segments) == sorted(p.segments)
            assert all(0 <= start_s <= end_s <= each.duration_s for start_s, end_s in p.segments)
            assert len(p.scores) == len(p.segments)
            assert len(p.sentences) == (len(p.segments) if of.entry.made.captions else 0)
            if entry == "pdvc-r3d-given":
                assert p.segments == each.segments
        again = Path("again.safetensors")
        fit(of, 3, again)
        assert again.read_bytes() == fits[0].read_bytes()

    def test_a_fit_that_was_cut_off_goes_on_to_the_same_bytes(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from stepline.benchmarks.pss.methods import pdvc

        of = material("softsoda-s3d")
        fit(of, 0, Path("whole.safetensors"))
        calls = []

        def cut_off(*segments: object, **options: object) -> None:
            calls.append(segments)
            if len(calls) > len(of.used("val")):
                raise KeyboardInterrupt
            return original(*segments, **options)

        original = pdvc.soda_d
        monkeypatch.setattr(pdvc, "soda_d", cut_off)
        with pytest.raises(KeyboardInterrupt):
            fit(of, 0, Path("cut.safetensors"))
        assert not Path("cut.safetensors").exists()
        monkeypatch.setattr(pdvc, "soda_d", original)
        scored = []
        monkeypatch.setattr(pdvc, "soda_d", lambda *each, **options: scored.append(each) or original(*each, **options))
        fit(of, 0, Path("cut.safetensors"))
        assert len(scored) == len(of.used("val"))  # of the second epoch alone
        assert Path("cut.safetensors").read_bytes() == Path("whole.safetensors").read_bytes()

    def test_features_stand_side_by_side(self) -> None:
        of = material("pdvc-tsn")
        video = of.used("test")[0].video
        both = of.features(video, 32)
        assert both.shape == (32, of.dimension) == (32, 12)
        assert (both[:, :6] == material("pdvc-tsn", features={"tsn": ["tsn-a"]}).features(video, 32)).all()
        assert (both[:, 6:] == material("pdvc-tsn", features={"tsn": ["tsn-b"]}).features(video, 32)).all()

    def test_a_video_without_features_is_left_out(self) -> None:
        of = material("pdvc-r3d")
        bank = of.banks[0]
        del bank.blocks["youcook2-test-1"]
        assert [each.video for each in of.used("test")] == [f"youcook2-test-{number}" for number in (0, 2, 3)]
        assert lacking(of) == []
        for number in range(4):
            bank.blocks.pop(f"youcook2-val-{number}")
        assert lacking(of) == ["videos:youcook2"]
        fit(of, 0, Path("f"))
        assert Path("f").read_bytes() == b""
        predict(of, [Path("f")], Path("p"))
        assert read_predictions(Path("p")) == ([], {"needs": ["videos:youcook2"], "selection": ""})

    def test_a_damaged_checkpoint_is_one_line(self) -> None:
        Path("0.safetensors").write_bytes(b"x")
        with pytest.raises(StoreError, match="0.safetensors is damaged"):
            list(make_method(material("procnet"), [Path("0.safetensors")]))
