"""When mappings end, in which order, and what must have ended: ALLOC-44, 45, 53, 57 to 59, 71, 73, 76 and 182."""

from __future__ import annotations

from collections.abc import Sequence

from vmm_conformance.checkers.judge import Judge
from vmm_conformance.checkers.vmm_calls import Family
from vmm_conformance.checkers.vmm_ledger import Alias, Allocation, Call, Ending, Entity, State
from vmm_conformance.checkers.vmm_rules import Decision
from vmm_conformance.contracts import Range
from vmm_conformance.history.events import Event
from vmm_conformance.history.state import OPEN, Memory

DEFERRED, MARKED, COMPLETED = "ALLOC-44", "ALLOC-45", "ALLOC-53"
DESTINATION, UNRELATED, MOVED = "ALLOC-57", "ALLOC-58", "ALLOC-59"
CHOSEN, ALIAS_FIRST, FAILED_MARKER, KEPT = "ALLOC-71", "ALLOC-73", "ALLOC-75", "ALLOC-182"

HEADROOM = (11, 10)
"""Reclaim takes 1.1 times what is asked for."""


class Endings(Family):
    """Judges each mapping of an allocation or alias that ends, by the state that the ledger knows it in."""

    def before(self, call: Call, decision: Decision, judge: Judge) -> None:
        """Judge what the call has ended."""
        for ending in call.endings:
            state = ending.entity.state
            if state is State.ACTIVE and call.name != "close":
                self._lost(call, ending, judge)
            elif state is State.STALE:
                self._due(call, decision, ending, judge)
                self._meant(call, decision, ending, judge)
        if call.name == "allocate" and not call.struck:
            self._exactly(call, judge)
        if call.name in ("deallocate", "unmap") and call.good:
            judge.witness(DEFERRED)

    def after(self, call: Call, decision: Decision, judge: Judge) -> None:
        """Judge what should have ended, and has not, where endings can be seen."""
        if not call.good or not self.ledger.traced:
            return
        if call.name == "synchronize":
            self._all_completed(call, judge)
        if call.name in ("map", "allocate_mapped") and not decision.objections:
            self._out_of_the_way(call, decision, judge)

    # -- what ended

    def _lost(self, call: Call, ending: Ending, judge: Judge) -> None:
        """Something that is in use has lost its mapping."""
        entity = ending.entity
        if call.name in ("deallocate", "unmap") and self._own(call, entity):
            self._fail(judge, DEFERRED, call, ending, "at once", "not before the stream has passed a marker behind it")
            return
        about = KEPT
        if entity.revived:
            about = "ALLOC-55" if isinstance(entity, Alias) else "ALLOC-50"
        self._fail(judge, about, call, ending, "although it is in use", "it stays as it is")

    def _own(self, call: Call, entity: Entity) -> bool:
        named: Range = call.details.get("slice") or call.details["address"]
        return entity.extent.address == named.address

    def _due(self, call: Call, decision: Decision, ending: Ending, judge: Judge) -> None:
        """Is the work from before its deferral over, as far as the host can know?"""
        entity = ending.entity
        about = [DEFERRED]
        if call.name in ("map", "allocate_mapped") and entity in decision.conflicts:
            source = call.name == "map" and isinstance(entity, Alias) and entity.source.range == call["address"]
            about = [MOVED if source else DESTINATION]
        elif call.name == "close":
            about = ["ALLOC-76"]
        elif any(event.kind in ("event_synchronize", "event_query") for event in call.calls):
            about = [MARKED, DEFERRED]
        judge.witness(about[0])
        for invariant in about if not ending.reached else ():
            self._fail(
                judge, invariant, call, ending, "while work from before its deferral may still run",
                "not before the host has seen a marker behind that work",
            )  # fmt: skip

    def _meant(self, call: Call, decision: Decision, ending: Ending, judge: Judge) -> None:
        """Is it one of those that the call had to complete?"""
        entity = ending.entity
        in_way = [*decision.conflicts, *call.in_way]
        if entity.damaged:
            return
        if call.name == "map" or (call.name == "allocate_mapped" and not self._pressed(call)):
            good = entity in in_way or self._alias_of(entity, in_way)
            judge.witness(UNRELATED)
            if entity in decision.takes_back:
                about = "ALLOC-55" if call.name == "map" else "ALLOC-67"
                self._fail(judge, about, call, ending, "although it is just what is asked for", "it is taken back")
            elif not good:
                self._fail(judge, UNRELATED, call, ending, "although it is in nobody's way", "it stays deferred")
        elif call.name in ("allocate", "allocate_mapped"):
            judge.witness(CHOSEN)
            ended = [other.entity for other in call.endings]
            good = entity in in_way or self._alias_of(entity, [*ended, *in_way, *call.damaged])
            if isinstance(entity, Allocation):
                good = good or entity.space not in self.ledger.exempt
            if not good:
                kind = "an alias whose source stays" if isinstance(entity, Alias) else "memory that is exempt"
                self._fail(judge, CHOSEN, call, ending, f"although it is {kind}", "it stays deferred")

    def _pressed(self, call: Call) -> bool:
        """Whether memory was short in an allocating call, or may have been, since another call took some."""
        refused = any(event.kind == "create" for event in call.failures)
        wanted = call.live[call.ordinal] + self.ledger.rounded(call["size"])
        return refused or not call.alone or wanted > self.ledger.limit

    @staticmethod
    def _alias_of(entity: Entity, sources: Sequence[Entity]) -> bool:
        return isinstance(entity, Alias) and entity.source in sources

    def _exactly(self, call: Call, judge: Judge) -> None:
        """Behind a wait: the longest deferred that together have 1.1 times what is asked for, and no more.

        What is left of an entity that is damaged nobody can tell, and so not what is enough with it.
        """
        waited = call.waited
        if waited is None or not call.alone:
            return
        early = {e.entity for e in call.endings if e.event.seq < waited.seq}
        late = [e.entity for e in call.endings if e.event.seq > waited.seq and isinstance(e.entity, Allocation)]
        if any(entity.damaged for entity in late):
            return
        wanted: list[Allocation] = []
        needed = self.ledger.rounded(call["size"]) * HEADROOM[0]
        for entity in self.ledger.reclaimable(call.ordinal):
            if entity not in early:
                wanted.append(entity)
                if sum(e.committed for e in wanted) * HEADROOM[1] >= needed:
                    break
        judge.expect(
            CHOSEN, call.returned, set(late) == set(wanted), f"{call} reclaims other memory than the longest deferred",
            expected=", ".join(map(str, wanted)) or "nothing", actual=", ".join(map(str, late)) or "nothing",
        )  # fmt: skip

    def _fail(self, judge: Judge, invariant: str, call: Call, ending: Ending, what: str, expected: str) -> None:
        entity = ending.entity
        judge.fail(
            invariant, ending.event, f"{call} unmaps {entity} {what}", expected=expected,
            actual=f"unmapped by event {ending.event.seq}", range=entity.extent, cause=entity.since or None,
        )  # fmt: skip

    # -- what must have ended

    def _all_completed(self, call: Call, judge: Judge) -> None:
        if call.endings:
            judge.witness(COMPLETED)
        failed = any(event.kind in ("event_create", "event_record") for event in call.failures)
        for entity in self.ledger.stale(call.ordinal):
            if entity.since < call.event.seq and not entity.damaged:
                judge.expect(
                    FAILED_MARKER if failed or entity.marker_failed else COMPLETED, call.returned, False,
                    f"{call} leaves {entity} as it is", expected="all that was deferred is completed",
                    actual="still there", range=entity.extent, cause=entity.since,
                )  # fmt: skip

    def _out_of_the_way(self, call: Call, decision: Decision, judge: Judge) -> None:
        """What was in the way has been completed, before the new mapping was made."""
        made = [event for event in call.calls if event.kind == "map" and not event.status]
        for entity in [e for e in decision.conflicts if not e.damaged]:
            ended = entity.mapping.ended if entity.mapping is not None and entity.mapping.ended != OPEN else None
            source = call.name == "map" and isinstance(entity, Alias) and entity.source.range == call["address"]
            judge.expect(
                MOVED if source else DESTINATION, call.returned,
                ended is not None and all(ended < event.seq for event in made), f"{call} does not wait for {entity}",
                expected="it is completed before the slice is mapped",
                actual="still there" if ended is None else "completed later", range=entity.extent,
            )  # fmt: skip

    # -- single driver calls

    def driver_call(self, event: Event, call: Call | None) -> None:
        """Memory is released when its aliases are unmapped; rights on what is in use stay."""
        if event.kind == "release" and not event.status:
            self._released(event, call)
        for lowered in self.state.lowered:
            entity = self.ledger.of_mapping.get(lowered)
            if entity is not None and entity.state is State.ACTIVE:
                self.judge.fail(
                    KEPT, event, f"{event.kind} in {call or 'no call'} lowers the rights on {entity}",
                    expected="what is in use keeps its rights", actual=f"rights {event.args[2]}", range=entity.extent,
                )  # fmt: skip

    def _released(self, event: Event, call: Call | None) -> None:
        memory = self.state.handles.get(event.args[0])
        shown = [m for m in self.state.mappings if m.memory is memory] if memory is not None else []
        aliases = [e for e in map(self.ledger.of_mapping.get, shown) if isinstance(e, Alias)]
        if aliases:
            self.judge.fail(
                ALIAS_FIRST, event, f"{call or 'no call'} releases memory while {aliases[0]} shows it",
                expected="the alias is unmapped first", actual="released first", range=aliases[0].extent,
            )  # fmt: skip
        gone = [g for g in self.state.ended if isinstance(g, Memory)]
        if call is not None and any(
            isinstance(e.entity, Alias) and e.entity.memory in gone for e in call.endings
        ):
            self.judge.witness(ALIAS_FIRST)
