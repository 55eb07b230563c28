"""Memory: the virtual-memory calls, plain memory, host memory, and what is known of an address."""

from __future__ import annotations

import ctypes
import mmap
from typing import Any, Final, NamedTuple

from vmm_conformance.contracts import Access, DriverError, Status
from vmm_conformance.contracts.sharing import POSIX_FD, SharingDriver
from vmm_conformance.drivers.emulated.codes import ALREADY_REGISTERED, NOT_REGISTERED
from vmm_conformance.drivers.emulated.devices import Devices
from vmm_conformance.drivers.emulated.machine import SUCCESS, put_bytes

_PINNED: Final = 1
_UNCACHED: Final = 0x4000_0000
_DEVICE, _HOST, _HOST_NUMA, _HOST_NUMA_CURRENT = 1, 2, 3, 4
_HANDLE_TYPES: Final = (0, 1, 2, 4, 8)
_ACCESSES: Final = {int(access): access for access in Access}
_REMEMBERED: Final = 10_000
_IPC_HANDLE: Final = 64


class Properties(NamedTuple):
    """What a handle was created with: type, types of shareable handles, location."""

    kind: int
    handle_types: int
    location: int
    id: int


class MemoryCalls(Devices):
    """``space`` is the memory space that plain memory comes from."""

    space = 0

    def _forget_all(self) -> None:
        super()._forget_all()
        self._properties: dict[int, Properties] = {}
        self._low = 1 << 64
        self._high = 0
        self._host: dict[int, mmap.mmap] = {}
        self._registered: dict[int, int] = {}

    # -- reservations

    def address_reserve(self, out: Any, size: int, alignment: int, hint: int, flags: int) -> int:
        if flags or not out:
            self.invalid("MemAddressReserve")
        address = self._driver.reserve(size, alignment=alignment, hint=hint)
        self._ours(address, size)
        out[0] = address
        return SUCCESS

    def address_free(self, address: int, size: int) -> int:
        self._driver.address_free(address, size)
        return SUCCESS

    def _ours(self, address: int, size: int) -> None:
        """Addresses that the driver gives out lie together, so a low and a high one tell them from host memory."""
        if address < self._low:
            self._low = address
        if address + size > self._high:
            self._high = address + size

    def is_device(self, address: int) -> bool:
        """Whether an address is none of the host's."""
        return self._low <= address < self._high

    # -- handles

    def memory_create(self, out: Any, size: int, properties: Any, flags: int) -> int:
        if flags or not out or not properties:
            self.invalid("MemCreate")
        wanted = self._wanted("MemCreate", properties)
        shared = self._sharing() if wanted.handle_types == POSIX_FD else None
        create = shared.create_shareable if shared else self._driver.create
        handle = create(size, device=wanted.id)
        self._remember(handle, wanted)
        out[0] = handle
        return SUCCESS

    def _remember(self, handle: int, wanted: Properties) -> None:
        kept = self._properties
        kept[handle] = wanted
        if len(kept) > _REMEMBERED:  # ids are never used again, so old ones only pile up
            del kept[next(iter(kept))]

    def _wanted(self, call: str, properties: Any) -> Properties:
        kind, types, location, number = properties[0], properties[1], properties[2], properties[3]
        if kind != _PINNED and not (self.hip and kind == _UNCACHED):
            self.invalid(call, f"memory of type {kind} is unknown; use 1, pinned")
        if location in (_HOST, _HOST_NUMA, _HOST_NUMA_CURRENT):
            self.refuse(Status.NOT_SUPPORTED, call, "memory of the host is not emulated; use a device")
        if location != _DEVICE:
            self.invalid(call, f"a location of type {location} is unknown; use 1, a device")
        if types not in _HANDLE_TYPES:
            self.invalid(call, f"shareable handles of type {types} are unknown")
        return Properties(kind, types, location, number)

    def memory_release(self, handle: int) -> int:
        self._driver.release(handle)
        return SUCCESS

    def memory_retain(self, out: Any, address: int) -> int:
        if not out:
            self.invalid("MemRetainAllocationHandle")
        out[0] = self._driver.retain(address)
        return SUCCESS

    def _sharing(self) -> SharingDriver | None:
        """The driver, if it shares memory."""
        driver = self._driver
        return driver if isinstance(driver, SharingDriver) and self._driver.capabilities.sharing else None

    def memory_properties(self, out: Any, handle: int) -> int:
        driver: Any = self._driver
        found = self._properties.get(handle)
        if out and isinstance(driver, SharingDriver):
            told = driver.properties(handle)
            found = Properties(told.type, told.handle_types, told.location, told.device)
        if not out or found is None:
            self.invalid("MemGetAllocationPropertiesFromHandle", f"{handle} is no handle, or a pointer is null")
        for index, value in enumerate((*found, 0, 0, 0, 0)):
            out[index] = value
        return SUCCESS

    def memory_granularity(self, out: Any, properties: Any, option: int) -> int:
        driver: Any = self._driver
        tells = isinstance(driver, SharingDriver)
        if not out or not properties or not (tells or option in (0, 1)):
            self.invalid("MemGetAllocationGranularity", f"option {option} is unknown, or a pointer is null")
        wanted = self._wanted("MemGetAllocationGranularity", properties)
        out[0] = (
            driver.granularity_option(option, device=wanted.id) if tells else driver.granularity(wanted.id)[option]
        )
        return SUCCESS

    def memory_export(self, out: int, handle: int, kind: int, flags: int) -> int:
        shared = self._sharing()
        if not out or not handle or (flags and shared is None):
            self.invalid("MemExportToShareableHandle")
        if shared is None:
            return self.lacks(f"{'hip' if self.hip else 'cu'}MemExportToShareableHandle")
        ctypes.c_int.from_address(out).value = shared.export_handle(handle, kind=kind, flags=flags)
        return SUCCESS

    def memory_import(self, out: Any, handle: int, kind: int) -> int:
        if not out or (self.hip and not handle):
            self.invalid("MemImportFromShareableHandle")
        shared = self._sharing()
        if shared is None:
            return self.lacks(f"{'hip' if self.hip else 'cu'}MemImportFromShareableHandle")
        if kind != POSIX_FD:
            self.invalid("MemImportFromShareableHandle", f"shareable handles of type {kind} are not emulated")
        out[0] = shared.import_handle(ctypes.c_int(handle).value)
        return SUCCESS

    def legacy_ipc_handle(self, out: int, address: int) -> int:
        driver: Any = self._driver
        if not out:
            self.invalid("IpcGetMemHandle")
        if not isinstance(driver, SharingDriver):
            return self.lacks(f"{'hip' if self.hip else 'cu'}IpcGetMemHandle")
        put_bytes(out, driver.legacy_ipc_handle(address), _IPC_HANDLE)
        return SUCCESS

    # -- mappings

    def memory_map(self, address: int, size: int, offset: int, handle: int, flags: int) -> int:
        if flags or not handle:
            self.invalid("MemMap")
        self._driver.map(address, size, handle, offset=offset)
        return SUCCESS

    def memory_unmap(self, address: int, size: int) -> int:
        self._driver.unmap(address, size)
        return SUCCESS

    def memory_set_access(self, address: int, size: int, descriptors: Any, count: int) -> int:
        if not descriptors or not count:
            self.invalid("MemSetAccess", "no descriptor is given")
        rights: dict[int, Access] = {}
        for first in range(0, 3 * count, 3):
            kind, number, flags = descriptors[first], descriptors[first + 1], descriptors[first + 2]
            if kind == _DEVICE:
                rights[number] = _ACCESSES.get(flags, flags)
            else:
                self._host_access(kind, flags)
        if rights:
            self._driver.set_access(address, size, rights)
        return SUCCESS

    def _host_access(self, kind: int, flags: int) -> None:
        """Rights of the host on a device's memory: HIP grants them, CUDA knows none."""
        if kind != _HOST or flags not in _ACCESSES:
            self.invalid("MemSetAccess", f"a location of type {kind}, or the rights {flags}, are unknown")
        if not self.hip:
            self.refuse(Status.NOT_SUPPORTED, "MemSetAccess", "the host gets no access to memory of a device")

    def memory_get_access(self, out: Any, location: Any, address: int) -> int:
        if not out or not location or location[0] != _DEVICE:
            self.invalid("MemGetAccess", "a pointer is null, or the location is no device")
        out[0] = int(self._driver.get_access(address, location[1]))
        return SUCCESS

    # -- plain memory

    def memory_info(self, free: Any, total: Any) -> int:
        if not free or not total:
            self.invalid("MemGetInfo")
        free[0], total[0] = self._driver.mem_info(self._device())
        return SUCCESS

    def memory_alloc(self, out: Any, size: int) -> int:
        if not out:
            self.invalid("MemAlloc")
        out[0] = self._allocate(size, self._device()) if size or not self.hip else 0
        return SUCCESS

    def memory_alloc_with(self, out: Any, size: int, flags: int) -> int:
        return self.memory_alloc(out, size)

    def _allocate(self, size: int, device: int) -> int:
        address = self._driver.alloc(size, device=device, space=self.space)
        self._ours(address, size)
        return address

    def memory_free(self, address: int) -> int:
        """Both vendors wait for work in flight before plain memory goes."""
        if address or not self.hip:
            self._settle()
            self._driver.free(address)
        return SUCCESS

    def _settle(self) -> None:
        """Wait for all work in flight; see `StreamCalls`."""

    def memory_range(self, base: Any, size: Any, address: int) -> int:
        found = self._driver.address_range(address)
        if base:
            base[0] = found.address
        if size:
            size[0] = found.size
        return SUCCESS

    # -- host memory

    def host_alloc(self, out: Any, size: int) -> int:
        if not out or not size:
            self.invalid("host memory")
        memory = mmap.mmap(-1, size)
        address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        self._host[address] = memory
        self._registered[address] = size
        out[0] = address
        return SUCCESS

    def host_alloc_with(self, out: Any, size: int, flags: int) -> int:
        return self.host_alloc(out, size)

    def host_free(self, address: int) -> int:
        if not address and self.hip:
            return SUCCESS
        if self._host.pop(address, None) is None:
            self.invalid("free host memory", f"{address:#x} was not allocated, or is freed already")
        del self._registered[address]
        return SUCCESS

    def host_register(self, address: int, size: int, flags: int) -> int:
        if not address or not size:
            self.invalid("register host memory")
        if address in self._registered:
            self.refuse(ALREADY_REGISTERED, "register host memory", f"{address:#x} is registered already")
        self._registered[address] = size
        return SUCCESS

    def host_unregister(self, address: int) -> int:
        if address not in self._registered or address in self._host:
            self.refuse(NOT_REGISTERED, "unregister host memory", f"{address:#x} is not registered")
        del self._registered[address]
        return SUCCESS

    def host_pointer(self, out: Any, address: int, flags: int) -> int:
        if not out or flags or not self.is_registered(address):
            self.invalid("host pointer", f"{address:#x} is not registered, or flags are not 0")
        out[0] = address
        return SUCCESS

    def host_flags(self, out: Any, address: int) -> int:
        if not self.is_registered(address):
            self.invalid("host flags", f"{address:#x} is not registered")
        out[0] = 0
        return SUCCESS

    def is_registered(self, address: int) -> bool:
        """Whether host memory at ``address`` is known to the driver."""
        return any(start <= address < start + size for start, size in self._registered.items())

    # -- what is known of an address

    def pointer_attribute(self, out: int, attribute: int, address: int) -> int:
        if not out:
            self.invalid("pointer attribute")
        kind = _ATTRIBUTE_TYPES.get(attribute)
        value = self._pointer_fact(attribute, address)
        if kind is None or value is None:
            self.invalid("pointer attribute", f"attribute {attribute} of {address:#x} is unknown")
        kind.from_address(out).value = value
        return SUCCESS

    def pointer_attributes(self, count: int, attributes: Any, outs: Any, address: int) -> int:
        """Many at once: what is unknown of an address reads 0, and is no error."""
        for index in range(count):
            kind = _ATTRIBUTE_TYPES.get(attributes[index], ctypes.c_int)
            kind.from_address(outs[index]).value = self._pointer_fact(attributes[index], address) or 0
        return SUCCESS

    def _pointer_fact(self, attribute: int, address: int) -> int | None:
        """One attribute by CUDA's number (HIP's are the same), or None of an address that nobody knows."""
        if not self.is_device(address):
            return {2: 1, 3: address, 4: address, 8: 0}.get(attribute) if self.is_registered(address) else None
        try:
            start, size = self._driver.address_range(address)
        except DriverError:
            return None
        device = self._device()
        context = self._context_of(device)
        return {1: context, 2: 2, 3: address, 8: 0, 9: device, 11: start, 12: size, 13: 1}.get(attribute)

    def _context_of(self, device: int) -> int:
        return self._primary.get(device, 0)

    def pointer_facts(self, out: int, address: int) -> int:
        """HIP's struct: type, device, both pointers, managed, flags."""
        kind = self._pointer_fact(2, address)
        if not out or kind is None:
            self.invalid("pointer attributes", f"{address:#x} is unknown")
        numbers = (ctypes.c_int * 2).from_address(out)
        numbers[0], numbers[1] = (2 if kind == 2 else 1), self._device()
        pointers = (ctypes.c_size_t * 2).from_address(out + 8)
        pointers[0], pointers[1] = address, 0 if kind == 2 else address
        rest = (ctypes.c_int * 2).from_address(out + 24)
        rest[0] = rest[1] = 0
        return SUCCESS


_ATTRIBUTE_TYPES: Final[dict[int, Any]] = {
    1: ctypes.c_size_t,
    2: ctypes.c_uint,
    3: ctypes.c_size_t,
    4: ctypes.c_size_t,
    8: ctypes.c_uint,
    9: ctypes.c_int,
    11: ctypes.c_size_t,
    12: ctypes.c_size_t,
    13: ctypes.c_int,
}
"""The type of each pointer attribute: context, memory type, pointers, managed, device, range, mapped."""
