"""The verb `htstep`: annotation made up."""

import argparse
from pathlib import Path

import pytest

from stepline.benchmarks.htstep.verbs import add
from stepline.datasets.htstep import RELEASES, is_made, labelled_splits, load
from stepline.errors import ConfigError
from stepline.fetch import fetch_release
from tests.datasets.test_htstep import write_v1


def run(*words: str) -> None:
    parser = argparse.ArgumentParser()
    add(parser.add_subparsers())
    parsed = parser.parse_args(["htstep", *words])
    parsed.run(parsed)


@pytest.fixture(autouse=True)
def _v1(monkeypatch: pytest.MonkeyPatch) -> None:
    write_v1()
    Path("mirror").mkdir()
    monkeypatch.setenv("STEPLINE_MIRROR", "mirror")


@pytest.mark.parametrize(
    ("words", "splits"),
    [
        ((), ("train", "val_seen", "val_unseen", "test_seen", "test_unseen")),
        (("--withhold", "--seed", "4"), ("train", "val_seen")),
    ],
)
def test_the_mirror_holds_what_is_made(
    words: tuple[str, ...], splits: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    run("make-annotations", "mirror", *words)
    printed = capsys.readouterr().out.splitlines()
    assert any(line.startswith("videos: ") and line.endswith(" (paper: 19700)") for line in printed)
    assert printed[-3:-1] == [
        "mirror/htstep/annotations/annotations.json",
        "mirror/htstep/candidates/video_candidate_steps.json",
    ]
    assert (labelled_splits(), is_made()) == (splits, True)
    for release in ("annotations", "candidates"):
        fetch_release(RELEASES, release)
    assert all(recording.steps for split in splits for recording in load(split))
    [withheld] = load("test_unseen")
    assert (withheld.labelled, bool(withheld.steps)) == ("test_unseen" in splits, True)


@pytest.mark.parametrize("there", ["annotations/annotations.json", "candidates/video_candidate_steps.json"])
def test_nothing_is_overwritten(there: str) -> None:
    file = Path("mirror/htstep") / there
    file.parent.mkdir(parents=True)
    file.write_text("the authors'")
    with pytest.raises(ConfigError, match=rf"{there} exists already: remove it, or name another folder$"):
        run("make-annotations", "mirror")
    assert [path.read_text() for path in Path("mirror").rglob("*.json")] == ["the authors'"]
