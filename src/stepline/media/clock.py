"""Times that go on where recordings were joined as they are."""

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from stepline.media.decode import fraction

if TYPE_CHECKING:
    import av

BACK_S = 1
"""How far times may go back within one recording: streams are interleaved, and frames are reordered."""
AHEAD_S = 10
"""How far they may jump in a format whose times may be discontinuous."""
DISCONTINUOUS = 0x0200
"""libavformat's AVFMT_TS_DISCONT."""


class Clock:
    """The time of each packet of some streams of a container, counted from ``start_s``.

    Where the times of a stream go back by more than a second, or, in formats such as MPEG-TS, jump by more than ten, a
    joined recording begins: its times go on at the end of the one before, by the same shift for all streams.
    """

    def __init__(self, container: "av.container.InputContainer", start_s: Fraction) -> None:
        """Start before the first packet."""
        self._jumps = bool(container.format.flags & DISCONTINUOUS)
        self._shifts = [-start_s]
        self._part: dict[int, int] = {}
        self._last: dict[int, Fraction] = {}
        self._step: dict[int, Fraction] = {}

    @property
    def joined(self) -> bool:
        """Whether a joined recording has begun."""
        return len(self._shifts) > 1

    def shift_s(self, packet: "av.Packet[Any]") -> Fraction:
        """Return what is to be added to the packet's own times; packets are to be given in the container's order."""
        stream = packet.stream_index
        part = self._part.setdefault(stream, 0)
        at = packet.dts if packet.dts is not None else packet.pts
        if at is None:
            return self._shifts[part]
        own_s = at * fraction(packet.time_base)
        last_s = self._last.get(stream)
        if last_s is not None:
            ahead_s = own_s + self._shifts[part] - last_s
            if ahead_s < -BACK_S or (self._jumps and ahead_s > AHEAD_S):
                self._part[stream] = part = part + 1
                if part == len(self._shifts):
                    self._shifts.append(last_s + self._step.get(stream, Fraction(0)) - own_s)
        now_s = own_s + self._shifts[part]
        if last_s is not None and 0 < now_s - last_s <= BACK_S:
            self._step[stream] = now_s - last_s
        self._last[stream] = now_s
        return self._shifts[part]
