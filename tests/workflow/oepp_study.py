"""A study of OEPP that is small enough for the whole workflow."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from stepline.datasets.oepp import FEATURE_FILES, PARTS, load
from stepline.features.importing import Folder, import_folder
from tests.benchmarks.oepp.synthetic import DIMENSION, contents

BANKS = ("videoclip-released", "s3d-p3iv")
"""The paper's own features, by the names under which they are imported."""
TEXT = "./actions.json"
CONFIG: dict[str, Any] = {
    "tables": ["table2", "table4", "table5", "table7", "table8"],
    "features": {"videoclip": {"video": BANKS[0]}, "mil-nce": {"video": BANKS[1], "text": TEXT}},
    "heads": {"epochs": 2, "batch_size": 16, "seeds": [0]},
    "pdpp": {
        "epochs": 2,
        "steps": 2,
        "batch_size": 8,
        "width": 32,
        "diffusion_steps": 4,
        "sampling_steps": 2,
        "seeds": [0, 1],
    },
    "metrics": {"bootstrap_samples": 100},
}


def write_features(folder: Path) -> None:
    """Import noise as both banks, a row a second of each video, by way of files in ``folder``, and write ``TEXT``."""
    random = np.random.default_rng(5)
    for name in BANKS:
        for video in (video for part in PARTS for video in load("split1", part)):
            rows = random.normal(size=(int(video.steps[-1].end_s) + 2, DIMENSION))
            np.save(folder / f"{video.id}.npy", rows.astype(np.float32))
        import_folder(Folder(folder), name, "openevent", 1.0)
    Path(TEXT).write_text(json.dumps(contents()[FEATURE_FILES["s3d"]]))
