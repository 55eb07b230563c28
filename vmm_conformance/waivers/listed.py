"""All waivers of a run, and the day that their expiry is compared with: what they add to it, what they excuse."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from typing import TYPE_CHECKING, Any, Final

from vmm_conformance.catalogue import Catalogue, catalogue
from vmm_conformance.contracts import contracts_of
from vmm_conformance.reporting.ended import told
from vmm_conformance.reporting.parties import DriverInfo, SubjectInfo
from vmm_conformance.reporting.symbolic import symbolic
from vmm_conformance.running.results import Ending, Failure, ItemResult
from vmm_conformance.waivers.waiver import FAILURE, Waiver

if TYPE_CHECKING:
    from vmm_conformance.running.session import Item, Options

KIND: Final = "waiver"
"""The kind of an item that runs a waiver's program."""


@dataclass(frozen=True, slots=True)
class Waivers:
    """The waivers in the order of their file; ``today`` is the day of the run."""

    entries: tuple[Waiver, ...]
    today: date

    def live(self, waiver: Waiver) -> bool:
        """Whether it has not expired."""
        return self.today <= waiver.expires

    def items(self, subjects: Mapping[str, object], options: Options) -> tuple[Item, ...]:
        """The programs of the waivers, as items to run before all others.

        Which ones depends on names alone: on no day and on no device, so that all workers plan the same.
        """
        return tuple(
            _item(number, waiver, spec, options)
            for spec, subject in subjects.items()
            for number, waiver in enumerate(self.entries)
            if waiver.program is not None
            and waiver.names(SubjectInfo.of(spec, subject), options.driver)
            and waiver.program["contract"] in contracts_of(subject)
            and catalogue()[waiver.invariant] in catalogue().matching(options.prefix)
        )

    def excused(self, result: ItemResult, subject: SubjectInfo, driver: DriverInfo) -> tuple[ItemResult, list[Waiver]]:
        """``result`` without what a waiver expects, and the waivers of that."""
        covering = [waiver for waiver in self.entries if self.live(waiver) and waiver.covers(subject, driver)]
        used: list[Waiver] = []

        def unexpected(found: Failure | Ending) -> bool:
            waiver = next((waiver for waiver in covering if expects(waiver, found, result.contract, catalogue())), None)
            used.extend([waiver] if waiver else [])
            return waiver is None

        failures = [failure for failure in result.failures if unexpected(failure)]
        endings = [ending for ending in result.endings if unexpected(ending)]
        borne = result.endings and not endings and result.state != "stopped"
        state = "done" if borne else result.state
        return replace(result, failures=failures, endings=endings, state=state), used


def waivers_of(report: Mapping[str, Any]) -> Waivers | None:
    """The waivers that a report, as JSON data, was made with. Raises ``ValueError`` for a day that there is not."""
    said = report.get("waivers")
    if said is None:
        return None
    entries = [{name: value for name, value in entry.items() if name != "settled"} for entry in said["entries"]]
    return Waivers(tuple(map(Waiver.from_data, entries)), date.fromisoformat(said["today"]))


def planned(subjects: Mapping[str, object], options: Options, waivers: Waivers | None) -> tuple[Item, ...]:
    """All items of a run: the programs of its waivers, so that what is expected fails first, and then the suites."""
    from vmm_conformance.running.session import plan

    return (*(waivers.items(subjects, options) if waivers else ()), *plan(subjects, options))


def expects(waiver: Waiver, found: Failure | Ending, contract: str, known: Catalogue) -> bool:
    """Whether a failure or an ending, of an item of ``contract``, is the one that ``waiver`` is about."""
    if isinstance(found, Failure):
        about = (waiver.kind, waiver.invariant) == (FAILURE, found.invariant)
        return about and waiver.accepts(symbolic(found).message)
    invariant = known.invariants.get(waiver.invariant)
    about = waiver.kind == found.kind and invariant is not None and invariant.contract == contract
    return about and waiver.accepts(told(found))


def item_id(number: int, waiver: Waiver, spec: str) -> str:
    """The id of the item with the program of the waiver that is entry ``number`` of its file, from 0."""
    assert waiver.program is not None
    return f"{waiver.program['contract']}/{KIND}/{number + 1}-{waiver.invariant}[{spec}]"


def _item(number: int, waiver: Waiver, spec: str, options: Options) -> Item:
    from vmm_conformance.programs.files import from_data
    from vmm_conformance.programs.scenario import Scenario
    from vmm_conformance.running.session import Item

    program = from_data(dict(waiver.program or {}))
    part = Scenario(f"{number + 1}-{waiver.invariant}", program, (waiver.invariant,), waiver.reason)
    return Item(item_id(number, waiver, spec), KIND, program.contract, spec, options.driver, 1, part)
