"""The media stage: each video is probed and scored, and its audio extracted, in one pass."""

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
from stepline.media.wav import doubtful
from stepline.progress import VIDEO, progress
from stepline.spec import Orientation


class Next(Also, Protocol):
    """Further outputs of a video, written right after its media."""

    def end(self, made: dict[str, Any]) -> None:
        """Write the outputs. made: the video's media, as in the manifest."""


class Media:
    """The media of videos for one configuration, in ``folder/<video>/`` with the files of ``one_pass``.

    next_of: returns the further outputs of a video.
    """

    def __init__(
        self,
        folder: Path,
        *,
        damaged: str = "partial",
        orientation: Orientation = "upright",
        track: int | None = None,
        next_of: Callable[[Record], Next] | None = None,
    ) -> None:
        """Remove the leftovers of a killed process from ``folder``."""
        self.folder, self.damaged, self.orientation, self.next_of = folder, damaged, orientation, next_of
        self.track = track
        sweep(folder)

    def known(self, record: Record) -> dict[str, Any] | None:
        """Return the existing media of the same spans of the same file, or None."""
        done = self.folder / record.video / "media.json"
        if not done.is_file():
            return None
        known: dict[str, Any] = read_json(done)
        same = (known["sha256"], known["spans"], known["revision"], known.get("track"))
        if same != (record.identity(self.orientation), record.spans, REVISION, self.track):
            return None
        if doubtful(done.parent / "audio.wav", known["audio"]):
            return None
        return known if all((done.parent / file).is_file() for file in _files(known)) else None


class Making:
    """The media of one video, published with the further outputs at the end of the block if ``end`` was called."""

    def __init__(self, media: Media, record: Record) -> None:
        """Prepare the media; nothing is written yet. Raises MediaError if the video's file does not exist."""
        self.path = Path(record.path)
        if not self.path.is_file():
            raise MediaError(f"{self.path}: no such file")
        self._media, self._record = media, record
        self.next = media.next_of(record) if media.next_of else None
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        """Create ``part``, the folder that becomes the video's folder."""
        self.part = self._stack.enter_context(atomic_dir(self._media.folder / self._record.video))
        return self

    def __exit__(self, *error: Any) -> None:
        """Publish the folder and write the further outputs; after an error, remove the folder."""
        self._stack.__exit__(*error)
        if error[0] is None and self.next is not None:
            self.next.end(self.made)

    def end(self, found: dict[str, Any]) -> None:
        """Write the record of the video, ``made``, with the pass's results ``found``, next to the pass's files."""
        source = self._record.identity(self._media.orientation)
        self.made: dict[str, Any] = {"status": "present", "reason": "", "sha256": source, "spans": self._record.spans}
        self.made |= {"revision": REVISION, **found} | ({"track": self._media.track} if self._media.track else {})
        if (sound := self.part / "audio.wav").exists():
            self.made["audio_sha256"] = sha256_file(sound)
        write_sealed(self.part / "media.json", self.made)


class Beside:
    """The media of one video from a pass that has other purposes too.

    track, turned: as in ``one_pass.decode``, which the pass must use.
    """

    def __init__(self, media: Media, record: Record) -> None:
        """Prepare the media; nothing is written yet."""
        self._making = Making(media, record)
        self.track, self.turned = media.track, media.orientation == "upright"
        self._scores: Scores | None = None
        self.tap = self._making.next.tap if self._making.next else None
        self._stack = ExitStack()

    def begin(self) -> Path:
        """Return the path to which the pass writes the audio."""
        self._scores = Scores(self._stack.enter_context(self._making).part)
        return self._making.part / "audio.wav"

    def take(self, item: Any) -> None:
        """Process an item of the pass: scores, other results, or an item of the tap."""
        assert self._scores is not None
        if not self._scores.take(item) and self._making.next is not None:
            self._making.next.take(item)

    def end(self) -> None:
        """Publish the media, unless they were abandoned."""
        if self._scores is None:
            return
        self._scores.close()
        self._making.end(self._scores.found)
        self._scores = None
        self._stack.close()

    def leave(self) -> None:
        """Abandon the media and remove partial files: the media stage will write them."""
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
    """Write the media of every present video of ``availability``, and the status of each to ``manifest``.

    A video that cannot be read within the limits is ``failed`` with a reason. A damaged video has its ``gaps``, or is
    ``failed`` if damaged videos are skipped. An existing folder of the same spans of the same file is kept. In the
    manifest, ``sha256`` is the record's ``identity``. turn: locks out other jobs while a video is read.
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
            track=media.track,
            also=making.next,
        )
        making.end(found)
    return making.made


def _files(made: dict[str, Any]) -> list[str]:
    """Return the names of the files next to a video's record."""
    return ["scores.parquet", *(["audio.wav"] if made["audio"]["status"] == "present" else [])]
