"""The caller's side of a step: buffers whose contents, owners and addresses the harness knows."""

from __future__ import annotations

from vmm_conformance.contracts import Access, Buffer, Driver, Range, Write

TOKEN = 8
"""Bytes in a token."""


def tokens_from(start: int = 1) -> TokenSource:
    """A fresh source of tokens."""
    return TokenSource(start)


class TokenSource:
    """Gives out 8-byte values that are never given twice in one run."""

    __slots__ = ("_next",)

    def __init__(self, start: int = 1) -> None:
        self._next = start

    def take(self, length: int = TOKEN) -> bytes:
        """A new token, cut to ``length`` bytes."""
        value = self._next
        self._next = value + 1
        return (value * 0x9E3779B97F4A7C15 & (1 << 64) - 1).to_bytes(8, "little")[:length]


def marks(size: int) -> tuple[Range, ...]:
    """Where tokens stand in a buffer of ``size`` bytes: offset and length, at its start and its end."""
    if size >= 2 * TOKEN:
        return (Range(0, TOKEN), Range(size - TOKEN, TOKEN))
    return (Range(0, min(size, TOKEN)),) if size else ()


def guard(size: int, committed: int) -> tuple[Range, ...]:
    """The token just behind the logical size, where there is room for one."""
    return (Range(size, TOKEN),) if size and committed - size >= TOKEN else ()


def round_up(size: int, granularity: int) -> int:
    """``size`` rounded up to a multiple of ``granularity``, in bytes."""
    return -(-size // granularity) * granularity


class CallerBuffer:
    """One buffer of the caller. ``streams`` are those that its work was given to.

    ``visible`` is false once its own mapping is gone.
    """

    __slots__ = ("address", "allocation", "committed", "handle", "read_only", "size", "space", "streams", "visible")

    def __init__(self, size: int, space: int, read_only: bool, allocation: int) -> None:
        self.size = size
        self.space = space
        self.read_only = read_only
        self.allocation = allocation
        self.address = 0
        self.committed = 0
        self.handle: int | None = None
        self.visible = False
        self.streams: set[int] = set()

    def as_buffer(self) -> Buffer:
        """What the executor gets to see."""
        return Buffer(self.address, self.size, self.committed, self.handle, self.allocation)

    @property
    def watched(self) -> tuple[Range, ...]:
        """The tokens in it and behind it: offset and length."""
        return marks(self.size) + guard(self.size, self.committed)


class Caller:
    """Makes and unmakes buffers on one device, through the recorded driver."""

    def __init__(self, driver: Driver, device: int, granularity: int, tokens: TokenSource, ids: list[int]) -> None:
        self._driver = driver
        self._device = device
        self._granularity = granularity
        self._tokens = tokens
        self._ids = ids

    def make(
        self, size: int, *, space: int = 0, extra: int = 0, vmm: bool = True, read_only: bool = False
    ) -> tuple[CallerBuffer, dict[int, bytes]]:
        """A new buffer and the tokens it starts with, by offset. ``extra`` counts granules."""
        self._ids[0] += 1
        buffer = CallerBuffer(size, space, read_only, self._ids[0])
        if size == 0:
            return buffer, {}
        buffer.committed = round_up(size, self._granularity) + extra * self._granularity
        if vmm:
            buffer.address = self._driver.reserve(buffer.committed)
            self._back(buffer)
        else:
            buffer.address = self._driver.alloc(buffer.committed, device=self._device, space=space)
        return buffer, self._start(buffer)

    def recreate(self, buffer: CallerBuffer) -> tuple[CallerBuffer, dict[int, bytes]]:
        """Free the memory of ``buffer`` and bind other memory at the same address.

        The caller waits for its own uses first, as an owner must.
        """
        self.wait(buffer)
        if buffer.visible:
            self._driver.unmap(buffer.address, buffer.committed)
        if buffer.handle is not None:
            self._driver.release(buffer.handle)
        self._ids[0] += 1
        again = CallerBuffer(buffer.size, buffer.space, buffer.read_only, self._ids[0])
        again.address, again.committed = buffer.address, buffer.committed
        self._back(again)
        return again, self._start(again)

    def free(self, buffer: CallerBuffer) -> None:
        """Give back the buffer's mapping, memory and addresses. Nothing may use it any more."""
        if buffer.size and buffer.handle is None:
            self._driver.free(buffer.address)
        elif buffer.handle is not None:
            if buffer.visible:
                self._driver.unmap(buffer.address, buffer.committed)
            self._driver.release(buffer.handle)
            self._driver.address_free(buffer.address, buffer.committed)

    def unmap(self, buffer: CallerBuffer) -> None:
        """Take the buffer's own mapping away; its memory lives on."""
        self.wait(buffer)
        self._driver.unmap(buffer.address, buffer.committed)
        buffer.visible = False

    def wait(self, buffer: CallerBuffer) -> None:
        """Wait for the streams that were given work on ``buffer``."""
        for stream in sorted(buffer.streams):
            self._driver.stream_synchronize(stream)
        buffer.streams.clear()

    def _back(self, buffer: CallerBuffer) -> None:
        buffer.handle = self._driver.create(buffer.committed, device=self._device, space=buffer.space)
        self._driver.map(buffer.address, buffer.committed, buffer.handle)
        self._grant(buffer, Access.READ_WRITE)

    def _grant(self, buffer: CallerBuffer, access: Access) -> None:
        self._driver.set_access(buffer.address, buffer.committed, {self._device: access})

    def _start(self, buffer: CallerBuffer) -> dict[int, bytes]:
        contents = {offset: self._tokens.take(length) for offset, length in buffer.watched}
        self._driver.launch(None, writes=[Write(buffer.address + offset, data) for offset, data in contents.items()])
        buffer.visible = True
        if buffer.read_only and buffer.handle is not None:
            self._grant(buffer, Access.READ)
        return contents
