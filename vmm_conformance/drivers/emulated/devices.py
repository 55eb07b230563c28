"""Devices and contexts: which device a call is for."""

from __future__ import annotations

from typing import Any, Final

from vmm_conformance.contracts import Status
from vmm_conformance.drivers.calls import EMULATED
from vmm_conformance.drivers.emulated.codes import PEER_ENABLED, PEER_NOT_ENABLED
from vmm_conformance.drivers.emulated.machine import SUCCESS, Machine, put_bytes

_PRIMARY_CONTEXT: Final = 0x5EED_0000
"""Plus 16 for each device: a client may keep it from one driver behind the library to the next."""
_FIRST_CONTEXT: Final = 0x5EEE_0000
_API_VERSION: Final = 3020

ATTRIBUTES: Final[dict[str, dict[int, int]]] = {
    "cuda": {
        1: 1024,  # threads of a block
        10: 32,  # a warp
        16: 1,  # multiprocessors
        33: 1,  # PCI bus
        36: 1_000_000,  # memory clock, kHz
        37: 4096,  # width of the memory bus, bits
        40: 1,  # engines for asynchronous copies
        41: 1,  # unified addresses
        75: 9,  # compute capability
        76: 0,
        99: 1,  # registered host memory is usable by its own address
        102: 1,  # virtual memory management
    },
    "hip": {
        1: 1,  # engines for asynchronous copies
        59: 4096,  # width of the memory bus, bits
        60: 1_000_000,  # memory clock, kHz
        89: 1,  # virtual memory management
    },
}
"""Attributes that are not 0. Sharing between processes, pools, multicast and compression are not emulated."""


class Devices(Machine):
    """Every device has one primary context; others may be made beside it. HIP's current device is a context too."""

    def _forget_all(self) -> None:
        super()._forget_all()
        self._contexts: dict[int, int] = {}
        self._primary: dict[int, int] = {}
        self._retained: dict[int, int] = {}
        self._flags: dict[int, int] = {}
        self._peers: set[tuple[int, int]] = set()

    # -- whose call it is

    def _device(self) -> int:
        """The current device of the calling thread. CUDA has none before a context is current."""
        caller = self._caller
        if self.hip:
            return caller.device
        contexts = caller.contexts
        if not contexts:
            self.refuse(Status.INVALID_CONTEXT, "current context", "no context is current; set one first")
        try:  # most calls ask for it: where all is well one look is enough
            return self._contexts[contexts[-1]]
        except KeyError:
            return self._device_of(contexts[-1])

    def _device_of(self, context: int) -> int:
        device = self._contexts.get(context)
        if device is None:
            self.refuse(Status.INVALID_CONTEXT, "context", f"{context:#x} is no context")
        return device

    def _check_device(self, call: str, device: int) -> None:
        if not self._running and not self.hip:
            self.refuse(Status.NOT_INITIALIZED, call, "cuInit was not called")
        if not 0 <= device < self._driver.device_count:
            self.refuse(Status.INVALID_DEVICE, call, f"device {device} is none of the {self._driver.device_count}")

    # -- devices

    def device_count(self, out: Any) -> int:
        if not out:
            self.invalid("device count")
        if not self._running and not self.hip:
            self.refuse(Status.NOT_INITIALIZED, "device count", "cuInit was not called")
        out[0] = self._driver.device_count
        return SUCCESS

    def device_get(self, out: Any, ordinal: int) -> int:
        self._check_device("device get", ordinal)
        out[0] = ordinal
        return SUCCESS

    def device_name(self, out: int, length: int, device: int) -> int:
        self._check_device("device name", device)
        if not out or length <= 0:
            self.invalid("device name")
        put_bytes(out, f"{EMULATED} {device}".encode()[: length - 1] + b"\0", length)
        return SUCCESS

    def device_bus_id(self, out: int, length: int, device: int) -> int:
        self._check_device("bus id", device)
        if not out or length <= 0:
            self.invalid("bus id")
        put_bytes(out, f"0000:{device + 1:02x}:00.0".encode()[: length - 1] + b"\0", length)
        return SUCCESS

    def device_uuid(self, out: int, device: int) -> int:
        self._check_device("uuid", device)
        if not out:
            self.invalid("uuid")
        put_bytes(out, b"vmm-conformance" + bytes([device]), 16)
        return SUCCESS

    def device_attribute(self, out: Any, attribute: int, device: int) -> int:
        if not out or attribute < 0:
            self.invalid("device attribute")
        self._check_device("device attribute", device)
        out[0] = ATTRIBUTES[self.vendor].get(attribute, 0)
        return SUCCESS

    def device_total(self, out: Any, device: int) -> int:
        self._check_device("total memory", device)
        out[0] = self._driver.mem_info(device).total
        return SUCCESS

    def device_compute(self, major: Any, minor: Any, device: int) -> int:
        self._check_device("compute capability", device)
        major[0], minor[0] = 9, 0
        return SUCCESS

    def device_reaches(self, out: Any, device: int, peer: int) -> int:
        if not out:
            self.invalid("peers")
        self._check_device("peers", device)
        self._check_device("peers", peer)
        out[0] = int(self._driver.can_access_peer(device, peer))
        return SUCCESS

    def device_set(self, device: int) -> int:
        self._check_device("set device", device)
        self._caller.device = device
        return SUCCESS

    def device_current(self, out: Any) -> int:
        out[0] = self._device()
        return SUCCESS

    def device_reset(self) -> int:
        """Nothing is taken back behind the driver's back: what a program leaves to a reset, it leaks."""
        return self.lacks("hipDeviceReset")

    def priority_range(self, least: Any, greatest: Any) -> int:
        if least:
            least[0] = 0
        if greatest:
            greatest[0] = -1
        return SUCCESS

    # -- peers: plain memory is reachable to all that can reach it, so this only keeps book

    def peer_enable(self, peer: int, flags: int) -> int:
        device = self._device()
        self._check_device("peer access", peer)
        if flags or not self._driver.can_access_peer(device, peer):
            self.invalid("peer access", f"device {device} cannot reach device {peer}, or flags are not 0")
        if (device, peer) in self._peers:
            self.refuse(PEER_ENABLED, "peer access", f"device {device} reaches device {peer} already")
        self._peers.add((device, peer))
        return SUCCESS

    def peer_disable(self, peer: int) -> int:
        pair = (self._device(), peer)
        if pair not in self._peers:
            self.refuse(PEER_NOT_ENABLED, "peer access", f"device {pair[0]} was not given access to {peer}")
        self._peers.discard(pair)
        return SUCCESS

    def context_peer_enable(self, context: int, flags: int) -> int:
        return self.peer_enable(self._device_of(context), flags)

    def context_peer_disable(self, context: int) -> int:
        return self.peer_disable(self._device_of(context))

    # -- contexts

    def _new_context(self, device: int, context: int = 0) -> int:
        context = context or _FIRST_CONTEXT + 16 * len(self._contexts)
        self._contexts[context] = device
        return context

    def primary_retain(self, out: Any, device: int) -> int:
        if not out:
            self.invalid("primary context")
        self._check_device("primary context", device)
        with self._lock:
            if device not in self._primary:
                self._primary[device] = self._new_context(device, _PRIMARY_CONTEXT + 16 * device)
            self._retained[device] = self._retained.get(device, 0) + 1
        out[0] = self._primary[device]
        return SUCCESS

    def primary_release(self, device: int) -> int:
        self._check_device("primary context", device)
        if not self._retained.get(device):
            self.refuse(Status.INVALID_CONTEXT, "primary context", f"that of device {device} is not retained")
        self._retained[device] -= 1
        return SUCCESS

    def primary_state(self, device: int, flags: Any, active: Any) -> int:
        self._check_device("primary context", device)
        flags[0] = self._flags.get(device, 0)
        active[0] = int(bool(self._retained.get(device)))
        return SUCCESS

    def primary_flags(self, device: int, flags: int) -> int:
        self._check_device("primary context", device)
        self._flags[device] = flags
        return SUCCESS

    def primary_reset(self, device: int) -> int:
        return self.lacks("cuDevicePrimaryCtxReset" if not self.hip else "hipDevicePrimaryCtxReset")

    def context_create(self, out: Any, flags: int, device: int) -> int:
        if not out:
            self.invalid("create context")
        self._check_device("create context", device)
        out[0] = context = self._new_context(device)
        return self.context_push(context)

    def context_create_with(self, out: Any, affinity: int, count: int, flags: int, device: int) -> int:
        return self.context_create(out, flags, device)

    def context_create_from(self, out: Any, parameters: int, flags: int, device: int) -> int:
        return self.context_create(out, flags, device)

    def context_destroy(self, context: int) -> int:
        self._device_of(context)
        if context in self._primary.values():
            self.refuse(Status.INVALID_CONTEXT, "destroy context", "a primary context is released instead")
        del self._contexts[context]
        contexts = self._caller.contexts
        contexts[:] = [other for other in contexts if other != context]
        return SUCCESS

    def context_push(self, context: int) -> int:
        self._caller.device = self._device_of(context)
        self._caller.contexts.append(context)
        return SUCCESS

    def context_pop(self, out: Any) -> int:
        if not self._caller.contexts:
            self.refuse(Status.INVALID_CONTEXT, "pop context", "no context is current")
        context = self._caller.contexts.pop()
        if out:
            out[0] = context
        return SUCCESS

    def context_set(self, context: int) -> int:
        contexts = self._caller.contexts
        if context:
            self._caller.device = self._device_of(context)
            contexts[-1:] = [context]
        elif contexts:
            contexts.pop()
        return SUCCESS

    def context_get(self, out: Any) -> int:
        contexts = self._caller.contexts
        out[0] = contexts[-1] if contexts else 0
        return SUCCESS

    def context_device(self, out: Any, context: int) -> int:
        out[0] = self._device_of(context) if context else self._device()
        return SUCCESS

    def context_flags(self, out: Any) -> int:
        out[0] = self._flags.get(self._device(), 0)
        return SUCCESS

    def context_api(self, context: int, out: Any) -> int:
        out[0] = _API_VERSION
        return SUCCESS

    def context_id(self, context: int, out: Any) -> int:
        out[0] = context or (self._caller.contexts or [0])[-1]
        return SUCCESS
