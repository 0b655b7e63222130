"""Updates of each trained head per second on a device, at the published sizes, and memory."""

import gc
import os
import sys
import traceback
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory

import actionformer
import all_layer
import hirest_joint
import lfb
import pdvc
import planners
import tan
import torch
import umt
from measure import sized
from updates import DEVICE

from stepline.models import training
from stepline.models.matching import Matcher
from stepline.models.procnet import ProcNet

ALL_LAYER = sized(8, small=4)
"""Updates of all-layer fine-tuning, which take longest. The others have those of their scripts."""


def planner(name: str, _folder: Path) -> float:
    """Return the seconds of an update of one of OEPP's planners."""
    return next(seconds for found, _, seconds in planners.on_device(samples()) if found == name)


@cache
def samples() -> planners.Samples:
    """Return OEPP's windows."""
    Path("files").mkdir()
    return planners.made(Path("files"))[1]


def segmenter(matcher: Matcher, _folder: Path) -> float:
    """Return the seconds of an update of PDVC."""
    return pdvc.update_s(pdvc.update(pdvc.made(matcher), pdvc.batch(1)))


def procnet(_folder: Path) -> float:
    """Return the seconds of an update of ProcNet."""
    return pdvc.update_s(pdvc.procnet_update(ProcNet(pdvc.PROCNET).to(DEVICE), pdvc.rows_of_procnet()))


def grounder(name: str, folder: Path) -> float:
    """Return the seconds of an update of a variant of ActionFormer."""
    variants = actionformer.heads(actionformer.videos(folder), actionformer.step_vectors())
    return next(actionformer.trained(model, data) for found, model, data in variants if found == name)


HEADS: dict[str, tuple[int, Callable[[Path], float]]] = {
    "Spacewalk: all layers, bf16": (all_layer.BATCH, lambda _: all_layer.fitted(DEVICE, torch.bfloat16, ALL_LAYER)),
    "OEPP: MLP": (planners.BATCH, partial(planner, "MLP")),
    "OEPP: Transformer": (planners.BATCH, partial(planner, "Transformer")),
    "OEPP: PDPP*": (32, partial(planner, "PDPP*")),
    "PSS: PDVC": (1, partial(segmenter, "hungarian")),
    "PSS: SoftSODA": (1, partial(segmenter, "soft_soda")),
    "PSS: ProcNet": (1, procnet),
    "HiREST: joint model": (hirest_joint.BATCH, lambda _: hirest_joint.trained(*hirest_joint.head())),
    "HT-Step: ActionFormer": (actionformer.BATCH, partial(grounder, "ActionFormer")),
    "HT-Step: ActionFormer-T": (actionformer.BATCH, partial(grounder, "ActionFormer-T")),
    "HT-Step: MT+BCE": (tan.BATCH, lambda folder: tan.trained(*tan.head(folder, tan.step_sentences()))),
    "HT-Step: UMT": (umt.BATCH, lambda folder: umt.trained(*umt.head(umt.videos(folder), umt.step_words()))),
    "Spacewalk: LFB NL": (lfb.BATCH, lambda _: lfb.update_s("nl", DEVICE)),
    "Spacewalk: LFB TF": (lfb.BATCH, lambda _: lfb.update_s("tf", DEVICE)),
    "Spacewalk: all layers, fp32": (all_layer.BATCH, lambda _: all_layer.fitted(DEVICE, torch.float32, ALL_LAYER)),
}
"""The samples in a batch of each head, and a function that returns the mean seconds of its updates."""


def main() -> None:
    """Print the table."""
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True, warn_only=DEVICE != "cpu")
    training.write_tensors = lambda *_: None  # large files are not what is measured
    print(f"{DEVICE}, TF32 in convolutions as torch's default\n{'':32}{'batch':>8}{'updates a s':>14}{'GiB':>8}")
    failed = False
    for head, (size, update_s) in HEADS.items():
        if DEVICE == "cuda":
            torch.cuda.reset_peak_memory_stats()
        with TemporaryDirectory() as folder:
            os.chdir(folder)
            try:
                rate = f"{1 / update_s(Path(folder)):.2f}"
            except Exception:  # noqa: BLE001 - the other heads are measured all the same
                traceback.print_exc()
                rate, failed = "error", True
        gc.collect()
        gib = torch.cuda.max_memory_allocated() / 2**30 if DEVICE == "cuda" else 0.0
        print(f"{head:32}{size:8}{rate:>14}{gib:8.1f}", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
