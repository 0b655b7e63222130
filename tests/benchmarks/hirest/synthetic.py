"""A small HiREST in the form of the released files, with all that is odd in them, and features that find moments.

Beside it the text tower of these features, a user's file: each text has a vector of its own.
"""

import io
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from math import floor
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
import srt
from numpy.typing import NDArray

from stepline.datasets.hirest import ASR, CATEGORIES, DISTRACTORS, LABELS, RELEASES, SPLIT_FILES, STEPS
from stepline.features.importing import Folder, import_folder
from tests.benchmarks.tower import DIMENSION, tower
from tests.datasets.fetched import write_release

QUERIES: dict[str, tuple[str, ...]] = {
    "train": ("Bake Sourdough Bread", "Clean a Bathtub", "Fold a Crane", "Fix a Tire", "Grow Tomatoes", "Sew Curtains"),
    "val": ("Brew Kombucha", "Carve a Pumpkin", "Polish Shoes", "Tune a Guitar"),
    "test": ("Build a Birdhouse", "Cook Lentil Soup", "Knit a Scarf", "Make Candles", "Paint a Fence", "Roast Coffee"),
}
VIDEOS = 3
"""Of each query. The last has no annotated steps, and of every other query no moment either."""
OTHERS = tuple(f"other-{number}" for number in range(5))
"""The distractors."""
SILENT, UNHEARD = ("val-1-0", "test-1-0", "other-0"), ("val-2-0", "test-3-0", "other-1")
"""Videos in whose transcript nothing stands, and videos without one."""
VERBS, THINGS = ("Cut", "Mix", "measure", "press", "Wrap"), ("the paper", "the flour ", "the wood", "a thread")
CHATTER = ("hello and welcome back", "please like and subscribe", "that is all for today", "thanks for watching")
FEATURES = {"video": "planted", "text": "tower"}
CONFIG: dict[str, Any] = {
    "features": dict.fromkeys(("eva_clip", "clip", "mil_nce", "frozen_in_time"), FEATURES),
    "joint": {"init": "random", "epochs": 2, "layers": 1, "hidden": 48, "seeds": [0]},
    "metrics": {"bootstrap_samples": 100},
}


@dataclass(frozen=True)
class Recording:
    """A video as it is, annotated or not. steps: (start_s, end_s, caption), which fill the moment."""

    split: str
    query: str
    video: str
    duration_s: float
    clip: bool
    annotated: bool
    steps: tuple[tuple[int, int, str], ...]

    @property
    def bounds(self) -> tuple[int, int]:
        """The moment."""
        return self.steps[0][0], self.steps[-1][1]


@cache
def recordings() -> tuple[Recording, ...]:
    """Return the videos of all splits, in the released order.

    A step of the first one of train has no length, and the last step of the first one of test ends after the video.
    """
    random = np.random.default_rng(7)
    found = []
    for split, queries in QUERIES.items():
        for q, query in enumerate(queries):
            for number in range(VIDEOS):
                edges = np.cumsum([random.integers(8, 16), *random.integers(6, 12, random.integers(3, 6))]).tolist()
                captions = [f"{random.choice(VERBS)} {random.choice(THINGS)}" for _ in edges[1:]]
                duration_s = round(edges[-1] + float(random.uniform(14, 20)), 2)
                if (q, number) == (0, 0) and split == "train":
                    edges[2] = edges[1]
                if (q, number) == (0, 0) and split == "test":
                    edges[-1] = floor(duration_s) + 2
                last = number == VIDEOS - 1
                found.append(
                    Recording(
                        split=split,
                        query=query,
                        video=f"{split}-{q}-{number}",
                        duration_s=duration_s,
                        clip=not (last and q % 2),
                        annotated=not last,
                        steps=tuple(zip(edges[:-1], edges[1:], captions, strict=True)),
                    )
                )
    return tuple(found)


def contents() -> dict[str, Any]:
    """Return what the files of the release ``v1`` hold: test is blinded, but for the steps of each first video."""
    listed = {path: _listed(split, blinded=split == "test") for split, path in SPLIT_FILES.items()}
    public = {
        f"{each.video}.mp4": {
            "captions": [{"start": start, "end": end, "sentence": caption} for start, end, caption in each.steps],
            "bounds": [[float(start), float(end)] for start, end, _ in each.steps],
        }
        for each in recordings()
        if each.split == "test" and each.video.endswith("-0")
    }
    queries = [query for named in QUERIES.values() for query in named]
    return {
        **listed,
        DISTRACTORS: {f"negative video_{number}": {f"{video}.mp4": {}} for number, video in enumerate(OTHERS)},
        STEPS: public,
        CATEGORIES: {
            "prompt_to_cat": {query: ("Crafts", "Food")[place % 2] for place, query in enumerate(queries)},
            "video_to_cat": {f"{each.video}.mp4": "Crafts" for each in recordings()},
        },
    }


def _listed(split: str, *, blinded: bool) -> dict[str, Any]:
    found: dict[str, Any] = {query: {} for query in QUERIES[split]}
    for each in recordings():
        if each.split == split:
            known = each.clip and not blinded
            steps = [
                {"index": index, "heading": caption, "absolute_bounds": [start, end]}
                for index, (start, end, caption) in enumerate(each.steps)
                if known and each.annotated
            ]
            found[each.query][f"{each.video}.mp4"] = {
                "relevant": True,
                "clip": each.clip,
                "v_duration": each.duration_s,
                "bounds": [0, 1] if blinded else list(each.bounds) if known else [0, 0],
                "steps": steps,
            }
    return found


def write_releases(root: Path = Path()) -> None:
    """Write ``v1`` and the transcripts below ``root``, as they stand after they are fetched, and the text tower."""
    write_release(RELEASES, "v1", contents(), root)
    write_transcripts(spoken(), root)
    (root / "tower.py").write_text(tower(vector))


def write_transcripts(said: dict[str, list[tuple[float, float, str]]], root: Path = Path()) -> None:
    """Write transcripts, (start_s, end_s, sentence) by video, as they stand after they are fetched."""
    archive = io.BytesIO()
    with ZipFile(archive, "w") as file:
        for video, lines in said.items():
            file.writestr(f"ASR/{video}.srt", _srt(lines))
    write_release(RELEASES, "asr", {ASR: archive.getvalue()}, root)


def write_labels(root: Path = Path()) -> None:
    """Write the authors' test file with its moments, as it stands after it is fetched."""
    write_release(RELEASES, "labels", {LABELS: _listed("test", blinded=False)}, root)


def spoken() -> dict[str, list[tuple[float, float, str]]]:
    """Return the transcripts by video, without those that are not there: (start_s, end_s, sentence).

    A sentence starts every 4 s and takes 3. In a moment it names the query or, every second one, the step.
    """
    found: dict[str, list[tuple[float, float, str]]] = {}
    for each in recordings():
        lines = found[each.video] = []
        for number, at in enumerate(range(0, int(each.duration_s) - 3, 4)):
            step = next((caption for start, end, caption in each.steps if each.clip and start <= at < end), "")
            on = step or not each.clip
            said = f"we {each.query}, as you see" if on else CHATTER[number % len(CHATTER)]
            lines.append((at, at + 3, f"now we {step}" if step and number % 2 else said))
    found |= {video: [(4 * n, 4 * n + 3, text) for n, text in enumerate(CHATTER * 3)] for video in OTHERS}
    return {video: [] if video in SILENT else lines for video, lines in found.items() if video not in UNHEARD}


def _srt(lines: list[tuple[float, float, str]]) -> str:
    times = [(timedelta(seconds=start_s), timedelta(seconds=end_s), text) for start_s, end_s, text in lines]
    return str(srt.compose(srt.Subtitle(n, *each) for n, each in enumerate(times, 1)))


@cache
def vector(text: str) -> NDArray[np.float64]:
    """Return the vector of a text, as the tower makes it."""
    drawn: NDArray[np.float64] = np.random.default_rng([*text.encode()]).normal(size=DIMENSION)
    return drawn / np.linalg.norm(drawn)


def planted() -> dict[str, NDArray[np.float32]]:
    """Return rows of each video, one at each whole second that it shows.

    In a moment, or in the whole video where there is none, a row is the vector of the query; in a step half that of the
    caption is added, and in its last second half that of "end". Elsewhere a video has a vector of its own. All have
    noise.
    """
    random = np.random.default_rng(3)
    found = {}
    for each in recordings():
        rows = np.tile(vector(each.video), (floor(each.duration_s) + 1, 1))
        start, end = each.bounds if each.clip else (0, len(rows))
        rows[start:end] = vector(each.query)
        for first, last, caption in each.steps if each.clip else ():
            rows[first:last] += vector(caption) / 4
            rows[last - 1 : last] += vector("end") / 4
        found[each.video] = rows
    for video in OTHERS:
        found[video] = np.tile(vector(video), (50, 1))
    return {video: (rows + random.normal(0, 0.02, rows.shape)).astype(np.float32) for video, rows in found.items()}


def write_bank(tmp: Path, name: str = "planted", hop_s: float = 1.0) -> None:
    """Import the planted rows as a bank, by way of files in ``tmp``."""
    for video, rows in planted().items():
        np.save(tmp / f"{video}.npy", rows)
    import_folder(Folder(tmp), name, "hirest", hop_s)
