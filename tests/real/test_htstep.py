"""HT-Step on its real taxonomy and splits, with annotation made up on them: both readings, files, baselines."""

import itertools
import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stepline.benchmark import Job
from stepline.benchmarks.htstep.benchmark import Htstep
from stepline.benchmarks.htstep.metrics import SPLITS
from stepline.benchmarks.htstep.submission import write_submissions
from stepline.config import validate
from stepline.datasets.htstep import RELEASES, Recording, articles, load, split_videos, taxonomy
from stepline.datasets.htstep_files import LAST_STEP
from stepline.datasets.htstep_submission import read_submission
from stepline.errors import ConfigError
from stepline.features.importing import Folder, import_folder
from stepline.fetch import fetch_release
from stepline.metrics.grounding import Dropped, PredictedSegments, Reading, TrueSegments, article_grounding
from stepline.runs import verbs
from stepline.runs.predictions import read_predictions
from tests.datasets.htstep_made import MATCH, make_annotations, make_candidates
from tests.datasets.test_htstep import annotate, write

EXAMPLE = "example_predictions_val_seen.csv"
READINGS: tuple[Reading, Reading] = ("official", "per_query")
BANK = "seconds"
"""Features of which only the number is read."""


@pytest.fixture(autouse=True)
def data(real_data: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("STEPLINE_MIRROR", str(real_data))
    fetch_release(RELEASES, "v1")
    return real_data / "htstep"


def article_of() -> dict[int, tuple[str, str]]:
    return {step.id: (step.activity, step.variation) for step in taxonomy().values()}


def made(split: str) -> TrueSegments:
    records = make_annotations(0, [split])
    rows = [(video, *each["segment"], each["id"]) for video, of in records.items() for each in of["annotations"]]
    return TrueSegments(*map(list, zip(*rows, strict=True)))


def guesses(true: TrueSegments, steps: Sequence[int], score: float = 1.0) -> PredictedSegments:
    return PredictedSegments(true.video, true.start_s, true.end_s, steps, [score] * len(steps))


def together(*parts: PredictedSegments) -> PredictedSegments:
    return PredictedSegments(*(np.concatenate(columns).tolist() for columns in zip(*parts, strict=True)))


def used(true: TrueSegments) -> dict[tuple[str, str], list[int]]:
    """Return the steps of each article that a split shows, in its order."""
    shown = {*true.step}
    found = {article: [step for step in ids if step in shown] for article, ids in articles().items()}
    return {article: ids for article, ids in found.items() if ids}


@pytest.mark.parametrize("split", SPLITS)
def test_the_true_segments_are_perfect_and_swapped_steps_only_officially(split: str) -> None:
    true, of_step = made(split), article_of()
    for reading in READINGS:
        scores = article_grounding(true, guesses(true, true.step), of_step, reading=reading)
        assert (scores.mean, scores.ap.min(), sum(scores.dropped)) == (1, 1, 0), reading
    following = {step: ids[place - 1] for ids in used(true).values() for place, step in enumerate(ids)}
    swapped = guesses(true, [following[step] for step in true.step])
    official, per_query = (article_grounding(true, swapped, of_step, reading=reading) for reading in READINGS)
    assert (official.mean, official.ap.min(), sum(official.dropped)) == (1, 1, 0)
    alone = {activity for (activity, _), ids in used(true).items() if len(ids) == 1}
    several = [activity not in alone for activity in per_query.activities]
    assert sum(several) > 0.9 * len(several)
    assert not per_query.ap[several].any()
    assert per_query.ap[~np.array(several)].any(axis=1).all()
    assert 0 < per_query.mean < 0.03


def test_steps_outside_the_article_are_dropped_and_counted() -> None:
    true, of_step = made("val_seen"), article_of()
    ids = [*of_step]
    before = dict(zip(ids, [ids[-1], *ids[:-1]], strict=True))
    others = [*true.step]
    for place, step in enumerate(true.step):
        while of_step[others[place]] == of_step[step]:
            others[place] = before[others[place]]
    same_activity = [of_step[one][0] == of_step[other][0] for one, other in zip(others, true.step, strict=True)]
    assert 0 < sum(same_activity) < len(others)
    gaps = [step for step in range(LAST_STEP) if step not in of_step]
    absent = [gaps[place % len(gaps)] for place in range(len(others))]
    said = together(*(guesses(true, steps, score) for steps, score in ((absent, 3), (others, 2), (true.step, 1))))
    for reading in READINGS:
        scores = article_grounding(true, said, of_step, reading=reading)
        assert scores.dropped == Dropped(2 * len(others), 0, 0, 0)
        assert (scores.mean, scores.ap.min(), scores.n_predicted.sum()) == (1, 1, len(others))


def test_unused_steps_of_the_article_are_dropped_officially_and_false_by_query() -> None:
    true, of_step = made("val_seen"), article_of()
    shown = {*true.step}
    unused = {article: [step for step in ids if step not in shown] for article, ids in articles().items()}
    rows = [place for place, step in enumerate(true.step) if unused[of_step[step]]]
    right = guesses(true, true.step)
    false = PredictedSegments(*(np.take(column, rows) for column in right))
    false = false._replace(step=[unused[of_step[step]][0] for step in false.step], score=[2.0] * len(rows))
    said = together(false, right)
    official, per_query = (article_grounding(true, said, of_step, reading=reading) for reading in READINGS)
    assert (official.mean, official.dropped) == (1, Dropped(0, 0, len(rows), 0))
    assert sum(per_query.dropped) == 0
    precision = per_query.n_true / per_query.n_predicted
    assert per_query.ap == pytest.approx(np.tile(precision[:, None], per_query.ap.shape[1]))
    assert 0.5 <= per_query.mean < 0.8


def benchmark(**options: Any) -> Htstep:
    return Htstep.of(validate({"htstep": {"features": {"s3d": [BANK]}} | options}), "htstep")


def job(of: Htstep, entry: str) -> Job:
    return Job(release="v1", entry=of.entries[entry])


def test_the_released_example_is_read_and_scored(data: Path) -> None:
    videos = split_videos()["val_seen"]
    true, of_step = made("val_seen"), article_of()
    said = read_submission(data / EXAMPLE, videos, range(LAST_STEP + 1))
    assert Counter(said.video) == dict.fromkeys(videos, 5)
    absent = [step for step in said.step if step not in of_step]
    assert len(absent) == 27
    with pytest.raises(ConfigError, match=r"row \d+: the label '\d+' is not the number of a step$"):
        read_submission(data / EXAMPLE, videos, taxonomy())
    article = dict(zip(true.video, map(of_step.__getitem__, true.step), strict=True))
    outside = sum(of_step.get(step) != article[video] for video, step in zip(said.video, said.step, strict=True))
    assert len(absent) < outside < len(said.step)
    for reading in READINGS:
        scores = article_grounding(true, PredictedSegments(*said), of_step, reading=reading)
        assert scores.dropped.other_article == outside
        assert scores.n_predicted.sum() + sum(scores.dropped) == 3000
        assert 0 <= scores.mean < 0.05


def test_the_released_example_stands_for_the_entry_vina(data: Path, tmp_path: Path) -> None:
    annotate(make_annotations(0, ["val_seen"]))
    (tmp_path / "vina").mkdir()
    (tmp_path / "vina/val_seen.csv").symlink_to(data / EXAMPLE)
    plan = benchmark(files={"vina": str(tmp_path / "vina")}, match=MATCH)
    assert not plan.missing(plan.entries["vina"], "v1")
    inputs = plan.inputs(job(plan, "vina"))
    assert plan.entries["vina"].kind.method is not None
    found = list(plan.entries["vina"].kind.method()().predict(inputs, []))
    assert [each.video for each in found] == list(split_videos()["val_seen"])
    assert all(len(each.steps) == 5 and [*each.scores] == sorted(each.scores, reverse=True) for each in found)
    values = plan.values(inputs, found)
    assert {name for name in values if "r1" in name} == set()
    assert {f"val_seen_{name}" for name in ("map", "query_map", "full_map", "partial_map", "dropped")} <= {*values}
    said = read_submission(data / EXAMPLE, split_videos()["val_seen"], range(LAST_STEP + 1))
    for name, reading in zip(("map", "query_map"), READINGS, strict=True):
        scores = article_grounding(made("val_seen"), PredictedSegments(*said), article_of(), reading=reading)
        assert values[f"val_seen_{name}"].values.mean() == pytest.approx(100 * scores.mean)
        if reading == "official":
            assert values["val_seen_dropped"].values == pytest.approx(100 * sum(scores.dropped) / 3000)
    assert values["val_seen_map"].counts == {"n_videos": 600, "n_listed": 600}


N_SEEN, N_UNSEEN, PER_ACTIVITY = 40, 16, 6
"""Activities that have features, and videos of each in a split."""


@pytest.fixture
def videos(tmp_path: Path) -> dict[str, list[str]]:
    """The videos with features by split; labels of train and val_seen, and candidates of all."""
    annotations = make_annotations(0)
    listed: dict[str, dict[str, list[str]]] = {split: defaultdict(list) for split in ("train", *SPLITS)}
    for video, record in annotations.items():
        listed[record["subset"]][record["activity"]].append(video)
    seen = sorted(listed["val_seen"].keys() & listed["test_seen"].keys())
    chosen = dict.fromkeys(("train", "val_seen", "test_seen"), seen[:N_SEEN])
    chosen |= {split: sorted(listed[split])[:N_UNSEEN] for split in ("val_unseen", "test_unseen")}
    found = {
        split: [video for activity in activities for video in listed[split][activity][:PER_ACTIVITY]]
        for split, activities in chosen.items()
    }
    folder = tmp_path / "rows"
    folder.mkdir()
    for video in itertools.chain(*found.values()):
        np.save(folder / f"{video}.npy", np.zeros((int(annotations[video]["duration"]) + 1, 1), np.float16))
    import_folder(Folder(folder), BANK, "htstep", 1.0)
    annotate({video: each for video, each in annotations.items() if each["subset"] in ("train", "val_seen")})
    write("candidates", video_candidate_steps=json.dumps(make_candidates(0)))
    return found


@pytest.mark.slow
def test_baselines_predict_every_step_of_each_article_and_submit_withheld_splits(videos: dict[str, list[str]]) -> None:
    plan, recordings = benchmark(), {each.video: each for split in SPLITS for each in load(split)}
    for entry in ("place", "duration", "uniform"):
        of = job(plan, entry)
        inputs, fits = plan.inputs(of), plan.fits(of) if of.entry.trained else []
        for seed, path in zip(of.entry.seeds, fits, strict=False):
            path.parent.mkdir(parents=True, exist_ok=True)
            verbs.fit(inputs, seed, path)
        verbs.predict(inputs, fits, plan.predictions(of))
        found, about = read_predictions(plan.predictions(of), plan.prediction, inputs.spec)
        assert not about["needs"]
        assert Counter(each.video for each in found) == Counter(video for split in SPLITS for video in videos[split])
        bank = inputs.bank("val_seen")
        for each in found:
            check(each, recordings[each.video], len(bank[each.video]))
        values = plan.values(inputs, found)
        assert {name for name in values if not name.startswith("val_seen_")} == set()
        assert values["val_seen_map"].counts == {"n_videos": len(videos["val_seen"]), "n_listed": 600}
        official, per_query = (values[f"val_seen_{name}"].values.mean() for name in ("map", "query_map"))
        assert 0 < per_query < official < 10, entry
        folder = write_submissions(plan, of)
        assert {path.stem for path in folder.iterdir()} == {*SPLITS} - {"val_seen"}
        for split in {*SPLITS} - {"val_seen"}:
            said = read_submission(folder / f"{split}.csv", split_videos()[split], taxonomy())
            rows = [
                (each.video, *bounds, step, score)
                for each in found
                if each.split == split
                for bounds, step, score in zip(each.segments, each.steps, each.scores, strict=True)
                if bounds[0] < bounds[1]
            ]
            assert [*zip(*said, strict=True)] == rows
    assert {len(recordings[video].steps) for split in SPLITS for video in videos[split]} >= {*range(1, 17), 20, 21}


def check(found: Any, recording: Recording, duration_s: int) -> None:
    """Assert that each step of the article is predicted once, within the video, with its time in order."""
    assert sorted(found.steps) == sorted(recording.steps)
    assert found.article == recording.steps
    assert all(0 <= start_s <= end_s <= duration_s for start_s, end_s in found.segments)
    assert all(one >= other for one, other in itertools.pairwise(found.scores))
    assert all(one <= other for one, other in itertools.pairwise(found.ordered_s))
    segments = dict(zip(found.steps, found.segments, strict=True))
    for step, time_s in zip(found.article, found.times_s, strict=True):
        assert segments[step][0] - 1 < time_s <= segments[step][1]
