"""Fits and predictions of one entry at one window length."""

from pathlib import Path

from stepline.benchmarks.spacewalk.material import Material
from stepline.benchmarks.spacewalk.methods import make_method, matching
from stepline.benchmarks.spacewalk.predictions import Prediction, write_predictions
from stepline.datasets.schema import Split
from stepline.io import write_bytes
from stepline.models.linear import fit_linear
from stepline.progress import progress


def lacking(material: Material) -> list[str]:
    """Return what keeps the entry from being computed: a split that the subset or absent videos leave empty."""
    entry = material.entry
    splits: list[Split] = ["test"]
    if "train" in entry.inputs:
        splits.append("train")
    if entry.trained:
        splits.append("val")
    if left_out := [split for split in splits if not material.listed(split)]:
        return [f"split:{split}" for split in left_out]
    return [] if all(material.recordings(split) for split in splits) else [material.absent]


def fit(material: Material, context_s: float, seed: int, path: Path) -> None:
    """Fit the entry on train, choose the epoch on val, and write the checkpoint of one seed to ``path``.

    The checkpoint is empty where the entry lacks something.
    """
    if lacking(material):
        write_bytes(path, b"")
        return
    last_layer = material.study_config["last_layer"]
    fit_linear(
        matching(material, context_s, "train"),
        matching(material, context_s, "val"),
        path,
        epochs=last_layer["epochs"],
        batch_size=last_layer["batch_size"],
        learning_rate=last_layer["learning_rate"],
        seed=seed,
    )


def predict(material: Material, context_s: float | None, fits: list[Path], path: Path) -> None:
    """Write the entry's predictions of the test recordings, and of val where scoring chooses a threshold there.

    fits: one checkpoint per seed, for trained entries. Where the entry lacks something, the file has no rows and says
    what.
    """
    entry = material.entry
    needs = lacking(material)
    predictions = []
    if not needs:
        splits: tuple[Split, ...] = ("val", "test") if entry.trained else ("test",)
        method = make_method(material, context_s, fits)
        for split in splits:
            items = material.items(split)
            for video in progress(material.recordings(split), what=entry.id, unit="videos"):
                ids = [item.id for item in items[video]]
                predictions += [
                    Prediction(seed=seed, split=split, video=video, ids=ids, chosen=chosen, scores=scores)
                    for seed, chosen, scores in method(video, items[video])
                ]
    about = {
        "needs": needs,
        "selection": _selection(material),
        "thresholded": entry.trained,
    }
    write_predictions(path, predictions, about=about)


def _selection(material: Material) -> str:
    if "train" not in material.entry.inputs:
        return ""
    used, listed = len(material.recordings("train")), len(material.release.splits["train"])
    fitted = f"fitted on {used} of {listed} training recordings"
    return f"{fitted}; epoch of the least validation loss" if material.entry.trained else fitted
