from pathlib import Path

import pytest

from stepline.datasets.release import Released
from stepline.errors import ReleaseError
from stepline.fetch import fetch_release
from tests.benchmark.tiny import CONTENT, FILE, tiny, write_releases


@pytest.fixture
def released(tmp_path: Path) -> Released:
    return tiny(tmp_path).released


def test_a_file_is_held_by_the_mirror_or_the_fetched_folder(
    released: Released, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert released.held("second", FILE) is None
    mirror = tmp_path / "mirror" / "tiny/second" / FILE
    mirror.parent.mkdir(parents=True)
    mirror.write_bytes(CONTENT)
    monkeypatch.setenv("STEPLINE_MIRROR", str(tmp_path / "mirror"))
    assert released.held("second", FILE) == mirror.resolve()
    assert released.held("second", "other.json") is None
    fetch_release(released, "second")
    mirror.unlink()
    assert released.held("second", FILE) == released.folder("second") / FILE


def test_a_fetched_file_that_has_changed_is_one_line(released: Released) -> None:
    write_releases()
    assert released.held("first", FILE)
    (released.folder("first") / FILE).write_bytes(b"{}")
    with pytest.raises(
        ReleaseError, match="^datasets/tiny/first/numbers.json has changed since it was fetched: run `step"
    ):
        released.held("first", FILE)
