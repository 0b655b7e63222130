"""Shots and thumbnails of a video, computed in the same pass as its media."""

from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import IO, Any, cast

from stepline import paths
from stepline.availability import Record
from stepline.config import Config
from stepline.io import write_bytes
from stepline.media.prepare import Media
from stepline.report.thumbnails import SAMPLES_PER_S, Samples, files_of
from stepline.shots import Detection, detect_in

HELD = 16 << 20
"""Bytes of samples kept in memory until the shots are known; more are kept on disk."""


@dataclass
class ShotsAndPictures:
    """Computes shots and thumbnails, so that their stages find them done.

    Thumbnails at times without a sample are left to the stage. media, shots, pictures: the folders of the data set.
    """

    record: Record
    detection: Detection
    media: Path
    shots: Path
    pictures: Path
    tap: Samples = field(default_factory=Samples)
    _places: dict[int, tuple[int, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Open an empty buffer of samples."""
        self._file = cast(IO[bytes], SpooledTemporaryFile(HELD))  # noqa: SIM115 - `end` closes it

    def take(self, item: tuple[int, bytes]) -> None:
        """Keep a sample until the shots are known."""
        number, jpeg = item
        self._places[number] = self._file.tell(), len(jpeg)
        self._file.write(jpeg)

    def end(self, made: dict[str, Any]) -> None:
        """Detect the shots and write the samples at their times."""
        video = self.record.video
        shots = detect_in(made, self.media / video, self.shots / f"{video}.parquet", self.detection)
        with self._file:
            for time_s, file in files_of(self.record, shots, self.pictures / video).values():
                if time_s * SAMPLES_PER_S in self._places and not file.exists():
                    place, length = self._places[int(time_s * SAMPLES_PER_S)]
                    self._file.seek(place)
                    write_bytes(file, self._file.read(length))


def media_of(config: Config, dataset: str, stages: Collection[str]) -> Media:
    """Return the media of a data set, with shots and thumbnails if ``pictures`` is a stage and videos are upright."""
    shown = config["media"]["orientation"] == "upright" and "pictures" in stages
    folder, detection = paths.media(dataset), Detection(**config["shots"])

    def after(record: Record) -> ShotsAndPictures:
        return ShotsAndPictures(record, detection, folder, paths.shots(dataset), paths.thumbnails(dataset))

    options = {key: config["media"][key] for key in ("damaged", "orientation", "track")}
    return Media(folder, **options, next_of=after if shown else None)
