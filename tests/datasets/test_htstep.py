import json
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from stepline.datasets import htstep
from stepline.datasets.htstep import (
    DATASETS,
    FILES,
    RELEASES,
    SPLITS,
    Recording,
    Segment,
    Statistics,
    Step,
    articles,
    load,
    statistics,
    taxonomy,
)
from stepline.datasets.shards import assign
from stepline.errors import ReleaseError
from stepline.fetch import fetch_release
from tests.datasets import test_coin, test_crosstask
from tests.datasets.fetched import write_release

HEAD = "global_step_index,activity,step_index,variation,variation_index,headline,paragraph\r\n"
ROWS = (
    '0,Make Tea,0,none,1,"Boil, then pour.","Use a pot.\nWait."\r\n',
    "1,Make Tea,1,none,2,Drink.,\r\n",
    "5,Fry Fish,0,A,A1,Clean it.,\r\n",
    "6,Fry Fish,1,A,A3,Fry it.,\r\n",
    "8,Fry Fish,3,B,B1,Steam it.,Long.\r\n",
)
CSV = HEAD + "".join(ROWS)
VIDEOS = {"train": ["b", "-a"], "val_seen": ["c"], "val_unseen": ["d"], "test_seen": ["e"], "test_unseen": ["f"]}


def segment(step: Any, start_s: Any, end_s: Any, **more: Any) -> dict[str, Any]:
    return {"id": step, "segment": [start_s, end_s], **more}


ANNOTATION: dict[str, Any] = {
    "-a": {
        "subset": "train",
        "activity": "Fry Fish",
        "variation": "A",
        "annotations": [segment(6, 3.5, 5, label_id="5", kind="full"), segment(5, 0, 1, kind="partial")],
    },
    "b": {"subset": "train", "activity": "Make Tea", "annotations": [segment(1, 2, 2)]},
    "c": {"subset": "val_seen", "activity": "Fry Fish", "annotations": [segment(8, 1, 9, kind="partial")]},
    "d": {"subset": "val_unseen", "activity": "Fry Fish", "annotations": []},
    "e": {"subset": "test_seen", "annotations": []},
}
MATCH = {"key": "kind", "full": "full", "partial": "partial"}


def write(release: str, **files: Any) -> None:
    """Write files of a release, by their paths without the suffix."""
    paths = {each.path.partition(".")[0]: each.path for each in FILES[release]}
    write_release(RELEASES, release, {paths[name]: content for name, content in files.items()})


def write_v1(csv: str = CSV, videos: Any = VIDEOS) -> None:
    write("v1", taxonomy=csv, video_splits=videos)


@pytest.fixture(autouse=True)
def v1() -> None:
    write_v1()


def annotate(content: Any = ANNOTATION) -> None:
    write("annotations", annotations=content)


class TestTaxonomy:
    def test_steps_keep_their_ids_places_and_text(self) -> None:
        assert list(taxonomy()) == [0, 1, 5, 6, 8]
        assert taxonomy()[0] == Step(
            id=0, activity="Make Tea", variation="", index=1, headline="Boil, then pour.", paragraph="Use a pot.\nWait."
        )
        assert taxonomy()[6] == Step(
            id=6, activity="Fry Fish", variation="A", index=3, headline="Fry it.", paragraph=""
        )

    def test_a_variation_may_end_with_a_digit(self) -> None:
        write_v1(HEAD + "3,Fly,0,Way 2,Way 22,Go.,\r\n4,Fly,1,Way 2,Way 25,Land.,\r\n")
        assert [(step.variation, step.index) for step in taxonomy().values()] == [("Way 2", 2), ("Way 2", 5)]

    def test_an_article_is_a_variation(self) -> None:
        assert articles() == {("Make Tea", ""): (0, 1), ("Fry Fish", "A"): (5, 6), ("Fry Fish", "B"): (8,)}

    @pytest.mark.parametrize(
        ("content", "reason"),
        [
            (HEAD, "it lists no steps"),
            ("id,activity\n0,Tea\n", "KeyError: 'variation'"),
            (HEAD + "0,Make Tea\n", "AttributeError: "),
            (HEAD + "x,Make Tea,0,none,1,Boil.,\n", "invalid literal"),
            (HEAD + "0,Make Tea,0,A,B1,Boil.,\n", "step 0 has the place 'B1'"),
            (HEAD + "0,,0,none,1,Boil.,\n", "step 0 has the place '1', no activity or no headline"),
            (HEAD + ROWS[1] + ROWS[0], "step 0 is listed twice, or after a later one"),
            (HEAD + ROWS[0] + ROWS[0], "step 0 is listed twice"),
            (HEAD + ROWS[0] + ROWS[1].replace(",2,", ",1,"), "step 1 is listed twice"),
        ],
    )
    def test_another_form_is_one_line(self, content: str, reason: str) -> None:
        write_v1(content)
        with pytest.raises(ReleaseError, match=rf"taxonomy.csv is not in HT-Step's format: [^\n]*{reason}[^\n]*\Z"):
            taxonomy()


class TestSplits:
    @pytest.mark.parametrize(
        ("content", "reason"),
        [
            ([], "it is not a JSON object"),
            ({"train": []}, "KeyError: 'val_seen'"),
            ({**VIDEOS, "test": []}, "the split 'test' is unknown"),
            ({**VIDEOS, "train": ["c"]}, "a video is listed twice"),
            ({**VIDEOS, "train": ["../c"]}, r"video id '\.\./c' is not allowed"),
            ({**VIDEOS, "train": [3]}, "TypeError"),
        ],
    )
    def test_another_form_is_one_line(self, content: Any, reason: str) -> None:
        write_v1(videos=content)
        with pytest.raises(
            ReleaseError, match=rf"video_splits.json is not in HT-Step's format: [^\n]*{reason}[^\n]*\Z"
        ):
            load("train")

    def test_videos_are_those_of_all_splits_with_their_addresses(self) -> None:
        videos = DATASETS["htstep"].videos()
        assert [(video.id, video.split) for video in videos] == [
            *(("b", "train"), ("-a", "train"), ("c", "val"), ("d", "val"), ("e", "test"), ("f", "test"))
        ]
        assert videos[1].url == "https://www.youtube.com/watch?v=-a"
        assert videos[1].path == "htstep/videos/-a.mp4"

    def test_there_are_none_before_the_release(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "new").mkdir()
        monkeypatch.chdir(tmp_path / "new")
        assert [dataset.videos() for dataset in DATASETS.values()] == [(), (), ()]
        with pytest.raises(ReleaseError, match="run `stepline fetch htstep/v1`"):
            load("train")


class TestLoad:
    def test_without_annotation_nothing_is_known_but_the_videos(self) -> None:
        assert not htstep.annotations_are_here()
        assert (htstep.labelled_splits(), htstep.is_made()) == ((), False)
        assert [recording.video for recording in load("train", MATCH)] == ["b", "-a"]
        assert load("val_seen") == (
            Recording(video="c", split="val_seen", activity="", steps=(), segments=(), labelled=False),
        )

    def test_segments_come_in_their_order_with_the_steps_of_the_article(self) -> None:
        annotate()
        assert load("train")[1] == Recording(
            video="-a",
            split="train",
            activity="Fry Fish",
            steps=(5, 6),
            segments=(
                Segment(start_s=3.5, end_s=5.0, step=6, match=""),
                Segment(start_s=0.0, end_s=1.0, step=5, match=""),
            ),
            labelled=True,
        )
        assert [(each.steps, each.labelled) for each in load("val_seen")] == [((8,), True)]

    def test_a_segment_of_no_length_is_kept(self) -> None:
        annotate()
        assert [(each.start_s, each.end_s) for each in load("train")[0].segments] == [(2.0, 2.0)]

    def test_of_a_withheld_video_the_steps_are_all_of_its_activity_if_that_is_named(self) -> None:
        annotate()
        assert [(each.activity, each.steps, each.labelled) for each in load("val_unseen")] == [
            ("Fry Fish", (5, 6, 8), False)
        ]
        for split in ("test_seen", "test_unseen"):
            assert [(each.activity, each.steps, each.labelled) for each in load(split)] == [("", (), False)]
        assert htstep.labelled_splits() == ("train", "val_seen")

    def test_matches_are_read_where_their_key_is_given(self) -> None:
        annotate()
        assert [each.match for each in load("train", MATCH)[1].segments] == ["full", "partial"]
        assert [each.match for each in load("train", MATCH)[0].segments] == [""]
        assert [each.match for each in load("train")[1].segments] == ["", ""]

    @pytest.mark.parametrize(("values", "texts"), [((True, False), ("true", "false")), ((1, 0), ("1", "0"))])
    def test_a_match_that_is_no_text_is_compared_as_json_writes_it(
        self, values: tuple[Any, Any], texts: tuple[str, str]
    ) -> None:
        content = deepcopy(ANNOTATION)
        for place, value in enumerate(values):
            content["-a"]["annotations"][place]["kind"] = value
        content["c"]["annotations"][0]["kind"] = values[1]
        annotate(content)
        match = {"key": "kind", "full": texts[0], "partial": texts[1]}
        assert [each.match for each in load("train", match)[1].segments] == ["full", "partial"]

    def test_a_wrong_match_is_one_line(self) -> None:
        annotate()
        with pytest.raises(ReleaseError, match=r"annotations.json: -a has 'full' under 'kind', not 'F' or 'partial'$"):
            load("train", MATCH | {"full": "F"})
        with pytest.raises(ReleaseError, match=r"annotations.json: no segment has the key 'type': correct"):
            load("train", MATCH | {"key": "type"})

    @pytest.mark.parametrize(
        ("video", "change", "reason"),
        [
            ("x", lambda each: each, "is not in video_splits.json"),
            ("b", lambda each: each | {"subset": "Train"}, "is in the subset 'Train', but in 'train' in video_splits"),
            ("b", lambda each: each | {"subset": "val_seen"}, "is in the subset 'val_seen', but in 'train'"),
            ("b", lambda each: each | {"activity": "make tea"}, "has the activity 'make tea', which taxonomy.csv does"),
            ("b", lambda each: each | {"activity": ["x"]}, "is not in HT-Step's format: TypeError"),
            ("b", lambda each: {"subset": "train", "annotations": each["annotations"]}, "KeyError: 'activity'"),
            ("d", lambda each: each | {"activity": "Tea"}, "has the activity 'Tea', which taxonomy.csv does not list"),
            ("d", lambda each: {"subset": "val_unseen"}, "is not in HT-Step's format: KeyError: 'annotations'"),
            ("b", lambda each: each | {"annotations": {}}, "has annotations that are not a list"),
            ("b", lambda each: [], "is not in HT-Step's format: TypeError"),
            ("b", lambda each: each | {"annotations": ["x"]}, "is not in HT-Step's format: TypeError"),
            ("b", lambda each: each | {"annotations": [segment(4, 0, 1)]}, "has step 4, which taxonomy.csv does not"),
            ("b", lambda each: each | {"annotations": [segment("1", 0, 1)]}, "has the step '1', which is not a whole"),
            (
                "b",
                lambda each: each | {"annotations": [segment(True, 0, 1)]},
                "has the step True, which is not a whole",
            ),
            (
                "b",
                lambda each: each | {"annotations": [segment(5, 0, 1)]},
                "has the activity 'Make Tea', but step 5 of 'Fry",
            ),
            ("-a", lambda each: each | {"annotations": [segment(5, 0, 1), segment(8, 0, 1)]}, "variations, A, B"),
            ("b", lambda each: each | {"annotations": [segment(1, -1, 1)]}, "has a segment from -1 to 1 s"),
            ("b", lambda each: each | {"annotations": [segment(1, 2, 1)]}, "has a segment from 2 to 1 s"),
            ("b", lambda each: each | {"annotations": [segment(1, 0, float("nan"))]}, "has a segment from 0 to nan s"),
            ("b", lambda each: each | {"annotations": [segment(1, 0, float("inf"))]}, "has a segment from 0 to inf s"),
            ("b", lambda each: each | {"annotations": [segment(1, 0, 10**400)]}, "OverflowError"),
            (
                "b",
                lambda each: each | {"annotations": [segment(1, "0", 1)]},
                r"has the segment \['0', 1\], whose bounds",
            ),
            (
                "b",
                lambda each: each | {"annotations": [segment(1, 0, True)]},
                r"has the segment \[0, True\], whose bounds",
            ),
            ("b", lambda each: each | {"annotations": [{"id": 1, "segment": [1]}]}, r"has the segment \[1\], which is"),
            ("b", lambda each: each | {"annotations": [{"segment": [0, 1]}]}, "KeyError: 'id'"),
        ],
    )
    def test_what_is_wrong_is_one_line_that_names_the_video(
        self, video: str, change: Callable[[Any], Any], reason: str
    ) -> None:
        annotate({**ANNOTATION, video: change(ANNOTATION.get(video, {}))})
        with pytest.raises(ReleaseError, match=rf"annotations.json: {video} [^\n]*{reason}[^\n]*\Z"):
            load("val_seen")

    @pytest.mark.parametrize("content", ["[", "[]", '"b"'])
    def test_what_is_no_object_is_one_line(self, content: str) -> None:
        write("annotations", annotations=content)
        for read in (lambda: load("train"), htstep.labelled_splits, htstep.is_made):
            with pytest.raises(ReleaseError, match=r"annotations.json is not in HT-Step's format: [^\n]+\Z"):
                read()

    def test_a_record_that_is_made_makes_the_annotation_so(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("STEPLINE_RUN", "1")
        annotate()
        assert not htstep.is_made()
        annotate(ANNOTATION | {"b": ANNOTATION["b"] | {"made": True}})
        assert htstep.is_made()
        htstep._summary.cache_clear()
        assert (htstep.labelled_splits(), htstep.is_made()) == (("train", "val_seen"), True), "from the kept summary"

    def test_the_annotation_is_fetched_from_the_mirror(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        file = tmp_path / "mirror/htstep/annotations/annotations.json"
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps(ANNOTATION))
        monkeypatch.setenv("STEPLINE_MIRROR", str(tmp_path / "mirror"))
        assert htstep.annotations_are_here()
        assert not htstep.candidates_are_here()
        assert htstep.labelled_splits() == ("train", "val_seen")
        with pytest.raises(ReleaseError, match="run `stepline fetch htstep/annotations`"):
            load("train")
        fetch_release(RELEASES, "annotations")
        assert load("train")[0].labelled

    def test_an_annotation_that_changes_is_read_anew(self) -> None:
        annotate()
        assert load("train")[0].labelled
        annotate({})
        assert not load("train")[0].labelled


class TestCandidates:
    def test_they_are_the_steps_of_videos_without_segments(self) -> None:
        annotate()
        write("candidates", video_candidate_steps={"-a": [8], "d": [6, 7, 5], "e": [1], "f": [7], "b": [0, 1]})
        assert htstep.candidates_are_here()
        assert [each.steps for each in load("train")] == [(0, 1), (5, 6)]
        assert [(each.activity, each.steps) for each in load("val_unseen")] == [("Fry Fish", (5, 6))]
        assert [(each.activity, each.steps) for each in load("test_seen")] == [("Make Tea", (1,))]
        assert [(each.activity, each.steps) for each in load("test_unseen")] == [("", ())]

    @pytest.mark.parametrize(
        ("content", "reason"),
        [
            ({"x": [1]}, "x is not in video_splits.json"),
            ({"e": 1}, "e has candidates that are not a list of ids from 0 to 5784"),
            ({"e": ["1"]}, "e has candidates that are not a list of ids"),
            ({"e": [True]}, "e has candidates that are not a list of ids"),
            ({"e": [-1]}, "e has candidates that are not a list of ids"),
            ({"e": [5785]}, "e has candidates that are not a list of ids"),
            ({"e": [1, 1]}, "e lists a candidate twice"),
            ({"e": [1, 5]}, "e has candidates of several activities, Fry Fish, Make Tea"),
            ({"d": [1]}, "d has steps of 'Make Tea', but 'Fry Fish' in annotations.json"),
            ({"b": [5]}, "b has steps of 'Fry Fish', but 'Make Tea' in annotations.json"),
        ],
    )
    def test_what_is_wrong_is_one_line_that_names_the_video(self, content: Any, reason: str) -> None:
        annotate()
        write("candidates", video_candidate_steps=content)
        with pytest.raises(ReleaseError, match=rf"video_candidate_steps.json: {reason}[^\n]*\Z"):
            load("train")


def test_splits_are_counted() -> None:
    annotate()
    assert statistics("train") == Statistics(videos=2, labelled=2, segments=3, activities=2, steps=3)
    assert statistics("val_unseen") == Statistics(videos=1, labelled=0, segments=0, activities=1, steps=0)
    assert statistics(*SPLITS) == Statistics(videos=6, labelled=3, segments=4, activities=2, steps=4)


def test_videos_of_crosstask_are_listed_once() -> None:
    write_release(RELEASES, "crosstask", test_crosstask.release())
    videos = DATASETS["crosstask"].videos()
    assert [(video.id, video.split, video.path) for video in videos] == [
        ("a-1", None, "crosstask/videos/a-1.mp4"),
        ("val_1", None, "crosstask/videos/val_1.mp4"),
    ]
    assert videos[0].url == "https://www.youtube.com/watch?v=a-1"


def test_videos_of_coin_have_their_split() -> None:
    record = {"class": "Tea", "recipe_type": 1, "annotation": []}
    made = test_coin.release([{"b": record}], [{"a": record}], [("Food", "Tea")], [(1, "Tea", 1, "boil")])
    write_release(RELEASES, "coin", made)
    assert [(video.id, video.split, video.path) for video in DATASETS["coin"].videos()] == [
        ("b", "train", "coin/videos/b.mp4"),
        ("a", "test", "coin/videos/a.mp4"),
    ]


def test_a_new_video_changes_one_shard() -> None:
    """As many videos as HT-Step has, of unknown duration."""
    write_v1(videos={**VIDEOS, "train": [f"v{number}" for number in range(20_000)]})
    before = assign(DATASETS["htstep"].videos(), hours=20, known={})
    write_v1(videos={**VIDEOS, "train": ["new", *(f"v{number}" for number in range(20_000))]})
    after = assign(DATASETS["htstep"].videos(), hours=20, known=before)
    assert len({*before.values()}) == 167
    assert {video: shard for video, shard in after.items() if before.get(video) != shard} == {"new": "166"}
