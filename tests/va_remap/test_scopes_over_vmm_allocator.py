"""The reference's scopes over the reference's own allocator: what a program that uses both would see."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from va_histories import OUTPUT, PARAMETER, PROFILED, TEMP, TEMPS, G, plan

from vmm_conformance.contracts import DeviceConfig, DriverOptions, Range, ScopedExecutable, Write
from vmm_conformance.drivers.host import HostDriver
from vmm_conformance.history.events import History
from vmm_conformance.programs.va_remap import ExecutablePlan
from vmm_conformance.running.recorder import Recorder
from vmm_reference.remapping import buffer_allocator
from vmm_reference.vmm_allocator import DeviceVmmAllocator

MAPPING = {"map", "unmap", "set_access", "reserve", "create"}


class World:
    def __init__(self) -> None:
        self.inner = HostDriver(DriverOptions(devices=1))
        self.recorder = Recorder(self.inner, History())
        self.driver = self.recorder.subject
        self.stream = self.driver.stream_create(0)
        self.memory = DeviceVmmAllocator(self.driver, [DeviceConfig(0, self.stream)])
        self.calls: list[set[str]] = []
        self.told: list[tuple[int, ...] | None] = []
        self.tables: list[tuple[Range, ...]] = []

    def run(self, planned: ExecutablePlan, *arguments: Sequence[Range]) -> None:
        """One run per list of arguments; the caller frees the outputs at once."""
        made = ScopedExecutable(planned.buffers, planned.commands, planned.mode)
        buffers = buffer_allocator(self.driver, made)
        for given in arguments:
            before = len(self.recorder.history)
            scope = buffers.create_scope(0, self.stream, self.memory)
            table = scope.generate(given)
            scope.execute(table, self.execute)
            outputs = [entry for entry, b in zip(table, made.buffers, strict=True) if b.kind is OUTPUT.kind]
            scope.teardown({entry.address for entry in (*outputs, *given)})
            scope.drop()
            for entry in outputs:
                self.memory.deallocate(0, entry)
            self.calls.append({event.kind for event in self.recorder.history.events[before:]} & MAPPING)
        buffers.close()

    def execute(self, table: Sequence[Range], persistent: tuple[int, ...] | None) -> None:
        self.told.append(persistent)
        self.tables.append(tuple(table))
        self.driver.launch(self.stream, writes=[Write(entry.address, b"12345678") for entry in table])

    def faults(self) -> list[object]:
        self.inner.device_synchronize(0)
        return [event.args[2] for event in self.recorder.history if event.kind == "ran" and event.args[2]]


@pytest.fixture
def world() -> Iterator[World]:
    made = World()
    yield made
    assert made.faults() == []
    made.memory.close()
    assert made.inner.live()[:4] == (0, 0, 0, 0)
    made.inner.close()


NULL = Range(0, 0)


def test_a_profile_that_selects_everything_ends_in_no_call_at_all(world: World) -> None:
    parameter = world.memory.allocate(0, 1000)
    world.run(plan(PROFILED, TEMP, PARAMETER, OUTPUT), *[(NULL, parameter, NULL)] * 6)
    assert world.told == [None] * 3 + [(0, 1, 2)] * 3
    assert world.tables[3] == world.tables[4] == world.tables[5]
    assert world.tables[3][1].address != parameter.address
    assert world.tables[0][0] == world.tables[3][0]
    assert world.calls[4:] == [set(), set()]
    world.memory.deallocate(0, parameter)


def test_a_parameter_that_moves_is_mapped_where_it_was_shown(world: World) -> None:
    one, other = world.memory.allocate(0, 1000), world.memory.allocate(0, 1000)
    world.run(plan(PROFILED, PARAMETER), *[(one,)] * 4, (other,), (one,), (one,))
    assert len({table[0].address for table in world.tables[3:]}) == 1
    assert "map" in world.calls[4]
    assert world.calls[6] == set()


def test_temps_keep_their_memory(world: World) -> None:
    world.run(plan(TEMPS, TEMP, OUTPUT), *[(NULL, NULL)] * 3)
    assert len({table[0].address for table in world.tables}) == 1
    assert world.calls[1:] == [set(), set()]
    assert [table[0].size for table in world.tables] == [G] * 3
