"""The joint model where one input alone has the answer, beside the same model where this input shows nothing."""

from collections.abc import Iterator, Sequence
from contextlib import chdir
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

pytest.importorskip("torch")
pytest.importorskip("tokenizers")

from stepline.benchmarks.hirest import texts
from stepline.benchmarks.hirest.inputs import HirestInputs
from stepline.benchmarks.hirest.methods import joint
from stepline.benchmarks.hirest.score import values
from stepline.datasets.hirest import DISTRACTORS, RELEASES, SPLIT_FILES, STEPS, Pair
from stepline.features.importing import Folder, import_folder
from stepline.models import hirest_joint_layers
from stepline.models.hirest_joint_config import JointConfig
from tests.benchmarks.hirest.conftest import inputs
from tests.benchmarks.hirest.synthetic import write_transcripts
from tests.benchmarks.hirest.test_text import Words as Sentences
from tests.benchmarks.tower import DIMENSION, tower
from tests.datasets.fetched import write_release

PLANTED = [("joint", "query"), ("joint", "video"), ("joint", "speech"), ("joint", "moment")]
"""Kinds, and the input that has the answer."""
LEARNED = {
    "query": ("rouge_l",),
    "video": ("r_07", "rouge_l"),
    "speech": ("r_07", "rouge_l"),
    "moment": ("raw_precision_05",),
}
"""The metrics of what follows from the input."""
SIZES = {"embed": 16, "vocabulary": 110, "words": 3, "heads": 2, "dropout": 0.0}
OPTIONS = {
    "init": "random",
    "seeds": [0],
    "beam": 1,
    "hidden": 24,
    "layers": 1,
    "mixing": "alternating",
    "learning_rate": 1e-2,
    "batch_size": 10,
    "epochs": 8,
}
VIDEOS = {"train": 60, "val": 10, "test": 20}
SECONDS = 34
CAPTIONS = ("bake", "cut", "fold", "mix")
FIRST = 5
"""The id of the first caption; 0 is no word."""
SHOWN = ("begin", "turn", "end", *CAPTIONS)
QUERIES = ("the first of two", "the second of two")
Steps = Sequence[tuple[int, int, str]]


class Words:
    """Captions of one word, as ids and back."""

    def encode(self, text: str) -> list[int]:
        return [FIRST + CAPTIONS.index(text)]

    def decode(self, ids: Sequence[int]) -> str:
        return " ".join(CAPTIONS[each - FIRST] for each in ids if each - FIRST in range(len(CAPTIONS)))


def vector(text: str) -> NDArray[np.float64]:
    """Return the vector of a query: the two are opposite."""
    return np.full(32, -1.0 if "second" in text else 1.0)


def drawn(random: np.random.Generator, word: str) -> Steps:
    """Return two steps anywhere in a video, of 6 or 10 s; for ``moment``, from one of three times on, of 8 s."""
    lengths = random.choice((6, 10), 2) if word != "moment" else np.array([8, 8])
    start = random.integers(1, SECONDS - lengths.sum()) if word != "moment" else 1 + 8 * random.integers(3)
    first, second, last = (int(start + after) for after in (0, lengths[0], lengths.sum()))
    return [(first, second, str(random.choice(CAPTIONS))), (second, last, str(random.choice(CAPTIONS)))]


def shown(steps: Steps) -> list[str]:
    """Return the words that each second shows of steps."""
    words: list[list[str]] = [[] for _ in range(SECONDS)]
    words[steps[0][0]].append("begin")
    words[steps[-1][1]].append("end")
    for start, end, caption in steps:
        words[end].append("turn")
        for second in range(start, end):
            words[second].append(caption)
    return [" ".join(each) for each in words]


def rows(words: Sequence[str]) -> NDArray[np.float32]:
    """Return (SECONDS, DIMENSION) rows that show the words of each second."""
    found = np.full((SECONDS, DIMENSION), 0.1, np.float32)
    for second, said in enumerate(words):
        found[second, [SHOWN.index(word) for word in said.split()]] = 1
    return found


def write(word: str, *, blind: bool) -> None:
    """Write a release, transcripts, features and a text tower. blind: the input ``word`` is the same for all videos."""
    random = np.random.default_rng(0)
    listed: dict[str, Any] = {split: {query: {} for query in QUERIES} for split in VIDEOS}
    public, said = {}, {}
    Path("rows").mkdir()
    for split, number in ((split, number) for split, n in VIDEOS.items() for number in range(n)):
        steps, asked, video = drawn(random, word), int(random.integers(2)), f"{split}-{number}"
        seen = rows(())
        if word == "query":  # it says what the captions are
            steps = [(start, end, CAPTIONS[asked]) for start, end, _ in steps]
            asked = 0 if blind else asked
        if word == "video" and not blind:
            seen = rows(shown(steps))
        if word == "moment":  # all videos are the same
            seen = rows(["turn" if second % 8 == 1 else "" for second in range(SECONDS)])
        np.save(f"rows/{video}.npy", seen)
        lines = enumerate(shown(steps)) if word == "speech" and not blind else ()
        said[video] = [(second, second + 1, text) for second, text in lines if text]
        bounds, known = [steps[0][0], steps[-1][1]], split != "test"
        listed[split][QUERIES[asked]][f"{video}.mp4"] = {
            "relevant": True,
            "clip": True,
            "v_duration": SECONDS,
            "bounds": bounds if known else [0, 1],
            "steps": [{"heading": text, "absolute_bounds": [start, end]} for start, end, text in steps if known],
        }
        if not known:
            captions = [{"start": start, "end": end, "sentence": text} for start, end, text in steps]
            public[f"{video}.mp4"] = {"captions": captions}
    files = {path: listed[split] for split, path in SPLIT_FILES.items()}
    write_release(RELEASES, "v1", files | {DISTRACTORS: {}, STEPS: public})
    write_transcripts(said)
    Path("tower.py").write_text(tower(vector))
    import_folder(Folder(Path("rows")), "planted", "hirest", 1.0)


def scores(word: str, *, blind: bool) -> Iterator[float]:
    """Yield the metrics of the model that is fitted and predicts in the current folder."""
    write(word, blind=blind)
    options = {"fusion": "product" if word == "query" else "sum", **OPTIONS}
    of, load = inputs("joint", joint=options, metrics={"bootstrap_samples": 100, "meteor": False}), HirestInputs.load

    def whole(self: HirestInputs, split: str) -> list[Any]:
        pairs = load(self, split)
        return [replace(each, bounds_s=(0.0, float(SECONDS))) if isinstance(each, Pair) else each for each in pairs]

    with pytest.MonkeyPatch.context() as patch:
        if word == "moment" and blind:
            patch.setattr(HirestInputs, "load", whole)
        joint.JointMethod().fit(of.staged("fit"), 0, Path("fit"))
        made = list(joint.JointMethod().predict(of.staged("predict"), [Path("fit")]))
    found = values(of, made)
    for metric in LEARNED[word]:
        yield float(found[f"test_507_{metric}"].values.mean())


@pytest.mark.parametrize(("kind", "word"), PLANTED)
def test_it_learns_what_an_input_shows_and_not_what_is_blinded(
    kind: str, word: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(texts, "sentence_encoder", Sentences)
    monkeypatch.setattr(joint, "Words", Words)
    for name, size in SIZES.items():
        monkeypatch.setitem(JointConfig.__init__.__kwdefaults__, name, size)
    # The published deviation is for layers so wide that little would come through these.
    monkeypatch.setattr(hirest_joint_layers, "DEVIATION", 0.2)
    made = {}
    for blind in (False, True):
        (folder := tmp_path / str(blind)).mkdir()
        with chdir(folder):
            made[blind] = list(scores(word, blind=blind))
    assert min(made[False]) > 80, made
    assert max(made[True]) < 55, made
