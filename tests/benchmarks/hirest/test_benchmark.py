"""What the plan of HiREST says: videos, transcripts, what is missing, and what a number is compared with."""

import os
import re
import subprocess
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from stepline.asr.transcript import Sentence, write
from stepline.availability import write_manifest
from stepline.benchmark import Job
from stepline.benchmarks.hirest import texts
from stepline.benchmarks.hirest.benchmark import ENCODED
from stepline.benchmarks.hirest.captions import CORPUS
from stepline.benchmarks.hirest.kinds import FILES, KINDS
from stepline.benchmarks.hirest.metrics import CAPTIONS, METRICS, MOMENTS, RETRIEVAL, SEGMENTS, split_of
from stepline.datasets.hirest import statistics
from stepline.errors import ConfigError
from stepline.needs import Need
from stepline.runs.table import table_rows
from stepline.spec import TextSpec
from stepline.tables import UNDECLARED
from tests.benchmarks.hirest.conftest import inputs, plan
from tests.benchmarks.hirest.synthetic import CONFIG, OTHERS, recordings, write_labels

pytestmark = pytest.mark.usefixtures("releases")
PUBLIC = tuple(f"test-{number}-0" for number in range(6))
"""The videos of test whose steps are public."""


def job(entry: str, **changes: Any) -> tuple[Any, Job]:
    made = plan(changes)
    return made, Job(release="v1", entry=made.entries[entry])


@pytest.mark.parametrize(("tables", "distractors"), [(["table2"], True), (["table3", "table4"], False), (None, True)])
def test_distractors_are_wanted_where_videos_are_retrieved(tables: list[str] | None, distractors: bool) -> None:
    changes = {"tables": tables} if tables else {}
    listed = {video.id for video in plan(changes).pipelines["hirest"].dataset.videos()}
    assert {each.video for each in recordings()} <= listed
    assert (listed & {*OTHERS} == {*OTHERS}) == distractors
    assert bool(listed & {*OTHERS}) == distractors


def test_each_entry_tells_all_that_it_reads() -> None:
    expected = {
        ("random", "statistics"): "",
        ("whole", "middle-70"): "duration",
        ("uniform-1", "uniform-7", "uniform-15s"): "moment",
        ("truth",): "steps",
        ("frequent",): "train",
        ("clip-1", "eva-clip-32", "mil-nce", "frozen-in-time", "clip-drop", "eva-clip-around"): "query video",
        ("ssim-75", "ssim-85"): "video moment",
        ("tfidf-retrieval", "minilm-retrieval", "tfidf-moments", "minilm-moments"): "query speech",
        ("tfidf-segments", "minilm-segments"): "speech moment",
        ("clip-fine-tuned-1", "clip-fine-tuned-32"): "query video train",
        ("bmt",): "query video speech moment",
        ("bmt-fine-tuned", "joint", "joint-released"): "query video speech moment train val",
        ("bmt-fine-tuned-silent", "joint-silent"): "query video moment train val",
        ("swinbert",): "query video",
        ("swinbert-fine-tuned",): "query video train val",
    }
    made = plan()
    assert [each.word for each in made.sees if each.oracle] == ["steps"]
    entries = made.entries
    for names, words in expected.items():
        assert [sorted(entries[name].sees) for name in names] == [sorted(words.split())] * len(names)
    assert {entry.kind_name for entry in entries.values()} == {
        entries[name].kind_name for each in expected for name in each
    }


def test_statistics_are_counted_in_all_splits_and_not_rounded() -> None:
    made = plan({"tables": ["table1"]})
    rows = {row.metric: (row.value, row.split) for row in table_rows(made, "table1") if row.entry}
    assert rows == {name: (value, "all") for name, value in asdict(statistics()).items()}
    assert any(value % 1 for value, _ in rows.values())


def test_every_printed_number_has_a_line_and_baselines_the_first_ones() -> None:
    made = plan()
    rows = [row for file in made.tables for row in table_rows(made, file)]
    assert not [(row.table, row.method, row.metric) for row in rows if row.command == UNDECLARED]
    assert {row.entry for row in rows if row.table == "3" and not row.rank} == {"whole", "middle-70"}


METHODS = {
    "CLIP-B/32": "clip",
    "EVA-CLIP-G/14": "eva_clip",
    "Joint": "eva_clip",
    "MIL-NCE (S3D)": "mil_nce",
    "Frozen-in-Time": "frozen_in_time",
}
"""Methods with features, by how they are printed."""
FILED = {"CLIP-B/32": "clip-fine-tuned-", "BMT": "bmt", "SwinBERT": "swinbert"}
"""Methods whose predictions are the user's, and how the ids of their entries begin."""
PRINTED = {
    "frames": {1: "1 frame", **{frames: f"{frames} frames" for frames in (4, 10, 20, 32)}},
    "rule": {"drop_0.05": "threshold=0.05", "drop_0.10": "threshold=0.10", "around_8": "8 frames left/right"},
    "percent": {75: "SSIM@0.75", 85: "SSIM@0.85", 70: "Middle 70 %", 100: "Whole video"},
    "parts": {1: "Whole moment", 7: "7 equal parts"},
    "part_s": {15: "Parts of about 15 s"},
    "by": {"tfidf": "TF-IDF", "minilm": "MiniLM"},
}
"""Settings and how they are printed."""


def test_each_entry_has_a_line_and_each_metric_a_column_once_in_order() -> None:
    """What is scored as predicted stands behind the rest. Without the authors' labels, mIoU of test has no column."""
    made = plan()
    order, columns = [*METRICS], list[str]()
    for table in made.declared.tables:
        assert [*table.metrics] == sorted({*table.metrics}, key=lambda each: ("raw" in each, order.index(each)))
        columns += table.metrics
    assert METRICS.keys() - {*columns} == {"test_miou"}
    assert {line.entry for table in made.declared.tables for line in table.lines} == made.entries.keys()


def test_a_line_prints_what_its_entry_is_set_to() -> None:
    made = plan()
    for table in made.declared.tables:
        for line in table.lines:
            entry, words = made.entries[line.entry], (line.method, line.modality, line.setting)
            other_clips = line.entry in ("frozen-in-time", "mil-nce")
            assert (line.protocol == "beyond") == other_clips
            assert not other_clips or entry.settings == {"frames": 32}
            assert table.name not in "23" or bool(line.note) == bool(entry.features), words
            if entry.kind_name in FILES:
                assert entry.id.startswith(FILED[line.method]), words
            if entry.kind_name == "retrieval_files":
                assert line.modality == PRINTED["frames"][int(entry.id.rpartition("-")[2])]
            assert entry.features == ("" if entry.kind_name.endswith("files") else METHODS.get(line.method, "")), words
            for key, value in entry.settings.items():
                assert key == "audio" or other_clips or PRINTED[key][value] in words, (key, words)
            if line.modality.endswith(" audio"):
                assert line.modality == f"{'with' if 'speech' in entry.sees else 'without'} audio"
            assert (line.setting == "oracle") == ("steps" in entry.sees)
            if line.setting != "baseline":
                assert ("train" in entry.sees) == (line.setting == "fine-tuned"), words


def test_means_and_scores_from_0_to_1_are_no_percentages() -> None:
    others = {name for name, metric in METRICS.items() if metric.unit == ""}
    assert others == {name for name, metric in METRICS.items() if "(" in metric.title}


def test_a_definition_says_the_rule_and_the_option_of_its_metric() -> None:
    for name, metric in (MOMENTS | SEGMENTS).items():
        named = re.findall(r" (?:of at least|is above) (\d\.\d)", metric.definition)
        assert named == re.findall(r"@(\d\.\d)", metric.title) == [f"0.{each}" for each in re.findall(r"_0(\d)$", name)]
        assert ("preprocess_moment_bounds" in metric.definition) == bool(metric.options), name
    for name, metric in RETRIEVAL.items():
        assert f"first {name.split('_')[0][1:]} of the pool" in metric.definition
    for name, metric in CAPTIONS.items():
        measure = name.removeprefix(f"{split_of(name)}_")
        assert ("as one corpus" in metric.definition) == (measure in CORPUS), name
        assert ("one reference" in metric.definition) == (measure != "clip_score"), name


class TestTranscripts:
    def test_the_authors_are_a_release_that_is_read_where_they_are_heard(self) -> None:
        made, heard = job("minilm-moments")
        assert made.reads(heard) == ["v1", "asr"]
        assert made.reads(Job(release="v1", entry=made.entries["middle-70"])) == ["v1"]
        Path("datasets/hirest/asr/release.json").unlink()
        assert plan().missing(heard.entry, "v1") == (Need("release", "hirest/asr"),)
        recognised = plan({"transcripts": "asr"})
        assert Need("release", "hirest/asr") not in recognised.missing(recognised.entries["minilm-moments"], "v1")

    def test_a_recogniser_s_are_made_of_all_videos_and_read_from_its_files(self) -> None:
        made, heard = job("tfidf-moments", transcripts="asr", tables=["table3"])
        assert [each.name for each in made.pipelines_of(heard.entry, "v1")] == ["hirest"]
        assert plan().pipelines_of(heard.entry, "v1") == []
        pipeline = made.pipelines["hirest"]
        assert "speech" in pipeline.demand.stages
        assert pipeline.demand.wants_videos
        assert made.reads(heard) == ["v1"]
        assert {*pipeline.speech.manifests} <= {*made.predict_inputs(heard)}
        assert made.named_options(heard.entry, "v1")["transcripts"].differs
        folder = pipeline.speech.folder
        write(folder / "val-0-0.parquet", [Sentence("Stir it", 1.0, 2.5)])
        write_manifest(pipeline.speech.manifests[0], {"val-0-0": {"status": "present"}, "val-0-1": {"status": "gone"}})
        read = inputs("tfidf-moments", transcripts="asr", tables=["table3"])
        assert [pair.video for pair in read.used("val")] == ["val-0-0"]
        assert [(line.start_s, line.end_s, line.text) for line in read.subtitles["val-0-0"]] == [(1.0, 2.5, "Stir it")]

    def test_videos_alone_ask_for_no_sound(self) -> None:
        assert not plan().pipelines["hirest"].demand.media
        heard = {tables: plan({"transcripts": "asr", "tables": [tables]}) for tables in ("table1", "table3")}
        assert [made.pipelines["hirest"].demand.media for made in heard.values()] == [False, True]


class TestLabels:
    def test_moments_of_test_need_the_authors_labels(self) -> None:
        made = plan()
        assert made.missing_of("test_r_05") == [Need("release", "hirest/labels")]
        assert not made.missing_of("test_507_r_05")
        assert made.filled_by("table3.csv", made.missing_of("test_r_05")).startswith(
            'install -D -t "$STEPLINE_MIRROR/hirest/labels" all_data_test.json && stepline fetch hirest/labels && snake'
        )

    def test_the_command_copies_them_where_there_is_no_folder_yet(self, tmp_path: Path) -> None:
        command, _, _ = plan().how_to_fill(Need("release", "hirest/labels")).partition(" && ")
        (tmp_path / "all_data_test.json").write_text("{}")
        environment = {**os.environ, "STEPLINE_MIRROR": str(tmp_path / "a mirror")}
        subprocess.run(["sh", "-c", command], check=True, cwd=tmp_path, env=environment)
        assert (tmp_path / "a mirror/hirest/labels/all_data_test.json").is_file()

    def test_without_them_a_number_of_test_says_so(self) -> None:
        made = plan()
        rows = [row for row in table_rows(made, "table3") if row.metric == "test_r_05" and row.entry == "middle-70"]
        assert [(row.status, row.split) for row in rows] == [("needs", "test")]
        assert "the authors withhold test's moments" in rows[0].note
        assert made.note(None, None, "v1", "test_507_r_05") == made.note(None, None, "v1", "val_miou") == ""

    def test_where_they_are_scores_read_them(self) -> None:
        write_labels()
        made, scored = job("middle-70")
        assert made.missing_of("test_r_05") == ()
        assert Path("datasets/hirest/labels/release.json") in made.score_inputs(scored)
        assert made.note(None, None, "v1", "test_r_05") == ""


def test_each_metric_has_a_split_and_a_method_that_sees_nothing() -> None:
    made = plan()
    assert {split_of(metric) for metric in RETRIEVAL} == {"test"}
    measures = {metric.removeprefix(f"{split_of(metric)}_") for metric in (*MOMENTS, *SEGMENTS)}
    assert measures >= {"r_05", "recall_05"}
    assert not [name for name in measures if "val" in name or "test" in name or "507" in name]
    assert {split_of(metric) for metric in MOMENTS} == {"val", "test", "test_507"}
    blind = {made.blind(made.entries["joint"], metric) for metric in (*RETRIEVAL, *MOMENTS, *SEGMENTS, *CAPTIONS)}
    assert blind == {"random", "middle-70", "uniform-7", "frequent"}
    for table in made.declared.tables:
        known = {line.entry for line in table.lines} | ({""} if table.name == "1" else set())
        assert {made.blind(made.entries["joint"], metric) for metric in table.metrics} <= known, table.name


def test_predictions_of_an_entry_that_takes_none_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="hirest.files: 'joint' is not allowed; choose from clip-fine-tuned-1, "):
        plan({"files": {"joint": str(tmp_path)}})
    with pytest.raises(ConfigError, match="hirest.files.bmt: 'nowhere' is not a folder; give one with predictions"):
        plan({"files": {"bmt": "nowhere"}})


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ({"kind": "zero_shot_moments", "settings": {"rule": "around_8"}}, "features: it is required; choose from "),
        ({"kind": "zero_shot_retrieval", "settings": {"frames": 4}}, "features: it is required; choose from "),
        ({"kind": "joint_released"}, "features: it is required; choose from "),
        ({"kind": "joint", "settings": {"audio": "with"}}, "features: it is required; choose from "),
        ({"kind": "uniform"}, "settings: give one of parts and part_s"),
        ({"kind": "uniform", "settings": {"parts": 2, "part_s": 3}}, "settings: give one of parts and part_s"),
        ({"kind": "middle", "settings": {"percent": 101}}, "settings.percent: 101 is greater than the maximum of 100"),
    ],
)
def test_an_entry_that_cannot_be_computed_is_refused(entry: dict[str, Any], reason: str) -> None:
    table = {"uniform": "table4", "zero_shot_retrieval": "table2"}.get(entry["kind"], "table3")
    with pytest.raises(ConfigError, match=f"hirest.entries.mine.{reason}"):
        plan({"entries": {"mine": {**entry, "table": table, "method": "Mine"}}})


def test_features_without_a_text_tower_are_refused() -> None:
    with pytest.raises(ConfigError, match="hirest.features.clip.text: 'planted' has no text tower; name one of "):
        plan({"features": {"clip": {"video": "planted", "text": ""}}})


def test_entailment_by_another_network_is_not_compared() -> None:
    made = plan()
    for split in ("val", "test_507"):
        options = {key: made.published[key] for key in made.metrics[f"{split}_entailment"].options}
        assert options != {key: made.options["metrics"][key] for key in options}


@pytest.mark.usefixtures("banks")
def test_options_that_decide_what_released_weights_say_are_of_their_spec_and_shown() -> None:
    joint = {"init": "random"}
    before = {name: inputs(name, joint=joint).spec for name in ("joint-released", "joint")}
    others = {"fusion": "sum", "caption_frames": "uniform", "padding": "masked", "batch_size": 1, "beam": 5}
    for key, other in others.items():
        for name, spec in before.items():
            of = inputs(name, joint={**joint, key: other})
            assert of.spec != spec, (name, key)
            assert of.benchmark.named_options(of.entry, "v1")[key].differs
    of_fits = {"epochs": 1, "hidden": 24, "layers": 3, "learning_rate": 0.5, "mixing": "alternating"}
    trained = inputs("joint-released", joint={**joint, **of_fits})
    assert trained.spec == before["joint-released"]
    assert not trained.benchmark.named_options(trained.entry, "v1").keys() & of_fits.keys()


@pytest.mark.usefixtures("banks")
def test_the_joint_model_sees_vectors_of_queries_that_are_not_normalised() -> None:
    for name, normalised in (("joint", False), ("joint-released", False), ("eva-clip-20", True)):
        of = inputs(name)
        assert texts.records(of.benchmark, of.entry)["tower-text"]["normalise"] is normalised


@pytest.mark.usefixtures("banks")
def test_the_weights_that_a_model_begins_with_are_of_its_spec(monkeypatch: pytest.MonkeyPatch) -> None:
    path = Path("weights")
    monkeypatch.setattr("stepline.benchmarks.hirest.benchmark.locate", lambda name: {name: path})
    options = {"joint": {"init": "clip4caption", "layers": 2, "hidden": 768}}
    specs = []
    for content in ("one", "two"):
        path.write_text(content)
        specs.append([inputs(name, **options).spec for name in ("joint", "joint-released", "frequent")])
    assert [one == other for one, other in zip(*specs, strict=True)] == [False, False, True]


@pytest.mark.usefixtures("banks")
def test_frames_are_read_where_captions_are_scored() -> None:
    features = {key: {"video": "planted", "text": "tower"} for key in ("eva_clip", "mil_nce", "frozen_in_time")}
    features["clip"] = {"video": "tower", "text": "tower"}
    for captioned in ("table5", "table6"):
        assert "tower" in plan({"features": features, "tables": [captioned]}).footage["hirest"].names
    assert "tower" not in plan({"features": features, "tables": ["table4"]}).footage["hirest"].names
    for entry, read in (("frequent", True), ("uniform-7", False)):
        made, scored = job(entry)
        (bank,) = made.footage["hirest"].inputs("planted")
        assert (bank in made.score_inputs(scored)) == read
    write_labels()
    made, scored = job("frequent")
    assert {bank, Path("datasets/hirest/labels/release.json")} <= {*made.score_inputs(scored)}


@pytest.mark.usefixtures("banks")
def test_what_clip_score_and_an_entry_lack_is_of_their_own_features() -> None:
    def made_with(**clip: str) -> tuple[Any, Job]:
        return job("frequent", features=CONFIG["features"] | {"clip": clip})

    made, scored = made_with(video="planted", text="s3d-text")
    weights = (Need("weights", "s3d"),)
    assert [made.missing_of(f"val_{name}") for name in ("clip_score", "rouge_l")] == [weights, []]
    assert [made.missing(made.entries[name], "v1") for name in ("clip-drop", "eva-clip-drop")] == [weights, ()]
    (bank,) = made.footage["hirest"].inputs("planted")
    assert bank not in made.score_inputs(scored)
    assert made_with(video="tower", text="tower")[0].missing_of("val_clip_score") == ()
    network, _ = made_with(video="eva_clip-hirest", text="")
    assert network.missing_of("val_clip_score") == (Need("videos", "hirest"), Need("weights", "eva_clip"))


class TestSpec:
    @pytest.mark.usefixtures("banks")
    def test_the_tower_of_an_entry_s_own_features_is_of_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        tower = texts.tower

        def named(benchmark: Any, key: str) -> TextSpec:
            return replace(tower(benchmark, key), name=key, normalise=key != "mil_nce")

        monkeypatch.setattr(texts, "tower", named)
        monkeypatch.setattr(texts, "with_weights", lambda spec: replace(spec, weights_sha256=(("of", spec.name),)))
        for entry, key, normalise in (
            ("clip-4", "clip", True),
            ("mil-nce", "mil_nce", False),
            ("joint-silent", "eva_clip", False),
        ):
            made, read = job(entry)
            ((name, found),) = made.record(read)["texts"].items()
            assert (name, found["normalise"], found["weights_sha256"]) == (key, normalise, (("of", key),))

    @pytest.mark.usefixtures("banks")
    def test_transcripts_and_encoders_of_texts_are_of_it(self) -> None:
        for entry, encoders in (
            ("tfidf-moments", []),
            ("minilm-moments", ["minilm"]),
            ("eva-clip-20", ["tower-text"]),
            ("joint", ["tower-text", "minilm"]),
            ("joint-silent", ["tower-text"]),
        ):
            made, read = job(entry, tables=["table2", "table3", "table6"])
            assert list(made.record(read)["texts"]) == encoders
            assert made.record(read)["transcripts"] == ("" if encoders == ["tower-text"] else "released")
        made, read = job("minilm-moments", transcripts="asr", tables=["table3"])
        assert list(made.record(read)["texts"]) == ["minilm"]
        specs = [inputs("tfidf-moments", transcripts=which).spec for which in ("released", "asr")]
        assert specs[0] != specs[1]

    @pytest.mark.parametrize(
        ("entry", "names"),
        [
            ("bmt", {"moment_retrieval", "moment_segmentation", "step_captioning"}),
            ("swinbert", {"step_captioning"}),
            ("clip-fine-tuned-1", {"video_retrieval"}),
        ],
    )
    def test_the_user_s_files_are_of_it_and_are_read(self, entry: str, names: set[str], tmp_path: Path) -> None:
        for name in ("video_retrieval", "moment_retrieval", "moment_segmentation", "step_captioning"):
            file, specs = tmp_path / f"{name}.json", []
            for content in ("{}", "[]"):
                file.write_text(content)
                made, read = job(entry, files={entry: str(tmp_path)})
                specs.append(made.spec(read))
                assert (file in made.predict_inputs(read)) == (name in names), name
                assert file not in made.score_inputs(read)
            assert (specs[0] != specs[1]) == (name in names), name


def test_weights_are_missing_where_a_model_begins_with_them_or_is_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stepline.benchmarks.hirest.benchmark.locate", lambda name: None)
    published = {"init": "clip4caption", "layers": 2, "hidden": 768}
    for options, expected in ((published, {"clip4caption"}), ({"init": "random"}, set())):
        made = plan({"joint": options})
        needed = {
            name: {need.what for need in made.missing_besides(made.entries[name], "v1") if need.kind == "weights"}
            for name in ("joint", "joint-released")
        }
        assert needed == {"joint": expected, "joint-released": {"hirest-joint"}}


def test_examples_are_videos_with_public_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Any] = []
    monkeypatch.setattr("stepline.runs.shown.timelines", lambda *args: given.append(args) or [])
    made = plan()
    made.examples()
    [(of, tracks, annotated)] = given
    assert of is made
    assert [*tracks] == ["uniform-7", "minilm-segments", "joint-released", "joint"]
    assert [entry for entry, label in tracks.items() if "released" in label] == ["joint-released"]
    public = [each for each in recordings() if (each.split == "val" and each.annotated) or each.video in PUBLIC]
    assert {video: (each.duration_s, each.segments) for video, each in annotated("v1").items()} == {
        each.video: (each.duration_s, [step[:2] for step in each.steps]) for each in public
    }


@pytest.mark.parametrize("transcripts", ["released", "asr"])
def test_what_an_entry_reads_is_shown_beside_what_was_published(transcripts: str) -> None:
    made = plan({"transcripts": transcripts})
    shown = {
        entry: {
            name: (each.value, each.published) for name, each in made.shown_options(made.entries[entry], "v1").items()
        }
        for entry in ("clip-1", "eva-clip-drop", "mil-nce", "frozen-in-time", "minilm-moments")
    }
    published = {
        "clip-1": "open_clip:ViT-B-32-quickgelu/openai",
        "eva-clip-drop": "eva_clip-hirest-unnormalised",
        "mil-nce": "s3d-dropdtw",
        "frozen-in-time": "frozen-in-time",
    }
    features = {entry: {"features": ("planted", name), "text": ("tower", "")} for entry, name in published.items()}
    assert shown == features | {"minilm-moments": {"transcripts": (transcripts, "released")}}


def test_meteor_that_is_not_wanted_is_missing() -> None:
    need = Need("config", "hirest.metrics.meteor", "true")
    assert plan({"metrics": {"meteor": False}}).missing_of("val_meteor") == [need]
    assert need not in plan().missing_of("val_meteor")


def test_jobs_have_the_environment_of_what_they_read() -> None:
    for name, kind in KINDS.items():
        reads = "networks" if name in ENCODED or "by" in kind.settings else "core"
        assert kind.environment == ("media" if kind.decoded else reads), name
        assert kind.gpu == name.startswith("joint")


def test_captions_are_scored_where_java_is() -> None:
    scored = {name for name, kind in KINDS.items() if kind.scored_in == "networks"}
    assert scored == {name for name, kind in KINDS.items() if {*kind.metrics} & {*CAPTIONS}}
