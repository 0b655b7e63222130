"""OpenEvent as released, its windows and how it was made, from the public files."""

import csv
import json
from collections import Counter
from math import ceil
from pathlib import Path

import pytest

from stepline.benchmarks.oepp.windows import windows
from stepline.datasets import coin, openevent
from stepline.datasets.crosstask import Task
from stepline.datasets.oepp import (
    PARTS,
    RELEASES,
    SPLIT_FILES,
    Part,
    clusters,
    events,
    load,
    pool,
    records,
    text_features,
    write_rebuilt,
)
from stepline.fetch import fetch_release
from stepline.io import sha256_file


@pytest.fixture
def data(real_data: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("STEPLINE_MIRROR", str(real_data))
    fetch_release(RELEASES, "split1")
    return real_data / "oepp"


def table(data: Path, name: str) -> list[dict[str, str]]:
    [path] = (data / "paper_tables").glob(f"{name}_*.csv")
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("part", PARTS)
def test_windows_without_padding_are_those_that_need_none(data: Path, part: Part) -> None:
    for horizon in (3, 4, 5, 6):
        padded = windows(load("split1", part), horizon, "repeat_first")
        assert windows(load("split1", part), horizon, "drop") == [each for each in padded if not each.padded]


def test_the_clusters_are_the_papers(data: Path) -> None:
    found = clusters("split1")
    assert Counter((str(line.cluster), line.event, line.domain) for line in found) == Counter(
        (row["cluster"], row["event"], row["domain"]) for row in table(data, "table9")
    )
    assert Counter(line.part for line in found) == {"base": 29, "novel": 14}
    assert [line.cluster for line in found if line.part == "novel"] == [*range(14)]


def test_two_classes_of_the_base_pool_differ_in_a_space(data: Path) -> None:
    base, novel = pool("split1", "base"), pool("split1", "novel")
    assert (len(base), len(novel), len({*base} & {*novel})) == (122, 55, 16)
    assert len({" ".join(action.split()) for action in base}) == 121
    assert " wipe the leather" in base
    for features, dimension in (("videoclip", 768), ("s3d", 512)):
        vectors = text_features("split1", features)  # type: ignore[arg-type]
        assert (len(vectors), {*map(len, vectors.values())}) == (161, {dimension})
        assert vectors["make the  detergent"] == vectors["make the detergent"]


def test_the_sizes_of_the_parts_follow_the_rule(data: Path) -> None:
    counts = {part: Counter(video.event for video in load("split1", part)) for part in PARTS}
    assert len(counts["train"]) == 29
    for event, n_train in counts["train"].items():
        n = n_train + counts["val"][event] + counts["base"][event]
        n_test = ceil(0.2 * n)
        assert counts["base"][event] == n_test
        assert counts["val"][event] == ceil(0.2 * (n - n_test))


def test_coins_part_is_rebuilt_to_the_byte(data: Path) -> None:
    fetch_release(RELEASES, "coin")
    held = openevent.source_steps(
        coin.videos(*(RELEASES.release_file("coin", name) for name in ("coin_train_70.json", "coin_test_30.json"))),
        None,
    )
    released, named = records("split1"), events("split1")
    lines = [line for line in openevent.compare(released, named, held) if line.source == "COIN"]
    assert len(lines) == 39
    assert all(line.in_release == line.same_segments == line.same_actions for line in lines)
    assert (sum(line.in_release for line in lines), sum(line.absent for line in lines)) == (2126, 14)
    made = openevent.rebuild(released, named, held)
    for part in PARTS:
        kept = [record for record in released[part] if record["dataset"] == "COIN"]
        assert json.dumps(made[part]) == json.dumps(kept)
    write_rebuilt(made, seed=None)
    novel = SPLIT_FILES["novel"]
    assert sha256_file(RELEASES.release_file("rebuilt", novel)) == sha256_file(data / novel)


def test_coin_has_172_candidate_events(data: Path) -> None:
    fetch_release(RELEASES, "coin")
    taxonomy = coin.taxonomy(RELEASES.release_file("coin", "taxonomy.xlsx"))
    assert len(taxonomy) == 180
    candidates = {event.name: event for event in openevent.candidate_events(taxonomy, {})}
    assert len(candidates) == 172
    named = events("split1")
    of_coin = [line for line in clusters("split1") if line.event in candidates]
    assert len(of_coin) == 39
    assert all(candidates[line.event].actions == named[line.event].actions for line in of_coin)
    assert all(taxonomy[line.event].domain == line.domain for line in of_coin)


def test_with_crosstasks_18_tasks_there_are_189_candidate_events(data: Path) -> None:
    titles = [
        "Make Jello Shots",
        "Build Simple Floating Shelves",
        "Make Taco Salad",
        "Grill Steak",
        "Make Kimchi Fried Rice",
        "Make Meringue",
        "Make a Latte",
        "Make Bread and Butter Pickles",
        "Make Lemonade",
        "Make French Toast",
        "Jack Up a Car",
        "Make Kerala Fish Curry",
        "Make Banana Ice Cream",
        "Add Oil to Your Car",
        "Change a Tire",
        "Make Irish Coffee",
        "Make French Strawberry Cake",
        "Make Pancakes",
    ]
    tasks = {str(n): Task(id=str(n), title=title, actions=("a", "b", "c")) for n, title in enumerate(titles)}
    fetch_release(RELEASES, "coin")
    taxonomy = coin.taxonomy(RELEASES.release_file("coin", "taxonomy.xlsx"))
    names = {event.name for event in openevent.candidate_events(taxonomy, tasks)}
    assert len(names) == 189
    assert "ChangeATire" not in names
    assert {line.event for line in clusters("split1")} <= names
