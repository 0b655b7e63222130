"""The user's predictions: what of them counts, and what is said of files that are not in the released form."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from stepline.benchmarks.hirest.inputs import HirestInputs
from stepline.benchmarks.hirest.kinds import Found
from stepline.benchmarks.hirest.methods.found import found
from stepline.benchmarks.hirest.metrics import METRICS, SEGMENTS
from stepline.datasets import hirest
from stepline.errors import ConfigError
from stepline.needs import Need
from stepline.runs.table import table_rows
from stepline.runs.verbs import Verbs
from tests.benchmarks.hirest.conftest import inputs, plan, predicted
from tests.benchmarks.hirest.synthetic import QUERIES, UNHEARD, recordings

pytestmark = pytest.mark.usefixtures("releases")
FOLDER = Path("predictions")
STEPS = {each.video: len(each.steps) for each in recordings()}
QUERY, OTHER = QUERIES["test"][:2]
VIDEO, NAME = "test-0-0", "test-0-0.mp4"
Q, V, ID = map(repr, (QUERY, NAME, VIDEO))
"""As errors name them."""


def sentences(video: str = VIDEO) -> list[dict[str, str]]:
    return [{"sentence": f"step {number}"} for number in range(STEPS[video])]


FILES: dict[str, Any] = {
    "video_retrieval": {QUERY: {"videos": ["other-0.mp4", NAME], "scores": [0.1, 0.2]}},
    "moment_retrieval": {QUERY: {NAME: {"bounds": [3, 9.5]}}},
    "moment_segmentation": {NAME: {"bounds": [[4, 9.5], [3, 4]]}},
    "step_captioning": {NAME: {"captions": sentences()}},
}


def of(entry: str = "bmt", **files: Any) -> HirestInputs:
    """Return what an entry reads with these files, by their stems, in its folder."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    for stem, content in files.items():
        text = content if isinstance(content, str) else json.dumps(content)
        (FOLDER / f"{stem}.json").write_text(text)
    return inputs(entry, files={entry: str(FOLDER)})


def ranked(content: Any) -> dict[str, Found]:
    return {each.query: each for each in predicted(of("clip-fine-tuned-1", video_retrieval=content))}


def said(**files: Any) -> dict[str, Found]:
    return {each.video: each for each in predicted(of(**{**FILES, **files}))}


class TestRankings:
    def test_they_go_by_score_and_then_by_id_the_last_first(self) -> None:
        videos = ["test-0-1.mp4", "other-2.mp4", "test-5-0.mp4", "other-4.mp4", "test-1-0.mp4"]
        (made,) = ranked({QUERY: {"videos": videos, "scores": [0.5, 0.5, 7, -1e9, 0.5]}}).values()
        assert made.ranked == ("test-5-0", "test-1-0", "test-0-1", "other-2", "other-4")
        assert (made.seed, made.split, made.video, made.query, made.pool) == (0, "pool", "", QUERY, 5)

    def test_the_pool_is_what_the_file_ranks_of_test_and_distractors(self) -> None:
        videos = ["train-0-0.mp4", "test-0-1.mp4", "val-0-0.mp4", "elsewhere.mp4", "other-1.mp4"]
        (made,) = ranked({QUERY: {"videos": videos, "scores": [5, 4, 3, 2, 1]}}).values()
        assert (made.ranked, made.pool) == (("test-0-1", "other-1"), 2)

    def test_a_ranking_without_an_answer_is_one(self) -> None:
        (made,) = ranked({QUERY: {"videos": ["other-1.mp4"], "scores": [5]}}).values()
        assert made.ranked == ("other-1",)

    def test_the_best_50_are_kept(self) -> None:
        many = [f"{video}.mp4" for video in hirest.pool()]
        (made,) = ranked({QUERY: {"videos": many, "scores": list(range(23))}}).values()
        assert made.ranked == tuple(hirest.pool()[::-1])

    def test_queries_that_the_file_lacks_are_missing_and_those_of_other_splits_left_out(self) -> None:
        content = {"videos": ["other-1.mp4"], "scores": [5]}
        assert ranked({OTHER: content, QUERIES["train"][0]: "not looked at"}).keys() == {OTHER}

    def test_a_query_of_which_no_video_is_chosen_is_left_out(self) -> None:
        ranking = {"videos": [f"{video}.mp4" for video in hirest.pool()], "scores": [0] * 23}
        of("clip-fine-tuned-1", video_retrieval=dict.fromkeys(QUERIES["test"], ranking))
        changes = {"files": {"clip-fine-tuned-1": str(FOLDER)}, "subset": {"fraction": 0.3, "seed": 1}}
        here = inputs("clip-fine-tuned-1", **changes)
        some = {each.video for each in here.used("pool")}
        made = predicted(here)
        assert 0 < len(made) < 6
        assert {each.query for each in made} == {query for query, of in here.queries.items() if some & {*of}}
        assert {each.pool for each in made} == {len(some)}


class TestPairs:
    def test_what_is_said_of_a_video_stands_together_in_the_order_of_the_file(self) -> None:
        (made,) = said().values()
        (pair,) = [each for each in hirest.load("test") if each.video == VIDEO]
        sentences = tuple(f"step {number}" for number in range(STEPS[VIDEO]))
        assert made == found(pair, moment=(3.0, 9.5), segments=((4.0, 9.5), (3.0, 4.0)), sentences=sentences)

    def test_a_file_may_lack_videos(self) -> None:
        val = {"val-0-0.mp4": {"bounds": []}}
        made = said(moment_segmentation=val)
        assert (made[VIDEO].moment, made[VIDEO].segments) == ((3, 9.5), None)
        assert made["val-0-0"] == Found(seed=0, split="val", video="val-0-0", query=QUERIES["val"][0], segments=())
        assert made.keys() == {VIDEO, "val-0-0"}

    def test_reversed_bounds_are_kept(self) -> None:
        made = said(
            moment_retrieval={QUERY: {NAME: {"bounds": [9, -3]}}},
            moment_segmentation={NAME: {"bounds": [[7, 4]]}},
        )
        assert (made[VIDEO].moment, made[VIDEO].segments) == ((9, -3), ((7, 4),))

    def test_other_videos_are_left_out(self) -> None:
        """Those of train, without a moment, elsewhere, and steps of those whose steps nobody knows."""
        strange = {f"{video}.mp4": {"bounds": "no"} for video in ("train-0-0", "val-1-2", "elsewhere", "test-0-1")}
        moments = {
            QUERY: {NAME: {"bounds": [3, 4]}, "test-1-0.mp4": {"bounds": 0}},
            QUERIES["val"][1]: {"val-1-2.mp4": {"bounds": 1}},
        }
        captions = {video: {"captions": []} for video in strange} | FILES["step_captioning"]
        segments = strange | FILES["moment_segmentation"]
        made = said(moment_retrieval=moments, moment_segmentation=segments, step_captioning=captions)
        assert made.keys() == {VIDEO}

    def test_a_moment_may_be_withheld(self) -> None:
        made = said(moment_retrieval={QUERY: {"test-0-1.mp4": {"bounds": [3, 4]}}})
        assert made["test-0-1"].moment == (3, 4)

    def test_a_moment_is_that_of_its_query(self) -> None:
        made = said(moment_retrieval={OTHER: {NAME: {"bounds": [3, 4]}}})
        assert made[VIDEO].moment is None

    def test_captions_alone(self) -> None:
        video = "val-2-0"
        (made,) = predicted(of("swinbert", step_captioning={f"{video}.mp4": {"captions": sentences(video)}}))
        assert (made.video, made.split, made.moment, made.segments) == (video, "val", None, None)
        assert made.sentences == tuple(f"step {number}" for number in range(STEPS[video]))

    def test_what_a_model_may_have_heard_need_not_be_there(self) -> None:
        shutil.rmtree("datasets/hirest/asr")
        video = UNHEARD[0]
        here = of(**FILES | {"moment_segmentation": {f"{video}.mp4": {"bounds": [[1, 2]]}}})
        made = {each.video: each for each in predicted(here)}
        assert made.keys() == {VIDEO, video}
        assert here.benchmark.missing(here.entry, "v1") == ()
        assert "speech" in here.entry.sees


class TestWrongFiles:
    @pytest.mark.parametrize(
        ("entry", "stem"),
        [
            ("clip-fine-tuned-1", "video_retrieval"),
            ("bmt", "moment_retrieval"),
            ("bmt", "moment_segmentation"),
            ("bmt", "step_captioning"),
            ("swinbert", "step_captioning"),
        ],
    )
    def test_an_absent_file_is_named(self, entry: str, stem: str) -> None:
        here = of(entry, **{name: content for name, content in FILES.items() if name != stem})
        with pytest.raises(
            ConfigError, match=rf"^predictions/{stem}.json cannot be read \(No such file or directory\): "
        ):
            predicted(here)

    @pytest.mark.parametrize("text", ["", "{", '{"a": }', "[" * 100000])
    def test_what_is_not_json_is_named(self, text: str) -> None:
        with pytest.raises(ConfigError, match=r"^predictions/step_captioning.json is not JSON \(") as raised:
            said(step_captioning=text)
        assert "\n" not in str(raised.value)

    @pytest.mark.parametrize(
        ("content", "reason"),
        [
            ([], "[] is not allowed; give an object"),
            ({"Bake": {}}, "'Bake' is not allowed; give a query of the HiREST release"),
            ({QUERY: []}, f"{Q}: [] is not allowed; give an object"),
            ({QUERY: {"scores": []}}, f"{Q}: {{'scores': []}} is not allowed; give an object with 'videos'"),
            (
                {QUERY: {"videos": ["other-0.mp4"]}},
                f"{Q}: {{'videos': ['other-0.mp4']}} is not allowed; give an object ",
            ),
            ({QUERY: {"videos": "x", "scores": []}}, f"{Q}: 'videos': 'x' is not allowed; give a list of videos"),
            ({QUERY: {"videos": ["x"], "scores": [1]}}, f"{Q}: 'videos': 0: 'x' is not allowed; give a video id "),
            ({QUERY: {"videos": [1], "scores": [1]}}, f"{Q}: 'videos': 0: 1 is not allowed; give a string"),
            (
                {QUERY: {"videos": ["x.mp4", "y.mp4"], "scores": [1]}},
                f"{Q}: 'scores': [1] is not allowed; give a list of 2 scores, one per video, instead of 1",
            ),
            (
                {QUERY: {"videos": ["x.mp4", "x.mp4"], "scores": [1, 2]}},
                f"{Q}: 'videos': ['x.mp4', 'x.mp4'] is not allowed; give each video once",
            ),
            (
                {QUERY: {"videos": ["train-0-0.mp4"], "scores": [1]}},
                f"{Q}: 'videos': ['train-0-0.mp4'] is not allowed; give videos of test and distractors",
            ),
            ({QUERY: {"videos": [], "scores": []}}, f"{Q}: 'videos': [] is not allowed; give videos of test and dist"),
            *(
                (
                    {QUERY: {"videos": ["other-0.mp4"], "scores": [score]}},
                    f"{Q}: 'scores': 0: {score!r:.80} is not allowed; give a finite number",
                )
                for score in (float("nan"), float("inf"), -float("inf"), "1", None, True, 10**400)
            ),
        ],
    )
    def test_rankings(self, content: Any, reason: str) -> None:
        with pytest.raises(ConfigError, match=re.escape(f"predictions/video_retrieval.json: {reason}")) as raised:
            ranked(content)
        assert "\n" not in str(raised.value)

    @pytest.mark.parametrize(
        ("stem", "content", "reason"),
        [
            ("moment_retrieval", {"Bake": {}}, "'Bake' is not allowed; give a query of the HiREST release"),
            ("moment_retrieval", {QUERY: {VIDEO: {"bounds": [1, 2]}}}, f"{Q}: {ID} is not allowed; give a "),
            ("moment_retrieval", {QUERY: {NAME: [1, 2]}}, f"{Q}: {V}: [1, 2] is not allowed; give an"),
            ("moment_retrieval", {QUERY: {NAME: {}}}, f"{Q}: {V}: {{}} is not allowed; give an object wi"),
            *(
                (
                    "moment_retrieval",
                    {QUERY: {NAME: {"bounds": bounds}}},
                    f"{Q}: {V}: 'bounds': {reason}",
                )
                for bounds, reason in (
                    ([1], "[1] is not allowed; give a list of 2 numbers, start and end in seconds"),
                    ([1, 2, 3], "[1, 2, 3] is not allowed; give a list of 2 numbers"),
                    ({}, "{} is not allowed; give a list of 2 numbers"),
                    ([0, float("nan")], "1: nan is not allowed; give a finite number"),
                    (["0", 1], "0: '0' is not allowed; give a finite number"),
                )
            ),
            ("moment_segmentation", {VIDEO: {"bounds": []}}, f"{ID} is not allowed; give a video id with "),
            ("moment_segmentation", {NAME: {"bounds": {}}}, f"{V}: 'bounds': {{}} is not allowed; give a li"),
            ("moment_segmentation", {NAME: {"bounds": [1, 2]}}, f"{V}: 'bounds': 0: 1 is not allowed"),
            (
                "moment_segmentation",
                {NAME: {"bounds": [[0, 1], [1, None]]}},
                f"{V}: 'bounds': 1: 1: None is not allowed; give a finite number",
            ),
            (
                "step_captioning",
                {NAME: {"captions": [{"sentence": "x"}]}},
                f"{V}: 'captions': [{{'sentence': 'x'}}] is not allowed; give a list of {STEPS[VIDEO]} captions",
            ),
            ("step_captioning", {NAME: {"captions": "xyz"}}, f"{V}: 'captions': 'xyz' is not allowed; gi"),
            (
                "step_captioning",
                {NAME: {"captions": [*sentences()[:-1], "x"]}},
                f"{V}: 'captions': {STEPS[VIDEO] - 1}: 'x' is not allowed; give an object",
            ),
            (
                "step_captioning",
                {NAME: {"captions": [*sentences()[:-1], {"sentence": 1}]}},
                f"{V}: 'captions': {STEPS[VIDEO] - 1}: 'sentence': 1 is not allowed; give a string",
            ),
            (
                "step_captioning",
                {NAME: {"captions": [*sentences()[:-1], {"sentence": "\ud800"}]}},
                f"{V}: 'captions': {STEPS[VIDEO] - 1}: 'sentence': '\\ud800' is not allowed; give a string",
            ),
            ("step_captioning", {VIDEO: {}}, f"{ID} is not allowed; give a video id with .mp4"),
        ],
    )
    def test_pairs(self, stem: str, content: Any, reason: str) -> None:
        with pytest.raises(ConfigError, match=re.escape(f"predictions/{stem}.json: {reason}")) as raised:
            said(**{stem: content})
        assert "\n" not in str(raised.value)

    def test_too_few_captions_are_counted(self) -> None:
        n = STEPS[VIDEO]
        with pytest.raises(ConfigError, match=f"give a list of {n} captions, one per step, instead of {n - 1}$"):
            said(step_captioning={NAME: {"captions": sentences()[1:]}})

    @pytest.mark.parametrize("entry", ["clip-fine-tuned-1", "bmt", "swinbert"])
    def test_files_that_name_none_of_the_videos_are_refused(self, entry: str) -> None:
        here = of(entry, **{stem: {} for stem in FILES})
        splits = "pool" if entry == "clip-fine-tuned-1" else "val or test"
        with pytest.raises(ConfigError, match=rf"^predictions: no file names a video of {splits}: give others$"):
            predicted(here)


def test_without_a_folder_the_entries_need_predictions() -> None:
    for entry in ("clip-fine-tuned-1", "bmt", "swinbert"):
        assert plan().missing(plan().entries[entry], "v1") == (Need("predictions", entry),)


def test_predictions_for_one_split_leave_the_numbers_of_the_other_missing() -> None:
    segments = {"val-0-0.mp4": {"bounds": [[3, 4], [4, 9.5]]}}
    made = of(moment_segmentation=segments, moment_retrieval={}, step_captioning={}).benchmark
    verbs = Verbs(made)
    verbs.predict("v1", "bmt", "all")
    verbs.score("v1", "bmt", "all")
    rows = {row.metric: row for row in table_rows(made, "table4") if row.entry == "bmt"}
    assert rows["val_recall_05"].value is not None
    missing = rows["test_507_recall_05"]
    assert (missing.value, missing.note) == (None, "no method here; needs predictions:bmt")
    for entry, needs in {"swinbert": [Need("predictions", "swinbert")], "joint": []}.items():
        assert made.unscored(made.entries[entry], "v1", "test_507_cider") == needs


def test_the_option_of_scoring_is_shown_with_the_numbers_that_it_changes() -> None:
    made = plan({"metrics": {"bootstrap_samples": 100, "preprocess_moment_bounds": False}, "tables": ["table4"]})
    Verbs(made).predict("v1", "uniform-7", "all")
    Verbs(made).score("v1", "uniform-7", "all")
    rows = {row.metric: row.options for row in table_rows(made, "table4") if row.entry == "uniform-7"}
    for split in ("val", "test_507"):
        for name in ("recall_05", "recall_07", "precision_05", "precision_07"):
            option = rows[f"{split}_{name}"]["preprocess_moment_bounds"]
            assert (option.value, option.differs) == (False, True)
    assert [name for name, metric in METRICS.items() if metric.options == ("preprocess_moment_bounds",)] == [
        name
        for name in SEGMENTS
        if name.split("_0")[0] in ("val_recall", "val_precision", "test_507_recall", "test_507_precision")
    ]
