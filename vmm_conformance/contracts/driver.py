"""The contract ``driver``: what a GPU's virtual-memory driver offers.

Every size, offset and alignment is in bytes. Addresses, handles, streams, events and graphs are plain
integers. A refused call raises `DriverError` and changes nothing (DRIVER-78). No call is ordered with
a stream unless it takes one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final, NamedTuple, Protocol


class Access(IntEnum):
    """Rights of one device on a mapping. Numbers are the vendors'."""

    NONE = 0
    READ = 1
    READ_WRITE = 3


class Granularity(NamedTuple):
    """Allocation granularity in bytes: both powers of two, ``minimum <= recommended``."""

    minimum: int
    recommended: int


class MemoryInfo(NamedTuple):
    """Free and total physical memory of one device, in bytes."""

    free: int
    total: int


class Range(NamedTuple):
    """``size`` bytes from ``address``."""

    address: int
    size: int

    @property
    def end(self) -> int:
        """The first address behind the range."""
        return self.address + self.size


class Live(NamedTuple):
    """What a driver still holds for its clients: counts, and physical bytes."""

    reservations: int
    handles: int
    mappings: int
    allocations: int
    bytes: int


class Write(NamedTuple):
    """``data`` stored at ``address``."""

    address: int
    data: bytes


class Copy(NamedTuple):
    """``size`` bytes from ``source`` to ``target``."""

    target: int
    source: int
    size: int


@dataclass(frozen=True, slots=True)
class DriverCapabilities:
    """Where drivers rightly differ. Each is tested as declared (V10, V37, V41, V50, V51, V53, V63, V75)."""

    unmap_spans_mappings: bool = True
    """One unmap may cover several whole adjacent mappings."""
    set_access_spans_mappings: bool = True
    """One set_access may cover several adjacent mappings."""
    set_access_part_of_mapping: bool = False
    """One set_access may cover a part of a mapping."""
    partial_map: bool = True
    """A mapping may be smaller than its handle."""
    map_offset: bool = False
    """A mapping may start inside its handle."""
    read_only_enforced: bool = True
    """A write through a read-only mapping is refused."""
    unmap_waits: bool = False
    """Unmap waits for work in flight that uses the range."""
    sharing: bool = True
    """Memory can be exported and imported as file descriptors; see `contracts.sharing`."""
    copy_spans_reservations: bool = False
    """One copy may reach from a reservation into the adjacent one."""
    old_codes: bool = False
    """reserve refuses bad arguments with OutOfMemory, as HIP did until 2025, and not with InvalidValue."""
    progress: bool = True
    """The driver runs queued work only when asked, so schedules can be chosen."""


@dataclass(slots=True)
class Work:
    """A ticket for queued work. ``data`` holds what it read, in order, once it has run."""

    id: int
    done: bool = False
    data: tuple[bytes, ...] = ()
    fault: Fault | None = None


@dataclass(frozen=True, slots=True)
class Fault:
    """Queued work touched a range it must not touch.

    ``reason`` is one of ``unmapped``, ``no access``, ``read only``, ``remapped``, ``freed``; ``cause``
    is the driver's serial number of the call that took memory or rights away, or 0 if none did.
    """

    address: int
    size: int
    reason: str
    cause: int = 0


WorkListener = Callable[[Work], None]


@dataclass(frozen=True, slots=True)
class SpaceSpec:
    """One memory space (colour) of a device: its alignment in bytes."""

    alignment: int = 256


DEFAULT_GRANULARITY: Final = Granularity(4096, 4096)
DEFAULT_SPACES: Final[Mapping[int, SpaceSpec]] = {0: SpaceSpec(256), 1: SpaceSpec(1024), 5: SpaceSpec(4096)}


@dataclass(frozen=True, slots=True)
class DriverOptions:
    """What a fresh driver is asked to be. Real devices take what they can from it."""

    devices: int = 1
    capacity: int = 64 << 20
    """Physical bytes per device."""
    granularity: Granularity = DEFAULT_GRANULARITY
    spaces: Mapping[int, SpaceSpec] = field(default_factory=lambda: dict(DEFAULT_SPACES))
    capabilities: DriverCapabilities = DriverCapabilities()
    peers: bool = True
    """Whether devices can reach each other's memory."""
    schedule: str = "late"
    """``late``: queued work runs only when something waits for it. ``eager``: at once, where it can."""


class Driver(Protocol):
    """A driver. The DRIVER invariants of the catalogue are its rules (`vmm-conformance list DRIVER`)."""

    @property
    def name(self) -> str: ...
    @property
    def real(self) -> bool: ...
    @property
    def capabilities(self) -> DriverCapabilities: ...
    @property
    def device_count(self) -> int: ...

    # -- discovery
    def granularity(self, device: int = 0, space: int = 0) -> Granularity: ...
    def space_alignment(self, device: int = 0, space: int = 0) -> int: ...
    def can_access_peer(self, device: int, peer: int) -> bool: ...
    def mem_info(self, device: int = 0) -> MemoryInfo: ...

    # -- virtual memory
    def reserve(self, size: int, *, alignment: int = 0, hint: int = 0) -> int: ...
    def address_free(self, address: int, size: int) -> None: ...
    def create(self, size: int, *, device: int = 0, space: int = 0) -> int: ...
    def retain(self, address: int) -> int: ...
    def release(self, handle: int) -> None: ...
    def map(self, address: int, size: int, handle: int, *, offset: int = 0) -> None: ...
    def unmap(self, address: int, size: int) -> None: ...
    def set_access(self, address: int, size: int, rights: Mapping[int, Access]) -> None: ...
    def get_access(self, address: int, device: int) -> Access: ...
    def address_range(self, address: int) -> Range: ...

    # -- plain allocation
    def alloc(self, size: int, *, device: int = 0, space: int = 0) -> int: ...
    def free(self, address: int) -> None: ...

    # -- streams and events
    def stream_create(self, device: int = 0) -> int: ...
    def stream_destroy(self, stream: int) -> None: ...
    def stream_synchronize(self, stream: int) -> None: ...
    def stream_query(self, stream: int) -> bool: ...
    def stream_wait_event(self, stream: int, event: int) -> None: ...
    def device_synchronize(self, device: int = 0) -> None: ...
    def progress(self, stream: int, count: int = 1) -> int: ...
    def event_create(self, device: int = 0) -> int: ...
    def event_destroy(self, event: int) -> None: ...
    def event_record(self, event: int, stream: int) -> None: ...
    def event_synchronize(self, event: int) -> None: ...
    def event_query(self, event: int) -> bool: ...

    # -- work: ``stream=None`` is the host, now
    def copy(self, target: int, source: int, size: int, *, stream: int | None = None) -> Work: ...
    def fill(self, target: int, value: int, size: int, *, stream: int | None = None) -> Work: ...
    def write(self, target: int, data: bytes, *, stream: int | None = None) -> Work: ...
    def read(self, source: int, size: int, *, stream: int | None = None) -> Work: ...
    def launch(
        self,
        stream: int | None,
        *,
        reads: Sequence[Range] = (),
        copies: Sequence[Copy] = (),
        writes: Sequence[Write] = (),
    ) -> Work: ...

    # -- graphs
    def graph_begin(self, stream: int) -> None: ...
    def graph_end(self, stream: int) -> int: ...
    def graph_instantiate(self, graph: int) -> int: ...
    def graph_launch(self, executable: int, stream: int) -> Work: ...
    def graph_destroy(self, graph: int) -> None: ...
    def graph_exec_destroy(self, executable: int) -> None: ...

    # -- the test's side
    def listen(self, listener: WorkListener | None) -> None: ...
    def live(self) -> Live: ...
    def close(self) -> None: ...
