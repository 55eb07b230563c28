"""Copies and fills: between device and host memory, now or in a stream's order."""

from __future__ import annotations

from collections.abc import Callable
from ctypes import memmove, string_at

from vmm_conformance.contracts import DriverError, Status, Work
from vmm_conformance.drivers.emulated.machine import SUCCESS
from vmm_conformance.drivers.emulated.streams import LEGACY, Stream, StreamCalls

_HOST_TO_HOST, _IN, _OUT, _OVER, _ANY = range(5)
"""HIP's kinds of copies."""


class CopyCalls(StreamCalls):
    """``in`` is from host to device, ``out`` back, ``over`` within devices.

    A copy from host memory takes the bytes that are there at the call, also under capture. A copy to host memory
    stores them when the stream gets there. Copies without a stream wait for the default stream, but those within
    devices are queued on it.
    """

    # -- now

    def copy_in(self, target: int, source: int, size: int) -> int:
        if not source and size:
            self.invalid("copy", "the source is null")
        self._host_turn()
        self._now(lambda: self._driver.write(target, string_at(source, size)))
        return SUCCESS

    def copy_out(self, target: int, source: int, size: int) -> int:
        if not target and size:
            self.invalid("copy", "the target is null")
        self._host_turn()
        data = self._now(lambda: self._driver.read(source, size)).data[0]
        memmove(target, data, size)
        return SUCCESS

    def _now(self, do: Callable[[], Work]) -> Work:
        """What the host must not touch is refused as a bad argument: no work is in flight that could fault."""
        try:
            return do()
        except DriverError as error:
            if error.status == Status.ILLEGAL_ADDRESS:
                raise DriverError(Status.INVALID_VALUE, error.call, error.detail) from None
            raise

    def copy_over(self, target: int, source: int, size: int) -> int:
        return self.copy_over_queued(target, source, size, LEGACY)

    def copy_any(self, target: int, source: int, size: int) -> int:
        return self.copy_kind(target, source, size, _ANY)

    def copy_kind(self, target: int, source: int, size: int, kind: int) -> int:
        kind = self._kind(kind, target, source)
        if kind == _HOST_TO_HOST:
            self._host_turn()
            memmove(target, source, size)
            return SUCCESS
        return (self.copy_in, self.copy_out, self.copy_over)[kind - 1](target, source, size)

    def _kind(self, kind: int, target: int, source: int) -> int:
        if kind == _ANY:
            return 2 * self.is_device(source) + self.is_device(target)
        if not 0 <= kind < _ANY:
            self.invalid("copy", f"copies of kind {kind} are unknown")
        return kind

    def copy_peer(self, target: int, to: int, source: int, origin: int, size: int) -> int:
        return self.copy_over(target, source, size)

    def copy_between(self, target: int, to: int, source: int, origin: int, size: int) -> int:
        return self.copy_over(target, source, size)

    # -- queued

    def copy_in_queued(self, target: int, source: int, size: int, handle: int) -> int:
        if not source and size:
            self.invalid("copy", "the source is null")
        stream = self._order(self._stream(handle))
        return self._submitted(stream, self._driver.write(target, string_at(source, size), stream=stream.id))

    def copy_out_queued(self, target: int, source: int, size: int, handle: int) -> int:
        if not target and size:
            self.invalid("copy", "the target is null")
        stream = self._order(self._stream(handle))
        work = self._driver.read(source, size, stream=stream.id)
        if stream.capture is not None:
            stream.capture.outputs.append((target, size))
            return SUCCESS
        return self._submitted(stream, work, lambda done: _store(target, done.data[0]))

    def copy_over_queued(self, target: int, source: int, size: int, handle: int) -> int:
        stream = self._order(self._stream(handle))
        return self._submitted(stream, self._driver.copy(target, source, size, stream=stream.id))

    def copy_any_queued(self, target: int, source: int, size: int, handle: int) -> int:
        return self.copy_kind_queued(target, source, size, _ANY, handle)

    def copy_kind_queued(self, target: int, source: int, size: int, kind: int, handle: int) -> int:
        kind = self._kind(kind, target, source)
        if kind == _HOST_TO_HOST:
            stream = self._order(self._stream(handle))
            return self._then(stream, lambda _: _store(target, string_at(source, size)))
        queued = (self.copy_in_queued, self.copy_out_queued, self.copy_over_queued)
        return queued[kind - 1](target, source, size, handle)

    def copy_kind_waiting(self, target: int, source: int, size: int, kind: int, handle: int) -> int:
        self.copy_kind_queued(target, source, size, kind, handle)
        return self.stream_synchronize(handle)

    def copy_peer_queued(self, target: int, to: int, source: int, origin: int, size: int, handle: int) -> int:
        return self.copy_over_queued(target, source, size, handle)

    def copy_between_queued(self, target: int, to: int, source: int, origin: int, size: int, handle: int) -> int:
        return self.copy_over_queued(target, source, size, handle)

    # -- fills: they are queued, as vendors document them, also where no stream is named

    def fill_8(self, target: int, value: int, count: int) -> int:
        return self.fill_8_queued(target, value, count, LEGACY)

    def fill_16(self, target: int, value: int, count: int) -> int:
        return self.fill_16_queued(target, value, count, LEGACY)

    def fill_32(self, target: int, value: int, count: int) -> int:
        return self.fill_32_queued(target, value, count, LEGACY)

    def fill_8_queued(self, target: int, value: int, count: int, handle: int) -> int:
        stream = self._order(self._stream(handle))
        return self._submitted(stream, self._driver.fill(target, value & 0xFF, count, stream=stream.id))

    def fill_16_queued(self, target: int, value: int, count: int, handle: int) -> int:
        return self._pattern(target, (value & 0xFFFF).to_bytes(2, "little"), count, self._stream(handle))

    def fill_32_queued(self, target: int, value: int, count: int, handle: int) -> int:
        return self._pattern(target, value.to_bytes(4, "little"), count, self._stream(handle))

    def _pattern(self, target: int, pattern: bytes, count: int, stream: Stream) -> int:
        if target % len(pattern):
            self.invalid("fill", f"{target:#x} is no multiple of {len(pattern)}")
        self._order(stream)
        return self._submitted(stream, self._driver.write(target, pattern * count, stream=stream.id))

    # -- memory in a stream's order

    def memory_alloc_queued(self, out: object, size: int, handle: int) -> int:
        if not out:
            self.invalid("MemAllocAsync")
        out[0] = self._allocate(size, self._stream(handle).device)  # type: ignore[index]
        return SUCCESS

    def memory_free_queued(self, address: int, handle: int) -> int:
        """Waits for the stream, then frees: later than is allowed, but never before work in the stream is over."""
        status = self.stream_synchronize(handle)
        return status or self.memory_free(address)


def _store(target: int, data: bytes) -> None:
    memmove(target, data, len(data))
