"""How runs end: SCOPE-120, 121, 126, 127 and 131, and that a run succeeds that nothing stands against."""

from __future__ import annotations

from typing import Any

from vmm_conformance.checkers.judge import Judge
from vmm_conformance.checkers.scope_facts import Call, Facts, Family, Scope
from vmm_conformance.checkers.scope_memory import blameless
from vmm_conformance.checkers.scope_policy import mode_rule
from vmm_conformance.contracts import Code
from vmm_conformance.history.events import Event

STREAM, CHANGED, NULL, RELEASED, UNBLOCKED = "SCOPE-120", "SCOPE-121", "SCOPE-126", "SCOPE-127", "SCOPE-131"


class Outcomes(Family):
    """Judges the calls of a scope by what they answered."""

    def __init__(self, facts: Facts, judge: Judge) -> None:
        super().__init__(facts, judge)
        self._raised: dict[int, tuple[str, str]] = {}

    # -- create_scope and generate

    def created(self, scope: Scope) -> None:
        """A stream or an allocator that must be refused is (120, 121); nothing else is."""
        call = scope.calls["create"]
        if scope.path == "any":
            return
        if scope.path != "refused":
            self._succeeds(scope, call)
            return
        rule = STREAM if scope.stream not in self.facts.own_streams else CHANGED
        if not call.ok:
            self._refused(scope, call, rule)

    def generated(self, scope: Scope) -> None:
        """What create_scope has not refused, generate may refuse; a changed granularity, it must (121)."""
        call = scope.calls["generate"]
        if scope.path == "any":
            return
        if scope.path == "refused":
            self._refused(scope, call, STREAM if scope.stream not in self.facts.own_streams else CHANGED)
        elif self._recut(scope):
            self._refused(scope, call, CHANGED)
        else:
            refused = scope.refused("allocate", "allocate_mapped", "create_reservation")
            unlucky = any(blameless(scope, request) for request in refused)
            if not unlucky or call.status == "crashed":
                self._succeeds(scope, call)

    def _recut(self, scope: Scope) -> bool:
        """Whether the granularity is not what the reservation was laid out with."""
        return scope.path in ("watched", "active") and scope.granule != scope.granularity

    def _refused(self, scope: Scope, call: Call, rule: str) -> None:
        what = "another allocator or granularity than before"
        if rule == STREAM:
            what = "another stream than its allocator's"
        made = [r for r in scope.requests if r.ok and r.name in ("allocate", "allocate_mapped")]
        good = call.status == "refused" and call.code == Code.INTERNAL.value and not made
        self.judge.expect(
            rule, call.returned or call.event, good, f"{scope.name} has {what}, and is not refused in time",
            expected=f"{Code.INTERNAL.value} before anything is allocated", actual=f"{call}, {len(made)} allocations",
        )  # fmt: skip

    # -- execute

    def executing(self, scope: Scope, event: Event) -> None:
        """Execute is called once, and not for a buffer that cannot be there (126)."""
        null = self._null(scope)
        if null:
            self.judge.fail(
                NULL, event, f"{scope.name} executes although its buffers {null}, which have fixed addresses, are null",
                expected="INTERNAL before anything is executed", actual="execute is called",
            )  # fmt: skip
        if len(scope.executing) > 1:
            self.judge.fail(
                mode_rule(scope), event, f"{scope.name} executes {len(scope.executing)} times", expected="once",
                actual=f"{len(scope.executing)} times",
            )  # fmt: skip

    def _null(self, scope: Scope) -> list[int]:
        """Promised parameters and outputs that are null in this run."""
        if scope.path != "active":
            return []
        selected = scope.track.policy.selected or frozenset()
        return [i for i in sorted(selected & scope.plan.candidates) if not scope.final[i].address]

    def note(self, event: Event, what: str, details: dict[str, Any]) -> None:
        """Remember what the callback raised."""
        if what == "raising":
            self._raised[details["scope"]] = str(details["status"]), str(details["code"])

    def executed(self, scope: Scope) -> None:
        """Judge the answer of execute, and that no alias is left behind it (126, 127)."""
        call = scope.calls["execute"]
        if scope.path == "any":
            return
        null = self._null(scope) if not scope.executing else []
        mapping = [request for request in scope.refused("map") if blameless(scope, request)]
        if null or mapping:
            self._unmappable(scope, call, [*([Code.INTERNAL.value] if null else []), *(r.code for r in mapping)])
        elif scope.number in self._raised:
            self._lets_through(scope, call)
        elif [r for r in scope.refused("unmap") if r.injected] and scope.executing:
            codes = [request.code for request in scope.refused("unmap")]
            self.judge.expect(
                RELEASED, call.event, call.status == "refused" and call.code in codes,
                f"{scope.name} could not end an alias, and does not say so",
                expected=f"the allocator's error: {codes[0]}",
                actual=str(call),
            )  # fmt: skip
        else:
            self._succeeds(scope, call, executed=True)
        self._aliases_ended(scope, call)

    def _unmappable(self, scope: Scope, call: Call, codes: list[str]) -> None:
        good = call.status == "refused" and call.code in codes and not scope.executing
        self.judge.expect(
            NULL, call.event, good, f"{scope.name} has a buffer that cannot be shown at its fixed address",
            expected=f"{codes[0]}, and execute not called",
            actual=f"{call}, execute called {len(scope.executing)} times",
        )  # fmt: skip

    def _lets_through(self, scope: Scope, call: Call) -> None:
        """What the callback raised comes out unchanged, whatever else went wrong (127)."""
        status, code = self._raised[scope.number]
        self.judge.expect(
            RELEASED if scope.path == "active" else mode_rule(scope), call.event,
            (call.status, call.code) == (status, code),
            f"{scope.name} does not pass on how its execution failed", expected=f"{status} {code}".strip(),
            actual=str(call),
        )  # fmt: skip

    def _aliases_ended(self, scope: Scope, call: Call) -> None:
        """No alias of this run is left once execute has returned, but where ending one was made to fail (127)."""
        mapped = [request for request in scope.requests if request.name == "map" and request.ok]
        if not mapped:
            return
        struck = {request.place for request in scope.refused("unmap") if request.injected}
        left = [place for place in scope.aliases if place not in struck]
        failed = not scope.executing
        self.judge.expect(
            NULL if failed else RELEASED, call.event, not left, f"{scope.name} leaves {len(left)} aliases behind",
            expected="none, however the run went", actual=f"{len(left)} of {len(mapped)}",
            range=left[0] if left else None,
        )  # fmt: skip
        if left:
            scope.track.spoil()

    # -- the end

    def ended(self, scope: Scope, event: Event) -> None:
        """What was made to fail in execute is tried again at the end (127); the calls there go well."""
        for name in ("teardown", "drop"):
            call = scope.calls.get(name)
            if call is not None and scope.path not in ("any", "refused"):
                excused = name == "teardown" and [r for r in scope.refused("deallocate") if blameless(scope, r)]
                if not excused or call.status == "crashed":
                    self._succeeds(scope, call)
        self._retried(scope, event)
        went_well = scope.executed and scope.status("drop") == "ok"
        scope.track.failed = None if went_well else scope

    def _retried(self, scope: Scope, event: Event) -> None:
        struck = [request for request in scope.refused("unmap") if request.injected]
        if not struck:
            return
        tries = {request.place: 0 for request in struck}
        for request in struck:
            tries[request.place] += 1
        left = [place for place in scope.aliases if place in tries]
        again = [place for place in left if tries[place] == 1]
        if "execute" in scope.calls and not scope.track.spoiled:
            self.judge.expect(
                RELEASED, event, not again, f"{scope.name} has ended and left {len(again)} aliases behind",
                expected="what could not be ended in execute is tried again when the scope is dropped",
                actual="not tried again", range=again[0] if again else None,
            )  # fmt: skip
        if left:
            scope.track.spoil()

    # -- success

    def _succeeds(self, scope: Scope, call: Call, *, executed: bool = False) -> None:
        """Nothing stands against this call."""
        if scope.track.spoiled and call.status != "crashed":
            return
        good = call.ok and (not executed or bool(scope.executing))
        rules = [mode_rule(scope)]
        if scope.track.failed is not None and scope.path in ("watched", "active"):
            rules.append(UNBLOCKED)
        for rule in rules:
            self.judge.witness(rule)
            if good:
                continue
            self.judge.fail(
                rule, call.returned or call.event, f"nothing stands against {scope.name}, and yet it does not go well",
                expected="ok" + (", execute called once" if executed else ""), actual=str(call),
                cause=scope.track.failed.event.seq if scope.track.failed and rule == UNBLOCKED else None,
            )  # fmt: skip


