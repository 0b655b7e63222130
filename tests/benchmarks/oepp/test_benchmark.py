from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from stepline import paths
from stepline.backbones.registry import spec_of
from stepline.benchmark import Job
from stepline.benchmarks.oepp.benchmark import Oepp
from stepline.benchmarks.oepp.features import ALIKE
from stepline.config import validate
from stepline.datasets import oepp
from stepline.datasets.oepp import RELEASES
from stepline.errors import ConfigError
from stepline.io import write_json, write_text
from stepline.tables import read_paper
from tests.benchmarks.oepp.conftest import plan
from tests.benchmarks.oepp.synthetic import CONFIG

TRAINED = {"mlp", "transformer", "pdpp"}


def test_a_line_says_the_horizon_of_its_entry_and_stands_once() -> None:
    made = plan()
    for table in made.declared.tables:
        lines = [(line.method, line.modality, line.setting) for line in table.lines]
        assert len(set(lines)) == len(lines)
        for line in table.lines:
            horizon = made.entries[line.entry].settings.get("horizon")
            assert line.setting == ("" if table.name in ("1", "8") else f"T={horizon}" if horizon else "whole video")


def test_every_number_of_the_paper_has_its_line() -> None:
    for table in plan().declared.tables:
        asked = {(each.method, each.modality, each.setting, name) for each in table.lines for name in table.metrics}
        paper = read_paper(Oepp.folder / "paper" / f"{table.file}.csv", Oepp.metrics)
        assert {(key.method, key.modality, key.setting, key.metric) for key in paper} <= asked


@pytest.mark.parametrize(
    ("entry", "sees"),
    [
        ("random-t3", ("action_pool",)),
        ("frequent-t3", ("train_annotation", "action_pool")),
        ("matching-t3", ("observations", "action_pool")),
        ("pdpp-t3", ("observations", "train", "val", "action_pool")),
        ("vlm-t3-1", ("observations", "action_pool")),
        ("statistics-val", ()),
    ],
)
def test_what_an_entry_may_see(entry: str, sees: tuple[str, ...]) -> None:
    assert plan().entries[entry].sees == sees


def test_a_service_is_asked_about_test_windows_alone() -> None:
    splits = {entry.kind_name: entry.splits for entry in plan().entries.values() if entry.kind.method}
    assert splits.pop("vlm") == ("base", "novel")
    assert {*splits.values()} == {("val", "base", "novel")}


class TestWhatIsMissing:
    def missing(self, entry: str, **changes: Any) -> tuple[str, ...]:
        made = plan(changes)
        return tuple(map(str, made.missing(made.entries[entry], "split1")))

    def text(self, name: str, video: str = "planted") -> dict[str, Any]:
        return {"videoclip": {"video": video, "text": name}}

    def test_a_text_tower_and_a_sentence_encoder_are_missing_their_weights(
        self, banks: None, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert self.missing("pdpp-t3", features=self.text("s3d-text")) == ("weights:s3d",)
        monkeypatch.setattr("stepline.benchmarks.oepp.features.model_files", lambda name: {})
        assert self.missing("pdpp-t3", features=self.text("minilm")) == ("weights:minilm",)

    def test_a_language_model_has_a_name_a_key_and_the_list_of_videos(
        self, releases: None, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert self.missing("vlm-t3-1") == ("config:oepp.llm.model=NAME", "key:OPENAI_API_KEY")
        assert self.missing("vlm-t3-1", llm={"model": "m"}) == ("key:OPENAI_API_KEY",)
        assert self.missing("vlm-t3-1", llm={"model": "m", "url": "http://localhost:1"}) == ()
        write_text(paths.predictions("oepp", "split1", "vlm-t3-1", "all"), "answers that are there")
        assert self.missing("vlm-t3-1", llm={"model": "m"}) == ()
        monkeypatch.setenv("OPENAI_API_KEY", "k")
        assert self.missing("vlm-t4-3", llm={"model": "m"}) == ()
        (RELEASES.folder("split1") / "release.json").unlink()
        assert self.missing("vlm-t4-3", llm={"model": "m"}) == ("release:oepp/split1",)


def changed(block: str, **options: Any) -> dict[str, Any]:
    return {block: {**CONFIG.get(block, {}), **options}}


def reads(*features: str) -> Callable[[Any], bool]:
    return lambda entry: entry.features in features


def trained(*kinds: str) -> Callable[[Any], bool]:
    return lambda entry: entry.kind_name in kinds


DECIDES: list[tuple[str, dict[str, Any], Callable[[Any], bool]]] = [
    ("padding", {"windows": {"padding": "drop"}}, lambda entry: "horizon" in entry.settings),
    ("rows", {"windows": {"rows": "within"}}, reads("videoclip", "mil-nce")),
    ("subset", {"subset": {"fraction": 0.5, "seed": 0}}, lambda entry: True),
    ("ce_mode", {"loss": {"ce_mode": "plain"}}, trained(*TRAINED)),
    ("temperature", {"loss": {"temperature": 1.0}}, trained(*TRAINED)),
    ("ce_weight", {"loss": {"ce_weight": 2.0}}, trained(*TRAINED)),
    ("mse_weight", {"loss": {"mse_weight": 2.0}}, trained(*TRAINED)),
    ("similarity", {"matching": {"similarity": "dot"}}, trained("matching")),
    *(
        (f"heads.{key}", changed("heads", **{key: value}), trained("mlp", "transformer"))
        for key, value in (("epochs", 2), ("batch_size", 2), ("learning_rate", 1.0), ("weight_decay", 1.0))
    ),
    ("heads.seeds", changed("heads", seeds=[7]), trained("mlp", "transformer")),
    *(
        (f"pdpp.{key}", changed("pdpp", **{key: value}), trained("pdpp"))
        for key, value in (
            *(("epochs", 9), ("steps", 9), ("batch_size", 2), ("learning_rate", 1.0), ("width", 64)),
            *(("actions", "text"), ("diffusion_steps", 99), ("sampling_steps", 2), ("sampling_seed", 2)),
            *(("ema_decay", 0.5), ("ema_start", 9), ("ema_every", 9), ("seeds", [7])),
        )
    ),
    ("video", {"features": {**CONFIG["features"], "mil-nce": {"video": "histogram"}}}, reads("mil-nce")),
    (
        "text",
        {"features": {**CONFIG["features"], "videoclip": {"video": "planted", "text": "./own.json"}}},
        reads("videoclip"),
    ),
    *(
        (f"llm.{key}", {"llm": {"model": "m", key: value}}, trained("vlm"))
        for key, value in (("model", "other"), ("url", "http://localhost"), ("max_tokens", 9))
    ),
    ("llm.concurrency", {"llm": {"model": "m", "concurrency": 9}}, lambda entry: False),
    ("split_seed", {"split_seed": 3}, lambda entry: False),
    ("metrics", {"metrics": {"miou": "batch", "bootstrap_samples": 200}}, lambda entry: False),
]


def write_vectors(path: str, value: float) -> None:
    actions = {*oepp.pool("split1", "base"), *oepp.pool("split1", "novel")} if oepp.is_here("split1") else {"a"}
    write_json(Path(path), {action: [[value]] for action in sorted(actions)})


class TestWhatDecides:
    def records(self, release: str = "split1", **changes: Any) -> dict[str, str]:
        made = plan({"llm": {"model": "m"}, **changes})
        return {
            name: made.predict_params(Job(release=release, entry=entry))
            for name, entry in made.entries.items()
            if entry.kind.method
        }

    @pytest.fixture(autouse=True)
    def _there(self, banks: None) -> None:
        write_vectors("own.json", 1.0)

    def test_each_option_decides_what_depends_on_it_alone(self) -> None:
        before, entries = self.records(), plan().entries
        for name, changes, depends in DECIDES:
            after = self.records(**changes)
            others = {entry for entry in before if after[entry] != before[entry]}
            assert others == {entry for entry in before if depends(entries[entry])}, name

    def test_every_option_of_training_is_asked(self) -> None:
        asked = {name for name, _, _ in DECIDES}
        for block in ("heads", "pdpp", "llm"):
            options = validate({"oepp": {}})["oepp"][block]
            assert {f"{block}.{key}" for key in options} <= asked

    def test_a_split_of_ones_own_decides_what_is_rebuilt(self) -> None:
        before, after = self.records("rebuilt"), self.records("rebuilt", split_seed=3)
        assert not {*before.values()} & {*after.values()}
        assert plan({"split_seed": 3}).rebuild_options == " --seed 3"
        assert plan().rebuild_options == ""

    def test_no_two_entries_have_one_record(self) -> None:
        records = self.records()
        assert len(set(records.values())) == len(records)

    def test_a_file_of_vectors_decides_by_what_it_holds(self) -> None:
        own = {"features": {**CONFIG["features"], "videoclip": {"video": "planted", "text": "./own.json"}}}
        before = self.records(**own)
        Path("own.json").rename("moved.json")
        moved = {"features": {**CONFIG["features"], "videoclip": {"video": "planted", "text": "./moved.json"}}}
        assert self.records(**moved)["mlp-t3"] == before["mlp-t3"]
        write_vectors("moved.json", 2.0)
        assert self.records(**moved)["mlp-t3"] != before["mlp-t3"]

    def test_a_text_encoder_is_its_spec(self) -> None:
        minilm = {"features": {**CONFIG["features"], "videoclip": {"video": "planted", "text": "minilm"}}}
        made = plan(minilm)
        record = made.record(Job(release="split1", entry=made.entries["matching-t3"]))
        assert record["text"] == spec_of("minilm", made.config).record()


def shown(made: Oepp, entry: str, release: str = "split1") -> dict[str, Any]:
    return {key: option.value for key, option in made.named_options(made.entries[entry], release).items()}


class TestOptions:
    def other(self, entry: str, **changes: Any) -> set[str]:
        """Return the options in which an entry is not the paper's."""
        made = plan({"heads": {}, "pdpp": {}, **changes})
        shown = made.named_options(made.entries[entry], "split1")
        return {key for key, option in shown.items() if option.differs}

    @pytest.mark.parametrize(("key", "entry"), [("videoclip", "mlp-t3"), ("mil-nce", "pdpp-t3-mil-nce")])
    def test_the_papers_features_are_the_presets_and_its_own_files(self, key: str, entry: str) -> None:
        for name in ALIKE[key]:
            assert self.other(entry, features={key: {"video": name}}) == set()
        assert self.other(entry, features={key: {"video": "histogram"}}) == {"features"}
        assert self.other(entry, features={key: {"video": "planted"}}) == {"features"}

    def test_defaults_are_the_published_ones(self) -> None:
        made = plan({"features": {}, "heads": {}, "pdpp": {}})
        for name, entry in made.entries.items():
            if entry.kind_name not in ("vlm", "statistics"):
                assert self.other(name, features={}) == set(), name

    def test_what_is_not_published_is_an_option(self) -> None:
        made = plan({"heads": {"epochs": 7, "seeds": [1, 2]}, "loss": {"ce_mode": "plain"}})
        rebuilt = plan({"releases": ["rebuilt"], "split_seed": 3})
        assert shown(made, "mlp-t3") == {
            "padding": "repeat_first",
            "features": "planted",
            "text": "released",
            "rows": "released",
            "ce_mode": "plain",
            "epochs": 7,
            "seeds": [1, 2],
        }
        assert shown(made, "matching-t3")["similarity"] == "cosine"
        assert shown(made, "random-t3") == {"padding": "repeat_first"}
        assert shown(made, "random-whole") == {}
        assert shown(rebuilt, "random-whole", "rebuilt") == {"split_seed": 3}
        assert shown(rebuilt, "random-whole") == {}
        assert self.other("mlp-t3", features={}, heads={"epochs": 7}, loss={"ce_mode": "plain"}) == {
            "ce_mode",
            "epochs",
        }
        assert self.other("pdpp-t3", features={}, pdpp={"width": 64}) == {"width"}
        assert self.other("random-t3", windows={"padding": "drop", "rows": "within"}) == {"padding"}
        assert self.other("matching-t3", features={}, windows={"rows": "within"}) == {"rows"}
        write_vectors("own.json", 1.0)
        own = {"videoclip": {"text": "./own.json"}}
        assert self.other("matching-t3", features=own) == {"text"}
        assert self.other("matching-t3", features={}, matching={"similarity": "dot"}) == {"similarity"}
        assert self.other("vlm-t3-1", llm={"model": "m"}) == {"model"}
        assert self.other("vlm-t3-1", llm={"model": "gpt-4o", "concurrency": 9}) == set()
        assert self.other("vlm-t3-1", llm={"model": "gpt-4o-2024-08-06"}) == set()
        assert self.other("vlm-t3-1", llm={"model": "gpt-4o-mini"}) == {"model"}


def test_the_papers_line_lacks_its_model_and_that_of_another_does_not() -> None:
    def lacking(model: str) -> dict[str, list[str]]:
        made = plan({"llm": {"model": model, "url": "http://localhost:1"}})
        (line,) = [line for table, line, _ in made.lines() if line.entry == "vlm-t3-1"][:1]
        return {
            each.method: [str(need) for need in made.missing_line(each, "split1") if need.kind == "config"]
            for each in made.named(line)
        }

    alone = lacking("gpt-4o")
    assert [*alone.values()] == [[]]
    assert lacking("mine") == {"mine": [], **{key: ["config:oepp.llm.model=gpt-4o"] for key in alone}}


def test_the_lists_are_targets() -> None:
    assert plan().targets[-2:] == ("table9.csv", "table10.csv")


def test_what_decodes_videos_reads_which_there_are(releases: None) -> None:
    service = {"model": "m", "url": "http://localhost:1"}
    made = Oepp.of(validate({"media": {"keep": "none"}, "oepp": {**CONFIG, "llm": service}}), "oepp")
    seeing = Job(release="split1", entry=made.entries["vlm-t3-1"])
    assert made.predict_inputs(seeing)[1:] == [Path("datasets/openevent/availability/000.json")]
    assert made.table_inputs("table7")[-1] == Path("datasets/openevent/dropped/000.json")
    predictions = paths.predictions("oepp", "split1", "vlm-t3-1", "all")
    assert predictions in made.pipelines["openevent"].drop_inputs("000")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"features": {"mil-nce": {"video": "x:nope"}}}, "config: oepp.features.mil-nce.video: .*nope"),
        ({"features": {"videoclip": {"video": "minilm"}}}, "oepp.features.videoclip.video: 'minilm' is not allowed; "),
        ({"features": {"videoclip": {"video": "../x"}}}, "oepp.features.videoclip.video: '../x' is not allowed"),
        ({"features": {"videoclip": {"video": "internvideo-spacewalk"}}}, "video: .* describes listed clips"),
        (
            {"features": {"videoclip": {"text": "bert"}}},
            "config: oepp.features.videoclip.text: 'bert' is not one of released, s3d-text, .*, minilm, .*path with /$",
        ),
        (
            {"features": {"videoclip": {"text": "./own.json"}}},
            "config: oepp.features.videoclip.text: 'own.json' does not exist; give a JSON file",
        ),
        ({"features": {"clip": {}}}, "config: oepp.features.clip: unknown key; .* allowed: mil-nce, videoclip"),
        (
            {"pdpp": {"sampling_steps": 11, "diffusion_steps": 10}},
            "config: oepp.pdpp.sampling_steps: 11 is not allowed; at most diffusion_steps, 10",
        ),
        ({"pdpp": {"width": 48}}, "config: oepp.pdpp.width: 48 "),
        ({"tables": ["table9"]}, r"config: oepp.tables\[0\]: 'table9' is not allowed; choose from table1, "),
        ({"heads": {"seeds": [2**40]}}, r"config: oepp.heads.seeds\[0\]: \d+ is not allowed; write a whole number"),
    ],
)
def test_what_cannot_be_is_one_line(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message) as raised:
        Oepp.of(validate({"oepp": changes}), "oepp")
    assert "\n" not in str(raised.value)


def test_noise_may_be_removed_in_every_step() -> None:
    steps = {"sampling_steps": 10, "diffusion_steps": 10}
    assert Oepp.of(validate({"oepp": {"pdpp": steps}}), "oepp").options["pdpp"].items() >= steps.items()


def test_what_the_rebuilt_release_lacks_is_noted_of_its_numbers_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oepp, "without", lambda: "rebuilt without 1 video")
    made = plan({"releases": ["split1", "rebuilt"]})
    notes = {release: made.note(table, line, release, "base_sr") for table, line, release in made.lines("table2")}
    assert notes == {"split1": "", "rebuilt": "rebuilt without 1 video"}


def test_a_subset_is_drawn_within_each_split(releases: None) -> None:
    chosen = plan({"subset": {"fraction": 0.5, "seed": 0}}).chosen(oepp.DATASETS["openevent"])
    assert [sum(f"_{part}-" in video for video in chosen) for part in ("train", "val")] == [8, 4]
    assert sum("both" not in v and not v.partition("_")[2].startswith(("train", "val")) for v in chosen) == 10


@pytest.mark.parametrize(
    ("entry", "blind"),
    [
        ("pdpp-t3", "random-t3"),
        ("frequent-t4", "random-t4"),
        ("random-t6", "random-t6"),
        ("vlm-whole-1", "random-whole"),
        ("statistics-novel", ""),
    ],
)
def test_the_blind_baseline_guesses_plans_of_the_same_length(entry: str, blind: str) -> None:
    made = plan()
    assert made.blind(made.entries[entry], "base_sr") == blind
    vars(made)["entries"] = dict(reversed(made.entries.items()))
    assert made.blind(made.entries[entry], "base_sr") == blind  # wherever Random is declared


def test_a_number_is_of_the_split_in_its_name() -> None:
    made = plan()
    named = {metric: made.split(made.entries["pdpp-t3"], metric) for metric in ("val_sr", "base_acc", "novel_miou")}
    assert named == {"val_sr": "val", "base_acc": "test base", "novel_miou": "test novel"}
    assert made.split(made.entries["statistics-novel"], "events") == "all"


@pytest.mark.parametrize(
    ("table", "drawn", "metric"),
    [("2", "scores", "sr"), ("3", "horizons", "sr"), ("6", "horizons", "acc"), ("7", "scores", "sr")],
)
def test_a_table_of_horizons_has_its_own_figures(
    table: str, drawn: str, metric: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib")
    from stepline.report import figure_plans, figure_scores

    monkeypatch.setattr(figure_plans, "horizons", lambda rows, of: ("horizons", of))
    monkeypatch.setattr(figure_scores, "scores", lambda rows, of: ("scores", of))
    rows: Any = [
        SimpleNamespace(table=table, metric=f"{split}_{name}")
        for split in ("base", "novel")
        for name in ("sr", "acc", "miou")
    ]
    expected = {f"{split}_{metric}": (drawn, f"{split}_{metric}") for split in ("base", "novel")}
    assert plan().figures(rows) == expected
    assert plan().figures(rows[:3]) == {f"base_{metric}": (drawn, f"base_{metric}")}
