"""A checkout in which the demo has run, for the code of the pages."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from snakemake.utils import update_config

from tests import forked
from tests.conftest import ONE_WINDOW, ROOT, made_once

NOBODY = "http://127.0.0.1:9"
"""A proxy that is not there: no page reaches the network."""
CHECKOUT = (
    *("Makefile", "Snakefile", "config.yaml", "constraints.txt"),
    *("envs", "profiles", "pyproject.toml", "src", "workflow"),
)
"""The files of a checkout that commands read, besides the demo's configuration."""


def environment(**other: str) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("STEPLINE_", "MAKE"))}
    path = os.pathsep.join([str(forked.programs()), f"{sys.prefix}/bin", kept["PATH"]])
    return kept | {"PATH": path, "HTTPS_PROXY": NOBODY, "HTTP_PROXY": NOBODY, "HF_HUB_OFFLINE": "1"} | other


def execute(text: str, folder: Path) -> str:
    command = ["bash", "-euo", "pipefail", "-c", text]
    done = subprocess.run(command, cwd=folder, env=environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{text}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return done.stdout


def cut(source: Path, target: Path, *, seconds: int) -> None:
    """Copy the packets of a video's first seconds."""
    import av

    with av.open(source) as whole, av.open(target, "w") as part:
        streams = {stream.index: part.add_stream_from_template(stream) for stream in whole.streams}
        for packet in whole.demux():
            if packet.dts is not None and packet.dts * packet.time_base < seconds:
                packet.stream = streams[packet.stream.index]
                part.mux(packet)


@pytest.fixture(scope="session")
def checkout(demo_run: Path, demo_mirror: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout in which the demo has run, with the windows and videos of `demo_run`, and a data set of two videos."""
    pytest.importorskip("torch")

    def make(folder: Path) -> None:
        shutil.copytree(demo_run, folder, symlinks=True, dirs_exist_ok=True)
        for name in CHECKOUT:
            (folder / name).symlink_to(ROOT / name)
        demo = yaml.safe_load((ROOT / "config.demo.yaml").read_text())
        update_config(demo["demo"], yaml.safe_load(f"{{{ONE_WINDOW}}}"))
        (folder / "config.demo.yaml").write_text(yaml.safe_dump(demo))
        (folder / ".venv").symlink_to(sys.prefix)
        shutil.copytree(demo_mirror, folder / ".stepline/demo", dirs_exist_ok=True)
        (folder / "videos").mkdir()
        for name in ("garden", "soup"):
            cut(demo_mirror / f"demo/videos/{name}.mp4", folder / f"videos/{name}.mp4", seconds=20)
        execute("make demo", folder)
        (folder / "mine.yaml").write_text("datasets: {mine: {videos: videos}}\n")
        execute("snakemake --cores 2 --configfile mine.yaml", folder)

    return made_once(tmp_path_factory, "checkout", make)
