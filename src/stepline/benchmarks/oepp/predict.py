"""Fits and predictions of one entry on one release."""

from pathlib import Path

from stepline.benchmarks.oepp.material import Material
from stepline.benchmarks.oepp.methods import fit as fit_method
from stepline.benchmarks.oepp.methods import make_method
from stepline.benchmarks.oepp.predictions import Prediction, write_predictions
from stepline.datasets.oepp import PARTS
from stepline.footage import is_backbone
from stepline.io import write_bytes


def lacking(material: Material) -> list[str]:
    """Return what keeps the entry from being computed: a part of the split of which no window has all it reads.

    That is for want of videos, or of an imported bank that holds such; matching also wants vectors of actions that can
    be compared with those of the video.
    """
    entry, plan = material.entry, material.plan
    if not all(material.used(part) for part in (PARTS if entry.made.trains else entry.parts)):
        imported = [name for name in plan.features(entry) if not is_backbone(name, plan.config)]
        return [f"features:{name}/openevent" for name in imported] or ["videos:openevent"]
    if entry.kind == "matching" and material.text("base").shape[1] != material.bank.dimension:
        return [f"config:oepp.features.{entry.features}.text=PATH"]
    return []


def fit(material: Material, seed: int, path: Path) -> None:
    """Fit the entry on train, choose the epoch on val, and write the checkpoint of one seed to ``path``.

    The checkpoint is empty where the entry lacks something.
    """
    if lacking(material):
        write_bytes(path, b"")
        return
    fit_method(material, seed, path)


def predict(material: Material, fits: list[Path], path: Path) -> None:
    """Write the entry's plans of the windows that it is evaluated on. fits: one checkpoint per seed.

    Where the entry lacks something, the file has no rows and says what.
    """
    needs, predictions, said = lacking(material), [], [""]
    if not needs:
        for seed, method in make_method(material, fits):
            for part in material.entry.parts:
                windows = material.used(part)
                predictions += [
                    Prediction(seed=seed, part=part, video=window.video, index=window.index, plan=plan)
                    for window, plan in zip(windows, method(part, windows), strict=True)
                    if plan is not None
                ]
            said = [str(getattr(method, "selection", ""))]
        if late := sum(map(material.late, material.entry.parts)):
            said.append(f"left out: {late} windows that begin after the features of their video end")
        if material.entry.made.trains:
            used, listed = len(material.used("train")), len(material.windows("train"))
            said.append(f"fitted on {used} of {listed} training windows")
        if material.entry.trained:
            said.append("epoch of the best success rate on val")
    if {each.part for each in predictions} < {*material.entry.parts}:  # all videos of a part are broken
        needs, predictions = needs or ["videos:openevent"], []
    write_predictions(
        path, predictions, about={"needs": needs, "selection": "; ".join(filter(None, said)), "spec": material.spec}
    )
