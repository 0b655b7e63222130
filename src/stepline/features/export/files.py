"""A file per video: ``.npy``, a dictionary in ``.npy``, or ``.pt``."""

import io
from zipfile import ZipFile, ZipInfo

import numpy as np
from numpy.typing import NDArray

from stepline.features.export.job import Export
from stepline.features.importing import INDEX, KEY
from stepline.io import atomic_path, write_bytes, write_json


def npy(array: NDArray[np.generic]) -> bytes:
    """Return an array as the content of a ``.npy`` file. NumPy's own writer reports a full disk without its reason."""
    content = io.BytesIO()
    np.save(content, array)
    return content.getvalue()


def write_npy(job: Export) -> None:
    """Write an array (T, D) per video, and for all videos ``times.npz`` and ``export.json``.

    ``times.npz`` has the (T, 2) start and end of each row in seconds, under the name of the video's file.
    ``export.json`` has the spec, ``hop_s``, and by name of the file what ``Export.about`` says.
    """
    with atomic_path(job.out / "times.npz") as part, ZipFile(part, "w") as times:
        for video, name, rows in job.videos():
            write_bytes(job.out / f"{name}.npy", npy(rows))
            times.writestr(ZipInfo(f"{name}.npy"), npy(job.times_s(video)))
    videos = {name: job.about(video) for video, name in job.names.items()}
    write_json(job.out / INDEX, {"spec": job.bank.spec, "hop_s": job.bank.hop_s, "videos": videos})


def write_float32(job: Export) -> None:
    """Write an array (T, D) float32 per video to the folder ``features`` in ``out``."""
    for _, name, rows in job.videos():
        write_bytes(job.out / "features" / f"{name}.npy", npy(np.asarray(rows, np.float32)))


def write_dict(job: Export) -> None:
    """Write a pickled dictionary per video, with the rows under ``frames_features``."""
    for video, name, rows in job.videos():
        held = {KEY: np.array(rows), "name": video}
        write_bytes(job.out / f"{name}.npy", npy(np.array(held, object)))


def write_pt(job: Export) -> None:
    """Write a tensor (T, D) per video."""
    import torch

    for _, name, rows in job.videos():
        content = io.BytesIO()
        torch.save(torch.from_numpy(np.array(rows)), content)
        write_bytes(job.out / f"{name}.pt", content.getvalue())
