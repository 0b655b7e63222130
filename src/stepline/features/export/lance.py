"""One Lance dataset, with a line per row of features."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from stepline.errors import MissingError
from stepline.features.export.job import Export
from stepline.features.store import AT_ONCE
from stepline.io import atomic_dir, canonical_json
from stepline.needs import how_to_install

if TYPE_CHECKING:
    import pyarrow as pa


def write(job: Export) -> None:
    """Write ``features.lance``, which replaces an earlier one.

    Columns: video, start_s and end_s of the row in seconds, and its vector, a list of D numbers. The metadata of the
    schema has the spec and, if there are damaged videos, their gaps, as JSON. Lance chooses the names of files by
    chance; the rows and their order depend only on the bank. Raises MissingError if pylance is not installed.
    """
    try:
        import lance
    except ModuleNotFoundError:
        raise MissingError(f"`--form lance` needs the package pylance: {how_to_install('lance')}") from None
    import pyarrow as pa

    vector = pa.list_(pa.from_numpy_dtype(np.dtype(job.bank.spec["dtype"])), job.bank.dimension)
    about = {"stepline.spec": job.bank.spec, "stepline.hop_s": job.bank.hop_s}
    if job.bank.damaged:
        about["stepline.gaps"] = {video: each.gaps for video, each in sorted(job.bank.damaged.items())}
    schema = pa.schema(
        {"video": pa.string(), "start_s": pa.float64(), "end_s": pa.float64(), "vector": vector},
        metadata={key: canonical_json(value) for key, value in about.items()},
    )
    with atomic_dir(job.out / "features.lance") as part:
        lance.write_dataset(pa.RecordBatchReader.from_batches(schema, _batches(job, schema)), part)


def _batches(job: Export, schema: "pa.Schema") -> Iterator["pa.RecordBatch"]:
    import pyarrow as pa

    for video, _, rows in job.videos():
        times_s = job.times_s(video)
        for first in range(0, len(rows), AT_ONCE):
            some, times = rows[first : first + AT_ONCE], times_s[first : first + AT_ONCE]
            vectors = pa.FixedSizeListArray.from_arrays(pa.array(some.reshape(-1)), type=schema.field("vector").type)
            columns = [pa.array([video] * len(some)), *map(pa.array, times.T), vectors]
            yield pa.record_batch(columns, schema=schema)
