"""What a history of the contract ``va-remap`` tells: scopes, the calls they make, and what stood behind addresses.

`Watch` walks the history once, keeps the `Facts`, and tells each family of checks what happened.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from vmm_conformance.checkers.judge import Judge
from vmm_conformance.checkers.scope_plan import PlanFacts
from vmm_conformance.contracts import Range
from vmm_conformance.history.events import Event, History
from vmm_conformance.history.state import Mapping, Memory, State

Persistent = tuple[int, ...] | None
Behind = tuple[Mapping | None, Memory | None]
"""What stands behind an address: the mapping, None for a plain allocation, and the memory."""


class Request:
    """One request of the subject to an allocator or a command buffer, with its answer."""

    __slots__ = ("address", "calls", "code", "details", "event", "name", "ok", "place", "reason", "result")

    def __init__(self, event: Event, details: dict[str, Any]) -> None:
        self.event = event
        self.details = details
        self.name: str = details["name"]
        self.ok: bool = details["status"] == "ok"
        self.code: str = details["code"]
        self.reason: str = details["reason"]
        self.calls: int = details["calls"]
        self.result: Range | None = details["result"]
        self.place: Range | None = details.get("place")
        self.address: Range | None = details.get("address")

    @property
    def injected(self) -> bool:
        """Whether it was made to fail."""
        return self.reason == "injected"

    def __str__(self) -> str:
        names = ("size", "space", "address", "place", "command")
        shown = [f"{name}={_text(self.details[name])}" for name in names if name in self.details]
        answer = "" if self.ok else f" -> {self.code} ({self.reason})"
        return f"{self.name}({', '.join(shown)}){answer}"


class Call:
    """One call on a scope."""

    __slots__ = ("code", "event", "message", "returned", "status")

    def __init__(self, event: Event) -> None:
        self.event = event
        self.returned: Event | None = None
        self.status = self.code = self.message = ""

    @property
    def ok(self) -> bool:
        """Whether it did what it was asked to."""
        return self.status == "ok"

    def __str__(self) -> str:
        return f"{self.status} {self.code} {self.message}".strip()


class Track:
    """One executable on one device, from its opening to its close.

    ``reservations`` are the subject's, with the granularity of that time. ``spoiled``: something could not be
    given back, since that was made to fail or has been told already: what is in the way of later runs is told
    no more. ``leaky`` are the devices on which it fills the budget, for good.
    """

    def __init__(self, executable: int, device: int, plan: PlanFacts, leaky: set[int]) -> None:
        self.device = device
        self.plan = plan
        self.name = f"executable {executable} on device {device} ({plan.mode.value})"
        self.bound: int | None = None
        self.reservations: dict[int, Range] = {}
        self.granularity = 0
        self.spoiled = False
        self.leaky = leaky
        self.failed: Scope | None = None
        self.policy: Any = None

    def spoil(self) -> None:
        """Something is left behind."""
        self.spoiled = True
        self.leaky.add(self.device)

    def reserved(self, address: int) -> bool:
        """Whether an address lies in a reservation of the subject's."""
        return any(r.address <= address < r.end for r in self.reservations.values())


@dataclass(slots=True, eq=False)
class Scope:
    """One run. ``path`` is what it must be: ``refused``, ``plain``, ``watched`` or ``active``, or ``any``.

    ``owned_before``, ``owned_after`` and ``owned_now``: the parameters whose last address the allocator knew,
    before and after the creation, and when it executed. ``inside`` is the call that was made last. ``final`` is
    the owning table with which it executed, ``after`` the same when it had; ``behind`` what stood behind the
    addresses that execution was given.
    """

    event: Event
    track: Track
    granularity: int
    number: int
    name: str
    stream: int
    label: int
    arguments: tuple[Range, ...]
    owned_before: frozenset[int]
    owned_after: frozenset[int] = frozenset()
    owned_now: frozenset[int] = frozenset()
    path: str = "any"
    enabled: bool | None = None
    inside: str = ""
    calls: dict[str, Call] = field(default_factory=dict)
    requests: list[Request] = field(default_factory=list)
    aliases: dict[Range, Request] = field(default_factory=dict)
    allocated: dict[Range, Request] = field(default_factory=dict)
    generated: tuple[Range, ...] = ()
    final: tuple[Range, ...] = ()
    after: tuple[Range, ...] = ()
    executing: list[Event] = field(default_factory=list)
    running: tuple[Range, ...] = ()
    persistent: Persistent = None
    behind: list[Behind] = field(default_factory=list)
    submitted: bool = False
    live: frozenset[int] = frozenset()

    @classmethod
    def begun(cls, event: Event, track: Track, granularity: int) -> Scope:
        """The run that a ``scope`` note begins."""
        details = event.args[1]
        number = details["scope"]
        return cls(
            event, track, granularity, number, f"run {number} of {track.name}", details["stream"], details["label"],
            details["arguments"], frozenset(details["owned"]),
        )  # fmt: skip

    @property
    def plan(self) -> PlanFacts:
        """What the executable says."""
        return self.track.plan

    def status(self, name: str) -> str:
        """How a call ended; empty if it was not made."""
        call = self.calls.get(name)
        return call.status if call else ""

    @property
    def granule(self) -> int:
        """What slices are made of: the granularity of the time when they were laid out."""
        return self.track.granularity or self.granularity

    @property
    def executed(self) -> bool:
        """Whether it executed, and that went well."""
        return self.status("execute") == "ok" and bool(self.executing)

    def refused(self, *names: str) -> list[Request]:
        """The requests of these names that were refused."""
        return [request for request in self.requests if not request.ok and request.name in names]

    def index_of(self, table: tuple[Range, ...], address: int) -> int | None:
        """The one buffer with ``address`` in a table; None if there is none, or several."""
        found = [index for index, entry in enumerate(table) if entry.address == address]
        return found[0] if len(found) == 1 else None


class Facts:
    """All that is known. ``causes`` says in which request of a run a mapping ended; what the caller ended, or
    closing an executable, is not there."""

    def __init__(self, history: History) -> None:
        header = history.header
        configuration = header["configuration"]
        self.plans = [PlanFacts(planned) for planned in configuration.executables]
        self.vmm: bool = configuration.vmm
        self.budgeted: bool = configuration.budget > 0
        self.consumes: bool = configuration.consumer and header["consumer"]
        self.granularity: int = header["granularity"]
        self.factor = 1
        self.state = State()
        self.tracks: dict[tuple[int, int], Track] = {}
        self.scopes: dict[int, Scope] = {}
        self.causes: dict[Mapping, Request] = {}
        self.own_streams: set[int] = set()
        self.leaky: set[int] = set()
        self.closing_requests: list[Request] = []

    def track(self, executable: int, device: int) -> Track:
        """The track of an executable that is open on a device."""
        key = executable, device
        if key not in self.tracks:
            self.tracks[key] = Track(executable, device, self.plans[executable], self.leaky)
        return self.tracks[key]

    def behind(self, address: int) -> Behind:
        """What stands behind an address now."""
        mapping = self.state.mapping_at(address)
        return mapping, mapping.memory if mapping else self.state.allocation_at(address)


class Family:
    """One family of checks. It is told what happened, and judges what it likes."""

    def __init__(self, facts: Facts, judge: Judge) -> None:
        self.facts = facts
        self.judge = judge

    def created(self, scope: Scope) -> None:
        """``create_scope`` has returned."""

    def request(self, scope: Scope | None, request: Request) -> None:
        """The subject has asked an allocator, or a command buffer, for something."""

    def generated(self, scope: Scope) -> None:
        """``generate`` has returned."""

    def executing(self, scope: Scope, event: Event) -> None:
        """The callback was called."""

    def executed(self, scope: Scope) -> None:
        """``execute`` has returned, and the table was looked at again."""

    def ended(self, scope: Scope, event: Event) -> None:
        """The scope was dropped, or never made."""

    def closed(self, executable: int, event: Event) -> None:
        """An executable was closed."""

    def note(self, event: Event, what: str, details: dict[str, Any]) -> None:
        """Any other note."""

    def ran(self, event: Event) -> None:
        """Queued work ran, or faulted."""


def _overridden(families: Sequence[Family], name: str) -> list[Callable[..., None]]:
    """The families' own methods of that name: most do not care for most events."""
    return [getattr(family, name) for family in families if name in type(family).__dict__]


class Watch:
    """Walks a history, keeps the facts and tells the families."""

    def __init__(self, facts: Facts, families: Sequence[Family]) -> None:
        self.facts = facts
        self._tell = {
            name: _overridden(families, name)
            for name in (
                "created", "request", "generated", "executing", "executed", "ended", "closed", "note", "ran",
            )
        }  # fmt: skip
        self._notes: dict[str, Callable[[Event, dict[str, Any]], None]] = {
            "memory": self._memory, "call": self._call, "return": self._return, "scope": self._scope,
            "executing": self._executing, "submitted": self._submitted,
            "granularity": self._granularity, "own": self._own,
        }  # fmt: skip
        self._ended: list[Mapping] = []

    def walk(self, history: History) -> None:
        """Show every event."""
        apply, state = self.facts.state.apply, self.facts.state
        for event in history.events:
            kind = event.kind
            if kind == "note":
                what, details = event.args
                handler = self._notes.get(what)
                if handler is not None:
                    handler(event, details)
                else:
                    self._say("note", event, what, details)
            elif kind == "ran":
                self._say("ran", event)
            else:
                apply(event)
                if state.ended:
                    self._ended += [gone for gone in state.ended if isinstance(gone, Mapping)]

    def _say(self, name: str, *what: Any) -> None:
        for tell in self._tell[name]:
            tell(*what)

    # -- notes

    def _scope(self, event: Event, details: dict[str, Any]) -> None:
        self._ended.clear()
        facts = self.facts
        track = facts.track(details["executable"], details["device"])
        facts.scopes[details["scope"]] = Scope.begun(event, track, facts.granularity * facts.factor)

    def _call(self, event: Event, details: dict[str, Any]) -> None:
        name = details["name"]
        if name == "close":
            self.facts.closing_requests = []
        scope = self.facts.scopes.get(details["scope"])
        if scope is None:
            return
        scope.calls[name], scope.inside = Call(event), name
        if name == "execute":
            scope.final = details["table"]
            scope.owned_now = frozenset(details["owned"])
        elif name == "teardown":
            scope.live = frozenset(details["live"])

    def _return(self, event: Event, details: dict[str, Any]) -> None:
        name, outcome = details["name"], details["outcome"]
        scope = self.facts.scopes.get(details["scope"])
        if scope is None:
            self._opened_or_closed(event, name, details)
            return
        call = scope.calls[name]
        call.returned = event
        call.status, call.code, call.message = outcome["status"], outcome["code"], outcome["message"]
        if name == "create":
            scope.enabled, scope.owned_after = details.get("enabled"), frozenset(details.get("owned", ()))
            self._say("created", scope)
        elif name == "generate":
            scope.generated = details.get("table", ())
            self._say("generated", scope)
        elif name == "execute":
            scope.after = details["table"]
            self._say("executed", scope)
        if name == "drop" or (name == "create" and not call.ok):
            self._say("ended", scope, event)

    def _opened_or_closed(self, event: Event, name: str, details: dict[str, Any]) -> None:
        if name == "close":
            self._say("closed", details["executable"], event)
            for key in [key for key in self.facts.tracks if key[0] == details["executable"]]:
                del self.facts.tracks[key]
        self._say("note", event, name, details)

    def _memory(self, event: Event, details: dict[str, Any]) -> None:
        request = Request(event, details)
        scope = self.facts.scopes.get(details["scope"])
        if scope is not None and self._ended:
            self.facts.causes.update(dict.fromkeys(self._ended, request))
        self._ended.clear()
        if scope is not None:
            scope.requests.append(request)
            _enter(scope, request)
        else:
            self.facts.closing_requests.append(request)
        self._say("request", scope, request)

    def _executing(self, event: Event, details: dict[str, Any]) -> None:
        scope = self.facts.scopes[details["scope"]]
        scope.executing.append(event)
        scope.running, scope.persistent = details["table"], details["persistent"]
        scope.behind = [self.facts.behind(entry.address) for entry in scope.running]
        self._say("executing", scope, event)

    def _submitted(self, event: Event, details: dict[str, Any]) -> None:
        self.facts.scopes[details["scope"]].submitted = True

    def _granularity(self, event: Event, details: dict[str, Any]) -> None:
        self.facts.factor = details["factor"]

    def _own(self, event: Event, details: dict[str, Any]) -> None:
        self._ended.clear()


def _enter(scope: Scope, request: Request) -> None:
    """Enter what a scope holds after a request."""
    if not request.ok:
        return
    name, place = request.name, request.place
    if name in ("allocate", "allocate_mapped") and request.result is not None:
        scope.allocated[request.result] = request
    elif name == "deallocate" and request.address is not None:
        scope.allocated.pop(request.address, None)
    elif name == "map" and place is not None:
        scope.aliases[place] = request
    elif name == "unmap" and place is not None:
        scope.aliases.pop(place, None)
    elif name == "create_reservation" and request.result is not None:
        scope.track.reservations[request.result.address] = request.result
        scope.track.granularity = scope.granularity


def _text(value: Any) -> str:
    return f"{value.address:#x}+{value.size}" if isinstance(value, Range) else repr(value)
