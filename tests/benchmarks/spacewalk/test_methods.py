from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer

from stepline.asr import transcript
from stepline.asr.transcript import Sentence
from stepline.benchmarks.spacewalk.features import Features
from stepline.benchmarks.spacewalk.methods import chooser
from stepline.benchmarks.spacewalk.methods.tfidf import TfIdf
from stepline.errors import ReleaseError
from stepline.io import sha256_file, write_json
from tests.benchmarks.spacewalk.conftest import MadeUp, chooser_of, real_inputs

TFIDF: dict[str, object] = {
    "kind": "tfidf",
    "encoder": "tfidf",
    "settings": {"fit": "video"},
    "contexts": [6],
    "inputs": ["window", "recording", "train"],
}
SENTENCE = {"kind": "zero-shot", "encoder": "minilm"}
VIDEO = {"kind": "zero-shot", "encoder": "histogram", "modality": "V"}


def test_tfidf_equals_scikit_learn_on_a_real_recording(in_spacewalk: Path) -> None:
    inputs = real_inputs("2a-tfidf-zero-shot", "v2")
    video = "06262020"  # not UTF-8
    recording, sentences = inputs.annotation.recordings[video], inputs.text(video).sentences
    items = inputs.items("test")[video][::20]
    ((_, chosen, scores),) = chooser_of(inputs, 60.0, [])(video, items)

    told = [step.transcript for step in recording.steps]
    captions = [told[0], *(step.caption for step in recording.steps[1:])]
    documents = [s.text for s in sentences] + [f"{step.transcript} {step.caption}" for step in recording.steps]
    vectors = TfidfVectorizer(sublinear_tf=True, stop_words="english").fit(documents)
    windows = [
        " ".join(s.text for s in sentences if s.start_s < item.t_s + 30 and s.end_s > item.t_s - 30) for item in items
    ]
    expected = (vectors.transform(windows) @ vectors.transform(told).T).toarray()
    expected += (vectors.transform(windows) @ vectors.transform(captions).T).toarray()
    assert scores is not None
    np.testing.assert_allclose(scores, expected, atol=1e-6)
    assert np.array_equal(chosen, scores.argmax(axis=1))
    assert scores.shape == (100, recording.n_steps + 1)


def test_tfidf_sees_the_recording_or_the_training_recordings_alone(made_up: MadeUp) -> None:
    from sklearn.feature_extraction.text import CountVectorizer

    fitted: list[list[str]] = []

    class Recorder(CountVectorizer):
        def fit_transform(self, raw_documents: list[str], y: object = None) -> object:
            fitted.append(list(raw_documents))
            return super().fit_transform(raw_documents)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sklearn.feature_extraction.text.CountVectorizer", Recorder)
        for fit in ("video", "train"):
            inputs = made_up.inputs(TFIDF | {"settings": {"fit": fit}})
            chooser_of(inputs, 6.0, [])("d", inputs.items("test")["d"])
            videos = ["d"] if fit == "video" else ["a", "b"]
            texts = [inputs.text(video) for video in videos]
            documents = [t for text in texts for t in [*(s.text for s in text.sentences), *text.step_documents()]]
            assert fitted.pop() == documents
    assert fitted == []


@pytest.mark.parametrize("kind", ["tfidf", "tfidf-stems"])
@pytest.mark.parametrize("fit", ["video", "train"])
def test_terms_are_counted_once_for_all_window_lengths(
    made_up: MadeUp, monkeypatch: pytest.MonkeyPatch, kind: str, fit: str
) -> None:
    made: list[object] = []
    counter = TfIdf.counter
    monkeypatch.setattr(TfIdf, "counter", lambda self: made.append(self) or counter(self))
    inputs = made_up.inputs(TFIDF | {"kind": kind, "settings": {"fit": fit}})
    items = inputs.items("test")["d"]
    found = [chooser(inputs, length_s)("d", items) for length_s in (4.0, 6.0)]
    assert len(made) == 1
    for ((_, _, scores),), length_s in zip(found, (4.0, 6.0), strict=True):
        ((_, _, alone),) = chooser_of(inputs, length_s, [])("d", items)
        assert np.array_equal(scores, alone)  # type: ignore[arg-type]
    assert not np.array_equal(found[0][0][2], found[1][0][2])  # type: ignore[arg-type]


def test_training_recordings_that_the_subset_leaves_out_are_not_fitted_on(made_up: MadeUp) -> None:
    whole, part = (made_up.inputs(TFIDF | {"settings": {"fit": "train"}}) for _ in range(2))
    part.options["subset"] = {"videos": ["a", "d"]}
    path = made_up.study.folder("demo") / "data/transcripts/b.csv"
    path.unlink()
    items = part.items("test")["d"]
    assert chooser_of(part, 6.0, [])("d", items)
    with pytest.raises(ReleaseError, match="b.csv is absent"):
        chooser_of(whole, 6.0, [])


def test_random_scores_are_of_the_seed_and_the_recording(made_up: MadeUp) -> None:
    inputs = made_up.inputs({"kind": "random", "contexts": "unlimited", "inputs": [], "seeds": [0, 1]})
    items = inputs.items("test")["d"]
    release = inputs.annotation.recordings
    release["e"] = replace(release["d"], video="e")  # as many steps
    scores = {
        (video, seed): values
        for video in ("d", "e")
        for seed, chosen, values in chooser_of(inputs, None, [])(video, items)
        if (chosen == -1).all()
    }
    assert len(scores) == 4
    assert len({np.asarray(values).tobytes() for values in scores.values()}) == 4
    again = chooser_of(inputs, None, [])("e", items)
    assert all(np.array_equal(scores["e", seed], values) for seed, _, values in again)


def test_no_words_give_the_lowest_label_and_in_retrieval_a_guess(made_up: MadeUp) -> None:
    folder, sha256 = Path("datasets/demo/demo"), {}
    for path in folder.glob("data/transcripts/*.csv"):
        kept = path.read_text().splitlines()[:2]
        path.write_text("\n".join(kept) + "\n")
        sha256[str(path.relative_to(folder))] = sha256_file(path)
    write_json(folder / "release.json", {"files": sha256})
    inputs = made_up.inputs(TFIDF)
    ((_, chosen, scores),) = chooser_of(inputs, 6.0, [])("d", inputs.items("test")["d"])
    assert not np.any(scores)
    assert not np.any(chosen)
    inputs = made_up.inputs(TFIDF | {"table": "2b"})
    ((_, chosen, scores),) = chooser_of(inputs, 6.0, [])("d", inputs.items("test")["d"])
    assert scores is not None
    assert scores.shape == (len(chosen), 2)
    assert np.all(chosen == -1)


def test_retrieval_takes_the_candidate_that_is_nearer(made_up: MadeUp) -> None:
    inputs = made_up.inputs(TFIDF | {"table": "2b"})
    ((_, chosen, scores),) = chooser_of(inputs, 6.0, [])("d", inputs.items("test")["d"])
    assert scores is not None
    assert set(chosen.tolist()) == {0, 1, -1} or set(chosen.tolist()) == {0, 1}
    assert all(
        c == (-1 if s[0] == s[1] else int(s[1] > s[0])) for c, s in zip(chosen.tolist(), scores.tolist(), strict=True)
    )


@pytest.mark.parametrize("normalise", ["block", "none"])
@pytest.mark.parametrize("kind", ["zero-shot", "sentences"])
def test_sentences_match_windows_with_narration_and_caption(made_up: MadeUp, kind: str, normalise: str) -> None:
    inputs = made_up.inputs(SENTENCE | {"kind": kind})
    inputs.options["normalise"] = normalise
    items, text = inputs.items("test")["d"], inputs.text("d")
    if normalise == "none":  # those of a window do not follow each other
        object.__setattr__(text, "sentences", text.sentences[::2] + text.sentences[1::2])
    store = inputs.embeddings("d")
    ((_, chosen, scores),) = chooser_of(inputs, 6.0, [])("d", items)

    def unit(rows: np.ndarray) -> np.ndarray:
        return rows / np.linalg.norm(rows, axis=1, keepdims=True) if normalise == "block" else rows

    if kind == "sentences":
        spoken = [
            [line.text for line in text.sentences if line.start_s < item.t_s + 3 and line.end_s > item.t_s - 3]
            for item in items
        ]
        windows = unit(np.stack([store(each).mean(axis=0) for each in spoken]))
    else:
        windows = unit(store([text.window(item.t_s, 6.0) for item in items]))
    narrations, captions = (unit(store(each)) for each in zip(*text.step_texts(), strict=True))
    expected = windows @ narrations.T + windows @ captions.T
    np.testing.assert_allclose(scores, expected, rtol=1e-4, atol=1e-5)
    assert np.array_equal(chosen, expected.argmax(axis=1))


def test_video_matches_mean_features_of_windows_and_animations(made_up: MadeUp) -> None:
    inputs = made_up.inputs(VIDEO)
    recording, items = inputs.annotation.recordings["d"], inputs.items("test")["d"]
    ((_, chosen, scores),) = chooser_of(inputs, 6.0, [])("d", items)
    rows = inputs.bank.rows["d"]

    def mean(start_s: float, end_s: float) -> np.ndarray:
        shown = [row for k, row in enumerate(rows) if start_s <= k * 0.5 < end_s]
        middle = np.mean(shown, axis=0)
        return middle / np.linalg.norm(middle)

    animations = np.stack([mean(*step.animation_s) for step in recording.steps[1:] if step.animation_s])
    windows = [mean(max(0, i.t_s - 3), min(recording.duration_s, i.t_s + 3)) for i in items]
    expected = np.stack(windows) @ animations.T
    assert scores is not None
    assert np.isnan(scores[:, 0]).all()
    np.testing.assert_allclose(scores[:, 1:], expected, rtol=1e-4)
    assert np.array_equal(chosen, expected.argmax(axis=1) + 1)


class Shown(Features):
    """Features of which video has the same row everywhere."""

    def _spans(self, video: str, spans: Any) -> Any:
        return np.full((len(spans), 2), 9.0)


def test_irrelevant_has_its_description_in_all_blocks() -> None:
    vectors = {"noise": [1.0, 2.0], "said": [3.0, 4.0], "caption": [5.0, 6.0]}
    steps = [SimpleNamespace(animation_s=span) for span in (None, (1, 2))]
    inputs: Any = SimpleNamespace(
        entry=SimpleNamespace(blocks="VTC"),
        benchmark=SimpleNamespace(texts_by=lambda _: "tower", normalise=lambda _: "none"),
        text=lambda _: SimpleNamespace(step_texts=lambda: [("noise", "noise"), ("said", "caption")]),
        embeddings=lambda _: lambda texts: np.array([vectors[text] for text in texts]),
        annotation=SimpleNamespace(recordings={"v": SimpleNamespace(steps=steps)}),
    )
    assert Shown(inputs).steps("v").tolist() == [[1, 2, 1, 2, 1, 2], [9, 9, 3, 4, 5, 6]]


def test_only_recordings_with_features_are_predicted(made_up: MadeUp) -> None:
    inputs = made_up.inputs(VIDEO)
    del inputs.bank.blocks["e"]
    assert inputs.recordings("test") == ["d"]
    assert [each.video for each in inputs.truth("test")] == ["d", "e"]


def test_irrelevant_without_a_feature_is_not_chosen_where_all_scores_are_negative(
    made_up: MadeUp, monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs = made_up.inputs({"kind": "zero-shot", "modality": "V", "encoder": "histogram", "contexts": [6.0]})
    items = inputs.items("test")["d"][:1]
    monkeypatch.setattr(Features, "windows", lambda *_: iter([np.ones((1, 1), np.float32)]))
    monkeypatch.setattr(Features, "steps", lambda *_: np.array([[np.nan], [-3], [-2]], np.float32))
    ((_, chosen, _),) = chooser_of(inputs, 6.0, [])("d", items)
    assert chosen.tolist() == [2]


def test_recognised_speech_is_read_where_it_is_configured(made_up: MadeUp) -> None:
    """Also as the narration of a step whose animation it overlaps."""
    inputs = made_up.inputs(TFIDF)
    inputs.options["transcripts"] = "asr"
    spoken = (Sentence("hold the tether", 5.5, 6.5), Sentence("turn the bolt", 30, 32))
    transcript.write(inputs.benchmark.pipeline.speech.folder / "d.parquet", spoken)
    text = inputs.text("d")
    assert text.sentences == spoken
    assert text.step_texts()[1][0] == "hold the tether"
    assert text.recording is inputs.annotation.recordings["d"]


def test_video_alone_reads_no_text(made_up: MadeUp, monkeypatch: pytest.MonkeyPatch) -> None:
    """What recognises speech is no input of such an entry, so its transcripts may not be there yet."""
    inputs = made_up.inputs(VIDEO)
    monkeypatch.setattr(type(inputs), "text", lambda *_: pytest.fail("it read a transcript"))
    ((_, chosen, _),) = chooser_of(inputs, 6.0, [])("d", inputs.items("test")["d"])
    assert (chosen > 0).all()
