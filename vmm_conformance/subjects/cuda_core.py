"""cuda.core's ``VirtualMemoryResource``, unmodified, as a subject of the contract ``allocator``.

It calls the CUDA driver by itself, so it is put under test over ``emulated-cuda``: there its calls can be recorded,
and made to fail. ``Buffer.close`` documents that memory is freed in a stream's order; ``deallocate=immediate`` lets
the harness wait first, as for an allocator that says nothing of the kind. docs/found.md says what was found.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from contextlib import redirect_stderr
from functools import cache
from importlib import metadata
from importlib.util import find_spec
from threading import get_ident
from typing import Any, Final

from vmm_conformance.contracts import Block, Driver, DriverError, Status
from vmm_conformance.drivers.emulated import bring_in
from vmm_conformance.drivers.emulated.adapted import watch_foreign_calls

_EXTRA: Final = "pip install 'vmm-conformance[cuda-core]'"
_MOST_DEVICES: Final = 8
_NAMES: Final = {f"CUDA_ERROR_{status.name}": status for status in Status}


class CudaCore:
    """The subject. ``deallocate`` is ``stream`` or ``immediate``; ``shrink`` is ``yes`` to let buffers shrink.

    That ``modify_allocation`` shrinks is documented nowhere, but it takes a smaller size.
    """

    name = "cuda-core"

    def __init__(self, deallocate: str = "stream", shrink: str = "no") -> None:
        if deallocate not in ("stream", "immediate"):
            raise TypeError(f"deallocate={deallocate} is unknown; accepted: stream, immediate")
        if shrink not in ("yes", "no"):
            raise TypeError(f"shrink={shrink} is unknown; accepted: yes, no")
        self.capabilities: Mapping[str, Any] = {"deallocate": deallocate, "shrink": shrink == "yes"}

    def __call__(self, **parameters: str) -> CudaCore:
        """The subject with these parameters."""
        return CudaCore(**parameters)

    @property
    def version(self) -> str:
        """cuda.core's, with that of the bindings under it; empty where there is none."""
        if not _installed():
            return ""
        return f"{metadata.version('cuda-core')} with cuda-bindings {metadata.version('cuda-bindings')}"

    def missing(self, driver: str) -> str:
        """Why it cannot be run over a driver of that name."""
        if not driver.startswith("emulated-cuda"):
            return f"cuda-core calls the CUDA driver by itself, and {driver!r} cannot see it; use emulated-cuda"
        return "" if _installed() else f"cuda.core is not installed; {_EXTRA}"

    def allocator(self, driver: Driver, device: int) -> Resource:
        """A resource on ``device``, whose driver calls are recorded as calls on ``driver``."""
        watch_foreign_calls("cuda", driver)
        _show_devices(get_ident())
        return Resource(driver, device)


class Resource:
    """One resource, and the buffers that it has handed out.

    A block's committed size is what its buffer says it is. Buffers have no peers beside those that the resource was
    made with: all that the driver says can reach the memory.
    """

    def __init__(self, driver: Driver, device: int) -> None:
        from cuda.core import Device, VirtualMemoryResource, VirtualMemoryResourceOptions

        others = (other for other in range(driver.device_count) if other != device)
        peers = tuple(other for other in others if driver.can_access_peer(other, device))
        self._device = Device(device)
        self._device.set_current()
        self._resource = VirtualMemoryResource(self._device, VirtualMemoryResourceOptions(peers=peers))
        self._buffers: dict[int, Any] = {}
        self._granule = driver.granularity(device).recommended

    def allocate(self, size: int, *, stream: int, space: int = 0) -> Block:
        """A buffer; the resource knows no memory spaces, and takes no notice of the stream."""
        buffer = self._ask("allocate", lambda: self._resource.allocate(size, stream=_stream(stream)))
        return self._block(buffer, size)

    def grow(self, block: Block, size: int, *, stream: int) -> Block:
        """The buffer that ``modify_allocation`` returns. It takes no stream."""
        buffer = self._buffers[block.address]
        grown = self._ask("grow", lambda: self._resource.modify_allocation(buffer, size))
        del self._buffers[block.address]
        return self._block(grown, size)

    def shrink(self, block: Block, size: int, *, stream: int) -> Block:
        """The same with a smaller size. A buffer that is larger by a granule and more has not been shrunk to it."""
        shrunk = self.grow(block, size, stream=stream)
        return shrunk if shrunk.committed < size + self._granule else shrunk._replace(size=shrunk.committed)

    def deallocate(self, block: Block, *, stream: int) -> None:
        """Close the block's buffer on that stream."""
        buffer = self._buffers.pop(block.address)
        self._ask("deallocate", lambda: buffer.close(_stream(stream)))

    def close(self) -> None:
        """A resource has no end of its own: what it has handed out is closed, in the order it came."""
        while self._buffers:
            buffer = self._buffers.pop(next(iter(self._buffers)))
            self._ask("close", buffer.close)

    def _block(self, buffer: Any, size: int) -> Block:
        address = int(buffer.handle)
        self._buffers[address] = buffer
        return Block(address, size, buffer.size)

    def _ask(self, call: str, action: Callable[[], Any]) -> Any:
        """Its errors carry the driver's code in their text. Of what fails in a close it only prints a warning."""
        self._device.set_current()
        with redirect_stderr(io.StringIO()):
            try:
                return action()
            except Exception as error:
                status = _NAMES.get(str(error).partition(":")[0])
                if status is None:
                    raise
                raise DriverError(status, call, f"{type(error).__name__}: {error}") from error


class _ManyDevices:
    """A driver that says it has more devices than it has."""

    device_count = _MOST_DEVICES

    def __init__(self, driver: Driver) -> None:
        self._driver = driver

    def __getattr__(self, name: str) -> Any:
        return getattr(self._driver, name)


@cache
def _show_devices(thread: int) -> None:
    """cuda.core counts devices once in a thread; here one driver has fewer of them than the next."""
    from cuda.core import Device

    library = bring_in("cuda")
    behind = library.driver
    library.detour(_ManyDevices(behind))
    Device.get_all_devices()
    library.detour(behind)


def _stream(handle: int) -> Any:
    from cuda.core import Stream

    return Stream.from_handle(handle)


def _installed() -> bool:
    return find_spec("cuda") is not None and find_spec("cuda.core") is not None


cuda_core = CudaCore()
