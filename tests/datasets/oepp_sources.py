"""The small OpenEvent's sources as they stand after they are fetched: COIN's annotation."""

import json
from pathlib import Path

from stepline.datasets.crosstask import CrossTask
from stepline.datasets.oepp import PARTS, RELEASES, SPLIT_FILES
from stepline.io import sha256_file, write_json
from tests.benchmarks.oepp.synthetic import CROSSTASK, EVENTS, contents
from tests.datasets.test_coin import workbook
from tests.datasets.test_openevent import sources


def write_source(release: str, *files: Path) -> None:
    """Move files to where they stand after ``release`` is fetched."""
    folder = RELEASES.folder(release)
    folder.mkdir(parents=True)
    for file in files:
        file.rename(folder / file.name)
    write_json(folder / "release.json", {"files": {file.name: sha256_file(folder / file.name) for file in files}})


def write_coin() -> CrossTask:
    """Write the release ``coin``; return what is not COIN's."""
    content = contents()
    coin, crosstask = sources({part: content[SPLIT_FILES[part]] for part in PARTS})
    whole = [
        {
            video.vid: {
                "class": video.event,
                "recipe_type": video.event_id,
                "annotation": [{"label": step.action, "segment": [step.start_s, step.end_s]} for step in video.steps],
            }
        }
        for video in coin.values()
    ]
    train, test = Path("coin_train_70.json"), Path("coin_test_30.json")
    train.write_text(json.dumps(whole[:20]))
    test.write_text(json.dumps(whole[20:]))
    of_coin = {name: event for name, event in EVENTS.items() if name not in CROSSTASK}
    taxonomy = workbook(
        [(event["domain"], name) for name, event in of_coin.items()],
        [(number, name, 0, action) for number, name in enumerate(of_coin) for action in of_coin[name]["action_list"]],
    )
    write_source("coin", train, test, taxonomy)
    return crosstask
