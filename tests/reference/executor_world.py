"""A driver that keeps a record and fails on demand, and a caller with buffers, for executor tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, cast

from vmm_conformance.contracts import (
    Access,
    Buffer,
    Command,
    Driver,
    DriverError,
    DriverOptions,
    Executable,
    Range,
    Slot,
    Status,
    Table,
    Work,
    Write,
)
from vmm_conformance.drivers.host import HostDriver
from vmm_reference.step_executor import SkipRemapExecutor

G = 4096


class Spy:
    """A driver that writes down its calls, and fails the k-th call of a kind from now on (``fail``)."""

    def __init__(self, driver: HostDriver) -> None:
        self.driver = driver
        self.calls: list[tuple[str, tuple[Any, ...]]] = []
        self.faults: dict[str, int] = {}

    def fail(self, **kth: int) -> None:
        self.faults = dict(kth)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.driver, name)
        if not callable(value):
            return value

        def call(*args: Any, **kwargs: Any) -> Any:
            self.calls.append((name, (*args, *kwargs.values())))
            if name in self.faults:
                self.faults[name] -= 1
                if not self.faults[name]:
                    del self.faults[name]
                    raise DriverError(Status.UNKNOWN, name, "injected")
            return value(*args, **kwargs)

        return call

    def names(self) -> list[str]:
        return [name for name, _ in self.calls]

    def of(self, *names: str) -> list[str]:
        return [name for name, _ in self.calls if name in names]


@dataclass
class World:
    """A host driver, one stream per device, and a caller that owns buffers."""

    options: DriverOptions = field(default_factory=DriverOptions)

    def __post_init__(self) -> None:
        self.host = HostDriver(self.options)
        self.spy = Spy(self.host)
        self.stream = self.host.stream_create(0)
        self.tables: list[Table] = []
        self.persistent: list[tuple[int, ...] | None] = []
        self.ids = count(1)
        self.works: list[Work] = []

    @property
    def driver(self) -> Driver:
        return cast(Driver, self.spy)

    def buffer(self, size: int, *, committed: int = 0, device: int = 0, at: int = 0) -> Buffer:
        committed = committed or max(-(-size // G), 1) * G
        handle = self.host.create(committed, device=device)
        address = at or self.host.reserve(committed)
        self.host.map(address, committed, handle)
        self.host.set_access(address, committed, {device: Access.READ_WRITE})
        return Buffer(address, size, committed, handle, next(self.ids))

    def put(self, buffer: Buffer, data: bytes) -> Buffer:
        self.host.write(buffer.address, data)
        return buffer

    def get(self, buffer: Buffer, size: int = 1) -> bytes:
        return self.host.read(buffer.address, size).data[0]

    def drain(self) -> None:
        self.host.device_synchronize(0)
        assert [work.fault for work in self.works if work.fault] == []

    def executor(
        self, slots: int | Sequence[Slot], *, commands: Sequence[Command] | None = None, **settings: Any
    ) -> SkipRemapExecutor:
        shapes = tuple(Slot() for _ in range(slots)) if isinstance(slots, int) else tuple(slots)
        named = (Command(tuple(range(len(shapes)))),) if commands is None else tuple(commands)
        return SkipRemapExecutor(self.driver, Executable(shapes, named, **settings))

    def step(
        self,
        executor: SkipRemapExecutor,
        buffers: Sequence[Buffer],
        *,
        writes: Sequence[tuple[int, bytes]] = (),
        reads: Sequence[int] = (),
        stream: int = 0,
        device: int = 0,
        fails: Callable[[], None] | None = None,
    ) -> Work:
        """One step whose execution reads and writes as told; calls ``fails`` when it has submitted that."""
        self.spy.calls.clear()
        run_on = stream or self.stream
        done: list[Work] = []

        def execute(table: Table, persistent: tuple[int, ...] | None) -> None:
            self.tables.append(table)
            self.persistent.append(persistent)
            self.spy.calls.append(("execute", ()))
            work = self.host.launch(
                run_on,
                reads=[Range(table[slot].address, 1) for slot in reads],
                writes=[Write(table[slot].address, data) for slot, data in writes],
            )
            done.append(work)
            self.works.append(work)
            if fails:
                fails()

        executor.step(buffers, device=device, stream=run_on, execute=execute)
        return done[0]

    def held(self) -> tuple[int, int, int]:
        live = self.host.live()
        return live.reservations, live.mappings, live.allocations
