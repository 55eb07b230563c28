"""Judges histories of the contract ``driver``: what a driver answered, and what it then holds.

Everything is judged from the history. The state believes the driver's answers, so once a driver has
given a wrong one, nobody can know what it holds, and nothing behind that call is judged. Any error is a
refusal, but for the codes that `driver_codes` knows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from vmm_conformance.checkers.driver_codes import codes_of, names
from vmm_conformance.checkers.driver_courses import UNRELATED, Courses
from vmm_conformance.checkers.driver_data import SHARED, Data
from vmm_conformance.checkers.driver_facts import Facts, facts_of
from vmm_conformance.checkers.driver_memory import TEARDOWN, Accounting
from vmm_conformance.checkers.driver_rules import OPEN, Rules, Ruling
from vmm_conformance.checkers.driver_trails import LIFE_CYCLE, Trails
from vmm_conformance.checkers.judge import Judge
from vmm_conformance.contracts import Range, Status
from vmm_conformance.history.events import CALLS, CRASHED, SUBJECT, Event, History
from vmm_conformance.history.replay import Replay, Visitor

_HARMLESS: Final = frozenset({"reserve", "create", "mem_info", "address_range"})
"""Calls that may be wrongly refused without leaving a doubt about what the driver holds."""
_MOVES_BYTES: Final = frozenset({"write", "read", "copy", "fill"})
_RANGED: Final = frozenset({"address_free", "map", "unmap", "set_access", "write"})
_CAPTURE_CODES: Final = (Status.STREAM_CAPTURE_UNSUPPORTED, Status.STREAM_CAPTURE_INVALIDATED)

NOT_STICKY: Final = "DRIVER-79"
DURING_CAPTURE: Final = "DRIVER-80"


def judge(history: History) -> Judge:
    """What ``history`` says about the invariants of the contract ``driver``."""
    verdict = Judge()
    replay = Replay(history)
    facts = facts_of(history)
    replay.walk(_Court(history, replay, facts, verdict))
    return verdict


class _Court(Visitor):
    """Hears every event once, before and after the state takes it in.

    ``_captured`` says whether calls on memory were made in the capture that is under way; it is None while none is.
    """

    def __init__(self, history: History, replay: Replay, facts: Facts, verdict: Judge) -> None:
        state = replay.state
        self._judge = verdict
        self._facts = facts
        self._state = state
        self._trails = Trails(state, verdict, facts.minimum)
        self._rules = Rules(facts, state, self._trails)
        self._accounting = Accounting(facts, state, self._trails, verdict)
        self._rules.free = self._accounting.free
        self._data = Data(facts, state, self._trails, verdict)
        self._courses = Courses(verdict, facts.tolerance)
        self._granularities: dict[tuple[int, int], Any] = {}
        self._ruling = OPEN
        self._refused: Event | None = None
        self._captured: bool | None = None
        self._lost = facts.minimum == 0
        self._accepted = self._listeners()

    def _listeners(self) -> dict[str, Callable[[Event], None]]:
        """Who takes an accepted call in, by its kind."""
        return {
            "get_access": self._access_told,
            "retain": self._retained,
            "address_range": self._range_told,
            "reserve": self._reserved,
            "mem_info": self._accounting.asked,
            "map": self._trails.mapped,
            "unmap": self._trails.unmapped_now,
            "release": self._trails.released,
            "address_free": self._trails.address_freed,
            "stream_create": self._data.stream_created,
            "graph_begin": self._capture_begun,
            "graph_end": self._capture_ended,
            **dict.fromkeys(_MOVES_BYTES, self._data.submitted),
        }

    # -- the visitor

    def before(self, event: Event) -> None:
        """Rule on a call from the state before it."""
        if self._lost or event.kind not in CALLS:
            return
        if event.kind == "create" and event.status == 0:
            self._lost = self._handle_taken(event)
        if event.kind == "reserve" and event.status == 0:
            self._lost = self._overlaps(event)
        self._ruling = self._data.rule(event) if event.kind in _MOVES_BYTES else self._rules.rule(event)

    def after(self, event: Event) -> None:
        """Compare the answer, and take in what the call did."""
        kind = event.kind
        if kind == "note":
            self._note(event)
        elif kind == "ran" and not self._lost:
            self._data.ran(event)
        elif kind in CALLS and not self._lost:
            self._call(event, self._ruling)

    def finish(self) -> None:
        """Nothing is left to say at the end."""

    # -- calls

    def _call(self, event: Event, ruling: Ruling) -> None:
        self._compare(event, ruling)
        if self._lost:
            return
        if event.status == 0:
            self._take_in(event, ruling)
        else:
            self._take_in_refusal(event, ruling)
        self._data.call_over(event)
        if event.who == SUBJECT or event.status != 0:
            self._refused = event if event.status != 0 else None

    def _take_in(self, event: Event, ruling: Ruling) -> None:
        take_in = self._accepted.get(event.kind)
        if take_in is not None:
            take_in(event)
        if event.kind == "set_access":
            self._trails.granted(event, ruling.accept if ruling.accept != (LIFE_CYCLE,) else ("DRIVER-58",))
        self._accounting.accepted(event)
        if self._state.ended:
            self._data.ended()

    def _take_in_refusal(self, event: Event, ruling: Ruling) -> None:
        if event.kind in _RANGED:
            self._trails.refused(event, ruling.refuse)
        self._accounting.refused(event, ruling.refuse)
        if event.kind == "create":
            self._rules.exhausted = ruling.refuse == ("DRIVER-22",)
        if event.kind == "address_free" and ruling.refuse:
            reservation = self._state.reservation_at(event.args[0])
            if reservation is not None:
                self._trails.refused_frees[reservation] = ruling.refuse[0]

    def _compare(self, event: Event, ruling: Ruling) -> None:
        if event.status == CRASHED:
            self._answer(event, ruling.tags or (LIFE_CYCLE,), False, "an answer")
        elif ruling.refuse:
            if event.status == 0 or len(ruling.refuse) == 1:
                self._answer(event, ruling.refuse, event.status != 0, "an error")
            self._compare_code(event, ruling)
        elif ruling.accept:
            self._expect_accepted(event, ruling)
        elif event.kind == "graph_end" and self._captured:
            self._answer(event, (DURING_CAPTURE,), event.status == 0, "success, as calls on memory are no part of it")
        elif event.kind == "mem_info" and self._refused is not None:
            self._answer(event, (NOT_STICKY,), event.status == 0, "success, whatever was refused before")

    def _compare_code(self, event: Event, ruling: Ruling) -> None:
        codes = codes_of(ruling.refuse, self._facts.capabilities)
        if event.status and codes:
            self._judge.expect(
                ruling.refuse[0], event, event.status in codes, f"the code of {event.kind}{_arguments(event)}",
                expected=names(codes), actual=_said(event), range=_range(event),
            )  # fmt: skip

    def _expect_accepted(self, event: Event, ruling: Ruling) -> None:
        tags = ruling.accept
        if self._captured is not None:
            self._captured = True
            self._judge.witness(DURING_CAPTURE)
            if event.status in _CAPTURE_CODES:
                tags = (DURING_CAPTURE,)
        if self._courses.waited(event):
            tags = (UNRELATED,)
        self._answer(event, tags, event.status == 0, "success")

    def _answer(self, event: Event, tags: tuple[str, ...], good: bool, expected: str) -> None:
        for tag in tags:
            self._judge.witness(tag)
        if good:
            return
        for tag in tags:
            self._judge.fail(
                tag, event, f"{event.kind}{_arguments(event)}",
                expected=expected, actual=_said(event), range=_range(event),
            )  # fmt: skip
        self._lost |= event.status == 0 or event.kind not in _HARMLESS

    # -- what accepted calls said

    def _handle_taken(self, event: Event) -> bool:
        """Whether create gave out no handle, or one that is in use."""
        taken = event.result == 0 or event.result in self._state.handles
        if taken:
            self._judge.expect(
                SHARED, event, False, "the handle that create returned",
                expected="a handle that is not in use, and not 0", actual=f"handle {event.result}",
            )  # fmt: skip
        return taken

    def _overlaps(self, event: Event) -> bool:
        """Whether reserve gave out what is in use."""
        low, high = event.result, event.result + event.args[0]
        others = [(r.address, r.size) for r in self._state.reservations.values()]
        others += [(m.address, m.size) for m in self._state.allocations]
        clash = next(((a, s) for a, s in others if a < high and low < a + s), None)
        if others:
            self._judge.expect(
                "DRIVER-9", event, clash is None, "reserve returned addresses that are in use",
                expected="addresses apart from every live range", actual=f"overlaps {clash and Range(*clash)}",
                range=Range(low, event.args[0]),
            )  # fmt: skip
        return clash is not None

    def _reserved(self, event: Event) -> None:
        size, alignment, _ = event.args
        wanted = max(alignment, self._facts.minimum)
        if self._ruling.accept:
            self._judge.expect(
                "DRIVER-8" if alignment > self._facts.minimum else "DRIVER-7",
                event, event.result > 0 and event.result % wanted == 0, "the base of a reservation",
                expected=f"a multiple of {wanted}", actual=f"{event.result:#x}", range=Range(event.result, size),
            )  # fmt: skip

    def _access_told(self, event: Event) -> None:
        address, device = event.args
        view = self._trails.view_at(address)
        if view is None:
            return
        right, told = view.right(device, address), int(event.result)
        replaced = view.replaced_right(device, address)
        if right == told:
            self._trails.prove_rights(view.access, device, address)
            if replaced and len(view.access.suspects) == 1:
                self._judge.witness("DRIVER-57")
            return
        last = view.access.culprit
        tags = last.tags_for(device, address) if last is not None else ("DRIVER-58",)
        if tags == ("DRIVER-48",) and told == replaced:
            tags = ("DRIVER-57",)
        for tag in tags:
            self._judge.expect(
                tag, event, False, f"the rights of device {device}", expected=str(right), actual=str(told),
                range=Range(view.mapping.address, view.mapping.size), cause=last.event.seq if last else None,
            )  # fmt: skip
        view.believe(device, told, address)

    def _retained(self, event: Event) -> None:
        mapping = self._state.mapping_at(event.args[0])
        if mapping is not None:
            self._judge.expect(
                "DRIVER-28", event, event.result == mapping.memory.handle, "the handle behind an address",
                expected=f"handle {mapping.memory.handle}, which was mapped", actual=f"handle {event.result}",
                range=Range(mapping.address, mapping.size),
            )  # fmt: skip

    def _range_told(self, event: Event) -> None:
        mapping = self._state.mapping_at(event.args[0])
        if mapping is not None:
            wanted = Range(mapping.address, mapping.size)
            self._judge.expect(
                "DRIVER-64", event, tuple(event.result) == tuple(wanted), "the range an address lies in",
                expected=str(wanted), actual=str(event.result), range=wanted,
            )  # fmt: skip

    # -- capture

    def _capture_begun(self, event: Event) -> None:
        self._captured = False

    def _capture_ended(self, event: Event) -> None:
        self._captured = None

    # -- notes

    def _note(self, event: Event) -> None:
        what, details = event.args
        if what == "granularity":
            self._granularity(event, details)
        elif what == "teardown" and not self._lost:
            self._accounting.torn_down(event)
        elif what == "unusable":
            self._judge.expect(
                LIFE_CYCLE, event, False, "opening a driver", expected="a driver", actual=details["error"]
            )  # fmt: skip
        elif what == "unclosed":
            self._judge.expect(
                TEARDOWN, event, False, "closing the driver", expected="nothing", actual=details["error"]
            )  # fmt: skip
        elif not self._lost:
            self._courses.note(event)
            self._lost = self._courses.lost

    def _granularity(self, event: Event, details: dict[str, Any]) -> None:
        place = (details["device"], details["space"])
        answer = (details.get("minimum", 0), details.get("recommended", 0))
        minimum, recommended = answer
        self._judge.expect(
            "DRIVER-2", event, minimum > 0 and minimum & (minimum - 1) == 0, "the minimum granularity",
            expected="a power of two", actual=str(details),
        )  # fmt: skip
        if minimum > 0:
            self._judge.expect(
                "DRIVER-3", event, recommended >= minimum and recommended % minimum == 0,
                "the recommended granularity", expected=f"a multiple of {minimum}", actual=str(recommended),
            )  # fmt: skip
        asked = self._facts.asked
        if asked is not None and not self._facts.real:
            self._judge.expect(
                "DRIVER-6", event, (recommended > minimum) == (asked.recommended > asked.minimum),
                "the recommended granularity of a driver that was asked for " + str(tuple(asked)),
                expected="above the minimum where there are larger pages, and only there", actual=str(answer),
            )  # fmt: skip
        before = self._granularities.setdefault(place, (event.seq, answer))
        if before[0] != event.seq:
            self._judge.expect(
                "DRIVER-4", event, before[1] == answer, "the granularity, asked for again",
                expected=str(before[1]), actual=str(answer), cause=before[0],
            )  # fmt: skip


def _said(event: Event) -> str:
    if event.status == CRASHED:
        return f"it neither returned nor refused: {event.result}"
    if event.status == 0:
        return "success" if event.result is None else f"success, {event.result!r}"
    try:
        return Status(event.status).name
    except ValueError:
        return f"status {event.status}"


def _arguments(event: Event) -> str:
    return "(" + ", ".join(hex(a) if type(a) is int and a > 0xFFFF else repr(a) for a in event.args) + ")"


def _range(event: Event) -> Range | None:
    """The addresses that a call names."""
    if event.kind in ("map", "unmap", "set_access", "address_free", "read"):
        return Range(event.args[0], event.args[1])
    if event.kind == "write":
        return Range(event.args[0], len(event.args[1]))
    return Range(event.args[0], 1) if event.kind in ("get_access", "retain", "address_range") else None
