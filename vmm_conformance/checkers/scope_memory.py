"""What scopes allocate and give back: SCOPE-130 to 134, POLICY-143, and requests that no scope may make."""

from __future__ import annotations

from typing import Final

from vmm_conformance.checkers.scope_facts import Family, Request, Scope
from vmm_conformance.contracts import BufferKind, Range
from vmm_conformance.history.events import Event

ONCE, UNBLOCKED, FIRST, SPACE, DRAINED, ONE_TEMP = (
    "SCOPE-130", "SCOPE-131", "SCOPE-132", "SCOPE-133", "SCOPE-134", "POLICY-143",
)  # fmt: skip
RELEASED, ROUNDED, FINAL = "SCOPE-127", "SCOPE-129", "SCOPE-125"

LUCK: Final = frozenset({"injected", "budget", "driver"})
"""Reasons of a refusal that are nobody's fault."""

WRONG: Final = {
    ("allocate", "leak"): UNBLOCKED,
    ("allocate_mapped", "leak"): UNBLOCKED,
    ("allocate_mapped", "active"): UNBLOCKED,
    **{("allocate_mapped", reason): ROUNDED for reason in ("overlap", "outside", "unaligned", "sizes")},
    **{("map", reason): ROUNDED for reason in ("overlap", "outside", "unaligned", "too-large")},
    ("map", "active"): RELEASED,
    ("map", "source-aliased"): RELEASED,
    ("map", "unknown"): FINAL,
    **{("unmap", reason): RELEASED for reason in ("no-alias", "size", "pending", "outside")},
    ("deallocate", "unknown"): ONCE,
    ("deallocate", "aliased"): RELEASED,
}
"""Refusals that a scope brings upon itself, by request and reason, and the invariant that it breaks by that."""


def blameless(scope: Scope, request: Request) -> bool:
    """Whether a scope that does all right may be refused this."""
    if request.reason in LUCK:
        return True
    if request.reason == "leak" and scope.track.device in scope.track.leaky:
        return True
    if request.reason == "aliased":
        return any(unmap.injected for unmap in scope.refused("unmap"))
    if request.name != "map" or request.address is None:
        return False
    shown = [index for index, entry in enumerate(scope.final) if entry.address == request.address.address]
    if request.reason == "source-aliased":
        return len(shown) > 1
    if request.reason == "unknown":
        return any(scope.plan.is_parameter(index) and index not in scope.owned_now for index in shown)
    sizes = {scope.plan.rounded(index, scope.granule) for index in shown}
    return request.reason == "too-large" and request.place is not None and request.place.size in sizes


class Allocations(Family):
    """Judges every request as it comes, and what is left when a scope ends."""

    def request(self, scope: Scope | None, request: Request) -> None:
        """A request that is refused for a reason that a scope must not give."""
        if scope is None or scope.track.spoiled:
            return
        rule = WRONG.get((request.name, request.reason))
        if rule is not None and not blameless(scope, request):
            self.judge.fail(
                rule, request.event, f"{scope.name}: {request}", actual=f"{request.code} ({request.reason})",
                expected="a request that the allocator can grant", range=request.place or request.address,
            )  # fmt: skip

    # -- what is allocated

    def generated(self, scope: Scope) -> None:
        """Order, memory space and place of what was allocated (132, 133, POLICY-143)."""
        if scope.status("generate") != "ok":
            return
        made: list[tuple[int, Request]] = []
        for request in scope.requests:
            place = request.result
            if place and place.address and request.name in ("allocate", "allocate_mapped"):
                index = scope.index_of(scope.generated, place.address)
                if index is not None:
                    made.append((index, request))
        self._order(scope, [index for index, _ in made])
        for index, request in made:
            wanted = scope.plan.buffers[index].space
            if wanted:
                self.judge.witness(SPACE)
            if request.details["space"] != wanted:
                self.judge.fail(
                    SPACE, request.event, f"{scope.name} allocates buffer {index} in the wrong memory space",
                    expected=f"space {wanted}", actual=f"space {request.details['space']}", range=request.result,
                )  # fmt: skip
            self._one_temp(scope, index, request)

    def _order(self, scope: Scope, made: list[int]) -> None:
        wanted = [index for index in scope.plan.transients if index in made]
        if scope.plan.mixed:
            self.judge.witness(FIRST)
        if made != wanted:
            self.judge.fail(
                FIRST, scope.calls["generate"].event, f"{scope.name} allocates its buffers in the wrong order",
                expected=f"{wanted}: collective ones first, each group by index", actual=f"{made}",
            )  # fmt: skip

    def _one_temp(self, scope: Scope, index: int, request: Request) -> None:
        """A temporary buffer that commands name has one place from the first run on (POLICY-143)."""
        if not scope.plan.profiled or index not in scope.plan.temps or scope.path not in ("watched", "active"):
            return
        self.judge.expect(
            ONE_TEMP, request.event, request.name == "allocate_mapped",
            f"{scope.name} allocates temporary buffer {index} by {request}",
            expected="in its slice of the reservation, so that the memory of the first run will do for all",
            actual="elsewhere: once all is decided it needs memory a second time", range=request.result,
        )  # fmt: skip

    # -- what is given back

    def ended(self, scope: Scope, event: Event) -> None:
        """All that a scope has allocated is its caller's by now, or has been given back (130, 131)."""
        torn_down = scope.status("teardown") in ("ok", "refused")
        left = {r: q for r, q in scope.allocated.items() if r.address and not (torn_down and r.address in scope.live)}
        struck = {request.address for request in scope.refused("deallocate") if blameless(scope, request)}
        stuck = {range_: request for range_, request in left.items() if range_ not in struck}
        rule = UNBLOCKED if scope.status("generate") != "ok" else ONCE
        if scope.requests and "generate" in scope.calls:
            self.judge.witness(rule)
        for range_, request in stuck.items():
            index = scope.index_of(scope.generated, range_.address)
            self.judge.fail(
                rule, event, f"{scope.name} has ended and still holds {_named(index, scope)}at {range_.address:#x}",
                expected="what was allocated for a run is given back when its scope is dropped, teardown or not",
                actual="still allocated", range=range_, cause=request.event.seq,
            )  # fmt: skip
        if left:
            scope.track.spoil()  # one finding tells it, and none where luck was against it

    # -- the end

    def closed(self, executable: int, event: Event) -> None:
        """Closing waits for what is pending in a reservation, then gives it back (134)."""
        requests = self.facts.closing_requests
        tracks = [track for (number, _), track in self.facts.tracks.items() if number == executable]
        reserved = {range_ for track in tracks for range_ in track.reservations.values()}
        if any(request.injected for request in requests) or any(track.spoiled for track in tracks):
            return
        early = [r for r in requests if r.name == "release" and not r.ok]
        for request in early:
            self.judge.fail(
                DRAINED, request.event, f"closing executable {executable} gives back addresses at which something is "
                "mapped still", expected="a wait for the allocator's pending operations before", actual=request.code,
                range=request.place,
            )  # fmt: skip
        held = [r for r in self.facts.state.reservations.values() if Range(r.address, r.size) in reserved]
        if reserved:
            self.judge.expect(
                DRAINED, event, not held or bool(early),
                f"closing executable {executable} keeps {len(held)} reservations",
                expected="every reservation given back", actual=f"{len(held)} left",
                range=Range(held[0].address, held[0].size) if held else None,
            )  # fmt: skip

    def ran(self, event: Event) -> None:
        """No work of a run met a fault: what it used was given back behind it."""
        fault = event.args[2]
        if fault is not None:
            self.judge.fail(
                ONCE, event, f"work of a run met a fault: {fault.reason} at {fault.address:#x}",
                expected="what a run uses is there until its work is over", actual=fault.reason,
                range=Range(fault.address, fault.size), cause=event.result,
            )  # fmt: skip


def _named(index: int | None, scope: Scope) -> str:
    if index is None:
        return "memory "
    kind = scope.plan.kind(index)
    return f"{'output' if kind is BufferKind.OUTPUT else 'temporary buffer'} {index} "


