"""Checks of all requirements of Stepline, and of the results that can be computed now. They do not use the network."""

import json
import os
import platform
import re
import shutil
import sys
import sysconfig
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache, partial
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import stepline
from stepline import service
from stepline.asr import engines
from stepline.backbones.weights import WEIGHTS, check, how_to_get, place
from stepline.benchmark import Benchmark
from stepline.config import Config, load
from stepline.devices import visible
from stepline.errors import SteplineError
from stepline.mirror import mirror_root
from stepline.needs import Need, how_to_install
from stepline.pipeline import Pipeline, how_to_fill
from stepline.plans import configured, has_tables, pipeline, plan

State = Literal["ok", "absent", "missing", "broken"]
CODECS = ("h264", "hevc", "av1", "vp9", "vp8", "mpeg4", "mpeg2video", "wmv3", "aac", "mp3", "opus", "vorbis")
"""The FFmpeg decoders that most videos need."""
NOT_FOR_RUNS = ("all", "dev", "docs", "test")
"""Extras of the package that are for development, and the extra that includes all others."""
PROGRAMS = (
    ("Java", ("java",), "METEOR and SPICE need it", how_to_fill(Need("java"))),
    (
        "JavaScript",
        ("deno", "node", "quickjs", "qjs", "bun"),
        "downloads from YouTube need a runtime: docs/downloads.md",
        how_to_install("youtube"),
    ),
    ("ffmpeg", ("ffmpeg",), "yt-dlp merges video and audio with it; nothing else uses it", ""),
    ("Slurm", ("sbatch",), "Slurm clusters provide sbatch", ""),
)
"""Programs on the PATH or next to Python: name, alternatives (one is enough), use, and the command that installs it."""
LOW_DISK = 10e9
"""Bytes of free disk below which the check reports low space: a full study needs more."""


Missing = tuple[str, str, "Counter[Need]", Callable[[Need], str]]
"""The path of a result, a text on how much of it can be computed now, the number of uses of each missing need, and the
command that meets a need."""


@dataclass(frozen=True)
class Check:
    """The result of one check.

    state: ``ok``; ``absent``: not present, and the configuration does not need it; ``missing``: not present, and the
    configuration can use it; ``broken``. command: installs what is missing; "" if nothing is missing or there is no
    such command.
    """

    area: str
    name: str
    state: State
    text: str
    command: str = ""


def checks(configfile: Path | None) -> list[Check]:
    """Return all checks. configfile: as in ``load``."""
    mirror = _mirror()
    found, config = _configuration(configfile)
    machine = [*_system(), *_packages(), *_media(), *_reader(config), *_hardware(config), mirror, *_keys()]
    if mirror.state == "broken":  # the checks of weights and releases read it
        return [*machine, *found]
    if config is not None:
        found += _computable(config)
    needed = {check.name.partition(":")[2] for check in found if check.name.startswith("weights:")}
    return [*machine, *_weights(needed), *found]


def as_json(found: Sequence[Check]) -> str:
    """Return checks as a list in JSON."""
    return json.dumps([asdict(check) for check in found], indent=1)


# The computer and what is installed


def _system() -> Iterator[Check]:
    wanted = _metadata()["Requires-Python"]
    least, below = (re.search(rf"{sign}3[.](\d+)", wanted) for sign in (">=", "<"))
    fits = least and below and int(least[1]) <= sys.version_info.minor < int(below[1])
    yield Check("system", "Python", "ok" if fits else "broken", f"{platform.python_version()}; supported: {wanted}")
    yield Check("system", "Stepline", "ok", stepline.__version__)
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), sysconfig.get_path("scripts")])
    for name, programs, use, command in PROGRAMS:
        found = next(filter(None, (shutil.which(program, path=path) for program in programs)), None)
        yield Check("system", name, "ok" if found else "absent", found or use, "" if found else command)


def _packages() -> Iterator[Check]:
    pinned = _pins()
    for extra, names in _extras().items():
        there, gone = [], []
        for name in names:
            try:
                version = metadata.version(name)
            except metadata.PackageNotFoundError:
                gone.append(name)
                continue
            other = pinned.get(_normal(name), version)
            differs = version.partition("+")[0] != other
            there.append(f"{name} {version}{f' (constraints.txt: {other})' if differs else ''}")
        state: State = "ok" if not gone else "absent" if extra else "broken"
        text = "; ".join(filter(None, (f"not installed: {', '.join(gone)}" if gone else "", ", ".join(there))))
        yield Check("packages", extra or "stepline", state, text, how_to_install(extra or "all") if gone else "")


def _media() -> Iterator[Check]:
    if find_spec("av") is None:
        yield Check("video", "FFmpeg", "absent", "PyAV includes its libraries", how_to_install("media"))
        return
    import av

    version = getattr(av, "ffmpeg_version_info", "")
    libraries = (f"{name} {'.'.join(map(str, number))}" for name, number in sorted(av.library_versions.items()))
    yield Check("video", "FFmpeg", "ok", f"{version} in PyAV {av.__version__}: {', '.join(libraries)}")
    absent = [name for name in CODECS if name not in av.codecs_available]
    text = f"missing in this build: {', '.join(absent)}" if absent else ", ".join(CODECS)
    yield Check("video", "decoders", "absent" if absent else "ok", text)


def _reader(config: Config | None) -> Iterator[Check]:
    if config is None or config["media"]["reader"] == "pyav":
        return
    gone = find_spec("decord") is None
    text = "decord, last release in 2021; it refuses files that pyav reads: docs/media.md"
    command = how_to_fill(Need("package", "decord")) if gone else ""
    yield Check("video", "media.reader", "missing" if gone else "ok", text, command)


def _hardware(config: Config | None) -> Iterator[Check]:
    cores = len(os.sched_getaffinity(0))
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    yield Check("hardware", "CPU", "ok", f"{cores} cores, {memory / 1e9:.0f} GB of memory")
    gpus, torch = visible(), _version("torch")
    device = config["features"]["device"] if config else "auto"
    state: State = "ok" if gpus else "broken" if device == "cuda" else "absent"
    text = f"{len(gpus)} visible" if gpus else f"none visible; features.device is {device}"
    if gpus and torch.endswith("+cpu"):
        state, text = "missing", f"{text}, but torch {torch} is a CPU build: see docs/installation.md"
    yield Check("hardware", "GPU", state, text)
    disk = shutil.disk_usage(".")
    writable = os.access(".", os.W_OK)
    text = f"{disk.free / 1e9:.0f} of {disk.total / 1e9:.0f} GB free in {os.getcwd()}"
    text += "" if writable else ": this account cannot write there"
    low = disk.free < LOW_DISK
    yield Check(
        "hardware", "disk", "broken" if not writable else "missing" if low else "ok", text, "stepline gc" if low else ""
    )


def _mirror() -> Check:
    try:
        root = mirror_root()
    except SteplineError as error:
        return Check("mirror", "STEPLINE_MIRROR", "broken", str(error))
    return Check("mirror", "STEPLINE_MIRROR", "ok" if root else "absent", str(root or "not set"))


def _keys() -> Iterator[Check]:
    for variable in (*engines.KEYS.values(), service.KEY):
        there = bool(os.environ.get(variable, "").strip())
        command = "" if there else how_to_fill(Need("key", variable))
        yield Check("keys", variable, "ok" if there else "absent", "set" if there else "not set", command)


def _weights(needed: set[str]) -> Iterator[Check]:
    for name, weights in WEIGHTS.items():
        folder = place(weights)
        text = f"{weights.licence}, {weights.origin}"
        if folder is None:
            yield Check("weights", name, "missing" if name in needed else "absent", text, how_to_get(name))
            continue
        try:
            check(name, folder)
        except SteplineError as error:
            yield Check("weights", name, "broken", str(error))
        else:
            yield Check("weights", name, "ok", f"{text}; {folder}")
    for name in sorted(needed - WEIGHTS.keys()):
        yield Check("weights", name, "missing", "named by the configuration", how_to_fill(Need("weights", name)))


# Results that can be computed now


def _configuration(configfile: Path | None) -> tuple[list[Check], Config | None]:
    named = configfile or os.environ.get("STEPLINE_CONFIG")
    path = str(named or "config.yaml")
    if not named and not Path(path).exists():
        return [
            Check("configuration", path, "absent", "not found: run in the folder that contains it, or name a file")
        ], None
    try:
        return [Check("configuration", path, "ok", "")], load(configfile)
    except SteplineError as error:
        return [Check("configuration", path, "broken", str(error))], None


def _computable(config: Config) -> Iterator[Check]:
    """Yield a check for each table and each user's data set, then one for each missing need of theirs.

    A number in brackets is the number of lines, backbones or recognisers with that need.
    """
    commands: dict[Need, str] = {}
    uses: Counter[Need] = Counter()
    for name in configured(config):
        try:
            if has_tables(config, name):
                made = plan(config, name)
                found = [_table(made, file) for file in made.tables]
            elif name in config["datasets"]:
                found = [_dataset(pipeline(config, name))]
            else:
                continue
        except SteplineError as error:
            yield Check("computable now", name, "broken", str(error))
            continue
        for path, text, needs, fill in found:
            missing = ", ".join(f"{need} ({times})" for need, times in needs.items())
            text = f"{text}{f'; missing: {missing}' if missing else ''}"
            yield Check("computable now", path, "missing" if needs else "ok", text)
            commands = {need: fill(need) for need in needs} | commands
            uses.update({*needs})
    for need, command in sorted(commands.items()):
        text = f"for {uses[need]} of these results"
        if need.kind == "config":
            text += f": set {need.what} to {need.value} in the configuration"
        elif not command:
            text += ': see "What is absent" in docs/architecture.md'
        yield Check("missing", str(need), "missing", text, command)


def _table(made: Benchmark[Any], file: str) -> Missing:
    lines = [(table, line, release) for table, line, release in made.lines(file) if not made.is_reference(line)]
    count = Counter(need for place in lines for need in made.wanted_by(*place))
    complete = sum(not made.missing_line(line, release) for _, line, release in lines)
    fill = partial(made.command_for, file=f"{file}.csv")
    return f"results/{made.name}/{file}.csv", f"{complete} of {len(lines)} lines", count, fill


def _dataset(made: Pipeline) -> Missing:
    needs = [made.features.missing(backbone) for backbone in made.features.configured]
    needs += [made.speech.missing] if "speech" in made.demand.stages else []
    complete = sum(not each for each in needs)
    text = f"{len(made.dataset.videos())} videos, {complete} of {len(needs)} backbones and recognisers"
    return f"results/{made.name}/report.html", text, Counter(need for each in needs for need in each), how_to_fill


# The package's metadata


@cache
def _metadata() -> "metadata.PackageMetadata":
    return metadata.metadata("stepline")


def _extras() -> dict[str, list[str]]:
    """Return the packages of each extra for running Stepline; the key "" has the required packages."""
    found: dict[str, list[str]] = {"": []}
    for line in _metadata().get_all("Requires-Dist") or []:
        name, extra = re.match(r"[\w.-]+", line), re.search(r"extra == ['\"]([\w-]+)['\"]", line)
        key = extra[1] if extra else ""
        if name and name[0] != "stepline" and key not in NOT_FOR_RUNS:
            found.setdefault(key, []).append(name[0])
    return found


def _pins() -> dict[str, str]:
    """Return the versions in a checkout's constraints.txt; nothing if Stepline is an installed package."""
    path = Path(stepline.__file__).parents[2] / "constraints.txt"
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    return {_normal(name): version for name, _, version in (line.partition("==") for line in lines) if version}


def _normal(name: str) -> str:
    return re.sub("[-_.]+", "-", name).lower()


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""
