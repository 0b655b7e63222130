"""A slice of the campaign of odd and damaged files."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("av")
pytest.importorskip("cv2")

from tests.chaos.corpus import files, judged
from tests.chaos.corpus_bases import picture
from tests.chaos.corpus_judge import Judged, matched

SILENT = {"vpx", "vpx-vp9", "x265", "wmv2", "msmpeg4", "rawvideo", "wrapped_avframe", "mjpeg", "ffv1", "flv", "h263"}
"""Codecs in which noise that can be decoded leaves no trace."""
FAULTS = {"crashed", "refused", "short", "alarmed", "unlike", "unheard", "differing"}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> list[Judged]:
    return list(judged(list(files(3, 70, tmp_path_factory.mktemp("corpus")))))


def faults(found: list[Judged], names: set[str]) -> list[tuple[str, str, set[str], str]]:
    return [
        (str(each.made.path), each.made.damage, each.verdicts & names, each.reason)
        for each in found
        if each.verdicts & names
    ]


def test_what_can_be_read_is_used_and_nothing_else_is_named(found: list[Judged]) -> None:
    assert faults(found, FAULTS) == []


def test_a_wrong_picture_is_never_called_good_where_the_codec_tells(found: list[Judged]) -> None:
    telling = [
        each for each in found if each.made.kind.split(".")[0] not in SILENT and "unknowable" not in each.verdicts
    ]
    assert faults(telling, {"wrong", "silent"}) == []


def test_almost_all_that_ffmpeg_shows_is_shown(found: list[Judged]) -> None:
    assert sum(each.ours for each in found) > 0.97 * sum(each.peer for each in found)


def test_the_same_seed_makes_the_same_files(tmp_path: Path) -> None:
    first, second = (list(files(5, 6, tmp_path / name)) for name in "ab")
    assert [each.path.read_bytes() for each in first] == [each.path.read_bytes() for each in second]


def test_a_picture_is_known_by_its_index() -> None:
    pictures = np.stack([picture(index, 64, 48) for index in range(120)])
    assert [best for best, _ in matched(list(pictures), pictures)] == list(range(120))
    assert all(db < 20 for _, db in matched([picture(7, 64, 48)], np.delete(pictures, 7, 0)))
