"""`stepline weights` with models by name, whose files a server on this machine offers as the hub does."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from stepline import cli
from stepline.backbones import named
from stepline.backbones.torchvision import make_importable
from stepline.backbones.weights import locate, weights_of
from stepline.needs import Need
from stepline.pipeline import how_to_fill
from tests.file_server import FileServer, serving

NAME = "hf:someone/small-clip@0123abc"
CONFIG = """
datasets:
  kitchen: {videos: ./videos, backbones: [%s, histogram, "open_clip:ViT-B-16-SigLIP2/webli"]}
asr: {engine: pocketsphinx}
"""


def address(file: str) -> str:
    return f"/someone/small-clip/resolve/0123abc/{file}"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A hub with a CLIP and its tokenizer."""
    make_importable()
    from stepline.backbones import hf_models
    from tests.backbones.models import small_clip, small_tokenizer

    with serving() as made:
        monkeypatch.setattr(hf_models, "HUB", made.url)
        source = Path("published")
        small_clip().save_pretrained(source)
        small_tokenizer().save(str(source / "tokenizer.json"))
        (source / "preprocessor_config.json").write_text(
            '{"image_processor_type": "CLIPImageProcessor", "size": {"shortest_edge": 48}, "crop_size": 48}'
        )
        made.files = {address(path.name): path.read_bytes() for path in source.iterdir()}
        for name in (NAME, f"{NAME}#tokenizer"):
            weights_of(name)  # the addresses are remembered in the folder
        yield made


def shell(command: str) -> subprocess.CompletedProcess[str]:
    """Run a printed command as a user does."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return subprocess.run(
        command, shell=True, check=False, capture_output=True, text=True, env={**os.environ, "PATH": path}
    )


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[list[str]]:
    assert cli.main(["weights", *arguments]) == 0
    return [re.split("  +", line.strip()) for line in capsys.readouterr().out.splitlines()]


@pytest.mark.slow
def test_printed_commands_run_as_they_are(server: FileServer) -> None:
    tokenizer = f"{NAME}#tokenizer"
    command = how_to_fill(Need("weights", tokenizer))
    assert command == f"stepline fetch 'weights/{tokenizer}'"
    assert shell(command).returncode == 0
    assert locate(tokenizer) is not None
    model = server.files.pop(address("model.safetensors"))
    failed = shell(how_to_fill(Need("weights", NAME)))
    assert failed.returncode == 2
    by_hand = re.search(rf"get it from {server.url}/someone/small-clip, then `(.*)`$", failed.stderr.strip())
    assert by_hand is not None
    Path("model.safetensors").write_bytes(model)
    assert shell(by_hand[1]).returncode == 0
    found = locate(NAME)
    assert found is not None
    assert found["model.safetensors"].read_bytes() == model


def test_the_list_has_the_configured_models(server: FileServer, capsys: pytest.CaptureFixture[str]) -> None:
    plain = run(capsys, "list")
    Path("config.yaml").write_text(CONFIG % f'"{NAME}"', encoding="utf-8")
    added = run(capsys, "list")[len(plain) :]
    assert [line[:3] for line in added] == [
        [NAME, "processor_config.json", "optional"],
        [NAME, "preprocessor_config.json", "optional"],
        [NAME, "config.json", "absent"],
        [NAME, "model.safetensors", "absent"],
        ["open_clip:ViT-B-16-SigLIP2/webli", "open_clip_model.safetensors", "absent"],
        ["open_clip:ViT-B-16-SigLIP2/webli#tokenizer", "tokenizer.json", "absent"],
        ["open_clip:ViT-B-16-SigLIP2/webli#tokenizer", "tokenizer_config.json", "absent"],
    ]
    assert added[-1][-2:] == ["see its origin", "https://huggingface.co/timm/ViT-B-16-SigLIP2"]
    assert run(capsys, "get", NAME) == []
    lines = [line for line in run(capsys, "list") if line[0].startswith(NAME)]
    assert [line[0] for line in lines] == [NAME] * 3 + [f"{NAME}#tokenizer"]
    assert lines[0][1:5] == ["preprocessor_config.json", str(len(server.files[address("preprocessor_config.json")])),
                             "here", "first use"]  # fmt: skip
    assert lines[0][-1] == f"{server.url}/someone/small-clip"


def test_a_check_loads_the_network_and_its_text_tower(server: FileServer, capsys: pytest.CaptureFixture[str]) -> None:
    folder = named.slug(NAME)
    run(capsys, "get", NAME)
    assert run(capsys, "check", NAME) == [[f"{NAME}: weights/{folder}: loads as {folder}"]]
    run(capsys, "get", f"{NAME}#tokenizer")
    Path("config.yaml").write_text(CONFIG % f'"{NAME}"', encoding="utf-8")
    assert run(capsys, "check") == [
        [f"{NAME}: weights/{folder}: loads as {folder}, {folder}-text"],
        [f"{NAME}#tokenizer: weights/{folder}-tokenizer: loads as {folder}-text"],
    ]
    path = Path("weights", folder, "model.safetensors")
    path.write_bytes(path.read_bytes()[:-1])
    assert cli.main(["weights", "check", NAME]) == 2
    assert f"{path} is not the file that was downloaded" in capsys.readouterr().err


def test_a_library_that_is_absent_is_a_line_of_the_list(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(named, "find_spec", lambda _: None)
    Path("config.yaml").write_text(CONFIG % '"timm:test_vit.r160_in1k"', encoding="utf-8")
    line = run(capsys, "list")[-2]
    assert line[:2] == ["timm:test_vit.r160_in1k", "unknown"]
    assert "needs the package timm" in line[-1]


def test_each_library_s_models_are_listed_by_the_name_of_their_weights(capsys: pytest.CaptureFixture[str]) -> None:
    plain = run(capsys, "list")
    Path("config.yaml").write_text(CONFIG % '"hf-video:someone/clip@main#8x4fps"', encoding="utf-8")
    added = run(capsys, "list")[len(plain) :]
    assert {line[0] for line in added if "hf-video" in line[0]} == {"hf-video:someone/clip@main"}
    assert [line[1] for line in added if line[2] == "absent"][:2] == ["config.json", "model.safetensors"]
