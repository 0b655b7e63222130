"""The verb `oepp`: the released files made anew, clusters of the events' texts, lists, and published features."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stepline
from stepline.backbones import registry
from stepline.cli import main
from stepline.datasets.oepp import RELEASES, load, without
from stepline.io import sha256_file
from tests.benchmarks.oepp.synthetic import CROSSTASK, EVENTS, contents, write_releases
from tests.datasets.fetched import write_release
from tests.datasets.oepp_sources import write_coin
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


def write_crosstask() -> None:
    write_release(RELEASES, "crosstask", {"crosstask_release.zip": Path("crosstask_release.zip").read_bytes()})


def rows(path: str) -> list[dict[str, str]]:
    with Path(path).open(newline="") as file:
        return list(csv.DictReader(file))


def test_of_both_sources_the_released_files_are_rebuilt_to_the_byte(capsys: pytest.CaptureFixture[str]) -> None:
    write_crosstask()
    assert main(["--log", "rebuild.log", "oepp", "rebuild"]) == 0
    assert capsys.readouterr().out == (
        "results/oepp/rebuilt.csv: 48 of 48 videos rebuilt, 48 with the released segments\n"
    )
    assert without() == ""
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
    assert "39 of 48 videos rebuilt, 39 with the released segments; CrossTask's release is missing: run `stepline " in (
        capsys.readouterr().out
    )
    latte = next(row for row in rows("results/oepp/rebuilt.csv") if row["event"] == "MakeALatte")
    assert [latte[name] for name in ("in_source", "in_release", "rebuilt", "absent")] == ["", "9", "", ""]
    assert latte["reason"].endswith("run `stepline fetch oepp/crosstask`")
    assert without().startswith("rebuilt without 9 of 48 videos; CrossTask's release is missing: ")
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
    write_crosstask()
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
    assert main(["oepp", "cluster", "--encoder", "minilm", "--threshold", "-1"]) == 0
    assert " 1 clusters of 6, " in capsys.readouterr().out


def test_an_event_alone_is_in_no_cluster(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "text_encoder", lambda name, config: Letters())
    monkeypatch.setattr(Letters, "tokens", lambda self, text: [int(text.startswith("Make Orange"))])
    assert main(["oepp", "cluster", "--encoder", "minilm"]) == 0
    assert capsys.readouterr().out.endswith("1 clusters of 4, among them 4 of OpenEvent's 6\n")
    (alone,) = [row for row in rows("results/oepp/clusters-minilm.csv") if row["event"] == "MakeOrangeJuice"]
    assert (alone["cluster"], alone["openevent_cluster"]) == ("", "0")


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


def test_lists_are_written_beside_the_papers(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["oepp", "list"]) == 0
    found = {row["event"]: row for row in rows("results/oepp/table9.csv")}
    assert (found["MakeTea"]["part"], found["CleanToilet"]["part"]) == ("base", "novel")
    assert {row["status"] for row in rows("results/oepp/table10.csv")} == {"exact", "ours", "absent"}
    (RELEASES.folder("split1") / "release.json").unlink()
    assert main(["oepp", "list"]) == 2
    assert capsys.readouterr().err.endswith("split1 holds no release: run `stepline fetch oepp/split1`\n")


@pytest.fixture
def theirs() -> Path:
    """A folder of features with both sources, and of the video that both of them have."""
    folder = Path("theirs")
    folder.mkdir()
    return folder


def features(number: float) -> Any:
    return np.full((4, 3), number, np.float32)


LATTE = "train-MakeALatte-0"
TEA = "train-MakeTea-0"


def test_the_authors_files_are_imported(theirs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number, name in enumerate((f"COIN_{TEA}", f"CrossTask_{LATTE}", "COIN_both-sources", "CrossTask_both-sources")):
        np.save(theirs / f"{name}.npy", features(number))
    for name in ("COIN_unknown", LATTE, f"COIN_{LATTE}"):
        np.save(theirs / f"{name}.npy", features(9))
    assert main(["oepp", "import", "theirs", "--name", "videoclip-released"]) == 0
    bank = stepline.open_bank("videoclip-released", "openevent")
    assert {video: rows.tolist() for video, rows in bank.items()} == {
        f"COIN_{TEA}": features(0).tolist(),
        f"CrossTask_{LATTE}": features(1).tolist(),
        "COIN_both-sources": features(2).tolist(),
        "CrossTask_both-sources": features(3).tolist(),
    }
    assert bank.hop_s == 1
    folder = next(Path("features/videoclip-released").iterdir())
    assert capsys.readouterr().out == f"{folder}: 4 of 48 videos; 3 files with other names left out\n"


def test_p3ivs_files_are_imported_by_their_names_and_dictionaries(
    theirs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def save(name: str, number: float) -> None:
        content = {"frames_features": features(number), "cls_name": name, "steps_ids": np.array([1, None], object)}
        np.save(theirs / f"{name}.npy", np.array(content, object))

    for number, name in enumerate((f"MakeTea_100_{TEA}", f"53193_{LATTE}", "MakeTea_100_both-sources")):
        save(name, number)
    save("53193_both-sources", 3)
    for name in (f"MakeTea_101_{TEA}", f"100_{TEA}", f"MakeALatte_53193_{LATTE}"):
        save(name, 9)
    assert main(["oepp", "import", "theirs", "--name", "s3d-p3iv"]) == 0
    bank = stepline.open_bank("s3d-p3iv", "openevent")
    assert {video: rows[0, 0] for video, rows in bank.items()} == {
        f"COIN_{TEA}": 0,
        f"CrossTask_{LATTE}": 1,
        "COIN_both-sources": 2,
        "CrossTask_both-sources": 3,
    }
    assert "4 of 48 videos; 3 files with other names left out" in capsys.readouterr().out


class Hostile:
    def __reduce__(self) -> Any:
        return Path.touch, (Path("run"),)


def test_a_hostile_file_is_refused_and_nothing_is_run(theirs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save(theirs / f"53193_{LATTE}.npy", np.array({"frames_features": features(0), "more": Hostile()}, object))
    assert main(["oepp", "import", "theirs", "--name", "s3d-p3iv"]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"error: theirs/53193_{LATTE}.npy holds no features, or is damaged (it names ")
    assert said.endswith("which is not executed)\n")
    assert said.count("\n") == 1
    assert not Path("run").exists()
    assert not Path("features").exists()


@pytest.mark.parametrize(
    ("names", "bank", "message"),
    [
        ([f"COIN_{TEA}"], "s3d-oepp", "error: name 's3d-oepp' is already used by a backbone or text encoder"),
        ([f"COIN_{TEA}", f"MakeTea_100_{TEA}"], "x", f"error: COIN_{TEA} is in theirs/COIN_{TEA}.npy and in theirs/"),
        ([TEA], "x", "error: theirs holds no features"),
    ],
)
def test_what_cannot_be_imported_is_one_line(
    names: list[str], bank: str, message: str, theirs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in names:
        np.save(theirs / f"{name}.npy", features(0))
    assert main(["oepp", "import", "theirs", "--name", bank]) == 2
    said = capsys.readouterr().err
    assert said.startswith(message)
    assert said.count("\n") == 1
