"""The reference step executor over the host driver, one behaviour at a time."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Thread

import pytest
from executor_world import G, World

from vmm_conformance.contracts import (
    Access,
    Buffer,
    Code,
    Command,
    DriverCapabilities,
    DriverError,
    DriverOptions,
    ExecuteFailed,
    Granularity,
    Range,
    Slot,
    SubjectError,
    UpdateMode,
    Use,
)
from vmm_reference.layout import Selection, plan

QUIET = {"reserve", "create", "map", "unmap", "set_access", "address_free", "alloc", "free"}
WAITS = {"event_synchronize", "stream_synchronize", "device_synchronize"}
NULL = Buffer(0, 10, 0, None, 0)


@pytest.fixture
def world() -> Iterator[World]:
    world = World(DriverOptions(devices=2))
    yield world
    world.host.close()


def touched(world: World) -> list[str]:
    return world.spy.of(*QUIET, *WAITS)


def refuse() -> None:
    raise ExecuteFailed("as the program says")


# -- gates


@pytest.mark.parametrize(
    "settings",
    [{"mode": UpdateMode.ALWAYS_UPDATE}, {"vmm": False}, {"commands": ()}, {"commands": (Command((1,)),)}],
)
def test_without_anything_to_remap_it_executes_plainly(world: World, settings: dict[str, object]) -> None:
    executor = world.executor([Slot(), Slot(constant=True)], **settings)  # type: ignore[arg-type]
    buffers = [world.buffer(10), world.buffer(20)]
    world.step(executor, buffers)
    assert world.tables == [tuple(Range(b.address, b.size) for b in buffers)]
    assert world.persistent == [None]
    assert world.spy.names() == ["execute"]


def test_an_index_without_a_slot_is_an_error_that_names_it(world: World) -> None:
    for index in (7, -1):
        executor = world.executor(4, commands=[Command((0, index))])
        with pytest.raises(SubjectError, match=f"slot {index}:.* slots run from 0 to 3;") as caught:
            world.step(executor, [world.buffer(10)] * 4)
        assert caught.value.code is Code.INTERNAL
        assert world.spy.names() == []


@pytest.mark.parametrize("count", [1, 3])
def test_a_wrong_number_of_buffers_is_an_error(world: World, count: int) -> None:
    with pytest.raises(SubjectError, match=rf"{count} buffers for the 2 slots"):
        world.step(world.executor(2), [world.buffer(10)] * count)


def test_capture_mode_selects_what_was_traced(world: World) -> None:
    commands = [Command((0,), traced=False), Command((1,))]
    buffers = [world.buffer(10), world.buffer(10)]
    world.step(world.executor(2, commands=commands, mode=UpdateMode.CAPTURE_CMD_NEVER_UPDATE), buffers)
    world.step(world.executor(2, commands=commands), buffers)
    assert world.persistent == [(1,), (0, 1)]


@pytest.mark.parametrize("platform", ["CUDA", "rocm"])
def test_other_platforms_map_everything_every_step(world: World, platform: str) -> None:
    executor = world.executor(2, platform=platform, copy_threshold=100)
    buffers = [world.buffer(10), world.buffer(G + 1)]
    world.step(executor, buffers)
    assert touched(world) == ["reserve", "map", "map", "set_access"]
    world.step(executor, buffers)
    assert touched(world) == ["event_synchronize", "unmap", "map", "map", "set_access"]


def test_with_skip_off_shadows_still_work(world: World) -> None:
    executor = world.executor(2, skip_remap=False, copy_threshold=100)
    buffers = [world.buffer(10), world.buffer(G)]
    for _ in range(2):
        world.step(executor, buffers, writes=[(0, b"a")])
    assert touched(world) == ["event_synchronize", "unmap", "map", "set_access"]
    world.drain()
    assert world.get(buffers[0]) == b"a"


# -- layout and table


def test_slots_lie_in_ascending_order_one_behind_the_other(world: World) -> None:
    slots = [Slot(), Slot(), Slot(constant=True), Slot(), Slot()]
    executor = world.executor(slots, commands=[Command((4, 0)), Command((2, 1, 3))], copy_threshold=8)
    buffers = [world.buffer(size) for size in (G + 1, 8, 30, 0, 9)]
    world.step(executor, buffers)
    base = world.tables[0][0].address
    assert base % G == 0
    assert world.tables[0][0] == Range(base, G + 1)
    assert world.tables[0][1].address not in (buffers[1].address, 0)
    assert world.tables[0][2] == Range(buffers[2].address, 30)
    assert world.tables[0][4] == Range(base + 2 * G, 9)
    assert world.persistent == [(0, 1, 2, 4)]
    assert ("reserve", (3 * G, G)) in world.spy.calls


def test_persistent_addresses_never_change(world: World) -> None:
    executor = world.executor(3, copy_threshold=100)
    world.step(executor, [world.buffer(50), world.buffer(2 * G), world.buffer(10)])
    world.step(executor, [world.buffer(20), world.buffer(10), world.buffer(0)])
    first, second = ([place.address for place in table] for table in world.tables)
    assert first == second
    assert [place.size for place in world.tables[1]] == [20, 10, 0]


@pytest.mark.parametrize("up", [True, False])
def test_a_constant_that_moves_is_refused(world: World, up: bool) -> None:
    executor = world.executor([Slot(), Slot(constant=True)])
    first, low, high = sorted(world.buffer(10) for _ in range(3))
    world.step(executor, [first, low if up else high])
    with pytest.raises(SubjectError, match=r"slot 1: a constant moved from 0x.* to 0x"):
        world.step(executor, [first, high if up else low])


def test_an_empty_slot_has_no_place() -> None:
    buffers = [Buffer(G * index, size, G, 1, index) for index, size in enumerate((10, 0, G), start=1)]
    layout = plan(Selection((0, 1, 2), (), ()), buffers, G, 0)
    assert layout.mapped == ((0, 0, G), (2, G, G))
    assert layout.persistent == (0, 2)


# -- skip-remap


def test_first_step_maps_without_waiting(world: World) -> None:
    executor = world.executor(2)
    world.step(executor, [world.buffer(10), world.buffer(10)])
    assert touched(world) == ["reserve", "map", "map", "set_access"]


def test_nothing_moved_nothing_called(world: World) -> None:
    executor = world.executor(2)
    buffers = [world.buffer(10), world.buffer(10)]
    world.step(executor, buffers)
    world.step(executor, [b._replace(allocation=99) for b in buffers])
    assert world.spy.names() == ["execute", "event_record"]


def test_only_what_moved_is_remapped(world: World) -> None:
    executor = world.executor(4)
    buffers = [world.buffer(10) for _ in range(4)]
    world.step(executor, buffers)
    buffers[1:3] = [world.put(world.buffer(10), b"b"), world.put(world.buffer(10), b"c")]
    work = world.step(executor, buffers, reads=[1, 2])
    assert touched(world) == ["event_synchronize", "unmap", "map", "map", "set_access"]
    world.drain()
    assert work.data == (b"b", b"c")


def test_new_memory_at_an_old_address_has_moved(world: World) -> None:
    executor = world.executor(1)
    old = world.buffer(10)
    world.step(executor, [old])
    world.drain()
    world.host.unmap(old.address, old.committed)
    assert old.handle is not None
    world.host.release(old.handle)
    new = world.put(world.buffer(10, at=old.address), b"n")
    work = world.step(executor, [new], reads=[0])
    world.drain()
    assert work.data == (b"n",)


def test_swapped_buffers_are_swapped(world: World) -> None:
    executor = world.executor(2)
    a, b = world.put(world.buffer(10), b"a"), world.put(world.buffer(10), b"b")
    world.step(executor, [a, b])
    work = world.step(executor, [b, a], reads=[0, 1])
    world.drain()
    assert work.data == (b"b", b"a")


def test_one_buffer_may_be_bound_to_two_slots(world: World) -> None:
    executor = world.executor(2)
    shared = world.buffer(10)
    world.step(executor, [shared, shared], writes=[(0, b"x"), (1, b"y")])
    world.drain()
    assert world.get(shared) == b"y"


@pytest.mark.parametrize("spans", [True, False])
def test_every_driver_shape_is_served(spans: bool) -> None:
    capabilities = DriverCapabilities(unmap_spans_mappings=spans, set_access_spans_mappings=spans)
    world = World(DriverOptions(capabilities=capabilities))
    executor = world.executor(3)
    for _ in range(3):
        world.step(executor, [world.buffer(10) for _ in range(3)], writes=[(2, b"z")])
    counts = {"unmap": 1 if spans else 3, "set_access": 1 if spans else 3}
    assert {name: len(world.spy.of(name)) for name in counts} == counts
    executor.close()
    world.drain()
    world.host.close()


def test_peers_get_rights_where_there_are_any() -> None:
    for peers in (True, False):
        world = World(DriverOptions(devices=3, peers=peers))
        stream = world.host.stream_create(1)
        world.step(world.executor(1), [world.buffer(10, device=1)], device=1, stream=stream)
        rights = [world.host.get_access(world.tables[0][0].address, device) for device in range(3)]
        other = Access.READ_WRITE if peers else Access.NONE
        assert rights == [other, Access.READ_WRITE, other]
        world.host.close()


# -- sizes


def test_growth_is_refused_before_anything_is_called(world: World) -> None:
    executor = world.executor(3, copy_threshold=100)
    buffers = [world.buffer(50), world.buffer(G), world.buffer(0)]
    world.step(executor, buffers)
    for slot, size, capacity in ((0, 51, 50), (1, G + 1, G), (2, 1, 0)):
        grown = list(buffers)
        grown[slot] = world.buffer(size)
        with pytest.raises(SubjectError, match=f"slot {slot}:.* {size} .* {capacity} ") as caught:
            world.step(executor, grown)
        assert caught.value.code is Code.INTERNAL
        assert world.spy.names() == []
    world.step(executor, buffers)


def test_growth_within_the_rounded_size_is_none(world: World) -> None:
    executor = world.executor(1)
    world.step(executor, [world.buffer(1)])
    world.step(executor, [world.buffer(G)])


def test_a_larger_handle_is_mapped_for_the_size_of_its_slot(world: World) -> None:
    executor = world.executor(2)
    world.step(executor, [world.buffer(10, committed=3 * G), world.buffer(10)])
    assert [arguments[1] for name, arguments in world.spy.calls if name == "map"] == [G, G]


def test_a_larger_handle_is_refused_where_it_cannot_be_mapped_in_part() -> None:
    world = World(DriverOptions(capabilities=DriverCapabilities(partial_map=False)))
    with pytest.raises(SubjectError, match=f"slot 0: {3 * G} bytes .* {G} bytes"):
        world.step(world.executor(1), [world.buffer(10, committed=3 * G)])
    world.host.close()


def test_a_smaller_handle_is_mapped_as_it_is() -> None:
    world = World(DriverOptions(granularity=Granularity(G, 4 * G)))
    executor = world.executor(2)
    for _ in range(2):
        world.step(executor, [world.buffer(10), world.buffer(10)], writes=[(1, b"q")])
    assert world.tables[0][1].address - world.tables[0][0].address == 4 * G
    executor.close()
    world.drain()
    world.host.close()


def test_a_null_source_is_refused(world: World) -> None:
    executor = world.executor(2, copy_threshold=50)
    good = world.buffer(10)
    no_handle, no_address = good._replace(handle=None), good._replace(address=0)
    for bad, missing in ((NULL, "address"), (no_handle, "physical memory handle"), (no_address, "address")):
        with pytest.raises(SubjectError, match=f"slot 1: .* has no {missing};") as caught:
            world.step(executor, [good, bad])
        assert caught.value.code is Code.INTERNAL
    assert world.tables == []
    world.step(executor, [good, NULL._replace(size=0)])


def test_a_constant_without_an_address_is_refused(world: World) -> None:
    executor = world.executor([Slot(), Slot(constant=True)])
    with pytest.raises(SubjectError, match=r"slot 1: .* has no address;"):
        world.step(executor, [world.buffer(10), NULL])
    world.step(executor, [world.buffer(10), NULL._replace(size=0)])


def test_what_stands_behind_a_buffer_is_looked_at_behind_an_empty_one_too(world: World) -> None:
    executor = world.executor(2)
    world.step(executor, [world.buffer(10), world.buffer(G + 1)])
    short = world.buffer(G)._replace(size=G + 1)
    with pytest.raises(SubjectError, match=f"slot 1: {G} bytes stand behind its buffer of {G + 1} bytes"):
        world.step(executor, [NULL._replace(size=0), short])


def test_less_memory_than_the_buffer_has_bytes_is_refused(world: World) -> None:
    with pytest.raises(SubjectError, match=f"slot 0: {G} bytes stand behind its buffer of {G + 1} bytes") as caught:
        world.step(world.executor(1), [world.buffer(10)._replace(size=G + 1)])
    assert caught.value.code is Code.FAILED_PRECONDITION


# -- order


def test_an_unmap_waits_for_the_last_step_on_every_stream(world: World) -> None:
    executor = world.executor(1)
    other = world.host.stream_create(0)
    first = world.buffer(10)
    for stream in (world.stream, other, world.stream):
        world.step(executor, [first], writes=[(0, b"w")], stream=stream)
    world.step(executor, [world.buffer(10)])
    assert world.spy.of(*WAITS) == ["event_synchronize"] * 2
    world.drain()


def test_a_step_that_no_event_follows_is_waited_for_once(world: World) -> None:
    executor = world.executor(1)
    world.step(executor, [world.buffer(10)])
    world.spy.fail(event_record=1)
    with pytest.raises(DriverError, match="injected"):
        world.step(executor, [world.buffer(10)])
    other = world.host.stream_create(0)
    world.step(executor, [world.buffer(10)], stream=other)
    assert world.spy.of(*WAITS) == ["device_synchronize"]
    world.step(executor, [world.buffer(10)], stream=other)
    assert world.spy.of(*WAITS) == ["event_synchronize"]


@pytest.mark.parametrize("when", ["execute", "copy", "event_record"])
def test_a_failed_step_is_waited_for(world: World, when: str) -> None:
    executor = world.executor(2, copy_threshold=100)
    small, first = world.buffer(10), world.buffer(G)
    world.step(executor, [small, first])
    world.drain()
    if when == "execute":
        with pytest.raises(ExecuteFailed):
            world.step(executor, [small, first], writes=[(1, b"w")], fails=refuse)
    else:
        world.spy.fail(**{when: 2 if when == "copy" else 1})
        with pytest.raises(DriverError, match="injected"):
            world.step(executor, [small, first], writes=[(1, b"w")])
    world.step(executor, [small, world.buffer(G)], writes=[(1, b"w")])
    assert len(world.spy.of(*WAITS)) == 1
    world.drain()


def test_the_lock_is_held_while_executing(world: World) -> None:
    executor = world.executor(1)
    buffer = world.buffer(10)
    second = Thread(target=lambda: executor.step([buffer], device=0, stream=world.stream, execute=late))
    order: list[str] = []

    def late(*_: object) -> None:
        order.append("second")

    def early(*_: object) -> None:
        second.start()
        second.join(0.05)
        order.append("first")

    executor.step([buffer], device=0, stream=world.stream, execute=early)
    second.join()
    assert order == ["first", "second"]


# -- failures


@pytest.mark.parametrize("call", ["reserve", "event_create", "alloc", "map", "set_access", "copy"])
def test_a_first_step_that_fails_leaves_nothing_behind(world: World, call: str) -> None:
    executor = world.executor(4, copy_threshold=100)
    buffers = [world.buffer(size) for size in (10, G, 20, G)]
    before = world.held()
    world.spy.fail(**{call: 2 if call in ("alloc", "map", "copy") else 1})
    with pytest.raises((DriverError, SubjectError)):
        world.step(executor, buffers)
    assert world.held() == before
    assert world.spy.names().count("event_create") - world.spy.names().count("event_destroy") in (0, 1)
    grown = [world.buffer(size) for size in (30, 2 * G, 20, G)]
    world.step(executor, grown, writes=[(0, b"o")])
    world.drain()
    assert world.get(grown[0]) == b"o"


@pytest.mark.parametrize("call", ["event_synchronize", "unmap", "map", "set_access"])
@pytest.mark.parametrize("spans", [True, False])
def test_a_failed_remap_is_repaired_by_the_next_step(call: str, spans: bool) -> None:
    capabilities = DriverCapabilities(unmap_spans_mappings=spans, set_access_spans_mappings=spans)
    world = World(DriverOptions(capabilities=capabilities))
    executor = world.executor(4)
    world.step(executor, [world.buffer(10) for _ in range(4)])
    moved = [world.put(world.buffer(10), bytes([slot])) for slot in range(4)]
    world.spy.fail(**{call: 2 if call == "map" else 1})
    with pytest.raises(DriverError, match="injected"):
        world.step(executor, moved)
    work = world.step(executor, moved, reads=[0, 1, 2, 3])
    world.drain()
    assert work.data == (b"\0", b"\1", b"\2", b"\3")
    executor.close()
    world.host.close()


def test_the_first_error_survives_an_undo_that_fails(world: World) -> None:
    executor = world.executor(2)
    buffers = [world.buffer(10), world.buffer(10)]
    world.step(executor, buffers)
    moved = [world.put(world.buffer(10), b"m"), world.buffer(10)]
    world.spy.fail(map=2, unmap=2)
    with pytest.raises(DriverError, match="map: UNKNOWN"):
        world.step(executor, moved)
    work = world.step(executor, moved, reads=[0])
    world.drain()
    assert work.data == (b"m",)


def test_what_a_failed_first_step_could_not_give_back_is_given_back_later(world: World) -> None:
    executor = world.executor(1)
    buffer = world.buffer(10)
    before = world.held()
    world.spy.fail(set_access=1, unmap=1, address_free=1)
    with pytest.raises(DriverError, match="set_access"):
        world.step(executor, [buffer])
    world.step(executor, [buffer])
    executor.close()
    assert world.held() == before


@pytest.mark.parametrize(("size", "taken", "undo"), [(G, "event_create", "address_free"), (10, "copy", "free")])
def test_a_driver_that_takes_nothing_back_is_named(world: World, size: int, taken: str, undo: str) -> None:
    executor = world.executor(1, copy_threshold=100)
    buffer = world.buffer(size)
    world.spy.fail(**{taken: 1, undo: 1})
    with pytest.raises(DriverError, match=taken):
        world.step(executor, [buffer])
    world.spy.fail(**{undo: 1})
    with pytest.raises(SubjectError, match="the driver does not take back") as caught:
        world.step(executor, [buffer])
    assert caught.value.code is Code.FAILED_PRECONDITION
    world.step(executor, [buffer])
    world.drain()


# -- shadows


def test_shadows_carry_contents_in_and_out(world: World) -> None:
    slots = [Slot(use=Use.READ, space=5), Slot(use=Use.WRITE, space=1), Slot()]
    executor = world.executor(slots, copy_threshold=G)
    for value in (b"1", b"2"):
        buffers = [world.put(world.buffer(10), b"in" + value + b"......|") for _ in slots]
        work = world.step(executor, buffers, reads=[0, 2], writes=[(1, value), (2, value)])
        world.drain()
        assert work.data == (b"i", b"i")
        assert world.get(buffers[0], 3) == b"in" + value
        assert world.get(buffers[1], 10) == value + b"n" + value + b"......|"
        assert world.get(buffers[2], 3) == value + b"n" + value
    assert world.tables[0][0].address % 4096 == 0
    assert touched(world) == []
    assert world.spy.of("copy", "execute", "event_record") == ["copy"] * 3 + ["execute"] + ["copy"] * 2 + [
        "event_record"
    ]


def test_a_shadow_that_cannot_be_allocated_is_reported(world: World) -> None:
    executor = world.executor(2, copy_threshold=100)
    world.spy.fail(alloc=2)
    with pytest.raises(SubjectError, match=r"slot 1: no shadow of 33 bytes") as caught:
        world.step(executor, [world.buffer(10), world.buffer(33)])
    assert caught.value.code is Code.INTERNAL


def test_another_stream_waits_for_the_shadows(world: World) -> None:
    executor = world.executor(1, copy_threshold=100)
    other = world.host.stream_create(0)
    a, b = world.put(world.buffer(10), b"a"), world.put(world.buffer(10), b"b")
    first = world.step(executor, [a], reads=[0])
    second = world.step(executor, [b], reads=[0], stream=other)
    assert world.spy.of("stream_wait_event", "copy")[0] == "stream_wait_event"
    world.host.stream_synchronize(other)
    assert (first.data, second.data) == ((b"a",), (b"b",))


def test_a_read_only_buffer_is_not_written(world: World) -> None:
    executor = world.executor(1, copy_threshold=100)
    buffer = world.buffer(10)
    world.host.set_access(buffer.address, buffer.committed, {0: Access.READ})
    world.step(executor, [buffer])
    assert world.spy.of("copy") == ["copy"]


def test_a_step_fails_where_rights_cannot_be_told_and_the_next_one_succeeds(world: World) -> None:
    executor = world.executor([Slot(), Slot(use=Use.READ)], copy_threshold=100)
    buffers = [world.buffer(10), world.buffer(10)]
    world.spy.fail(get_access=1)
    with pytest.raises(DriverError, match="get_access"):
        world.step(executor, buffers, writes=[(0, b"w")])
    world.spy.calls.clear()
    world.step(executor, buffers, writes=[(0, b"w")])
    world.drain()
    assert world.get(buffers[0]) == b"w"
    assert world.spy.of("copy") == ["copy"] * 3


@pytest.mark.parametrize(("sizes", "copies"), [((10, 10), 1), ((10, G), 0), ((G, 10), 1)])
def test_of_two_slots_on_one_buffer_the_last_writer_wins(world: World, sizes: tuple[int, int], copies: int) -> None:
    executor = world.executor(2, copy_threshold=100)
    shared = world.buffer(G)
    bound = [shared._replace(size=size) for size in sizes]
    world.step(executor, bound, writes=[(0, b"0"), (1, b"1")])
    assert len(world.spy.of("copy")) - sum(size < G for size in sizes) == copies
    world.drain()
    assert world.get(shared) == b"1"


def test_a_slot_without_an_address_is_no_writer(world: World) -> None:
    executor = world.executor(2, commands=[Command((0,))], copy_threshold=100)
    shared = world.buffer(10)
    world.step(executor, [shared, shared._replace(address=0, handle=None)], writes=[(0, b"0")])
    world.drain()
    assert world.get(shared) == b"0"


def test_nothing_is_copied_back_after_a_failed_execution(world: World) -> None:
    executor = world.executor(1, copy_threshold=100)
    with pytest.raises(ExecuteFailed):
        world.step(executor, [world.buffer(10)], fails=refuse)
    assert world.spy.of("copy", "event_record") == ["copy", "event_record"]


# -- devices and the end


def test_each_device_has_its_own_state(world: World) -> None:
    executor = world.executor(1)
    far = world.host.stream_create(1)
    world.step(executor, [world.buffer(10)])
    world.step(executor, [world.buffer(10, device=1)], device=1, stream=far)
    assert world.tables[0][0].address != world.tables[1][0].address
    assert world.spy.of(*WAITS) == []
    executor.close()
    world.drain()


def test_close_waits_and_gives_everything_back(world: World) -> None:
    executor = world.executor(2, copy_threshold=100)
    buffers = [world.buffer(10), world.buffer(G)]
    before = world.held()
    for stream in (world.stream, world.host.stream_create(0)):
        world.step(executor, buffers, writes=[(0, b"0"), (1, b"1")], stream=stream)
    world.spy.calls.clear()
    executor.close()
    assert world.spy.names() == [*["event_synchronize"] * 2, "unmap", "address_free", "free", *["event_destroy"] * 2]
    assert world.held() == before
    executor.close()
    world.drain()
    with pytest.raises(SubjectError) as caught:
        world.step(executor, buffers)
    assert caught.value.code is Code.FAILED_PRECONDITION
    assert world.spy.names() == []


@pytest.mark.parametrize("call", ["event_synchronize", "unmap", "address_free", "free", "event_destroy"])
def test_close_goes_on_after_an_error(world: World, call: str) -> None:
    executor = world.executor(3, copy_threshold=100)
    buffers = [world.buffer(10), world.buffer(G), world.buffer(G)]
    before = world.held()
    world.step(executor, buffers, writes=[(1, b"1")])
    world.spy.fail(**{call: 1})
    executor.close()
    executor.close()
    assert world.held() == before
    world.drain()


def test_an_event_that_the_driver_keeps_is_destroyed_later(world: World) -> None:
    executor = world.executor(1)
    world.step(executor, [world.buffer(10)])
    world.drain()
    world.spy.fail(event_destroy=1)
    for _ in range(3):
        executor.close()
    assert world.spy.of("event_create", "event_destroy") == ["event_create", *["event_destroy"] * 2]


def test_events_that_cannot_be_waited_for_are_destroyed_all_the_same(world: World) -> None:
    executor = world.executor(1)
    world.step(executor, [world.buffer(10)])
    world.drain()
    world.spy.fail(event_synchronize=1)
    executor.close()
    assert world.spy.of(*WAITS, "event_destroy") == ["event_synchronize", "device_synchronize", "event_destroy"]


@pytest.mark.parametrize("settings", [{}, {"mode": UpdateMode.ALWAYS_UPDATE}])
def test_a_closed_executor_executes_nothing(world: World, settings: dict[str, object]) -> None:
    executor = world.executor(1, **settings)  # type: ignore[arg-type]
    executor.close()
    with pytest.raises(SubjectError, match="step: the executor is closed") as caught:
        world.step(executor, [world.buffer(10)])
    assert caught.value.code is Code.FAILED_PRECONDITION
    assert world.spy.names() == []


def test_a_step_on_its_way_at_close_executes_nothing(world: World) -> None:
    executor = world.executor(1)
    ranges = executor.ranges_on(0)
    executor.close()
    with pytest.raises(SubjectError, match="step: the executor is closed"):
        ranges.step([world.buffer(10)], world.stream, lambda *_: pytest.fail("executed"))
    with pytest.raises(SubjectError, match="step: the executor is closed"):
        executor.ranges_on(1)
    assert world.spy.names() == []
