"""Runs again what a bundle says was run, where the subject is installed.

A bundle names its subjects, and finding a subject means importing code. So only names that installed
packages offer are followed by themselves; ``module:attribute`` has to be asked for by whoever verifies.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from shlex import quote
from typing import Any, Final

from vmm_conformance.bundling.bounded import Task, bounded
from vmm_conformance.bundling.result import Piece, State, differs, left_out, same
from vmm_conformance.bundling.waiving import resettled
from vmm_conformance.catalogue import catalogue
from vmm_conformance.contracts import Mutant, contracts_of
from vmm_conformance.drivers.opening import OWN
from vmm_conformance.programs.codec import ProgramError
from vmm_conformance.programs.files import from_data
from vmm_conformance.reporting.environment import SEEDED, version
from vmm_conformance.reporting.parties import SubjectInfo
from vmm_conformance.reporting.text import count, few
from vmm_conformance.running.ended import Ended, way_of
from vmm_conformance.running.endings import ended_as
from vmm_conformance.running.explore import REPEATS
from vmm_conformance.running.kills import hunt
from vmm_conformance.running.results import ItemResult
from vmm_conformance.running.session import (
    DRIVERS,
    Item,
    Options,
    Progress,
    bench_for,
    bench_of,
    resolve_known,
    run_item,
)
from vmm_conformance.running.subjects import SubjectNotFound, installed_subjects
from vmm_conformance.waivers.listed import planned, waivers_of

SECONDS: Final = 120
"""For one program."""
PATIENCE: Final = 10
"""Seconds without progress after which a child that hung before is taken to hang again."""
Data = dict[str, Any]


def installed(section: Data, driver: Data, trusted: Collection[str]) -> tuple[object | None, str]:
    """The subject of a report's section, or None and why it is not run again."""
    said = section["subject"]
    spec = said["spec"]
    if spec not in installed_subjects() and spec not in trusted:
        return None, f"{spec} is no installed name; say --subject {quote(spec)} to import and run it"
    if driver["name"] not in (*DRIVERS, OWN):
        return None, f"the driver {driver['name']} is not here"
    try:
        subject = resolve_known(spec)
    except SubjectNotFound as error:
        return None, str(error)
    info = SubjectInfo.of(spec, subject)
    if (info.name, info.version) != (said["name"], said["version"]):
        return None, f"installed is {info.name} {info.version or '(no version)'}"
    return subject, ""


def programs(section: Data, driver: Data, trusted: Collection[str]) -> Iterator[Piece]:
    """The shortest program of each broken invariant, run again."""
    subject, why = installed(section, driver, trusted)
    spec = section["subject"]["spec"]
    broken = [entry for entry in section["invariants"] if entry["failures"]]
    if subject is None and broken:
        yield left_out(f"{count(len(broken), 'failing program')} of {spec}", why)
        return
    named = [(f"{entry['id']} of {spec}, its program", entry) for entry in broken]
    yield from bounded([Task(what, again, (what, entry, spec, driver["name"])) for what, entry in named], SECONDS)


def again(what: str, entry: Data, spec: str, driver: str) -> Piece:
    """Whether the shortest program of ``entry`` breaks its invariant on the subject ``spec``."""
    failure, subject = entry["failures"][0], resolve_known(spec)
    try:
        program = from_data(failure["program"])
    except ProgramError as error:
        return differs(what, str(error))
    if program.contract not in contracts_of(subject):
        return differs(what, f"is for the contract {program.contract}, which the subject does not offer")
    bench = bench_for(program.contract, subject, driver)
    for _ in range(1 if failure["repeats"] == "deterministic" else 4 * REPEATS):
        if entry["id"] in bench.run(program).broken():
            return same(what, "broken again when it is run")
    return differs(what, f"{entry['id']} is not broken when it is run ({failure['repeats']} before)")


def endings(section: Data, driver: Data, trusted: Collection[str]) -> Iterator[Piece]:
    """The programs that ended their process, run again, each in a child."""
    found = [(item["id"], ending) for item in section["items"] for ending in item.get("endings", ())]
    if not found:
        return
    subject, why = installed(section, driver, trusted)
    spec = section["subject"]["spec"]
    if subject is None:
        yield left_out(f"{count(len(found), 'program')} of {spec} that ended the process", why)
        return
    options = Options(driver=driver["name"], isolation="process", timeout=PATIENCE)
    for id, ending in found:
        yield _ended_again(f"{id}, its {ending['kind']}{_numbered(ending)}", ending, spec, subject, options)


def _numbered(ending: Data) -> str:
    return f" {ending['number']}" if ending.get("number", 1) > 1 else ""


def _ended_again(what: str, ending: Data, spec: str, subject: object, options: Options) -> Piece:
    """Whether the program of ``ending`` ends its process the same way."""
    try:
        program = from_data(ending["program"])
    except ProgramError as error:
        return differs(what, str(error))
    if program.contract not in contracts_of(subject):
        return differs(what, f"is for the contract {program.contract}, which the subject does not offer")
    bench = bench_of(program.contract, spec, subject, options)
    way = way_of(Ended(ending["kind"], ending["how"], ending["op"]), program)
    for _ in range(1 if ending["repeats"] == "deterministic" else REPEATS):
        if ended_as(bench, program, way):
            return same(what, "the process ended again when it was run")
    return differs(what, f"the process does not end when it is run ({ending['repeats']} before)")


def passes(
    section: Data, options: Options, report: Data, trusted: Collection[str], progress: Progress | None = None
) -> Iterator[Piece]:
    """Everything that the section says was done, done again from its seed and budget."""
    spec = section["subject"]["spec"]
    what = f"programs of {spec} from seed {options.seed}, budget {options.budget}"
    subject, why = installed(section, report["driver"], trusted)
    why = why or _made_with(report, report["environment"]["packages"])
    if why:
        yield left_out(what, why)
        return
    waivers = waivers_of(report)
    items = {item.id: item for item in planned({spec: subject}, options, waivers)}
    said = {row["id"]: row for row in section["items"]}
    if set(items) != set(said):
        yield differs(what, f"the plan has other items: {few(sorted(set(items) ^ set(said)))}")
        return
    done = [items[id] for id, row in said.items() if row["state"] == "done"]
    results = [run_item(item, options, progress=told) for item, told in _followed(done, progress)]
    yield from _compare(what, section, results, len(done) == len(said))
    if waivers is not None and len(done) == len(said):
        yield from resettled(report, section, waivers, results)


def _made_with(made: Data, packages: Data) -> str:
    """In what ``made`` is of another catalogue or generator, whose seeds stand for other programs."""
    pairs = [("under catalogue", made["catalogue"], catalogue().version)]
    pairs += [(f"with {name}", packages[name], version(name) or "none") for name in SEEDED if name in packages]
    told = [f"made {what} {said}; installed is {here}" for what, said, here in pairs if said != here]
    return ", ".join(told)


def _followed(items: Sequence[Item], progress: Progress | None) -> Iterator[tuple[Item, Progress]]:
    """Each item with what tells how far all of them are."""
    total, before, here, most = sum(item.planned for item in items), 0, 0, 0

    def told(done: int, planned: int, broken: int) -> None:
        nonlocal here, most
        here, most = done, max(most, broken)
        if progress is not None:
            progress(before + done, total, most)

    for item in items:
        yield item, told
        before, here = before + here, 0


def _compare(what: str, section: Data, results: list[ItemResult], everything: bool) -> Iterator[Piece]:
    """Counts and failures of the items that were done, against the report's."""
    executed = {row["id"]: row["executed"] for row in section["items"]}
    short = [result.item for result in results if result.executed != executed[result.item]]
    if short:
        yield differs(what, f"other numbers of programs in {few(short)}")
    witnesses: dict[str, int] = {}
    for result in results:
        for id, number in result.witnesses.items():
            witnesses[id] = witnesses.get(id, 0) + number
    broken = {failure.invariant for result in results for failure in result.failures}
    said = {row["id"]: row.get("witnesses") for row in section["items"]}
    other = [] if everything else [r.item for r in results if said[r.item] not in (None, _counted(r))]
    if other:
        yield differs(what, f"other numbers of witnesses in {few(other)}")
    wrong = list(_differences(section, witnesses, broken, everything))
    for id, text in wrong:
        yield differs(f"{id} of {section['subject']['spec']}", text)
    if not wrong and not short and not other:
        yield same(what, f"{count(sum(result.executed for result in results), 'program')} run again")


def _counted(result: ItemResult) -> dict[str, int]:
    return {id: number for id, number in result.witnesses.items() if number}


def _differences(
    section: Data, witnesses: dict[str, int], broken: set[str], everything: bool
) -> Iterator[tuple[str, str]]:
    for entry in section["invariants"]:
        id, verdict = entry["id"], entry["verdict"]
        if id in broken and verdict in ("pass", "not exercised", "not applicable"):
            yield id, f"says {verdict}, is broken when run again"
        elif everything and id not in broken and verdict in ("fail", "waived"):
            yield id, f"says {verdict}, is not broken when run again"
        elif everything and verdict == "pass" and witnesses.get(id, 0) != entry["witnesses"]:
            yield id, f"says put to the test {entry['witnesses']} times, was {witnesses.get(id, 0)} times"


_HUNTED: Final = ("killed", "explored", "first", "by", "programs", "operations")


def _hunted(what: str, mutant: Mutant, said: Data, budget: str, **asked: Any) -> Piece:
    """One kill, hunted again. One that is declared not repeatable can only be asked whether it is killed."""
    again = hunt(mutant, said["seed"], budget, **asked)
    asked_for = _HUNTED if mutant.repeatable else ("killed",)
    if changed := [name for name in asked_for if getattr(again, name) != said[name]]:
        return differs(what, f"other {', '.join(changed)}")
    killed = "killed again" if again.killed else "not killed again"
    return same(what, killed if mutant.repeatable else f"{killed}; this variant does otherwise each time")


def kills(matrix: Data, progress: Progress | None = None, *, isolated: bool = False) -> Iterator[Piece]:
    """Every known-bad variant that is installed, hunted again with its seed and budget, if asked for in a child."""
    from vmm_conformance.related import all_mutants

    if why := _made_with(matrix, {}):
        yield left_out("kills", why)
        return
    known = {mutant.id: mutant for mutant in all_mutants()}
    wrong = 0
    for done, said in enumerate(matrix["kills"], 1):
        what = f"{said['mutant']}, seed {said['seed']}"
        mutant = known.get(said["mutant"])
        if mutant is None or (mutant.contract, mutant.breaks[0]) != (said["contract"], said["breaks"]):
            yield left_out(what, "no such variant is installed")
            continue
        asked = {"options": Options(isolation="process")} if isolated else {}
        piece = _hunted(what, mutant, said, matrix["budget"], **asked)
        wrong += piece.state is State.DIFFERS
        yield piece
        if progress is not None:
            progress(done, len(matrix["kills"]), wrong)
