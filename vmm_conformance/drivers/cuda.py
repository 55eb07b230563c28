"""The driver ``cuda``: cuda-bindings, from 12.9 on, over NVIDIA's driver."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Sequence
from importlib import import_module, metadata
from typing import Any, Final

from vmm_conformance.contracts import DriverCapabilities, DriverError, DriverOptions
from vmm_conformance.contracts.sharing import POSIX_FD
from vmm_conformance.drivers.calls import DriverUnavailable, answered, ask, unnamed
from vmm_conformance.drivers.device import DeviceDriver
from vmm_conformance.drivers.warming import warm_up

_VMM_ATTRIBUTE: Final = 102
_FD_ATTRIBUTE: Final = 103
_PINNED: Final = 1
_DEVICE: Final = 1
_NON_BLOCKING: Final = 1
_UNTIMED: Final = 2
_RELAXED: Final = 2
_ALREADY_ENABLED: Final = 704


def load_binding() -> Any:
    """``cuda.bindings.driver``. Raises `DriverUnavailable` if cuda-bindings is not installed."""
    try:
        return import_module("cuda.bindings.driver")
    except ImportError as error:
        raise DriverUnavailable(
            f"the driver 'cuda' needs cuda-bindings, which cannot be imported ({error}); "
            "pip install 'vmm-conformance[cuda]'"
        ) from None


def _host_function(stream: int, function: int, data: int) -> tuple[int]:
    """``cuLaunchHostFunc``, past the binding, which has loaded the library."""
    launch = ctypes.CDLL("libcuda.so.1").cuLaunchHostFunc
    launch.argtypes = (ctypes.c_void_p,) * 3
    return (int(launch(stream, function, data)),)


class CudaCalls:
    """CUDA's calls as cuda-bindings spells them. Every device is used through its primary context.

    The binding's own numbers (``CUdeviceptr`` and its like) do not compare equal to anything, so only integers
    leave this class.
    """

    name = "cuda"

    def __init__(self) -> None:
        self._cuda = cuda = load_binding()
        self._relaxed = cuda.CUstreamCaptureMode(_RELAXED)
        self._current = threading.local()
        try:
            ask("open", cuda.cuInit, 0)
        except DriverUnavailable as error:
            raise DriverUnavailable(
                f"the driver 'cuda' needs NVIDIA's libcuda.so.1, which cannot be loaded ({error}); install the "
                "NVIDIA driver, or use --vmm-driver emulated-cuda"
            ) from None
        except DriverError as error:
            raise DriverUnavailable(f"the driver 'cuda' finds no usable NVIDIA GPU: {error}") from None
        self._version: int = ask("open", cuda.cuDriverGetVersion)
        self._contexts: dict[int, Any] = {}
        self._properties: dict[int, Any] = {}

    def versions(self) -> dict[str, str]:
        major, minor = divmod(self._version // 10, 100)
        return {"cuda-bindings": metadata.version("cuda-bindings"), "CUDA driver": f"{major}.{minor}"}

    def declared(self) -> DriverCapabilities:
        """As its documents and public issues tell; ``vmm-conformance probe`` measures."""
        return DriverCapabilities(
            set_access_part_of_mapping=True,
            partial_map=False,
            copy_spans_reservations=True,
            sharing=self._shares(),
            progress=False,
        )

    def _shares(self) -> bool:
        attribute = self._cuda.CUdevice_attribute(_FD_ATTRIBUTE)
        return bool(ask("open", self._cuda.cuDeviceGetAttribute, attribute, 0))

    # -- devices

    def use(self, device: int) -> None:
        if getattr(self._current, "device", None) != device:
            ask("device", self._cuda.cuCtxSetCurrent, self._context(device))
            self._current.device = device

    def _context(self, device: int) -> Any:
        if device not in self._contexts:
            self._contexts[device] = ask("device", self._cuda.cuDevicePrimaryCtxRetain, device)
        return self._contexts[device]

    def device_count(self) -> int:
        return int(ask("open", self._cuda.cuDeviceGetCount))

    def device_name(self, device: int) -> str:
        text: bytes = ask("open", self._cuda.cuDeviceGetName, 256, device)
        return text.split(b"\0")[0].decode(errors="replace")

    def has_virtual_memory(self, device: int) -> bool:
        return bool(ask("open", self._cuda.cuDeviceGetAttribute, self._cuda.CUdevice_attribute(_VMM_ATTRIBUTE), device))

    def can_access_peer(self, device: int, peer: int) -> bool:
        return bool(ask("can_access_peer", self._cuda.cuDeviceCanAccessPeer, device, peer))

    def enable_peer(self, peer: int) -> None:
        try:
            ask("open", self._cuda.cuCtxEnablePeerAccess, self._context(peer), 0)
        except DriverError as error:
            if error.status != _ALREADY_ENABLED:
                raise

    def mem_info(self) -> tuple[int, int]:
        free, total = ask("mem_info", self._cuda.cuMemGetInfo)
        return int(free), int(total)

    def synchronize(self) -> None:
        ask("device_synchronize", self._cuda.cuCtxSynchronize)

    # -- memory

    def _property(self, device: int) -> Any:
        """Pinned memory of a device, as the vendor's struct."""
        found = self._properties.get(device)
        if found is None:
            found = self._properties[device] = self._new_property(device)
        return found

    def _new_property(self, device: int) -> Any:
        made = self._cuda.CUmemAllocationProp()
        made.type = self._cuda.CUmemAllocationType(_PINNED)
        made.location.type = self._cuda.CUmemLocationType(_DEVICE)
        made.location.id = device
        return made

    def granularity(self, device: int, *, recommended: bool) -> int:
        option = self._cuda.CUmemAllocationGranularity_flags(int(recommended))
        return int(ask("granularity", self._cuda.cuMemGetAllocationGranularity, self._property(device), option))

    def granularity_option(self, device: int, option: int) -> int:
        number = unnamed(self._cuda.CUmemAllocationGranularity_flags, option)
        return int(ask("granularity_option", self._cuda.cuMemGetAllocationGranularity, self._property(device), number))

    def reserve(self, size: int, alignment: int, hint: int) -> int:
        return int(ask("reserve", self._cuda.cuMemAddressReserve, size, alignment, hint, 0))

    def address_free(self, address: int, size: int) -> None:
        ask("address_free", self._cuda.cuMemAddressFree, address, size)

    def create(self, size: int, device: int) -> int:
        return int(ask("create", self._cuda.cuMemCreate, size, self._property(device), 0))

    def create_shareable(self, size: int, device: int) -> int:
        wanted = self._new_property(device)
        wanted.requestedHandleTypes = self._cuda.CUmemAllocationHandleType(POSIX_FD)
        return int(ask("create_shareable", self._cuda.cuMemCreate, size, wanted, 0))

    def properties(self, handle: int) -> tuple[int, int, int, int]:
        found = ask("properties", self._cuda.cuMemGetAllocationPropertiesFromHandle, handle)
        return int(found.type), int(found.location.type), int(found.location.id), int(found.requestedHandleTypes)

    def export_handle(self, handle: int, kind: int, flags: int) -> int:
        number = unnamed(self._cuda.CUmemAllocationHandleType, kind)
        return int(ask("export_handle", self._cuda.cuMemExportToShareableHandle, handle, number, flags))

    def import_handle(self, descriptor: int) -> int:
        kind = self._cuda.CUmemAllocationHandleType(POSIX_FD)
        return int(ask("import_handle", self._cuda.cuMemImportFromShareableHandle, descriptor, kind))

    def legacy_ipc_handle(self, address: int) -> bytes:
        return bytes(ask("legacy_ipc_handle", self._cuda.cuIpcGetMemHandle, address).reserved)

    def retain(self, address: int) -> int:
        return int(ask("retain", self._cuda.cuMemRetainAllocationHandle, address))

    def release(self, handle: int) -> None:
        ask("release", self._cuda.cuMemRelease, handle)

    def map(self, address: int, size: int, handle: int, offset: int) -> None:
        ask("map", self._cuda.cuMemMap, address, size, offset, handle, 0)

    def unmap(self, address: int, size: int) -> None:
        ask("unmap", self._cuda.cuMemUnmap, address, size)

    def set_access(self, address: int, size: int, rights: Sequence[tuple[int, int]]) -> None:
        descriptors = [self._descriptor(device, flags) for device, flags in rights]
        ask("set_access", self._cuda.cuMemSetAccess, address, size, descriptors, len(descriptors))

    def _descriptor(self, device: int, flags: int) -> Any:
        """Written into the struct's bytes: its attributes refuse rights that have no name."""
        found = self._cuda.CUmemAccessDesc()
        numbers = (ctypes.c_int * 3).from_address(found.getPtr())
        numbers[0], numbers[1], numbers[2] = _DEVICE, device, flags
        return found

    def get_access(self, address: int, device: int) -> int:
        return int(ask("get_access", self._cuda.cuMemGetAccess, self._property(device).location, address))

    def address_range(self, address: int) -> tuple[int, int]:
        base, size = ask("address_range", self._cuda.cuMemGetAddressRange, address)
        return int(base), int(size)

    def alloc(self, size: int) -> int:
        return int(ask("alloc", self._cuda.cuMemAlloc, size))

    def free(self, address: int) -> None:
        ask("free", self._cuda.cuMemFree, address)

    def host_alloc(self, size: int) -> int:
        return int(ask("staging", self._cuda.cuMemAllocHost, size))

    def host_free(self, address: int) -> None:
        ask("staging", self._cuda.cuMemFreeHost, address)

    # -- copies

    def copy_in(self, target: int, source: int, size: int) -> None:
        ask("write", self._cuda.cuMemcpyHtoD, target, source, size)

    def copy_out(self, target: int, source: int, size: int) -> None:
        ask("read", self._cuda.cuMemcpyDtoH, target, source, size)

    def fill(self, target: int, value: int, size: int) -> None:
        ask("fill", self._cuda.cuMemsetD8, target, value, size)
        ask("fill", self._cuda.cuStreamSynchronize, 0)

    def copy_in_queued(self, target: int, source: int, size: int, stream: int) -> None:
        ask("write", self._cuda.cuMemcpyHtoDAsync, target, source, size, stream)

    def copy_out_queued(self, target: int, source: int, size: int, stream: int) -> None:
        ask("read", self._cuda.cuMemcpyDtoHAsync, target, source, size, stream)

    def copy_over_queued(self, target: int, source: int, size: int, stream: int) -> None:
        ask("copy", self._cuda.cuMemcpyDtoDAsync, target, source, size, stream)

    def copy_host_queued(self, target: int, source: int, size: int, stream: int) -> None:
        ask("graph_launch", self._cuda.cuMemcpyAsync, target, source, size, stream)

    def fill_queued(self, target: int, value: int, size: int, stream: int) -> None:
        ask("fill", self._cuda.cuMemsetD8Async, target, value, size, stream)

    # -- streams and events

    def stream_create(self) -> int:
        return int(ask("stream_create", self._cuda.cuStreamCreate, _NON_BLOCKING))

    def stream_destroy(self, stream: int) -> None:
        ask("stream_destroy", self._cuda.cuStreamDestroy, stream)

    def stream_synchronize(self, stream: int) -> None:
        ask("stream_synchronize", self._cuda.cuStreamSynchronize, stream)

    def stream_query(self, stream: int) -> bool:
        return answered("stream_query", self._cuda.cuStreamQuery, stream)

    def host_function(self, function: int, data: int, stream: int) -> None:
        """Past the binding, which calls ``function`` with the interpreter's lock: whoever waits there stops us all."""
        ask("hold", _host_function, stream, function, data)

    def stream_wait_event(self, stream: int, event: int) -> None:
        ask("stream_wait_event", self._cuda.cuStreamWaitEvent, stream, event, 0)

    def event_create(self) -> int:
        return int(ask("event_create", self._cuda.cuEventCreate, _UNTIMED))

    def event_destroy(self, event: int) -> None:
        ask("event_destroy", self._cuda.cuEventDestroy, event)

    def event_record(self, event: int, stream: int) -> None:
        ask("event_record", self._cuda.cuEventRecord, event, stream)

    def event_synchronize(self, event: int) -> None:
        ask("event_synchronize", self._cuda.cuEventSynchronize, event)

    def event_query(self, event: int) -> bool:
        return answered("event_query", self._cuda.cuEventQuery, event)

    # -- graphs

    def capture_begin(self, stream: int) -> None:
        ask("graph_begin", self._cuda.cuStreamBeginCapture, stream, self._relaxed)

    def capture_end(self, stream: int) -> int:
        return int(ask("graph_end", self._cuda.cuStreamEndCapture, stream))

    def graph_instantiate(self, graph: int) -> int:
        return int(ask("graph_instantiate", self._cuda.cuGraphInstantiate, graph, 0))

    def graph_launch(self, executable: int, stream: int) -> None:
        ask("graph_launch", self._cuda.cuGraphLaunch, executable, stream)

    def graph_destroy(self, graph: int) -> None:
        ask("graph_destroy", self._cuda.cuGraphDestroy, graph)

    def graph_exec_destroy(self, executable: int) -> None:
        ask("graph_exec_destroy", self._cuda.cuGraphExecDestroy, executable)


class CudaDriver(DeviceDriver):
    """A driver over the NVIDIA GPUs of this machine. Raises `DriverUnavailable` where it cannot be used."""

    def __init__(self, options: DriverOptions, memory: int = 0) -> None:
        super().__init__(CudaCalls(), options, memory)
        warm_up(self)
