"""What a driver must answer to a call on memory, given what it holds: accept it, or refuse it.

Written from the documents alone: every way in which a call can be wrong is named with its invariant.
A call that is wrong in several ways must be refused all the same, but does not say which rule it was
refused by. Where the documents leave the answer open there is no ruling.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Final, NamedTuple

from vmm_conformance.checkers.driver_facts import Facts
from vmm_conformance.checkers.driver_trails import LIFE_CYCLE, MANY, Suspect, Tags, Trails, View
from vmm_conformance.contracts import Access
from vmm_conformance.history.events import Event
from vmm_conformance.history.state import Mapping, Reservation, State


class Ruling(NamedTuple):
    """``refuse``: the invariants that forbid the call. If none does, ``accept``: those that demand it."""

    refuse: Tags = ()
    accept: Tags = ()

    @property
    def tags(self) -> Tags:
        """The invariants that the call puts to the test."""
        return self.refuse or self.accept


OPEN: Final = Ruling()
_RIGHTS: Final = frozenset(int(access) for access in Access)


@cache
def _refuse(*tags: str) -> Ruling:
    return Ruling(refuse=tuple(dict.fromkeys(tags)))


@cache
def _accept(*tags: str) -> Ruling:
    return Ruling(accept=tags or (LIFE_CYCLE,))


class Rules:
    """Rules on ``state``, with the past that ``trails`` remembers.

    ``free`` is what every device has free by now; ``exhausted`` says that the last create was refused
    for want of memory.
    """

    def __init__(self, facts: Facts, state: State, trails: Trails) -> None:
        self._facts = facts
        self._state = state
        self._trails = trails
        self._granule = facts.minimum
        self.free: dict[int, int] = {}
        self.exhausted = False
        self._rules: dict[str, Callable[..., Ruling]] = {
            "reserve": self._reserve,
            "address_free": self._address_free,
            "create": self._create,
            "retain": self._retain,
            "release": self._release,
            "map": self._map,
            "unmap": self._unmap,
            "set_access": self._set_access,
            "get_access": self._get_access,
            "address_range": self._address_range,
        }

    def rule(self, event: Event) -> Ruling:
        """The ruling on a call, before it is made."""
        rule = self._rules.get(event.kind)
        return rule(*event.args) if rule else OPEN

    # -- reservations

    def _reserve(self, size: int, alignment: int, hint: int) -> Ruling:
        if size <= 0 or size % self._granule or alignment & (alignment - 1):
            return _refuse("DRIVER-10")
        if hint:
            return _accept("DRIVER-11")
        return _accept("DRIVER-8" if alignment > self._granule else "DRIVER-7")

    def _address_free(self, address: int, size: int) -> Ruling:
        state = self._state
        reservation = state.reservations.get(address)
        if reservation is None:
            stale = address in self._trails.freed and state.reservation_at(address) is None
            return _refuse("DRIVER-16" if stale else "DRIVER-13")
        used = ("DRIVER-15",) if state.mappings_in(address, max(size, reservation.size)) else ()
        if size != reservation.size:
            return _refuse("DRIVER-17" if self._several(reservation, size) else "DRIVER-14", *used)
        if used:
            return _refuse(*used)
        if reservation in self._trails.spanned:
            return _accept("DRIVER-41")
        return _accept(self._trails.refused_frees.get(reservation, LIFE_CYCLE))

    def _several(self, reservation: Reservation, size: int) -> bool:
        """Whether the range is two or more whole adjacent reservations."""
        at, end = reservation.address + reservation.size, reservation.address + size
        while at < end:
            behind = self._state.reservations.get(at)
            if behind is None:
                return False
            at += behind.size
        return at == end

    # -- handles

    def _create(self, size: int, device: int, space: int) -> Ruling:
        facts = self._facts
        wrong = []
        if not 0 <= device < facts.devices or (not facts.real and (0, space) not in facts.granularity):
            wrong.append("DRIVER-21")
        granule = facts.granularity.get((device, space))
        if size <= 0 or size % (granule.minimum if granule else self._granule):
            wrong.append("DRIVER-20")
        free = self.free.get(device)
        if free is None or wrong:
            return _refuse(*wrong) if wrong else OPEN
        if size > free + facts.tolerance:
            return _refuse("DRIVER-22")
        if facts.real and size > free // 2:
            return OPEN  # what is free there need not be free for one handle
        return _accept("DRIVER-22" if self.exhausted else "DRIVER-20")

    def _retain(self, address: int) -> Ruling:
        return _accept("DRIVER-28") if self._state.mapping_at(address) else _refuse("DRIVER-30")

    def _release(self, handle: int) -> Ruling:
        memory = self._state.handles.get(handle)
        if memory is None or memory.references <= 0:
            return _refuse("DRIVER-27")
        if memory.mappings:
            return _accept("DRIVER-24")
        return _accept("DRIVER-29" if self._trails.past(memory).retained else "DRIVER-19")

    # -- mappings

    def _map(self, address: int, size: int, handle: int, offset: int) -> Ruling:
        memory = self._state.handles.get(handle)
        if memory is None or memory.references <= 0:
            return OPEN  # a stale handle is undefined
        wrong = [*self._shape(address, size, memory.size, offset), *self._target(address, size)]
        if wrong:
            return _refuse(*wrong)
        if offset and not self._facts.capabilities.partial_map:
            return OPEN  # declared, but not how much of the handle then has to be mapped
        if offset:
            return _accept("DRIVER-35")
        if size < memory.size:
            return _accept("DRIVER-37")
        return _accept(*self._map_tags(address, size, handle))

    def _shape(self, address: int, size: int, whole: int, offset: int) -> list[str]:
        """What is wrong with the numbers themselves, for a handle of ``whole`` bytes."""
        granule, declared = self._granule, self._facts.capabilities
        wrong = []
        if size <= 0 or size % granule or address % granule:
            wrong.append("DRIVER-34")
        if offset and (not declared.map_offset or offset < 0 or offset % granule):
            wrong.append("DRIVER-35")
        if size + max(offset, 0) > whole:
            wrong.append("DRIVER-36")
        if size < whole and not offset and not declared.partial_map:
            wrong.append("DRIVER-37")
        return wrong

    def _target(self, address: int, size: int) -> list[str]:
        """What is wrong with the addresses: in no reservation, not in one, or mapped already."""
        size = max(size, 1)
        reservation = self._state.reservation_at(address)
        wrong = []
        if reservation is None:
            wrong.append("DRIVER-31")
        elif address + size > reservation.address + reservation.size:
            wrong.append("DRIVER-32")
        if self._state.mappings_in(address, size):
            wrong.append("DRIVER-33")
        return wrong

    def _map_tags(self, address: int, size: int, handle: int) -> Tags:
        memory = self._state.handles[handle]
        trails = self._trails
        if trails.times.get((address, memory), 0) >= MANY:
            return ("DRIVER-46",)
        if memory.mappings:
            return ("DRIVER-60",)
        tags = ("DRIVER-45",) if trails.past(memory).mapped else ()
        return (*tags, "DRIVER-44") if trails.replaced(address, size) else tags

    def _unmap(self, address: int, size: int) -> Ruling:
        if size <= 0:
            return _refuse("DRIVER-42" if self._state.mapping_at(address) else "DRIVER-43")
        mappings = self._state.mappings_in(address, size)
        hole, cut = _coverage(mappings, address, size)
        if hole or cut:
            return _refuse(*(["DRIVER-43"] if hole else []), *(["DRIVER-42"] if cut else []))
        if len(mappings) == 1:
            return _accept("DRIVER-40")
        if _several_reservations(mappings):
            return OPEN
        spans = self._facts.capabilities.unmap_spans_mappings
        return _accept("DRIVER-41") if spans else _refuse("DRIVER-41")

    # -- rights

    def _set_access(self, address: int, size: int, rights: tuple[tuple[int, int], ...]) -> Ruling:
        wrong = []
        if size <= 0 or not rights or any(r not in _RIGHTS or not self._is_device(d) for d, r in rights):
            wrong.append("DRIVER-55")
        if size <= 0:
            return _refuse(*wrong)
        mappings = self._state.mappings_in(address, size)
        hole, cut = _coverage(mappings, address, size)
        if hole:
            wrong.append("DRIVER-54")
        declared = self._facts.capabilities
        if cut and (not declared.set_access_part_of_mapping or (address | size) % self._granule):
            wrong.append("DRIVER-53")
        if len(mappings) > 1 and not declared.set_access_spans_mappings:
            wrong.append("DRIVER-51")
        if wrong:
            return _refuse(*wrong)
        if _several_reservations(mappings) or not self._reachable(mappings, rights):
            return OPEN
        return _accept(*self._access_tags(mappings, cut))

    def _access_tags(self, mappings: list[Mapping], cut: bool) -> Tags:
        if cut:
            return ("DRIVER-53",)
        tags = ("DRIVER-51",) if len(mappings) > 1 else ()
        reservation = mappings[0].reservation
        first = self._state.mappings_in(reservation.address, reservation.size)[0] if reservation else mappings[0]
        return (*tags, "DRIVER-52") if first is not mappings[0] else tags

    def _is_device(self, device: int) -> bool:
        return 0 <= device < self._facts.devices

    def _reachable(self, mappings: list[Mapping], rights: tuple[tuple[int, int], ...]) -> bool:
        return all(self._facts.can_reach(device, m.memory.device) for device, _ in rights for m in mappings)

    def _get_access(self, address: int, device: int) -> Ruling:
        if not self._is_device(device):
            return OPEN
        view = self._trails.view_at(address)
        if view is not None:
            return _accept(*blamed(view.access.culprit, ("DRIVER-58",)))
        return _refuse(*self._trails.unmapped.get(address, ("DRIVER-58",)))

    def _address_range(self, address: int) -> Ruling:
        return _accept("DRIVER-64") if self._state.mapping_at(address) else OPEN


def blamed(suspect: Suspect | None, otherwise: Tags) -> Tags:
    """The invariants of the call to blame, if there is one that nothing was seen of since."""
    return suspect.tags if suspect is not None and suspect.tags and not suspect.proven else otherwise


def right_of_host(view: View, low: int, high: int, facts: Facts) -> tuple[int, int]:
    """The rights of the memory's own device between two addresses, and the largest of any device.

    Drivers differ in whose rights a copy by the host goes by. The owner's allow it everywhere, and
    where nobody has any it is allowed nowhere.
    """
    rights = [view.least(device, low, high) for device in range(facts.devices)]
    return rights[view.mapping.memory.device], max(rights)


def _coverage(mappings: list[Mapping], address: int, size: int) -> tuple[bool, bool]:
    """Whether the range has a hole, and whether it cuts a mapping."""
    if not mappings:
        return True, False
    end, at, hole = address + size, address, False
    for mapping in mappings:
        hole |= mapping.address > at
        at = mapping.address + mapping.size
    return hole or at < end, mappings[0].address < address or at > end


def _several_reservations(mappings: list[Mapping]) -> bool:
    return any(mapping.reservation is not mappings[0].reservation for mapping in mappings)
