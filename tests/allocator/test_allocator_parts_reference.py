"""The optional parts of the reference allocator themselves, over the host driver."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from vmm_conformance.contracts import (
    Access,
    Block,
    Code,
    Driver,
    DriverError,
    DriverOptions,
    Live,
    Statistics,
    Status,
    SubjectError,
)
from vmm_conformance.drivers.host import HostDriver
from vmm_conformance.history.events import History
from vmm_conformance.running.recorder import Recorder
from vmm_reference.allocator_parts import PausingAllocator, SizedAllocator

G = 4096
MAPPING = ("map", "unmap", "set_access", "create", "release")


class World:
    """Two devices, an allocator on the first, and eyes on its calls."""

    def __init__(self, **options: Any) -> None:
        self.host = HostDriver(DriverOptions(**{"devices": 2, "capacity": 32 * G, **options}))
        self.recorder = Recorder(self.host, History())
        self.driver: Driver = self.recorder.subject
        self.allocator = PausingAllocator(self.driver, 0)
        self.stream = self.host.stream_create()

    def fail(self, kind: str, k: int = 1) -> None:
        self.recorder.faults.inject(kind, k, Status.UNKNOWN)

    def calls(self) -> list[str]:
        """The calls about memory since the last question."""
        found = [event.kind for event in self.recorder.history if event.kind in MAPPING]
        self.recorder.history.events.clear()
        return found

    def grown(self) -> Block:
        """A block of three pieces: one, two and one granules."""
        block = self.allocator.allocate(G, stream=self.stream)
        for granules in (3, 4):
            block = self.allocator.grow(block, granules * G, stream=self.stream)
        self.host.stream_synchronize(self.stream)
        self.allocator.trim()
        self.calls()
        return block

    def written(self, value: bytes) -> Block:
        """A block of one granule that begins with ``value``."""
        block = self.allocator.allocate(G, stream=self.stream)
        self.host.write(block.address, value)
        return block

    def work(self) -> None:
        """More than a few queries of the driver will see the end of."""
        for _ in range(9):
            self.host.launch(self.stream)

    def read(self, block: Block) -> bytes:
        return self.host.read(block.address, 1).data[0]


@pytest.fixture
def world() -> Iterator[World]:
    made = World()
    yield made
    made.recorder.faults.clear()
    made.allocator.close()
    assert made.host.live() == Live(0, 0, 0, 0, 0)
    made.host.close()


def refusal(action: Callable[[], object]) -> tuple[Code, str]:
    with pytest.raises(SubjectError) as caught:
        action()
    return caught.value.code, caught.value.message


@pytest.mark.parametrize(
    ("size", "committed", "released"),
    [(4 * G, 4, 0), (3 * G + 1, 4, 0), (3 * G, 3, 1), (G + 1, 3, 1), (G, 1, 2), (1, 1, 2)],
)
def test_shrink_cuts_off_the_pieces_behind(world: World, size: int, committed: int, released: int) -> None:
    block = world.allocator.shrink(world.grown(), size, stream=world.stream)
    assert (block.size, block.committed) == (size, committed * G)
    assert world.calls() == []
    world.host.stream_synchronize(world.stream)
    world.allocator.trim()
    assert world.calls() == ["unmap"] * released + ["release"] * released
    assert world.allocator.statistics() == Statistics(size, committed * G, 4 * G)


@pytest.mark.parametrize("size", [-1, 0, 4 * G + 1])
def test_shrink_refuses_other_sizes(world: World, size: int) -> None:
    block = world.grown()
    code, message = refusal(lambda: world.allocator.shrink(block, size, stream=world.stream))
    assert code is Code.INVALID_ARGUMENT
    assert message == f"shrink: size is {size} bytes, and must be 1 to the 16384 of the block"


@pytest.mark.parametrize("kind", [SizedAllocator, PausingAllocator])
def test_memory_is_the_device_s_where_no_space_is_named(world: World, kind: type[SizedAllocator]) -> None:
    allocator = kind(world.driver, 0)
    allocator.allocate(G, stream=world.stream)
    allocator.close()
    (made,) = [event.args for event in world.recorder.history if event.kind == "create"]
    assert made == (G, 0, 0)


@pytest.mark.parametrize("owner", [0, 1])
def test_peers_are_enabled_once(world: World, owner: int) -> None:
    allocator = PausingAllocator(world.driver, owner)
    block = allocator.allocate(G, stream=world.host.stream_create(owner))
    world.calls()
    for _ in range(2):
        allocator.enable_peer(1 - owner)
        allocator.enable_peer(owner)
    assert world.calls() == ["set_access"]
    assert world.host.get_access(block.address, 1 - owner) is Access.READ_WRITE
    allocator.close()


def test_address_space_is_used_to_the_last_byte(world: World) -> None:
    world.allocator.most = 4 * G
    blocks = [world.allocator.allocate(2 * G, stream=world.stream) for _ in range(2)]
    with pytest.raises(SubjectError, match=f"{G} bytes of address space beside {4 * G} are more than {4 * G}"):
        world.allocator.allocate(G, stream=world.stream)
    assert len(blocks) == 2


def test_a_peer_that_cannot_reach_the_memory_is_refused() -> None:
    world = World(peers=False)
    code, message = refusal(lambda: world.allocator.enable_peer(1))
    assert (code, message) == (Code.INVALID_ARGUMENT, "enable_peer: device 1 cannot reach device 0")
    assert world.allocator.peers == []


def test_a_closed_allocator_refuses(world: World) -> None:
    world.allocator.close()
    for call in ("trim", "statistics", "resume"):
        code, _ = refusal(getattr(world.allocator, call))
        assert code is Code.FAILED_PRECONDITION, call
    assert refusal(lambda: world.allocator.pause(backup=True))[0] is Code.FAILED_PRECONDITION
    assert refusal(lambda: world.allocator.enable_peer(1))[0] is Code.FAILED_PRECONDITION


def test_while_paused_nothing_is_allocated_and_nothing_changes_its_size(world: World) -> None:
    block, stream = world.grown(), world.stream
    world.allocator.pause(backup=False)
    for call, action in (
        ("allocate", lambda: world.allocator.allocate(G, stream=stream)),
        ("grow", lambda: world.allocator.grow(block, 5 * G, stream=stream)),
        ("shrink", lambda: world.allocator.shrink(block, G, stream=stream)),
    ):
        expected = (Code.FAILED_PRECONDITION, f"{call}: this allocator is paused; resume it first")
        assert refusal(action) == expected


def test_what_is_freed_while_paused_is_not_used_again(world: World) -> None:
    """What is freed otherwise is, even before the work on it is over."""
    block = world.written(b"a")
    world.calls()
    world.work()
    world.allocator.deallocate(block, stream=world.stream)
    block = world.allocator.allocate(G, stream=world.stream)
    assert world.calls() == []
    world.allocator.pause(backup=True)
    world.work()
    world.allocator.deallocate(block, stream=world.stream)
    world.allocator.resume()
    world.calls()
    world.allocator.allocate(G, stream=world.stream)
    assert world.calls() == ["create", "map", "set_access"]


def test_a_pause_that_fails_leaves_everything_as_it_was(world: World) -> None:
    blocks = [world.written(value) for value in (b"a", b"b", b"c")]
    world.calls()
    world.fail("unmap", 3)
    with pytest.raises(DriverError, match="unmap"):
        world.allocator.pause(backup=True)
    assert world.calls() == ["unmap"] * 3 + ["map", "set_access"] * 2
    assert [world.read(block) for block in blocks] == [b"a", b"b", b"c"]


@pytest.mark.parametrize(("refused", "later"), [("map", ["map", "set_access"] * 2), ("set_access", ["set_access"])])
def test_what_a_failed_pause_cannot_put_back_is_put_back_by_the_next_call(
    world: World, refused: str, later: list[str]
) -> None:
    """The refused call is the first of the first block, or the second of it."""
    blocks = [world.written(value) for value in (b"a", b"b", b"c")]
    world.fail("unmap", 3)
    world.fail(refused)
    with pytest.raises(DriverError, match="unmap"):
        world.allocator.pause(backup=True)
    world.calls()
    world.allocator.statistics()
    assert world.calls() == (later if refused == "map" else [*later, "map", "set_access"])
    assert [world.read(block) for block in blocks] == [b"a", b"b", b"c"]
    assert {world.host.get_access(block.address, 0) for block in blocks} == {Access.READ_WRITE}


def test_memory_that_a_pause_could_not_release_is_released_before_new_memory_is_had() -> None:
    world = World(capacity=G)
    block = world.written(b"a")
    world.fail("release")
    world.allocator.pause(backup=True)
    assert world.host.live().handles == 1
    world.allocator.resume()
    world.allocator.trim()
    assert world.read(block) == b"a"
    assert world.host.live().handles == 1
    assert world.allocator.backups == {}


def test_memory_that_can_not_be_released_is_not_taken_for_what_comes_after_it(world: World) -> None:
    block = world.written(b"a")
    world.fail("release", 1)
    world.fail("release", 2)
    world.allocator.pause(backup=True)
    world.allocator.resume()
    world.recorder.faults.clear()
    world.calls()
    world.allocator.trim()
    assert world.calls() == ["release"]
    assert world.read(block) == b"a"
    assert world.host.live().handles == 1


def test_what_a_failed_pause_cannot_put_back_is_put_back_before_all_is_given_back(world: World) -> None:
    for value in (b"a", b"b"):
        world.written(value)
    world.fail("unmap", 2)
    world.fail("map")
    with pytest.raises(DriverError, match="unmap"):
        world.allocator.pause(backup=True)
    world.calls()
    world.allocator.close()
    assert world.calls()[:2] == ["map", "set_access"]
