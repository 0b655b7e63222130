import csv
import io
import json
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from stepline.datasets.hirest import (
    ASR,
    CATEGORIES,
    DATASETS,
    DISTRACTORS,
    LABELS,
    RELEASES,
    SPLIT_FILES,
    STEPS,
    Pair,
    Statistics,
    Step,
    Subtitle,
    categories,
    labels_are_here,
    load,
    pool,
    statistics,
    subtitles,
)
from stepline.datasets.schema import SPLITS
from stepline.errors import ReleaseError
from stepline.fetch import fetch_release
from tests.datasets.fetched import write_release


def record(*steps: tuple[float, float, str], bounds: tuple[float, float] = (0, 0), clip: bool = True) -> dict[str, Any]:
    listed = [
        {"index": number, "heading": caption, "absolute_bounds": [start_s, end_s]}
        for number, (start_s, end_s, caption) in enumerate(steps)
    ]
    return {"relevant": True, "clip": clip, "v_duration": 60.5, "bounds": bounds, "steps": listed}


WHOLE = record(clip=False)
TEST = {"Bake": {"t2.mp4": record(bounds=(0, 1)), "t1.mp4": WHOLE}, "Air": {"t0.mp4": record(bounds=(0, 1))}}
CONTENT: dict[str, Any] = {
    SPLIT_FILES["train"]: {"Cook": {"a.mp4": record((3, 5, "Wash "), (5, 5, "cut"), bounds=(3, 5)), "b.mp4": WHOLE}},
    SPLIT_FILES["val"]: {"Dig": {"c.mp4": record(bounds=(0, 1))}},
    SPLIT_FILES["test"]: TEST,
    DISTRACTORS: {"negative video_0": {"n1.mp4": {}}, "negative video_1": {"n0.mp4": {}}},
    STEPS: {
        "t2.mp4": {"captions": [{"start": 2, "end": 9, "sentence": "x"}, {"start": 9, "end": 61, "sentence": "y"}]}
    },
    CATEGORIES: {"prompt_to_cat": {"Cook": "Food"}, "video_to_cat": {"a.mp4": "Food"}},
}
TRUE = {
    "Bake": {"t2.mp4": record(bounds=(2, 61)), "t1.mp4": WHOLE},
    "Air": {"t0.mp4": record((4, 6, "x"), (6, 8, "y"), bounds=(4, 8))},
}


@pytest.fixture
def v1() -> None:
    write_release(RELEASES, "v1", CONTENT)


@pytest.mark.usefixtures("v1")
class TestPairs:
    def test_pairs_come_in_the_released_order_with_the_captions_as_written(self) -> None:
        steps = (Step(start_s=3.0, end_s=5.0, caption="Wash "), Step(start_s=5.0, end_s=5.0, caption="cut"))
        first = Pair(
            query="Cook",
            video="a",
            duration_s=60.5,
            clippable=True,
            bounds_s=(3.0, 5.0),
            steps=steps,
            split="train",
        )
        assert load("train") == (first, replace(first, video="b", clippable=False, bounds_s=None, steps=()))

    def test_a_blinded_moment_of_test_is_none_and_the_first_second_of_val_is_a_moment(self) -> None:
        assert [(pair.video, pair.clippable, pair.bounds_s) for pair in load("test")] == [
            ("t2", True, None),
            ("t1", False, None),
            ("t0", True, None),
        ]
        assert [pair.bounds_s for pair in load("val")] == [(0.0, 1.0)]

    def test_a_moment_of_a_second_with_steps_is_not_blinded(self) -> None:
        write_release(RELEASES, "v1", {SPLIT_FILES["test"]: {"Bake": {"t2.mp4": record((0, 1, "x"), bounds=(0, 1))}}})
        assert [pair.bounds_s for pair in load("test")] == [(0.0, 1.0)]

    def test_public_steps_imply_the_moment_also_where_the_last_ends_after_the_video(self) -> None:
        (pair,) = load("test_507")
        assert (pair.video, pair.bounds_s, pair.duration_s, pair.split) == ("t2", (2.0, 61.0), 60.5, "test_507")
        assert [step.caption for step in pair.steps] == ["x", "y"]
        steps = [{"start": start, "end": end, "sentence": "x"} for start, end in ((3, 20), (2, 9), (5, 8))]
        write_release(RELEASES, "v1", {STEPS: {"t2.mp4": {"captions": steps}}})
        assert [pair.bounds_s for pair in load("test_507")] == [(2.0, 20.0)]

    def test_labels_give_test_its_moments(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        assert not labels_are_here()
        file = tmp_path / "mirror/hirest/labels" / LABELS
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps(dict(reversed(TRUE.items()))))
        monkeypatch.setenv("STEPLINE_MIRROR", str(tmp_path / "mirror"))
        assert labels_are_here()
        with pytest.raises(ReleaseError, match="run `stepline fetch hirest/labels`"):
            load("test")
        fetch_release(RELEASES, "labels")
        assert [(pair.video, pair.bounds_s) for pair in load("test")] == [("t2", (2, 61)), ("t1", None), ("t0", (4, 8))]
        assert [step.caption for pair in load("test") for step in pair.steps] == ["x", "y"]

    @pytest.mark.parametrize(
        ("content", "reason"),
        [
            (TEST, "is blinded, like v1's test file: replace it with the authors' labels"),
            ({"Bake": TRUE["Bake"]}, "has different pairs than v1's splits/all_data_test.json"),
            ({**TRUE, "Air": {"t0.mp4": WHOLE}}, "has different pairs than v1's splits/all_data_test.json"),
        ],
    )
    def test_labels_that_are_none_are_refused(self, content: dict[str, Any], reason: str) -> None:
        write_release(RELEASES, "labels", {LABELS: content})
        with pytest.raises(ReleaseError, match=rf"{LABELS} {reason}$"):
            load("test")

    @pytest.mark.parametrize(
        "content",
        [
            {"Cook": {"a": WHOLE}},
            {"Cook": {"../a.mp4": WHOLE}},
            {"Cook": {"a\nb.mp4": {**WHOLE, "bounds": [2, 1]}}},
            {"Cook": {"a.mp4": {**WHOLE, "bounds": [0, 1, 2]}}},
            {"Cook": {"a.mp4": {**WHOLE, "bounds": [-1, 1]}}},
            {"Cook": {"a.mp4": {**WHOLE, "bounds": [0, float("inf")]}}},
            {"Cook": {"a.mp4": {**WHOLE, "v_duration": float("nan")}}},
            {"Cook": {"a.mp4": {**WHOLE, "v_duration": 0}}},
            {"Cook": {"a.mp4": {**WHOLE, "clip": "yes"}}},
            {"Cook": {"a.mp4": {**record((1, 2, "x")), "clip": False}}},
            {"Cook": {"a.mp4": record((2, 1, "x"))}},
            {"Cook": {"a.mp4": record((1, 2, None))}},  # type: ignore[arg-type]
            {"Cook": {"a.mp4": {**WHOLE, "steps": [{"heading": "x"}]}}},
            {"Cook": {"a.mp4": {}}},
            {"Cook": {"a.mp4": WHOLE}, "Dig": {"a.mp4": WHOLE}},
            {"Cook": ["a.mp4"]},
            ["Cook"],
        ],
    )
    def test_another_form_is_one_line(self, content: Any) -> None:
        write_release(RELEASES, "v1", {SPLIT_FILES["train"]: content})
        with pytest.raises(ReleaseError, match=r"all_data_train.json is not in HiREST's format: [^\n]+\Z"):
            load("train")

    def test_what_is_not_json_is_one_line(self) -> None:
        write_release(RELEASES, "v1", {SPLIT_FILES["val"]: '{"Cook": \n'})
        with pytest.raises(ReleaseError, match=r"all_data_val.json is not in HiREST's format: JSONDecodeError[^\n]+\Z"):
            load("val")

    @pytest.mark.parametrize("content", [["t2.mp4"], {"t2": {}}, {"t2.mp4": {"captions": []}}, {"t2.mp4": {}}])
    def test_steps_of_another_form_are_one_line(self, content: Any) -> None:
        write_release(RELEASES, "v1", {STEPS: content})
        with pytest.raises(ReleaseError, match=r"_gt.json is not in HiREST's format: [^\n]+\Z"):
            load("test_507")

    @pytest.mark.parametrize("video", ["t1", "a"])
    def test_steps_of_a_video_without_a_moment_are_refused(self, video: str) -> None:
        write_release(RELEASES, "v1", {STEPS: {f"{video}.mp4": CONTENT[STEPS]["t2.mp4"]}})
        with pytest.raises(ReleaseError, match=f"_gt.json has steps of {video}, which has no moment"):
            load("test_507")

    def test_statistics_count_pairs_and_their_public_steps(self) -> None:
        """A video without steps is as long as it likes."""
        write_release(RELEASES, "v1", {SPLIT_FILES["val"]: {"Dig": {"c.mp4": {**WHOLE, "v_duration": 9}}}})
        assert statistics() == Statistics(
            videos=6,
            stepped=2,
            steps=4,
            steps_per_moment=2,
            words_per_caption=1.25,  # "Wash " has a second part, which is empty
            captions=4,
            video_s=60.5,
            step_s=15.25,
        )

    def test_the_pool_is_test_then_the_distractors(self) -> None:
        assert pool() == ("t2", "t1", "t0", "n1", "n0")
        write_release(RELEASES, "v1", {DISTRACTORS: {"negative video_0": ["n1"]}})
        with pytest.raises(ReleaseError, match="negative_samples.json is not in HiREST's format: ValueError: 'n1'"):
            pool()

    def test_queries_have_categories(self) -> None:
        assert categories() == {"Cook": "Food"}
        write_release(RELEASES, "v1", {CATEGORIES: {"prompt_to_cat": None}})
        with pytest.raises(ReleaseError, match="categories.json is not in HiREST's format: AttributeError"):
            categories()

    def test_videos_are_those_of_the_splits_then_the_distractors(self) -> None:
        videos = DATASETS["hirest"].videos()
        assert [(video.id, video.split, video.duration_s) for video in videos] == [
            *(("a", "train", 60.5), ("b", "train", 60.5), ("c", "val", 60.5)),
            *((video, "test", 60.5) for video in ("t2", "t1", "t0")),
            *(("n1", None, None), ("n0", None, None)),
        ]
        assert videos[-1].url == "https://www.youtube.com/watch?v=n0"
        assert videos[-1].path == "hirest/videos/n0.mp4"

    @pytest.mark.parametrize(
        ("path", "content"),
        [(SPLIT_FILES["val"], {"Cook": {"a.mp4": WHOLE}}), (DISTRACTORS, {"negative video_0": {"c.mp4": {}}})],
    )
    def test_a_video_of_two_files_is_refused(self, path: str, content: Any) -> None:
        write_release(RELEASES, "v1", {path: content})
        with pytest.raises(ReleaseError, match="splits has a video in two of its files"):
            DATASETS["hirest"].videos()


def test_there_are_no_videos_before_the_release() -> None:
    assert DATASETS["hirest"].videos() == ()


SRT = "1\n00:00:01,500 --> 00:00:04,000\nOne\n\n2\n25:00:00,000 --> 00:00:03,250\n two\nlines\n\n"


class TestSubtitles:
    def write(self, members: dict[str, bytes]) -> bytes:
        archive = io.BytesIO()
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
            for name, content in members.items():
                file.writestr(name, content)
        write_release(RELEASES, "asr", {ASR: archive.getvalue()})
        return archive.getvalue()

    def test_they_are_in_the_order_of_the_file_and_absent_ones_left_out(self) -> None:
        self.write({"ASR/": b"", "ASR/a.srt": SRT.encode(), "ASR/b.srt": b"", "c.srt": SRT.encode()})
        assert subtitles(["b", "a", "c"]) == {
            "b": (),
            "a": (
                Subtitle(start_s=1.5, end_s=4.0, text="One"),
                Subtitle(start_s=90000.0, end_s=3.25, text=" two\nlines"),
            ),
        }

    @pytest.mark.parametrize(
        "content", [b"words", b"words" + SRT.encode(), SRT.encode("utf-16"), SRT.replace("25", "9" * 12).encode()]
    )
    def test_a_damaged_one_is_one_line(self, content: bytes) -> None:
        self.write({"ASR/a.srt": content})
        with pytest.raises(ReleaseError, match=r"ASR.zip does not contain HiREST's transcripts: ASR/a.srt: [^\n]+\Z"):
            subtitles(["a"])

    def test_one_that_is_far_too_large_is_not_unpacked(self) -> None:
        self.write({"ASR/a.srt": bytes(2**23)})
        with pytest.raises(ReleaseError, match=r"ASR/a.srt has more than 4194304 bytes$"):
            subtitles(["a"])

    def test_a_damaged_archive_is_one_line(self) -> None:
        whole = self.write({"ASR/a.srt": SRT.encode()})
        write_release(RELEASES, "asr", {ASR: whole[:-40]})
        with pytest.raises(ReleaseError, match=r"ASR.zip does not contain HiREST's transcripts: [^\n]+\Z"):
            subtitles(["a"])

    def test_an_id_that_is_a_path_is_refused(self) -> None:
        self.write({"ASR/../a.srt": SRT.encode()})
        with pytest.raises(ReleaseError, match=r"video id '\.\./a' is not allowed"):
            subtitles(["../a"])


class TestReleased:
    """The public files."""

    @pytest.fixture(autouse=True)
    def _fetched(self, real_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("STEPLINE_MIRROR", str(real_data))
        fetch_release(RELEASES, "v1")

    def test_the_counts_are_those_counted_in_the_files(self, real_data: Path) -> None:
        with open(real_data / "hirest/splits_and_stats.csv", newline="") as file:
            counted = {
                row["quantity"]: float(row["value_counted_in_release"] or row["value_paper"].split()[0])
                for row in csv.DictReader(file)
            }
        pairs = {split: load(split) for split in (*SPLITS, "test_507")}
        everything = [pair for split in SPLITS for pair in pairs[split]]
        captions = [step.caption for split in ("train", "val", "test_507") for p in pairs[split] for step in p.steps]
        about = statistics()
        assert about.videos == len(everything)
        assert round(about.words_per_caption, 2) == 4.42  # as the paper's text says, without empty parts 4.26
        found: dict[str, float] = {
            "distractor_videos_test": len(pool()) - len(pairs["test"]),
            "retrieval_pool_test": len(set(pool())),
            "clippable_moments_total": sum(pair.clippable for pair in everything),
            "videos_with_steps_total": about.stepped,
            "steps_total": about.steps,
            "steps_per_moment": about.steps_per_moment,
            "words_per_caption": sum(len(caption.split()) for caption in captions) / len(captions),
            "unique_captions": about.captions,
            "unique_starting_verbs": len({caption.lower().split()[0] for caption in captions}),
            "unique_words": len({word for caption in captions for word in caption.lower().split()}),
            "avg_video_duration_all_s": sum(pair.duration_s for pair in everything) / len(everything),
            "total_duration_h": sum(pair.duration_s for pair in everything) / 3600,
            "avg_video_duration_with_steps_s": about.video_s,
            "avg_step_duration_s": about.step_s,
        }
        for split in SPLITS:
            found[f"queries_{split}"] = len({pair.query for pair in pairs[split]})
            found[f"videos_{split}"] = len(pairs[split])
            found[f"clippable_moments_{split}"] = sum(pair.clippable for pair in pairs[split])
            found[f"steps_{split}"] = sum(len(p.steps) for p in pairs["test_507" if split == "test" else split])
        assert found.keys() == counted.keys()
        for name, value in counted.items():
            digits = {"steps_per_moment": 3, "words_per_caption": 3, "avg_step_duration_s": 2}.get(name, 1)
            assert round(found[name], digits if value % 1 else 0) == value, name

    def test_what_is_odd_in_them_stays(self) -> None:
        pairs = {split: load(split) for split in ("train", "val", "test_507")}
        empty = {name: sum(s.start_s == s.end_s for p in found for s in p.steps) for name, found in pairs.items()}
        assert empty == {"train": 15, "val": 3, "test_507": 8}
        late = [p.video for found in pairs.values() for p in found for s in p.steps if s.end_s > p.duration_s]
        assert late == ["Bd6fLOiO9Xw", "krlR9qtv1Ac"]
        assert sum(bool(p.bounds_s and sum(p.bounds_s) % 1) for p in pairs["train"]) == 2
        for pair in (pair for found in pairs.values() for pair in found if pair.steps):
            assert pair.bounds_s == (pair.steps[0].start_s, pair.steps[-1].end_s)

    def test_every_moment_of_test_is_blinded(self) -> None:
        assert not labels_are_here()
        assert [pair.bounds_s for pair in load("test") if pair.clippable] == [None] * 776
        assert not any(pair.steps for pair in load("test"))

    def test_all_videos_are_listed_once(self) -> None:
        videos = DATASETS["hirest"].videos()
        assert len({video.id for video in videos}) == len(videos) == 6266
        assert [video.id for video in videos[3375:]] == list(pool()[1391:])
        assert len(categories()) == 1384
