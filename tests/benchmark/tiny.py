"""A tiny benchmark: how far numbers of a few videos are missed by guesses."""

import copy
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

import numpy as np
import yaml

from stepline.benchmark import (
    SPEECH,
    TRAIN,
    VAL,
    VIDEO,
    Benchmark,
    Entry,
    Job,
    Kind,
    Line,
    Method,
    Metric,
    Prediction,
    Sees,
    Table,
    UnavailableError,
    Values,
)
from stepline.config import validate
from stepline.datasets.dataset import Dataset
from stepline.datasets.release import Released, ReleaseFile
from stepline.datasets.schema import SPLITS, Video
from stepline.features.importing import Folder, import_folder
from stepline.io import write_bytes, write_json, write_text
from stepline.mirror import Wanted
from stepline.needs import Need
from stepline.runs.inputs import Inputs

VIDEOS = {"train": ("a", "b", "c"), "val": ("d",), "test": ("e", "f")}
NUMBERS = {"a": [1, 2], "b": [3], "c": [5], "d": [4], "e": [2, 4, 6], "f": [8]}
"""Of each video, in both releases."""
RELEASES = ("first", "second")
FILE, CONTENT = "numbers.json", json.dumps(NUMBERS).encode()


@dataclass(frozen=True, kw_only=True)
class Number:
    """What is to be guessed: a number of a video."""

    video: str
    place: int
    value: int


@dataclass(frozen=True, kw_only=True)
class Guess(Prediction):
    """A guess at one of a video's numbers."""

    place: int
    value: float


class Guesser(Method["TinyInputs", Guess]):
    """Guesses something of each number."""

    def fit(self, inputs: "TinyInputs", seed: int, path: Path) -> None:
        """Write the mean of the training numbers and the seed."""
        write_text(path, str(seed + np.mean([each.value for each in inputs.used("train")])))

    def predict(self, inputs: "TinyInputs", fits: Sequence[Path]) -> Iterator[Guess]:
        """Yield guesses."""
        for index, seed in enumerate(inputs.entry.seeds):
            for split in inputs.entry.splits:
                for each in inputs.used(split):
                    value = float(self.guess(inputs, fits[index : index + 1], seed))
                    yield Guess(seed=seed, split=split, video=each.video, place=each.place, value=value)
        self.selection = "guessed"

    def guess(self, inputs: "TinyInputs", fits: Sequence[Path], seed: int) -> float:
        """Return a guess."""
        raise NotImplementedError


class Constant(Guesser):
    """The number that its settings say."""

    def guess(self, inputs: "TinyInputs", fits: Sequence[Path], seed: int) -> float:
        """Return it."""
        return float(inputs.entry.settings["number"])


class Drawn(Guesser):
    """The seed."""

    def guess(self, inputs: "TinyInputs", fits: Sequence[Path], seed: int) -> float:
        """Return it."""
        return seed


class Fitted(Guesser):
    """What was fitted."""

    def guess(self, inputs: "TinyInputs", fits: Sequence[Path], seed: int) -> float:
        """Return it."""
        return float(fits[0].read_text())


class Asking(Guesser):
    """What turns out to need a key."""

    def guess(self, inputs: "TinyInputs", fits: Sequence[Path], seed: int) -> float:
        """Find that there is none."""
        raise UnavailableError(Need("key", "TINY_KEY"))


def _videos(release: str) -> tuple[Video, ...]:
    return tuple(Video(id=video, split=split, duration_s=60.0) for split in SPLITS for video in VIDEOS[split])


def _files(release: str) -> tuple[ReleaseFile, ...]:
    """Return its one file; that of the first release is pinned."""
    sha256 = hashlib.sha256(CONTENT).hexdigest() if release == "first" else ""
    wanted = Wanted(path=f"tiny/{release}/{FILE}", sha256=sha256)
    return (ReleaseFile(path=FILE, wanted=wanted, url=f"https://tiny/1/{release}/{FILE}"),)


class TinyInputs(Inputs["Tiny"]):
    """One release."""

    def load(self, split: str) -> Iterator[Number]:
        """Yield the numbers of a split."""
        listed = json.loads(self.benchmark.released.release_file(self.release, FILE).read_bytes())
        for video in VIDEOS[split]:
            for place, value in enumerate(listed[video]):
                yield Number(video=video, place=place, value=value)


class Tiny(Benchmark[Entry]):
    """The benchmark; ``tiny`` makes a subclass with a folder."""

    studies = ("tiny",)
    datasets: ClassVar = {
        name: Dataset(name=name, title=name, videos=partial(_videos, name), listed_by=f"tiny/{name}")
        for name in RELEASES
    }
    kinds: ClassVar = {
        "constant": Kind(
            method="tiny:Constant",
            sees=("train",),
            settings={
                "number": int,
                "look": ({"no": (), "yes": ("truth",)}, None),
                "like": (str, None),
            },
            metrics=("error",),
        ),
        "drawn": Kind(method="tiny:Drawn", drawn=True),
        "fitted": Kind(method="tiny:Fitted", options="head", sees=("video", "train", "val")),
        "heard": Kind(method="tiny:Constant", sees=("speech",), settings={"number": int}),
        "asking": Kind(method="tiny:Asking", metrics=("error",)),
        "people": Kind(method=None, metrics=("error", "n")),
    }
    prediction = Guess
    metrics: ClassVar = {
        "error": Metric(title="Error", lower_is_better=True),
        "near": Metric(title="Near", definition="the share of guesses within a distance", options=("within",)),
        "n": Metric(title="Numbers", unit="count"),
    }
    sees = (VIDEO, SPEECH, TRAIN, VAL, Sees("truth", "the numbers", oracle=True, fields=("value",)))
    published: ClassVar = {"within": 1}

    @property
    def released(self) -> Released:
        """Its releases."""
        return Released(name="tiny", title="Tiny", known=RELEASES, release_files=_files)

    def inputs(self, job: Job) -> TinyInputs:
        """Return what a job reads."""
        return TinyInputs(self, job)

    def values(self, inputs: TinyInputs, made: Sequence[Guess]) -> Mapping[str, Values]:
        """Return how far each guess is off, and whether it is near."""
        truth = {(each.video, each.place): each.value for split in SPLITS for each in inputs.truth(split)}
        off = np.array([abs(each.value - truth[each.video, each.place]) for each in made])
        videos = [each.video for each in made]
        counts = {"n_listed": len({each.video for split in inputs.entry.splits for each in inputs.truth(split)})}
        return {
            "error": Values(videos=videos, values=off, counts=counts),
            "near": Values(videos=videos, values=100.0 * (off <= self.options["metrics"]["within"]), counts=counts),
        }

    def missing_of(self, metric: str) -> Sequence[Need]:
        """Return what a metric is missing: ``near`` can be switched off."""
        off = metric == "near" and self.options["metrics"]["within"] == 0
        return [Need("config", "tiny.metrics.within", "1")] if off else []

    def counted(self, entry: Entry, release: str) -> Mapping[str, float]:
        """Return how many numbers there are, of what people would count."""
        return {"n": sum(map(len, NUMBERS.values()))}

    def is_reference(self, line: Line) -> bool:
        """Return whether a line is copied from the paper."""
        return line.setting == "reference"

    def note(self, table: Table, line: Line, release: str, metric: str) -> str:
        """Return what stands beside a number."""
        return "numbers are whole" if metric == "n" else ""


DECLARED: dict[str, Any] = {
    "title": "Tiny",
    "releases": list(RELEASES),
    "datasets": list(RELEASES),
    "features": {"net": {"default": ["net"], "description": "A network."}},
    "entries": {
        "three": {"kind": "constant", "settings": {"number": 3}},
        "drawn": {"kind": "drawn", "seeds": [1, 2]},
        "fitted": {"kind": "fitted", "features": "net"},
        "people": {"kind": "people"},
        "four": {
            "table": "table2",
            "method": "Four",
            "note": "an entry with its line",
            "kind": "constant",
            "settings": {"number": 4, "look": "yes"},
        },
        "three-again": {"table": "table2", "same_as": "three", "method": "Three, again"},
    },
    "tables": {
        "table1": {
            "title": "Guesses",
            "releases": ["first", "second"],
            "metrics": ["error", "near"],
            "lines": [
                {"entry": "three", "method": "Three", "setting": "baseline"},
                {"entry": "drawn", "method": "Drawn", "releases": ["first"]},
                {"entry": "fitted", "method": "Fitted"},
                {"entry": "people", "method": "People", "setting": "reference"},
            ],
        },
        "table2": {"title": "Others", "metrics": ["error"]},
    },
}
OPTIONS: dict[str, Any] = {
    "properties": {
        "head": {
            "type": "object",
            "additionalProperties": False,
            "default": {},
            "description": "Of the head.",
            "properties": {
                "epochs": {"type": "integer", "default": 3, "description": "Passes."},
                "seeds": {"$ref": "#/$defs/seeds", "default": [0, 5], "description": "Fits."},
            },
        }
    },
    "metrics": {"within": {"type": "number", "default": 1, "description": "What is near."}},
}


def declared(**changes: Any) -> dict[str, Any]:
    """Return the declaration with keys of ``entries`` and ``tables`` changed: a change of a mapping merges."""
    content = copy.deepcopy(DECLARED)
    for key, change in changes.items():
        content[key] = content[key] | change if isinstance(change, dict) else change
    return content


def tiny(folder: Path, content: Mapping[str, Any] = DECLARED, **options: Any) -> Tiny:
    """Return the benchmark that ``content`` declares in ``folder``. options: of its part of the configuration.

    Declarations are read once per folder: each other content needs a folder of its own. The schema of the configuration
    is that of ``DECLARED``: to make one takes a while.
    """
    _write(folder, content)
    own = type("OwnTiny", (Tiny,), {"folder": folder, "__module__": __name__})
    made: Tiny = own(validate({"benchmarks": {"tiny": _usual().name}, "tiny": options}), "tiny")
    return made


@cache
def _usual() -> TemporaryDirectory[str]:
    folder = TemporaryDirectory()
    _write(Path(folder.name), DECLARED)
    return folder


def _write(folder: Path, content: Mapping[str, Any]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tables.yaml").write_text(yaml.safe_dump(dict(content), sort_keys=False))
    (folder / "options.yaml").write_text(yaml.safe_dump(OPTIONS))


def write_releases() -> None:
    """Write both releases below the current folder, as they stand after they are fetched."""
    for release in RELEASES:
        folder = Path("datasets/tiny") / release
        write_bytes(folder / FILE, CONTENT)
        digests = {FILE: hashlib.sha256(CONTENT).hexdigest()}
        write_json(folder / "release.json", {"study": "tiny", "release": release, "files": digests})


def write_banks(tmp: Path, *videos: str, name: str = "net", scale: float = 1) -> None:
    """Import a bank of both releases with rows of the given videos, of all by default.

    A row has the video's first number, and the sum of this number and the second.
    """
    for release in RELEASES:
        folder = tmp / f"{name}-{release}"
        folder.mkdir(parents=True)
        for video in videos or NUMBERS:
            rows = [(NUMBERS[video][0], NUMBERS[video][0] + second) for second in range(60)]
            np.save(folder / f"{video}.npy", scale * np.array(rows, dtype=np.float32))
        import_folder(Folder(folder), name, release, 1.0)


def job(benchmark: Tiny, entry: str, release: str = "first") -> Job:
    """Return a job, also one that could not run yet."""
    return Job(release=release, entry=benchmark.entries[entry])
