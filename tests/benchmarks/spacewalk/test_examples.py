"""Examples: which samples are shown, by the written rule, and what is shown of them."""

import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from stepline import paths
from stepline.availability import write_manifest
from stepline.benchmarks.spacewalk import examples, presentation
from stepline.benchmarks.spacewalk.benchmark import Spacewalk
from stepline.benchmarks.spacewalk.examples import Picked, _Pictures, _retrieval, pick, write_study_examples
from stepline.benchmarks.spacewalk.items import Item
from stepline.benchmarks.spacewalk.kinds import Choice
from stepline.config import validate
from stepline.datasets.studies import RETRIEVAL, STEP_RECOGNITION
from stepline.needs import Need
from stepline.runs.predictions import write_predictions
from tests.benchmarks.spacewalk.conftest import MadeUp, at, predict

NAN = float("nan")


def made(
    video: str, labels: list[int], chosen: list[int], scores: list[list[float]] | None, seed: int = 0
) -> tuple[Choice, list[Item]]:
    items = [Item(id=10 + n, frame=n, t_s=float(n), label=label) for n, label in enumerate(labels)]
    table = None if scores is None else np.array(scores, np.float32)
    ids = np.array([item.id for item in items])
    return Choice(seed=seed, split="test", video=video, ids=ids, chosen=np.array(chosen), scores=table), items


def picked(*parts: tuple[Choice, list[Item]], task: str = STEP_RECOGNITION) -> list[tuple[str, int, bool, float]]:
    found = pick([p for p, _ in parts], {p.video: items for p, items in parts}, task)
    return [(each.video, each.item.id, each.right, round(each.margin, 3)) for each in found]


def test_the_most_confident_right_and_wrong_answers_are_shown_one_per_recording() -> None:
    a = made("a", [1, 1, 2], [1, 1, 1], [[0, 0.5, 0.4], [0, 0.9, 0.1], [0, 0.3, 0.2]])
    b = made("b", [1, 2], [1, 2], [[0.2, 0.9, 0], [0, 0.1, 0.15]])
    assert picked(b, a) == [("a", 11, True, 0.8), ("b", 10, True, 0.7), ("a", 12, False, 0.1)]


def test_equal_ones_are_by_the_recordings_name_and_the_earlier_sample() -> None:
    scores = [[0, 0.5, 0.25]] * 2
    assert picked(made("b", [1, 1], [1, 1], scores), made("a", [1, 1], [1, 1], scores)) == [
        ("a", 10, True, 0.25),
        ("b", 10, True, 0.25),
    ]


def test_no_more_than_three_of_each_are_shown() -> None:
    parts = [
        made(video, [1], [1], [[0, score, 0]]) for video, score in zip("abcde", (0.1, 0.5, 0.3, 0.4, 0.2), strict=True)
    ]
    assert [video for video, *_ in picked(*parts)] == ["b", "d", "c"]


def test_irrelevant_samples_guesses_and_answers_without_a_score_are_not_shown() -> None:
    scores = [[0.1, 0.9, 0], [NAN, 0.3, 0.2], [NAN, 0.9, 0.1], [0.4, 0.3, 0.2]]
    assert picked(made("a", [0, 1, 2, 2], [1, 0, -1, 0], scores)) == [("a", 13, False, 0.1)]
    assert picked(made("a", [1], [1], None)) == []
    assert picked(made("a", [1], [-2], [[0, 1, 0]])) == []


def test_a_step_is_compared_with_the_best_other_score_where_irrelevant_has_none() -> None:
    assert picked(made("a", [1], [1], [[NAN, 0.5, 0.1]])) == [("a", 10, True, 0.4)]
    assert picked(made("a", [1], [1], [[NAN, 0.5, 0.5, 0.1]])) == [("a", 10, True, 0.0)]


def test_the_lowest_seed_is_shown() -> None:
    one, other = (made("a", [1], [1], [[0, score, 0]], seed=seed) for seed, score in ((4, 0.9), (2, 0.5)))
    assert picked(one, other) == [("a", 10, True, 0.5)]


def test_in_retrieval_label_0_is_a_candidate_like_the_other() -> None:
    found = made("a", [0, 1], [0, 0], [[0.75, 0.5], [0.5, 0.25]])
    assert picked(found, task=RETRIEVAL) == [("a", 10, True, 0.25), ("a", 11, False, 0.25)]


ENTRY: dict[str, Any] = {
    "table": "2a", "method": "Words <b>", "modality": "L", "setting": "zero-shot", "kind": "tfidf", "encoder": "tfidf",
    "settings": {"fit": "video"}, "inputs": ["window"],
}  # fmt: skip


def shown(made_up: MadeUp, monkeypatch: pytest.MonkeyPatch, needs: list[str] | None = None, **changes: Any) -> str:
    given = at(made_up.inputs(ENTRY | changes), 6)
    path = paths.predictions("demo", "demo", "mine", "6s")
    if needs:
        write_predictions(path, Choice, [], spec=given.spec, needs=map(Need.parse, needs), selection="")
    else:
        predict(given, 6, [], path)
    monkeypatch.setattr(type(made_up.study), "load", lambda self, name: made_up.release)
    monkeypatch.setattr(presentation, "example_jobs", lambda plan: [given.job])
    write_study_examples(given.benchmark)
    return Path("results/demo/examples.html").read_text(encoding="utf-8")


def test_an_example_has_its_window_the_true_step_and_the_best_answers(
    made_up: MadeUp, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands, written, write = [], [], examples.write_examples
    monkeypatch.setattr(examples, "timeline_command", lambda *words: commands.append(words) or "")
    monkeypatch.setattr(examples, "write_examples", lambda page, path: written.append(page) or write(page, path))
    text = shown(made_up, monkeypatch)
    articles = re.findall(r'<article class="(\w+)">(.*?)</article>', text, re.DOTALL)
    assert {kind for kind, _ in articles} == {"success", "failure"}
    assert {words[2:] for words in commands} == {("--entry", "mine", "--release", "demo", "--context", "6s")}
    ((_, _, (method,)),) = written[0].tasks
    for example in [*method.successes, *method.failures]:
        scores = [float(answer.score) for answer in example.answers][:3]
        assert scores == sorted(scores, reverse=True)
        assert scores[0] > scores[-1]
    for kind, article in articles:
        rows = re.findall(r'<tr( class="right")?><th scope="row">(\d+): ', article)
        assert [int(rank) for _, rank in rows[:3]] == [1, 2, 3]
        assert [bool(true) for true, _ in rows].count(True) == 1
        assert bool(rows[0][0]) == (kind == "success")
        assert article.count('class="said"') == 1
        for true, row in re.findall(r'<tr( class="right")?>(<th scope="row">.*?)</tr>', article):
            assert f'<mark class="{"false" if true else "true"}">' not in row
    assert any('<mark class="true">' in article for kind, article in articles if kind == "success")
    assert "Words &lt;b&gt;, zero-shot (L)" in text
    assert "they need videos:demo" in text
    assert text == shown(made_up, monkeypatch)


def test_answers_are_those_after_the_choice_on_validation(made_up: MadeUp, monkeypatch: pytest.MonkeyPatch) -> None:
    def irrelevant(self: Spacewalk, inputs: Any, found: list[Choice]) -> tuple[list[Choice], str]:
        return [replace(each, chosen=np.zeros_like(each.chosen)) for each in found], ""

    monkeypatch.setattr(Spacewalk, "select", irrelevant)
    assert {*re.findall(r'<article class="(\w+)">', shown(made_up, monkeypatch))} == {"failure"}


def test_a_method_without_predictions_is_missing(made_up: MadeUp, monkeypatch: pytest.MonkeyPatch) -> None:
    text = shown(made_up, monkeypatch, needs=["videos:demo"])
    assert "<article" not in text
    assert re.search(
        r"<td>Words &lt;b&gt;, zero-shot \(2a\)</td><td>videos:demo</td><td><code class=\"command\">[^<]+examples.html",
        text,
    )


def test_a_retrieval_example_has_query_and_candidates(made_up: MadeUp, monkeypatch: pytest.MonkeyPatch) -> None:
    text = shown(made_up, monkeypatch, table="2b")
    articles = re.findall(r'<article class="(\w+)">(.*?)</article>', text, re.DOTALL)
    assert articles
    for kind, article in articles:
        verdicts = re.findall(r'<span class="verdict">([^<;]*); score', article)
        right, wrong = "the same step", "another step"
        expected = {f"{right}, chosen", wrong} if kind == "success" else {right, f"{wrong}, chosen"}
        assert set(verdicts) == expected
        assert article.count('class="said"') + article.count('class="none"') == 3


def test_a_querys_words_are_marked_by_the_candidate_that_has_them() -> None:
    told = {1.0: "grip bolt", 2.0: "grip", 3.0: "bolt"}
    inputs: Any = SimpleNamespace(
        job=SimpleNamespace(context_s=6.0), text=lambda _: SimpleNamespace(window=lambda t_s, _: told[t_s])
    )
    pictures: Any = SimpleNamespace(clip=lambda *shown: shown[4])
    item = Item(id=0, frame=0, t_s=1.0, label=1, candidates_s=(2.0, 3.0))
    picked = Picked(video="a", item=item, answer=0, scores=np.zeros(2, np.float32), margin=0.0)
    (query, *candidates), _ = _retrieval(inputs, picked, pictures)
    assert query == [("grip", "false"), (" ", ""), ("bolt", "true")]
    assert candidates == [[("grip", "false")], [("bolt", "true")]]


def test_pictures_are_of_the_middle_of_a_window_and_of_its_quarters_or_of_all_shots_in_it() -> None:
    found = [_Pictures._times(*each) for each in ((10.0, 8.0), (1.0, 8.0), (5.0, None))]
    assert found == [[8.0, 10.0, 12.0], [0.0, 1.0, 3.0], [5.0]]
    pictures: Any = _Pictures.__new__(_Pictures)
    file = Path("1.jpg")
    file.write_bytes(b"it")
    pictures.frames, pictures.durations = {}, {"a": 13.5}
    pictures._shots = lambda video: [(time_s, file) for time_s in (5.9, 6.0, 7.0, 13.5, 13.6)]
    assert pictures._of("a", 10.0, 8.0) == ([(time_s, b"it") for time_s in (6.0, 7.0, 13.5)], "")
    (nearest,), note = pictures._of("a", 10.0, 4.0)
    assert (nearest, note[-5:]) == ((7.0, b"it"), "0:07.")


def test_a_picture_is_the_nearest_shots_where_the_video_is_not_kept(
    made_up: MadeUp, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    shards = made_up.inputs(ENTRY).benchmark.pipeline.videos.shards
    path = paths.shots("demo") / "d.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"start_s": [0.0, 2.0], "end_s": [2.0, 4000.0]}), path)
    Path("1.jpg").write_bytes(b"early")
    Path("2.jpg").write_bytes(b"late")
    manifest = paths.manifest(paths.thumbnails("demo"), shards["d"])
    write_manifest(manifest, {"d": {"status": "present", "reason": "", "pictures": {"0": "1.jpg", "1": "2.jpg"}}})
    text = shown(made_up, monkeypatch)
    assert "the nearest picture is from 0:01" in text
    assert "ZWFybHk=" in text
    assert "bGF0ZQ==" not in text
    assert "No pictures." in text
    assert "they need videos" not in text


def test_methods_that_see_windows_are_shown_at_the_length_of_the_papers_figures(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config = {
        "text_encoders": ["tfidf"],
        "contexts_s": {"step_recognition": [30, 50, 70], "intra-video_retrieval": [5, 30]},
    }
    plan = Spacewalk.of(validate({"spacewalk": config}), "spacewalk")
    found = [(job, plan.missing(job.entry, job.release)) for job in presentation.example_jobs(plan)]
    jobs = {job.entry.id: (job.release, job.context_s) for job, needs in found if not needs}
    assert {jobs[name] for name in jobs if name.startswith("2a-")} == {("v2", 50)}
    assert {jobs[name] for name in jobs if name.startswith("2b-")} == {("v1", 30)}
    assert {"2a-tfidf-zero-shot", "2b-tfidf-zero-shot"} <= jobs.keys()
    assert not {"2a-random", "2a-tfidf-hmm"} & jobs.keys()
    assert paths.predictions("spacewalk", "v1", "2b-tfidf-zero-shot", "30s") in presentation.example_inputs(plan)
    assert not any("2a-internvideo-zero-shot" in path.parts for path in presentation.example_inputs(plan))
    assert paths.samples("spacewalk", "v2", STEP_RECOGNITION, "test") in presentation.example_inputs(plan)
    missing = {job.entry.id: needs for job, needs in found if needs}
    assert missing["2a-internvideo-zero-shot"] == (Need("weights", "internvideo"),)
    assert "2a-human" not in missing
    more = Spacewalk.of(validate({"spacewalk": {**config, "text_encoders": ["tfidf", "minilm"]}}), "spacewalk")
    before = presentation.example_params(plan)
    assert before != presentation.example_params(more)
    monkeypatch.setattr(Spacewalk, "revision", 99)
    assert before != presentation.example_params(plan), "scoring chooses answers"


def test_an_entry_is_shown_at_the_length_of_its_own_table() -> None:
    lengths = {"step_recognition": [50], "A8": [72]}
    config = {"tables": ["table2", "tableA8"], "contexts_s": lengths}
    plan = Spacewalk.of(validate({"spacewalk": config}), "spacewalk")
    jobs = {job.entry.id: job.context_s for job in presentation.example_jobs(plan)}
    assert (jobs["2a-internvideo-last-layer"], jobs["a8-lfb-avg"]) == (50, 72)


def test_examples_are_made_again_where_a_method_sees_something_else() -> None:
    made = [
        Spacewalk.of(validate({"demo": {"text_encoders": ["tfidf"], "entries": entries}}), "demo")
        for entries in ({}, {"2a-tfidf-zero-shot": {"inputs": ["window", "recording", "duration"]}})
    ]
    assert len({*map(presentation.example_params, made)}) == 2


def test_examples_of_video_alone_are_made_again_for_other_transcripts() -> None:
    seen = {"text_encoders": [], "video_encoders": ["histogram"]}
    made = [Spacewalk.of(validate({"demo": {**seen, "transcripts": of}}), "demo") for of in ("released", "asr")]
    assert [{job.entry.modality for job in presentation.example_jobs(each)} for each in made] == [{"V"}] * 2
    assert len({*map(presentation.example_params, made)}) == 2, "they show what is said"


def test_picked_is_right_where_the_answer_is_the_label() -> None:
    item = Item(id=0, frame=0, t_s=0.0, label=3)
    scores = np.zeros(4, np.float32)
    assert Picked(video="a", item=item, answer=3, scores=scores, margin=0.0).right
    assert not Picked(video="a", item=item, answer=2, scores=scores, margin=0.0).right


def test_recordings_of_validation_are_not_shown() -> None:
    a, items = made("a", [1], [1], [[0, 0.5, 0.25]])
    assert pick([replace(a, split="val")], {"a": items}, STEP_RECOGNITION) == []
