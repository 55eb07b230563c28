"""The host driver: a strict, stateful, deterministic driver over real memory of this machine."""

from __future__ import annotations

from collections.abc import Sequence

from vmm_conformance.contracts import Copy, DriverError, Range, Status, Work, Write
from vmm_conformance.drivers.host.sharing import Sharing
from vmm_conformance.drivers.host.work import Fill


class HostDriver(Sharing):
    """The contract `Driver` without a GPU: strict wherever the vendors' documents are.

    Addresses are addresses of this process, so native code can use them, and dies if it uses one that
    is not mapped. A driver belongs to the process that made it: use none across a fork. Raises
    `HostUnsupported` where the system is not Linux, `ValueError` for options no driver can have.
    """

    # -- work

    def copy(self, target: int, source: int, size: int, *, stream: int | None = None) -> Work:
        with self._lock:
            self._check_size("copy", size)
            return self._submit("copy", stream, (Copy(target, source, size),))

    def fill(self, target: int, value: int, size: int, *, stream: int | None = None) -> Work:
        with self._lock:
            self._check_size("fill", size)
            if not 0 <= value <= 255:
                raise DriverError(Status.INVALID_VALUE, "fill", f"value {value} is no byte; use 0 to 255")
            return self._submit("fill", stream, (Fill(target, value, size),))

    def write(self, target: int, data: bytes, *, stream: int | None = None) -> Work:
        with self._lock:
            return self._submit("write", stream, (Write(target, bytes(data)),))

    def read(self, source: int, size: int, *, stream: int | None = None) -> Work:
        with self._lock:
            self._check_size("read", size)
            return self._submit("read", stream, (Range(source, size),))

    def launch(
        self,
        stream: int | None,
        *,
        reads: Sequence[Range] = (),
        copies: Sequence[Copy] = (),
        writes: Sequence[Write] = (),
    ) -> Work:
        """One item of work, like a kernel: all reads, then all copies, then all writes, each in order."""
        with self._lock:
            for size in [r.size for r in reads] + [c.size for c in copies]:
                self._check_size("launch", size)
            stored = [Write(address, bytes(data)) for address, data in writes]
            return self._submit("launch", stream, (*reads, *copies, *stored))

    def _check_size(self, call: str, size: int) -> None:
        if size < 0:
            raise DriverError(Status.INVALID_VALUE, call, f"size {size} must not be negative")

    # -- the end

    def close(self) -> None:
        """Run what is queued, and give everything back, whatever state the driver is in."""
        if self._closed:
            return
        try:
            with self._lock:
                self._let_everything_go()
                self._run_everything()
        finally:
            self._closed = True
            self._close_backing()
