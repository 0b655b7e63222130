"""A file per video: ``.npy``, a dictionary in ``.npy``, or ``.pt``."""

import numpy as np

from stepline.features.export.job import Export
from stepline.features.importing import KEY
from stepline.io import atomic_path


def write_npy(job: Export) -> None:
    """Write an array (T, D) per video."""
    for _, name, rows in job.videos():
        with atomic_path(job.out / f"{name}.npy") as part:
            np.save(part, rows)


def write_dict(job: Export) -> None:
    """Write a pickled dictionary per video, with the rows under ``frames_features``."""
    for video, name, rows in job.videos():
        with atomic_path(job.out / f"{name}.npy") as part:
            np.save(part, np.array({KEY: np.array(rows), "name": video}, object))


def write_pt(job: Export) -> None:
    """Write a tensor (T, D) per video."""
    import torch

    for _, name, rows in job.videos():
        with atomic_path(job.out / f"{name}.pt") as part:
            torch.save(torch.from_numpy(np.array(rows)), part)
