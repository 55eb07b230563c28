"""Address ranges over time: reserved, mapped, allocated, in use by queued work."""

from __future__ import annotations

from dataclasses import dataclass

from vmm_conformance.history.events import Event
from vmm_conformance.history.state import Mapping, Memory, State
from vmm_conformance.running.pictures.naming import Names, rights_text
from vmm_conformance.running.pictures.submissions import Submission

RESERVATION, MAPPING, ALLOCATION, USE = "reservation", "mapping", "allocation", "use"


@dataclass(slots=True)
class Life:
    """A range from row ``start`` to row ``end`` (None: to the last); ``memory`` and ``rights`` of a mapping alone.

    ``kind`` is ``reservation``, ``mapping``, ``allocation`` (plain memory) or ``use`` (queued work ``work``).
    """

    kind: str
    address: int
    size: int
    who: str
    start: int
    end: int | None = None
    memory: int = 0
    rights: str = ""
    work: int = 0
    note: str = ""


class Ranges:
    """Follows a state, told of each event and its row after the state has taken it in."""

    def __init__(self, state: State, names: Names) -> None:
        self.lives: list[Life] = []
        self._state = state
        self._names = names
        self._reserved: dict[int, Life] = {}
        self._things: dict[Mapping | Memory, Life] = {}
        self._used: dict[int, list[Life]] = {}

    def take(self, event: Event, row: int) -> None:
        """One more event that succeeded."""
        if event.kind == "reserve":
            self._reserved[event.result] = self._begin(RESERVATION, event.result, event.args[0], event.who, row)
        elif event.kind == "address_free":
            _finish(self._reserved.pop(event.args[0], None), row)
        elif event.kind == "map":
            self._mapped(event, row)
        elif event.kind == "set_access":
            self._granted(event, row)
        elif event.kind == "alloc":
            self._allocated(event, row)
        for gone in self._state.ended:
            _finish(self._things.pop(gone, None), row)

    def _begin(self, kind: str, address: int, size: int, who: str, row: int) -> Life:
        life = Life(kind, address, size, who, row)
        self.lives.append(life)
        return life

    def _mapped(self, event: Event, row: int) -> None:
        mapping = self._state.mapping_at(event.args[0])
        if mapping is None or mapping.made != event.seq:
            return
        life = self._begin(MAPPING, mapping.address, mapping.size, mapping.who, row)
        life.memory, life.rights = self._names.number(mapping.memory), rights_text({})
        self._things[mapping] = life

    def _granted(self, event: Event, row: int) -> None:
        for mapping in self._state.mappings_in(event.args[0], event.args[1]):
            life, rights = self._things.get(mapping), rights_text(mapping.rights)
            if life is None or life.rights == rights:
                continue
            if life.start != row:
                _finish(life, row)
                number = life.memory
                life = self._things[mapping] = self._begin(MAPPING, mapping.address, mapping.size, mapping.who, row)
                life.memory = number
            life.rights = rights

    def _allocated(self, event: Event, row: int) -> None:
        memory = self._state.allocation_at(event.result)
        if memory is not None:
            life = self._begin(ALLOCATION, event.result, event.args[0], event.who, row)
            life.note = f"space {memory.space}" if memory.space else ""
            self._things[memory] = life

    def queued(self, submission: Submission, row: int) -> None:
        """Work that uses ranges from now until it has run."""
        event, uses = submission.event, []
        for touch in submission.touches:
            life = self._begin(USE, touch.address, touch.size, event.who, row)
            life.work, life.note = event.result, f"{'written' if touch.writes else 'read'} by {event.kind}"
            uses.append(life)
        self._used[event.result] = uses

    def ran(self, work: int, row: int) -> None:
        """The work has run."""
        for life in self._used.pop(work, ()):
            life.end = row


def _finish(life: Life | None, row: int) -> None:
    if life is not None:
        life.end = row
