from dataclasses import replace
from pathlib import Path

import numpy as np

from stepline.backbones.histogram import HistogramSpec
from stepline.backbones.registry import presets
from stepline.benchmarks.spacewalk.inputs import SpacewalkInputs
from stepline.benchmarks.spacewalk.items import Item
from stepline.benchmarks.spacewalk.methods.tw_finch import nearest_rows
from stepline.features import store
from stepline.features.bank import Bank
from stepline.models.tw_finch import tw_finch
from stepline.spec import Spec
from tests.benchmarks.spacewalk.conftest import MadeUp, chooser_of

ENTRY: dict[str, object] = {
    "table": "2b",
    "kind": "tw-finch",
    "modality": "V",
    "encoder": "histogram",
    "setting": "baseline",
    "contexts": "unlimited",
    "inputs": ["recording"],
    "settings": {"segments": 2},
}


def inputs(made_up: MadeUp, **settings: object) -> SpacewalkInputs:
    return made_up.inputs(ENTRY | {"settings": {"segments": 2} | settings})


def opened(folder: Path, rows: np.ndarray, spec: Spec, hop_s: float = 1) -> Bank:
    store.write(folder, spec, {"d": rows}, hop_s)
    return Bank.open([folder], spec)


def item(*times_s: float) -> Item:
    return Item(id=0, frame=0, t_s=times_s[0], label=0, candidates_s=times_s[1:])


def test_the_one_candidate_in_the_querys_cluster_is_chosen_else_it_is_a_guess(made_up: MadeUp, tmp_path: Path) -> None:
    """20 frames of one scene, then 20 of another."""
    mine = inputs(made_up)
    rows = np.repeat(np.eye(2, 8, dtype=np.float32), 20, axis=0)
    mine.__dict__["bank"] = opened(tmp_path / "store", rows, HistogramSpec())
    items = [item(5, 10, 30), item(25, 10, 30), item(5, 10, 15), item(5, 30, 35)]
    ((seed, chosen, scores),) = chooser_of(mine, None, [])("d", items)
    assert (seed, chosen.tolist(), scores) == (0, [0, 1, -1, -1], None)


def test_all_rows_of_a_recording_are_clustered_into_as_many_as_the_entry_says(made_up: MadeUp) -> None:
    mine = inputs(made_up, segments=5)
    labels = tw_finch(mine.bank["d"], 5)
    items = mine.items("test")["d"]
    ((_, chosen, _),) = chooser_of(mine, None, [])("d", items)
    for each, answer in zip(items, chosen.tolist(), strict=True):
        query, *candidates = (labels[round(2 * t_s)] for t_s in each.times_s)  # two rows a second
        shared = [query == candidate for candidate in candidates]
        assert answer == (shared.index(True) if sum(shared) == 1 else -1)
    assert len(set(chosen.tolist())) == 3


def test_a_time_belongs_to_the_clip_centred_nearest(tmp_path: Path) -> None:
    """12 s from each second on are centred 6 s later."""
    seconds = presets()["internvideo-seconds"]
    bank = opened(tmp_path / "clips", np.zeros((50, 768), np.float16), seconds)
    times_s = np.array([0, 6, 6.4, 6.6, 30, 55.4, 99])
    assert nearest_rows(bank, "d", times_s).tolist() == [0, 0, 0, 1, 24, 49, 49]
    around = replace(seconds, offset=-round(6 * seconds.fps))  # type: ignore[attr-defined,type-var]
    bank = opened(tmp_path / "around", np.zeros((50, 768), np.float16), around)
    assert nearest_rows(bank, "d", np.array([0, 0.4, 0.6, 30, 99])).tolist() == [0, 0, 1, 30, 49]
    frames = opened(tmp_path / "frames", np.zeros((50, 8), np.float32), HistogramSpec(), 0.5)
    assert nearest_rows(frames, "d", np.array([0, 0.2, 0.3, 6, 99])).tolist() == [0, 0, 1, 12, 49]
    assert nearest_rows(frames, "d", np.array([0.25, 6.25])).tolist() == [0, 12], "the earlier one in a tie"
