"""OEPP on the released split: what needs no features, and planners on features in which actions are planted."""

import csv
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from stepline.benchmarks.oepp.benchmark import Oepp
from stepline.benchmarks.oepp.listings import write_listings
from stepline.config import validate
from stepline.datasets import oepp
from stepline.datasets.oepp import PARTS
from stepline.features.importing import Folder, import_folder
from stepline.fetch import fetch_release
from stepline.io import read_json, write_json
from stepline.runs.table import table_rows
from stepline.runs.verbs import Verbs
from tests.ledger import assert_in_ledger

pytestmark = pytest.mark.slow
D, NOISE = 64, 0.5
SMALL: dict[str, Any] = {
    "heads": {"epochs": 6, "batch_size": 64, "learning_rate": 0.001, "seeds": [0]},
    "pdpp": {
        "epochs": 1,
        "steps": 300,
        "learning_rate": 0.001,
        "width": 64,
        "sampling_steps": 2,
        "ema_start": 20,
        "ema_every": 5,
        "ema_decay": 0.8,
        "seeds": [0],
    },
}


@pytest.fixture
def released(real_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The release, fetched from a mirror."""
    monkeypatch.setenv("STEPLINE_MIRROR", str(real_data))
    fetch_release(oepp.RELEASES, "split1")


def study(**changes: Any) -> Oepp:
    return Oepp.of(validate({"oepp": {"metrics": {"bootstrap_samples": 100}} | changes}), "oepp")


def computed(plan: Oepp, entry: str) -> dict[str, float]:
    """Return the metrics of an entry, computed with one seed."""
    runs = Verbs(plan)
    if plan.entries[entry].trained:
        runs.fit("split1", entry, "all", 0)
    runs.predict("split1", entry, "all")
    runs.score("split1", entry, "all")
    score = read_json(Path(f"results/oepp/scores/split1/{entry}/all.json"))
    assert score["status"] == "present", score["needs"]
    return {name: metric["value"] for name, metric in score["metrics"].items()}


def test_random_lines_are_within_where_the_paper_drew_from_the_right_pool(released: None) -> None:
    plan = study()
    for entry in ("random-t3", "random-t4"):
        computed(plan, entry)
    rows = [row for row in table_rows(plan, "table2") if row.method == "Random"]
    assert len(rows) == 2 * 6
    assert_in_ledger(rows)
    for row in rows:
        drawn_from_base = row.split == "test novel" and row.metric != "novel_sr"
        assert row.status == ("inconsistent" if drawn_from_base else "within"), row
    assert {row.n_samples for row in rows} == {888, 1138, 1297, 1691}


def test_statistics_clusters_and_renamed_actions_are_the_papers(released: None) -> None:
    for table in ("table1", "table8"):
        rows = table_rows(study(), table)
        assert {row.status for row in rows} == {"exact"}
        assert_in_ledger(rows)
    write_listings()
    for table, lines in ((9, 43), (10, 28)):
        with open(f"results/oepp/table{table}.csv", newline="") as file:
            assert [row["status"] for row in csv.DictReader(file)] == ["exact"] * lines


@pytest.fixture(scope="module")
def features(tmp_path_factory: pytest.TempPathFactory, real_data: Path) -> Path:
    """A work folder with two banks, ``planted`` and ``shuffled``, and the vectors of actions.

    A row of ``planted`` is noise and one linear map, by which no vector lies nearest to its own, of the vectors of the
    actions under way. ``shuffled`` gives each video the rows of another.
    """
    folder, random = tmp_path_factory.mktemp("planted"), np.random.default_rng(0)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("STEPLINE_MIRROR", str(real_data))
        fetch_release(oepp.RELEASES, "split1")
        pools = {action for part in PARTS for action in oepp.pool("split1", part)}
        text = {action: random.normal(size=D) for action in sorted(pools)}
        write_json(Path("text.json"), {action: [vector.tolist()] for action, vector in text.items()})
        turned = random.normal(size=(D, D)) / np.sqrt(D)
        seen = {action: turned @ vector for action, vector in text.items()}
        videos = [video for part in PARTS for video in oepp.load("split1", part)]
        with h5py.File("features.h5", "w") as file:
            for video in videos:
                n = int(max(step.end_s for step in video.steps)) + 2
                rows = random.normal(0, NOISE, (n, D)).astype(np.float32)
                for step in video.steps:
                    rows[int(step.start_s) : int(step.end_s) + 1] += seen[step.action]
                file[video.id] = rows
        ids = [video.id for video in videos]
        others = dict(zip(ids, random.permutation(ids).tolist(), strict=True))
        for name, named in (("planted", None), ("shuffled", others)):
            import_folder(Folder(Path("features.h5"), ids=named), name, "openevent", 1.0)
    return folder


PLANNERS = "mlp-t3", "transformer-t3", "pdpp-t3"


@pytest.mark.long
def test_planners_learn_what_is_planted(features: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(features)
    plan = study(**SMALL, features={"videoclip": {"video": "planted", "text": "./text.json"}})
    matching, frequent = (computed(plan, entry) for entry in ("matching-t3", "frequent-t3"))
    assert matching["base_acc"] < 2
    for entry in PLANNERS:
        learnt = computed(plan, entry)
        for baseline in (matching, frequent):
            assert learnt["base_acc"] > baseline["base_acc"] + 15, entry
            assert learnt["base_sr"] > baseline["base_sr"] + 5, entry
        assert learnt["novel_acc"] > matching["novel_acc"] + 5, entry


@pytest.mark.long
def test_planners_learn_nothing_from_other_videos(features: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(features)
    plan = study(**SMALL, features={"videoclip": {"video": "shuffled", "text": "./text.json"}})
    frequent = computed(plan, "frequent-t3")
    for entry in PLANNERS:
        learnt = computed(plan, entry)
        assert learnt["base_acc"] < frequent["base_acc"] + 3, entry
        assert learnt["base_sr"] < frequent["base_sr"] + 3, entry
