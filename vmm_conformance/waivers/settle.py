"""Holds waivers against what was found: each is in force, or has a sentence that says why it is not."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from vmm_conformance.catalogue import Catalogue
from vmm_conformance.reporting.model import DriverInfo, SubjectInfo
from vmm_conformance.reporting.symbolic import symbolic
from vmm_conformance.reporting.text import count, few
from vmm_conformance.reporting.verdicts import Ruling, Verdict, rule
from vmm_conformance.running.results import ItemResult
from vmm_conformance.waivers.listed import Waivers, expects, item_id
from vmm_conformance.waivers.waiver import Waiver


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
    """What became of all waivers that cover a subject; ``excuses`` says why a broken invariant is borne."""

    settlements: tuple[Settlement, ...] = ()
    excuses: Mapping[str, str] | None = None

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
            state, told = known or self._by_failures(waiver, holding)
            settlements.append(Settlement(n, self._spec, state, f"the waiver for {waiver.invariant} {told}"))
        return Settled(tuple(settlements), self._excuses(holding))

    def _excuses(self, holding: Sequence[Waiver]) -> dict[str, str]:
        excuses = {}
        for id in dict.fromkeys(waiver.invariant for waiver in holding):
            own = [waiver for waiver in holding if waiver.invariant == id]
            messages = self._messages(id)
            if messages and all(any(waiver.accepts(message) for waiver in own) for message in messages):
                used = [waiver for waiver in own if any(map(waiver.accepts, messages))]
                excuses[id] = "; ".join(waiver.excuse() for waiver in used)
        return excuses

    def _messages(self, id: str) -> list[str]:
        found = (failure for result in self._results for failure in result.failures if failure.invariant == id)
        return sorted({symbolic(failure).message for failure in found})

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
        if any(expects(waiver, failure) for failure in result.failures):
            return None
        for ending in result.endings:
            return State.DIFFERS, f"fails differently: with its program {waiver.file} the process {ending.how}"
        if result.failures:
            said = _differing(waiver, self._messages_of(result))
            return State.DIFFERS, f"fails differently: its program {waiver.file} {said}"
        if result.unknown:
            return State.NOT_RUN, f"was not judged: {'; '.join(sorted(result.unknown.values()))}"
        return State.PASSES, f"passes: its program {waiver.file} breaks nothing any more; take the waiver out"

    def _messages_of(self, result: ItemResult) -> list[tuple[str, str]]:
        return [(failure.invariant, symbolic(failure).message) for failure in result.failures]

    def _by_failures(self, waiver: Waiver, holding: Sequence[Waiver]) -> Outcome:
        messages = self._messages(waiver.invariant)
        own = [other for other in holding if other.invariant == waiver.invariant]
        strange = [message for message in messages if not any(other.accepts(message) for other in own)]
        if strange:
            said = _differing(waiver, [(waiver.invariant, message) for message in strange])
            return State.DIFFERS, f"fails differently: a program {said}"
        if any(map(waiver.accepts, messages)):
            return State.IN_FORCE, f"is in force: {waiver.excuse()}"
        if messages:
            return State.PASSES, f"passes: no failure says {waiver.message!r} any more; take the waiver out"
        return self._unbroken(self._ruling(waiver))

    def _ruling(self, waiver: Waiver) -> Ruling:
        invariant = self._catalogue.invariants.get(waiver.invariant)
        if invariant is None:
            return Ruling(Verdict.NOT_EXERCISED, f"catalogue {self._catalogue.version} does not have it")
        return rule(invariant, [result for result in self._results if result.contract == invariant.contract])

    def _unbroken(self, ruling: Ruling) -> Outcome:
        """An invariant without failures."""
        if ruling.verdict in (Verdict.CRASH, Verdict.TIMEOUT):
            return State.DIFFERS, f"fails differently: {ruling.verdict.value} in {ruling.reason}"
        if self._part:
            return State.OPEN, "is left open: nothing fails as it says in this part of the run"
        if ruling.verdict is Verdict.PASS:
            return State.PASSES, "passes: its invariant was put to the test and never found broken; take the waiver out"
        return State.NOT_RUN, f"was not run: its invariant is {ruling.verdict.value}: {ruling.reason}"


def _differing(waiver: Waiver, found: Sequence[tuple[str, str]]) -> str:
    """What is broken in place of what was expected."""
    (id, message), *_ = sorted(found, key=lambda pair: pair[0] != waiver.invariant)
    if id == waiver.invariant:
        return f"says {message!r}, expected was {waiver.message!r}"
    others = sorted({id for id, _ in found})
    return f"breaks {few(others)} instead ({count(len(others), 'invariant')})"
