"""The small OpenEvent's sources as they stand after they are fetched: COIN's annotation."""

from stepline.datasets.crosstask import CrossTask
from stepline.datasets.oepp import PARTS, RELEASES, SPLIT_FILES
from tests.benchmarks.oepp.synthetic import CROSSTASK, EVENTS, contents
from tests.datasets.fetched import write_release
from tests.datasets.test_coin import release
from tests.datasets.test_openevent import sources


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
    of_coin = {name: event for name, event in EVENTS.items() if name not in CROSSTASK}
    made = release(
        whole[:20],
        whole[20:],
        [(event["domain"], name) for name, event in of_coin.items()],
        [(number, name, 0, action) for number, name in enumerate(of_coin) for action in of_coin[name]["action_list"]],
    )
    write_release(RELEASES, "coin", made)
    return crosstask
