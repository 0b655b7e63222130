"""Rows of videos beside texts of steps."""

import numpy as np
import pytest

from stepline.benchmarks.htstep.methods import zero_shot
from stepline.benchmarks.htstep.score import values
from stepline.errors import ConfigError
from stepline.features.importing import Folder, import_folder
from stepline.footage import Footage
from stepline.models.blobs import blobs
from stepline.pipeline.features import Features
from tests.benchmarks.htstep.conftest import inputs, predicted
from tests.benchmarks.htstep.synthetic import headline, vector, videos

VIDEOS = {each.video: each for each in videos()}


@pytest.mark.usefixtures("banks")
def test_planted_steps_are_found() -> None:
    of = inputs("mil-nce")
    made = predicted(of)
    assert [each.video for each in made] == [each.video for each in of.evaluated]
    scores = values(of, made)
    assert scores["val_seen_r1"].values.mean() > 95
    assert scores["val_seen_query_map_03"].values.mean() > 50
    for each in made:
        assert {*each.steps} <= {*each.article} == {*VIDEOS[each.video].steps}
        assert list(each.scores) == sorted(each.scores, reverse=True)
        assert all(0 <= start_s < end_s <= VIDEOS[each.video].duration for start_s, end_s in each.segments)


@pytest.mark.usefixtures("banks")
def test_on_crosstask_the_steps_of_the_task_are_looked_for() -> None:
    of = inputs("mil-nce", "crosstask")
    scores = values(of, predicted(of))
    assert scores["crosstask_r1"].values.tolist() == [100, 100]
    assert scores["crosstask_ordered_r1"].values.tolist() == [100, 100]


def test_rows_and_texts_of_different_sizes_are_refused(
    releases: None, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("rows")
    np.save(folder / "val_seen-0-0.npy", np.ones((9, 7), np.float32))
    import_folder(Folder(folder), "planted", "htstep", 1.0)
    reason = (
        "features.s3d_joint: rows of 7 numbers cannot be compared with texts of 32; name features of the texts' net"
    )
    with pytest.raises(ConfigError, match=reason):
        predicted(inputs("mil-nce"))


def test_fewer_seconds_than_steps_have_times_in_order(releases: None, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("rows")
    np.save(folder / "val_seen-0-0.npy", np.random.default_rng(0).normal(size=(2, 32)).astype(np.float32))
    import_folder(Folder(folder), "planted", "htstep", 1.0)
    (made,) = predicted(inputs("mil-nce"))
    assert len(made.times_s) == len(made.ordered_s) == 4
    known = [time_s for time_s in made.ordered_s if time_s >= 0]
    assert known == sorted({*known})
    assert {*made.times_s} <= {0, 1}


def test_of_equally_similar_seconds_the_first_is_the_time(
    releases: None, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder, random = tmp_path_factory.mktemp("rows"), np.random.default_rng(7)
    rows = np.outer(np.arange(1, 12), random.integers(-3, 4, 32)).astype(np.float32)
    np.save(folder / "val_seen-0-0.npy", rows)
    import_folder(Folder(folder), "planted", "htstep", 1.0)
    (made,) = predicted(inputs("mil-nce"))
    assert made.times_s == (0, 0, 0, 0)


@pytest.mark.parametrize(("compared", "time_s"), [("cosine", 0), ("dot product", 1)])
def test_the_time_is_the_second_that_the_network_s_own_code_prefers(
    releases: None,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    compared: str,
    time_s: int,
) -> None:
    folder = tmp_path_factory.mktemp("rows")
    text, other = vector(headline(0)), vector("something else")
    np.save(folder / "val_seen-0-0.npy", np.array([text, 3 * (text + other), other], np.float32))
    import_folder(Folder(folder), "planted", "htstep", 1.0)
    of = inputs("mil-nce")
    assert [each.video for each in of.evaluated] == ["val_seen-0-0"]
    monkeypatch.setattr(Footage, "is_backbone", lambda self, name: True)
    monkeypatch.setattr(Features, "spec_of", lambda self, name: name)
    monkeypatch.setattr(zero_shot, "similarity", {"planted": compared}.get)
    (made,) = predicted(of)
    assert (made.seed, made.times_s[0]) == (0, time_s)
    cosine = text @ other
    likely = (1 + np.array([1, ((1 + cosine) / 2) ** 0.5, cosine])) / 2
    scores = [score for step, score in zip(made.steps, made.scores, strict=True) if step == 0]
    assert scores == pytest.approx(blobs(likely[:, None]).score, abs=1e-4)
