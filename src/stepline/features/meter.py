"""The progress of an extraction: videos, hours, speed relative to real time, time left, and time per stage."""

import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate
from types import TracebackType

from stepline import rates
from stepline.progress import VIDEO, Progress

log = logging.getLogger(__name__)


class Meter:
    """The progress in seconds of video, with one line in the log at the end."""

    def __init__(self, durations_s: Sequence[float], *, reading: str = "decode") -> None:
        """Start counting. durations_s: of the videos that follow. reading: the name of the recorded decoding rate."""
        self._videos, self._ended, self._seconds_s = len(durations_s), 0, 0.0
        self._spent_s: dict[str, float] = dict.fromkeys(("decode", "pictures", "model", "write"), 0.0)
        self._networks: dict[str, tuple[float, float]] = {}
        self._reading, self._model_s = reading, 0.0
        self._start = time.monotonic()
        self._progress = Progress("features", VIDEO, sum(durations_s))

    def __enter__(self) -> "Meter":
        self._progress.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._progress.__exit__(kind, error, at)
        if self._videos:
            log.info("features: %s", self)
            read_s = self._spent_s["decode"] + self._spent_s["pictures"]
            rates.note(self._reading, video_s=self._seconds_s, spent_s=read_s)
            for network, (video_s, spent_s) in self._networks.items():
                rates.note(f"network.{network}", video_s=video_s, spent_s=spent_s)

    @contextmanager
    def timed(self, what: str) -> Iterator[None]:
        """Add the time of the block to the stage ``what``."""
        start = time.perf_counter()
        yield
        self._spent_s[what] += time.perf_counter() - start

    def add(
        self, seconds_s: float, *, decode_s: float, picture_s: float, network: str = "", video_s: float = 0.0
    ) -> None:
        """Count seconds of video as done, and the time of decoding and preparing pictures in the decoder process.

        network: the name, with the device, of the network that the model time since the last call belongs to, for
        ``video_s`` seconds of video; "" for none.
        """
        if network:
            before_s, spent_s = self._networks.get(network, (0.0, 0.0))
            self._networks[network] = before_s + video_s, spent_s + self._spent_s["model"] - self._model_s
        self._model_s = self._spent_s["model"]
        self._spent_s["decode"] += decode_s
        self._spent_s["pictures"] += picture_s
        self._seconds_s += seconds_s
        self._progress.note(str(self))
        self._progress.add(seconds_s)

    def ended(self) -> None:
        """Count a video as done."""
        self._ended += 1

    def __str__(self) -> str:
        spent_s = sum(self._spent_s.values()) or 1.0
        ends = [round(100 * each_s / spent_s) for each_s in accumulate(self._spent_s.values())]
        named = zip(self._spent_s, [0, *ends], ends, strict=False)
        shares = ", ".join(f"{what} {end - before} %" for what, before, end in named)
        rate = self._seconds_s / max(1e-6, time.monotonic() - self._start)
        return f"{self._ended}/{self._videos} videos, {self._seconds_s / 3600:.2f} h, {rate:.1f} x real time: {shares}"
