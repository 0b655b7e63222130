"""Continuous times for files in which recordings were concatenated without changes."""

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from stepline.media.decode import fraction

if TYPE_CHECKING:
    import av

BACK_S = Fraction(1, 10)
"""How far decoding times may go back within one recording."""
REORDERED_S = 1
"""How far presentation times may go back, if packets have no decoding times."""
AHEAD_S = 10
"""How far times may jump forwards in a format that allows discontinuous times."""
DISCONTINUOUS = 0x0200
"""libavformat's AVFMT_TS_DISCONT."""


class Clock:
    """The time of each packet of some streams of a container, relative to ``start_s``.

    A joined recording begins if the times of a stream go back or, in formats such as MPEG-TS, jump by more than ten
    seconds. Its times continue from the end of the previous recording, with the same shift for all streams.
    shifts: of the times of each recording, in seconds.
    """

    def __init__(
        self, container: "av.container.InputContainer", start_s: Fraction, shifts: Sequence[Fraction] = ()
    ) -> None:
        """Start before the first packet. shifts: if they are known, from a clock of the pictures alone."""
        self._jumps = bool(container.format.flags & DISCONTINUOUS)
        self.shifts = [*shifts] or [-start_s]
        self._part: dict[int, int] = {}
        self._last: dict[int, Fraction] = {}
        self._end: dict[int, Fraction] = {}
        self._step: dict[int, Fraction] = {}

    def part(self, stream: int) -> int:
        """Return the index of the joined recording that a stream has reached."""
        return self._part.get(stream, 0)

    def shift_s(self, packet: "av.Packet[Any]") -> Fraction:
        """Return the shift to add to the packet's own times; packets must be passed in the container's order."""
        stream = packet.stream_index
        part = self._part.setdefault(stream, 0)
        at = packet.dts if packet.dts is not None else packet.pts
        if at is None:
            return self.shifts[part]
        time_base = fraction(packet.time_base)
        shown_s = (at if packet.pts is None else packet.pts) * time_base
        last_s = self._last.get(stream)
        if last_s is not None:
            ahead_s = at * time_base + self.shifts[part] - last_s
            back_s = BACK_S if packet.dts is not None else REORDERED_S
            if ahead_s < -back_s or (self._jumps and ahead_s > AHEAD_S):
                self._part[stream] = part = part + 1
                if part == len(self.shifts):
                    self.shifts.append(self._end[stream] + self._step.get(stream, Fraction(0)) - shown_s)
        now_s = at * time_base + self.shifts[part]
        if last_s is not None and 0 < now_s - last_s <= REORDERED_S:
            self._step[stream] = now_s - last_s
        self._last[stream] = now_s
        self._end[stream] = max(self._end.get(stream, now_s), shown_s + self.shifts[part])
        return self.shifts[part]
