"""Fits and predictions of one entry at one window length."""

from pathlib import Path

from stepline.benchmarks.spacewalk.material import Material
from stepline.benchmarks.spacewalk.methods import fit as fit_method
from stepline.benchmarks.spacewalk.methods import make_method
from stepline.benchmarks.spacewalk.predictions import Prediction, write_predictions
from stepline.datasets.schema import Split
from stepline.datasets.studies import STEP_RECOGNITION
from stepline.io import write_bytes
from stepline.progress import progress


def lacking(material: Material, *, fitting: bool = False) -> list[str]:
    """Return what keeps the entry from being computed: a split that the subset or absent videos leave empty.

    Or one without samples: of a step, where the entry is fitted to steps. fitting: whether test is not asked for, as a
    fit does not read it.
    """
    entry = material.entry
    splits: list[Split] = [] if fitting else ["test"]
    if "train" in entry.inputs:
        splits.append("train")
    if entry.trained or "val" in material.plan.predicted_from(entry):
        splits.append("val")
    if left_out := [split for split in splits if not material.listed(split)]:
        return [f"split:{split}" for split in left_out]
    if not all(material.recordings(split) for split in splits):
        return [material.absent]
    used = [split for split in splits if split == "test" or entry.trained]
    return [f"samples:{material.release.name}/{entry.task}/{split}" for split in used if not _sampled(material, split)]


def _sampled(material: Material, split: Split) -> bool:
    items = material.items(split)
    fitted = split != "test" and material.entry.task == STEP_RECOGNITION
    return any(item.label > 0 or not fitted for video in material.recordings(split) for item in items[video])


def fit(material: Material, context_s: float | None, seed: int, path: Path) -> None:
    """Fit the entry on train, choose the epoch on val, and write the checkpoint of one seed to ``path``.

    The checkpoint is empty where the entry lacks something.
    """
    if lacking(material, fitting=True):
        write_bytes(path, b"")
        return
    fit_method(material, context_s, seed, path)


def predict(material: Material, context_s: float | None, fits: list[Path], path: Path) -> None:
    """Write the entry's predictions of the test recordings, and of val where scoring chooses a threshold there.

    fits: one checkpoint per seed, for trained entries. Where the entry lacks something, the file has no rows and says
    what.
    """
    entry = material.entry
    needs = lacking(material)
    predictions = []
    selection = _selection(material)
    if not needs:
        splits: tuple[Split, ...] = ("val", "test") if entry.thresholded else ("test",)
        method = make_method(material, context_s, fits)
        for split in splits:
            items = material.items(split)
            sampled = [video for video in material.recordings(split) if items[video]]
            for video in progress(sampled, what=entry.id, unit="videos"):
                ids = [item.id for item in items[video]]
                predictions += [
                    Prediction(seed=seed, split=split, video=video, ids=ids, chosen=chosen, scores=scores)
                    for seed, chosen, scores in method(video, items[video])
                ]
        selection = "; ".join(filter(None, [selection, getattr(method, "selection", "")]))
    about = {"needs": needs, "selection": selection, "thresholded": entry.thresholded}
    write_predictions(path, predictions, about=about)


def _selection(material: Material) -> str:
    kept = {"last_layer": "epoch of the least validation loss", "all_layer": "last epoch"}
    if material.entry.made.options not in kept and material.entry.settings.get("fit") != "train":
        return ""
    used, listed = len(material.recordings("train")), len(material.release.splits["train"])
    fitted = f"fitted on {min(used, material.entry.settings.get('videos', used))} of {listed} training recordings"
    return "; ".join(filter(None, [fitted, kept.get(material.entry.made.options)]))
