"""The media stage: each video is probed, scored and its audio cut out, once."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext
from pathlib import Path
from typing import Any, Protocol, Self

from stepline import rates
from stepline.aside import sweep
from stepline.availability import Record, read_availability, write_manifest
from stepline.io import atomic_dir, read_json, sha256_file, write_sealed
from stepline.media import REVISION
from stepline.media.decode import MediaError
from stepline.media.one_pass import Also, Scores, one_pass
from stepline.media.process import Decoder, Limits
from stepline.media.timeline import described
from stepline.progress import VIDEO, progress
from stepline.spec import Orientation


class Next(Also, Protocol):
    """What is made of a video right after its media."""

    def end(self, made: dict[str, Any]) -> None:
        """Make it. made: the video's media, as the manifest says."""


class Media:
    """The media of videos by one configuration, in ``folder/<video>/``, which holds what ``one_pass`` writes.

    next_of: what is made of a video right after.
    """

    def __init__(
        self,
        folder: Path,
        *,
        damaged: str = "partial",
        orientation: Orientation = "upright",
        next_of: Callable[[Record], Next] | None = None,
    ) -> None:
        """Remove what a killed process left in ``folder``."""
        self.folder, self.damaged, self.orientation, self.next_of = folder, damaged, orientation, next_of
        sweep(folder)

    def known(self, record: Record) -> dict[str, Any] | None:
        """Return what was made from the same spans of the same file, None where nothing was."""
        done = self.folder / record.video / "media.json"
        if not done.is_file():
            return None
        known: dict[str, Any] = read_json(done)
        same = (known["sha256"], known["spans"], known["revision"])
        if same != (record.identity(self.orientation), record.spans, REVISION):
            return None
        return known if all((done.parent / file).is_file() for file in _files(known)) else None


class Making:
    """The media of one video: there, and with what comes next, at the end of the block if ``end`` was called in it."""

    def __init__(self, media: Media, record: Record) -> None:
        """Write nothing yet. Raises MediaError where the video's file is gone."""
        self.path = Path(record.path)
        if not self.path.is_file():
            raise MediaError(f"{self.path}: no such file")
        self._media, self._record = media, record
        self.next = media.next_of(record) if media.next_of else None
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        """Make ``part``, the folder that becomes the video's."""
        self.part = self._stack.enter_context(atomic_dir(self._media.folder / self._record.video))
        return self

    def __exit__(self, *error: Any) -> None:
        """Publish the folder, and make what comes next; after an error remove it."""
        self._stack.__exit__(*error)
        if error[0] is None and self.next is not None:
            self.next.end(self.made)

    def end(self, found: dict[str, Any]) -> None:
        """Write the record of the video, ``made``, beside what the pass wrote and ``found``."""
        source = self._record.identity(self._media.orientation)
        self.made: dict[str, Any] = {"status": "present", "reason": "", "sha256": source, "spans": self._record.spans}
        self.made |= {"revision": REVISION, **found}
        if (sound := self.part / "audio.wav").exists():
            self.made["audio_sha256"] = sha256_file(sound)
        write_sealed(self.part / "media.json", self.made)


class Beside:
    """The media of one video from a pass that is made for other things too."""

    def __init__(self, media: Media, record: Record) -> None:
        """Write nothing yet."""
        self._making = Making(media, record)
        self._scores: Scores | None = None
        self.tap = self._making.next.tap if self._making.next else None
        self._stack = ExitStack()

    def begin(self) -> Path:
        """Return where the pass writes the sound."""
        self._scores = Scores(self._stack.enter_context(self._making).part)
        return self._making.part / "audio.wav"

    def take(self, item: Any) -> None:
        """Take what the pass yields of scores, or by the tap."""
        assert self._scores is not None
        if not self._scores.take(item) and self._making.next is not None:
            self._making.next.take(item)

    def end(self) -> None:
        """Publish the media, unless they were left."""
        if self._scores is None:
            return
        self._scores.close()
        self._making.end(self._scores.found)
        self._scores = None
        self._stack.close()

    def leave(self) -> None:
        """Remove what there is, if it has begun: it is left to the stage of media."""
        if self._scores is not None:
            self._scores.close()
            self._scores = None
        self._stack.__exit__(MediaError, MediaError("left"), None)


def prepare(
    availability: Path,
    media: Media,
    manifest: Path,
    *,
    limits: Limits,
    turn: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> None:
    """Make the media of every present video of ``availability`` and say in ``manifest`` what became of each.

    A video that cannot be read, within the limits, is ``failed`` with its reason; one that is damaged has its ``gaps``,
    or is ``failed`` where damaged videos are skipped. A folder made from the same spans of the same file is kept. In
    the manifest ``sha256`` is the record's ``identity``. turn: keeps another job from the videos while one is read.
    """
    videos: dict[str, dict[str, Any]] = {}
    records = read_availability(availability)
    read_s = spent_s = 0.0
    with Decoder(limits) as decoder:
        for video, record in progress(records.items(), what="media", unit=VIDEO, size=_length_s):
            if record.status != "present":
                videos[video] = {"status": record.status, "reason": record.reason}
                continue
            try:
                with turn():
                    if known := media.known(record):
                        videos[video] = known
                    else:
                        start = time.monotonic()
                        videos[video] = _made(record, media, decoder)
                        read_s, spent_s = read_s + record.duration_s, spent_s + time.monotonic() - start
                if (gaps := videos[video].get("gaps")) and media.damaged == "skip":
                    raise MediaError(described(gaps))
            except MediaError as error:
                videos[video] = {"status": "failed", "reason": str(error)}
                videos[video]["sha256"] = record.identity(media.orientation)
    rates.note("media", video_s=read_s, spent_s=spent_s)
    write_manifest(manifest, videos)


def _length_s(item: tuple[str, Record]) -> float:
    return item[1].seen_s


def _made(record: Record, media: Media, decoder: Decoder) -> dict[str, Any]:
    with Making(media, record) as making:
        found = one_pass(
            making.path,
            making.part,
            record.spans,
            decoder=decoder,
            duration_s=record.duration_s,
            damaged=media.damaged,
            orientation=media.orientation,
            also=making.next,
        )
        making.end(found)
    return making.made


def _files(made: dict[str, Any]) -> list[str]:
    """Return what stands beside the record of a video."""
    return ["scores.parquet", *(["audio.wav"] if made["audio"]["status"] == "present" else [])]
