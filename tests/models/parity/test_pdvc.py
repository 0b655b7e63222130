"""PDVC against outputs of the released code."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

from stepline.cli import main

FOLDER = "pdvc"


def arguments(parity: Path, golden: Path) -> list[str]:
    return ["head", "check", "pdvc", "--manifest", str(parity / "pdvc/manifest.json"), "--golden", str(golden)]


@pytest.mark.slow
def test_every_output_is_the_release_s(parity: Path, capsys: Any) -> None:
    golden = parity / "pdvc/golden_a.npz"
    assert main(arguments(parity, golden)) == 0
    lines = capsys.readouterr().out.splitlines()
    with np.load(golden) as loaded:
        inputs = ("features", "duration_s", "segments_s", "caption_ids", "video_mask", "margin", "stable_words")
        outputs = [name for name in loaded if name.rpartition("/")[2] not in (*inputs, "recipe_json")]
    assert len(outputs) > 300
    assert sorted(line.split()[0] for line in lines[:-1]) == sorted(outputs)


def test_other_cases_than_these_are_compared_and_a_changed_output_is_seen(parity: Path, tmp_path: Path) -> None:
    with np.load(parity / "pdvc/golden_a.npz") as loaded:
        kept = {
            name.replace("tiny_v1", "tiny_other"): array
            for name, array in loaded.items()
            if name.startswith("tiny_v1/") and name.split("/")[1] not in ("cpu", "zeros", "gpu_gt_proposals")
        }
    np.savez(tmp_path / "other.npz", **kept)
    assert main(arguments(parity, tmp_path / "other.npz")) == 0
    for name, change in (("gpu/layer1/boxes", 1.001), ("gpu/layer0/matched_query", 2), ("gpu/greedy/tokens", 0)):
        changed = kept | {f"tiny_other/{name}": kept[f"tiny_other/{name}"] * change}
        np.savez(tmp_path / "changed.npz", **changed)
        assert main(arguments(parity, tmp_path / "changed.npz")) == 1, name


def test_another_head_s_files_are_one_line(parity: Path, capsys: Any) -> None:
    for manifest, golden in (("umt", "pdvc"), ("pdvc", "umt")):
        files = [
            "--manifest",
            str(parity / manifest / "manifest.json"),
            "--golden",
            str(parity / golden / "golden_a.npz"),
        ]
        assert main(["head", "check", "pdvc", *files]) == 2
        assert len(capsys.readouterr().err.splitlines()) == 1
