"""The language model's entry: what it is asked, what becomes of its answers, and what it lacks."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from stepline import paths
from stepline.benchmark import Job, Option
from stepline.benchmarks.spacewalk.benchmark import Spacewalk
from stepline.benchmarks.spacewalk.items import Item
from stepline.benchmarks.spacewalk.methods import llm
from stepline.benchmarks.spacewalk.methods.llm import _pairs, _steps
from stepline.benchmarks.spacewalk.text import RecordingText
from stepline.config import validate
from stepline.datasets.schema import Recording, Step
from stepline.errors import ConfigError, MissingError
from tests.benchmarks.spacewalk.conftest import (
    MadeUp,
    TinyInputs,
    chooser_of,
    predict,
    real_inputs,
    scored,
    segments_of,
)
from tests.llm_answers import completion, question
from tests.server import Request, Server

STEPS = {"kind": "llm", "contexts": [6.0], "inputs": ["window", "train"]}
PAIRS = STEPS | {"table": "2b"}


@pytest.fixture
def serve(serve: Callable[..., Server]) -> Callable[..., Server]:
    """Start a server whose model answers as told."""
    return lambda answer: serve(lambda request: completion(answer(request)))


def asking(inputs: TinyInputs, server: Server) -> TinyInputs:
    """Let the entry ask this server."""
    inputs.options["llm"].update(url=server.url, model="small")
    return inputs


def some_step(request: Request) -> str:
    """Answer by the words of the transcription alone, now and then with nothing."""
    text = question(request).split("\n")[0]
    return "none" if "bolt" in text else f" {len(text) % 4})"


@pytest.mark.parametrize(
    ("entry", "answer", "read"),
    [
        (STEPS, some_step, lambda text: -2 if "bolt" in text else len(text) % 4),
        (PAIRS, lambda request: "BA"[len(question(request).split("\n")[0]) % 2], lambda text: 1 - len(text) % 2),
    ],
    ids=["steps", "pairs"],
)
def test_answers_become_predictions_and_are_asked_for_once(
    made_up: MadeUp, serve: Callable[..., Server], entry: dict[str, object], answer: Callable[..., str], read: object
) -> None:
    server = serve(answer)
    inputs = asking(made_up.inputs(entry), server)
    predictions, about = predict(inputs, 6.0, [], Path("p.parquet"))
    assert [prediction.video for prediction in predictions] == ["d", "e"]
    unread = total = 0
    for prediction in predictions:
        text = inputs.text(prediction.video)
        begin = "Transcription:" if entry is STEPS else "[{frame}]"
        items = inputs.items("test")[prediction.video]
        first = [f"{begin.format(frame=item.frame)} {text.window(item.t_s, 6)}" for item in items]
        assert prediction.chosen.tolist() == [read(line) for line in first]  # type: ignore[operator]
        assert prediction.scores is None
        unread += int((prediction.chosen == -2).sum())
        total += len(items)
    assert str(about["selection"]).endswith(f"5 examples; answers not understood: {unread} of {total}")
    assert (unread > 0) == (entry is STEPS)

    asked = len(server.requests)
    assert 0 < asked <= total
    before = Path("p.parquet").read_bytes()
    predict(inputs, 6.0, [], Path("p.parquet"))
    assert len(server.requests) == asked
    assert Path("p.parquet").read_bytes() == before

    metrics = scored(inputs, 6.0, Path("p.parquet"))["metrics"]
    right = np.concatenate([p.chosen for p in predictions])
    labels = np.concatenate([[i.label for i in inputs.items("test")[p.video]] for p in predictions])
    assert metrics.keys() == {"accuracy"}
    assert metrics["accuracy"]["value"] == pytest.approx(100 * (right == labels).mean())


@pytest.mark.parametrize("entry", [STEPS, PAIRS], ids=["steps", "pairs"])
def test_a_conversation_is_task_examples_and_question(
    made_up: MadeUp, serve: Callable[..., Server], entry: dict[str, object]
) -> None:
    server = serve(lambda request: "1" if entry is STEPS else "A")
    inputs = asking(made_up.inputs(entry), server)
    video, items = next(iter(inputs.items("test").items()))
    chooser_of(inputs, 6.0, [])(video, items[:1])
    (request,) = server.requests
    system, *rest, question = request.json["messages"]
    assert [system["role"], question["role"]] == ["system", "user"]
    assert [message["role"] for message in rest] == ["user", "assistant"] * 5
    answers = [message["content"] for message in rest[1::2]]
    if entry is STEPS:
        assert all(re.fullmatch("[1-9]", answer) for answer in answers)
    else:
        assert answers == ["A", "B", "A", "B", "A"]
    held = {split: [inputs.text(video) for video in made_up.release.splits[split]] for split in ("train", "test")}
    found = []
    for message in rest[::2]:
        told = re.split(r"\] |: ", message["content"].split("\n")[0], maxsplit=1)[1]
        assert told
        found.append([told in text.between(0, 1e9) for text in held["train"]])
        assert not any(told in text.between(0, 1e9) for text in held["test"])
    assert found == [[True, False]] * 3 + [[False, True]] * 2  # of n recordings number i n / 5, rounded down
    assert request.json["max_tokens"] == 1
    assert request.json["model"] == "small"


@pytest.mark.parametrize("entry", [STEPS, PAIRS], ids=["steps", "pairs"])
def test_it_does_not_see_the_list_of_samples(
    made_up: MadeUp, serve: Callable[..., Server], entry: dict[str, object]
) -> None:
    """With half of the samples away, it is asked the same of the others."""
    server = serve(lambda request: str(len(question(request)) % 4) if entry is STEPS else "B")
    method = chooser_of(asking(made_up.inputs(entry), server), 6.0, [])
    for video, listed in made_up.inputs(entry).items("test").items():
        ((_, chosen, _),) = method(video, listed)
        asked = len(server.requests)
        ((_, of_half, _),) = method(video, listed[::2])
        assert of_half.tolist() == chosen[::2].tolist()
        assert len(server.requests) == asked


class Muted(TinyInputs):
    """Of the first training recording nothing is heard."""

    def text(self, video: str) -> RecordingText:
        found = super().text(video)
        return RecordingText(found.recording, (), recognised=False) if video == "a" else found


def test_a_recording_without_text_gives_no_example(made_up: MadeUp, serve: Callable[..., Server]) -> None:
    server = serve(lambda request: "0")
    given = asking(made_up.inputs(STEPS, Muted), server)
    method = chooser_of(given, 6.0, [])
    video, items = next(iter(given.items("test").items()))
    method(video, items[:1])
    assert len(server.requests[0].json["messages"]) == 1 + 2 * 2 + 1
    assert getattr(method, "selection", "").startswith("2 examples; ")


def test_an_example_has_text_in_each_of_its_windows(made_up: MadeUp, serve: Callable[..., Server]) -> None:
    told = {1.0: "grip", 2.0: "", 3.0: "bolt"}
    text = SimpleNamespace(window=lambda t_s, _: told[t_s])
    method: Any = chooser_of(asking(made_up.inputs(PAIRS), serve(lambda _: "A")), 6.0, [])
    found = [
        method._told(text, Item(id=0, frame=0, t_s=1.0, label=0, candidates_s=times_s))
        for times_s in ((3.0, 2.0), (3.0, 1.0))
    ]
    assert found == [False, True]


@pytest.mark.parametrize(("boundary_s", "least_s"), [(0.2, 1.0), (0.3, 1.2)])
def test_pairs_that_are_too_short_for_the_samples_distances_are_no_examples(
    made_up: MadeUp,
    serve: Callable[..., Server],
    monkeypatch: pytest.MonkeyPatch,
    boundary_s: float,
    least_s: float,
) -> None:
    """Twice the least distance of candidates, 0.5 s, or four times that of a boundary."""
    asked: list[float] = []
    monkeypatch.setattr(llm, "_pairs", lambda recording, number, fps, length_s: asked.append(length_s) or [])
    study = replace(made_up, study=replace(made_up.study, boundary_s=boundary_s))
    chooser_of(asking(study.inputs(PAIRS), serve(lambda _: "A")), 6.0, [])
    assert asked == pytest.approx([least_s] * 5)


def of(*segments: tuple[int, int]) -> Recording:
    """Return a recording at 10 frames per second with 10 steps: segments of label and frames."""
    made = segments_of(*segments)
    steps = tuple(Step(caption=str(k), transcript="", animation_s=None) for k in range(11))
    return Recording(video="x", split="train", duration_s=made[-1].end_s, segments=made, steps=steps)


def test_examples_of_steps_are_middles_of_segments() -> None:
    """With K = 10 the wanted steps are 2, 4, 6, 8, 10; the longest segment of a step is first."""
    recording = of((-1, 100), (2, 30), (0, 50), (4, 40), (2, 60), (9, 10), (-1, 10))
    assert [_steps(recording, number, 10)[0].label for number in range(5)] == [2, 4, 4, 9, 9]
    assert _steps(recording, 0, 10) == [
        Item(id=0, frame=250, t_s=25.0, label=2),
        Item(id=0, frame=115, t_s=11.5, label=2),
        Item(id=0, frame=200, t_s=20.0, label=4),
        Item(id=0, frame=285, t_s=28.5, label=9),
    ]


def test_examples_of_retrieval_stand_around_a_boundary() -> None:
    """Of pairs of steps (1, 2), (2, 3), (3, 4) the second has less than 4 s; the query is a quarter of the shorter."""
    recording = of((-1, 10), (1, 100), (2, 80), (3, 30), (4, 200), (5, 40), (0, 90))
    assert [item.t_s for item in _pairs(recording, 0, 10, 4.0)] == [11.0 - 2.0, 42.0 - 1.0]
    (first, *_), (second, *_), (third, *_), (fourth, *_) = (_pairs(recording, number, 10, 8.0) for number in range(4))
    assert (first.frame, first.label, first.candidates_s) == (90, 0, (5.0, 13.0))
    assert (second.frame, second.label, second.candidates_s) == (90, 1, (13.0, 5.0))
    assert (third.frame, third.label, third.candidates_s) == (130, 0, (17.0, 9.0))
    assert (fourth.frame, fourth.label, fourth.candidates_s) == (130, 1, (9.0, 17.0))
    assert [item.t_s for item in _pairs(recording, 4, 10, 4.0)] == [41.0, 9.0]


def label(recording: Recording, frame: float) -> int:
    (found,) = [s.label for s in recording.segments if s.start_frame <= round(frame) < s.end_frame]
    return found


def test_examples_of_the_release_show_their_label(in_spacewalk: Path, serve: Callable[..., Server]) -> None:
    """On real data the positive shares the query's segment and label, the negative has another label."""
    for entry, release in (("2a-llm", "v2"), ("2b-llm", "v0"), ("2b-llm", "v1")):
        inputs = real_inputs(entry, release, llm={"model": "small"})
        fps = inputs.annotation.fps
        for number, video in enumerate(inputs.recordings("train")[::2]):
            recording = inputs.annotation.recordings[video]
            if entry == "2a-llm":
                item = _steps(recording, number, fps)[0]
                assert label(recording, item.t_s * fps) == item.label == 1 + (2 * number + 1) * recording.n_steps // 10
            else:
                item = _pairs(recording, number, fps, 60.0)[0]
                right, wrong = item.candidates_s[item.label], item.candidates_s[1 - item.label]
                assert (
                    label(recording, right * fps) == label(recording, item.t_s * fps) != label(recording, wrong * fps)
                )
                assert abs(right - item.t_s) == pytest.approx(abs(wrong - item.t_s))
                assert abs(right - item.t_s) > 29.9


def test_a_recording_of_the_release(in_spacewalk: Path, serve: Callable[..., Server]) -> None:
    """The question about the sample that the paper quotes reaches the model as it is printed there."""
    server = serve(lambda request: "B")
    inputs = real_inputs("2b-llm", "v0", llm={"url": server.url, "model": "m"})
    items = [item for item in inputs.items("test")["09122021"] if item.id == 882]
    ((_, chosen, _),) = chooser_of(inputs, 60.0, [])("09122021", items)
    assert chosen.tolist() == [1]
    lines = question(server.requests[0]).split("\n")
    assert [line[:35] for line in lines] == [
        "[654395] Hey, Bobby. Yeah. The widt",
        "Is transcription A or B from the sa",
        "A) [21777, 21837] Copy all, Thomas.",
        "B) [21789, 21849] Hey, Bobby. Yeah.",
    ]
    paths.answers().unlink()


def planned(name: str = "spacewalk", **llm: object) -> Spacewalk:
    given = {"releases": ["v2"], "text_encoders": [], "video_encoders": [], "transcripts": "released", "llm": llm}
    config = validate({name: given if name == "spacewalk" else given | {"releases": ["demo"]}})
    return Spacewalk.configured(config, name)


def missing(plan: Spacewalk) -> list[str]:
    """Return what the entry is missing."""
    return list(map(str, plan.missing(plan.entries["2a-llm"], "v2")))


def test_a_model_must_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    plan = planned()
    assert missing(plan) == ["config:spacewalk.llm.model=NAME"]
    assert "2a-llm" not in {job.entry.id for job in plan.jobs("table2")}
    command = plan.filled_by("table2.csv", plan.missing(plan.entries["2a-llm"], "v2"))
    assert command == "snakemake --cores 8 results/spacewalk/table2.csv --config 'spacewalk={llm: {model: NAME}}'"
    assert "2a-llm" in plan.shown
    assert "2a-llm" not in planned("demo").shown
    assert "2a-llm" in planned("demo", model="m", url="http://localhost/v1").shown


def test_strict_does_not_ask_for_a_model() -> None:
    given = {"releases": ["v2"], "text_encoders": ["tfidf"], "video_encoders": []}
    Spacewalk.of(validate({"strict": True, "spacewalk": given}), "spacewalk")
    with pytest.raises(MissingError, match="key:OPENAI_API_KEY"):
        Spacewalk.of(validate({"strict": True, "spacewalk": given | {"llm": {"model": "m"}}}), "spacewalk")


def test_openai_needs_a_key_until_the_predictions_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = planned(model="m")
    assert missing(plan) == ["key:OPENAI_API_KEY"]
    path = paths.predictions("spacewalk", "v2", "2a-llm", "60s")
    path.parent.mkdir(parents=True)
    path.touch()
    assert missing(planned(model="m")) == []
    both = planned(model="m")
    both.options["releases"] = ["v2", "v1"]
    assert missing(both) == ["key:OPENAI_API_KEY"], "of the other release"
    path.unlink()
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    assert missing(planned(model="m")) == []
    monkeypatch.delenv("OPENAI_API_KEY")
    assert missing(planned(model="m", url="http://localhost:8000/v1")) == []


def test_no_predictions_are_waited_for_on_a_release_without_the_task() -> None:
    plan = planned(model="m")
    plan.options["releases"] = ["v1", "v2"]
    for length_s in plan.windows("2b-llm"):
        path = paths.predictions("spacewalk", "v1", "2b-llm", paths.context_label(length_s))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    assert plan.missing(plan.entries["2b-llm"], "v1") == ()


def test_what_is_asked_decides_the_spec_and_stands_in_the_options() -> None:
    local = {"model": "m", "url": "http://localhost:8000/v1"}

    def spec(**changes: object) -> str:
        plan = planned(**local | changes)
        return plan.spec(Job(release="v2", entry=plan.entries["2a-llm"], context_s=60.0))

    assert spec(concurrency=9) == spec()
    different = {
        spec(),
        spec(model="n"),
        spec(max_tokens=2),
        spec(max_tokens=None),
        spec(url="http://localhost:8001/v1"),
    }
    assert len(different) == 5
    released = Option("released", "released")
    assert planned().shown_options(planned().entries["2a-llm"], "v2") == {"transcripts": released}
    plan = planned(**local)
    urls = "http://localhost:8000/v1", "https://api.openai.com/v1"
    asked = {"model": Option("m", None, said=False), "url": Option(*urls, said=False)}
    assert plan.shown_options(plan.entries["2a-llm"], "v2") == asked | {"transcripts": released}


@pytest.mark.parametrize("llm", [{"max_tokens": 0}, {"model": ""}, {"concurrency": 0}, {"temperature": 1}])
def test_other_values_are_refused(llm: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match="config: spacewalk.llm."):
        planned(**llm)
