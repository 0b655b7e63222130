"""The specs of the existing features."""

from pathlib import Path

from stepline import paths
from stepline.io import read_json


def specs() -> dict[Path, dict[str, bool]]:
    """Return the folders of all specs, each with its datasets, and whether the last plan of the dataset names the spec.

    It is True if no plan names a spec of the backbone: plans do not record text encoders and imported features.
    """
    found: dict[Path, dict[str, bool]] = {}
    for folder in sorted(path.parent for path in Path("features").glob("*/*/spec.json")):
        current = noted(folder.parent.name)
        datasets = sorted(path.name for path in folder.iterdir() if path.is_dir() and path.name != "manifests")
        found[folder] = {dataset: current.get(dataset, folder.name) == folder.name for dataset in datasets}
    return found


def noted(backbone: str) -> dict[str, str]:
    """Return the configured spec of a backbone for each dataset, according to the last plans."""
    path = paths.current_specs(backbone)
    current: dict[str, str] = read_json(path) if path.exists() else {}
    return current
