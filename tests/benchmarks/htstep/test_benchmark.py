"""What the plan of HT-Step says: what is refused, read, missing and shown, and what decides predictions and scores."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from stepline.benchmark import Job
from stepline.benchmarks.htstep.benchmark import Htstep
from stepline.benchmarks.htstep.metrics import COUNTS, CROSSTASK, METRICS
from stepline.config import validate
from stepline.datasets import htstep
from stepline.datasets.htstep import ANNOTATIONS, RELEASES
from stepline.errors import ConfigError
from stepline.needs import Need
from stepline.pipeline.speech import Speech
from stepline.runs.table import table_rows
from tests.benchmarks.htstep.conftest import plan
from tests.benchmarks.htstep.synthetic import CONFIG, videos, write_releases
from tests.benchmarks.tower import BACKBONES

pytestmark = pytest.mark.usefixtures("releases")
AFT = {"text": "mpnet", "input": "headline", "data": "htstep"}
LINE = {"table": "table2", "method": "Mine"}


def job(entry: str, release: str = "v1", **changes: Any) -> tuple[Htstep, Job]:
    made = plan(changes)
    return made, Job(release=release, entry=made.entries[entry])


def manifest(release: str) -> Path:
    return Path("datasets/htstep", release, "release.json")


def mark_as_made() -> None:
    """Have the annotation say that it was made up."""
    file = RELEASES.folder("annotations") / ANNOTATIONS
    records = json.loads(file.read_text())
    next(iter(records.values()))["made"] = True
    file.write_text(json.dumps(records))
    write_manifest(file)


def write_manifest(file: Path) -> None:
    from stepline.io import sha256_file, write_json

    about = {"study": "htstep", "release": file.parent.name, "files": {file.name: sha256_file(file)}}
    write_json(file.with_name("release.json"), about)


class TestDoor:
    @pytest.mark.parametrize(
        ("changes", "reason"),
        [
            (
                {"actionformer": {"window": 19}},
                "actionformer.window: 19 does not fit max_length 512; choose from 3, 5, 9, 17, -1",
            ),
            (
                {"match": {"key": "kind", "full": "yes", "partial": "yes"}},
                "match.partial: 'yes' is also the value of full: give another",
            ),
            ({"files": {"aft": "."}}, "files: 'aft' is not allowed; choose from vina"),
            ({"files": {"vina": "nowhere"}}, "files.vina: 'nowhere' is not a folder; give one with predictions"),
            ({"texts": {"mpnet": "planted"}}, "texts.mpnet: 'planted' is not a text encoder; name one of minilm, "),
            ({"features": {"s3d": ["one", "two"]}}, "features.s3d: 2 names are not allowed; give one"),
            ({"features": {"s3d": []}}, "features.s3d"),
            (
                {"entries": {"place": {"splits": ["narrations"]}}},
                "entries.place.splits: 'narrations' is not allowed; choose from val_seen, test_seen, test_unseen, ",
            ),
            (
                {"entries": {"actionformer": {"splits": ["test_unseen"]}}},
                "entries.actionformer.splits: 'test_unseen' is not allowed; choose from val_seen, test_seen",
            ),
            ({"entries": {"vina": {"features": "s3d"}}}, "entries.vina.features: it is not allowed"),
            (
                {"entries": {"aft": {"features": ""}}},
                "entries.aft.features: it is required; choose from s3d, s3d_joint, timesformer",
            ),
        ],
    )
    def test_an_impossible_option_is_refused(self, changes: dict[str, Any], reason: str) -> None:
        with pytest.raises(ConfigError) as error:
            plan(changes)
        assert str(error.value).startswith(f"config: htstep.{reason}")
        assert "\n" not in str(error.value)

    @pytest.mark.parametrize(
        ("kind", "features", "settings", "reason"),
        [
            ("actionformer_t", "s3d", AFT | {"init": "nope"}, "settings.init: 'nope' is not allowed"),
            (
                "actionformer_t",
                "s3d",
                AFT | {"init": "mt-bce"},
                "settings.init: 'mt-bce' does not fit; choose from aft, ",
            ),
            ("actionformer_t", "s3d", AFT | {"init": "aft-word2vec"}, "settings.init: 'aft-word2vec' does not fit; "),
            (
                "actionformer_t",
                "timesformer",
                AFT | {"init": "aft"},
                "settings.init: 'aft' does not fit; none has the same features and text",
            ),
            ("mt_bce", "s3d", AFT | {"init": "mine"}, "settings: mine <- mine is a cycle: name another entry"),
            ("umt", "s3d", AFT | {"init": "umt"}, "settings.init: unknown key"),
        ],
    )
    def test_an_entry_that_begins_with_what_does_not_fit_is_refused(
        self, kind: str, features: str, settings: dict[str, Any], reason: str
    ) -> None:
        with pytest.raises(ConfigError, match=f"htstep.entries.mine.{reason}"):
            plan({"entries": {"mine": {"kind": kind, "features": features, "settings": settings, **LINE}}})

    @pytest.mark.parametrize("of", ["place", "mt-bce-crosstask", "umt-ts"])
    def test_a_transfer_is_of_a_head_with_its_features(self, of: str) -> None:
        with pytest.raises(
            ConfigError, match=f"entries.aft-crosstask.settings.of: '{of}' does not fit; choose from umt,"
        ):
            plan({"entries": {"aft-crosstask": {"settings": {"of": of}}}})

    def test_training_in_a_circle_is_refused(self) -> None:
        changes = {"aft-narrations": {"settings": {"init": "aft-narrations-htstep"}}}
        circle = "aft-narrations <- aft-narrations-htstep <- aft-narrations"
        with pytest.raises(ConfigError, match=f"settings: .*{circle}.* is a cycle: name another entry"):
            plan({"entries": changes})

    @pytest.mark.parametrize(
        ("table", "entry", "reason"),
        [
            ("table2", {"kind": "transfer", "settings": {"of": "aft"}}, "in table 2; choose from statistics, place, "),
            (
                "table5",
                {"kind": "actionformer_t", "settings": AFT},
                "in table 5; choose from uniform, zero_shot, trans",
            ),
        ],
    )
    def test_an_entry_in_a_table_of_another_release_is_refused(
        self, table: str, entry: dict[str, Any], reason: str
    ) -> None:
        mine = {**entry, "features": "s3d", "table": table, "method": "Mine"}
        with pytest.raises(ConfigError, match=f"entries.mine.kind: '{entry['kind']}' has no numbers {reason}"):
            plan({"entries": {"mine": mine}})

    def test_narrations_are_of_a_known_data_set(self) -> None:
        with pytest.raises(ConfigError, match="nope"):
            plan({"narrations": {"dataset": "nope"}})


class TestNeeds:
    @pytest.mark.usefixtures("banks")
    def test_files_of_the_user_are_missing(self) -> None:
        for release, entry in (("annotations", "place"), ("narrations", "tfidf")):
            manifest(release).unlink()
            made, read = job(entry)
            assert made.missing(read.entry, "v1") == (Need("release", f"htstep/{release}"),)
            assert made.how_to_fill(Need("release", f"htstep/{release}")) == (
                f'install -D -t "$STEPLINE_MIRROR/htstep/{release}" {release}.json && stepline fetch htstep/{release}'
            )
            write_releases()
            assert plan().missing(read.entry, "v1") == ()

    def test_features_are_missing_of_each_data_set(self) -> None:
        made = plan()
        for entry, release, datasets in (
            ("place", "v1", ["htstep"]),
            ("aft-narrations-coin", "v1", ["htstep", "coin"]),
            ("uniform", "crosstask", ["crosstask"]),
            ("aft-crosstask", "crosstask", ["crosstask", "htstep"]),
        ):
            found = made.missing(made.entries[entry], release)
            assert found == tuple(Need("features", f"planted/{each}") for each in datasets), entry
        table, line = next((table, line) for table, line, _ in made.lines() if line.entry == "aft")
        assert made.withheld(made.entries["aft"])
        assert made.note(table, line, "v1", "test_seen_map") == "", "nothing is submitted of what is not predicted"

    def test_what_lists_the_videos_of_coin_is_missing_where_their_features_are_computed(self) -> None:
        made = plan({"features": {"s3d": ["s3d-htstep"]}})
        found = made.missing(made.entries["aft-narrations-coin-crosstask"], "crosstask")
        assert Need("release", "htstep/coin") in found

    @pytest.mark.usefixtures("banks")
    def test_an_entry_is_missing_what_the_one_before_is(self) -> None:
        manifest("narrations").unlink()
        made = plan()
        assert made.missing(made.entries["mt-bce-vina"], "v1") == (Need("release", "htstep/narrations"),)
        assert made.missing(made.entries["mt-bce"], "v1") == ()
        assert "mt-bce-vina" not in {each.entry.id for each in made.jobs()}

    @pytest.mark.usefixtures("banks")
    def test_labels_of_train_are_missing_for_what_is_trained(self) -> None:
        write_releases("train")
        made = plan()
        assert made.missing(made.entries["aft"], "v1") == (Need("labels", "htstep/train"),)
        assert made.missing(made.entries["aft-narrations"], "v1") == ()
        assert made.missing(made.entries["uniform"], "v1") == ()

    @pytest.mark.usefixtures("banks")
    def test_weights_of_encoders_are_missing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        made = plan({"texts": {**CONFIG["texts"], "word2vec": "s3d-text"}})
        assert Need("weights", "s3d") in made.missing(made.entries["umt"], "v1")
        assert made.missing(made.entries["umt-ts"], "v1") == ()
        monkeypatch.setattr("stepline.benchmarks.htstep.texts.model_files", lambda name: None)
        made = plan({"texts": {**CONFIG["texts"], "mpnet": "minilm"}})
        assert Need("weights", "minilm") in made.missing(made.entries["aft"], "v1")

    def test_a_line_names_the_videos_of_its_whole_chain_and_those_that_are_heard(self) -> None:
        narrated = {"dataset": "talks"}
        datasets = {"talks": {"videos": "talks"}}
        Path("talks").mkdir()
        Path("talks/a.mp4").touch()
        options = {**CONFIG, "features": {"s3d": ["s3d-htstep"], "s3d_joint": ["planted"]}, "narrations": narrated}

        def made(transcripts: str = "released") -> Htstep:
            config = {"backbones": BACKBONES, "datasets": datasets, "htstep": {**options, "transcripts": transcripts}}
            return Htstep.of(validate(config), "htstep")

        def pipelines_of(entry: str, release: str = "v1", transcripts: str = "released") -> list[str]:
            of = made(transcripts)
            return [each.name for each in of.pipelines_of(of.entries[entry], release)]

        chain = "aft-narrations-coin-crosstask"
        assert pipelines_of("place") == ["htstep"]
        assert pipelines_of("mil-nce") == [], "its features are imported"
        assert pipelines_of(chain, "crosstask") == ["crosstask", "htstep", "coin", "talks"]
        absent = [need.what for need in made().lacking(made().entries[chain], "crosstask") if need.kind == "videos"]
        assert absent == ["crosstask", "htstep", "coin"], "the user's folder of narrations has a video"
        assert pipelines_of("vina") == []

    def test_speech_that_is_recognised_is_heard_in_videos(self) -> None:
        heard, read = plan({"transcripts": "asr"}), plan()
        assert [each.name for each in heard.pipelines_of(heard.entries["tfidf"], "v1")] == ["htstep"]
        assert read.pipelines_of(read.entries["tfidf"], "v1") == []

    @pytest.mark.usefixtures("banks")
    def test_a_recogniser_that_cannot_run_is_missing_where_speech_is_heard(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        need = Need("package", "recogniser")
        monkeypatch.setattr(Speech, "missing", (need,))
        made = plan({"transcripts": "asr"})
        for entry, heard in (("tfidf", True), ("mt-bce-narrations", True), ("mt-bce-vina", True), ("aft", False)):
            assert (need in made.missing(made.entries[entry], "v1")) == heard, entry
        assert need not in plan().missing(made.entries["tfidf"], "v1")

    def test_labels_that_only_the_challenge_has_are_missing_without_annotation_too(self) -> None:
        manifest("annotations").unlink()
        made = plan()
        for split, withheld in (("val_seen", False), ("test_seen", True), ("test_unseen", True)):
            needs = [Need("labels", f"htstep/{split}")] if withheld else []
            assert made.missing_of(f"{split}_map") == needs
        notes = {(row.entry, row.metric): row.note for row in table_rows(made, "table1")}
        assert notes["val-seen", "segments"].startswith("needs release:htstep/annotations;")
        assert notes["test-seen", "segments"].startswith("needs release:htstep/annotations, labels:htstep/test_seen;")

    def test_methods_that_nothing_computes_are_copied(self) -> None:
        rows = [row for row in table_rows(plan(), "table5") if not row.entry]
        assert len(rows) == 7
        assert {(row.status, row.note) for row in rows} == {("reference", "copied from the paper")}

    def test_a_folder_of_predictions_is_asked_for(self) -> None:
        made = plan()
        need = Need("predictions", "vina")
        assert made.missing(made.entries["vina"], "v1") == (need,)
        assert "files: {vina: FOLDER}" in made.filled_by("table2.csv", [need]).replace('"', "")
        other = plan({"files": {"vina": "."}, "entries": {"mine": {"kind": "files", **LINE}}})
        assert other.missing(other.entries["vina"], "v1") == ()
        assert other.missing(other.entries["mine"], "v1") == (Need("predictions", "mine"),)
        notes = {row.note for row in table_rows(made, "table2") if row.entry == "vina" and row.split == "val_seen"}
        assert notes == {"no method here; needs predictions:vina"}

    def test_labels_and_the_key_of_matches_are_missing_for_metrics_alone(self) -> None:
        made = plan({"match": {}})
        assert made.missing_of("val_seen_map") == []
        for match in ("full", "partial"):
            assert made.missing_of(f"val_seen_{match}_map") == [Need("config", "htstep.match.key", "KEY")]
        assert made.missing_of("test_seen_partial_map")[0] == Need("labels", "htstep/test_seen")
        assert made.missing_of("crosstask_r1") == made.missing_of("videos") == []
        assert plan().missing_of("val_seen_full_map") == []

    def test_without_annotation_videos_are_counted(self) -> None:
        manifest("annotations").unlink()
        made = plan()
        assert made.missing(made.entries["test-seen"], "v1") == ()
        assert made.missing_of("segments") == [Need("release", "htstep/annotations")]
        counted = {row.entry: row.value for row in table_rows(made, "table1") if row.metric == "videos"}
        splits = {"train": 24, "val-seen": 9, "test-seen": 9, "test-unseen": 2, "val-unseen": 2}
        assert counted == splits | {"seen": 9 + 9, "full": 24 + 9 + 9 + 2}
        assert manifest("annotations") not in made.table_inputs("table1")
        assert {metric for metric, each in METRICS.items() if each.unit == "count"} == {*COUNTS}
        write_releases()
        own = {"mine": {"kind": "uniform", "features": "s3d", "table": "table1", "method": "Mine"}}
        for made in (plan(), plan({"entries": own})):
            assert {manifest("annotations"), manifest("candidates")} <= {*made.table_inputs("table1")}

    def test_segments_are_counted_where_the_labels_of_a_split_are_here(self) -> None:
        def rows() -> dict[str, Any]:
            return {row.entry: row for row in table_rows(plan(), "table1") if row.metric == "segments"}

        withheld = rows()["test-seen"]
        assert (withheld.value, withheld.note) == (None, "needs labels:htstep/test_seen; rounded to hundreds")
        assert withheld.command.startswith('install -D -t "$STEPLINE_MIRROR/htstep/annotations" annotations.json')
        assert rows()["full"].note.startswith("needs labels:htstep/test_seen, labels:htstep/test_unseen; ")
        write_releases("val_unseen")
        seen = ["val_seen", "test_seen"]
        for entry, splits in (("test-seen", ["test_seen"]), ("seen", seen), ("full", ["train", *seen, "test_unseen"])):
            counted = [each for each in videos() if each.split in splits]
            assert rows()[entry].value == sum(len(each.segments) for each in counted), entry

    def test_counts_wait_for_the_list_of_videos(self) -> None:
        manifest("v1").unlink()
        rows = table_rows(plan(), "table1")
        assert {row.status for row in rows if row.entry} == {"needs"}
        assert {row.note.partition(";")[0] for row in rows if row.entry and row.metric == "videos"} == {
            "needs release:htstep/v1"
        }


@pytest.mark.usefixtures("banks")
class TestReads:
    def test_a_job_on_crosstask_opens_no_annotation(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("is_made", "labelled_splits"):
            monkeypatch.setattr(f"stepline.datasets.htstep.{name}", lambda: pytest.fail("the annotation is opened"))
        made = plan()
        assert manifest("annotations") not in made.predict_inputs(made.job("crosstask", "uniform", "all"))

    def test_releases(self) -> None:
        made = plan()
        for entry, release, expected in (
            ("place", "v1", ["v1", "annotations", "candidates"]),
            ("tfidf", "v1", ["v1", "annotations", "candidates", "narrations"]),
            ("aft-narrations", "v1", ["v1", "annotations", "candidates", "narrations"]),
            ("aft-narrations-coin", "v1", ["v1", "annotations", "candidates", "coin"]),
            ("vina", "v1", ["v1", "annotations", "candidates"]),
            ("uniform", "crosstask", ["crosstask"]),
            ("train", "v1", ["v1"]),
        ):
            assert made.reads(Job(release=release, entry=made.entries[entry])) == expected, entry
        manifest("candidates").unlink()
        made = plan()
        assert made.reads(Job(release="v1", entry=made.entries["place"])) == ["v1", "annotations"]

    def test_what_a_file_of_predictions_saw_is_not_read(self) -> None:
        made, read = job("vina", entries={"vina": {"inputs": ["speech", "narrations"]}})
        assert "narrations" not in made.reads(read)
        assert [each.word for each in made.seen(read.entry)] == ["video", "article", "speech", "narrations"]

    def test_releases_to_fetch_are_those_that_are_read_and_public(self) -> None:
        assert plan({"tables": ["table2"]}).releases == ["v1"]
        assert plan({"tables": ["table5"]}).releases == ["crosstask", "v1"]
        assert plan({"tables": ["table6"]}).releases == ["crosstask", "v1", "coin"]

    def test_checkpoints_of_entries_before_are_read_where_they_are_used(self) -> None:
        made = plan({"actionformer": CONFIG["actionformer"] | {"seeds": [0, 1]}})
        vina, of = (Job(release="v1", entry=made.entries[name]) for name in ("aft-narrations-htstep", "aft-narrations"))
        before = made.fits(of)
        assert len(before) == 2
        assert {*before} <= {*made.fit_inputs(vina)}
        assert not {*before} & {*made.predict_inputs(vina)}
        transfer = Job(release="crosstask", entry=made.entries["aft-narrations-htstep-crosstask"])
        assert {*made.fits(vina)} <= {*made.predict_inputs(transfer)}
        assert not {*before} & {*made.predict_inputs(transfer)}

    def test_banks_of_what_is_trained_on_and_of_what_is_predicted(self) -> None:
        made = plan({"narrations": {"dataset": "crosstask"}})
        own, other = (made.footage[name].inputs("planted") for name in ("htstep", "crosstask"))
        assert own != other
        narrated = Job(release="v1", entry=made.entries["aft-narrations"])
        assert {*own, *other} <= {*made.fit_inputs(narrated)}

    def test_scores_read_labels_and_candidates_and_on_crosstask_neither(self) -> None:
        made = plan()
        place = Job(release="v1", entry=made.entries["place"])
        assert made.score_inputs(place) == [manifest("v1"), manifest("annotations"), manifest("candidates")]
        uniform = Job(release="crosstask", entry=made.entries["uniform"])
        assert made.score_inputs(uniform) == [manifest("crosstask")]

    def test_a_recogniser_s_transcripts_are_read_where_they_are_used(self) -> None:
        made = plan({"transcripts": "asr", "features": {"s3d": ["histogram"]}, "tables": ["table2"]})
        speech = {*made.footage["htstep"].pipeline.speech.manifests}
        assert speech
        heard, narrated, silent = (
            Job(release="v1", entry=made.entries[name]) for name in ("tfidf", "mt-bce-narrations", "aft")
        )
        assert speech <= {*made.predict_inputs(heard)}
        assert speech <= {*made.fit_inputs(narrated)}
        assert not speech & {*made.fit_inputs(silent), *made.predict_inputs(silent)}
        assert "narrations" not in made.reads(heard)
        told = {"transcripts": "asr", "features": {"s3d": ["histogram"]}, "narrations": {"dataset": "crosstask"}}
        other = plan({**told, "tables": ["table2"]})
        speech, talks = ({*other.footage[name].pipeline.speech.manifests} for name in ("htstep", "crosstask"))
        assert talks <= {*other.fit_inputs(narrated)}
        assert not speech & {*other.fit_inputs(narrated)}
        assert speech <= {*other.predict_inputs(heard)}

    def test_sound_is_wanted_where_it_is_heard(self) -> None:
        def sounds(**changes: Any) -> bool:
            return plan(changes).footage["htstep"].pipeline.demand.media

        assert not sounds()
        assert sounds(transcripts="asr")
        assert not sounds(transcripts="asr", tables=["table4"])
        assert sounds(transcripts="asr", tables=["table5"])


class TestFootage:
    def test_what_a_transfer_is_made_of_reads_videos_of_ht_step(self) -> None:
        lines = {name: {"settings": {"of": "aft"}} for name in ("mt-bce-crosstask",)}
        computed = {"s3d": ["s3d-htstep"], "s3d_joint": ["s3d-oepp"]}
        made = plan({"features": computed, "tables": ["table5"], "entries": lines, "narrations": {"dataset": "coin"}})
        assert made.footage["htstep"].names == ("s3d-htstep",)
        assert {*made.pipelines} == {"htstep", "crosstask", "coin"}

    @pytest.mark.parametrize(
        ("table", "expected"),
        [("table1", set()), ("table4", {"htstep"}), ("table6", {"htstep", "crosstask", "coin"})],
    )
    def test_pipelines_are_of_the_data_sets_that_are_read(self, table: str, expected: set[str]) -> None:
        assert {*plan({"tables": [table]}).pipelines} == expected

    def test_the_jobs_of_entries_that_others_are_made_of_come_with_all_alone(self, banks: None) -> None:
        made = plan({"tables": ["table6"]})
        assert {"aft", "aft-narrations"} <= {each.entry.id for each in made.jobs()}
        assert not {"aft", "aft-narrations"} & {each.entry.id for each in made.jobs("table6")}
        assert made.by_activity == []
        assert [each.entry.id for each in made.jobs(entry="aft-crosstask")] == ["aft-crosstask"]
        assert [each.entry.id for each in made.jobs(entry="aft")] == ["aft"]
        other = plan({"tables": ["table6"], "entries": {"aft-narrations-crosstask": {"settings": {"of": "aft"}}}})
        assert "aft-narrations" in {each.entry.id for each in other.jobs()}, "what is two entries before"


@pytest.mark.usefixtures("banks")
class TestSpecs:
    def changed(self, **changes: Any) -> set[str]:
        """Return the entries whose predictions other options decide."""
        before, after = plan(), plan(changes)
        jobs = {(each.entry.id, each.release): before.spec(each) for each in before.jobs()}
        other = {(each.entry.id, each.release): after.spec(each) for each in after.jobs()}
        return {entry for entry, release in jobs.keys() & other.keys() if jobs[entry, release] != other[entry, release]}

    def test_options_of_a_head_are_of_its_entries_and_of_those_made_of_it(self) -> None:
        changed = self.changed(actionformer=CONFIG["actionformer"] | {"epochs": 3})
        entries = plan().entries
        kinds = {entries[name].kind_name for name in changed}
        assert kinds == {"actionformer", "actionformer_t", "transfer"}
        assert {"aft-crosstask", "aft-narrations-htstep-crosstask", "actionformer", "aft-narrations-htstep"} <= changed
        assert "mt-bce-crosstask" not in changed
        assert self.changed(umt=CONFIG["umt"] | {"moments": 3}) == {"umt", "umt-ts"}

    def test_a_seed_or_setting_of_the_entry_before_is_of_the_spec(self) -> None:
        changed = self.changed(entries={"mt-bce-narrations": {"settings": {"input": "headline"}}})
        assert changed == {"mt-bce-narrations", "mt-bce-vina"}

    def test_narrations_are_of_what_is_trained_on_them(self) -> None:
        changed = self.changed(narrations={"sentences": 5})
        assert {"mt-bce-narrations", "mt-bce-vina", "aft-narrations-crosstask"} <= changed
        assert not {"tfidf", "mt-bce", "aft"} & changed

    def test_features_of_other_videos_are_of_what_is_trained_on_them(self) -> None:
        def specs() -> list[str]:
            made = plan({"narrations": {"dataset": "crosstask"}})
            return [made.spec(Job(release="v1", entry=made.entries[name])) for name in ("aft-narrations", "aft")]

        before = specs()
        [record] = plan().footage["crosstask"].inputs("planted")
        content = json.loads(record.read_text()) | {"changed": True}
        record.unlink()
        record.write_text(json.dumps(content))
        assert [one == other for one, other in zip(before, specs(), strict=True)] == [False, True]

    def test_transcripts_are_of_what_hears_them(self) -> None:
        before, after = plan(), plan({"transcripts": "asr"})
        for entry, heard in (("tfidf", True), ("aft-narrations", True), ("aft", False)):
            specs = [made.spec(Job(release="v1", entry=made.entries[entry])) for made in (before, after)]
            assert (specs[0] != specs[1]) == heard, entry
            told = after.decides(Job(release="v1", entry=after.entries[entry]))["transcripts"]
            assert told == (after.footage["htstep"].pipeline.speech.record if heard else ""), entry

    def test_encoders_are_of_what_reads_texts(self) -> None:
        made, other = plan(), plan({"texts": {**CONFIG["texts"], "mpnet": "minilm"}})
        for entry, release, read in (("aft", "v1", True), ("aft-crosstask", "crosstask", True), ("umt", "v1", False)):
            specs = [each.spec(Job(release=release, entry=each.entries[entry])) for each in (made, other)]
            assert (specs[0] != specs[1]) == read, entry

    @pytest.mark.parametrize(
        "changes",
        [
            {"metrics": CONFIG["metrics"] | {"crosstask_seed": 3}},
            {"match": {"key": "kind", "full": "partial", "partial": "full"}},
        ],
    )
    def test_what_is_scored_otherwise_is_predicted_the_same(self, changes: dict[str, Any]) -> None:
        assert self.changed(**changes) == set()
        before, after = plan(), plan(changes)
        rescored = {
            (each.entry.id, each.release)
            for each, other in zip(before.jobs(), after.jobs(), strict=True)
            if before.score_params(each) != after.score_params(other)
        }
        releases = {release for _, release in rescored}
        assert ("aft-crosstask", "crosstask") in rescored or "match" in changes
        assert releases == {"v1" if "match" in changes else "crosstask"}

    def test_files_of_predictions_are_of_the_spec_and_are_read(self, tmp_path: Path) -> None:
        specs, file = [], tmp_path / "val_seen.csv"
        for content in ("a", "b"):
            file.write_text(content * (1 + len(specs)))
            made, read = job("vina", files={"vina": str(tmp_path)})
            specs.append(made.spec(read))
            assert file in made.predict_inputs(read)
            assert file not in made.score_inputs(read)
        assert specs[0] != specs[1]


class TestTables:
    def test_each_metric_has_a_split_and_what_sees_nothing_beside_it(self) -> None:
        made = plan()
        for table in made.declared.tables:
            known = {line.entry for line in table.lines}
            blind = {made.blind(made.entries["aft"], metric) for metric in table.metrics} - {""}
            assert blind <= known, table.name
        assert {made.blind(made.entries["train"], metric) for metric in COUNTS} == {""}
        assert {made.split(made.entries["aft"], metric) for metric in METRICS if metric not in COUNTS} == {
            "val_seen",
            "val_unseen",
            "test_seen",
            "test_unseen",
            "crosstask",
        }
        assert made.split(made.entries["test-seen"], "videos") == "test_seen"

    def test_the_blind_baseline_is_the_mean_place_and_on_crosstask_uniform_cuts(self) -> None:
        made = plan()
        blind = {metric: made.blind(made.entries["aft"], metric) for metric in METRICS if metric not in COUNTS}
        assert {metric for metric, entry in blind.items() if entry == "uniform"} == {*CROSSTASK}
        assert {*blind.values()} == {"uniform", "place"}

    def test_options_decide_the_metrics_that_are_defined_by_them(self) -> None:
        drawn = {f"crosstask_{name}" for name in ("validation", "subsets", "videos", "evaluated", "seed")}
        for name, metric in METRICS.items():
            pool = {"crosstask_validation"} if name == "crosstask_map" else set()
            assert {*metric.options} == (drawn if name.startswith("crosstask") and "r1" in name else pool), name

    def test_numbers_of_crosstask_name_the_subsets_with_the_paper_s_20(self) -> None:
        [options] = [
            row.options
            for row in table_rows(plan({"metrics": {"crosstask_subsets": 20, "crosstask_seed": 5}}), "table6")
            if (row.entry, row.metric) == ("uniform", "crosstask_r1")
        ]
        named = {name.removeprefix("crosstask_"): option for name, option in options.items() if name != "features"}
        assert {name: (each.value, each.published, each.said) for name, each in named.items()} == {
            "validation": (False, False, False),
            "subsets": (20, 20, True),
            "videos": (30, 30, False),
            "evaluated": ("rest", "rest", False),
            "seed": (5, 0, False),
        }

    @pytest.mark.parametrize(
        ("metric", "title", "said", "unsaid"),
        [
            (
                "val_seen_map_05",
                "val_seen mAP@0.5",
                "an IoU of 0.5,|have a true segment in the split|of its video ",
                "its step",
            ),
            (
                "test_seen_map",
                "test_seen mAP@[0.3-0.7]",
                "0.3, 0.39999999999999997, 0.5, 0.6 and 0.7 |activities",
                "tasks",
            ),
            (
                "val_seen_query_map_07",
                "val_seen mAP@0.7 per query",
                "an IoU of 0.7,|of its step in its video",
                "in the split",
            ),
            (
                "val_seen_full_map",
                "val_seen mAP@[0.3-0.7] full",
                "of its step in its video|not a full match",
                "partial",
            ),
            ("val_unseen_partial_map", "val_unseen mAP@[0.3-0.7] partial", "not a partial match", "full"),
            ("val_seen_r1", "val_seen R@1", "to ceil(end), both included", "order"),
            ("val_seen_ordered_r1", "val_seen R@1 in order", "both included, with times in the order", "before"),
            ("crosstask_r1", "Avg. R@1", "the mean over random splits|to before ceil(end)", "order"),
            (
                "crosstask_ordered_r1_sd",
                "Avg. R@1 in order, sd over subsets",
                "the standard deviation (n - 1)|order",
                "both",
            ),
            ("crosstask_map", "mAP@[0.3-0.7]", "over tasks|have a true segment in the split", "activities"),
        ],
    )
    def test_a_metric_says_what_it_is(self, metric: str, title: str, said: str, unsaid: str) -> None:
        about = METRICS[metric]
        text = about.definition.replace("a temporal IoU", "an IoU")
        assert about.title == title
        assert [part for part in said.split("|") if part not in text] == []
        assert unsaid not in text

    def test_a_line_prints_what_its_entry_reads(self) -> None:
        backbones = {"s3d": "S3D", "s3d_joint": "S3D", "timesformer": "TS"}
        encoders = {"word2vec": "Word2Vec", "mil_nce": "Word2Vec", "mpnet": "MPNet", "clip": "CLIP"}
        data = {"htstep": "HT-Step", "narrations": "HT100M", "coin": "COIN"}
        kinds = {"Mean place": "place", "Mean duration": "duration", "Uniform cuts": "uniform", "TF-IDF": "text"}
        kinds |= {"MPNet": "text", "MIL-NCE": "zero_shot", "ActionFormer": "actionformer", "UMT": "umt"}
        kinds |= {"MT+BCE": "mt_bce", "MT+BCE (VINA)": "mt_bce", "ActionFormer-T": "actionformer_t"}
        made = plan()
        for table, line, release in made.lines():
            entry, where = made.entries[line.entry], f"table {table.name}, {line.entry}"
            if entry.kind_name in ("statistics", "files"):
                continue
            parts = [part for part in made.parts(entry) if part.kind_name != "transfer"]
            kind, settings = parts[0].kind_name, parts[0].settings
            text = [encoders[settings["text"]]] if "text" in settings else []
            if table.name == "3":
                among = settings.get("input", "").split("_")
                words = text + [part for part in ("headline", "paragraph", "activity") if part in among]
            elif kind == "text":
                words = ["transcript"] + ["article order"] * (settings["order"] == "article")
            elif release == "crosstask" or "video" not in entry.sees:
                words = []
            else:
                words = [backbones[entry.features], *text]
            assert line.modality == ", ".join(words), where
            assert kind == kinds[line.method], where
            trained = [data[on] for part in reversed(parts) if (on := made.trained_on(part))]
            if trained and line.setting not in ("", "baseline"):
                assert line.setting.replace("narrations", "HT100M") == " + ".join(trained), where
            if kind == "text":
                assert settings["by"] == line.method.lower().replace("-", ""), where
            elif text and table.name != "3":
                name, made_of = {"mt_bce": ("word2vec", "activity_headline"), "zero_shot": ("mil_nce", "headline")}.get(
                    kind, (settings["text"] if line.modality else "mpnet", "headline")
                )
                assert (settings["text"], settings["input"]) == (name, made_of), where

    def test_tables_stand_on_their_release(self) -> None:
        found = {(table.name, release) for table, _, release in plan().lines()}
        assert {release for name, release in found if name in "56"} == {"crosstask"}
        assert {release for name, release in found if name not in "56"} == {"v1"}
        assert {name for table, _, _ in plan({"releases": ["v1"]}).lines() for name in table.name} == {*"1234bc"}

    @pytest.mark.usefixtures("banks")
    def test_withheld_labels_are_told_with_what_the_challenge_takes(self) -> None:
        made = plan()
        notes = {
            (row.entry, row.metric): row.note for row in table_rows(made, "table2") if row.entry in ("aft", "vina")
        }
        said = "the labels are withheld: submit results/htstep/submissions/aft/test_seen.csv to EvalAI's challenge 2205"
        assert said in notes["aft", "test_seen_map"]
        assert said.replace("test_seen", "test_unseen") in notes["aft", "test_unseen_map"]
        assert "withheld" not in notes["aft", "val_seen_map"]
        assert "withheld" not in notes["vina", "test_seen_map"]
        assert made.withheld(made.entries["aft"]) == ["test_seen", "test_unseen", "val_unseen"]
        assert made.withheld(made.entries["actionformer"]) == ["test_seen"]
        assert made.withheld(made.entries["train"]) == []
        assert Path("results/htstep/submissions/aft") in made.table_inputs("table2")
        assert made.how_to_fill(Need("labels", "htstep/test_seen")).endswith(
            "annotations.json && stepline fetch htstep/annotations"
        )

    @pytest.mark.usefixtures("banks")
    def test_without_candidates_nothing_is_submitted(self) -> None:
        manifest("candidates").unlink()
        made = plan()
        assert made.withheld(made.entries["aft"]) == []
        assert "withheld" not in made.note(
            made.declared.tables[1], made.declared.tables[1].lines[0], "v1", "test_seen_map"
        )

    def test_of_the_user_s_predictions_the_splits_that_are_there_are_submitted(self, tmp_path: Path) -> None:
        for split in ("val_seen", "test_seen"):
            (tmp_path / f"{split}.csv").touch()
        made = plan({"files": {"vina": str(tmp_path)}})
        assert made.withheld(made.entries["vina"]) == ["test_seen"]

    @pytest.mark.usefixtures("banks")
    def test_made_up_annotation_is_marked_and_not_compared(self) -> None:
        assert not plan().made_up
        mark_as_made()
        made = plan()
        for file in ("table1", "table2", "table6"):
            for row in [row for row in table_rows(made, file) if row.entry]:
                trained = {made.trained_on(part) for part in made.parts(made.entries[row.entry])}
                marked = file != "table6" or "htstep" in trained
                assert ("the annotation is made up: no result" in row.note) == marked, (file, row.entry)
                assert ("annotation" in row.options) == marked
                if marked:
                    assert row.status in ("needs", "ours", "not comparable"), (file, row.entry, row.metric)

    def test_encoders_transcripts_and_narrations_are_shown_also_of_what_an_entry_is_made_of(self) -> None:
        made = plan()

        def shown(entry: str, release: str = "v1") -> set[str]:
            return {*made.shown_options(made.entries[entry], release)}

        assert shown("place") == {"features"}
        assert shown("tfidf") == {"features", "transcripts"}
        assert shown("aft") == shown("aft-crosstask", "crosstask") == {"features", "texts"}
        heard = {"features", "texts", "transcripts", "narrations.dataset", "narrations.sentences"}
        assert shown("aft-narrations-htstep-crosstask", "crosstask") == shown("mt-bce-vina") == heard
        other = plan({"transcripts": "asr", "narrations": {"dataset": "coin", "sentences": 7}})
        found = other.shown_options(other.entries["mt-bce-vina"], "v1")
        assert {
            name: (each.value, each.published, each.said)
            for name, each in found.items()
            if name in heard - {"features"}
        } == {
            "texts": ("tower", "s3d-text-tan", True),
            "transcripts": ("asr", "released", True),
            "narrations.dataset": ("coin", "htstep", False),
            "narrations.sentences": (7, 35, False),
        }
        assert made.shown_options(made.entries["aft"], "v1")["texts"].published == "paraphrase-mpnet"

    @pytest.mark.parametrize("name", ["htstep", "howto100m"])
    def test_what_is_trained_on_narrations_is_never_comparable(self, name: str) -> None:
        own = {"datasets": {name: {"videos": "."}}} if name == "howto100m" else {}
        made = Htstep.of(validate({**own, "htstep": {"narrations": {"dataset": name}}}), "htstep")
        trained = {
            (table.file, line.entry): line.protocol
            for table, line, _ in made.lines()
            if any(made.trained_on(part) == "narrations" for part in made.parts(made.entries[line.entry]))
        }
        assert {("table2", "mt-bce-vina"), ("table5", "aft-narrations-htstep-crosstask")} < {*trained}
        assert {*trained.values()} == {"beyond"}
        others = {("table2", "umt-ts"), ("table2b", "umt-ts"), ("table5", "mil-nce")}
        beyond = {(table.file, line.entry) for table, line, _ in made.lines() if line.protocol == "beyond"}
        assert beyond == {*trained} | others
        assert made.shown_options(made.entries["mt-bce-vina"], "v1")["narrations.dataset"].differs == bool(own)

    def test_an_entry_sees_what_it_is_made_of(self) -> None:
        made = plan()
        seen = {
            name: " ".join(each.word for each in made.seen(made.entries[name]))
            for name in (
                "place",
                "uniform",
                "duration",
                "tfidf",
                "mil-nce",
                "actionformer",
                "aft",
                "umt",
                "aft-crosstask",
                "aft-narrations-coin-crosstask",
            )
        }
        assert seen == {
            "place": "article duration train",
            "uniform": "article duration",
            "duration": "article duration train",
            "tfidf": "article speech",
            "mil-nce": "video article",
            "actionformer": "video train",
            "aft": "video article train",
            "umt": "video article train",
            "aft-crosstask": "video article train",
            "aft-narrations-coin-crosstask": "video article narrations coin",
        }
        assert [each.word for each in made.seen(made.entries["mt-bce-vina"])] == [
            "video",
            "article",
            "train",
            "narrations",
        ]

    @pytest.mark.usefixtures("banks")
    def test_a_split_of_which_nothing_is_predicted_has_no_number_but_a_need(self, monkeypatch: Any) -> None:
        write_releases("val_unseen")
        score = {"metrics": {"val_seen_map": {"value": 5.0}}, "needs": [], "status": "present"}
        monkeypatch.setattr(Htstep, "read_score", lambda self, job: score)
        rows = {(row.entry, row.metric): row for row in table_rows(plan(), "table2") if row.entry == "aft"}
        assert rows["aft", "val_seen_map"].value == 5.0
        assert "needs videos:htstep" in rows["aft", "test_seen_map"].note
        few = plan({"entries": {"aft": {"splits": ["val_seen"]}}})
        assert few.unscored(few.entries["aft"], "v1", "test_seen_map") == [
            Need("config", "htstep.entries.aft.splits", "test_seen")
        ]
        assert few.unscored(few.entries["aft"], "v1", "val_seen_r1") == []
        for changes, kind in (({}, "videos"), ({"subset": {"fraction": 0.5}}, "split")):
            made = plan(changes)
            for entry, release, metric in (("aft", "v1", "test_seen_map"), ("uniform", "crosstask", "crosstask_map")):
                what = "htstep" if kind == "videos" and release == "v1" else metric.removesuffix("_map")
                assert made.unscored(made.entries[entry], release, metric) == [Need(kind, what)]


def test_examples_are_annotated_videos_of_val_with_the_best_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Any] = []
    monkeypatch.setattr("stepline.runs.shown.timelines", lambda *args, **more: given.append((*args, more)) or [])
    load = htstep.load
    monkeypatch.setattr(
        htstep, "load", lambda *args: [replace(each, segments=each.segments[::-1]) for each in load(*args)]
    )
    made = plan()
    made.examples()
    [(of, tracks, annotated, more)] = given
    assert (of, more) == (made, {"most": 8})
    named = {(line.entry, line.method) for table in made.declared.tables for line in table.lines}
    assert {*tracks.items()} <= named
    assert {video: (each.segments, each.duration_s) for video, each in annotated("v1").items()} == {
        each.video: ([segment[:2] for segment in each.segments[::-1]], each.segments[-1][1])
        for each in videos()
        if each.split == "val_seen"
    }
    assert annotated("crosstask") == {}


def test_the_plan_opens_a_file_of_the_release_only_once(banks: None, monkeypatch: pytest.MonkeyPatch) -> None:
    made = plan()
    list(made.jobs())
    read: list[Path] = []
    own = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda self: (read.append(self), own(self))[1])
    for file in made.tables:
        made.table_params(file)
    assert not [path for path in read if path.name == ANNOTATIONS]


def test_the_default_is_a_plan_where_nothing_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    made = Htstep.of(validate({"htstep": {}}), "htstep")
    assert [*made.jobs()] == []
    assert {row.status for file in made.tables for row in table_rows(made, file)} <= {"needs", "reference"}
