"""A small OpenEvent: two clusters, both sources, whitespace that tells actions apart, and videos that are padded.

Beside it features in which actions are planted, and a study of both that is small enough to be fitted in a test.
"""

from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepline.datasets.oepp import (
    BASE_POOL,
    EVENTS_FILE,
    FEATURE_FILES,
    NOVEL_POOL,
    PARTS,
    RELEASES,
    SPLIT_FILES,
    TOTAL_POOL,
    Part,
)
from stepline.features.importing import Folder, import_folder
from tests.datasets.fetched import write_release

DIMENSION = 8
"""Of the texts' vectors."""
TURNED = (1, -1) * (DIMENSION // 2)
"""Signs of the rows of planted features."""
VIDEOS: dict[Part, int] = {"train": 5, "val": 2, "base": 2, "novel": 6}
"""Of each event of the part; the first has one action."""
BOTH = "both-sources"
"""The YouTube id of a training video that stands in COIN and in CrossTask."""


def _event(cluster: int, *actions: str, refined: dict[str, str] | None = None) -> dict[str, Any]:
    domain = ("Drink and Snack", "Housework")[cluster]
    anew = [(refined or {}).get(action, action) for action in actions]
    return {"domain": domain, "set": cluster, "action_list": [*actions], "new_action_list": anew}


TEA = {"prepare and add the tea": "add tea", "stir": "stir mixture"}
EVENTS: dict[str, dict[str, Any]] = {
    "MakeTea": _event(0, "boil water", "prepare and add the tea", "pour water", "stir", refined=TEA),
    "MakeALatte": _event(0, "add coffee", "pour water", "stir mixture"),
    "CleanWoodenFloor": _event(1, "sweep the floor", "make the  detergent", "wash the floor"),
    "CleanBathtub": _event(
        *(1, "make the detergent", "scrub the bathtub", "wash the floor"),
        refined={"scrub the bathtub": " wipe the bathtub"},
    ),
    "MakeOrangeJuice": _event(
        *(0, "cut oranges", "juice the oranges", "pour water"), refined={"juice the oranges": "squeeze oranges"}
    ),
    "CleanToilet": _event(1, "apply detergent", "wipe the toilet", "wash the floor"),
}
NOVEL = ("MakeOrangeJuice", "CleanToilet")
CROSSTASK = {"MakeALatte": "53193"}
"""Its task's id; the other events are COIN's."""
CONFIG: dict[str, Any] = {
    "features": {"videoclip": {"video": "planted"}, "mil-nce": {"video": "planted"}},
    "heads": {"epochs": 25, "batch_size": 16, "learning_rate": 0.005, "seeds": [0, 1]},
    "pdpp": {
        "epochs": 2,
        "steps": 30,
        "batch_size": 16,
        "learning_rate": 0.002,
        "width": 32,
        "diffusion_steps": 10,
        "sampling_steps": 5,
        "ema_decay": 0.8,
        "ema_start": 8,
        "ema_every": 2,
        "seeds": [0],
    },
    "metrics": {"bootstrap_samples": 100},
}


def write_releases(root: Path = Path()) -> None:
    """Write the release ``split1`` below ``root``, as it stands after it is fetched."""
    write_release(RELEASES, "split1", contents(), root)


def contents() -> dict[str, Any]:
    """Return what the files of the release hold."""
    random = np.random.default_rng(7)
    parts = {part: [*_records(part, random)] for part in PARTS}
    base, novel = (
        sorted({action for name in names for action in EVENTS[name]["new_action_list"]}, key=lambda text: text[::-1])
        for names in ([name for name in EVENTS if name not in NOVEL], NOVEL)
    )
    total = [*base, *(action for action in novel if action not in base)]
    words = {" ".join(action.split()): random.normal(size=DIMENSION).tolist() for action in total}
    vectors = {action: [words[" ".join(action.split())]] for action in total}
    return {
        **{SPLIT_FILES[part]: records for part, records in parts.items()},
        BASE_POOL: base,
        NOVEL_POOL: novel,
        TOTAL_POOL: total,
        EVENTS_FILE: {name: event | {"action_num": len(event["action_list"])} for name, event in EVENTS.items()},
        **dict.fromkeys(FEATURE_FILES.values(), vectors),
    }


def _records(part: Part, random: np.random.Generator) -> list[dict[str, Any]]:
    found = []
    for task_id, (name, event) in enumerate(EVENTS.items()):
        if (name in NOVEL) != (part == "novel"):
            continue
        source = "CrossTask" if name in CROSSTASK else "COIN"
        for number in range(VIDEOS[part]):
            vid = f"{part}-{name}-{number}"
            if part == "train" and number == 1 and name in ("MakeTea", "MakeALatte"):
                vid = BOTH
            n = 1 if number == 0 else int(random.integers(2, 7))
            first, actions = int(random.integers(len(event["action_list"]))), event["new_action_list"]
            edges = np.sort(random.choice(np.arange(2, 80), 2 * n, replace=False)).reshape(n, 2)
            segments = edges.tolist() if source == "CrossTask" else (edges / 2).tolist()
            found.append(
                {
                    "vid": vid,
                    "dataset": source,
                    "task_name": name,
                    "task_id": task_id,
                    "task_id_old": CROSSTASK.get(name, 100 + task_id),
                    "domain": event["domain"],
                    "length": n,
                    "anno": [
                        {"action": actions[(first + place) % len(actions)], "segment": segment}
                        for place, segment in enumerate(segments)
                    ],
                }
            )
    return found


def planted() -> dict[str, NDArray[np.float32]]:
    """Return rows of each video, one a second: of an action that is on, its released vector turned, and noise.

    It is turned so that no similarity of video and text says which action it is.
    """
    random, content = np.random.default_rng(3), contents()
    vectors = content[FEATURE_FILES["videoclip"]]
    found = {}
    for record in (record for part in PARTS for record in content[SPLIT_FILES[part]]):
        rows = random.normal(0, 0.1, (ceil(record["anno"][-1]["segment"][1]), DIMENSION))
        for step in record["anno"]:
            start_s, end_s = step["segment"]
            rows[int(start_s) : int(end_s) + 1] += np.roll(vectors[step["action"]][0], 3) * TURNED
        found[f"{record['dataset']}_{record['vid']}"] = rows.astype(np.float32)
    return found


def write_bank(tmp: Path, name: str = "planted", hop_s: float = 1.0) -> None:
    """Import the planted rows as a bank, by way of files in ``tmp``."""
    for video, rows in planted().items():
        np.save(tmp / f"{video}.npy", rows)
    import_folder(Folder(tmp), name, "openevent", hop_s)
