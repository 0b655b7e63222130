"""Search: what was planted comes first, by the rules that are written down, and what cannot be searched is one line.

This module is itself a family: a network that gives a clip's mean colour, and a tower that knows three colours.
"""

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from zlib import crc32

import numpy as np
import pytest

pytest.importorskip("torch")

from stepline import cli, paths
from stepline.asr import transcript
from stepline.asr.transcript import Sentence
from stepline.availability import Record, write_availability, write_manifest
from stepline.backbones import registry
from stepline.backbones.registry import presets, tower_of, towers
from stepline.backbones.sentence import MODELS, model_files
from stepline.cli.search import moment
from stepline.config import validate
from stepline.datasets import hirest
from stepline.datasets.studies import Study
from stepline.errors import ConfigError, MissingError, StoreError
from stepline.features import store
from stepline.features.bank import Bank
from stepline.features.pool import PooledSpec, pool
from stepline.features.work import works
from stepline.io import write_text
from stepline.pipeline import Pipeline
from stepline.plans import pipeline as pipeline_of
from stepline.search import searcher, sources, transcripts
from stepline.search.searcher import CAPTIONED, EQUAL, SAID, SEEN, SPOKEN, Found, Match, Searcher, Spread, checked
from stepline.search.state import state
from stepline.search.steps import Step
from stepline.spec import ClipSpec, TextSpec
from tests.features import toy
from tests.features.test_extract import present
from tests.features.test_extract import store as extracted
from tests.media.clips import make

COLOURS = {"red": (1, -1, -1), "green": (-1, 1, -1), "blue": (-1, -1, 1)}
SPEC = replace(
    toy.SPEC, name="colours", label="1fps", fps=1, architecture="colours", num_frames=1, hop=1, mean=(0.5, 0.5, 0.5),
    std=(0.5, 0.5, 0.5), output="mean", dimension=3,
)  # fmt: skip
TOWER = TextSpec(
    name="colours-text",
    label="words2",
    revision=1,
    architecture="colours",
    weights=(),
    licence="Apache-2.0",
    max_tokens=2,
    output="sum",
    dimension=3,
)


def load(spec: ClipSpec, files: Mapping[str, Path]) -> Any:
    return toy.Means()


class Tower:
    spec = TOWER

    def tokens(self, text: str) -> list[int]:
        return [list(COLOURS).index(word) for word in text.split() if word in COLOURS][: TOWER.max_tokens]

    def encode(self, tokens: list[int]) -> np.ndarray:
        return np.float32([list(COLOURS.values())[token] for token in tokens]).sum(axis=0)


def load_text(spec: TextSpec, files: Mapping[str, Path]) -> Tower:
    return Tower()


def registered(patched: pytest.MonkeyPatch, module: str = __name__, spec: ClipSpec = SPEC, tower: Any = TOWER) -> None:
    """Make a family of one network, ``colours``, and its tower known."""
    patched.setitem(registry.FAMILIES, "colours", module)
    patched.setattr(registry, "presets", lambda: {"colours": spec})
    patched.setattr(registry, "towers", lambda: {tower.name: tower})


@pytest.fixture(autouse=True)
def _family(monkeypatch: pytest.MonkeyPatch) -> None:
    registered(monkeypatch)


class Words:
    """A sentence encoder that counts words. encoded: how often it was asked for a vector, in all."""

    encoded = 0

    def __init__(self, name: str) -> None:
        self.spec = MODELS[name]

    def tokens(self, text: str) -> list[int]:
        return [crc32(word.encode()) % 997 for word in text.lower().split()]

    def encode(self, tokens: list[int]) -> np.ndarray:
        Words.encoded += 1
        return np.bincount(tokens, minlength=997).astype(np.float32)


@pytest.fixture
def words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transcripts, "SentenceEncoder", Words)


def configured(*backbones: str, **more: Any) -> Pipeline:
    """Return the pipeline of a data set with the videos a and b, which may be empty files."""
    for name in ("a", "b"):
        Path("clips").mkdir(exist_ok=True)
        Path(f"clips/{name}.mp4").touch()
    mine = {"videos": "clips", "backbones": list(backbones), **more}
    return Pipeline.of(validate({"datasets": {"mine": mine}}), "mine")


def put(pipeline: Pipeline, rows: Mapping[str, Any], **more: Any) -> None:
    """Store rows, a second apart, or their parts, as the features of the network."""
    made = {video: each if store.Part in map(type, each) else np.float32(each) for video, each in rows.items()}
    spec = pipeline.features.spec_of("colours")
    store.write(paths.features("mine", "000", spec), spec, made, 1.0, **more)


def say(pipeline: Pipeline, said: Mapping[str, list[tuple[str, float]]]) -> None:
    """Write transcripts in which each sentence lasts a second."""
    folder = paths.transcripts("mine", "pocketsphinx")
    for video, lines in said.items():
        transcript.write(folder / f"{video}.parquet", [Sentence(text, at, at + 1) for text, at in lines])
    videos = {video: {"status": "present", "reason": ""} for video in said}
    silent = {"silent": {"status": "missing", "reason": "no audio stream"}}
    write_manifest(paths.manifest(folder, "000"), videos | silent, **pipeline.speech.record)


def find(pipeline: Pipeline, text: str, *, backbone: str | None = None, **more: Any) -> Found:
    checked(text, more.get("top", 10), more.get("window_s", 10.0))
    return Searcher.open(pipeline, backbone).ask(text, **more)


def places(matches: tuple[Match, ...]) -> list[tuple[str, float]]:
    return [(match.video, match.time_s) for match in matches]


def ranked(found: Found) -> list[str]:
    return [each.video for each in found.videos]


def test_what_was_planted_in_videos_is_found_first() -> None:
    def filmed(name: str, colour: str, start_s: int, end_s: int) -> None:
        def picture(index: int) -> np.ndarray:
            shown = colour if start_s <= index / 5 < end_s else "green"
            return np.full((32, 32, 3), [255 * (value > 0) for value in COLOURS[shown]], np.uint8)

        make(Path(f"clips/{name}.mp4"), [Fraction(i, 5) for i in range(150)], picture=picture)

    pipeline = configured("histogram", "colours")
    filmed("a", "blue", 12, 15)
    filmed("b", "red", 20, 22)
    write_availability("availability.json", [present(Path(f"clips/{name}.mp4")) for name in ("a", "b")])
    extracted(Path(), *works(pipeline, "colours", "000"))
    for colour, video, time_s in (("red", "b", 20.0), ("blue", "a", 12.0)):
        found = find(pipeline, colour)
        assert (found.backbone, found.similarity, found.searched, found.listed) == ("colours", "cosine", 2, 2)
        assert (ranked(found)[0], places(found.matches)[0]) == (video, (video, time_s))
        assert found.matches[0].score > 0.95 > 0.5 > found.matches[1].score
        assert find(pipeline, colour) == found


def test_equal_matches_are_in_the_order_of_times_and_then_of_ids_and_videos_in_that_of_ids() -> None:
    pipeline = configured("colours")
    red, green = COLOURS["red"], COLOURS["green"]
    put(pipeline, {"b": [red, green, red], "a": [green, green, red]})
    found = find(pipeline, "red", window_s=1)
    assert places(found.matches)[:3] == [("b", 0.0), ("a", 2.0), ("b", 2.0)]
    put(pipeline, {"b": [red, green], "a": [green, red]})
    assert ranked(find(pipeline, "red")) == ["a", "b"]
    assert places(find(pipeline, "red", window_s=1, top=1).matches) == [("b", 0.0)]
    assert len(find(pipeline, "red", window_s=1, top=1).videos) == 1


def test_lengths_count_where_the_networks_own_code_takes_the_dot_product(monkeypatch: pytest.MonkeyPatch) -> None:
    pipeline = configured("colours")
    put(pipeline, {"a": [(1, -1, -1), (9, -4, -4)]})
    found = find(pipeline, "red")
    assert (found.similarity, places(found.matches), found.matches[0].score) == ("cosine", [("a", 0.0)], 1.0)
    monkeypatch.setattr(registry, "DOT", ("colours",))
    found = find(pipeline, "red")
    assert (found.similarity, places(found.matches), found.matches[0].score) == ("dot product", [("a", 1.0)], 17.0)
    monkeypatch.setattr(registry, "presets", lambda: {"colours": replace(SPEC, normalise=True)})
    pipeline = configured("colours")
    put(pipeline, {"a": [COLOURS["red"]]})
    assert find(pipeline, "red").similarity == "cosine"


def test_times_are_those_of_spans_and_of_listed_clips(monkeypatch: pytest.MonkeyPatch) -> None:
    pipeline, red, green = configured("colours"), COLOURS["red"], COLOURS["green"]
    spans = [
        store.Part(np.float32([green, green]), 5.0, 5.0, 7.0),
        store.Part(np.float32([green, red]), 40.0, 40.0, 42.0),
    ]
    put(pipeline, {"a": spans})
    assert places(find(pipeline, "red").matches)[0] == ("a", 41.0)

    monkeypatch.setattr(registry, "presets", lambda: {"colours": replace(SPEC, placement="middles")})
    Path("clips.csv").write_text("video,start_s,end_s\na,3.5,5\na,20,25\n")
    pipeline = configured("colours", clips="clips.csv")
    put(pipeline, {"a": [green, red]}, clips={"a": [(3.5, 5.0), (20.0, 25.0)]})
    found = find(pipeline, "red")
    assert places(found.matches) == [("a", 20.0), ("a", 3.5)]
    assert span(found) == (20.0, 25.0), "the moment of a listed clip ends with it"


def test_features_on_object_storage_are_found(remote: str) -> None:
    pipeline, red, green = configured("colours"), COLOURS["red"], COLOURS["green"]
    pipeline.config["features"]["store"] = remote
    spec, (place,) = pipeline.features.spec_of("colours"), pipeline.features.stores("colours")
    store.write(place, spec, {"a": np.float32([green] * 3), "b": np.float32([green, red])}, 1.0)
    with pytest.raises(MissingError):
        find(pipeline, "red")
    write_manifest(paths.features_manifest("mine", "000", spec), {})
    assert places(find(pipeline, "red").matches)[0] == ("b", 1.0)


def test_words_that_the_tower_does_not_see_are_named() -> None:
    pipeline = configured("colours")
    put(pipeline, {"a": [COLOURS["red"]]})
    assert find(pipeline, "red").unseen == ()
    assert find(pipeline, "a red door").unseen == ("a", "door")
    assert find(pipeline, "red blue green").unseen == ("green",)
    with pytest.raises(ConfigError, match="colours knows no word of 'yellow door'"):
        find(pipeline, "yellow door")


def test_what_is_said_is_found_and_each_sentence_is_encoded_once(words: None) -> None:
    pipeline = configured("histogram")
    lines = [("now  cut the carrots", 4.0), ("boil the water", 31.5), ("", 40.0)]
    say(pipeline, {"a": lines, "b": [("boil the big potatoes", 7.0)]})
    Words.encoded = 0
    found = find(pipeline, "boil water")
    assert found.what == "speech, by minilm on the pocketsphinx transcripts"
    assert (found.matches[0].sentence, found.matches[0].time_s) == ("boil the water", 31.5)
    assert places(found.matches) == [("a", 31.5), ("b", 7.0), ("a", 4.0)]
    assert ranked(found) == ["a", "b"]
    assert Words.encoded == 4
    assert find(pipeline, "boil water") == found
    assert Words.encoded == 5
    (made,) = Path("features").glob("minilm/*/mine/search/sentences/embeddings")
    assert (made.parents[3] / "spec.json").exists()


def test_unsaid_words_are_named_and_another_language_than_that_of_the_encoder(
    words: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline = configured("histogram")
    say(pipeline, {"a": [("boil the water", 1.0)]})
    assert find(pipeline, "boil Zucchini water").unsaid == ("zucchini",)
    assert find(pipeline, "water").hint == ""
    monkeypatch.setattr(transcripts.Transcripts, "language", lambda *_: "de")
    assert find(pipeline, "water").hint.startswith("minilm was trained on English, and transcripts are in de: ")
    assert find(pipeline, "water", backbone="words").hint == ""


def test_a_network_with_a_tower_and_features_goes_before_what_is_said(words: None) -> None:
    pipeline = configured("histogram", "colours")
    say(pipeline, {"a": [("a red door", 2.0)]})
    assert find(pipeline, "red").backbone == "minilm"
    put(pipeline, {"a": [COLOURS["red"]]})
    assert find(pipeline, "red").backbone == "colours"
    assert find(pipeline, "red", backbone="minilm").matches[0].sentence == "a red door"


@pytest.mark.slow
def test_a_real_encoder_finds_what_is_meant() -> None:
    if model_files("minilm") is None:
        pytest.skip("all-MiniLM-L6-v2 is not installed")
    pytest.importorskip("transformers")
    pipeline = configured("histogram")
    lines = [("first we chop the vegetables", 2.0), ("the bicycle needs a new tyre", 30.0), ("serve the soup", 60.0)]
    say(pipeline, {"a": lines, "b": [("plant the tree in the garden", 5.0)]})
    assert find(pipeline, "repairing a wheel").matches[0].sentence == "the bicycle needs a new tyre"
    assert places(find(pipeline, "cutting carrots and onions").matches)[0] == ("a", 2.0)
    assert ranked(find(pipeline, "digging a hole for a sapling"))[0] == "b"


def test_a_store_without_rows_is_no_features() -> None:
    pipeline = configured("colours")
    put(pipeline, {})
    with pytest.raises(MissingError, match="mine has no features of colours: add it"):
        find(pipeline, "red")
    put(pipeline, {"a": np.zeros((0, 3)), "b": [COLOURS["red"]]})
    assert ranked(find(pipeline, "red")) == ["b"]


def test_released_transcripts_are_searched_where_they_are_configured(
    words: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline = pipeline_of(validate({"spacewalk": {"video_encoders": [], "tables": ["table2b_minilm"]}}), "spacewalk")
    with pytest.raises(
        MissingError,
        match="spacewalk has neither transcripts nor features .*: for transcripts run `stepline fetch spacewalk/v0`",
    ):
        find(pipeline, "the airlock")
    write_text("datasets/spacewalk/v1/release.json", "{}")
    write_text("v1/09122021.csv", "Sentence,Global start,Global end\nGo ahead,1,2\nOpen the airlock,60,62\n")
    monkeypatch.setattr(Study, "load", lambda self, name: SimpleNamespace(recordings={"09122021": None}))
    monkeypatch.setattr(Study, "release_file", lambda self, name, path: Path(name, Path(path).name))
    found = find(pipeline, "the airlock", backbone="minilm")
    assert found.what == "speech, by minilm on the released transcripts"
    assert (found.searched, found.listed) == (1, 18)
    assert (found.matches[0].sentence, found.matches[0].time_s) == ("Open the airlock", 60.0)


def test_hirests_released_transcripts_are_searched_by_their_times(words: None, monkeypatch: pytest.MonkeyPatch) -> None:
    pipeline = pipeline_of(validate({"hirest": {}}), "hirest")
    with pytest.raises(MissingError, match="with speech: run `stepline fetch hirest/asr`$"):
        find(pipeline, "the jar", backbone="minilm")
    write_text("datasets/hirest/asr/release.json", "{}")
    said = {"j1": [("fill\nthe jar", 60.0), ("", 70.0), ("hello", 1.0)], "j2": [("", 3.0)]}
    subtitles = {
        video: tuple(hirest.Subtitle(start_s=at, end_s=at + 2, text=text) for text, at in lines)
        for video, lines in said.items()
    }
    monkeypatch.setattr(hirest, "subtitles", lambda videos: subtitles)
    found = find(pipeline, "the jar", backbone="minilm")
    assert found.what == "speech, by minilm on the released transcripts"
    assert [(match.sentence, match.time_s) for match in found.matches] == [("fill the jar", 60.0), ("hello", 1.0)]
    assert ranked(found) == ["j1"]


@pytest.mark.parametrize(
    ("text", "more", "line"),
    [
        (" ", {}, "the search text must have 1 to 500 printable characters, not 0"),
        ("a" * 501, {}, "must have 1 to 500 printable characters, not 501"),
        ("a\x07", {}, "printable characters"),
        ("caf\udce9", {}, "printable characters"),
        ("red", {"top": 0}, "top must be at least 1"),
        ("red", {"window_s": -1.0}, "window not negative"),
        ("red", {"window_s": float("nan")}, "window not negative"),
        ("red", {"backbone": "colors"}, "backbone 'colors' is not known; did you mean 'colours'?"),
        ("red", {"backbone": "histogram"}, "backbone histogram has no text tower"),
        ("red", {"backbone": "colours"}, "mine has no features of colours: add it to its backbones"),
        ("red", {"backbone": "minilm"}, "mine has no transcripts with speech"),
        (
            "red",
            {},
            "nor features of a backbone with a text tower: for transcripts run `snakemake`; for features add",
        ),
    ],
)
def test_what_cannot_be_searched_is_one_line(text: str, more: dict[str, Any], line: str) -> None:
    with pytest.raises((ConfigError, MissingError)) as error:
        find(configured("histogram"), text, **more)
    assert line in str(error.value)
    assert "\n" not in str(error.value)


def test_pooled_rows_are_searched_until_their_features_change() -> None:
    pipeline = configured("colours")
    red, green = COLOURS["red"], COLOURS["green"]
    put(pipeline, {"a": [red, red, green, green], "b": [green, green]})
    bank = Bank.open(pipeline.features.stores("colours"), SPEC)
    pool(bank, PooledSpec.of(bank, "segment"), "mine", {"a": [(0, 2), (2, 4)], "b": [(0, 2)]})
    first = state(pipeline, "colours.segment")
    found = find(pipeline, "red", backbone="colours.segment", top=2)
    assert (found.backbone, places(found.matches)[0]) == ("colours.segment", ("a", 0.0))
    assert (found.videos[0].video, found.videos[0].start_s, found.videos[0].end_s) == ("a", 0.0, 2.0)
    put(pipeline, {"a": [green, green, red, red], "b": [green, green]})
    assert state(pipeline, "colours.segment") != first
    with pytest.raises(
        StoreError,
        match="^the features of a changed after they were pooled: run `stepline bank pool .*--segments FILE`$",
    ):
        find(pipeline, "red", backbone="colours.segment")


def test_where_no_speech_is_wanted_the_line_says_how_to_want_it() -> None:
    with pytest.raises(MissingError, match="for transcripts add `speech` to its `stages` and run `snakemake`"):
        find(configured("histogram", stages=["features"]), "red")


def test_the_verb_prints_and_writes_the_same_each_time(words: None, capsys: pytest.CaptureFixture[str]) -> None:
    say(configured("histogram"), {"a": [("boil the water", 3671.5)], "b": [("cut the bread", 1.0)]})
    write_text("config.yaml", "datasets: {mine: {videos: clips}}\n")
    arguments = ["search", "mine", "boil <b>water</b> & water", "--top", "1", "--window", "5"]
    assert cli.main(arguments) == 0
    said = capsys.readouterr()
    assert said.err == ""
    first, *_, last = said.out.splitlines()
    assert first == "speech, by minilm on the pocketsphinx transcripts; cosine; 2 of 2 videos"
    assert "   1  a         0.577   1:01:11  boil the water" in said.out.splitlines()
    page = Path(last.removeprefix("Page: "))
    assert page.parent == Path("results/mine/search")
    content = page.read_bytes()
    assert cli.main(arguments) == 0
    assert capsys.readouterr().out == said.out
    assert page.read_bytes() == content
    assert cli.main(["search", "yours", "x"]) == 2
    assert capsys.readouterr().err.startswith("error: dataset 'yours' is not known; choose from")


def test_each_networks_tower_shares_its_space(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "towers", towers)
    found = {name: tower.name if (tower := tower_of(spec)) else "" for name, spec in presets().items()}
    alone = "timesformer", "s3d-htstep"
    assert found == {
        name: "" if name.startswith(alone) else f"{spec.weights[0]}-text" for name, spec in presets().items()
    }


def test_models_by_name_bring_their_own_tower(monkeypatch: pytest.MonkeyPatch) -> None:
    from stepline.backbones import named

    def text_spec(name: str) -> TextSpec:
        if name != "open_clip:both/tag":
            raise ConfigError(f"{name} has no text tower")
        return TOWER

    monkeypatch.setattr(named, "text_spec", text_spec)
    by_name = replace(SPEC, architecture="open_clip", weights=("open_clip:both/tag",))
    assert tower_of(by_name) is TOWER
    assert tower_of(replace(by_name, architecture="hf", weights=("hf:pictures/alone@1",))) is None


def span(found: Found, place: int = 0) -> tuple[float, float]:
    return found.videos[place].start_s, found.videos[place].end_s


def test_the_moment_that_is_seen_is_a_quarter_of_32_frames_on_each_side_of_the_best() -> None:
    pipeline, green = configured("colours"), COLOURS["green"]
    long = [green] * 320
    long[155] = COLOURS["red"]  # one of 32: int(linspace(0, 319, 32))[15] is 154, [16] is 164
    long[164] = (1, 0, -1)
    put(pipeline, {"a": long, "b": [green, green, COLOURS["red"], green, green]})
    found = find(pipeline, "red")
    assert found.moments_by == SEEN
    assert ranked(found) == ["b", "a"]
    assert (span(found), found.videos[0].peak_s) == ((1.0, 4.0), 2.0)
    assert (span(found, 1), found.videos[1].peak_s) == ((82.0, 246.0 + 1), 164.0)


def test_the_moment_that_is_heard_is_a_quarter_of_the_sentences_on_each_side_of_the_best(words: None) -> None:
    pipeline = configured("histogram")
    say(pipeline, {"a": [(f"word{place}", 10.0 * place) for place in range(12)]})
    found = find(pipeline, "word5")
    assert found.moments_by == SAID
    assert (span(found), found.videos[0].peak_s) == ((20.0, 81.0), 50.0)
    assert span(find(pipeline, "word11")) == (80.0, 111.0)
    say(pipeline, {"a": [(f"word{place}", 10.0 * place) for place in range(80)]})
    assert find(pipeline, "word41").videos[0].peak_s == 410.0
    assert span(find(pipeline, "word41")) == (210.0, 611.0)


def test_steps_are_from_what_is_said_where_something_is_and_equal_parts_elsewhere(
    words: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "model_files", lambda name: {name: Path()} if name == "minilm" else None)
    pipeline = configured("colours")
    red, green = COLOURS["red"], COLOURS["green"]
    put(pipeline, {"a": [green] * 10 + [red] * 10 + [green] * 10, "b": [green] * 40})
    say(pipeline, {"a": [("cut the door", 8.0), ("paint the red door", 9.5), ("wait a day", 16.0), ("bye", 29.0)]})
    one, two = find(pipeline, "red").videos
    assert (one.video, one.steps_by, two.video, two.steps_by) == ("a", SPOKEN, "b", EQUAL)
    assert (one.start_s, one.end_s) == (3.0, 18.0)
    assert one.steps == (Step(3.0, 9.5, "cut the door"), Step(9.5, 18.0, "paint the red door"))
    assert {step.label for step in two.steps} == {""}
    assert (two.steps[0].start_s, two.steps[-1].end_s) == (two.start_s, two.end_s)
    monkeypatch.setattr(sources, "model_files", lambda name: None)
    assert [each.steps_by for each in find(pipeline, "red").videos] == [EQUAL, EQUAL]


def test_the_joint_models_steps_come_first_where_rows_are_seconds(words: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def steps(model: str, rows: Any, query: Any, lines: Any, vectors: Any, start_s: float, end_s: float) -> Any:
        assert (model, query, len(lines), len(vectors)) == ("model", "raw red", 1, 1)
        return (Step(start_s, end_s, "paint it"),) if len(rows) == 3 else ()

    monkeypatch.setattr(sources, "model_files", lambda name: {name: Path()})
    monkeypatch.setattr(searcher, "load_joint", lambda backbone: "model" if backbone == "colours" else None)
    monkeypatch.setattr(searcher, "raw_query", lambda encoder, text: f"raw {text}")
    monkeypatch.setattr(searcher, "joint_steps", steps)
    pipeline, green = configured("colours"), COLOURS["green"]
    shifted = [store.Part(np.float32([green] * 3), 5.0, 5.0, 8.0)]
    put(pipeline, {"a": [COLOURS["red"]] * 3, "b": shifted, "c": [green] * 4})
    say(pipeline, {video: [("a red door", 0.0)] for video in ("a", "b")} | {"c": [("a red door", 1.0)]})
    found = {each.video: each for each in find(pipeline, "red").videos}
    assert found["a"].steps == (Step(0.0, 1.0, "paint it"),)
    assert {video: each.steps_by for video, each in found.items()} == {"a": CAPTIONED, "b": EQUAL, "c": SPOKEN}


def test_transcripts_of_another_recogniser_are_searched_where_the_configured_one_made_none(words: None) -> None:
    pipeline = configured("histogram")
    say(pipeline, {"a": [("boil the water", 4.0)]})
    whisper = validate({"datasets": {"mine": {"videos": "clips"}}, "asr": {"engine": "whisper"}})
    pipeline = Pipeline.of(whisper, "mine")
    found = find(pipeline, "boil")
    assert found.what == "speech, by minilm on the pocketsphinx transcripts"
    assert found.matches[0].sentence == "boil the water"
    paths.manifest(paths.transcripts("mine", "pocketsphinx"), "000").unlink()
    with pytest.raises(
        MissingError, match=r"run `stepline fetch weights/.*` and run `snakemake`, because whisper needs it"
    ):
        find(pipeline, "boil")


def test_by_words_nothing_is_encoded_and_unknown_words_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "model_files", lambda name: None)
    pipeline = configured("histogram")
    say(pipeline, {"a": [("Boil the water", 4.0), ("water", 31.5)], "b": [("peel the potatoes", 7.0)]})
    found = find(pipeline, "potatoes zzz")
    assert (found.backbone, found.similarity, found.unseen) == ("words", "BM25", ("zzz",))
    assert places(found.matches) == [("b", 7.0)]
    assert ranked(found) == ["b"]
    assert places(find(pipeline, "WATER").matches) == [("a", 31.5), ("a", 4.0)]
    with pytest.raises(ConfigError, match="words knows no word of 'zzz'"):
        find(pipeline, "zzz")


def test_named_videos_alone_are_searched() -> None:
    pipeline = configured("colours")
    red, green = COLOURS["red"], COLOURS["green"]
    put(pipeline, {"a": [red, green, green], "b": [green, green, red]})
    found = find(pipeline, "red", videos=["b"])
    assert (ranked(found), places(found.matches)[0], found.searched, found.among) == (["b"], ("b", 2.0), 1, ("b",))
    assert find(pipeline, "red", videos=["a", "b"]).matches == find(pipeline, "red").matches
    with pytest.raises(ConfigError, match="video 'c' is not searched; choose from a, b"):
        find(pipeline, "red", videos=["c"])


def test_a_moment_is_a_question_also_without_a_text_tower() -> None:
    pipeline = configured("histogram")
    spec = pipeline.features.spec_of("histogram")
    rows = {"a": [(1, 0), (0, 1), (5, 0.5)], "b": [(0, 3), (2, 0.1), (1, 1)]}
    made = {video: np.float16(each) for video, each in rows.items()}
    store.write(paths.features("mine", "000", spec), spec, made, 1.0)
    searcher = Searcher.open(pipeline, needs_text=False)
    found = searcher.like("a", 0.9, window_s=0.5, top=2)
    assert (found.text, found.is_like, found.backbone, found.similarity) == ("a@0.9", True, "histogram", "cosine")
    assert places(found.matches) == [("b", 1.0), ("a", 2.0)]
    assert found.matches[0].score == pytest.approx(2 / np.hypot(2, 0.1), abs=1e-3)
    assert places(searcher.like("a", 99.0, window_s=0.5, top=1).matches) == [("b", 1.0)]
    assert places(searcher.like("a", 0, videos=["b"]).matches) == [("b", 1.0)]
    with pytest.raises(ConfigError, match="video 'c' is not searched"):
        searcher.like("c", 0)


def test_the_curve_has_the_best_score_of_each_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searcher, "PIECES", 2)
    pipeline = configured("colours")
    put(pipeline, {"a": [COLOURS["green"], COLOURS["red"], COLOURS["green"]]})
    (curve,) = find(pipeline, "red").curves.values()
    assert curve == ((0.0, 2.0, 1.0), (2.0, 3.0, -0.3333))


def test_what_stands_out_is_above_what_as_many_unrelated_rows_reach() -> None:
    rng = np.random.default_rng(0)
    spreads = [Spread.of(rng.normal(0.2, 0.02, 2000)) for _ in range(100)]
    assert not any(each.stands_out for each in spreads)
    assert spreads[0].expected == pytest.approx(0.2 + 1.25 * 0.02 * np.sqrt(2 * np.log(2000)), abs=0.01)
    answered = rng.normal(0.2, 0.02, 2000)
    answered[:600] += 0.2
    assert Spread.of(answered).stands_out
    assert Spread.of(np.float64([0, 0, 0, 0.5] * 9)).stands_out
    assert not Spread.of(np.zeros(20)).stands_out
    assert Spread.of(np.zeros(9)).stands_out


@pytest.mark.parametrize(
    ("text", "expected"),
    [("a@12.5", ("a", 12.5)), ("a@b@1:02", ("a@b", 62.0)), ("a@1:00:02.5", ("a", 3602.5)), ("a@0", ("a", 0.0))],
)
def test_a_moment_is_named_by_its_video_and_time(text: str, expected: tuple[str, float]) -> None:
    assert moment(text) == expected


@pytest.mark.parametrize("text", ["a", "@3", "a@", "a@x", "a@-1", "a@1:2:3:4", "a@1.5:00", "a@nan", "a@1e9"])
def test_what_is_no_moment_is_one_line(text: str) -> None:
    with pytest.raises(ConfigError, match="--like requires VIDEO@TIME"):
        moment(text)


def test_the_verb_cuts_moments_out(words: None, capsys: pytest.CaptureFixture[str]) -> None:
    pipeline = configured("histogram")
    make(Path("clips/a.mp4"), [Fraction(i, 5) for i in range(100)])
    say(pipeline, {"a": [("boil the water", 3.5)], "b": [("boil it", 1.0)]})
    write_availability(paths.availability("mine", "000"), [Record(video="a", status="present", path="clips/a.mp4")])
    write_text("config.yaml", "datasets: {mine: {videos: clips}}\n")
    assert cli.main(["search", "mine", "boil the water", "--cut", "out"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[-3:-1] == ["clip: out/a-3.5-4.5.mp4", "no clip of b: the video is not kept"]
    assert [path.name for path in Path("out").iterdir()] == ["a-3.5-4.5.mp4"]
    assert cli.main(["search", "mine", "boil", "--like", "a@3"]) == 2
    assert "--like a@3 replaces the text" in capsys.readouterr().err


def test_transcripts_are_exported_as_subtitles(capsys: pytest.CaptureFixture[str]) -> None:
    pipeline = configured("histogram")
    write_text("config.yaml", "datasets: {mine: {videos: clips}}\n")
    assert cli.main(["bank", "subtitles", "mine", "out", "--form", "vtt"]) == 2
    assert capsys.readouterr().err == "error: mine has no transcripts: run `snakemake`\n"
    say(pipeline, {"a": [("boil the water", 4.0)]})
    assert cli.main(["bank", "subtitles", "mine", "out", "--form", "vtt"]) == 0
    assert capsys.readouterr().out == "out: 1 videos, pocketsphinx transcripts\n"
    assert Path("out/a.vtt").read_text() == "WEBVTT\n\n00:00:04.000 --> 00:00:05.000\nboil the water\n"
