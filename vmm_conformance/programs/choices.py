"""Decisions out of a flat string of bytes, so that any bytes make a program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Choices:
    """Reads decisions from ``data``; behind its end every byte is 0, and `exhausted` is true."""

    __slots__ = ("_at", "_data")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def exhausted(self) -> bool:
        """Whether every byte has been used."""
        return self._at >= len(self._data)

    def byte(self) -> int:
        """The next byte, 0 behind the end."""
        at = self._at
        self._at = at + 1
        return self._data[at] if at < len(self._data) else 0

    def below(self, bound: int) -> int:
        """A number in ``range(bound)``, for bounds up to 65,536."""
        if bound <= 1:
            return 0
        return (self.byte() if bound <= 256 else self.byte() << 8 | self.byte()) % bound

    def pick(self, options: Sequence[T]) -> T:
        """One of ``options``; early ones come first when the bytes run low."""
        return options[self.below(len(options))]

    def chance(self, of_256: int) -> bool:
        """True for about ``of_256`` of 256 bytes; false when the bytes have run out."""
        return self.byte() >= 256 - of_256

    def subset(self, options: Sequence[T], *, keep: int = 160) -> tuple[T, ...]:
        """Each option with a chance of ``keep`` of 256, at least one: a swarm."""
        kept = tuple(option for option in options if self.chance(keep))
        return kept or (options[self.below(len(options))],)
