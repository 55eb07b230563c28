"""What the harness does for a program: a caller's work, and nothing that a caller must not do."""

from __future__ import annotations

from typing import Any

import pytest
from other_layers import KeepsShown, SubjectOf

from vmm_conformance.contracts import Driver, DriverOptions, Range
from vmm_conformance.drivers.host import HostDriver
from vmm_conformance.history.events import HARNESS, Event, History
from vmm_conformance.programs.program import Program
from vmm_conformance.programs.reservation import (
    Allocate,
    Assign,
    Check,
    CloseReservation,
    Configuration,
    Drop,
    Fail,
    Free,
    MapOne,
    MapTo,
    Move,
    Odd,
    Operation,
    Probe,
    Remap,
    Reserve,
    Teardown,
    Touch,
    TouchNull,
    Use,
)
from vmm_conformance.running.reservation import run
from vmm_reference.reservation import VmmMemory
from vmm_reference.subject import reference

G = 4096
READY = (Reserve(8 * G), *(Allocate(G),) * 5, MapTo(0, (0, 1, 2)))
MAPPED = len(READY)


def ran(*operations: Operation, subject: object = reference, **configuration: Any) -> History:
    return run(Program("reservation", Configuration(**configuration), operations), subject, HostDriver)


def notes(history: History, what: str, op: int | None = None) -> list[dict[str, Any]]:
    return [e.args[1] for e in history if e.kind == "note" and e.args[0] == what and op in (None, e.op)]


def calls(history: History, op: int | None = None) -> list[str]:
    return [details["name"] for details in notes(history, "call", op)]


def slices(history: History, op: int = MAPPED) -> list[tuple[int, ...]]:
    """Offset, skip and size in granules, memory as it was counted, whether it is required."""
    (asked, *_) = (details["slices"] for details in notes(history, "call", op) if "slices" in details)
    memories = [details["allocation"] for details in notes(history, "call") if details["name"] == "allocate"]
    named = {number: index for index, number in enumerate(memories)}
    return [
        (o // G, skip // G, size // G, named.get(memory, memory), needed) for o, skip, size, memory, needed in asked
    ]


def outcomes(history: History) -> list[str]:
    return [event.args[0]["status"] for event in history if event.kind == "end"]


def launches(history: History, op: int) -> list[Event]:
    return [event for event in history if event.kind == "launch" and event.op == op]


def asked(history: History, op: int) -> list[tuple[int, int]]:
    """The questions for rights: granule and device."""
    base = notes(history, "return")[0]["address"].address
    return [((e.args[0] - base) // G, e.args[1]) for e in history if e.kind == "get_access" and e.op == op]


def test_a_mapping_is_read_and_written_at_both_ends_of_each_slice_at_once() -> None:
    history = ran(*READY)
    (launch,) = launches(history, MAPPED - 1)
    assert len(launch.args[1]) == len(launch.args[3]) == 6
    assert len({write.data for write in launch.args[3]}) == 6
    (after,) = [e for e in history if e.seq == launch.seq + 2]
    assert (after.kind, after.who) == ("stream_synchronize", HARNESS)


def test_slices_are_laid_side_by_side_where_they_fit() -> None:
    assert slices(ran(*READY, MapTo(0, (3, 4), place=1))) == [(4, 0, 1, 3, True), (5, 0, 1, 4, True)]
    assert [s[0] for s in slices(ran(*READY, MapTo(0, (3,), place=7)))] == [5]
    assert [s[0] for s in slices(ran(*READY, MapOne(0, 3, place=1)))] == [4]


def test_slices_that_do_not_fit_are_left_out() -> None:
    history = ran(Reserve(2 * G), *(Allocate(G),) * 3, MapTo(0, (0, 1, 2)))
    assert [s[3] for s in slices(history, 4)] == [0, 1]


def test_a_part_of_an_allocation_is_mapped_where_the_driver_maps_parts() -> None:
    operations = (Reserve(8 * G), Allocate(4 * G), MapOne(0, 0, part=True))
    assert slices(ran(*operations), 2) == [(0, 0, 2, 0, True)]
    assert slices(ran(*operations, partial_map=False), 2) == [(0, 0, 4, 0, True)]
    assert slices(ran(*operations, partial_map=False, map_offset=True), 2) == [(0, 2, 2, 0, True)]


@pytest.mark.parametrize(
    ("odd", "expected"),
    [
        (Odd.EMPTY, []),
        (Odd.GAP, [(3, 0, 1, 3, True), (5, 0, 1, 4, True)]),
        (Odd.BACK, [(3, 0, 1, 3, True), (3, 0, 1, 4, True)]),
        (Odd.FOREIGN, [(3, 0, 1, 3, True), (4, 0, 1, -1, True)]),
        (Odd.NO_BYTES, [(3, 0, 1, 3, True), (4, 0, 0, 4, True)]),
        (Odd.TOO_LARGE, [(3, 0, 1, 3, True), (4, 0, 2, 4, True)]),
        (Odd.OFFSET, [(3, 0, 1, 3, True), (4, 1, 1, 4, True)]),
        (Odd.OUTSIDE, [(8, 0, 1, 3, True), (9, 0, 1, 4, True)]),
        (Odd.OCCUPIED, [(1, 0, 1, 3, True), (2, 0, 1, 4, True)]),
        (Odd.SHORT, [(3, 0, 1, 3, True), (4, 0, 1, 4, True)]),
    ],
)
def test_a_wrong_mapping_request(odd: Odd, expected: list[tuple[int, ...]]) -> None:
    history = ran(*READY, MapTo(0, (3, 4), odd=odd, at=1))
    assert slices(history) == expected
    assert outcomes(history)[-1] == ("ok" if odd is Odd.SHORT else "refused")


def test_a_logical_size_is_no_whole_granule() -> None:
    (details,) = notes(ran(*READY, MapOne(0, 3, odd=Odd.UNALIGNED)), "call", MAPPED)
    assert details["slices"][0][2] == G - 100


def test_a_closed_reservation_is_used_once_there_is_one() -> None:
    closed = MapOne(0, 3, odd=Odd.CLOSED)
    history = ran(*READY, CloseReservation(0), Reserve(8 * G), closed, closed)
    assert outcomes(history)[-2:] == ["refused", "refused"]
    assert outcomes(ran(*READY, closed))[-1] == "ok"


def test_required_slices_get_other_memory_and_the_others_name_their_own() -> None:
    history = ran(*READY, Remap(0, 0b101, (3, 4)))
    assert slices(history) == [(0, 0, 1, 3, True), (1, 0, 1, 1, False), (2, 0, 1, 3, True)]


def test_a_lie_names_other_memory_where_nothing_changes() -> None:
    assert slices(ran(*READY, Remap(0, 0, (3,), lie=True)))[0] == (0, 0, 1, 4, False)
    assert not any(lied[4] for lied in slices(ran(*READY, Remap(0, 0, (3,), lie=True))))


def test_required_slices_that_touch_are_merged_where_memory_fits() -> None:
    before = (Reserve(8 * G), *(Allocate(G),) * 3, Allocate(2 * G), MapTo(0, (0, 1, 2)))
    operations = (*before, Remap(0, 0b110, merge=True))
    assert slices(ran(*operations, partial_map=False), 6) == [(0, 0, 1, 0, False), (1, 0, 2, 3, True)]


def test_a_required_slice_of_two_granules_is_split() -> None:
    operations = (Reserve(8 * G), Allocate(2 * G), Allocate(G), MapOne(0, 0), Remap(0, 1, (0, 1), split=True))
    assert slices(ran(*operations, partial_map=False), 4) == [(0, 0, 1, 1, True), (1, 0, 1, 1, True)]


@pytest.mark.parametrize(
    ("odd", "offsets"),
    [
        (Odd.EMPTY, []),
        (Odd.GAP, [0, 2, 3]),
        (Odd.BACK, [0, 0, 1]),
        (Odd.SHORT, [0, 1]),
        (Odd.LONG, [0, 1, 2, 3]),
        (Odd.SHIFTED, [1, 2, 3]),
    ],
)
def test_a_remapping_request_of_another_range(odd: Odd, offsets: list[int]) -> None:
    history = ran(*READY, Remap(0, 0b001, (3,), odd=odd, at=1))
    assert [one[0] for one in slices(history)] == offsets
    assert outcomes(history)[-1] == "refused"


def test_a_slice_is_cut_where_it_has_two_granules() -> None:
    history = ran(Reserve(8 * G), Allocate(2 * G), Allocate(G), MapOne(0, 0), Remap(0, 0, odd=Odd.CUT))
    assert slices(history, 4) == [(0, 0, 1, 0, True), (1, 1, 1, 0, False)]
    assert outcomes(ran(*READY, Remap(0, 0, odd=Odd.CUT)))[-1] == "ok"


def test_a_mapping_that_keeps_its_range_is_read_after_a_refusal() -> None:
    assert len(launches(ran(*READY, Remap(0, 0, odd=Odd.EMPTY)), MAPPED)) == 1


def test_a_call_that_was_made_to_fail_is_repeated_once() -> None:
    history = ran(*READY, Fail("map", 2), MapTo(0, (3, 4)))
    assert calls(history, MAPPED + 1) == ["map_to", "map_to"]
    assert outcomes(history)[-1] == "ok"
    assert calls(ran(Fail("create"), Allocate(G)), 1) == ["allocate", "allocate"]
    assert calls(ran(Fail("reserve"), Reserve(G)), 1) == ["reserve", "reserve"]


def test_a_remap_that_failed_is_made_good_by_mapping_the_range_anew() -> None:
    history = ran(*READY, Fail("map", 1), Remap(0, 0b010, (3,)), Check(0))
    assert calls(history, MAPPED + 1) == ["remap", "map_to"]
    again = notes(history, "call", MAPPED + 1)[1]["slices"]
    assert [one[0] // G for one in again] == [0, 1, 2]
    assert outcomes(history)[-1] == "ok"


def test_what_was_released_cannot_be_mapped_anew() -> None:
    history = ran(*READY, Free(0), Fail("map", 1), Remap(0, 0b010, (3,)))
    assert calls(history, MAPPED + 2) == ["remap"]
    assert len(asked(history, MAPPED + 2)) == 1


def test_what_was_moved_from_is_released_too() -> None:
    assert calls(ran(*READY, Move(0)), MAPPED) == ["move", "drop"]


def test_rights_are_asked_for_where_nothing_is_mapped_any_more() -> None:
    assert asked(ran(*READY, MapOne(0, 3), Drop(1, scoped=True)), MAPPED + 1) == [(3, 0)]
    assert asked(ran(Reserve(G)), 0) == [(0, 0)]
    assert asked(ran(*READY, MapOne(0, 3), Assign(0, 1)), MAPPED + 1) == [(0, 0)]


def test_rights_are_asked_for_every_device_in_reach() -> None:
    assert asked(ran(*READY, Probe(0, 9), devices=2), MAPPED) == [(1, 0), (1, 1)]
    assert asked(ran(*READY, Probe(0, 1), devices=2, peers=False), MAPPED) == [(1, 0)]


def test_devices_in_reach_use_a_mapping_on_their_own_streams() -> None:
    history = ran(*READY, Use(0, 1), Use(0, 0), devices=2)
    streams = [event.result for event in history if event.kind == "stream_create"]
    assert [launches(history, op)[0].args[0] for op in (MAPPED, MAPPED + 1)] == streams[::-1]


def test_closing_makes_mappings_null() -> None:
    history = ran(*READY, CloseReservation(0), Drop(0), TouchNull(Touch.DROP), Use(0))
    assert outcomes(history)[-4:] == ["ok", "skipped", "ok", "skipped"]
    assert calls(history, MAPPED) == ["close", "close"]


def test_operations_on_nothing_are_skipped() -> None:
    operations = (
        Free(0), CloseReservation(0), MapOne(0, 0), MapTo(0, (0,)), Remap(0, 1), Move(0), Assign(0, 1), Drop(0),
        TouchNull(Touch.MOVE), Use(0), Check(0), Probe(0),
    )  # fmt: skip
    assert outcomes(ran(*operations)) == ["skipped"] * len(operations)
    assert outcomes(ran(Reserve(G), MapOne(0, 0)))[-1] == "skipped"


@pytest.mark.parametrize(
    ("teardown", "first"),
    [(Teardown.MAPPINGS, "drop"), (Teardown.RESERVATIONS, "close"), (Teardown.MEMORY, "free")],
)
def test_everything_is_given_up_in_the_order_that_is_asked_for(teardown: Teardown, first: str) -> None:
    history = ran(*READY, teardown=teardown)
    ending = calls(history, MAPPED)
    assert ending[0] == first
    assert (ending.count("close"), ending.count("free")) == (2 if first != "close" else 3, 10)
    assert [e.args[0] for e in history if e.kind == "note"][-1] == "done"


def test_memory_that_cannot_be_released_yet_is_released_in_the_end() -> None:
    history = ran(*READY, Free(0), subject=SubjectOf(KeepsShown), teardown=Teardown.MEMORY)
    assert outcomes(history)[-1] == "refused"
    assert [e.kind for e in history].count("release") == 5


def test_only_declared_spaces_are_used() -> None:
    history = ran(*(Allocate(G, space=n) for n in range(3)), subject=SubjectOf(VmmMemory, spaces=(1,)))
    assert [details["space"] for details in notes(history, "call") if details["name"] == "allocate"] == [1, 1, 1]


class Odder:
    """Answers with whatever it is told to."""

    def __init__(self, answer: object) -> None:
        self.answer = answer

    def reservation(self, driver: Driver, device: int) -> Odder:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self

    def allocate(self, size: int, space: int = 0) -> Any:
        return self.answer

    def reserve(self, size: int, alignment: int = 0) -> Any:
        return self.answer


class Address:
    def __init__(self, address: Any) -> None:
        self.address = address


@pytest.mark.parametrize("answer", [None, 7, Address((1, 2)), Address(Range(1, None)), RuntimeError("no")])  # type: ignore[arg-type]
def test_an_answer_that_is_nothing_of_the_kind_is_a_crash(answer: object) -> None:
    history = ran(Allocate(G), Reserve(G), MapOne(0, 0), subject=Odder(answer))
    assert outcomes(history) == ["crashed", "crashed", "skipped"]


def test_the_driver_is_closed_whatever_happens() -> None:
    drivers: list[HostDriver] = []

    def open_driver(options: DriverOptions) -> HostDriver:
        drivers.append(HostDriver(options))
        return drivers[-1]

    class Interrupted:
        def reservation(self, driver: Driver, device: int) -> Any:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(Program("reservation", Configuration(), (Allocate(G),)), Interrupted(), open_driver)
    assert drivers[0]._closed
