"""The metrics of OEPP: metrics of plans by split, and counts of a release."""

from collections.abc import Mapping

from stepline.benchmark import Metric, UnavailableError
from stepline.datasets import oepp
from stepline.needs import Need

SPLITS = {"val": "val", "base": "test base", "novel": "test novel"}
"""The splits on which plans are evaluated, with their names in tables."""
COUNTED = ("domains", "events", "actions", "videos", "segments")
"""The counts of Tables 1 and 8, whose column "Actions" has the sizes of the action pools."""
PLANS = (
    "a window is each run of T consecutive actions of a video; of a shorter video, all its actions after copies of the "
    "first (with padding=drop, none). A plan has T indices into the split's action pool; no action (-1) is wrong and "
    "in no set, and a guess (-2) counts with its expectation over the pool"
)
SETS = "the IoU of the sets of predicted and true actions of the window"
METRICS = {
    f"{split}_{name}": Metric(
        title=f"{split.capitalize()} {title}",
        definition=f"{definition}; {PLANS}",
        options=("miou",) if name == "miou" else (),
    )
    for split in SPLITS
    for name, title, definition in (
        ("sr", "SR", "the share of windows whose actions are all right, each in its place"),
        ("acc", "Acc", "the share of actions that are right in their place, over the actions of all windows"),
        ("miou", "mIoU", f"the mean over windows of {SETS}; with miou=batch, of its batch of 32 windows"),
    )
} | {
    name: Metric(
        title=name.capitalize(), definition=f"the number of {name} of the release, or of its part", unit="count"
    )
    for name in COUNTED
}
METRICS["actions"] = Metric(
    title="Actions in the pool", definition="the size of the action pool of the release, or of its part", unit="count"
)


def counted(release: str, part: str) -> Mapping[str, float]:
    """Return the counts of a part of a release, or of all of it (Tables 1, 8)."""
    if not oepp.is_here(release):
        raise UnavailableError(Need("release", f"oepp/{release}"))
    (found,) = (each for each in oepp.statistics(release) if each.part == part)
    return {name: getattr(found, name) for name in COUNTED}
