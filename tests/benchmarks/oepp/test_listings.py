import csv
from pathlib import Path

from stepline.benchmarks.oepp.benchmark import Oepp
from stepline.benchmarks.oepp.listings import write_listings
from stepline.datasets.oepp import EVENTS_FILE, RELEASES
from tests.benchmarks.oepp.synthetic import EVENTS, contents
from tests.datasets.fetched import write_release


def rows(target: str) -> list[dict[str, str]]:
    with Path("results/oepp", f"{target}.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def paper(target: str) -> list[dict[str, str]]:
    with open(Oepp.folder / "paper" / f"{target}.csv", newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_events_stand_by_cluster_beside_the_papers() -> None:
    (there,) = [row for row in paper("table9") if row["event"] == "MakeOrangeJuice"]
    assert (there["cluster"], there["domain"]) == ("11", "Drink and Snack")
    content = contents()
    content[EVENTS_FILE]["MakeOrangeJuice"]["set"] = 11
    content[EVENTS_FILE]["CleanToilet"] |= {"set": 13, "domain": "Hobbies"}  # the paper's cluster, not its domain
    write_release(RELEASES, "split1", content)
    write_listings()
    found = {row["event"]: row for row in rows("table9")}
    ours = [row["event"] for row in rows("table9")][: len(EVENTS)]
    assert ours == ["MakeTea", "MakeALatte", "CleanWoodenFloor", "CleanBathtub", "MakeOrangeJuice", "CleanToilet"]
    assert found["MakeOrangeJuice"] == {
        "cluster": "11",
        "event": "MakeOrangeJuice",
        "domain": "Drink and Snack",
        "part": "novel",
        "status": "exact",
    }
    printed = {row["event"] for row in paper("table9")}
    assert {name for name in EVENTS if found[name]["status"] == "ours"} == EVENTS.keys() - printed
    assert found["MakeALatte"]["status"] == found["CleanToilet"]["status"] == "differs"
    assert {name for name, row in found.items() if row["status"] == "absent"} == printed - EVENTS.keys()
    assert found["DrawBlood"]["part"] == ""
    absent = [row["event"] for row in rows("table9") if row["status"] == "absent"]
    assert [*found] == [*ours, *absent] == [row["event"] for row in rows("table9")]
    assert absent == [row["event"] for row in paper("table9") if row["event"] in absent]


def test_actions_with_other_words_stand_beside_the_papers() -> None:
    content = contents()
    first, second, *others = paper("table10")
    tea = content[EVENTS_FILE]["MakeTea"]
    printed = f" {first['new_action_label']} "
    alike = first | {"event": "OtherEvent"}
    for number, row, refined in ((2, alike, printed), (0, first, printed), (1, second, "other words")):
        name = row["event"]
        content[EVENTS_FILE][name] = {
            **tea,
            "action_list": [row["action_label"].replace(" ", "  ")],
            "new_action_list": [refined],
            "action_num": 1,
            "set": number,
        }
    write_release(RELEASES, "split1", content)
    write_listings()
    found = {(row["event"], " ".join(row["action_label"].split())): row for row in rows("table10")}
    assert found[first["event"], first["action_label"]]["status"] == "exact"
    assert found[second["event"], second["action_label"]]["status"] == "differs"
    assert found["OtherEvent", first["action_label"]]["status"] == "ours"
    assert found["MakeTea", "prepare and add the tea"]["status"] == "exact"
    assert found["CleanBathtub", "scrub the bathtub"]["status"] == "exact"  # a blank before it counts for nothing
    assert found["MakeTea", "stir"] == {
        "event": "MakeTea",
        "action_label": "stir",
        "new_action_label": "stir mixture",
        "status": "ours",
    }
    assert ("MakeTea", "boil water") not in found
    found_exact = {key for key, row in found.items() if row["status"] == "exact"}
    absent = {(row["event"], row["action_label"]) for row in rows("table10") if row["status"] == "absent"}
    assert absent == {(row["event"], row["action_label"]) for row in others} - found_exact
