"""A slice of the campaign of odd and damaged files."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("av")
pytest.importorskip("cv2")

from tests.chaos.corpus import files, judged
from tests.chaos.corpus_bases import picture
from tests.chaos.corpus_judge import Judged, matched


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> list[Judged]:
    return list(judged(list(files(3, 50, tmp_path_factory.mktemp("corpus")))))


def with_verdict(found: list[Judged], *verdicts: str) -> list[str]:
    return [
        f"{each.made.path.parent.name}/{each.made.path.name} {each.made.damage}: {verdict} {each.reason}"
        for each in found
        for verdict in verdicts
        if verdict in each.verdicts
    ]


def test_what_ffmpeg_reads_is_used_and_no_healthy_file_is_called_damaged(found: list[Judged]) -> None:
    assert with_verdict(found, "crashed", "refused", "alarmed", "unlike", "unheard") == []


def test_almost_all_that_ffmpeg_shows_is_shown(found: list[Judged]) -> None:
    assert sum(each.ours for each in found) > 0.95 * sum(each.peer for each in found)


def test_few_losses_are_silent_and_few_pictures_wrong(found: list[Judged]) -> None:
    assert len(with_verdict(found, "silent")) <= 6
    assert sum(each.wrong for each in found) <= 0.02 * sum(each.rows for each in found)


def test_the_same_seed_makes_the_same_files(tmp_path: Path) -> None:
    first, second = (list(files(5, 6, tmp_path / name)) for name in "ab")
    assert [each.path.read_bytes() for each in first] == [each.path.read_bytes() for each in second]


def test_a_picture_is_known_by_its_index() -> None:
    pictures = np.stack([picture(index, 64, 48) for index in range(120)])
    assert [best for best, _ in matched(list(pictures), pictures)] == list(range(120))
    assert all(db < 20 for _, db in matched([picture(7, 64, 48)], np.delete(pictures, 7, 0)))
