"""`stepline oepp`: the released files made anew, and the clusters of the events' texts."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stepline.backbones import registry
from stepline.cli import main
from stepline.datasets.oepp import RELEASES, load
from stepline.io import sha256_file
from tests.benchmarks.oepp.synthetic import CROSSTASK, EVENTS, contents, write_releases
from tests.datasets.oepp_sources import write_coin, write_source
from tests.datasets.test_crosstask import archive


@pytest.fixture(autouse=True)
def _releases() -> None:
    """The released files, and COIN's annotation."""
    Path("config.yaml").write_text("datasets: {}\n")
    write_releases()
    crosstask = write_coin()
    [[name, number]] = CROSSTASK.items()
    actions = EVENTS[name]["action_list"]
    files: dict[str, str | bytes] = {
        "tasks_primary.txt": f"{number}\nMake a Latte\nu\n{len(actions)}\n{','.join(actions)}\n\n",
        "videos.csv": "".join(f"{number},{vid},u\n" for _, vid in crosstask.videos),
        "videos_val.csv": "",
    }
    for (_, vid), steps in crosstask.videos.items():
        lines = [f"{actions.index(step.action) + 1},{step.start_s},{step.end_s}\n" for step in steps]
        files[f"annotations/{number}_{vid}.csv"] = "".join(lines)
    archive(files)


def rows(path: str) -> list[dict[str, str]]:
    with Path(path).open(newline="") as file:
        return list(csv.DictReader(file))


def test_of_both_sources_the_released_files_are_rebuilt_to_the_byte(capsys: pytest.CaptureFixture[str]) -> None:
    write_source("crosstask", Path("crosstask_release.zip"))
    assert main(["--log", "rebuild.log", "oepp", "rebuild"]) == 0
    assert capsys.readouterr().out == (
        "results/oepp/rebuilt.csv: 48 of 48 videos rebuilt, 48 with the released segments\n"
    )
    for path in contents():
        assert sha256_file(RELEASES.release_file("rebuilt", path)) == sha256_file(RELEASES.release_file("split1", path))
    [latte] = [row for row in rows("results/oepp/rebuilt.csv") if row["event"] == "MakeALatte"]
    assert latte == {
        "event": "MakeALatte",
        "source": "CrossTask",
        "in_source": "10",
        "in_release": "9",
        "rebuilt": "9",
        "same_segments": "9",
        "same_actions": "9",
        "renamed": "0",
        "absent": "1",
        "reason": "",
    }


def test_without_crosstask_its_numbers_are_not_known(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["oepp", "rebuild"]) == 0
    assert (
        "39 of 48 videos rebuilt, 39 with the released segments; CrossTask's release is not here: run `stepline "
        in (capsys.readouterr().out)
    )
    latte = next(row for row in rows("results/oepp/rebuilt.csv") if row["event"] == "MakeALatte")
    assert [latte[name] for name in ("in_source", "in_release", "rebuilt", "absent")] == ["", "9", "", ""]
    assert latte["reason"].endswith("run `stepline fetch oepp/crosstask`")
    assert {video.source for video in load("rebuilt", "train")} == {"COIN"}


def test_a_seed_makes_a_split_of_ones_own(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["oepp", "rebuild", "--seed", "5"]) == 0
    manifest = RELEASES.folder("rebuilt") / "release.json"
    assert json.loads(manifest.read_text())["seed"] == 5
    first = load("rebuilt", "base")
    assert main(["oepp", "rebuild", "--seed", "5"]) == 0
    assert load("rebuilt", "base") == first
    assert {video.id for video in first} != {video.id for video in load("split1", "base") if video.source == "COIN"}
    capsys.readouterr()
    assert main(["oepp", "rebuild", "--seed", "-1"]) == 2
    assert capsys.readouterr().err == "error: --seed -1: must be from 0 to 4294967295\n"


class Letters:
    """An encoder to which texts are alike that begin alike."""

    def tokens(self, text: str) -> list[int]:
        return [int(text.startswith("Make"))]

    def encode(self, tokens: list[int]) -> Any:
        return np.eye(2, dtype=np.float32)[tokens[0]]


def test_clusters_are_listed_beside_the_released_ones(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "text_encoder", lambda name, config: Letters())
    write_source("crosstask", Path("crosstask_release.zip"))
    assert main(["oepp", "cluster", "--encoder", "minilm"]) == 0
    assert capsys.readouterr().out == (
        "results/oepp/clusters-minilm.csv: 6 candidate events, 2 clusters of 6, among them 6 of OpenEvent's 6\n"
    )
    found = rows("results/oepp/clusters-minilm.csv")
    assert {(row["event"], row["cluster"], row["openevent_cluster"], row["part"]) for row in found} == {
        ("MakeTea", "0", "0", "base"),
        ("MakeALatte", "0", "0", "base"),
        ("MakeOrangeJuice", "0", "0", "novel"),
        ("CleanWoodenFloor", "1", "1", "base"),
        ("CleanBathtub", "1", "1", "base"),
        ("CleanToilet", "1", "1", "novel"),
    }
    assert found[0]["sentence"] == "Make Tea: 1.boil water 2.prepare and add the tea 3.pour water 4.stir."


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--encoder", "bert"], "error: encoder 'bert' is not known; choose from minilm, "),
        (["--encoder", "minilm", "--threshold", "nan"], "error: --threshold nan: must be a cosine, from -1 to 1"),
    ],
)
def test_what_cannot_be_clustered_is_one_line(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["oepp", "cluster", *arguments]) == 2
    assert capsys.readouterr().err.startswith(message)
