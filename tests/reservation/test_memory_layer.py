"""The reference's memory layer over the host driver: what it returns, what it refuses, and in which words."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from vmm_conformance.contracts import (
    Access,
    Code,
    Driver,
    DriverCapabilities,
    DriverError,
    DriverOptions,
    Granularity,
    MappingDescriptor,
    RawMemory,
    RemappingDescriptor,
    Status,
    SubjectError,
)
from vmm_conformance.drivers.host import HostDriver
from vmm_conformance.history.events import History
from vmm_conformance.running.recorder import Recorder
from vmm_reference.raw_memory import RawMemoryAllocation
from vmm_reference.reservation import MemoryReservation, ScopedMapping, VmmMemory

G = 4096
CALLS = {"reserve", "create", "map", "unmap", "set_access", "release", "address_free"}


class World:
    """A layer over a fresh host driver, with eyes on its calls."""

    def __init__(self, devices: int = 2, **capabilities: bool) -> None:
        options = DriverOptions(
            devices=devices,
            granularity=Granularity(G, 2 * G),
            capabilities=DriverCapabilities(**capabilities),
        )
        self.host = HostDriver(options)
        self.recorder = Recorder(self.host, History())
        self.driver: Driver = self.recorder.subject
        self.layer = VmmMemory(self.driver, 0)

    def calls(self) -> list[str]:
        """The calls since the last question."""
        found = [event.kind for event in self.recorder.history if event.kind in CALLS]
        self.recorder.history.events.clear()
        return found

    def memory(self, granules: int = 1) -> RawMemoryAllocation:
        return self.layer.allocate(granules * 2 * G)

    def mapped(self, count: int = 3) -> tuple[MemoryReservation, ScopedMapping, list[RawMemoryAllocation]]:
        """``count`` slices side by side, written with their numbers."""
        reservation = self.layer.reserve(8 * 2 * G)
        memories = [self.memory() for _ in range(count)]
        mapping = reservation.map_to([at(n, memory) for n, memory in enumerate(memories)])
        for n in range(count):
            self.write(reservation, n, n)
        self.calls()
        return reservation, mapping, memories

    def write(self, reservation: MemoryReservation, slot: int, value: int) -> None:
        self.host.write(reservation.base + slot * 2 * G, bytes([value]))

    def read(self, reservation: MemoryReservation, slot: int) -> int:
        return self.host.read(reservation.base + slot * 2 * G, 1).data[0][0]


def at(slot: int, memory: RawMemory | None, *, size: int = 2 * G, skip: int = 0) -> MappingDescriptor:
    return MappingDescriptor(slot * 2 * G, skip, size, memory)


def slot(number: int, memory: RawMemory | None, required: bool = True) -> RemappingDescriptor:
    return RemappingDescriptor(number * 2 * G, 0, 2 * G, memory, required)


@pytest.fixture
def world() -> Iterator[World]:
    made = World()
    yield made
    made.host.close()


def refusal(code: Code, words: str) -> pytest.RaisesExc[SubjectError]:
    return pytest.RaisesExc(SubjectError, match=re.escape(words), check=lambda error: error.code is code)


def test_sizes_are_rounded_to_the_recommended_granularity(world: World) -> None:
    assert world.layer.allocate(1).address.size == 2 * G
    assert world.layer.allocate(2 * G + 1).address.size == 4 * G
    address = world.layer.reserve(5 * G, 1 << 20).address
    assert (address.size, address.address % (1 << 20)) == (6 * G, 0)


@pytest.mark.parametrize("size", [0, -1])
def test_no_bytes_are_refused(world: World, size: int) -> None:
    with refusal(Code.INVALID_ARGUMENT, f"allocate: size is {size} bytes, and must be positive"):
        world.layer.allocate(size)
    with refusal(Code.INVALID_ARGUMENT, f"reserve: size is {size} bytes, and must be positive"):
        world.layer.reserve(size)
    assert world.calls() == []


def test_memory_is_released_when_nothing_shows_it(world: World) -> None:
    _, mapping, memories = world.mapped()
    memories[0].release()
    assert world.calls() == []
    mapping.release()
    assert world.calls() == ["unmap", "release"]
    memories[0].release()
    assert world.calls() == []
    with refusal(Code.FAILED_PRECONDITION, "address: this allocation was released"):
        _ = memories[0].address


def test_a_release_that_fails_is_made_good_by_the_next(world: World) -> None:
    memory = world.memory()
    world.recorder.faults.inject("release", 1, Status.UNKNOWN)
    memory.release()
    memory.release()
    assert world.calls() == ["create", "release", "release"]
    assert world.host.live().handles == 0


def test_a_mapping_lies_where_it_was_asked_for_and_peers_can_use_it(world: World) -> None:
    reservation = world.layer.reserve(8 * G)
    mapping = reservation.map_one(2 * G, 0, 2 * G, world.memory())
    assert mapping.address == (reservation.base + 2 * G, 2 * G)
    assert not mapping.is_null
    assert {world.host.get_access(mapping.address.address, device) for device in (0, 1)} == {Access.READ_WRITE}


def test_a_batch_is_mapped_then_granted_at_once(world: World) -> None:
    reservation = world.layer.reserve(8 * G)
    memories = [world.memory(), world.memory()]
    world.calls()
    reservation.map_to([at(1, memories[0]), at(2, memories[1])])
    assert world.calls() == ["map", "map", "set_access"]


def test_a_driver_that_takes_one_mapping_at_a_time() -> None:
    world = World(unmap_spans_mappings=False, set_access_spans_mappings=False)
    _, mapping, memories = world.mapped()
    mapping = mapping.remap([slot(0, memories[1]), slot(1, memories[0]), slot(2, memories[2], False)])
    assert world.calls() == ["unmap", "unmap", "map", "map", "set_access", "set_access"]
    mapping.release()
    assert world.calls() == ["unmap"] * 3


@pytest.mark.parametrize(
    ("descriptors", "code", "words"),
    [
        (lambda m: [], Code.INVALID_ARGUMENT, "map_to: no descriptor was given"),
        (lambda m: [at(0, m), at(2, m)], Code.INVALID_ARGUMENT, "a slice at 16384 follows one that ends at 8192"),
        (lambda m: [at(1, m), at(0, m)], Code.INVALID_ARGUMENT, "slices must touch, in ascending order"),
        (lambda m: [at(0, None)], Code.INVALID_ARGUMENT, "map_to: None is no allocation of this layer"),
        (lambda m: [at(0, m, size=100)], Code.INVALID_ARGUMENT, "must be multiples of 4096, and the size positive"),
        (lambda m: [at(0, m, size=0)], Code.INVALID_ARGUMENT, "must be multiples of 4096, and the size positive"),
        (lambda m: [at(0, m, size=-2 * G)], Code.INVALID_ARGUMENT, "must be multiples of 4096, and the size positive"),
        (lambda m: [at(0, m, size=4 * G)], Code.INVALID_ARGUMENT, "16384 bytes from offset 0 leave the allocation"),
        (lambda m: [at(3, m, skip=2 * G)], Code.INVALID_ARGUMENT, "8192 bytes from offset 8192 leave the allocation"),
        (lambda m: [at(3, m), at(5, m)], Code.INVALID_ARGUMENT, "a slice at 40960 follows one that ends at 32768"),
        (lambda m: [at(0, m, size=G, skip=G)], Code.UNIMPLEMENTED, "map_to: this driver does not map 4096 bytes from"),
        (lambda m: [at(7, m), at(8, m)], Code.INVALID_ARGUMENT, "map_to: 57344+16384 leaves the reservation"),
        (lambda m: [at(-1, m)], Code.INVALID_ARGUMENT, "map_to: -8192+8192 leaves the reservation"),
        (lambda m: [at(2, m)], Code.FAILED_PRECONDITION, "map_to: 16384+8192 overlaps 16384+8192, which is mapped"),
    ],
)
def test_what_map_to_refuses(world: World, descriptors: object, code: Code, words: str) -> None:
    reservation, _, (memory, *_) = world.mapped()
    assert callable(descriptors)
    with refusal(code, words):
        reservation.map_to(descriptors(memory))
    assert world.calls() == []
    assert [world.read(reservation, n) for n in range(3)] == [0, 1, 2]


@pytest.mark.parametrize("skip", [0, 1])
def test_the_middle_of_what_is_mapped_is_taken_too(world: World, skip: int) -> None:
    """Whatever lies before it."""
    reservation = world.layer.reserve(16 * G)
    for number in range(skip):
        reservation.map_to([at(number, world.memory())])
    reservation.map_to([at(skip, world.memory(3), size=6 * G)])
    place = f"{skip * 2 * G}+{6 * G}, which is mapped"
    with refusal(Code.FAILED_PRECONDITION, place):
        reservation.map_to([at(skip + 1, world.memory())])
    with refusal(Code.FAILED_PRECONDITION, place):
        reservation.map_to([at(skip + 2, world.memory())])
    reservation.map_to([at(skip + 3, world.memory())])


def test_a_part_is_refused_where_the_driver_maps_none() -> None:
    world = World(partial_map=False)
    reservation, memory = world.layer.reserve(4 * G), world.memory()
    world.calls()
    with refusal(Code.UNIMPLEMENTED, "map_to: this driver does not map 4096 bytes from offset 0 of an allocation of 8"):
        reservation.map_to([at(0, memory, size=G)])
    assert world.calls() == []
    reservation.map_to([at(0, memory)])


def test_what_is_past_its_life_is_refused(world: World) -> None:
    reservation, mapping, (memory, *_) = world.mapped()
    spare = world.memory()
    spare.release()
    with refusal(Code.FAILED_PRECONDITION, "map_to: the allocation for the slice at 40960 was released"):
        reservation.map_one(5 * 2 * G, 0, 2 * G, spare)
    reservation.close()
    with refusal(Code.FAILED_PRECONDITION, "map_to: this reservation is closed"):
        reservation.map_one(5 * 2 * G, 0, 2 * G, memory)
    with refusal(Code.FAILED_PRECONDITION, "address: this reservation is closed"):
        _ = reservation.address
    assert mapping.is_null


def test_a_failed_batch_leaves_nothing(world: World) -> None:
    reservation, _, memories = world.mapped()
    world.recorder.faults.inject("map", 2, Status.OUT_OF_MEMORY)
    world.recorder.faults.inject("unmap", 1, Status.UNKNOWN)
    batch = [at(4, memories[0]), at(5, memories[1])]
    with pytest.raises(DriverError, match="map: OUT_OF_MEMORY"):
        reservation.map_to(batch)
    assert world.calls() == ["map", "map", "unmap"]
    reservation.map_to(batch)
    assert world.calls() == ["unmap", "map", "map", "set_access"], "what was left is unmapped first"
    with refusal(Code.FAILED_PRECONDITION, "which is mapped; release that first"):
        reservation.map_to(batch[:1])
    assert world.calls() == []


def test_remap_changes_what_is_required_alone(world: World) -> None:
    reservation, mapping, memories = world.mapped()
    moved = mapping.remap([slot(0, memories[2]), slot(1, memories[1], False), slot(2, memories[0])])
    assert world.calls() == ["unmap", "unmap", "map", "map", "set_access", "set_access"]
    assert [world.read(reservation, n) for n in range(3)] == [2, 1, 0]
    assert mapping.is_null
    assert moved.address == (reservation.base, 3 * 2 * G)


def test_remap_of_nothing_calls_nothing(world: World) -> None:
    reservation, mapping, memories = world.mapped()
    moved = mapping.remap([slot(n, memories[0], False) for n in range(3)])
    assert world.calls() == []
    assert [world.read(reservation, n) for n in range(3)] == [0, 1, 2]
    assert mapping.is_null
    assert not moved.is_null


@pytest.mark.parametrize(
    ("descriptors", "words"),
    [
        (lambda m: [], "remap: no descriptor was given"),
        (lambda m: [slot(0, m), slot(1, m)], "remap: 0+16384 was described, and 0+24576 is owned"),
        (lambda m: [slot(n, m) for n in range(4)], "remap: 0+32768 was described"),
        (lambda m: [slot(n, m) for n in (1, 2, 3)], "remap: 8192+24576 was described"),
        (lambda m: [slot(n, m) for n in (0, 2, 3)], "remap: a slice at 16384 follows one that ends at 8192"),
        (lambda m: [slot(0, m), slot(1, None, False), slot(2, m)], "remap: the slice at 8192 names no allocation"),
    ],
)
def test_what_remap_refuses(world: World, descriptors: object, words: str) -> None:
    reservation, mapping, (memory, *_) = world.mapped()
    assert callable(descriptors)
    with refusal(Code.INVALID_ARGUMENT, words):
        mapping.remap(descriptors(memory))
    assert world.calls() == []
    assert mapping.address == (reservation.base, 3 * 2 * G)
    assert [world.read(reservation, n) for n in range(3)] == [0, 1, 2]


def test_a_mapping_is_remapped_whole_or_not_at_all(world: World) -> None:
    reservation = world.layer.reserve(8 * G)
    large, small = world.memory(2), world.memory()
    mapping = reservation.map_one(0, 0, 4 * G, large)
    world.calls()
    with refusal(Code.INVALID_ARGUMENT, "remap: 0+8192 cuts what one call has mapped at 0+16384"):
        mapping.remap([slot(0, small), slot(1, large, False)])
    assert world.calls() == []
    mapping.remap([slot(0, small), slot(1, small)])
    assert world.calls() == ["unmap", "map", "map", "set_access"]


def test_a_failed_remap_leaves_nothing_and_owns_nothing(world: World) -> None:
    reservation, mapping, memories = world.mapped()
    world.recorder.faults.inject("map", 1, Status.OUT_OF_MEMORY)
    wanted = [slot(0, memories[0], False), slot(1, memories[2]), slot(2, memories[2], False)]
    with pytest.raises(DriverError, match="map: OUT_OF_MEMORY"):
        mapping.remap(wanted)
    assert world.calls() == ["unmap", "map", "unmap", "unmap"]
    assert mapping.is_null
    assert world.host.live().mappings == 0
    reservation.map_to([at(n, memories[n]) for n in range(3)])


def test_a_run_that_could_not_be_unmapped_is_tried_piece_by_piece(world: World) -> None:
    _, mapping, memories = world.mapped()
    world.recorder.faults.inject("unmap", 1, Status.UNKNOWN)
    with pytest.raises(DriverError, match="unmap: UNKNOWN"):
        mapping.remap([slot(0, memories[1]), slot(1, memories[0]), slot(2, memories[2], False)])
    assert world.calls() == ["unmap", "unmap", "unmap", "unmap"]
    assert world.host.live().mappings == 0


def test_null_mappings(world: World) -> None:
    _, mapping, memories = world.mapped()
    moved = mapping.move()
    world.calls()
    mapping.release()
    assert mapping.move().is_null
    with refusal(Code.FAILED_PRECONDITION, "address: this mapping is null"):
        _ = mapping.address
    with refusal(Code.FAILED_PRECONDITION, "remap: this mapping is null"):
        mapping.remap([slot(0, memories[0])])
    assert world.calls() == []
    assert not moved.is_null


def test_assignment(world: World) -> None:
    reservation, mapping, memories = world.mapped()
    other = reservation.map_one(5 * 2 * G, 0, 2 * G, memories[0])
    place = other.address
    world.calls()
    mapping.assign(other)
    assert world.calls() == ["unmap"]
    assert mapping.address == place
    assert other.is_null
    mapping.assign(mapping)
    assert world.calls() == []
    mapping.assign(other)
    assert world.calls() == ["unmap"]
    assert mapping.is_null


def test_what_is_no_mapping_of_this_layer_is_not_assigned(world: World) -> None:
    """What the mapping owns stays: it is refused before anything is unmapped."""
    _, mapping, _ = world.mapped()
    world.calls()
    with pytest.raises(SubjectError, match="is no mapping of this layer") as caught:
        mapping.assign(object())  # type: ignore[arg-type] # that is what is refused
    assert caught.value.code is Code.INVALID_ARGUMENT
    assert (world.calls(), mapping.is_null) == ([], False)


def test_a_with_block_releases_and_lets_errors_through(world: World) -> None:
    reservation, mapping, memories = world.mapped()
    world.recorder.faults.inject("unmap", 1, Status.UNKNOWN)
    with pytest.raises(KeyError), mapping:
        raise KeyError
    assert mapping.is_null
    reservation.map_one(0, 0, 2 * G, memories[0])
    with reservation.map_one(4 * 2 * G, 0, 2 * G, memories[0]) as scoped:
        assert not scoped.is_null
    assert scoped.is_null


def test_close_unmaps_then_frees_and_tries_again(world: World) -> None:
    reservation, _, _ = world.mapped()
    world.recorder.faults.inject("unmap", 1, Status.UNKNOWN)
    reservation.close()
    assert world.calls() == ["unmap"]
    reservation.close()
    assert world.calls() == ["unmap", "address_free"]
    reservation.close()
    assert world.calls() == []
    assert world.host.live().reservations == 0
