"""What a program has ordered, so that the harness never does what a caller must not."""

from __future__ import annotations

from typing import NamedTuple

Clock = dict[int, int]


class Moment(NamedTuple):
    """All that ``stream`` has been given up to its ``tick``-th item."""

    stream: int
    tick: int


class CallerOrder:
    """Follows the caller's own submissions, waits and synchronisations; streams are any numbers.

    It knows nothing of a driver and orders nothing: it answers whether the caller may rely on an order.
    """

    __slots__ = ("_clocks", "_host")

    def __init__(self) -> None:
        self._host: Clock = {}
        self._clocks: dict[int, Clock] = {}

    def submit(self, stream: int) -> Moment:
        """``stream`` is given one more item of work."""
        clock = self._clocks.setdefault(stream, {})
        _join(clock, self._host)
        clock[stream] = clock.get(stream, 0) + 1
        return Moment(stream, clock[stream])

    def wait(self, first: int, then: int) -> None:
        """Stream ``then`` waits for all that ``first`` has been given."""
        if first != then:
            _join(self._clocks.setdefault(then, {}), self._clocks.get(first, {}))

    def synchronize(self, stream: int) -> None:
        """The host waits for ``stream``."""
        _join(self._host, self._clocks.get(stream, {}))

    def ordered(self, moment: Moment, stream: int) -> bool:
        """Whether what ``stream`` is given next comes after ``moment``."""
        at, tick = moment
        if at == stream or self._host.get(at, 0) >= tick:
            return True
        clock = self._clocks.get(stream)
        return clock is not None and clock.get(at, 0) >= tick


def _join(clock: Clock, other: Clock) -> None:
    for stream, tick in other.items():
        if clock.get(stream, 0) < tick:
            clock[stream] = tick
