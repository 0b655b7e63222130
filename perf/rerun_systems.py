"""The systems of ``reruns.py``: how each is installed, configured, run and read."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import rerun_networks
import yaml
from numpy.typing import NDArray

from stepline.spec import digest

HERE = Path(__file__).resolve().parent
PACKAGES = ("av==18.1.0", "numpy==2.4.6", "pillow==13.0.0")
"""The packages with which the peers read videos and compute, in the versions of ``constraints.txt``."""


@dataclass(frozen=True)
class State:
    """The input of the systems. videos: the source file of each, by file name. networks: the source code of each."""

    videos: Mapping[str, Path]
    networks: Mapping[str, str]
    touched: str = ""
    recompute: str = ""


@dataclass(frozen=True, kw_only=True)
class System:
    """A system. packages: of its environment. run: returns the command that updates the features."""

    title: str
    packages: tuple[str, ...]
    head: str
    tail: str
    run: Callable[["Place", State], list[str | Path]]
    vectors: Callable[["Place", State], dict[str, NDArray[Any]]]
    prepare: Callable[["Place"], list[str | Path]] | None = None


@dataclass
class Place:
    """The workplace of a system: its folder, its environment and its last input."""

    system: System
    folder: Path
    bin: Path
    state: State = field(default_factory=lambda: State({}, {}))

    def give(self, state: State) -> None:
        """Write the videos and networks of ``state`` into the folder."""
        (self.folder / "videos").mkdir(parents=True, exist_ok=True)
        for name in self.state.videos.keys() - state.videos.keys():
            (self.folder / "videos" / name).unlink()
        for name, source in state.videos.items():
            if self.state.videos.get(name) != source:
                shutil.copyfile(source, self.folder / "videos" / name)
        if state.touched:
            (self.folder / "videos" / state.touched).touch()
        for name, lines in state.networks.items():
            if self.state.networks.get(name) != lines:
                parts = (self.system.head, lines, self.system.tail)
                text = "".join(parts).replace("DIMENSION", str(rerun_networks.DIMENSIONS[name]))
                (self.folder / f"net_{name}.py").write_text(text.replace("NAME", name))
        self.state = state

    def call(self, command: list[str | Path]) -> None:
        """Run a command in the folder; raise RuntimeError with the end of its output if it fails."""
        known = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        own = {
            "PATH": f"{self.bin}:{known['PATH']}",
            "PYTHONPATH": str(self.folder),
            "CALLS": str(self.folder / "calls"),
            "NETWORKS": " ".join(self.state.networks),
            "PIXELTABLE_HOME": str(self.folder / "pixeltable"),
            "COCOINDEX_DB": str(self.folder / "cocoindex"),
            "COCOINDEX_DISABLE_USAGE_TRACKING": "1",
        }
        log = self.folder / "log"
        with log.open("a") as out:
            done = subprocess.run(command, cwd=self.folder, env=known | own, stdout=out, stderr=out, check=False)
        if done.returncode:
            raise RuntimeError(
                f"{self.system.title}: {command} ended with {done.returncode}: {log.read_text()[-3000:]}"
            )


def stepline(title: str, dataset: Mapping[str, Any], options: Mapping[str, Any]) -> System:
    """Return Stepline with some keys of the data set and of the configuration."""

    def run(place: Place, state: State) -> list[str | Path]:
        configuration = {
            "backbones": {name: {"path": f"./net_{name}.py"} for name in state.networks},
            "datasets": {"mine": {"videos": "./videos", "backbones": list(state.networks), **dataset}},
            **options,
        }
        (place.folder / "mine.yaml").write_text(yaml.safe_dump(configuration))
        snakefile = HERE.parent / "Snakefile"
        return [place.bin / "snakemake", "--snakefile", snakefile, "--cores", "1", "--configfile", "mine.yaml"]

    def vectors(place: Place, state: State) -> dict[str, NDArray[Any]]:
        lines = [
            "import sys, numpy, stepline",
            "banks = {name: stepline.open_bank(name, 'mine') for name in sys.argv[1:]}",
            "found = {f'{video}.mp4 {name}': bank[video] for name, bank in banks.items() for video in bank}",
            "numpy.savez('vectors.npz', **found)",
        ]
        place.call([place.bin / "python", "-c", "\n".join(lines), *state.networks])
        return dict(np.load(place.folder / "vectors.npz"))

    return System(
        title=title,
        packages=("-c", str(HERE.parent / "constraints.txt"), "-e", f"{HERE.parent}[media]"),
        head="from stepline.spec import ClipSpec\n\n\n",
        tail="""

SPEC = ClipSpec(
    name="NAME",
    label="NAME",
    revision=1,
    architecture="file",
    weights=(),
    licence="Apache-2.0",
    fps=1,
    num_frames=1,
    steps=(("exact", 112, 112, "pil_bicubic"),),
    mean=(0, 0, 0),
    std=(1, 1, 1),
    output="NAME",
    dimension=DIMENSION,
)


def load(spec, files):
    return lambda clips: vectors(clips[:, :, 0].transpose(0, 2, 3, 1))
""",
        run=run,
        vectors=vectors,
    )


def pixeltable() -> System:
    """Return Pixeltable."""
    driver = HERE / "peer_pixeltable.py"

    def run(place: Place, state: State) -> list[str | Path]:
        again = ["--recompute", state.recompute] if state.recompute else []
        return [place.bin / "python", driver, "sync", *state.networks, *again]

    def vectors(place: Place, _: State) -> dict[str, NDArray[Any]]:
        place.call([place.bin / "python", driver, "read", "vectors.npz"])
        return dict(np.load(place.folder / "vectors.npz"))

    return System(
        title="Pixeltable",
        packages=("pixeltable==0.7.21", *PACKAGES),
        head="import numpy as np\nimport PIL.Image\nimport pixeltable as pxt\nfrom pixeltable.func import Batch\n\n\n",
        tail="""

@pxt.udf(batch_size=64)
def network(frames: Batch[PIL.Image.Image]) -> Batch[pxt.Array[(DIMENSION,), pxt.Float]]:
    return list(vectors(np.stack(frames).astype(np.float32) / np.float32(255)))
""",
        run=run,
        vectors=vectors,
        prepare=lambda place: [place.bin / "python", "-c", "import pixeltable; pixeltable.init()"],
    )


def cocoindex() -> System:
    """Return CocoIndex. A network is one function, so that a change in any of its lines is detected."""

    def vectors(place: Place, _: State) -> dict[str, NDArray[Any]]:
        return {path.stem: np.load(path) for path in (place.folder / "vectors").iterdir()}

    return System(
        title="CocoIndex",
        packages=("cocoindex==1.0.26", *PACKAGES),
        head="import cocoindex as coco\n\n\n@coco.fn(memo=True)\n",
        tail="\n\nnetwork = vectors\n",
        run=lambda place, _: [place.bin / "cocoindex", "update", HERE / "peer_cocoindex.py"],
        vectors=vectors,
    )


def environment(folder: Path, system: System) -> Path:
    """Create a system's environment if it does not exist, and return its folder of programs."""
    made = folder / digest(" ".join(system.packages))
    if not (made / "made").exists():
        uv = Path(sys.executable).with_name("uv")
        subprocess.run([uv, "venv", "--quiet", "--clear", "--python", sys.executable, made], check=True)
        install = [uv, "pip", "install", "--quiet", "--compile-bytecode", "--python", made / "bin/python"]
        subprocess.run([*install, *system.packages], check=True)
        (made / "made").touch()
    return made / "bin"
