"""Of the files themselves, what plans ask: `tests/datasets/test_htstep.py` has the rest."""

from pathlib import Path
from typing import Any

import pytest

from stepline.datasets.htstep_files import summary
from stepline.errors import ReleaseError
from stepline.io import write_json

RECORD = {"subset": "train", "annotations": [{"id": 1, "segment": [0, 1]}]}


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ({"annotations": [1]}, "KeyError: 'subset'"),
        (None, "TypeError"),
        ({"subset": [], "annotations": [1]}, "TypeError"),
    ],
)
def test_a_record_of_another_form_is_named(tmp_path: Path, record: Any, reason: str) -> None:
    write_json(tmp_path / "annotations.json", {"a": RECORD, "b": record})
    with pytest.raises(ReleaseError, match=f"annotations.json: b is not in HT-Step's format: {reason}"):
        summary(tmp_path / "annotations.json")


def test_splits_with_segments_are_labelled(tmp_path: Path) -> None:
    empty = {"subset": "val_seen", "annotations": [], "made": True}
    write_json(tmp_path / "annotations.json", {"a": RECORD, "b": empty})
    assert summary(tmp_path / "annotations.json") == ({"train"}, True)
