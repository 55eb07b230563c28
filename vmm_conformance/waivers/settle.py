"""Holds waivers against what was found: each is in force, or has a sentence that says why it is not."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from vmm_conformance.catalogue import Catalogue
from vmm_conformance.reporting.ended import told
from vmm_conformance.reporting.parties import DriverInfo, SubjectInfo
from vmm_conformance.reporting.symbolic import symbolic
from vmm_conformance.reporting.text import count, few
from vmm_conformance.reporting.verdicts import Ruling, Verdict, rule
from vmm_conformance.running.results import Ending, Failure, ItemResult
from vmm_conformance.waivers.listed import Waivers, expects, item_id
from vmm_conformance.waivers.waiver import FAILURE, Waiver


class State(StrEnum):
    """What became of a waiver for one subject."""

    IN_FORCE = "in force"
    """What it is about failed as it says, and nothing else failed of that invariant."""
    OPEN = "open"
    """The run is a part that was asked for, and this waiver was not in it."""
    PASSES = "passes"
    """Nothing fails any more as it says."""
    DIFFERS = "fails differently"
    """Something else fails, or the process ended."""
    NOT_RUN = "not run"
    """What it is about was not put to the test."""
    EXPIRED = "expired"
    """Its last day has passed."""

    @property
    def fails(self) -> bool:
        """Whether it fails the run."""
        return self not in (State.IN_FORCE, State.OPEN)


@dataclass(frozen=True, slots=True)
class Settlement:
    """What became of the waiver that is entry ``number`` of its file, from 0, for ``subject``, in a sentence."""

    number: int
    subject: str
    state: State
    sentence: str


@dataclass(frozen=True, slots=True)
class Settled:
    """What became of all waivers that cover a subject.

    ``excuses`` says why a broken invariant is borne, ``endings`` why one is whose programs ended their process, and
    ``items`` the same of an item in which nothing but that has happened.
    """

    settlements: tuple[Settlement, ...] = ()
    excuses: Mapping[str, str] = field(default_factory=dict)
    endings: Mapping[str, str] = field(default_factory=dict)
    items: Mapping[str, str] = field(default_factory=dict)

    @property
    def breaches(self) -> tuple[str, ...]:
        """The sentences of those that fail the run."""
        return tuple(each.sentence for each in self.settlements if each.state.fails)


def unmatched(waiver: Waiver) -> str:
    """The sentence on a waiver that covers nothing in a run."""
    return f"the waiver for {waiver.invariant} matches nothing: {waiver.scope()} is not in this run"


Outcome = tuple[State, str]


class Court:
    """Settles the waivers for one subject over one driver.

    ``asked`` are the ids that were asked for, None for all. ``part`` says that other items are run elsewhere, so
    that what was not seen here is left open.
    """

    def __init__(
        self,
        waivers: Waivers,
        subject: SubjectInfo,
        driver: DriverInfo,
        results: Sequence[ItemResult],
        catalogue: Catalogue,
        *,
        asked: Collection[str] | None = None,
        part: bool = False,
    ) -> None:
        self._waivers = waivers
        self._spec = subject.spec
        self._results = results
        self._catalogue = catalogue
        self._asked = asked
        self._part = part
        self._covering = [(n, waiver) for n, waiver in enumerate(waivers.entries) if waiver.covers(subject, driver)]

    def settle(self) -> Settled:
        """What became of each."""
        looked_at = [(n, waiver, self._beforehand(n, waiver)) for n, waiver in self._covering]
        holding = [waiver for _, waiver, known in looked_at if known is None or known[0] is State.OPEN]
        settlements = []
        for n, waiver, known in looked_at:
            state, said = known or self._by_failures(waiver, holding)
            settlements.append(Settlement(n, self._spec, state, f"the waiver for {waiver.invariant} {said}"))
        used = [waiver for waiver in holding if self._matches(waiver) and not self._strange(waiver, holding)]
        failing = [waiver for waiver in used if waiver.kind == FAILURE]
        ending = [waiver for waiver in used if waiver.kind != FAILURE]
        return Settled(tuple(settlements), _excuses(failing), _excuses(ending), self._items(ending))

    def _items(self, ending: Sequence[Waiver]) -> dict[str, str]:
        items = {}
        for result in self._results:
            own = [[waiver for waiver in ending if self._expects(waiver, each, result)] for each in result.endings]
            if own and all(own) and result.state != "stopped":
                items[result.item] = "; ".join(dict.fromkeys(first.excuse() for first, *_ in own))
        return items

    def _expects(self, waiver: Waiver, found: Failure | Ending, result: ItemResult) -> bool:
        return expects(waiver, found, result.contract, self._catalogue)

    def _messages(self, waiver: Waiver) -> list[str]:
        """What is said of all that may be what a waiver is about."""
        if waiver.kind == FAILURE:
            found = (failure for result in self._results for failure in result.failures)
            return sorted({symbolic(failure).message for failure in found if failure.invariant == waiver.invariant})
        about = (result for result in self._results if result.contract == self._contract(waiver))
        return sorted({told(ending) for result in about for ending in result.endings if ending.kind == waiver.kind})

    def _contract(self, waiver: Waiver) -> str:
        invariant = self._catalogue.invariants.get(waiver.invariant)
        return invariant.contract if invariant else ""

    def _matches(self, waiver: Waiver) -> bool:
        return any(map(waiver.accepts, self._messages(waiver)))

    def _strange(self, waiver: Waiver, holding: Sequence[Waiver]) -> list[str]:
        """Of these messages, those that no waiver expects."""
        own = [other for other in holding if self._alike(waiver, other)]
        return [message for message in self._messages(waiver) if not any(other.accepts(message) for other in own)]

    def _alike(self, one: Waiver, other: Waiver) -> bool:
        """Whether they are about the same failures: of one invariant, or endings in the items of one contract."""
        if one.kind != other.kind:
            return False
        same = one.invariant == other.invariant
        return same if one.kind == FAILURE else self._contract(one) == self._contract(other)

    def _beforehand(self, number: int, waiver: Waiver) -> Outcome | None:
        """What can be said before looking at failures; None if the waiver may excuse some."""
        if not self._waivers.live(waiver):
            return State.EXPIRED, f"expired on {waiver.expires}; mend what it is about, or renew it"
        if self._asked is not None and waiver.invariant not in self._asked:
            return State.OPEN, "is left open: its invariant was not asked for"
        if waiver.program is None:
            return None
        wanted = item_id(number, waiver, self._spec)
        result = next((result for result in self._results if result.item == wanted), None)
        return self._by_program(waiver, result)

    def _by_program(self, waiver: Waiver, result: ItemResult | None) -> Outcome | None:
        """What the waiver's own program shows; None if it fails as it should."""
        if result is None or not (result.executed or result.endings or result.unknown):
            if self._part:
                return State.OPEN, "is left open: its program is in another part of the run"
            return State.NOT_RUN, f"was not run: its program {waiver.file} was left out or could not be run"
        found: list[Failure | Ending] = [*result.failures, *result.endings]
        if any(self._expects(waiver, each, result) for each in found):
            return None
        for ending in result.endings[:1]:
            return State.DIFFERS, f"fails differently: with its program {waiver.file} {told(ending)}"
        if result.failures:
            said = _differing(waiver, self._messages_of(result))
            return State.DIFFERS, f"fails differently: its program {waiver.file} {said}"
        if result.unknown:
            return State.NOT_RUN, f"was not judged: {'; '.join(sorted(result.unknown.values()))}"
        return State.PASSES, f"passes: its program {waiver.file} breaks nothing any more; take the waiver out"

    def _messages_of(self, result: ItemResult) -> list[tuple[str, str]]:
        return [(failure.invariant, symbolic(failure).message) for failure in result.failures]

    def _by_failures(self, waiver: Waiver, holding: Sequence[Waiver]) -> Outcome:
        strange = self._strange(waiver, holding)
        if strange:
            said = _differing(waiver, [(waiver.invariant, message) for message in strange])
            return State.DIFFERS, f"fails differently: a program {said}"
        if self._matches(waiver):
            return State.IN_FORCE, f"is in force: {waiver.excuse()}"
        if self._messages(waiver):
            return State.PASSES, f"passes: no {waiver.kind} says {waiver.message!r} any more; take the waiver out"
        return self._unbroken(waiver, self._ruling(waiver))

    def _ruling(self, waiver: Waiver) -> Ruling:
        invariant = self._catalogue.invariants.get(waiver.invariant)
        if invariant is None:
            return Ruling(Verdict.NOT_EXERCISED, f"catalogue {self._catalogue.version} does not have it")
        return rule(invariant, [result for result in self._results if result.contract == invariant.contract])

    def _unbroken(self, waiver: Waiver, ruling: Ruling) -> Outcome:
        """Nothing at all is there that may be what a waiver is about."""
        if ruling.verdict in (Verdict.CRASH, Verdict.TIMEOUT):
            return State.DIFFERS, f"fails differently: {ruling.verdict.value} in {ruling.reason}"
        if ruling.verdict is Verdict.FAIL:
            return State.DIFFERS, "fails differently: its invariant is broken, and no program ends its process"
        if self._part:
            return State.OPEN, "is left open: nothing fails as it says in this part of the run"
        if ruling.verdict is Verdict.PASS and waiver.kind != FAILURE:
            return State.PASSES, f"passes: no program ends its process with a {waiver.kind}; take the waiver out"
        if ruling.verdict is Verdict.PASS:
            return State.PASSES, "passes: its invariant was put to the test and never found broken; take the waiver out"
        return State.NOT_RUN, f"was not run: its invariant is {ruling.verdict.value}: {ruling.reason}"


def _excuses(used: Sequence[Waiver]) -> dict[str, str]:
    """By invariant, why it is borne."""
    ids = dict.fromkeys(waiver.invariant for waiver in used)
    return {id: "; ".join(waiver.excuse() for waiver in used if waiver.invariant == id) for id in ids}


def _differing(waiver: Waiver, found: Sequence[tuple[str, str]]) -> str:
    """What is broken in place of what was expected."""
    (id, message), *_ = sorted(found, key=lambda pair: pair[0] != waiver.invariant)
    if id == waiver.invariant:
        return f"says {message!r}, expected was {waiver.message!r}"
    others = sorted({id for id, _ in found})
    return f"breaks {few(others)} instead ({count(len(others), 'invariant')})"
