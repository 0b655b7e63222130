import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from stepline import paths
from stepline.benchmark import Metric, Option, plan
from stepline.benchmark.declared import Declared
from stepline.config import validate
from stepline.datasets.dataset import Dataset
from stepline.datasets.schema import Video
from stepline.errors import ConfigError, MissingError, StoreError
from stepline.invocation import Invocation
from stepline.io import write_json, write_text
from stepline.needs import Need
from tests.benchmark.tiny import Tiny, declared, job, tiny, write_banks, write_releases

NET = Need("features", "net/first")
KINDS = Tiny.kinds


@pytest.fixture
def releases() -> None:
    write_releases()


@pytest.fixture
def banks(releases: None, tmp_path_factory: pytest.TempPathFactory) -> None:
    write_banks(tmp_path_factory.mktemp("banks"))


class TestConfiguration:
    def of(self, made: Tiny, **config: Any) -> Tiny:
        return type(made).of(made.config | config, "tiny")

    def test_a_study_that_is_not_configured_is_one_line(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match="^config: study 'tiny' is not configured; add a key `tiny:` or name"):
            type(tiny(tmp_path)).of(validate({}), "tiny")

    def test_strict_makes_what_is_missing_an_error(self, releases: None, tmp_path: Path) -> None:
        made = tiny(tmp_path)
        assert self.of(made).missing(made.entries["fitted"], "first") == (NET,)
        with pytest.raises(MissingError, match=r"^strict: tiny needs features:net/first, features:net/second$"):
            self.of(made, strict=True)

    def test_strict_is_about_metrics_too_and_not_about_what_was_never_released(
        self, banks: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        made = tiny(tmp_path)
        unreleased = Need("labels", "tiny/test"), Need("samples", "first/x/test")
        monkeypatch.setattr(Tiny, "missing_besides", lambda self, entry, release: unreleased)
        self.of(made, strict=True)
        needs = {"near": [Need("java")], "n": [Need("package", "of no table")]}
        monkeypatch.setattr(Tiny, "missing_of", lambda self, metric: needs.get(metric, []))
        with pytest.raises(MissingError, match=r"^strict: tiny needs java$"):
            self.of(made, strict=True)

    def test_a_choice_of_the_configuration_is_not_missing(
        self, banks: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.of(tiny(tmp_path, metrics={"within": 0}), strict=True)
        needs = Need("config", "tiny.model", "NAME"), Need("key", "TINY_KEY")
        monkeypatch.setattr(Tiny, "missing_besides", lambda self, entry, release: needs)
        self.of(tiny(tmp_path), strict=True)

    @pytest.mark.parametrize(
        ("name", "problem"),
        [("minilm", "'minilm' is not allowed; name a backbone"), ("../x", "'../x' is not")],
    )
    def test_a_name_of_features_that_cannot_be_is_one_line(self, tmp_path: Path, name: str, problem: str) -> None:
        with pytest.raises(ConfigError, match=rf"^config: tiny.features.net: .*{problem}"):
            self.of(tiny(tmp_path, features={"net": [name]}))

    def test_a_subset_is_drawn_within_each_split(self, tmp_path: Path) -> None:
        made = tiny(tmp_path, subset={"fraction": 0.5, "seed": 0})
        chosen = made.chosen(made.datasets["first"])
        assert [len(chosen & set(videos)) for videos in ("abc", "d", "ef")] == [1, 1, 1]
        assert made.subset == "0.5 of each split, seed 0"
        assert len(tiny(tmp_path).chosen(made.datasets["first"])) == 6

    def test_options_that_are_not_as_published_are_shown(self, tmp_path: Path) -> None:
        made = tiny(tmp_path, head={"seeds": [9], "epochs": 5}, features={"net": ["net", "histogram"]})
        training = {"epochs": Option(5, 3), "seeds": Option([9], [0, 5])}
        assert [*made.changed("head").items()] == [*training.items()]
        features = {"features": Option("net+histogram", "net")}
        assert made.shown_options(made.entries["fitted"], "first") == features
        assert made.named_options(made.entries["fitted"], "first") == features | training
        assert tiny(tmp_path).named_options(made.entries["fitted"], "first") == {"features": Option("net", "net")}

    def test_what_is_not_predicted_has_no_options(self, tmp_path: Path) -> None:
        made = tiny(tmp_path, declared(entries={"people": {"kind": "people", "features": "net"}}))
        assert made.named_options(made.entries["people"], "first") == {}

    def test_options_of_what_an_entry_combines_are_shown(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        made = tiny(tmp_path, head={"epochs": 5}, entries={"drawn": {"seeds": [7]}})
        assert made.named_options(made.entries["three"], "first") == {}
        monkeypatch.setattr(Tiny, "parts", lambda self, entry: [entry, *map(self.entries.get, ("fitted", "drawn"))])
        assert made.named_options(made.entries["three"], "first") == {
            "epochs": Option(5, 3),
            "seeds": Option((7,), (1, 2)),
        }

    @pytest.mark.parametrize(
        ("backbone", "shown"),
        [
            ("net", set()),
            ("histogram", {"media.damaged", "download.max_height"}),
            ("s3d-pss", {"media.damaged", "download.max_height", "features.batches"}),
        ],
    )
    def test_options_of_reading_are_shown_where_videos_are_read(
        self, tmp_path: Path, backbone: str, shown: set[str]
    ) -> None:
        made = tiny(tmp_path, features={"net": [backbone]})
        changes = {"media": {"damaged": "skip"}, "download": {"max_height": 144}, "features": {"batches": "mixed"}}
        before = made.table_params("table1")
        made = type(made)(made.config | {key: made.config[key] | value for key, value in changes.items()}, "tiny")
        assert (made.table_params("table1") != before) == bool(shown)
        options = made.named_options(made.entries["fitted"], "first")
        assert options.keys() == shown | {"features"}
        assert all(not options[key].said and options[key].differs for key in shown)
        three = made.entries["three"]
        assert made.named_options(three, "first") == {}
        decoding = replace(three, kind=replace(three.kind, decoded=True))
        assert made.named_options(decoding, "first").keys() == {"media.damaged", "download.max_height"}

    def test_features_are_of_the_videos_of_a_data_set(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(Tiny, "datasets", {})
        made = tiny(tmp_path, declared(datasets=[]))
        with pytest.raises(ConfigError, match=r"^OwnTiny: fitted reads features or speech of videos: name a data set"):
            made.check_features()
        heard = {"kind": "heard", "settings": {"number": 3}, "table": "table2", "method": "Heard"}
        made = tiny(tmp_path / "heard", declared(datasets=[], entries={"heard": heard}), tables=["table2"])
        with pytest.raises(ConfigError, match=r"^OwnTiny: heard reads features or speech of videos: name a data set"):
            made.check_features()

    def test_pipelines_are_of_the_configured_releases_and_one_data_set_is_listed_by_default(
        self, tmp_path: Path
    ) -> None:
        made = tiny(tmp_path, releases=["second"])
        assert made.pipelines.keys() == {"second"}
        assert Declared.__dict__["datasets"].func(made).keys() == {"first"}

    def test_another_release_that_jobs_read_is_listed_if_its_files_are_not_pinned(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        made = tiny(tmp_path)
        assert made.listed_by(made.entries["three"], "first") == []
        monkeypatch.setattr(Tiny, "reads", lambda self, job: [job.release, "second"])
        assert made.listed_by(made.entries["three"], "first") == ["second"]

    def test_two_entries_with_one_line_are_one_line(self, tmp_path: Path) -> None:
        lines = [{"entry": "three", "method": "A"}, {"entry": "drawn", "method": "A"}]
        one_table = declared(tables={"table1": {"title": "T", "metrics": ["error"], "lines": lines}})
        with pytest.raises(ConfigError, match="entries: three and drawn give the same line of table 1; give one of"):
            self.of(tiny(tmp_path, one_table))

    @pytest.mark.parametrize(
        "other",
        [{"setting": "baseline"}, {"modality": "V"}, {"contexts": [60]}, {"method": "B"}, {"entry": "fitted"}],
    )
    def test_lines_differ_by_what_they_show(self, tmp_path: Path, other: dict[str, Any]) -> None:
        """The options of an entry, such as its features, are shown too."""
        lines = [{"entry": "three", "method": "A"}, {"entry": "drawn", "method": "A", **other}]
        self.of(tiny(tmp_path, declared(tables={"table1": {"title": "T", "metrics": ["error"], "lines": lines}})))


class TestShown:
    def test_lines_stand_on_configured_releases_and_tables(self, tmp_path: Path) -> None:
        made = tiny(tmp_path)
        pairs = made.pairs()
        assert pairs[:3] == [("three", "first"), ("three", "second"), ("drawn", "first")]
        assert len(pairs) == 9
        assert [*made.shown] == ["three", "drawn", "fitted", "people", "four"]
        assert made.measured == ("error", "near")
        small = tiny(tmp_path, releases=["second"], tables=["table2"])
        assert small.pairs() == [("four", "second"), ("three", "second")]
        assert small.measured == ("error",)

    def test_a_table_that_is_not_configured_is_one_line(self, tmp_path: Path) -> None:
        made = tiny(tmp_path, tables=["table1"])
        with pytest.raises(ConfigError, match=r"^config: tiny.tables: 'table2' is not one of table1; add it there$"):
            made.check_table("table2")
        made.check_table("table1")
        assert made.targets == ("table1.csv", "report.html")
        assert made.table_title("table1") == "Guesses"
        assert made.report_inputs() == [Path("results/tiny/table1.csv")]

    def test_all_results_are_tables_and_the_page(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        names = [path.name for path in tiny(tmp_path).results]
        assert names == ["report.html", "table1.csv", "table1.md", "table2.csv", "table2.md"]
        monkeypatch.setattr(Tiny, "also_made", ("more.csv",))
        assert tiny(tmp_path).targets == ("table1.csv", "table2.csv", "report.html", "more.csv")
        assert Path("results/tiny/more.csv") in tiny(tmp_path).results

    def test_releases_that_jobs_read_are_fetched(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        made = tiny(tmp_path, tables=["table2"], releases=["second"])
        assert made.releases == ["second"]
        monkeypatch.setattr(Tiny, "reads", lambda self, job: [job.release, "third"])
        assert made.releases == ["second", "third"]
        monkeypatch.setattr(Tiny, "reads", lambda self, job: ["third"])
        assert made.releases == ["second", "third"], "its own release counts its videos"

    def test_what_decides_a_release_is_its_pins_or_files_in_the_mirror(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        made, mirror = tiny(tmp_path), tmp_path / "mirror"
        before = made.release_params("first"), made.release_params("second")
        for release in ("first", "second"):
            write_text(mirror / f"tiny/{release}/numbers.json", "{}")
        monkeypatch.setenv("STEPLINE_MIRROR", str(mirror))
        assert made.release_params("first") == before[0]
        assert made.release_params("second") != before[1]
        files = made.released.release_files("first")
        moved = replace(made.released, release_files=lambda _: [replace(file, path="moved.json") for file in files])
        monkeypatch.setattr(Tiny, "released", moved)
        assert made.release_params("first") != before[0]


class TestMissing:
    def test_nothing_where_nothing_but_a_pinned_release_is_read(self, tmp_path: Path) -> None:
        made = tiny(tmp_path)
        assert made.missing(made.entries["three"], "first") == ()

    def test_a_release_without_known_sha256_must_be_there(self, tmp_path: Path) -> None:
        made = tiny(tmp_path)
        assert made.missing(made.entries["three"], "second") == (Need("release", "tiny/second"),)
        write_releases()
        assert tiny(tmp_path).missing(made.entries["three"], "second") == ()

    def test_a_bank_that_is_not_imported(self, releases: None, tmp_path: Path) -> None:
        made = tiny(tmp_path)
        assert made.missing(made.entries["fitted"], "first") == (NET,)

    def test_a_backbone_needs_its_weights_and_what_lists_the_videos(self, tmp_path: Path) -> None:
        made = tiny(tmp_path, features={"net": ["s3d-pss"]})
        assert made.missing(made.entries["fitted"], "first") == (Need("release", "tiny/first"), Need("weights", "s3d"))

    def test_a_line_names_absent_videos_beside_other_needs_alone(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def lacking(backbone: str) -> list[str]:
            made = tiny(tmp_path, features={"net": [backbone]})
            return list(map(str, made.lacking(made.entries["fitted"], "first")))

        assert lacking("s3d-pss") == ["release:tiny/first", "videos:first", "weights:s3d"]
        write_releases()
        assert lacking("s3d-pss") == ["videos:first", "weights:s3d"]
        assert lacking("net") == ["features:net/first"], "a bank is imported, not computed from videos"
        assert lacking("histogram") == [], "its jobs fetch the videos"
        write_text(paths.videos("first") / "a.json", "the record of a failure")
        assert lacking("s3d-pss") == ["videos:first", "weights:s3d"]
        write_text(paths.videos("first") / "a.mp4", "a video")
        assert lacking("s3d-pss") == ["weights:s3d"]

    def test_a_table_is_written_again_when_videos_come(self, releases: None, tmp_path: Path) -> None:
        def params() -> str:
            return tiny(tmp_path, features={"net": ["s3d-pss"]}).table_params("table1")

        before = params()
        assert params() == before
        write_text(paths.videos("first") / "a.mp4", "a video")
        assert params() != before

    def test_what_hears_needs_a_recogniser_and_sound(self, releases: None, tmp_path: Path) -> None:
        heard = {"kind": "heard", "settings": {"number": 3}, "table": "table2", "method": "Heard"}
        mute, made = tiny(tmp_path / "mute"), tiny(tmp_path / "heard", declared(entries={"heard": heard}))
        assert [each.footage["first"].pipeline.demand.media for each in (mute, made)] == [False, True]
        made.config["asr"]["engine"] = "deepgram"
        assert made.missing(made.entries["heard"], "first") == (Need("key", "DEEPGRAM_API_KEY"),)
        assert made.lacking(made.entries["heard"], "first") == (
            Need("videos", "first"),
            Need("key", "DEEPGRAM_API_KEY"),
        )
        assert made.missing(made.entries["three"], "first") == ()

    def test_a_line_that_is_copied_needs_nothing(self, tmp_path: Path) -> None:
        made = tiny(tmp_path)
        (line,) = [line for _, line, _ in made.lines() if line.entry == "people"][:1]
        assert made.missing_line(line, "second") == ()
        (line,) = [line for _, line, _ in made.lines() if line.entry == "drawn"]
        assert made.missing_line(line, "second") == (Need("release", "tiny/second"),)

    def test_a_line_wants_what_it_lacks_and_what_its_own_metrics_lack(self, releases: None, tmp_path: Path) -> None:
        made = tiny(tmp_path, metrics={"within": 0}, releases=["first"])
        wanted = {line.entry: [*map(str, made.wanted_by(table, line, of))] for table, line, of in made.lines("table1")}
        within = "config:tiny.metrics.within=1"
        assert wanted == {
            "three": [],
            "drawn": [within],
            "fitted": ["features:net/first", within],
            "people": [],
        }


class TestFilledBy:
    RUN = "snakemake --cores 8 results/tiny/table1.csv"

    @pytest.mark.parametrize(
        ("needs", "commands"),
        [
            ([Need("release", "tiny/second")], "stepline fetch tiny/second && "),
            ([NET, NET], "stepline bank import FOLDER --name net --dataset first --hop-s 1 && "),
            ([Need("java"), Need("key", "X")], "apt install default-jre-headless && export X=... && "),
            ([Need("weights", "s3d")], "stepline fetch weights/s3d && "),
            ([Need("videos", "first")], "stepline fetch first/videos && "),
            ([Need("score", "three")], ""),
        ],
    )
    def test_each_need_has_its_command_once(self, tmp_path: Path, needs: list[Need], commands: str) -> None:
        assert tiny(tmp_path).filled_by("table1.csv", needs) == commands + self.RUN

    def test_nothing_is_filled_where_nothing_is_missing_or_was_ever_released(self, tmp_path: Path) -> None:
        assert tiny(tmp_path).filled_by("table1.csv", []) == ""
        assert tiny(tmp_path).filled_by("table1.csv", [NET, Need("samples", "v0/x/val")]) == ""

    def test_choices_of_the_configuration_come_together(self, tmp_path: Path) -> None:
        needs = [Need("config", "tiny.metrics.within", "2"), Need("config", "tiny.features.net", "other")]
        assert tiny(tmp_path).filled_by("table1.csv", needs) == (
            f"{self.RUN} --config 'tiny={{metrics: {{within: 2}}, features: {{net: [net, other]}}}}'"
        )

    def test_values_of_a_list_and_folders_of_predictions_come_beside(self, tmp_path: Path) -> None:
        made = tiny(tmp_path)
        made.options["files"] = {"own": None}
        names = [Need("config", "tiny.features.net", name) for name in ("other", "third")]
        assert made.filled_by("table1.csv", [*names, Need("predictions", "own")]) == (
            f"{self.RUN} --config 'tiny={{features: {{net: [net, other, third]}}, files: {{own: FOLDER}}}}'"
        )

    def test_one_need_has_its_own_command_or_that_of_the_result(self, tmp_path: Path) -> None:
        made = tiny(tmp_path)
        assert made.command_for(Need("release", "tiny/second"), "table1.csv") == "stepline fetch tiny/second"
        within = Need("config", "tiny.metrics.within", "2")
        assert made.command_for(within, "table1.csv") == f"{self.RUN} --config 'tiny={{metrics: {{within: 2}}}}'"
        assert made.how_to_fill(Need("package", "mir-eval")) == "pip install mir-eval"

    @pytest.mark.parametrize(
        ("url", "command"),
        [
            ("", 'install -D -t "$STEPLINE_MIRROR/first/films" VIDEOS/*.mp4'),
            ("https://tiny/b", "stepline fetch first/videos"),
        ],
    )
    def test_videos_that_no_url_brings_are_put_into_the_mirror(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str, command: str
    ) -> None:
        def listed() -> tuple[Video, ...]:
            return Video(id="c"), Video(id="a", path="first/films/a.mp4"), Video(id="b", path="b.mp4", url=url)

        datasets = {"first": Dataset(name="first", title="F", videos=listed, listed_by="tiny/first")}
        monkeypatch.setattr(Tiny, "datasets", datasets)
        assert tiny(tmp_path).how_to_fill(Need("videos", "first")) == command

    def test_a_split_without_videos_wants_the_whole_subset(self, tmp_path: Path) -> None:
        assert tiny(tmp_path).filled_by("table1.csv", [Need("split", "val")]) == ""
        made = tiny(tmp_path, subset={"fraction": 0.5})
        assert made.filled_by("table1.csv", [Need("split", "val")]) == f"{self.RUN} --config 'tiny={{subset: null}}'"


class TestJobs:
    def test_what_is_missing_nothing_and_predicted_has_a_job_once(self, releases: None, tmp_path: Path) -> None:
        found = [(each.entry.id, each.release, each.context) for each in tiny(tmp_path).jobs()]
        assert found == [
            ("three", "first", "all"),
            ("three", "second", "all"),
            ("drawn", "first", "all"),
            ("four", "first", "all"),
            ("four", "second", "all"),
        ]
        assert [each.entry.id for each in tiny(tmp_path, releases=["first"]).jobs("table2")] == ["four", "three"]

    def test_a_line_has_a_job_at_each_window_length(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        line = {"entry": "three", "method": "Three", "contexts": [60, None, 60]}
        made = tiny(tmp_path, declared(tables={"table1": {"title": "T", "metrics": ["error"], "lines": [line]}}))
        assert [each.context for each in made.jobs("table1")] == ["60s", "all"]
        assert made.job("first", "three", "60s").context_s == 60
        monkeypatch.setattr(Tiny, "contexts", lambda *_: [(60, None), (None, None)])
        assert [each.context for each in made.jobs("table1")] == ["all"], "one job answers at both"

    def test_of_one_entry_others_are_not_looked_at(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        asked = []
        monkeypatch.setattr(Tiny, "missing", lambda self, entry, release: asked.append(entry.id) or ())
        assert tiny(tmp_path).job("first", "drawn", "all").entry.id == "drawn"
        assert {*asked} == {"drawn"}

    @pytest.mark.parametrize(
        ("place", "error", "line"),
        [
            (("first", "nobody", "all"), ConfigError, "tiny has no entry 'nobody' on 'first' at 'all': .+"),
            (
                ("first", "three", "60s"),
                ConfigError,
                "tiny has no entry 'three' on 'first' at '60s': choose from three on first at all, .+",
            ),
            (
                ("second", "drawn", "all"),
                ConfigError,
                "tiny has no entry 'drawn' on 'second' at 'all': choose from drawn on first at all, .+",
            ),
            (("first", "fitted", "all"), MissingError, "entry 'fitted' on 'first' needs features:net/first"),
            (("first", "people", "all"), ConfigError, "entry 'people' has no job: nothing of it is predicted"),
        ],
    )
    def test_no_job_is_one_line(
        self, tmp_path: Path, place: tuple[str, str, str], error: type[Exception], line: str
    ) -> None:
        with pytest.raises(error, match=f"^{line}$"):
            tiny(tmp_path).job(*place)


class TestReads:
    def test_a_fit_reads_the_release_and_features_and_predictions_read_fits_too(
        self, banks: None, tmp_path: Path
    ) -> None:
        made = tiny(tmp_path)
        fitted = job(made, "fitted")
        (bank,) = Path("features/net").glob("*/first")
        inputs = [Path("datasets/tiny/first/release.json"), bank.parent / "spec.json"]
        fits = [paths.fit("tiny", "first", "fitted", "all", seed) for seed in (0, 5)]
        assert made.fit_inputs(fitted) == inputs
        assert made.predict_inputs(fitted) == [*inputs, *fits]
        assert made.score_inputs(fitted) == inputs[:1]
        assert made.predict_inputs(job(made, "three")) == inputs[:1]

    def test_a_benchmark_can_name_more_for_each_stage(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(Tiny, "reads_besides", lambda self, job, stage: [Path(stage)])
        made = tiny(tmp_path)
        for asked in (made.fit_inputs, made.predict_inputs, made.score_inputs):
            assert str(asked(job(made, "three"))[-1]) == asked.__name__.removesuffix("_inputs")

    def test_a_table_collects_scores_and_releases_that_are_counted(self, releases: None, tmp_path: Path) -> None:
        def scores(*entries: str) -> list[Path]:
            return [paths.scores("tiny", "first", entry, "all") for entry in entries]

        made = tiny(tmp_path, releases=["first"])
        assert made.table_inputs("table1") == scores("three", "drawn")
        assert made.table_inputs("table2") == scores("four", "three")
        counted = {"title": "T", "metrics": ["n"], "lines": [{"entry": "people", "method": "P", "releases": ["first"]}]}
        made = tiny(tmp_path / "counted", declared(tables={"table1": counted}))
        assert made.table_inputs("table1") == [Path("datasets/tiny/first/release.json")]

    def test_a_table_waits_for_videos_to_be_deleted_that_its_entries_read(self, releases: None, tmp_path: Path) -> None:
        made = tiny(tmp_path, features={"net": ["histogram"]}, releases=["first"])
        made = type(made)(made.config | {"media": made.config["media"] | {"keep": "none"}}, "tiny")
        assert made.table_inputs("table1")[-1] == Path("datasets/first/dropped/000.json")
        assert all("dropped" not in str(path) for path in made.table_inputs("table2"))

    def test_videos_are_kept_for_jobs_that_decode_them(
        self, releases: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(Tiny, "kinds", Tiny.kinds | {"drawn": replace(Tiny.kinds["drawn"], decoded=True)})
        assert tiny(tmp_path).decoding() == [paths.predictions("tiny", "first", "drawn", "all")]


class TestDecides:
    """Which change computes what again."""

    CHANGES: dict[str, Callable[[], dict[str, Any]]] = {
        "nothing": dict,
        "option of training": lambda: {"head": {"epochs": 4}},
        "seeds of training": lambda: {"head": {"seeds": [1]}},
        "features": lambda: {"features": {"net": ["histogram"]}},
        "subset": lambda: {"subset": {"fraction": 0.5}},
        "option of a metric": lambda: {"metrics": {"within": 3}},
        "samples of the bootstrap": lambda: {"metrics": {"bootstrap_samples": 200}},
        "seed of the bootstrap": lambda: {"metrics": {"bootstrap_seed": 1}},
        "setting": lambda: {"entries": {"three": {"settings": {"number": 5}}}},
        "seeds of an entry": lambda: {"entries": {"drawn": {"seeds": [3]}}},
        "splits": lambda: {"entries": {"three": {"splits": ["val", "test"]}}},
        "note": lambda: {"entries": {"four": {"note": "x"}}},
        "words of what it sees": lambda: {"entries": {"drawn": {"inputs": ["video"]}}},
    }
    PREDICTED = {
        "nothing": set(),
        "option of training": {"fitted"},
        "seeds of training": {"fitted"},
        "features": {"fitted"},
        "subset": {"three", "drawn", "fitted", "four"},
        "option of a metric": set(),
        "samples of the bootstrap": set(),
        "seed of the bootstrap": set(),
        "setting": {"three"},
        "seeds of an entry": {"drawn"},
        "splits": {"three"},
        "note": set(),
        "words of what it sees": set(),
    }
    ALL = {"three", "drawn", "fitted", "four"}
    SCORED = PREDICTED | {
        "option of a metric": {"drawn", "fitted"},
        "samples of the bootstrap": ALL,
        "seed of the bootstrap": ALL,
    }

    @pytest.mark.parametrize("change", CHANGES)
    def test_a_change_reruns_what_it_concerns(self, banks: None, tmp_path: Path, change: str) -> None:
        before, after = tiny(tmp_path), tiny(tmp_path, **self.CHANGES[change]())

        def differing(params: str) -> set[str]:
            listed = ("three", "drawn", "fitted", "four")
            return {
                name
                for name in listed
                if getattr(before, params)(job(before, name)) != getattr(after, params)(job(after, name))
            }

        assert differing("fit_params") == differing("predict_params") == differing("spec") == self.PREDICTED[change]
        assert differing("score_params") == self.SCORED[change]
        assert (before.table_params("table1") == after.table_params("table1")) == (change == "nothing")

    def test_another_recogniser_reruns_what_hears(self, tmp_path: Path) -> None:
        new = {"kind": "heard", "settings": {"number": 1}, "table": "table1", "method": "Heard"}
        before = tiny(tmp_path, entries={"heard": new})
        asr = before.config["asr"] | {"engine": "whisper"}
        after = type(before)(before.config | {"asr": asr}, "tiny")
        assert asr != before.config["asr"]
        for name in ("three", "heard"):
            assert (before.spec(job(before, name)) != after.spec(job(after, name))) == (name == "heard")

    def test_a_revision_reruns_what_it_is_of(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        made = tiny(tmp_path)
        spec, scores = made.spec(job(made, "three")), made.score_params(job(made, "three"))
        monkeypatch.setattr(Tiny, "revision", 2)
        assert made.spec(job(made, "three")) == spec
        assert made.score_params(job(made, "three")) != scores
        predicted = made.predict_params(job(made, "three"))
        monkeypatch.setattr(plan, "FORMAT", plan.FORMAT + 1)
        assert made.spec(job(made, "three")) == spec
        assert made.predict_params(job(made, "three")) != predicted

    @pytest.mark.parametrize(
        "metrics", [{"far": Metric(title="Far")}, {"near": replace(Tiny.metrics["near"], definition="another")}]
    )
    def test_another_metric_rescores_what_it_measures(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, metrics: dict[str, Metric]
    ) -> None:
        made = tiny(tmp_path)
        before = {name: (made.score_params(job(made, name)), made.spec(job(made, name))) for name in ("drawn", "three")}
        monkeypatch.setattr(Tiny, "metrics", Tiny.metrics | metrics)
        after = {name: (made.score_params(job(made, name)), made.spec(job(made, name))) for name in ("drawn", "three")}
        assert before["three"] == after["three"]
        assert before["drawn"][0] != after["drawn"][0]
        assert before["drawn"][1] == after["drawn"][1]

    def test_what_a_metric_is_missing_rescores_what_it_measures(self, tmp_path: Path) -> None:
        made = tiny(tmp_path, metrics={"within": 0})
        assert "config:tiny.metrics.within=1" in made.score_params(job(made, "drawn"))
        assert "config:tiny.metrics.within" not in made.score_params(job(made, "three"))

    def test_a_spec_is_of_plain_values(self, banks: None, tmp_path: Path) -> None:
        made = tiny(tmp_path)
        record = made.record(job(made, "fitted"))
        assert json.loads(json.dumps(record)) == record
        (bank,) = Path("features/net").glob("*/spec.json")
        assert record == {
            "study": "tiny",
            "release": "first",
            "kind": "fitted",
            "revision": 1,
            "settings": {},
            "seeds": [0, 5],
            "subset": None,
            "features": [json.loads(bank.read_text())],
            "head": {"epochs": 3, "seeds": [0, 5]},
        }
        write_banks(tmp_path, name="other")
        both = tiny(tmp_path, features={"net": ["net", "other"]})
        first, second = both.record(job(both, "fitted"))["features"]
        assert [first] == record["features"] != [second]

    @pytest.mark.parametrize(
        "tables",
        [
            {"title": "Other"},
            {"metrics": ["error"]},
            {"lines": [{"entry": "three", "method": "3"}]},
            {"releases": ["first"]},
        ],
    )
    def test_a_declaration_writes_its_table_again(self, tmp_path: Path, tables: dict[str, Any]) -> None:
        content = declared()
        content["tables"]["table1"] |= tables
        before, after = tiny(tmp_path / "before"), tiny(tmp_path / "after", content)
        assert before.table_params("table1") != after.table_params("table1")
        assert before.table_params("table2") == after.table_params("table2")

    @pytest.mark.parametrize(
        ("attribute", "value"),
        [
            ("published", {}),
            ("paper_release", "second"),
            ("metrics", Tiny.metrics | {"near": replace(Tiny.metrics["near"], title="Close")}),
            ("sees", (*Tiny.sees[:-1], replace(Tiny.sees[-1], text="all numbers"))),
            ("title", "Small"),
        ],
    )
    def test_what_it_is_compared_with_and_words_do_too(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, attribute: str, value: Any
    ) -> None:
        made = tiny(tmp_path)
        params = made.table_params("table1")
        monkeypatch.setattr(Tiny, attribute, value)
        assert made.table_params("table1") != params

    def test_another_published_value_and_other_metrics_of_a_kind_do_too(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        made = tiny(tmp_path)
        before = made.table_params("table1")
        vars(made)["defaults"] = made.defaults | {"features": {"net": ["other"]}}
        assert made.table_params("table1") != before
        for change in ({"metrics": ()}, {"sees": ()}):
            monkeypatch.setattr(Tiny, "kinds", Tiny.kinds | {"constant": replace(KINDS["constant"], **change)})
            assert tiny(tmp_path).table_params("table1") != before

    def test_the_papers_numbers_and_what_is_missing_do_too(self, tmp_path: Path) -> None:
        made = tiny(tmp_path)
        found = [made.table_params("table1")]
        write_releases()
        found.append(tiny(tmp_path).table_params("table1"))
        for content in ("table,method\n", "table,method\n1,Three\n"):
            write_text(tmp_path / "paper/table1.csv", content)
            found.append(tiny(tmp_path).table_params("table1"))
        assert len({*found}) == 4


class TestScores:
    def test_a_score_that_is_not_there_waits_for_the_next_run(self, tmp_path: Path) -> None:
        made = tiny(tmp_path)
        assert made.read_score(job(made, "three")) == {"needs": ["score:three"], "metrics": {}}

    @pytest.mark.parametrize(
        "content", [[], {}, {"needs": []}, {"needs": [], "metrics": []}, {"needs": [], "metrics": {"a": 1}}]
    )
    def test_a_damaged_one_is_one_line(self, tmp_path: Path, content: Any) -> None:
        made = tiny(tmp_path)
        write_json(paths.scores("tiny", "first", "three", "all"), content)
        with pytest.raises(StoreError, match=r"three/all.json is not a score: remove it and run the same again$"):
            made.read_score(job(made, "three"))


def test_a_readers_revision_is_in_each_spec_from_2_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = tiny(tmp_path)
    before = made.record(made.job("first", "three", "all"))
    monkeypatch.setattr(Tiny, "reader_revision", 2)
    assert made.record(made.job("first", "three", "all")) == before | {"reader_revision": 2}


class TestStale:
    def write(self, made: Tiny, entry: str = "three", **changes: Any) -> Path:
        path = paths.predictions("tiny", "first", entry, "all")
        of = made.job("first", entry, "all")
        made_by = {"spec": made.spec(of), "method": {"module": "m", "source": made.source(of.entry.kind)}} | changes
        write_text(path, "")
        write_json(path.with_suffix(".json"), made_by)
        return path

    def test_predictions_of_other_source_are_named_by_kind_with_what_to_do(self, tmp_path: Path) -> None:
        made, other = tiny(tmp_path), {"method": {"module": "m", "source": "00000000"}}
        path = self.write(made)
        assert [*made.stale()] == []
        self.write(made, **other)
        (line,) = made.stale()
        assert line == (
            f"results of tiny ({path}) were computed with other source of constant: if the numbers change, raise the "
            "revision of the kind, or of OwnTiny for scores, or its `reader_revision` if what reads the release has "
            "changed; if they do not, run `stepline accept tiny`, or `stepline accept` for all studies"
        )
        Invocation(configfiles=("/c.yaml",)).keep()
        (line,) = made.stale()
        assert "run `stepline --configfile /c.yaml accept tiny`, or `stepline --configfile /c.yaml accept` for" in line
        self.write(made, "four", **other)
        self.write(made, "drawn", **other)
        (line,) = made.stale()
        assert line.startswith(
            f"results of tiny ({path} and 2 more) were computed with other source of constant, drawn: "
        )

    def test_scores_by_other_scoring_code_are_named(self, tmp_path: Path) -> None:
        made = tiny(tmp_path)
        self.write(made)
        score = paths.scores("tiny", "first", "three", "all")
        write_json(score, {"needs": [], "metrics": {}, "source": made.scoring_source()})
        assert [*made.stale()] == []
        write_json(score, {"needs": [], "metrics": {}, "source": "00000000"})
        (line,) = made.stale()
        assert line.startswith(f"results of tiny ({score}) were computed with other source of scores: if the numbers ")
        write_json(score, {"needs": [], "metrics": {}, "source": "00000000", "accepted": made.scoring_source()})
        assert [*made.stale()] == []

    def test_what_is_made_again_anyway_is_not(self, tmp_path: Path) -> None:
        made, other = tiny(tmp_path), {"method": {"module": "m", "source": "00000000"}}
        path = self.write(made, spec="00000000", **other)
        assert [*made.stale()] == []
        self.write(made, **other)
        path.unlink()
        assert [*made.stale()] == []


def test_imported_files_are_named(banks: None, tmp_path: Path) -> None:
    made = tiny(tmp_path)
    (bank,) = Path("features/net").glob("imported-*")
    assert made.imported(made.entries["fitted"], "first") == [f"imported files: {bank}"]
    assert made.imported(made.entries["three"], "first") == []
    assert tiny(tmp_path, features={"net": ["histogram"]}).imported(made.entries["fitted"], "first") == []
