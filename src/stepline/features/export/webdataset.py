"""Shards of WebDataset: tar archives in which the files of a video have the same name up to the first dot."""

import io
import tarfile
from collections.abc import Iterator

from stepline.aside import folder_beside
from stepline.features.export.files import npy
from stepline.features.export.job import Export
from stepline.io import atomic_path, canonical_json

SHARD_BYTES = 1_000_000_000
"""The maximum size of the files in a shard, unless a single video has more."""


def name(prefix: str, video: str, suffix: str) -> str:
    """Return the key of a video. Its dots are ``%2E``, as readers take the part up to the first dot as the key."""
    return f"{prefix}{video}{suffix}".replace(".", "%2E")


def write(job: Export) -> None:
    """Write ``features-000000.tar`` and so on, which replace all earlier shards once all are complete.

    A video has the files ``<name>.json``, ``<name>.npy`` with its (T, D) rows, and ``<name>.times.npy`` with the
    (T, 2) start and end of each row in seconds. The bytes depend only on the rows and their spec.
    """
    with folder_beside(job.out / "features.tar") as staged:
        samples, shard, sample = _samples(job), 0, None
        while sample or (sample := next(samples, None)):
            with atomic_path(staged / f"features-{shard:06d}.tar") as part, tarfile.open(part, "w") as tar:
                size = 0
                while sample and (not size or size + sum(map(len, sample.values())) <= SHARD_BYTES):
                    for name, content in sample.items():
                        _add(tar, name, content)
                        size += len(content)
                    sample = next(samples, None)
            shard += 1
        for old in job.out.glob("features-[0-9]*.tar"):
            old.unlink()
        for made in sorted(staged.glob("*.tar")):
            made.replace(job.out / made.name)


def _samples(job: Export) -> Iterator[dict[str, bytes]]:
    """Yield the files of each video."""
    for video, name, rows in job.videos():
        about = {
            "video": video,
            "dimension": rows.shape[1],
            "hop_s": job.bank.blocks[video][0].hop_s,
            "spec": job.bank.spec,
            "gaps": job.bank.damaged[video].gaps if video in job.bank.damaged else [],
        }
        yield {
            f"{name}.json": canonical_json(about).encode(),
            f"{name}.npy": npy(rows),
            f"{name}.times.npy": npy(job.times_s(video)),
        }


def _add(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(content)
    tar.addfile(member, io.BytesIO(content))
