"""The checker against histories written by hand: right ones, wrong ones, and ones that test nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from vmm_tales import MIB, RW, STREAMS, A, B, C, G, R, Tale, broken, slot

from vmm_conformance.catalogue import catalogue
from vmm_conformance.contracts import NULL, Access, Fault, Range, Status
from vmm_conformance.programs.vmm_allocator import Configuration

Tell = Callable[[Tale], None]
SHORT = Configuration(devices=2, budget=4 * G)
EXEMPT = Configuration(devices=2, budget=4 * G, exempt=(1,))
OOM = Status.OUT_OF_MEMORY.value


def steady(t: Tale) -> None:
    """Allocate, alias, end both, take both back: 42, 44, 48, 50, 52, 55, 183."""
    made = t.allocate(A, 1, 100)
    t.map(made, slot(0), 1)
    t.unmap(slot(0))
    t.deallocate(made)
    again = t.again(A, 200)
    t.maps(again, slot(0))
    t.gave()


def synchronized(t: Tale) -> None:
    """An alias and its source are completed in order: 45, 53, 54, 73, 74."""
    made = t.allocate(A, 1)
    t.map(made, slot(0), 1)
    t.look(made, (1, G), made)
    t.look(slot(0), (1, G))
    t.unmap(slot(0))
    t.look(slot(0), None)
    t.deallocate(made)
    t.look(made, (1, G))
    t.synchronize(50, (slot(0).address, 0), (A, 1))
    t.look(made, None)


def stolen(t: Tale) -> None:
    """One source after another at a slice, another alias untouched: 57, 58."""
    first, second, third = t.allocate(A, 1), t.allocate(B, 2), t.allocate(C, 3)
    t.map(first, slot(0), 1)
    t.map(third, slot(1), 3)
    t.unmap(slot(0))
    t.unmap(slot(1))
    t.maps(second, slot(0))
    t.mark(50)
    t.wait(50)
    t.driver("unmap", slot(0).address, G)
    t.show(slot(0).address, 2)
    t.gave()


def moved(t: Tale) -> None:
    """A source at one slice after another: 59."""
    made = t.allocate(A, 1)
    t.map(made, slot(0), 1)
    t.unmap(slot(0))
    t.maps(made, slot(1))
    t.mark(50)
    t.wait(50)
    t.driver("unmap", slot(0).address, G)
    t.show(slot(1).address, 1)
    t.gave()


def reclaimed(t: Tale) -> None:
    """Two of three stale allocations are needed, and exactly they are completed: 70, 71."""
    made = [t.allocate(A, 1), t.allocate(B, 2), t.allocate(C, 3), t.allocate(0x400000, 4)]
    for each in made[:3]:
        t.deallocate(each)
    t.wants(G, space=1)
    t.mark(50)
    t.driver("event_query", 50, result=False)
    t.wait(50)
    t.complete(A, 1)
    t.complete(B, 2)
    t.back(0x500000, 5, space=1)
    t.gave(Range(0x500000, G))


def short_of_memory(t: Tale) -> None:
    """What does not fit is refused, what fits is not: 69, 72."""
    made = t.allocate(A, 1, 3 * G)
    t.wants(2 * G)
    t.refused("RESOURCE_EXHAUSTED")
    t.wants((1 << 64) - G)
    t.refused("RESOURCE_EXHAUSTED")
    t.allocate(B, 2)
    t.deallocate(made)


def refusals(t: Tale) -> None:
    """All that must be refused, with the right codes: 43, 46 to 49, 56, 60 to 66, 68, 77, 78."""
    made, other = t.allocate(A, 1, 2 * G), t.allocate(B, 2, 2 * G)
    t.map(made, slot(0, 2), 1)
    t.ask("synchronize", "NOT_FOUND", 7)
    t.ask("deallocate", "FAILED_PRECONDITION", address=made)
    t.ask("deallocate", "NOT_FOUND", address=Range(A, G))
    t.ask("deallocate", "NOT_FOUND", address=Range(C, G))
    t.ask("deallocate", "NOT_FOUND", address=slot(0, 2))
    t.ask("deallocate", "NOT_FOUND", 1, address=made)
    for source, place, code in (
        (made, slot(4, 2), "ALREADY_EXISTS"), (other, slot(0, 2), "ALREADY_EXISTS"),
        (other, slot(1, 2), "FAILED_PRECONDITION"), (Range(B + G, G), slot(4), "NOT_FOUND"),
        (other, slot(4, 3), "INVALID_ARGUMENT"), (NULL, slot(4), "INVALID_ARGUMENT"),
        (other, slot(7, 2), "INVALID_ARGUMENT"), (Range(B, G), slot(4), "NOT_FOUND"),
    ):  # fmt: skip
        t.maps(source, place)
        t.refused(code)
    t.maps(other, slot(4), whole=None)
    t.refused("INVALID_ARGUMENT")
    for place, code in ((slot(0), "INVALID_ARGUMENT"), (slot(5), "NOT_FOUND"), (slot(8), "INVALID_ARGUMENT")):
        t.unmaps(place)
        t.refused(code)
    t.unmap(slot(0, 2))
    t.unmaps(slot(0, 2))
    t.refused("FAILED_PRECONDITION")
    t.maps(made, slot(0))
    t.refused("FAILED_PRECONDITION")
    t.wants_at(slot(4), size=1)
    t.refused("INVALID_ARGUMENT")
    t.wants_at(slot(4), space=5)
    t.refused("INVALID_ARGUMENT")
    t.wants(1, space=5)
    t.refused("FAILED_PRECONDITION")


def nothing(t: Tale) -> None:
    """No bytes: 41, 43."""
    t.wants(0, 9)
    t.gave(NULL)
    t.wants_at(slot(0, 0))
    t.gave(NULL)
    t.ask("deallocate", ordinal=9, address=NULL)


def at_slices(t: Tale) -> None:
    """A slice again and again, and one beside it: 62, 67."""
    made = t.allocate_at(slot(0, 2), 1)
    t.deallocate(made)
    t.wants_at(slot(0, 2))
    t.gave(slot(0, 2))
    t.allocate_at(slot(2), 2)


def half_granule(t: Tale) -> None:
    """All that is committed may be mapped: 64."""
    t.map(t.allocate(A, 1, 100), slot(0), 1)


def tags(t: Tale) -> None:
    """Keys are apart, and so are contexts: 51, 79."""
    made = t.allocate(A, 1)
    t.deallocate(made)
    tagged = t.allocate(B, 2, tag=True)
    t.deallocate(tagged)
    t.again(A, G, restored=True)
    t.allocate(C, 3, restored=True)


def marker_refused(t: Tale) -> None:
    """The refusal is told, and the next try completes everything: 75."""
    made = t.allocate(A, 1)
    t.deallocate(made)
    t.call("synchronize")
    t.mark(50, status=OOM)
    t.refused("OUT_OF_MEMORY")
    t.look(made, (1, G))
    t.synchronize(51, (A, 1))


def undone(t: Tale) -> None:
    """What failed half way is given back: 184."""
    t.wants(G)
    t.driver("create", G, 0, 0, result=1)
    t.driver("reserve", G, 0, 0, status=OOM, result="injected")
    t.driver("release", 1)
    t.refused("OUT_OF_MEMORY")


def read_back(t: Tale) -> None:
    """Bytes stay, at the address and through an alias: 182, 183."""
    made = t.allocate(A, 1)
    t.ran(t.work(1, A, b"AAAAAAAA", read=b"?"), b"00000001")
    t.map(made, slot(0), 1)
    t.ran(t.work(1, slot(0).address, b"BBBBBBBB", alias=True, read=b"?"), b"AAAAAAAA")


def closed(t: Tale) -> None:
    """Everything of both devices, after both were waited for: 76."""
    made = t.allocate(A, 1)
    t.allocate(B, 2, ordinal=1)
    t.map(made, slot(0), 1)
    t.close()
    t.driver("unmap", slot(0).address, G)
    t.complete(A, 1)
    t.complete(B, 2)
    t.gave()
    t.ask("close")


def told(t: Tale) -> None:
    """Fixed facts: 43, 181."""
    t.call("stream")
    t.gave(STREAMS[0])
    t.call("granularity", 9)
    t.gave(0)


def at_once(t: Tale) -> None:
    """While a map waits for a stale alias, its source takes it back, and the map is refused: 80."""
    first, second = t.allocate(A, 1), t.allocate(B, 2)
    t.map(first, slot(0), 1)
    t.unmap(slot(0))
    t.maps(second, slot(0))
    t.mark(50)
    t.thread = 1
    t.maps(first, slot(0))
    t.gave()
    t.thread = 0
    t.wait(50)
    t.refused("ALREADY_EXISTS")


def apart(t: Tale) -> None:
    """Calls about two devices at once: 77."""
    t.wants(G)
    t.thread = 1
    t.wants(G, 1)
    t.thread = 0
    t.back(A, 1)
    t.gave(Range(A, G))
    t.thread = 1
    t.back(B, 2, device=1)
    t.gave(Range(B, G))


GOOD: dict[Tell, tuple[Configuration | None, tuple[int, ...]]] = {
    steady: (None, (42, 44, 48, 50, 52, 55, 183)), synchronized: (None, (45, 49, 53, 54, 73, 74)),
    stolen: (None, (57, 58)), moved: (None, (59,)), reclaimed: (SHORT, (69, 70, 71)),
    short_of_memory: (SHORT, (69, 72)),
    refusals: (None, (43, 46, 47, 48, 49, 56, 60, 61, 62, 63, 64, 65, 66, 68, 77, 78)),
    nothing: (None, (41, 43)),
    at_slices: (None, (62, 67)), half_granule: (None, (64,)), tags: (None, (51, 79)), marker_refused: (None, (75,)),
    undone: (None, (184,)), read_back: (None, (182, 183)), closed: (None, (76,)), told: (None, (43, 181)),
    at_once: (None, (80,)), apart: (None, (77,)),
}  # fmt: skip


@pytest.mark.parametrize("tell", GOOD, ids=lambda tell: tell.__name__)
def test_right_history(tell: Tell) -> None:
    configuration, numbers = GOOD[tell]
    tale = Tale(configuration)
    tell(tale)
    judged = tale.judged()
    assert judged.findings == []
    assert [number for number in numbers if not judged.witnesses[f"ALLOC-{number}"]] == []


OF_ONE_LIFE = {entry.id for entry in catalogue().of("vmm-allocator")} - {"ALLOC-185"}
"""But for the leak series, whose judge has its histories in tests/allocator/test_series.py."""


def test_right_histories_witness_every_invariant() -> None:
    witnessed = {f"ALLOC-{number}" for _, numbers in GOOD.values() for number in numbers}
    assert witnessed == OF_ONE_LIFE


def test_history_that_does_nothing_witnesses_nothing() -> None:
    judged = Tale().judged()
    assert judged.findings == []
    assert {invariant for invariant, count in judged.witnesses.items() if count} <= {"ALLOC-181"}


# -- wrong histories, by the invariant that they break

BAD: list[tuple[int, str, Configuration | None, Tell]] = []


def bad(number: int, configuration: Configuration | None = None) -> Callable[[Tell], Tell]:
    def register(tell: Tell) -> Tell:
        BAD.append((number, tell.__name__, configuration, tell))
        return tell

    return register


@bad(41)
def granule_for_nothing(t: Tale) -> None:
    t.wants(0)
    t.back(A, 1)
    t.gave(Range(A, 0))


@bad(41)
def nothing_refused(t: Tale) -> None:
    made = t.allocate(A, 1)
    t.maps(made, slot(0, 0))
    t.refused("INVALID_ARGUMENT")


@bad(42)
def padded(t: Tale) -> None:
    t.wants(100)
    t.back(A, 1)
    t.gave(Range(A, G))


@bad(43)
def any_device(t: Tale) -> None:
    t.ask("synchronize", ordinal=7)


@bad(43)
def null_has_a_device(t: Tale) -> None:
    t.ask("deallocate", "NOT_FOUND", 7, address=NULL)


@bad(44)
def freed_at_once(t: Tale) -> None:
    made = t.allocate(A, 1)
    t.call("deallocate", address=made)
    t.complete(A, 1)
    t.gave()


@bad(44)
def freed_unseen(t: Tale) -> None:
    made = t.allocate(A, 1)
    t.deallocate(made)
    t.call("synchronize")
    t.mark(50)
    t.complete(A, 1)
    t.gave()


@bad(45)
def other_stream(t: Tale) -> None:
    made = t.allocate(A, 1)
    t.deallocate(made)
    t.call("synchronize")
    t.mark(50, STREAMS[1])
    t.wait(50)
    t.complete(A, 1)
    t.gave()


@bad(45)
def old_marker(t: Tale) -> None:
    t.deallocate(t.allocate(B, 2))
    t.synchronize(50, (B, 2))
    t.deallocate(t.allocate(A, 1))
    t.call("synchronize")
    t.wait(50)
    t.complete(A, 1)
    t.gave()


@bad(46)
def freed_twice(t: Tale) -> None:
    made = t.allocate(A, 1)
    t.deallocate(made)
    t.ask("deallocate", address=made)


@bad(47)
def pointer_only(t: Tale) -> None:
    t.allocate(A, 1, 100)
    t.ask("deallocate", address=Range(A, 101))


@bad(48)
def freed_under_alias(t: Tale) -> None:
    made = t.allocate(A, 1)
    t.map(made, slot(0), 1)
    t.ask("deallocate", address=made)


@bad(48)
def stale_alias_holds(t: Tale) -> None:
    made = t.allocate(A, 1)
    t.map(made, slot(0), 1)
    t.unmap(slot(0))
    t.ask("deallocate", "FAILED_PRECONDITION", address=made)


@bad(49)
def freed_by_alias(t: Tale) -> None:
    t.map(t.allocate(A, 1), slot(0), 1)
    t.ask("deallocate", address=slot(0))


@bad(49)
def unmapped_allocation(t: Tale) -> None:
    t.allocate_at(slot(0), 1)
    t.unmaps(slot(0))
    t.gave()


@bad(49)
def slice_as_own(t: Tale) -> None:
    t.allocate_at(slot(0), 1)
    t.look(slot(0), (1, G), slot(0))


@bad(50)
def always_fresh(t: Tale) -> None:
    t.deallocate(t.allocate(A, 1))
    t.wants(G)
    t.back(B, 2)
    t.gave(Range(B, G))


@bad(50)
def marks_reuse(t: Tale) -> None:
    t.deallocate(t.allocate(A, 1))
    t.wants(G)
    t.mark(50)
    t.gave(Range(A, G))


@bad(51)
def spaces_mixed(t: Tale) -> None:
    t.deallocate(t.allocate(A, 1, space=1))
    t.again(A, G)


@bad(51)
def tags_mixed(t: Tale) -> None:
    t.deallocate(t.allocate(A, 1, tag=True))
    t.again(A, G)


@bad(52)
def old_size(t: Tale) -> None:
    t.deallocate(t.allocate(A, 1, 100))
    t.wants(200)
    t.gave(Range(A, 100))


@bad(53)
def waits_only(t: Tale) -> None:
    t.deallocate(t.allocate(A, 1))
    t.synchronize(50)


@bad(53)
def forgets_stale(t: Tale) -> None:
    made = t.allocate(A, 1)
    t.deallocate(made)
    t.look(made, None)


@bad(53)
def remembers_gone(t: Tale) -> None:
    made = t.allocate(A, 1)
    t.deallocate(made)
    t.synchronize(50, (A, 1))
    t.look(made, (1, G))


@bad(54)
def finds_stale_alias(t: Tale) -> None:
    t.map(t.allocate(A, 1), slot(0), 1)
    t.unmap(slot(0))
    t.look(slot(0), (1, G))


@bad(54)
def blind_to_aliases(t: Tale) -> None:
    t.map(t.allocate(A, 1), slot(0), 1)
    t.look(slot(0), None)


@bad(55)
def maps_anew(t: Tale) -> None:
    made = t.allocate(A, 1)
    t.map(made, slot(0), 1)
    t.unmap(slot(0))
    t.maps(made, slot(0))
    t.mark(50)
    t.wait(50)
    t.driver("unmap", slot(0).address, G)
    t.show(slot(0).address, 1)
    t.gave()


@bad(55)
def unmapped_though_active(t: Tale) -> None:
    made = t.allocate(A, 1)
    t.map(made, slot(0), 1)
    t.unmap(slot(0))
    t.maps(made, slot(0))
    t.gave()
    t.synchronize(50, (slot(0).address, 0))


@bad(56)
def start_will_do(t: Tale) -> None:
    made = t.allocate(A, 1, 2 * G)
    t.map(made, slot(0, 2), 1)
    t.unmap(slot(0, 2))
    t.maps(made, slot(0))
    t.gave()


@bad(56)
def marks_before_refusing(t: Tale) -> None:
    made = t.allocate(A, 1, 2 * G)
    t.map(made, slot(0), 1)
    t.unmap(slot(0))
    t.maps(made, slot(0, 2))
    t.mark(50)
    t.refused("FAILED_PRECONDITION")


@bad(57)
def maps_over(t: Tale) -> None:
    first, second = t.allocate(A, 1), t.allocate(B, 2)
    t.map(first, slot(0), 1)
    t.work(1, slot(0).address, b"CCCCCCCC", alias=True)
    t.unmap(slot(0))
    t.maps(second, slot(0))
    t.driver("unmap", slot(0).address, G)
    t.show(slot(0).address, 2)
    t.gave()


@bad(57)
def shows_the_old_one(t: Tale) -> None:
    first, second = t.allocate(A, 1), t.allocate(B, 2)
    t.map(first, slot(0), 1)
    t.unmap(slot(0))
    t.maps(second, slot(0))
    t.gave()


@bad(58)
def drains_all(t: Tale) -> None:
    first, second, third = t.allocate(A, 1), t.allocate(B, 2), t.allocate(C, 3)
    t.map(first, slot(0), 1)
    t.map(third, slot(1), 3)
    t.unmap(slot(0))
    t.unmap(slot(1))
    t.maps(second, slot(0))
    t.mark(50)
    t.wait(50)
    t.driver("unmap", slot(0).address, G)
    t.driver("unmap", slot(1).address, G)
    t.show(slot(0).address, 2)
    t.gave()


@bad(59)
def two_aliases(t: Tale) -> None:
    made = t.allocate(A, 1)
    t.map(made, slot(0), 1)
    t.unmap(slot(0))
    t.map(made, slot(1), 1)


@bad(60)
def drains_then_rejects(t: Tale) -> None:
    first, second = t.allocate(A, 1), t.allocate(B, 2)
    t.map(first, slot(0), 1)
    t.map(second, slot(1), 2)
    t.unmap(slot(0))
    t.maps(first, slot(1))
    t.mark(50)
    t.wait(50)
    t.driver("unmap", slot(0).address, G)
    t.refused("ALREADY_EXISTS")


@bad(60)
def replaces_active(t: Tale) -> None:
    t.map(t.allocate(A, 1), slot(0), 1)
    t.maps(t.allocate(B, 2), slot(0))
    t.gave()


@bad(61)
def second_alias(t: Tale) -> None:
    made = t.allocate(A, 1)
    t.map(made, slot(0), 1)
    t.map(made, slot(1), 1)


@bad(61)
def other_code(t: Tale) -> None:
    made = t.allocate(A, 1)
    t.map(made, slot(0), 1)
    t.maps(made, slot(1))
    t.refused("FAILED_PRECONDITION")


@bad(62)
def overlap_accepted(t: Tale) -> None:
    t.map(t.allocate(A, 1, 2 * G), slot(0, 2), 1)
    t.maps(t.allocate(B, 2, 2 * G), slot(1, 2))
    t.gave()


@bad(62)
def touching_refused(t: Tale) -> None:
    t.map(t.allocate(A, 1), slot(0), 1)
    t.wants_at(slot(1))
    t.refused("FAILED_PRECONDITION")


@bad(63)
def interior_source(t: Tale) -> None:
    t.allocate(A, 1, 2 * G)
    t.maps(Range(A + G, G), slot(0))
    t.gave()


@bad(63)
def stale_source(t: Tale) -> None:
    made = t.allocate(A, 1)
    t.deallocate(made)
    t.map(made, slot(0), 1)


@bad(64)
def logical_limit(t: Tale) -> None:
    t.maps(t.allocate(A, 1, 100), slot(0))
    t.refused("INVALID_ARGUMENT")


@bad(64)
def no_limit(t: Tale) -> None:
    t.maps(t.allocate(A, 1), slot(0, 2))
    t.gave()


@bad(65)
def beyond(t: Tale) -> None:
    t.maps(t.allocate(A, 1, 2 * G), slot(7, 2))
    t.gave()


@bad(65)
def no_reservation(t: Tale) -> None:
    t.wants_at(Range(0, G), whole=None)
    t.refused("NOT_FOUND")


@bad(65)
def reserves_before_refusing(t: Tale) -> None:
    t.wants_at(slot(8))
    t.driver("create", G, 0, 0, result=1)
    t.driver("release", 1)
    t.refused("INVALID_ARGUMENT")


@bad(66)
def unmapped_twice(t: Tale) -> None:
    t.map(t.allocate(A, 1), slot(0), 1)
    t.unmap(slot(0))
    t.unmap(slot(0))


@bad(66)
def unmapped_in_part(t: Tale) -> None:
    t.map(t.allocate(A, 1, 2 * G), slot(0, 2), 1)
    t.unmap(slot(0))


@bad(67)
def fresh_each_step(t: Tale) -> None:
    t.deallocate(t.allocate_at(slot(0), 1))
    t.wants_at(slot(0))
    t.mark(50)
    t.wait(50)
    t.complete(slot(0).address, 1, own=False)
    t.back(slot(0).address, 2, own=False)
    t.gave(slot(0))


@bad(67)
def own_address(t: Tale) -> None:
    t.wants_at(slot(0))
    t.back(A, 1)
    t.gave(Range(A, G))


@bad(68)
def smaller_of_two(t: Tale) -> None:
    t.wants_at(slot(0, 2), size=G)
    t.back(slot(0).address, 1, own=False)
    t.gave(slot(0))


@bad(68)
def sizes_come_last(t: Tale) -> None:
    t.wants_at(slot(0), 9, size=1)
    t.refused("NOT_FOUND")


@bad(69, SHORT)
def over_budget(t: Tale) -> None:
    t.allocate(A, 1, 3 * G)
    t.allocate(B, 2, 2 * G)


@bad(69)
def huge_accepted(t: Tale) -> None:
    t.wants((1 << 64) - G)
    t.gave(Range(A, (1 << 64) - G))


@bad(70, SHORT)
def never_reclaims(t: Tale) -> None:
    t.deallocate(t.allocate(A, 1, 4 * G))
    t.wants(G)
    t.refused("RESOURCE_EXHAUSTED")


@bad(71, SHORT)
def reclaims_alias(t: Tale) -> None:
    first, second = t.allocate(A, 1, 2 * G), t.allocate(B, 2, 2 * G)
    t.map(first, slot(0), 1)
    t.unmap(slot(0))
    t.deallocate(second)
    t.wants(G)
    t.mark(50)
    t.wait(50)
    t.complete(B, 2, 2 * G)
    t.driver("unmap", slot(0).address, G)
    t.back(C, 3)
    t.gave(Range(C, G))


@bad(71, EXEMPT)
def takes_exempt(t: Tale) -> None:
    t.deallocate(t.allocate(A, 1, 2 * G, space=1))
    t.allocate(B, 2, 2 * G)
    t.wants(G)
    t.mark(50)
    t.wait(50)
    t.complete(A, 1, 2 * G)
    t.back(C, 3)
    t.gave(Range(C, G))


@bad(71, SHORT)
def youngest_first(t: Tale) -> None:
    made = [t.allocate(A, 1), t.allocate(B, 2), t.allocate(C, 3, 2 * G)]
    for each in made:
        t.deallocate(each)
    t.wants(G, space=1)
    t.mark(50)
    t.wait(50)
    t.complete(C, 3, 2 * G)
    t.back(0x500000, 5, space=1)
    t.gave(Range(0x500000, G))


@bad(72, SHORT)
def charge_stays(t: Tale) -> None:
    t.wants(5 * G)
    t.refused("RESOURCE_EXHAUSTED")
    t.wants(4 * G)
    t.refused("RESOURCE_EXHAUSTED")


@bad(73)
def memory_first(t: Tale) -> None:
    made = t.allocate(A, 1)
    t.map(made, slot(0), 1)
    t.unmap(slot(0))
    t.deallocate(made)
    t.call("synchronize")
    t.mark(50)
    t.wait(50)
    t.complete(A, 1)
    t.driver("unmap", slot(0).address, G)
    t.gave()


@bad(74)
def marker_for_each(t: Tale) -> None:
    made = t.allocate(A, 1)
    t.call("deallocate", address=made)
    t.mark(50)
    t.gave()


@bad(74)
def marks_nothing(t: Tale) -> None:
    t.synchronize(50)


@bad(74, Configuration(devices=2, capacity=1 << 30))
def bytes_uncounted(t: Tale) -> None:
    for address, handle in ((A, 1), (A << 8, 2)):
        t.deallocate(t.allocate(address, handle, (32 + handle) * MIB))


@bad(75)
def refusal_swallowed(t: Tale) -> None:
    made = t.allocate(A, 1)
    t.deallocate(made)
    t.call("synchronize")
    t.mark(50, status=OOM)
    t.gave()


@bad(75)
def entries_dropped(t: Tale) -> None:
    made = t.allocate(A, 1)
    t.deallocate(made)
    t.call("synchronize")
    t.mark(50, status=OOM)
    t.refused("OUT_OF_MEMORY")
    t.ask("synchronize")


@bad(76)
def closes_one_by_one(t: Tale) -> None:
    t.allocate(A, 1)
    t.allocate(B, 2, ordinal=1)
    t.call("close")
    t.driver("device_synchronize", 0)
    t.complete(A, 1)
    t.driver("device_synchronize", 1)
    t.complete(B, 2)
    t.gave()


@bad(76)
def keeps_live(t: Tale) -> None:
    t.allocate(A, 1)
    t.close()
    t.gave()


@bad(76)
def needs_a_stream(t: Tale) -> None:
    t.call("close")
    t.driver("stream_synchronize", STREAMS[0], status=Status.INVALID_HANDLE.value)
    t.refused("INVALID_HANDLE")


@bad(77)
def one_book(t: Tale) -> None:
    made = t.allocate(A, 1)
    t.ask("deallocate", ordinal=1, address=made)


@bad(77)
def one_lock(t: Tale) -> None:
    t.wants(G)
    t.thread = 1
    t.wants(G, 1)
    t.note("blocked", at="create")
    t.thread = 0
    t.back(A, 1)
    t.gave(Range(A, G))
    t.thread = 1
    t.back(B, 2, device=1)
    t.gave(Range(B, G))


@bad(78)
def host_is_device(t: Tale) -> None:
    t.wants(G, space=5)
    t.back(A, 1, space=0)
    t.gave(Range(A, G))


@bad(79)
def scope_resets(t: Tale) -> None:
    t.deallocate(t.allocate(A, 1, tag=True))
    t.wants(G, tag=True, restored=True)
    t.back(B, 2)
    t.gave(Range(B, G))


@bad(80)
def completes_anyway(t: Tale) -> None:
    first, second = t.allocate(A, 1), t.allocate(B, 2)
    t.map(first, slot(0), 1)
    t.unmap(slot(0))
    t.maps(second, slot(0))
    t.mark(50)
    t.thread = 1
    t.maps(first, slot(0))
    t.gave()
    t.thread = 0
    t.wait(50)
    t.driver("unmap", slot(0).address, G)
    t.show(slot(0).address, 2)
    t.gave()


@bad(80)
def holds_lock(t: Tale) -> None:
    t.deallocate(t.allocate(A, 1))
    t.call("synchronize")
    t.mark(50)
    t.thread = 1
    t.wants(2 * G)
    t.note("blocked", at="event_synchronize")
    t.thread = 0
    t.wait(50)
    t.complete(A, 1)
    t.gave()
    t.thread = 1
    t.back(B, 2, 2 * G)
    t.gave(Range(B, 2 * G))


@bad(80)
def one_block_for_two(t: Tale) -> None:
    t.deallocate(t.allocate(A, 1))
    t.wants(G)
    t.thread = 1
    t.wants(G)
    t.gave(Range(A, G))
    t.thread = 0
    t.gave(Range(A, G))


@bad(80)
def waits_for_ever(t: Tale) -> None:
    t.wants(G)
    t.thread = 1
    t.wants(2 * G)
    t.note("blocked", at="create")
    t.thread = 0
    t.back(A, 1)
    t.gave(Range(A, G))
    t.note("abandoned")


@bad(181)
def refuses(t: Tale) -> None:
    t.wants(G)
    t.refused("INTERNAL")


@bad(181)
def crashes(t: Tale) -> None:
    t.wants(G)
    t.gave(None, "crashed", "KeyError")


@bad(182)
def unmaps_what_is_in_use(t: Tale) -> None:
    t.allocate(A, 1)
    t.synchronize(50, (A, 1))


@bad(182)
def lowers_rights(t: Tale) -> None:
    t.allocate(A, 1)
    t.call("synchronize")
    t.driver("set_access", A, G, ((0, Access.READ),))
    t.gave()


@bad(182)
def bytes_lost(t: Tale) -> None:
    t.allocate(A, 1)
    t.ran(t.work(1, A, b"AAAAAAAA", read=b"?"), b"????????")


@bad(182)
def faults(t: Tale) -> None:
    t.allocate(A, 1)
    t.ran(t.work(1, A, b"AAAAAAAA", read=b"?"), fault=Fault(A, 8, "unmapped", 1))


@bad(183)
def no_rights(t: Tale) -> None:
    t.wants(G)
    t.driver("create", G, 0, 0, result=1)
    t.driver("reserve", G, 0, 0, result=A)
    t.show(A, 1, rights=Access.READ)
    t.gave(Range(A, G))


@bad(183)
def half_behind(t: Tale) -> None:
    t.wants(2 * G)
    t.back(A, 1)
    t.gave(Range(A, 2 * G))


@bad(183)
def other_space(t: Tale) -> None:
    t.wants(G, space=1)
    t.back(A, 1, space=0)
    t.gave(Range(A, G))


@bad(183)
def other_device(t: Tale) -> None:
    t.wants(G)
    t.driver("create", G, 1, 0, result=1)
    t.driver("reserve", G, 0, 0, result=A)
    t.driver("map", A, G, 1, 0)
    t.driver("set_access", A, G, ((0, RW),))
    t.gave(Range(A, G))


@bad(183)
def handed_out_twice(t: Tale) -> None:
    t.allocate(A, 1)
    t.again(A)


@bad(183)
def alias_of_another(t: Tale) -> None:
    t.allocate(B, 2)
    t.map(t.allocate(A, 1), slot(0), 2)


@bad(184)
def keeps_what_it_took(t: Tale) -> None:
    t.wants(G)
    t.driver("create", G, 0, 0, result=1)
    t.driver("reserve", G, 0, 0, status=OOM, result="injected")
    t.refused("OUT_OF_MEMORY")


@pytest.mark.parametrize(("number", "name", "configuration", "tell"), BAD, ids=[f"{n}-{name}" for n, name, _, _ in BAD])
def test_wrong_history(number: int, name: str, configuration: Configuration | None, tell: Tell) -> None:
    tale = Tale(configuration)
    tell(tale)
    assert broken(tale)[0] == f"ALLOC-{number}"


def test_wrong_histories_break_every_invariant() -> None:
    assert {f"ALLOC-{number}" for number, *_ in BAD} == OF_ONE_LIFE


# -- what a subject declares


def test_other_code_for_a_second_alias() -> None:
    def judged(declared: str, code: str) -> list[str]:
        tale = Tale(second_alias=declared)
        made = tale.allocate(A, 1)
        tale.map(made, slot(0), 1)
        tale.maps(made, slot(1))
        tale.refused(code)
        return broken(tale)

    assert judged("FAILED_PRECONDITION", "FAILED_PRECONDITION") == []
    assert judged("FAILED_PRECONDITION", "ALREADY_EXISTS") == ["ALLOC-61"]


def test_marker_for_each_operation() -> None:
    def judged(markers: int) -> list[str]:
        tale = Tale(markers="per-operation")
        made = tale.allocate(A, 1)
        tale.call("deallocate", address=made)
        for event in range(markers):
            tale.mark(50 + event)
        tale.gave()
        return broken(tale)

    assert judged(1) == []
    assert judged(0) == judged(2) == ["ALLOC-74"]


def test_limits_of_batches_are_those_declared() -> None:
    def judged(limits: tuple[int, int]) -> list[str]:
        tale = Tale(batch_limits=limits)
        for address, handle in ((A, 1), (B, 2), (C, 3)):
            tale.deallocate(tale.allocate(address, handle, handle * G))
        return broken(tale)

    assert judged((3, MIB)) == judged((64, 6 * G)) == []
    assert judged((2, MIB)) == judged((64, 5 * G)) == ["ALLOC-74"]


def test_host_allocator_may_serve_the_hosts_space() -> None:
    tale = Tale(host_allocator=True)
    tale.wants(G, space=5)
    tale.gave(Range(A, G))
    assert "ALLOC-78" not in broken(tale)


def test_failure_of_a_wait_may_be_told_and_what_was_to_be_given_back_may_stay() -> None:
    tale = Tale()
    made = tale.allocate(A, 1)
    tale.deallocate(made)
    tale.call("synchronize")
    tale.mark(50)
    tale.wait(50)
    tale.driver("unmap", A, G, status=OOM, result="injected")
    tale.refused("OUT_OF_MEMORY")
    tale.close()
    tale.driver("event_destroy", 50)
    tale.gave()
    assert broken(tale) == []


def test_aborted_is_an_answer_to_calls_at_once_only() -> None:
    def judged(alone: bool, status: str = "refused", code: str = "ABORTED") -> list[str]:
        tale = Tale()
        made = tale.allocate(A, 1)
        tale.map(made, slot(0), 1)
        tale.unmap(slot(0))
        tale.maps(made, slot(1))
        if not alone:
            tale.thread = 1
            tale.ask("synchronize", ordinal=0)
            tale.thread = 0
        tale.gave(None, status, code)
        return broken(tale)

    assert judged(True) == ["ALLOC-59"]
    assert "ALLOC-59" not in judged(False)
    assert "ALLOC-59" in judged(False, "raised", "")


def test_reservation_is_not_left_behind_by_the_allocator() -> None:
    tale = Tale()
    tale.close()
    tale.gave()
    assert broken(tale) == []
    assert tale.history.events[-1].args[0] == "return"
    assert R.size == 8 * G
