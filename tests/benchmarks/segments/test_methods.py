"""Methods of step recognition on cases that are counted by hand."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stepline.asr.transcript import Sentence
from stepline.availability import Record, Status
from stepline.benchmarks.segments import methods
from stepline.benchmarks.segments.benchmark import Segments
from stepline.benchmarks.segments.recognition import Segment
from stepline.errors import ConfigError
from tests.benchmarks.segments.conftest import LABELS, inputs, plan, predicted, segment


@pytest.mark.parametrize(
    ("entry", "steps"),
    [
        ("most-frequent", ("wash", "wash", "wash")),
        ("uniform-order", ("wash", "cut", "cook")),
        ("time-prior", ("wash", "cut", "cook")),
    ],
)
def test_blind_baselines_count_training_segments(entry: str, steps: tuple[str, ...]) -> None:
    """Wash 3 times, cut and cook twice; of e, the middles are at 1/6, 1/2 and 5/6 of the video, as those of c."""
    (made,) = predicted(inputs(entry))
    assert (made.seed, made.split, made.video, made.steps) == (0, "test", "e", steps)


def test_blind_baselines_count_what_the_subset_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("labels.csv").write_text(LABELS.replace("a,4,8,,", "a,4,8,cut,"))
    monkeypatch.setattr(Segments, "chosen", lambda self, dataset: frozenset("ade"))
    of = inputs("most-frequent", plan({"subset": {"fraction": 0.5}}))
    assert [each.steps for each in predicted(of)] == [("cut",) * 3]


def test_a_place_is_that_of_the_middle() -> None:
    assert [segment("wash", start_s).place for start_s in (0, 7)] == [0.1, 0.8]


def test_steps_that_only_val_or_test_shows_are_choices_too() -> None:
    Path("labels.csv").write_text(LABELS.replace("d,2,4,cook", "d,2,4,stir").replace("wash,test", "rinse,test"))
    assert inputs("most-frequent").steps == {"": ["wash", "cut", "cook", "stir", "rinse"]}


class TestProcedures:
    """Steps of two procedures, one of which is not in the training videos."""

    LISTED = {
        "train": [
            segment("boil", video="t", procedure="tea"),
            *(segment("pour", start_s, video="t", procedure="tea") for start_s in (2, 4)),
        ],
        "val": [segment("boil", video="w", procedure="tea")],
        "test": [
            segment("fry", video="x", procedure="egg"),
            segment("salt", 2, video="x", procedure="egg"),
            segment("pour", video="y", procedure="tea"),
        ],
    }

    @pytest.fixture(autouse=True)
    def listed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def segments(made: Segments, release: str, split: str) -> list[Segment]:
            return self.LISTED[split]

        monkeypatch.setattr(Segments, "segments", segments)

    def test_only_steps_of_the_procedure_are_chosen_the_first_if_it_has_no_training_segments(self) -> None:
        assert [(each.video, each.steps) for each in predicted(inputs("most-frequent"))] == [
            ("x", ("fry", "fry")),
            ("y", ("pour",)),
        ]

    def test_a_step_of_two_procedures_is_two_steps(self, monkeypatch: pytest.MonkeyPatch) -> None:
        pour = [segment("pour", video=video, procedure=name) for video, name in (("t", "tea"), ("x", "egg"))]
        monkeypatch.setattr(TestProcedures, "LISTED", {"train": pour[:1], "val": [], "test": pour})
        made = inputs("most-frequent").benchmark
        found = made.counted(made.entries["statistics"], "mine")
        assert (found["steps"], found["unseen"], found["segments"]) == (2, 1, 3)

    def test_a_classifier_that_knows_steps_of_one_procedure_chooses_those_of_the_other(self) -> None:
        pytest.importorskip("torch")
        of, fits = inputs("linear-histogram"), [Path(f"{seed}.safetensors") for seed in range(3)]
        for seed, path in enumerate(fits):
            of.benchmark.method(of.entry.kind)().fit(of.staged("fit"), seed, path)
        for made in predicted(of, *fits):
            assert {*made.steps} <= ({"fry", "salt"} if made.video == "x" else {"boil", "pour"})

    def test_speech_is_compared_with_the_texts_of_steps(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(Segments, "texts", lambda *_: {"fry": "salt", "salt": "fry in a pan"})
        of = inputs("tfidf")
        said = (Sentence("add salt now", 1, 3), Sentence("fry it", 0, 1))
        vars(of).update(spoken=frozenset("x"), _sentences={"x": said})
        assert [each.steps for each in predicted(of)] == [("fry", "fry")]

    def test_the_speech_of_a_segment_chooses(self, monkeypatch: pytest.MonkeyPatch) -> None:
        of = inputs("tfidf")
        said = (Sentence("add salt now", 1, 3), Sentence("fry it", 0, 1))
        vars(of).update(spoken=frozenset("xy"), _sentences={"x": said, "y": (Sentence("pour the tea", 0, 1),)})
        assert [each.steps for each in predicted(of)] == [("fry", "salt"), ("pour",)]


@pytest.mark.parametrize(("status", "need"), [("present", "transcripts:mine"), ("missing", "videos:mine")])
def test_videos_without_sound_are_no_absent_videos(status: Status, need: str) -> None:
    of = inputs("tfidf")
    vars(of).update(spoken=frozenset(), _availability={"e": Record(video="e", status=status)})
    assert list(map(str, of.missing("predict"))) == [need]


class TestLinear:
    def test_features_that_tell_labels_apart_are_learned(self) -> None:
        pytest.importorskip("torch")
        made = plan({"linear": {"seeds": [0, 5]}})
        of = inputs("linear-histogram", made)
        fits = [Path(f"{seed}.safetensors") for seed in (0, 5)]
        for seed, path in zip((0, 5), fits, strict=True):
            made.method(of.entry.kind)().fit(of.staged("fit"), seed, path)
        assert [(each.seed, each.steps) for each in predicted(of, *fits)] == [
            (0, ("wash", "cook", "cut")),
            (5, ("wash", "cook", "cut")),
        ]

    def test_each_seed_answers_by_its_own_fit(self) -> None:
        safetensors = pytest.importorskip("safetensors.numpy")
        of, fits = inputs("linear-histogram", plan({"linear": {"seeds": [5, 2]}})), [Path("5"), Path("2")]
        for path, step in zip(fits, (2, 1), strict=True):  # the steps are wash, cut, cook
            state = {"weight": np.zeros((3, 3)), "bias": np.eye(3)[step], "mean": np.zeros(3), "scale": np.ones(3)}
            safetensors.save_file({name: array.astype(np.float32) for name, array in state.items()}, path)
        assert [(each.seed, each.steps) for each in predicted(of, *fits)] == [(5, ("cook",) * 3), (2, ("cut",) * 3)]

    def test_it_is_fitted_on_train_and_judged_on_val_by_the_options(self, monkeypatch: pytest.MonkeyPatch) -> None:
        asked: list[Any] = []
        monkeypatch.setattr(methods, "fit_classifier", lambda *args, **options: asked.append((args, options)))
        options = {"epochs": 3, "batch_size": 7, "learning_rate": 0.5}
        of = inputs("linear-histogram", plan({"linear": {"seeds": [4], **options}}))
        of.benchmark.method(of.entry.kind)().fit(of.staged("fit"), 4, Path("fit"))
        (((train, val, path), given),) = asked
        assert (path, given) == (Path("fit"), options | {"seed": 4})
        assert train.label.tolist() == [0, 1, 0, 2, 0, 1, 2]  # wash, cut, cook
        assert val.label.tolist() == [1, 2]
        assert train.features[:, 0].tolist() == [1, 0, 1, 0, 1, 0, 0]
        assert train.features[:, 1].tolist() == [0, 3, 0, 0, 0, 3, 0]
        assert val.features.tolist() == [[0, 1, 0], [0, 0, 3]]
        assert train.allowed.shape == (7, 3)

    def test_videos_without_features_are_neither_learned_from_nor_predicted(self) -> None:
        pytest.importorskip("torch")
        Path("videos/f.mp4").write_bytes(b"x")
        Path("labels.csv").write_text(LABELS + "f,0,2,wash,test\n")
        of = inputs("linear-histogram")
        (bank,) = of.banks
        bank.rows = {(video, start_s): row for (video, start_s), row in bank.rows.items() if video not in ("c", "f")}
        of.benchmark.method(of.entry.kind)().fit(of.staged("fit"), 0, Path("0"))
        assert {each.video for each in predicted(of, *[Path("0")] * len(of.entry.seeds))} == {"e"}

    def test_it_needs_a_video_of_each_split(self) -> None:
        Path("labels.csv").write_text("video,start_s,end_s,label\na,0,1,wash\nb,0,1,cut\n")
        assert list(map(str, inputs("linear-histogram").missing("fit"))) == ["split:train", "split:val"]


def test_a_method_does_not_read_the_step_that_it_recognises() -> None:
    of = inputs("most-frequent").staged("predict")
    with pytest.raises(ConfigError, match="reads `step` of an evaluated unit: add 'step' to its `sees`"):
        of.truth("test")[0].step  # noqa: B018
