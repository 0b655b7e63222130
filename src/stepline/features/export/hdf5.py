"""One HDF5 file, with a dataset (T, D) per video."""

from stepline.features.export.job import Export
from stepline.io import atomic_path, canonical_json


def write(job: Export) -> None:
    """Write ``features.h5``: its attributes are the spec, as JSON, and ``hop_s``.

    The attributes of a dataset are ``times_s``, the (T, 2) start and end of each row in seconds, and what
    ``Export.about`` says, ``gaps`` as JSON. Format 1.8 is the first one whose attributes may have more than 64 kB.
    """
    import h5py

    out = job.out / "features.h5"
    with atomic_path(out) as part, h5py.File(part, "w", libver=("v108", "v108"), locking=False) as file:
        file.attrs.update(spec=canonical_json(job.bank.spec), hop_s=job.bank.hop_s)
        for video, name, rows in job.videos():
            about = job.about(video)
            attributes = file.create_dataset(name, data=rows).attrs
            attributes.update(times_s=job.times_s(video), whole=about["whole"], gaps=canonical_json(about["gaps"]))
