"""One HDF5 file, with a dataset (T, D) per video."""

from stepline.features.export.job import Export
from stepline.io import atomic_path


def write(job: Export) -> None:
    """Write ``features.h5``."""
    import h5py

    with atomic_path(job.out / "features.h5") as part, h5py.File(part, "w", locking=False) as file:
        for _, name, rows in job.videos():
            file.create_dataset(name, data=rows)
