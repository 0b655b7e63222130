"""What holds for every benchmark: each of the package on each of its studies, and the examples outside of it."""

import copy
import functools
import inspect
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stepline import plans
from stepline.backbones.weights import WEIGHTS, Weights, weights_of
from stepline.benchmark import Benchmark, Job, Method, Values
from stepline.benchmark.declared import Declared
from stepline.config import Config, defaults, validate
from stepline.config.check import wrong
from stepline.config.declarations import declaration, folders
from stepline.config.schema import schema_of
from stepline.datasets.schema import Video
from stepline.errors import ConfigError
from stepline.features.importing import Folder, import_folder
from stepline.fetch import fetch_release
from stepline.helpers import Plan
from stepline.io import read_json
from stepline.needs import Need
from stepline.pipeline.videos import Videos
from stepline.plans import BENCHMARKS, benchmarks, plan
from stepline.runs.predictions import read_predictions, write_predictions
from stepline.runs.report import write_report
from stepline.runs.score import score
from stepline.runs.table import table_rows, write_table
from stepline.runs.verbs import Verbs, predict
from stepline.spec import digest
from stepline.tables import UNDECLARED, Row, read_paper
from tests.benchmarks.copied import copy_once
from tests.conftest import ROOT, made_once
from tests.examples import test_captaincook4d, test_toy

STUDIES = [name for each in BENCHMARKS for name in each.studies]
TOY, COOKING = "toy", "captaincook4d"
"""The examples: a benchmark without videos, and one with videos, speech, texts and trained heads."""
ASKED = {name: member for name, member in vars(Plan).items() if not name.startswith("_")}
"""What the rules may ask."""
RULES = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "workflow/rules").glob("*.smk"))
SAME_COMMAND = {"config", "predictions", "score", "transcripts"}
"""What the run itself brings, once it is started by the printed command."""
Made = Benchmark[Any]


@pytest.fixture(scope="session")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the examples, their mirror, and a list of videos with labelled segments."""

    def write(folder: Path) -> None:
        test_captaincook4d.written(folder, test_captaincook4d.annotation())
        (folder / "example").rename(folder / COOKING)
        (folder / "mirror" / COOKING / "videos").mkdir()
        for video in test_captaincook4d.SECONDS:
            (folder / "mirror" / COOKING / f"videos/{video}.mp4").write_bytes(b"x")
        shutil.copytree(test_toy.TOY, folder / TOY)
        (folder / "mirror/toy").mkdir()
        (folder / "mirror/toy/moments.json").write_text(json.dumps(test_toy.MOMENTS))
        (folder / "talks.csv").write_text("video,url\n" + "".join(f"{each},https://x/{each}\n" for each in "abc"))
        (folder / "labels.csv").write_text("video,start_s,end_s,label\na,0,1,x\nb,0,1,y\nc,0,1,x\n")

    return made_once(tmp_path_factory, "contract-outside", write)


@pytest.fixture(params=[*STUDIES, TOY, COOKING])
def config(request: pytest.FixtureRequest, outside: Path) -> Config:
    """A configuration of one study alone, all by default."""
    name: str = request.param
    if name == "segments":
        videos, labels = (outside / file for file in ("talks.csv", "labels.csv"))
        talks = {"kind": "list", "videos": str(videos), "segments": str(labels), "backbones": ["eva_clip-hirest"]}
        return validate({"datasets": {"talks": talks}})
    known = {"benchmarks": {name: str(outside / name)}} if name in (TOY, COOKING) else {}
    return validate({**known, name: {}})


@pytest.fixture
def made(config: Config) -> Made:
    """The plan of the study in a folder where nothing is."""
    return plan(config, study(config))


@pytest.fixture
def supplied(
    config: Config,
    outside: Path,
    real_data: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> Made:
    """The same with weights, banks, keys and options that are made up, and the releases that are at hand."""
    name = study(config)
    monkeypatch.setenv("STEPLINE_MIRROR", str(outside / "mirror" if name in (TOY, COOKING) else real_data))
    write_weights(monkeypatch)
    made = plan(config, name)

    def fill(rows: Path) -> None:
        for release in made.releases:
            if all(file.find() for file in made.released.release_files(release)):
                fetch_release(made.released, release)
        write_banks(made, rows)

    copy_once(tmp_path_factory, f"contract-{name}", fill)
    for need in needs(made):
        if need.kind == "weights":  # of a model by name
            write_files(weights_of(need.what))
    for need in [need for need in needs(made) if need.kind == "config"]:
        *blocks, last = need.what.split(".")
        part = config
        for block in blocks:
            part = part[block]
        part[last] = [*part[last], need.value] if isinstance(part.get(last), list) else need.value
    for need in [need for need in needs(made) if need.kind == "predictions"]:
        Path("FOLDER").mkdir(exist_ok=True)
        config[name]["files"][need.what] = "FOLDER"
    made = plan(validate(json.loads(json.dumps(config))), name)
    for need in [need for need in needs(made) if need.kind == "key"]:
        monkeypatch.setenv(need.what, "x")
    return plan(made.config, name)


def write_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write files by the names of all weights, which stand for the published ones."""
    for weights in [*WEIGHTS.values()]:
        made_up = tuple(replace(file, size=0, sha256="") for file in weights.files)
        monkeypatch.setitem(WEIGHTS, weights.name, replace(weights, files=made_up))
        write_files(weights)


def write_files(weights: Weights) -> None:
    """Write files by the names of those of some weights."""
    for file in weights.files:
        path = Path("weights", weights.name, file.name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")


def write_banks(made: Made, rows: Path) -> None:
    """Import a bank for each name of features that is no backbone's, by way of files in ``rows``."""
    for dataset, footage in made.footage.items():
        for bank in footage.names:
            if not footage.is_backbone(bank):
                folder = rows / dataset / bank
                folder.mkdir(parents=True)
                np.save(folder / "a.npy", np.zeros((3, 2), dtype=np.float32))
                import_folder(Folder(folder), bank, dataset, 1.0)


def study(config: Config) -> str:
    """Return the name of the one that is configured."""
    (name,) = config.keys() & {*STUDIES, TOY, COOKING}
    return str(name)


def needs(made: Made) -> dict[Need, str]:
    """Return all that lines, their entries and metrics are missing, each with a file of tables that shows it."""
    found = {need: made.tables[0] for metric in made.measured for need in made.missing_of(metric)}
    for file in made.tables:
        for _, line, release in made.lines(file):
            entry = made.entries[line.entry]
            missing = made.missing(entry, release) if entry.kind.method else ()
            found |= dict.fromkeys([*made.missing_line(line, release), *missing], file)
    return found


def first_jobs(made: Made) -> list[Job]:
    """Return of each entry on each release the job at the first window length, of those that can run."""
    return list({(job.entry.id, job.release): job for job in reversed([*made.jobs()])}.values())


def answers(made: Made, jobs: list[Job]) -> Iterator[tuple[str, Any]]:
    """Yield the name and the answer of every question that the rules may ask, for every job, table and release."""
    for name, member in ASKED.items():
        if isinstance(member, property):
            yield name, getattr(made, name)
            continue
        asked = [key for key in inspect.signature(member).parameters if key != "self"]
        given: list[tuple[Any, ...]] = {
            (): [()],
            ("job",): [(job,) for job in jobs],
            ("file",): [(file,) for file in made.tables],
            ("release",): [(release,) for release in made.releases],
            ("release", "entry", "context"): [(job.release, job.entry.id, job.context) for job in jobs],
        }[tuple(asked)]
        for arguments in given:
            found = getattr(made, name)(*arguments)
            yield name, [*found] if isinstance(found, Iterator) else found


class TestWhatRulesAsk:
    def test_every_question_has_an_answer_for_every_job(self, supplied: Made) -> None:
        jobs = first_jobs(supplied)
        listed = {(job.entry.id, job.release) for job in jobs}
        for entry, release in supplied.pairs():
            missing = {need.kind for need in supplied.missing(supplied.entries[entry], release)}
            assert ((entry, release) in listed) == bool(supplied.entries[entry].kind.method and not missing)
            assert missing <= {"package", "release", "samples"}, entry
        once, again = list(answers(supplied, jobs)), list(answers(plan(supplied.config, supplied.name), jobs))
        assert {name for name, _ in once} == ASKED.keys() or not jobs
        for (name, answer), (_, other) in zip(once, again, strict=True):
            if name.endswith("_params"):
                assert isinstance(answer, str)
                assert answer, name
                assert answer == other, name
            elif name.endswith("_inputs") or name == "results":
                assert answer == other, name
                assert all(isinstance(path, Path) for path in answer)
                assert len({*answer}) == len(answer), name
        assert [answer for name, answer in once if name == "job"] == jobs

    def test_every_target_has_a_rule(self, made: Made) -> None:
        outputs = re.findall(r'^        (?:\w+\()?"(results/[^"]*)",', RULES, re.MULTILINE)
        patterns = [re.compile(re.sub(r"\\{\w+\\}", "[^/]+", re.escape(output))) for output in outputs]
        for path in [*(f"results/{made.name}/{target}" for target in made.targets), *map(str, made.results)]:
            assert any(pattern.fullmatch(path) for pattern in patterns), path

    def test_every_need_has_a_command_but_those_that_none_fills(self, made: Made) -> None:
        found = needs(made)
        for need, file in found.items():
            command = made.filled_by(f"{file}.csv", [need])
            if need.kind == "samples":
                assert command == ""
                continue
            *steps, run = command.split(" && ")
            assert run.startswith(f"snakemake --cores 8 results/{made.name}/{file}.csv"), need
            assert bool(steps) == (need.kind not in SAME_COMMAND), need
            assert ("--config" in run) == (need.kind in ("config", "predictions")), need
            assert all(made.filled_by(f"{file}.csv", [need, other]) == "" for other in found if other.kind == "samples")


def params_digest(names: Sequence[str]) -> str:
    """Return a digest of all that decides the jobs of studies."""
    made = [plan(validate({name: {}}), name) for name in names]
    asked = [[*pair] for each in made for pair in answers(each, first_jobs(each)) if pair[0].endswith("_params")]
    return digest(asked)


def test_params_are_the_same_in_every_process() -> None:
    code = f"from tests.benchmarks.test_contract import params_digest as said; print(said({STUDIES}))"
    environment = {"PYTHONPATH": f"{ROOT}:{ROOT / 'src'}", "PYTHONHASHSEED": "1", "PATH": os.environ["PATH"]}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == params_digest(STUDIES)


class TestDeclarations:
    def test_every_metric_of_every_table_is_known_with_a_title_and_all_are_defined(self, made: Made) -> None:
        for table in made.declared.tables:
            assert table.title
            assert all(made.metrics[metric].title for metric in table.metrics)
        assert all(metric.definition for metric in made.metrics.values())
        assert len({metric.title for metric in made.metrics.values()}) == len(made.metrics)

    def test_a_kind_names_what_the_benchmark_has(self, made: Made) -> None:
        words = {each.word for each in made.sees}
        environments = {path.stem for path in (ROOT / "envs").glob("*.yaml")}
        used = {entry.kind_name for entry in made.entries.values()}
        for name, kind in made.kinds.items():
            assert {*kind.sees} <= words
            for setting in kind.settings:
                rule, _ = kind.rule(setting)
                assert rule in (int, str) or {word for chosen in rule.values() for word in chosen} <= words
            assert {*kind.metrics} <= made.metrics.keys()
            assert {*kind.splits} <= {*made.splits} or kind.method is None
            assert {kind.environment, kind.scored_in} <= environments
            assert not kind.options or made.options[kind.options]["seeds"]
            assert name in used, f"no entry is of the kind {name}"
        keys = {key for metric in made.metrics.values() for key in metric.options} | made.published.keys()
        assert keys <= made.options["metrics"].keys()

    def test_a_kinds_method_predicts_and_fits_where_it_is_trained(self, made: Made) -> None:
        pytest.importorskip("torch")
        for kind in made.kinds.values():
            if kind.method is None:
                assert not kind.options
                continue
            method = made.method(kind)
            assert issubclass(method, Method)
            assert method.predict is not Method.predict
            assert (method.fit is not Method.fit) or not kind.options
            assert inspect.signature(method).bind() is not None

    def test_predictions_can_be_columns(self, made: Made) -> None:
        write_predictions(Path("p.parquet"), made.prediction, [], spec="x", needs=[Need("java")], selection="s")
        assert read_predictions(Path("p.parquet"), made.prediction, "x") == (
            [],
            {"spec": "x", "needs": ["java"], "selection": "s"},
        )

    def test_the_defaults_are_allowed(self, made: Made) -> None:
        part = schema_of(folders(made.config))["properties"][made.name]
        assert wrong(defaults(made.name, made.config), part) == ""
        assert {key: made.options[key] for key in made.defaults} == made.defaults


ANNOTATION = {"train", "val", "train_annotation", "narrations", "coin"}
MODES = {"window": ("video", "text"), "recording": ("text", "order")}
"""The inputs that a word of Spacewalk's stands for."""


@pytest.mark.parametrize("config", STUDIES, indirect=True)
def test_a_signal_is_planted_in_each_input_of_a_trained_head(made: Made) -> None:
    planted = import_module(f"tests.benchmarks.{made.folder.name}.test_planted").PLANTED
    claimed = {
        (entry.kind_name, mode)
        for entry in made.entries.values()
        if entry.trained
        for word in {*entry.sees} - ANNOTATION
        for mode in MODES.get(word, (word,))
    }
    assert claimed
    assert claimed <= {*planted}


class TestPaper:
    def test_every_file_of_the_paper_is_of_a_result(self, made: Made) -> None:
        known = {*made.all_tables(), *(path.stem for path in made.results)}
        assert {path.stem for path in (made.folder / "paper").glob("*.csv")} <= known

    def test_every_number_is_asked_for_or_shown_as_undeclared(self, made: Made) -> None:
        for file in made.tables:
            paper = made.paper_file(file)
            rows = table_rows(made, file)
            assert rows
            assert {row.measure for row in rows} <= {*made.metrics.values()}
            if paper is None:
                continue
            shown = {(row.table, row.method, row.modality, row.setting, row.context_s, row.metric): row for row in rows}
            published = {
                key: each for key, each in read_paper(paper, made.metrics).items() if each.printed or each.rerun
            }
            for key in published:
                row = shown[key[:6]]
                assert row.entry or row.setting == "reference" or row.command == UNDECLARED, key
            assert {key.table for key in published} <= {table.name for table in made.declared.tables}


def test_an_option_of_metrics_decides_the_scores_that_use_it_and_nothing_else(supplied: Made) -> None:
    jobs = list({(job.entry.kind_name, job.entry.task): job for job in supplied.jobs()}.values())
    known = schema_of(folders(supplied.config))["properties"][supplied.name]["properties"]["metrics"]["properties"]
    for key, schema in known.items():
        if not [*others(supplied.options["metrics"][key], schema)]:
            continue
        config = copy.deepcopy(supplied.config)
        config[supplied.name]["metrics"][key] = another(supplied.options["metrics"][key], schema)
        changed = plan(validate(config), supplied.name)
        deciding = []
        for job in jobs:
            used = job.entry.kind.metrics or tuple(supplied.metrics)
            decides = key.startswith("bootstrap_") or any(
                key in supplied.options_of(job.entry, metric)
                or changed.missing_of(metric) != supplied.missing_of(metric)
                for metric in used
            )
            assert (changed.score_params(job) != supplied.score_params(job)) == decides, (key, job.entry.id)
            assert changed.fit_params(job) == supplied.fit_params(job)
            assert changed.predict_params(job) == supplied.predict_params(job)
            deciding.append(decides)
        assert any(deciding) or not jobs, f"nothing is scored by {key}"


def another(value: Any, schema: Config) -> Any:
    """Return another value that an option may have."""
    return next(others(value, schema))


def others(value: Any, schema: Config) -> Iterator[Any]:
    """Yield other values that an option may have, as far as its schema says."""
    if "enum" in schema:
        known = list(schema["enum"])
    elif isinstance(value, bool):
        known = [not value]
    elif isinstance(value, list):
        known = [[each] for each in schema["items"].get("enum", ALIKE)]
    elif isinstance(value, (int, float)):
        known = [value + sign * schema.get("multipleOf", size) for size in (1, 0.01, 4, value) for sign in (1, -1)]
    else:
        known = list(ALIKE)
    yield from (each for each in known if each != value and wrong(each, schema) == "")


ALIKE = (
    "histogram",
    "eva_clip-hirest",
    "minilm",
    7,
    7.5,
    {"fraction": 0.5, "seed": 0},
    "1M",
    "http://127.0.0.1:9",
    "crosstask",
)
"""What an option that is a name, a list or nothing may be instead."""
SELECTION = "it chooses what is computed, not how"
RUNNING = "it decides how fast a job runs, and where"
AVAILABLE = "it decides which videos are there, and those are counted"
UNUSED = {
    **dict.fromkeys(("releases", "tables", "text_encoders", "video_encoders", "contexts_s"), SELECTION),
    "metrics.meteor": SELECTION,
    **dict.fromkeys(("metrics.bootstrap_samples", "metrics.bootstrap_seed"), "no status rests on an interval"),
    **dict.fromkeys(("llm.concurrency", "features.device", "features.batch_size", "features.decoders"), RUNNING),
    **dict.fromkeys(("features.jobs_per_gpu", "features.store"), RUNNING),
    **dict.fromkeys(("media.limits", "media.keep"), AVAILABLE),
    **dict.fromkeys(("download.rate_limit", "download.sleep_s", "download.cookies"), AVAILABLE),
    **dict.fromkeys(("sequence_decoder", "metrics.entailment"), "its only option has one value"),
    **dict.fromkeys(("joint.layers", "joint.hidden"), "the published initial weights have these sizes"),
    "files": "it says where predictions of the user's are",
    "match": "it says how a file of the user's is read",
    "split_seed": "it makes the release `rebuilt`, which the paper does not have",
}
"""The options, or blocks of them, that change no number beside one of a paper, each with the reason."""
BLOCKS = ("features", "media", "download")
"""Of the configuration, besides a benchmark's own part: what decides features of videos. Published transcripts and
predictions read nothing of ``asr`` and ``shots``."""


def leaves(schema: Config, *path: str) -> Iterator[tuple[tuple[str, ...], Config]]:
    """Yield the path and the schema of each option."""
    for key, child in schema["properties"].items():
        if "properties" in child and child.get("type") == "object":
            yield from leaves(child, *path, key)
        elif key != "entries":
            yield (*path, key), child


Decided = dict[tuple[Any, ...], tuple[Any, Row]]


def decided(made: Made) -> Decided:
    """Return what decides each number that has a value, by its place in a table, and its row."""
    rows = {
        (row.table, row.release, row.entry, row.context_s, row.metric): row
        for file in made.tables
        for row in table_rows(made, file)
        if row.value is not None and row.status != "reference"
    }
    by: Decided = {}
    for table, line, release in made.lines():
        entry = made.entries[line.entry]
        for context_s, job_s in made.contexts(table, line):
            spec = made.spec(Job(release=release, entry=entry, context_s=job_s)) if entry.kind.method else ""
            named = {key: option.value for key, option in made.named_options(entry, release).items()}
            for metric in table.metrics:
                place = table.name, release, entry.id, context_s, metric
                if place in rows:
                    options = [made.options["metrics"][key] for key in made.options_of(entry, metric)]
                    by[place] = ([spec, named, options], rows[place])
    return by


def changed_rows(before: Decided, after: Decided) -> list[Row]:
    """Return the rows of what is decided otherwise; see that all others have the status that they had."""
    for place in before.keys() & after.keys():
        assert before[place][0] != after[place][0] or before[place][1].status == after[place][1].status, place
    return [row for place, (by, row) in after.items() if place in before and before[place][0] != by]


def differing(row: Row) -> set[str]:
    """Return the names of the options in which a row is not the paper's."""
    return {key for key, option in row.options.items() if option.differs}


TABLES = {
    "spacewalk": ["table2", "tableA8"],
    "pss": ["table2", "table3", "table4"],
    "oepp": ["table5", "table7"],
    "hirest": ["table2", "table3", "table4", "table5", "table6"],
    "htstep": ["table1", "table2", "table6"],
    TOY: ["table1"],
    COOKING: ["table1"],
}
"""In which all kinds and features of each benchmark stand."""


@pytest.fixture
def computed(supplied: Made, monkeypatch: pytest.MonkeyPatch) -> Made:
    """The plan of the paper's release where every job has the score 50."""
    measured = {"value": 50.0, "sd": 0.0, "ci": None, "seeds": [0]}
    score = {"metrics": dict.fromkeys(supplied.metrics, measured), "needs": [], "status": "present"}
    monkeypatch.setattr(type(supplied), "read_score", lambda self, job: score)
    monkeypatch.setattr(type(supplied), "missing", lambda self, entry, release: ())
    monkeypatch.setattr(Videos, "are_here", True)
    config = copy.deepcopy(supplied.config)
    paper_release = supplied.paper_release or supplied.options["releases"]
    config[supplied.name]["releases"] = [paper_release] if supplied.paper_release else paper_release
    config[supplied.name]["tables"] = TABLES[supplied.name]
    if supplied.name == "spacewalk":
        config["spacewalk"]["contexts_s"] = {key: [180] for key in config["spacewalk"]["contexts_s"]}
    return plan(config, supplied.name)


@pytest.mark.parametrize("config", ["spacewalk", "pss", "oepp", "hirest", "htstep", TOY, COOKING], indirect=True)
def test_a_number_by_a_changed_option_is_not_compared_and_names_it(computed: Made) -> None:
    whole, before = schema_of(folders(computed.config))["properties"], decided(computed)
    own = [(path, schema, ".".join(path[1:])) for path, schema in leaves(whole[computed.name], computed.name)]
    shared = [(path, schema, ".".join(path)) for block in BLOCKS for path, schema in leaves(whole[block], block)]
    for path, schema, place in [*own, *(shared if computed.datasets or computed.name == "spacewalk" else [])]:
        reasons = {why for name, why in UNUSED.items() if f"{place}.".startswith(f"{name}.")}
        changed = SELECTION not in reasons and changed_at(computed, path, schema)
        if not changed:
            assert reasons, f"{place} has no other value"
            continue
        rows = changed_rows(before, decided(changed))
        elsewhere = path[0] in BLOCKS and computed.name != "spacewalk"
        assert bool(rows) != bool(reasons) or (elsewhere and not rows), (
            f"{place}: say in UNUSED why it changes no number, or let it"
        )
        for row in rows:
            named = {*path, place} & differing(row)
            assert row.subset or named, (place, row)
            for key in named:
                new = functools.reduce(dict.__getitem__, path, changed.config)
                assert row.options[key].value in [new, *(new if isinstance(new, list) else [])], (place, row)
            assert not row.printed or row.status in ("not comparable", "inconsistent"), (place, row)


@pytest.mark.parametrize("config", ["spacewalk", "pss", "oepp", "htstep"], indirect=True)
def test_a_number_of_a_changed_entry_is_not_compared(computed: Made) -> None:
    before = decided(computed)
    shown = {row.entry for _, row in before.values()}
    first = {entry.kind_name: entry for name, entry in reversed(computed.entries.items()) if name in shown}
    for entry in first.values():
        alike = [each for each in computed.entries.values() if each.kind_name == entry.kind_name]
        for change, key in changes_of(computed, entry, alike):
            config = copy.deepcopy(computed.config)
            config[computed.name]["entries"] = {entry.id: change}
            try:
                changed = plan(validate(json.loads(json.dumps(config))), computed.name)
            except ConfigError as error:
                if "does not fit" not in str(error):  # with what other entries say that are made of this one
                    raise
                continue
            rows = changed_rows(before, decided(changed))
            mine = [row for row in rows if row.entry == entry.id]
            assert mine, (entry.id, change)
            for row in mine:
                assert key in differing(row), (change, row)
                assert not row.printed or row.status in ("not comparable", "inconsistent"), (change, row)


def changes_of(made: Made, entry: Any, alike: Sequence[Any]) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield what the configuration may change of an entry, with the option that says so. alike: entries of its kind."""
    for key in entry.settings:
        rule, _ = entry.kind.rule(key)
        value = entry.settings[key]
        if rule is int:
            yield {"settings": {key: (value or 0) + 1}}, key
        elif rule is str:
            like = made.entries[value]
            about = like.kind_name, like.features, like.task
            named = [
                each.id
                for each in made.entries.values()
                if (each.kind_name, each.features, each.task) == about and each.id != entry.id
            ]
            yield {"settings": {key: next(each for each in named if each != value)}}, key
        elif rest := [each for each in rule if each != value]:
            yield {"settings": {key: rest[0]}}, key
    if entry.kind.drawn:
        yield {"seeds": [7]}, "seeds"
    for key in ("encoder", "features"):
        if rest := [
            getattr(each, key) for each in alike if getattr(each, key, "") not in ("", getattr(entry, key, ""))
        ]:
            yield {key: rest[0]}, key


@pytest.mark.parametrize("config", ["spacewalk", "pss", "oepp"], indirect=True)
def test_beside_every_compared_number_stands_what_a_method_gets_that_sees_nothing(computed: Made) -> None:
    config = copy.deepcopy(computed.config)
    config[computed.name] |= {"tables": computed.all_tables()} | (
        {"contexts_s": computed.defaults["contexts_s"]} if computed.name == "spacewalk" else {}
    )
    made, told = plan(config, computed.name), 0
    for file in made.tables:
        paper = made.paper_file(file)
        published = read_paper(paper, made.metrics) if paper else {}
        justified = {key[:6] for key, number in published.items() if number.interval}
        for row in table_rows(made, file):
            place = row.table, row.method, row.modality, row.setting, row.context_s, row.metric
            if row.status in ("within", "inconclusive", "differs") and place in justified:
                own = made.blind(made.entries[row.entry], row.metric) == row.entry
                assert own or " scores 50.00, in this range with probability " in row.note, row
                told += not own
    assert told > 10


def changed_at(made: Made, path: tuple[str, ...], schema: Config) -> Made | None:
    """Return the plan with another value of one option; None where it can have none."""
    for value in others(functools.reduce(dict.__getitem__, path, made.config), schema):
        config = copy.deepcopy(made.config)
        functools.reduce(dict.__getitem__, path[:-1], config)[path[-1]] = value
        try:
            return plan(validate(json.loads(json.dumps(config))), made.name)
        except ConfigError:
            continue
    return None


def test_names_do_not_depend_on_the_order_of_the_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    config = validate({name: {} for name in STUDIES})
    before = benchmarks(config)
    assert len(STUDIES) == len({*STUDIES, TOY}) - 1
    assert [*before] == STUDIES
    monkeypatch.setattr(plans, "BENCHMARKS", BENCHMARKS[::-1])
    assert benchmarks(config) == before
    named = [{*each.studies, *declaration(each.folder).get("datasets", ())} for each in BENCHMARKS]
    others = [name for names in named for name in names]
    assert len(others) == len({*others})


def given(value: Any) -> Any:
    """A hook that gives this, whatever it is asked."""
    return lambda *asked: value


def only(entry: str, value: Any, otherwise: Any) -> Any:
    """A hook that gives this for one entry, and else what all others have."""
    return lambda plan, asked, *more: value if getattr(asked, "entry", asked).id == entry else otherwise


def rows(made: Made, file: str = "table1") -> list[Row]:
    """The rows of a table that are of trained heads, or of counts."""
    return [each for each in table_rows(made, file) if each.entry in ("linear", "nearest", "statistics")]


def row(made: Made, entry: str = "linear", metric: str = "accuracy", file: str = "table1") -> Row:
    """The row of a number in a table."""
    (found,) = (each for each in rows(made, file) if (each.entry, each.metric) == (entry, metric))
    return found


def linear(made: Made) -> Job:
    """The job of the trained head."""
    (found,) = made.jobs(entry="linear")
    return found


def read(made: Made, stage: str = "predict") -> list[str]:
    """The inputs of a stage of the trained head's job."""
    return list(map(str, getattr(made, f"{stage}_inputs")(linear(made))))


def title(made: Made) -> str:
    """The first line of the first table in Markdown."""
    write_table(made, "table1")
    return Path("results", made.name, "table1.md").read_text(encoding="utf-8").splitlines()[0]


def scored(made: Made) -> dict[str, Any]:
    """The score of the most frequent step, predicted and scored as a job does."""
    (job,) = made.jobs(entry="most-frequent")
    predict(made.inputs(job), [], made.predictions(job))
    score(made.inputs(job), made.predictions(job), made.scores(job))
    return dict(read_json(made.scores(job)))


def content(made: Made) -> dict[str, Any]:
    """What the page of results is written from."""
    with pytest.MonkeyPatch.context() as patch:
        written: dict[str, Any] = {}
        patch.setattr("stepline.runs.report.write_study", lambda path, **shown: written.update(shown))
        write_report(made, Path("page.html"))
    return written


def written(made: Made) -> bool:
    """Whether the page of examples is written."""
    with suppress(ConfigError):
        Verbs(made).examples()
    return Path("written").exists()


def select(plan: Made, inputs: Any, made: Sequence[Any]) -> tuple[Sequence[Any], str]:
    return made, "chosen"


def refuse(plan: Made) -> None:
    raise ConfigError("impossible")


def refused(made: Made) -> str:
    """Why the configuration is impossible."""
    try:
        type(made).of(made.config, made.name)
    except ConfigError as error:
        return str(error)
    return ""


def of_parts(made: Made) -> bool:
    """Whether the options of the trained head say that the seeds of the other one are changed."""
    config = copy.deepcopy(made.config)
    config[COOKING]["nearest"]["seeds"] = [5]
    return "seeds" in type(made)(config, made.name).named_options(made.entries["linear"], made.releases[0])


NEED = Need("package", "not_there")
SEVEN = Values(values=np.array([7.0]), videos=["1_4"])
FIGURE = {"accuracy": "a figure"}
HOOKS: dict[str, tuple[Any, Any, Any]] = {
    "title": (property(given("Kitchen")), title, "# Kitchen: Table 1"),
    "cited": (property(given("Kitchen [@key]")), title, "# Kitchen [@key]: Table 1"),
    "declares": (
        property(lambda plan: {**declaration(plan.folder), "pairs": [["linear", None, "tfidf", None]]}),
        lambda made: made.declared.pairs,
        [("linear", None, "tfidf", None)],
    ),
    "videos": (
        given([Video(id="9_9")]),
        lambda made: [each.path for each in made.datasets[COOKING].videos()],
        ["captaincook4d/videos/9_9.mp4"],
    ),
    "values": (given({"accuracy": SEVEN}), lambda made: scored(made)["metrics"]["accuracy"]["value"], 7),
    "select": (select, lambda made: scored(made)["selection"], "chosen"),
    "in_time": (Declared.in_time, lambda made: scored(made)["shown_in"], ""),
    "features": (
        given([]),
        lambda made: (made.record(linear(made))["features"], any("histogram" in path for path in read(made))),
        ([], False),
    ),
    "backbones": (given(()), lambda made: made.pipelines_of(made.entries["linear"], made.releases[0]), []),
    "blind": (given("tfidf"), lambda made: row(made).blind, "tfidf"),
    "hears": (only("linear", True, False), lambda made: any("transcripts" in path for path in read(made)), True),
    "missing_besides": (
        only("linear", [NEED], ()),
        lambda made: (row(made).status, row(made, "nearest").status),
        ("needs", "ours"),
    ),
    "how_to_fill": (
        given("bring it"),
        lambda made: made.filled_by("table1.csv", [NEED]).partition(" && ")[0],
        "bring it",
    ),
    "missing_of": (
        lambda plan, metric: [NEED] * (metric == "error"),
        lambda made: (row(made, metric="error").status, row(made).status, NEED.what in made.score_params(linear(made))),
        ("needs", "ours", True),
    ),
    "decides": (given({"by": "chance"}), lambda made: made.record(linear(made)).get("by"), "chance"),
    "reads": (
        lambda plan, job: [job.release, "person-normal"],
        lambda made: str(made.release_manifest("person-normal")) in read(made),
        True,
    ),
    "reads_besides": (
        lambda plan, job, stage: [Path(stage)],
        lambda made: [{"fit", "predict", "score"} & {*read(made, stage)} for stage in ("fit", "predict", "score")],
        [{"fit"}, {"predict"}, {"score"}],
    ),
    "measures": (
        lambda plan, job, metric: metric != "error",
        lambda made: {*json.loads(made.score_params(linear(made)))["metrics"]} >= {"error"},
        False,
    ),
    "options_of": (given(("bootstrap_seed",)), lambda made: "bootstrap_seed" in row(made).options, True),
    "contexts": (given([(60.0, 30.0)]), lambda made: (row(made).context_s, linear(made).context_s), (60, 30)),
    "stands": (
        lambda plan, table, line, release: line.entry != "linear",
        lambda made: "linear" in {each.entry for each in rows(made)},
        False,
    ),
    "named": (
        lambda plan, line: [replace(line, method=name) for name in "AB"],
        lambda made: sorted({each.method for each in rows(made)}),
        ["A", "B"],
    ),
    "is_reference": (
        lambda plan, line: line.entry == "linear",
        lambda made: "linear" in {each.entry for each in rows(made)},
        False,
    ),
    "counted": (
        given(dict.fromkeys(("videos", "segments", "hours"), 7)),
        lambda made: row(made, "statistics", "videos", "table2").value,
        7,
    ),
    "note": (
        lambda plan, table, line, release, metric: f"{line.entry} on {metric}",
        lambda made: row(made, metric="error").note,
        "linear on error",
    ),
    "split": (
        lambda plan, entry, metric: f"{metric} of {entry.id}",
        lambda made: row(made).split,
        "accuracy of linear",
    ),
    "seen": (lambda plan, entry: plan.sees[:1], lambda made: row(made).inputs, ("segment",)),
    "figures": (given(FIGURE), lambda made: content(made)["figures"]([]), FIGURE),
    "examples": (given(["a timeline"]), lambda made: content(made)["examples"], ["a timeline"]),
    "page": (given({"title": "Another"}), lambda made: content(made)["title"], "Another"),
    "write_examples": (lambda plan: Path("written").touch(), lambda made: written(made), True),
    "check": (refuse, lambda made: refused(made), "impossible"),
    "parts": (lambda plan, entry: (entry, plan.entries["nearest"]), of_parts, True),
    "dataset": (given("another"), lambda made: [*made.pipelines], []),
    "unscored": (
        given([NEED]),
        lambda made: [each.needs for each in rows(made) if each.metric == "error"][:1],
        [(NEED,)],
    ),
}
"""A value of each hook for the cooking example, a question whose answer follows from it, and that answer."""
ABSTRACT = {"add_verbs", "released", "datasets", "options", "inputs"}
"""What every benchmark defines or inherits as a whole: the tests above use them."""


class TestHooks:
    @pytest.mark.parametrize("hook", HOOKS)
    @pytest.mark.parametrize("config", [COOKING], indirect=True)
    def test_a_hook_decides(self, hook: str, supplied: Made, monkeypatch: pytest.MonkeyPatch) -> None:
        scored = [metric for metric in supplied.metrics if (hook, metric) != ("unscored", "error")]
        measured = {"value": 50.0, "sd": 0.0, "ci": None, "seeds": [0]}
        score = {"metrics": dict.fromkeys(scored, measured), "needs": [], "status": "present"}
        monkeypatch.setattr(type(supplied), "read_score", lambda self, job: score)
        value, ask, answer = HOOKS[hook]
        hooked = type("Hooked", (type(supplied),), {hook: value, "__module__": type(supplied).__module__})
        assert ask(supplied) != answer
        assert ask(hooked(supplied.config, supplied.name)) == answer

    def test_every_hook_is_tested(self) -> None:
        declared = [*vars(Declared)]
        hooks = declared[declared.index("title") : declared.index("configured")]
        assert {hook for hook in hooks if not hook.startswith("_")} == HOOKS.keys() | ABSTRACT
