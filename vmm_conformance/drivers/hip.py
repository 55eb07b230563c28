"""The driver ``hip``: hip-python, from 7.2 on, over AMD's HIP runtime."""

from __future__ import annotations

import ctypes
import struct
import threading
from collections.abc import Sequence
from importlib import import_module, metadata
from typing import Any, Final

from vmm_conformance.contracts import DriverCapabilities, DriverError, DriverOptions
from vmm_conformance.contracts.sharing import POSIX_FD
from vmm_conformance.drivers.calls import EMULATED, DriverUnavailable, answered, ask, unnamed
from vmm_conformance.drivers.device import DeviceDriver
from vmm_conformance.drivers.warming import warm_up

_VMM_ATTRIBUTE: Final = 89
_PINNED: Final = 1
_DEVICE: Final = 1
_NON_BLOCKING: Final = 1
_UNTIMED: Final = 2
_ANY_DIRECTION: Final = 4
_RELAXED: Final = 2
_ALREADY_ENABLED: Final = 704
_HANDLE_TYPES_AT: Final = 4
_BY_VALUE: Final = (7, 2)
_CORRUPTS: Final = 7


def load_binding() -> Any:
    """hip-python's module. Raises `DriverUnavailable` if it is not installed."""
    try:
        package = import_module("hip")
        return getattr(package, "hip", None) or import_module("hip.hip")
    except ImportError as error:
        raise DriverUnavailable(
            f"the driver 'hip' needs hip-python, which cannot be imported ({error}); pip install 'vmm-conformance[hip]'"
        ) from None


def _address(struct: Any) -> int:
    """Where a struct of the binding's lies."""
    return int(struct.as_c_void_p().value)


class HipCalls:
    """HIP's calls as hip-python spells them; versions 7.2 and 10 agree on all that is used here."""

    name = "hip"

    def __init__(self) -> None:
        self._hip = hip = load_binding()
        self._any = hip.hipMemcpyKind(_ANY_DIRECTION)
        self._relaxed = hip.hipStreamCaptureMode(_RELAXED)
        self._current = threading.local()
        try:
            ask("open", hip.hipInit, 0)
        except DriverUnavailable as error:
            raise DriverUnavailable(
                f"the driver 'hip' needs ROCm's libamdhip64.so, which cannot be loaded ({error}); install ROCm, "
                "or use --vmm-driver emulated-hip"
            ) from None
        except DriverError as error:
            raise DriverUnavailable(f"the driver 'hip' finds no usable AMD GPU: {error}") from None
        self._version: int = ask("open", hip.hipRuntimeGetVersion)
        self._release = divmod(self._version // 100_000, 100)
        self._fills_structs = "(prop, handle)" in str(hip.hipMemGetAllocationPropertiesFromHandle.__doc__)
        self._properties: dict[int, Any] = {}

    def versions(self) -> dict[str, str]:
        major, rest = divmod(self._version, 10_000_000)
        minor, patch = divmod(rest, 100_000)
        return {"hip-python": metadata.version("hip-python"), "HIP runtime": f"{major}.{minor}.{patch}"}

    def declared(self) -> DriverCapabilities:
        """By version, as its sources and issues tell; ``vmm-conformance probe`` measures."""
        version = self._release
        return DriverCapabilities(
            unmap_spans_mappings=version >= (7, 0),
            read_only_enforced=False,
            unmap_waits=version >= (7, 15),
            old_codes=version < (7, 2),
            progress=False,
        )

    # -- devices

    def use(self, device: int) -> None:
        if getattr(self._current, "device", None) != device:
            ask("device", self._hip.hipSetDevice, device)
            self._current.device = device

    def device_count(self) -> int:
        return int(ask("open", self._hip.hipGetDeviceCount))

    def device_name(self, device: int) -> str:
        return str(ask("open", self._hip.hipDeviceGetName, 255, device))

    def has_virtual_memory(self, device: int) -> bool:
        attribute = self._hip.hipDeviceAttribute_t(_VMM_ATTRIBUTE)
        return bool(ask("open", self._hip.hipDeviceGetAttribute, attribute, device))

    def can_access_peer(self, device: int, peer: int) -> bool:
        return bool(ask("can_access_peer", self._hip.hipDeviceCanAccessPeer, device, peer))

    def enable_peer(self, peer: int) -> None:
        try:
            ask("open", self._hip.hipDeviceEnablePeerAccess, peer, 0)
        except DriverError as error:
            if error.status != _ALREADY_ENABLED:
                raise

    def mem_info(self) -> tuple[int, int]:
        free, total = ask("mem_info", self._hip.hipMemGetInfo)
        return int(free), int(total)

    def synchronize(self) -> None:
        ask("device_synchronize", self._hip.hipDeviceSynchronize)

    # -- memory

    def _property(self, device: int) -> Any:
        """Pinned memory of a device, as the vendor's struct."""
        found = self._properties.get(device)
        if found is None:
            found = self._properties[device] = self._new_property(device)
        return found

    def _new_property(self, device: int) -> Any:
        made = self._hip.hipMemAllocationProp()
        made.type = self._hip.hipMemAllocationType(_PINNED)
        made.location.type = self._hip.hipMemLocationType(_DEVICE)
        made.location.id = device
        return made

    def granularity(self, device: int, *, recommended: bool) -> int:
        option = self._hip.hipMemAllocationGranularity_flags(int(recommended))
        return int(ask("granularity", self._hip.hipMemGetAllocationGranularity, self._property(device), option))

    def granularity_option(self, device: int, option: int) -> int:
        number = unnamed(self._hip.hipMemAllocationGranularity_flags, option)
        return int(ask("granularity_option", self._hip.hipMemGetAllocationGranularity, self._property(device), number))

    def reserve(self, size: int, alignment: int, hint: int) -> int:
        return int(ask("reserve", self._hip.hipMemAddressReserve, size, alignment, hint, 0))

    def address_free(self, address: int, size: int) -> None:
        ask("address_free", self._hip.hipMemAddressFree, address, size)

    def create(self, size: int, device: int) -> int:
        return int(ask("create", self._hip.hipMemCreate, size, self._property(device), 0))

    def create_shareable(self, size: int, device: int) -> int:
        """The type of handle is in a union that the binding does not show."""
        wanted = self._new_property(device)
        ctypes.c_int.from_address(_address(wanted) + _HANDLE_TYPES_AT).value = POSIX_FD
        return int(ask("create_shareable", self._hip.hipMemCreate, size, wanted, 0))

    def properties(self, handle: int) -> tuple[int, int, int, int]:
        """The binding's versions differ in who makes the struct."""
        call, found = self._hip.hipMemGetAllocationPropertiesFromHandle, self._hip.hipMemAllocationProp()
        if self._fills_structs:
            ask("properties", call, found, handle)
        else:
            found = ask("properties", call, handle)
        numbers = (ctypes.c_int * 4).from_address(_address(found))
        return numbers[0], numbers[2], numbers[3], numbers[1]

    def export_handle(self, handle: int, kind: int, flags: int) -> int:
        descriptor, number = ctypes.c_int(-1), unnamed(self._hip.hipMemAllocationHandleType, kind)
        place = ctypes.addressof(descriptor)
        ask("export_handle", self._hip.hipMemExportToShareableHandle, place, handle, number, flags)
        return descriptor.value

    def import_handle(self, descriptor: int) -> int:
        """Until 7.1 the descriptor was passed by its address, and by its value since."""
        kind, number = self._hip.hipMemAllocationHandleType(POSIX_FD), ctypes.c_int(descriptor)
        given = descriptor if self._release >= _BY_VALUE else ctypes.addressof(number)
        return int(ask("import_handle", self._hip.hipMemImportFromShareableHandle, given, kind))

    def legacy_ipc_handle(self, address: int) -> bytes:
        if self._release[0] == _CORRUPTS and not self.device_name(0).startswith(EMULATED):
            raise NotImplementedError("HIP 7 may corrupt the kernel when it is asked for this")
        return bytes(ask("legacy_ipc_handle", self._hip.hipIpcGetMemHandle, address).reserved)

    def retain(self, address: int) -> int:
        return int(ask("retain", self._hip.hipMemRetainAllocationHandle, address))

    def release(self, handle: int) -> None:
        ask("release", self._hip.hipMemRelease, handle)

    def map(self, address: int, size: int, handle: int, offset: int) -> None:
        ask("map", self._hip.hipMemMap, address, size, offset, handle, 0)

    def unmap(self, address: int, size: int) -> None:
        ask("unmap", self._hip.hipMemUnmap, address, size)

    def set_access(self, address: int, size: int, rights: Sequence[tuple[int, int]]) -> None:
        """The descriptors are packed by hand: arrays of structs differ between versions of the binding."""
        packed = b"".join(struct.pack("iii", _DEVICE, device, flags) for device, flags in rights)
        ask("set_access", self._hip.hipMemSetAccess, address, size, bytearray(packed or bytes(12)), len(rights))

    def get_access(self, address: int, device: int) -> int:
        return int(ask("get_access", self._hip.hipMemGetAccess, self._property(device).location, address))

    def address_range(self, address: int) -> tuple[int, int]:
        base, size = ask("address_range", self._hip.hipMemGetAddressRange, address)
        return int(base), int(size)

    def alloc(self, size: int) -> int:
        return int(ask("alloc", self._hip.hipMalloc, size))

    def free(self, address: int) -> None:
        ask("free", self._hip.hipFree, address)

    def host_alloc(self, size: int) -> int:
        return int(ask("staging", self._hip.hipHostMalloc, size, 0))

    def host_free(self, address: int) -> None:
        ask("staging", self._hip.hipHostFree, address)

    # -- copies

    def copy_in(self, target: int, source: int, size: int) -> None:
        ask("write", self._hip.hipMemcpyHtoD, target, source, size)

    def copy_out(self, target: int, source: int, size: int) -> None:
        ask("read", self._hip.hipMemcpyDtoH, target, source, size)

    def fill(self, target: int, value: int, size: int) -> None:
        ask("fill", self._hip.hipMemset, target, value, size)
        ask("fill", self._hip.hipStreamSynchronize, 0)

    def copy_in_queued(self, target: int, source: int, size: int, stream: int) -> None:
        ask("write", self._hip.hipMemcpyHtoDAsync, target, source, size, stream)

    def copy_out_queued(self, target: int, source: int, size: int, stream: int) -> None:
        ask("read", self._hip.hipMemcpyDtoHAsync, target, source, size, stream)

    def copy_over_queued(self, target: int, source: int, size: int, stream: int) -> None:
        ask("copy", self._hip.hipMemcpyDtoDAsync, target, source, size, stream)

    def copy_host_queued(self, target: int, source: int, size: int, stream: int) -> None:
        ask("graph_launch", self._hip.hipMemcpyAsync, target, source, size, self._any, stream)

    def fill_queued(self, target: int, value: int, size: int, stream: int) -> None:
        ask("fill", self._hip.hipMemsetAsync, target, value, size, stream)

    # -- streams and events

    def stream_create(self) -> int:
        return int(ask("stream_create", self._hip.hipStreamCreateWithFlags, _NON_BLOCKING))

    def stream_destroy(self, stream: int) -> None:
        ask("stream_destroy", self._hip.hipStreamDestroy, stream)

    def stream_synchronize(self, stream: int) -> None:
        ask("stream_synchronize", self._hip.hipStreamSynchronize, stream)

    def stream_query(self, stream: int) -> bool:
        return answered("stream_query", self._hip.hipStreamQuery, stream)

    def host_function(self, function: int, data: int, stream: int) -> None:
        ask("hold", self._hip.hipLaunchHostFunc, stream, function, data)

    def stream_wait_event(self, stream: int, event: int) -> None:
        ask("stream_wait_event", self._hip.hipStreamWaitEvent, stream, event, 0)

    def event_create(self) -> int:
        return int(ask("event_create", self._hip.hipEventCreateWithFlags, _UNTIMED))

    def event_destroy(self, event: int) -> None:
        ask("event_destroy", self._hip.hipEventDestroy, event)

    def event_record(self, event: int, stream: int) -> None:
        ask("event_record", self._hip.hipEventRecord, event, stream)

    def event_synchronize(self, event: int) -> None:
        ask("event_synchronize", self._hip.hipEventSynchronize, event)

    def event_query(self, event: int) -> bool:
        return answered("event_query", self._hip.hipEventQuery, event)

    # -- graphs

    def capture_begin(self, stream: int) -> None:
        ask("graph_begin", self._hip.hipStreamBeginCapture, stream, self._relaxed)

    def capture_end(self, stream: int) -> int:
        return int(ask("graph_end", self._hip.hipStreamEndCapture, stream))

    def graph_instantiate(self, graph: int) -> int:
        return int(ask("graph_instantiate", self._hip.hipGraphInstantiateWithFlags, graph, 0))

    def graph_launch(self, executable: int, stream: int) -> None:
        ask("graph_launch", self._hip.hipGraphLaunch, executable, stream)

    def graph_destroy(self, graph: int) -> None:
        ask("graph_destroy", self._hip.hipGraphDestroy, graph)

    def graph_exec_destroy(self, executable: int) -> None:
        ask("graph_exec_destroy", self._hip.hipGraphExecDestroy, executable)


class HipDriver(DeviceDriver):
    """A driver over the AMD GPUs of this machine. Raises `DriverUnavailable` where it cannot be used."""

    def __init__(self, options: DriverOptions, memory: int = 0) -> None:
        super().__init__(HipCalls(), options, memory)
        warm_up(self)
