"""The checkers of ``va-remap``: silent on what is right, clear on what is wrong, and not content with nothing."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from va_histories import (
    ALWAYS,
    CONSTANT,
    NULLABLE,
    OUTPUT,
    PARAMETER,
    PROFILED,
    TEMP,
    TEMPS,
    Edit,
    G,
    details,
    insert,
    notes,
    plan,
    ran,
    replaced,
    without,
)

from vmm_conformance.catalogue import catalogue
from vmm_conformance.checkers.va_remap import judge
from vmm_conformance.contracts import BufferCommand, BufferSpec, Code, Fault, Range, RemapMode
from vmm_conformance.history.events import Event, History
from vmm_conformance.programs.va_remap import (
    Bind,
    Coarsen,
    Ending,
    ExecutablePlan,
    Fail,
    Foreign,
    Nullify,
    Operation,
    ParseMode,
    Probe,
    Result,
    Run,
    Share,
)

R = Run()
WATCHED = (R, R, R)


class Case(NamedTuple):
    """A program that puts an invariant to the test, and a change of its history that breaks it."""

    id: str
    invariant: str
    planned: ExecutablePlan
    operations: tuple[Operation, ...]
    edit: Edit
    configuration: dict[str, Any]


def case(
    id: str, invariant: str, planned: ExecutablePlan, operations: tuple[Operation, ...], edit: Edit, **more: Any
) -> Case:
    return Case(id, invariant, planned, operations, edit, more)


def answer(name: str, scope: int, **outcome: Any) -> Edit:
    """A call on a scope answers something else."""

    def edit(history: History) -> None:
        (found,) = details(history, "return", name=name, scope=scope)
        found["outcome"] = {**found["outcome"], **outcome}

    return edit


def executing(scope: int, **changes: Any) -> Edit:
    """Execution is told something else."""

    def edit(history: History) -> None:
        details(history, "executing", scope=scope)[0].update(changes)

    return edit


def moved(scope: int, index: int, by: int) -> Edit:
    """One address that execution is given lies elsewhere."""

    def edit(history: History) -> None:
        (found,) = details(history, "executing", scope=scope)
        found["table"] = replaced(found["table"], index, address=found["table"][index].address + by)

    return edit


def request(name: str, scope: int, **changes: Any) -> Edit:
    """The first request of a name in a run is another one."""

    def edit(history: History) -> None:
        details(history, "memory", name=name, scope=scope)[0].update(changes)

    return edit


def unsaid(name: str, scope: int) -> Edit:
    """The requests of a name in a run are not made."""

    def edit(history: History) -> None:
        without(history, *notes(history, "memory", name=name, scope=scope))

    return edit


def table_cut(history: History) -> None:
    found = details(history, "return", name="execute", scope=1)[0]
    found["table"] = found["table"][:-1]


def table_lengthened(history: History) -> None:
    found = details(history, "return", name="execute", scope=1)[0]
    found["table"] = (*found["table"], Range(G, G))


def nothing_owned(history: History) -> None:
    found = details(history, "return", name="generate", scope=1)[0]
    found["table"] = replaced(found["table"], 1, address=0)


def table_changed(history: History) -> None:
    found = details(history, "return", name="execute", scope=1)[0]
    found["table"] = replaced(found["table"], 1, address=0x10)


def owned_in_reservation(history: History) -> None:
    """At the last slice, where the temporary buffer before the output lies."""
    found = details(history, "return", name="generate", scope=1)[0]
    found["table"] = replaced(found["table"], -1, address=found["table"][-2].address)


def padded(history: History) -> None:
    found = details(history, "return", name="generate", scope=1)[0]
    found["table"] = replaced(found["table"], 1, size=G)


def misread(history: History) -> None:
    found = details(history, "observe", scope=1)[0]
    found["tokens"] = (b"12345678",)


def too_early(history: History) -> None:
    """The first run is dropped behind the second's creation, as if nobody had waited."""
    (drop,) = notes(history, "call", name="drop", scope=2)
    (created,) = notes(history, "return", name="create", scope=3)
    without(history, drop)
    history.events.insert(history.events.index(created) + 1, drop)


def given_up(history: History) -> None:
    insert(history, notes(history, "return", name="drop", scope=2)[0], "abandoned")


def logical_size(history: History) -> None:
    found = details(history, "memory", name="map", scope=4)[0]
    found["place"] = Range(found["place"].address, 1000)


def freed_twice(history: History) -> None:
    (freed,) = notes(history, "memory", name="deallocate", scope=1)
    again = {**freed.args[1], "status": "refused", "code": "NOT_FOUND", "reason": "unknown"}
    insert(history, notes(history, "return", name="drop", scope=1)[0], "memory", **again)


def other_order(history: History) -> None:
    first, second = notes(history, "memory", name="allocate_mapped", scope=1)[:2]
    first.args, second.args = second.args, first.args


def released_early(history: History) -> None:
    (released,) = details(history, "memory", name="release")
    released.update(status="refused", code="INVALID_VALUE", reason="driver")


def kept(history: History) -> None:
    (release,) = notes(history, "memory", name="release")
    before = history.events[history.events.index(release) - 1]
    assert before.kind == "address_free"
    without(history, release, before)


def plainly(history: History) -> None:
    details(history, "memory", name="allocate_mapped", scope=1)[0].update(name="allocate")


def not_recorded(scope: int, command: int) -> Edit:
    def edit(history: History) -> None:
        without(history, *notes(history, "memory", name="record", scope=scope, command=command))

    return edit


def recorded_again(history: History) -> None:
    (submit,) = notes(history, "submit", scope=2)
    old = details(history, "memory", name="record", scope=1)[0]
    insert(history, submit, "memory", **{**old, "scope": 2})


def old_addresses(history: History) -> None:
    (record,) = details(history, "memory", name="record", scope=2)
    record["places"] = tuple((index, address + G) for index, address in record["places"])


def broken_again(history: History) -> None:
    broken = details(history, "memory", name="record", status="refused")[0]["buffer"]
    for what in ("memory", "submit"):
        for found in details(history, what, scope=3):
            if "buffer" in found:
                found["buffer"] = broken


def read_as(text: str | None, **changes: Any) -> Edit:
    def edit(history: History) -> None:
        details(history, "mode", text=text)[0].update(changes)

    return edit


def promised(scope: int, *indices: int) -> Edit:
    return executing(scope, persistent=indices)


OK = {"status": "ok", "code": "", "message": ""}
CONSUMER = {"consumer": True}
TWO = plan(TEMPS, TEMP, BufferSpec(G, space=1))
COMMANDS = plan(PROFILED, PARAMETER, TEMP, commands=(BufferCommand((0,)), BufferCommand((), (1,))))
ASKS = plan(TEMPS, TEMP, commands=(BufferCommand((), (0,), always_update=True),))
ROTATING = (*WATCHED, R, Bind(0, 1), R)

CASES = (
    case("stream-code", "SCOPE-120", plan(TEMPS, TEMP), (R, Run(stream=1)), answer("create", 2, code="ABORTED")),
    case("allocator-code", "SCOPE-121", plan(TEMPS, TEMP), (R, Run(other=True)), answer("create", 2, code="ABORTED")),
    case("granularity-code", "SCOPE-121", plan(TEMPS, TEMP), (R, Coarsen(), R), answer("generate", 2, code="ABORTED")),
    case("gets-in", "SCOPE-122", plan(TEMPS, TEMP), (R, Run(probe=Probe.EXECUTING)), too_early),
    case("waits-for-ever", "SCOPE-122", plan(TEMPS, TEMP), (R, Run(probe=Probe.CREATED)), given_up),
    case("temp-moved", "SCOPE-123", plan(TEMPS, TEMP, BufferSpec(G)), (R, R), moved(2, 0, G)),
    case("temp-unbacked", "SCOPE-123", plan(TEMPS, TEMP), (R, R), moved(2, 0, 1)),
    case("table-changed", "SCOPE-124", plan(TEMPS, TEMP, OUTPUT), (R,), table_changed),
    case("owned-in-reservation", "SCOPE-124", plan(TEMPS, TEMP, TEMP, OUTPUT), (R,), owned_in_reservation),
    case("table-shorter", "SCOPE-124", plan(TEMPS, TEMP, OUTPUT), (R,), table_cut),
    case("table-longer", "SCOPE-124", plan(TEMPS, TEMP, OUTPUT), (R,), table_lengthened),
    case("output-null", "SCOPE-124", plan(TEMPS, TEMP, OUTPUT), (R,), nothing_owned),
    case("output-lost", "SCOPE-124", plan(TEMPS, OUTPUT), (R,), misread),
    case("wrong-memory", "SCOPE-125", plan(TEMPS, PARAMETER, PARAMETER), (R,), moved(1, 0, G)),
    case("too-few-addresses", "SCOPE-125", plan(TEMPS, PARAMETER), (R,), executing(1, table=())),
    case("too-many-addresses", "SCOPE-125", plan(TEMPS, PARAMETER), (R,), executing(1, table=(Range(G, 1000),) * 2)),
    case("null-code", "SCOPE-126", plan(PROFILED, NULLABLE), (*WATCHED, Nullify(0), R),
    answer("execute", 4, code="ABORTED")),
    case("map-code", "SCOPE-126", plan(PROFILED, PARAMETER), (*WATCHED, Fail("map"), R), answer("execute", 4, **OK)),
    case("alias-left", "SCOPE-127", plan(PROFILED, PARAMETER), (*WATCHED, R), unsaid("unmap", 4)),
    case(
        "error-replaced", "SCOPE-127", plan(PROFILED, PARAMETER), (*WATCHED, Run(result=Result.RAISE_AFTER)),
        answer("execute", 4, status="refused", code="INTERNAL"),
    ),
    case(
        "error-swallowed", "SCOPE-127", plan(PROFILED, PARAMETER), (*WATCHED, Run(result=Result.RAISE_AFTER)),
        answer("execute", 4, **OK),
    ),
    case(
        "release-unsaid", "SCOPE-127", plan(PROFILED, PARAMETER), (*WATCHED, Fail("unmap"), R),
        answer("execute", 4, **OK)
    ),
    case("mapped-anew", "SCOPE-128", plan(PROFILED, PARAMETER), (*WATCHED, R, R), request("map", 5, calls=1)),
    case("logical-size-mapped", "SCOPE-129", plan(PROFILED, PARAMETER), (*WATCHED, R), logical_size),
    case("padded-size-shown", "SCOPE-129", plan(TEMPS, TEMP, OUTPUT), (R,), padded),
    case("not-freed", "SCOPE-130", plan(TEMPS, TEMP), (R,), unsaid("deallocate", 1)),
    case("freed-twice", "SCOPE-130", plan(TEMPS, TEMP), (R,), freed_twice),
    case("not-freed-early", "SCOPE-130", plan(TEMPS, TEMP), (Run(ending=Ending.EARLY),), unsaid("deallocate", 1)),
    case(
        "failed-run-keeps", "SCOPE-131", plan(TEMPS, TEMP, OUTPUT), (Fail("allocate"), R), unsaid("deallocate", 1)
    ),
    case(
        "later-run-fails", "SCOPE-131", plan(TEMPS, TEMP), (Run(result=Result.RAISE_BEFORE), R),
        answer("generate", 2, status="refused", code="ALREADY_EXISTS"),
    ),
    case("index-order", "SCOPE-132", TWO, (R,), other_order),
    case("space-dropped", "SCOPE-133", TWO, (R,), request("allocate_mapped", 1, space=0)),
    case("space-changed", "SCOPE-133", TWO, (R,), request("allocate_mapped", 1, space=2)),
    case("released-early", "SCOPE-134", plan(TEMPS, TEMP), (R,), released_early),
    case("reservation-kept", "SCOPE-134", plan(TEMPS, TEMP), (R,), kept),
    case("plain-absent", "POLICY-135", plan(ALWAYS, TEMP, CONSTANT), (R,), executing(1, persistent=None)),
    case("plain-temps", "POLICY-135", plan(ALWAYS, TEMP, CONSTANT), (R,), promised(1, 0, 1)),
    case("fallback", "POLICY-135", plan(TEMPS, TEMP, CONSTANT), (R,), promised(1, 0, 1), vmm=False),
    case("unsorted", "POLICY-136", plan(TEMPS, TEMP, CONSTANT), (R,), promised(1, 1, 0)),
    case("parameter-promised", "POLICY-136", plan(TEMPS, TEMP, PARAMETER), (R,), promised(1, 0, 1)),
    case("early-promise", "POLICY-137", plan(PROFILED, TEMP), WATCHED, promised(3, 0)),
    case("no-promise", "POLICY-137", plan(PROFILED, TEMP), (*WATCHED, R), executing(4, persistent=None)),
    case("promise-changed", "POLICY-138", plan(PROFILED, TEMP, CONSTANT), (*WATCHED, R, R), promised(5, 0)),
    case("promised-moved", "POLICY-138", plan(PROFILED, PARAMETER, PARAMETER), (*WATCHED, R, R), moved(5, 0, G)),
    case(
        "moved-once", "POLICY-139", plan(PROFILED, TEMP, PARAMETER), (R, Bind(0, 1), R, Bind(0, 0), R, R),
        promised(4, 0, 1)
    ),
    case(
        "null-once", "POLICY-139", plan(PROFILED, TEMP, NULLABLE), (R, Nullify(0), R, Bind(0, 0), R, R),
        promised(4, 0, 1)
    ),
    case("foreign", "POLICY-140", plan(PROFILED, TEMP, PARAMETER), (Foreign(0), *WATCHED, R), promised(4, 0, 1)),
    case(
        "shared", "POLICY-140", plan(PROFILED, TEMP, PARAMETER, PARAMETER), (Share(1, 0), *WATCHED, R),
        promised(4, 0, 1)
    ),
    case(
        "still-enabled", "POLICY-141", plan(PROFILED, PARAMETER), (Foreign(0), *WATCHED, R),
        lambda history: details(history, "return", name="create", scope=4)[0].update(enabled=True),
    ),
    case("temp-left-out", "POLICY-141", plan(PROFILED, TEMP, PARAMETER), (*WATCHED, R), promised(4, 1)),
    case("no-room", "POLICY-142", plan(PROFILED, TEMP, PARAMETER), (R,), request("create_reservation", 1, size=G)),
    case(
        "too-much-room", "POLICY-142", plan(PROFILED, PARAMETER, PARAMETER), (R, Bind(1, 1), *WATCHED, R),
        request("create_reservation", 4, size=2 * G),
    ),
    case("plain-temp", "POLICY-143", plan(PROFILED, TEMP), (R,), plainly),
    case("filtered", "POLICY-144", COMMANDS, (*WATCHED, R), not_recorded(4, 1), **CONSUMER),
    case("recorded-again", "POLICY-144", plan(TEMPS, TEMP), (R, R), recorded_again, **CONSUMER),
    case("old-addresses", "POLICY-144", plan(TEMPS, TEMP, PARAMETER), (R, Bind(0, 1), R), old_addresses, **CONSUMER),
    case(
        "never-submitted", "POLICY-144", plan(TEMPS, TEMP), (R,),
        lambda history: without(history, *notes(history, "submit")), **CONSUMER,
    ),
    case("not-asked", "POLICY-145", ASKS, (R, R), not_recorded(2, 0), **CONSUMER),
    case("half-recorded", "POLICY-146", COMMANDS, (R, Fail("record"), Bind(0, 1), R, R), broken_again, **CONSUMER),
    case("falls-back", "FLAG-153", plan(TEMPS, TEMP), (ParseMode("NEVER_UPDATE"),),
    read_as("NEVER_UPDATE", outcome=OK)),
    case(
        "not-quoted", "FLAG-153", plan(TEMPS, TEMP), (ParseMode("SKIP"),),
        read_as("SKIP", outcome={"status": "refused", "code": Code.INVALID_ARGUMENT.value, "message": "no"}),
    ),
    case(
        "other-mode", "FLAG-153", plan(TEMPS, TEMP), (ParseMode("SKIP_TEMP"),),
        read_as("SKIP_TEMP", answer=RemapMode.ALWAYS_UPDATE),
    ),
    case("default", "FLAG-153", plan(TEMPS, TEMP), (ParseMode(),), read_as(None, answer=RemapMode.SKIP_TEMP)),
)  # fmt: skip


def case_id(case: Case) -> str:
    return f"{case.invariant}-{case.id}"


@pytest.mark.parametrize("case", CASES, ids=case_id)
def test_what_is_right_is_witnessed_and_not_found(case: Case) -> None:
    judged = judge(ran(case.planned, *case.operations, **case.configuration))
    assert judged.findings == []
    assert judged.witnesses[case.invariant]


@pytest.mark.parametrize("case", CASES, ids=case_id)
def test_what_is_wrong_is_found(case: Case) -> None:
    history = ran(case.planned, *case.operations, **case.configuration)
    case.edit(history)
    found = [finding for finding in judge(history).findings if finding.invariant == case.invariant]
    assert found
    assert all(finding.message and finding.expected and finding.actual for finding in found)


NOTHING: dict[str, tuple[ExecutablePlan, tuple[Operation, ...]]] = {
    "SCOPE-120": (plan(TEMPS, PARAMETER), (R, Run(stream=1))),
    "SCOPE-121": (plan(TEMPS, TEMP), (Coarsen(), R, R)),
    "SCOPE-122": (plan(TEMPS, TEMP), (R, R)),
    "SCOPE-123": (plan(ALWAYS, TEMP), (R, R)),
    "SCOPE-124": (plan(TEMPS), ()),
    "SCOPE-125": (plan(TEMPS, TEMP), (R, R)),
    "SCOPE-126": (plan(PROFILED, NULLABLE), (R, Nullify(0), R, R)),
    "SCOPE-127": (plan(PROFILED, PARAMETER), WATCHED),
    "SCOPE-128": (plan(PROFILED, PARAMETER), (*WATCHED, R)),
    "SCOPE-129": (plan(TEMPS, TEMP), (R,)),
    "SCOPE-130": (plan(TEMPS, PARAMETER), ()),
    "SCOPE-131": (plan(TEMPS, TEMP), (R, R)),
    "SCOPE-132": (plan(TEMPS, TEMP, OUTPUT), (R,)),
    "SCOPE-133": (plan(TEMPS, TEMP, OUTPUT), (R,)),
    "SCOPE-134": (plan(ALWAYS, TEMP), (R,)),
    "POLICY-135": (plan(TEMPS, TEMP), (R,)),
    "POLICY-136": (plan(PROFILED, TEMP), (R,)),
    "POLICY-137": (plan(TEMPS, TEMP), (R,)),
    "POLICY-138": (plan(PROFILED, TEMP), (*WATCHED, R)),
    "POLICY-139": (plan(PROFILED, PARAMETER), (*WATCHED, R)),
    "POLICY-140": (plan(PROFILED, PARAMETER), (*WATCHED, R)),
    "POLICY-141": (plan(PROFILED, PARAMETER), WATCHED),
    "POLICY-142": (plan(PROFILED, PARAMETER), WATCHED),
    "POLICY-143": (plan(PROFILED, OUTPUT), (*WATCHED, R)),
    "POLICY-144": (plan(TEMPS, TEMP), (R, R)),
    "POLICY-145": (plan(TEMPS, TEMP), (R, R)),
    "POLICY-146": (plan(TEMPS, TEMP), (R, R)),
    "FLAG-153": (plan(TEMPS, TEMP), (R,)),
}


@pytest.mark.parametrize("invariant", NOTHING)
def test_what_was_not_reached_has_no_witness(invariant: str) -> None:
    planned, operations = NOTHING[invariant]
    judged = judge(ran(planned, *operations))
    assert judged.findings == []
    assert not judged.witnesses[invariant]


def test_every_invariant_has_its_cases() -> None:
    everything = {entry.id for entry in catalogue().of("va-remap")}
    assert {case.invariant for case in CASES} == everything
    assert set(NOTHING) == everything


def test_a_fault_of_a_run_s_work_is_found() -> None:
    history = ran(plan(TEMPS, TEMP), R)
    last = history.events[-1]
    history.events.append(Event(last.seq + 1, last.op, 0, "device", "ran", (999, (), Fault(G, 8, "unmapped"))))
    assert {finding.invariant for finding in judge(history).findings} == {"SCOPE-130"}


def test_luck_is_no_fault() -> None:
    """A run that memory, or an injected failure, stands against is not to blame, and neither is one behind it."""
    history = ran(
        plan(PROFILED, TEMP, OUTPUT, PARAMETER), R, Fail("deallocate", 2), R, R, Fail("unmap"), Fail("unmap", 2), R,
        R, R
    )
    assert judge(history).findings == []


def test_what_stays_for_good_is_told_once() -> None:
    """Memory that a run keeps blocks its slice for ever; the later runs that fail of it are not told again."""
    history = ran(plan(TEMPS, TEMP), R, R)
    without(history, *notes(history, "memory", name="deallocate", scope=1))
    refused = details(history, "memory", name="allocate_mapped", scope=2)[0]
    refused.update(status="refused", code="ALREADY_EXISTS", reason="active", result=None)
    assert [finding.invariant for finding in judge(history).findings][:1] == ["SCOPE-130"]
    assert {finding.invariant for finding in judge(history).findings} <= {"SCOPE-130", "POLICY-136"}
