"""The commands that bring what is missing."""

import os
import subprocess
from pathlib import Path

import pytest

from stepline.asr.weights import how_to_get as how_to_get_model
from stepline.asr.weights import locate as locate_model
from stepline.backbones.weights import WEIGHTS
from stepline.needs import Need
from stepline.pipeline import how_to_fill


@pytest.mark.parametrize(
    ("need", "command"),
    [
        (Need("weights", "mpnet"), "stepline fetch weights/mpnet"),
        (Need("weights", "whisper/tiny"), "stepline fetch weights/whisper/tiny"),
        (Need("key", "X"), "export X=..."),
        (Need("videos", "demo"), "stepline fetch demo/videos"),
        (Need("package", "timm"), "pip install -c constraints.txt -e '.[all]'"),
        (Need("package", "decord"), "pip install -c constraints.txt -e '.[decord]'"),
        (Need("package", "obstore"), "pip install -c constraints.txt -e '.[s3]'"),
        (Need("split", "val"), ""),
    ],
)
def test_a_need_has_its_command(need: Need, command: str) -> None:
    assert how_to_fill(need) == command


@pytest.mark.parametrize("name", WEIGHTS)
def test_the_command_of_weights_runs_as_it_is_printed(name: str, tmp_path: Path) -> None:
    for file in WEIGHTS[name].files:
        (tmp_path / file.name).write_bytes(b"from a browser")
    asked = run(how_to_fill(Need("weights", name)), tmp_path)
    assert asked == f"fetch weights/{name}\n"
    here = {file.name for file in WEIGHTS[name].files if (tmp_path / "weights" / name / file.name).exists()}
    assert here == {file.name for file in WEIGHTS[name].files if not file.url}


@pytest.mark.parametrize("engine", ["whisper", "faster_whisper"])
def test_the_command_of_a_model_at_a_path_runs(engine: str, tmp_path: Path) -> None:
    path = f"{tmp_path}/my models/mine"
    if engine == "whisper":
        (tmp_path / "MODEL").write_bytes(b"checkpoint")
    else:
        (tmp_path / "MODEL").mkdir()
        for name in ("config.json", "model.bin", "tokenizer.json"):
            (tmp_path / "MODEL" / name).touch()
    assert locate_model(engine, path) is None
    run(how_to_get_model(path), tmp_path)
    assert locate_model(engine, path) is not None


def run(command: str, folder: Path) -> str:
    """Run a printed command in a shell, and return what it would have asked of `stepline`."""
    program = folder / "bin/stepline"
    program.parent.mkdir(exist_ok=True)
    program.write_text(f'#!/bin/sh\necho "$@" >> "{folder}/asked"\n')
    program.chmod(0o755)
    path = f"{program.parent}:{os.environ['PATH']}"
    subprocess.run(command, shell=True, check=True, cwd=folder, env={**os.environ, "PATH": path})
    asked = folder / "asked"
    return asked.read_text() if asked.exists() else ""
