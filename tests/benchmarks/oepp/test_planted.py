"""Each trained planner reads both its inputs: the answer is planted in one alone, which is then blinded.

All actions occur at random, so nothing but the observations says which follow. The novel pool has the vectors of the
base pool under other names and in another order, so nothing but them says which name a novel action has.
"""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stepline.benchmarks.oepp.inputs import OeppInputs
from stepline.datasets.oepp import (
    BASE_POOL,
    EVENTS_FILE,
    FEATURE_FILES,
    NOVEL_POOL,
    PARTS,
    RELEASES,
    SPLIT_FILES,
    TOTAL_POOL,
)
from stepline.features.importing import Folder, import_folder
from tests.benchmarks.copied import copy_once
from tests.benchmarks.oepp.conftest import inputs
from tests.datasets.fetched import write_release

pytest.importorskip("torch")

PLANTED = [(kind, seen) for kind in ("mlp", "transformer", "pdpp") for seen in ("observations", "action_pool")]
ACTIONS, STEPS, STEP_S = 5, 6, 6
VIDEOS = {"train": 24, "val": 6, "base": 1, "novel": 24}
BASE, NOVEL = ([f"{name} {number}" for number in range(ACTIONS)] for name in ("base", "novel"))
ALIKE = "./alike.json"
"""One vector for all actions."""
OPTIONS: dict[str, Any] = {
    "loss": {"ce_mode": "plain"},
    "heads": {"epochs": 30, "batch_size": 16, "learning_rate": 0.005, "seeds": [0]},
    "pdpp": {
        "epochs": 1,
        "steps": 80,
        "batch_size": 32,
        "learning_rate": 0.004,
        "width": 64,
        "diffusion_steps": 20,
        "sampling_steps": 2,
        "ema_decay": 0.5,
        "ema_start": 0,
        "ema_every": 1,
        "seeds": [0],
    },
}


def _write(folder: Path) -> None:
    random = np.random.default_rng(5)
    vectors = 4 * np.linalg.qr(random.normal(size=(ACTIONS, ACTIONS)))[0]
    of_base = {action: [vector.tolist()] for action, vector in zip(BASE, vectors, strict=True)}
    of_novel = {action: [vector.tolist()] for action, vector in zip(NOVEL, random.permutation(vectors), strict=True)}
    parts: dict[str, list[Any]] = {}
    for part, n_videos in VIDEOS.items():
        pool, event = (NOVEL, "Novel") if part == "novel" else (BASE, "Base")
        vectors_of = of_base | of_novel
        parts[part] = []
        for number in range(n_videos):
            actions = random.choice(pool, STEPS).tolist()
            starts = [place * (STEP_S + 2) for place in range(STEPS)]
            anno = [{"action": a, "segment": [s, s + STEP_S]} for a, s in zip(actions, starts, strict=True)]
            rows = random.normal(0, 0.1, (starts[-1] + STEP_S + 1, 2 * ACTIONS)).astype(np.float32)
            for action, start in zip(actions, starts, strict=True):
                rows[start : start + STEP_S + 1, :ACTIONS] += np.roll(vectors_of[action][0], 1)
            for (_, after), start in zip(pairwise(actions), starts[:-1], strict=True):
                rows[start : start + STEP_S // 2, ACTIONS:] += np.roll(vectors_of[after][0], 2)
            parts[part].append(
                {"vid": f"{part}{number}", "dataset": "COIN", "task_name": event, "task_id_old": 1}
                | {"domain": event, "length": STEPS, "anno": anno}
            )
            np.save(folder / f"COIN_{part}{number}.npy", rows)
    listed = {"action_list": [], "new_action_list": [], "action_num": 0, "set": 0}
    contents = {
        **{SPLIT_FILES[part]: parts[part] for part in PARTS},
        BASE_POOL: BASE,
        NOVEL_POOL: NOVEL,
        TOTAL_POOL: [*BASE, *NOVEL],
        EVENTS_FILE: {event: {**listed, "domain": event} for event in ("Base", "Novel")},
        **dict.fromkeys(FEATURE_FILES.values(), of_base | of_novel),
    }
    write_release(RELEASES, "split1", contents)
    import_folder(Folder(folder), "planted", "openevent", 1.0)
    for file in folder.glob("*.npy"):
        np.save(file, np.zeros_like(np.load(file)))
    import_folder(Folder(folder), "blind", "openevent", 1.0)
    Path(ALIKE).write_text(json.dumps({key: [[1.0] * ACTIONS] for key in [*BASE, *NOVEL]}))


def planned(kind: str, video: str = "planted", text: str = "released") -> OeppInputs:
    """Return the inputs of a kind's entry with these features of videos and vectors of actions."""
    return inputs(f"{kind}-t3", **OPTIONS, features={"videoclip": {"video": video, "text": text}})


def fit(of: OeppInputs) -> Path:
    path = Path(f"{of.options['features']['videoclip']['video']}.safetensors")
    of.benchmark.method(of.entry.kind)().fit(of.staged("fit"), *of.entry.seeds, path)
    return path


def accuracy(of: OeppInputs, path: Path) -> float:
    """Return the accuracy on novel events, in percent."""
    made = list(of.benchmark.method(of.entry.kind)().predict(of.staged("predict"), [path]))
    return float(of.benchmark.values(of, made)["novel_acc"].values.mean())


@pytest.mark.parametrize(("kind", "seen"), PLANTED)
def test_what_is_planted_in_an_input_is_found_there_alone(
    kind: str, seen: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    copy_once(tmp_path_factory, "oepp-planted", _write)
    of = planned(kind)
    path = fit(of)
    if seen == "observations":
        blinded = planned(kind, video="blind")
        blind = accuracy(blinded, fit(blinded))
    else:  # one vector gives the same action for every output of any fit
        blind = accuracy(planned(kind, text=ALIKE), path)
    assert accuracy(of, path) > 60
    assert blind < 35  # of five actions, one is right by chance
