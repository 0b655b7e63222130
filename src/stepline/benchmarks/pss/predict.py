"""Fits and predictions of one entry on one data set."""

from pathlib import Path

from stepline.benchmarks.pss.material import Material
from stepline.benchmarks.pss.methods import fit as fit_method
from stepline.benchmarks.pss.methods import make_method
from stepline.benchmarks.pss.predictions import write_predictions
from stepline.datasets.schema import Split
from stepline.footage import is_backbone
from stepline.io import write_bytes
from stepline.progress import progress


def lacking(material: Material) -> list[str]:
    """Return what keeps the entry from being computed: a split of which no video has all features.

    That is for want of videos, or of an imported bank with the ids of the release.
    """
    splits: list[Split] = list(material.entry.splits)
    splits += ["train"] if material.entry.made.trains else []
    splits += ["val"] if material.entry.trained else []
    without = [split for split in splits if not material.used(split)]
    imported = [name for name in material.plan.features(material.entry) if not is_backbone(name, material.plan.config)]
    banks = dict(zip(material.plan.features(material.entry), material.banks, strict=True))
    listed = {video for split in without for video in material.procedures(split)}
    strange = [f"features:{name}/{material.dataset}" for name in imported if listed and not listed & banks[name].videos]
    return strange or ([f"videos:{material.dataset}"] if without else [])


def fit(material: Material, seed: int, path: Path) -> None:
    """Fit the entry on train, choose the epoch on val, and write the checkpoint of one seed to ``path``.

    The checkpoint is empty where the entry lacks something.
    """
    if lacking(material):
        write_bytes(path, b"")
        return
    fit_method(material, seed, path)


def predict(material: Material, fits: list[Path], path: Path) -> None:
    """Write the entry's predictions of the videos that it is evaluated on. fits: one checkpoint per seed.

    Where the entry lacks something, the file has no rows and says what.
    """
    needs, predictions, selection = lacking(material), [], ""
    if not needs:
        for seed, method in make_method(material, fits):
            listed = [(split, each) for split in material.entry.splits for each in material.used(split)]
            for split, procedure in progress(listed, what=f"{material.entry.id}, seed {seed}", unit="videos"):
                predictions.append(method(seed, split, procedure))
        if material.entry.trained:
            used, listed_train = len(material.used("train")), len(material.procedures("train"))
            selection = f"fitted on {used} of {listed_train} training videos; epoch of the best validation score"
    write_predictions(path, predictions, about={"needs": needs, "selection": selection})
