import copy
from math import ceil
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepline.datasets.coin import CoinEvent, CoinVideo
from stepline.datasets.crosstask import CrossTask, Task
from stepline.datasets.oepp import PARTS, SPLIT_FILES, Event, Part, Step
from stepline.datasets.openevent import (
    candidate_events,
    cluster,
    compare,
    rebuild,
    renames,
    sentence,
    source_steps,
    split_videos,
)
from stepline.errors import ReleaseError
from tests.benchmarks.oepp.synthetic import BOTH, EVENTS, contents


def coin_event(name: str, n: int) -> CoinEvent:
    return CoinEvent(id=0, name=name, domain="Drink", actions=("a",) * n)


def test_candidates_have_three_actions_and_stand_once() -> None:
    coin = {name: coin_event(name, n) for name, n in {"MakeTea": 3, "PlayCurling": 2, "UseEarplugs": 3}.items()}
    tasks = {
        number: Task(id=number, title=title, actions=("a", "b", "c"))
        for number, title in {"1": "Change a Tire", "2": "Make a Latte"}.items()
    }
    assert [(event.name, event.source) for event in candidate_events(coin, tasks)] == [
        ("MakeTea", "COIN"),
        ("MakeALatte", "CrossTask"),
    ]
    assert [event.name for event in candidate_events({"ChangeATire": coin_event("ChangeATire", 3)}, {})]


def test_the_sentence_is_the_papers() -> None:
    steps = ("tie the tourniquet", "disinfect", "collect blood", "pull out the needle and press with cotton")
    assert sentence("DrawBlood", steps) == (
        "Draw Blood: 1.tie the tourniquet 2.disinfect 3.collect blood 4.pull out the needle and press with cotton."
    )


@pytest.mark.parametrize(
    ("event", "name"),
    [
        ("ReplaceBatteryOnTVControl", "Replace Battery On TV Control"),
        ("ReplaceCDDriveWithSSD", "Replace CD Drive With SSD"),
        ("RefillAStapler", "Refill A Stapler"),
        ("UseEpinephrineAuto-injector", "Use Epinephrine Auto-injector"),
        ("MakeRJ45Cable", "Make RJ45 Cable"),
        ("AssembleDesktopPC", "Assemble Desktop PC"),
    ],
)
def test_names_are_parted_at_words_and_not_in_acronyms(event: str, name: str) -> None:
    assert sentence(event, ("a  b",)) == f"{name}: 1.a  b."


def at(*degrees: float) -> Any:
    radians = np.radians(degrees)
    return np.stack([np.cos(radians), np.sin(radians)], axis=1)


def test_a_vector_joins_the_first_cluster_whose_average_is_near() -> None:
    assert cluster(at(0, 90, 45, 45), 0.6) == ((0, 2, 3),)
    assert cluster(at(0, 50, 100), 0.6) == ((0, 1),)  # 100 is near 50, but not on average
    assert cluster(at(50, 100, 0), 0.6) == ((0, 1),)  # the order decides who is left
    assert cluster(at(0, 180, 5, 185) * 7, 0.6) == ((0, 2), (1, 3))
    assert cluster(at(0, 90, 200), 0.6) == ()


def test_a_cosine_at_the_threshold_is_not_above_it() -> None:
    vectors = np.eye(2)
    assert cluster(vectors, 0.0) == ()
    assert cluster(vectors, -0.01) == ((0, 1),)


def test_renames_are_the_actions_with_other_words() -> None:
    assert renames(events()) == (
        ("MakeTea", "prepare and add the tea", "add tea"),
        ("MakeTea", "stir", "stir mixture"),
        ("CleanBathtub", "scrub the bathtub", " wipe the bathtub"),
        ("MakeOrangeJuice", "juice the oranges", "squeeze oranges"),
    )


@given(st.integers(3, 60), st.integers(0, 5))
@settings(max_examples=20)
def test_the_parts_of_an_event_have_the_released_sizes(n: int, seed: int) -> None:
    ids = [f"v{number}" for number in range(n)]
    found = split_videos(ids, seed)
    n_test = ceil(0.2 * n)
    n_val = ceil(0.2 * (n - n_test))
    assert {part: len(each) for part, each in found.items()} == {
        "train": n - n_test - n_val,
        "val": n_val,
        "base": n_test,
    }
    assert sorted(video for each in found.values() for video in each) == sorted(ids)
    assert split_videos(ids[::-1], seed) == found


def test_seeds_split_in_different_ways_and_two_videos_cannot_be_split() -> None:
    ids = [f"v{number}" for number in range(30)]
    assert split_videos(ids, 0) != split_videos(ids, 1)
    with pytest.raises(ReleaseError, match="a, b: an event needs 3 videos to be split"):
        split_videos(["a", "b"], 0)


def events() -> dict[str, Event]:
    return {
        name: Event(
            name=name,
            domain=event["domain"],
            cluster=event["set"],
            actions=tuple(event["action_list"]),
            refined=tuple(event["new_action_list"]),
        )
        for name, event in EVENTS.items()
    }


@pytest.fixture(scope="module")
def released() -> dict[Part, list[dict[str, Any]]]:
    found = contents()
    return {part: found[SPLIT_FILES[part]] for part in PARTS}


def sources(released: dict[Part, list[dict[str, Any]]]) -> tuple[dict[str, CoinVideo], CrossTask]:
    """Return the sources that the released files were made of, and a video of each that they lack."""
    coin = {"more": CoinVideo(vid="more", event="MakeTea", event_id=100, steps=())}
    crosstask = CrossTask(tasks={}, listed=(), validation=(), videos={("53193", "more"): ()})
    for record in (record for part in PARTS for record in released[part]):
        event = EVENTS[record["task_name"]]
        original = dict(zip(event["new_action_list"], event["action_list"], strict=True))
        for_coin = record["dataset"] == "COIN"
        rounded = 0.0 if for_coin else 0.25
        steps = tuple(
            Step(
                action=original[each["action"]],
                start_s=each["segment"][0] + rounded,
                end_s=each["segment"][1] - rounded,
            )
            for each in record["anno"]
        )
        if for_coin:
            number = record["task_id_old"]
            coin[record["vid"]] = CoinVideo(vid=record["vid"], event=record["task_name"], event_id=number, steps=steps)
        else:
            crosstask.videos[record["task_id_old"], record["vid"]] = steps
    return coin, crosstask


def test_what_differs_is_counted(released: dict[Part, list[dict[str, Any]]]) -> None:
    other = copy.deepcopy(released)
    other["train"][0]["anno"][0]["segment"][1] += 0.5
    other["train"][1]["anno"][0]["action"] = "pour water"
    other["val"][0]["vid"] = "unknown"
    assert [released[part][n]["task_name"] for part, n in (("train", 0), ("train", 1), ("val", 0))] == ["MakeTea"] * 3
    [line] = [line for line in compare(other, events(), source_steps(*sources(released))) if line.event == "MakeTea"]
    assert (line.in_release, line.rebuilt, line.absent) == (9, 8, 2)
    assert (line.same_segments, line.same_actions) == (7, 7)


def test_a_seed_splits_the_base_events_anew(released: dict[Part, list[dict[str, Any]]]) -> None:
    held = source_steps(*sources(released))
    made = rebuild(released, events(), held, seed=1)
    assert made["novel"] == released["novel"]
    assert {part: len(made[part]) for part in PARTS} == {"train": 20, "val": 8, "base": 8, "novel": 12}
    moved = {part: {record["vid"] for record in made[part]} for part in PARTS}
    assert moved["base"] != {record["vid"] for record in released["base"]}
    assert made == rebuild(released, events(), held, seed=1) != rebuild(released, events(), held, seed=2)
    assert sum(record["vid"] == BOTH for part in PARTS for record in made[part]) == 2


def test_an_action_that_its_event_does_not_list_is_refused(released: dict[Part, list[dict[str, Any]]]) -> None:
    coin, crosstask = sources(released)
    vid = released["train"][0]["vid"]
    steps = (Step(action="boil  water", start_s=0, end_s=1),)
    coin[vid] = CoinVideo(vid=vid, event="MakeTea", event_id=100, steps=steps)
    with pytest.raises(ReleaseError, match=f"COIN's {vid} has 'boil  water', which MakeTea does not list"):
        rebuild(released, events(), source_steps(coin, crosstask))
