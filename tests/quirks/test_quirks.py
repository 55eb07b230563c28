"""Quirk profiles: each is had by asking for it, and caught by the invariants that it breaks."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any, Final

import pytest

from vmm_conformance.catalogue import catalogue
from vmm_conformance.checkers.driver import judge
from vmm_conformance.contracts import DriverError, DriverOptions, Granularity, Status
from vmm_conformance.drivers.host.quirks import QUIRKS, Quirk, quirky
from vmm_conformance.drivers.opening import facts, opener
from vmm_conformance.drivers.subjects import DriverSubject, host
from vmm_conformance.programs.driver import decode
from vmm_conformance.programs.driver_operations import (
    AddressFree,
    Configuration,
    Create,
    Hoard,
    Map,
    Reserve,
    SetAccess,
    Unmap,
    Write,
)
from vmm_conformance.programs.program import Program
from vmm_conformance.running.driver import run
from vmm_conformance.running.session import Options, end_children, plan, resolve_known, run_item
from vmm_suites.scenarios.driver import SCENARIOS

HAD: Final = [quirk for quirk in QUIRKS if quirk.kind]
CAUGHT: Final = [quirk for quirk in HAD if quirk.breaks]
G: Final = 4096
UNSEEN: Final = {"Q-06": {"DRIVER-43", "DRIVER-16"}, "Q-12": {"DRIVER-81"}}
"""What does not show through a binding: what crashes is the unknown error to C, and so a refusal; and an emulated
library's memory is its process's own."""


def _program(*operations: Any, **configuration: Any) -> Program:
    return Program("driver", Configuration(**configuration), operations)


PROGRAMS: Final[tuple[Program, ...]] = (
    # handles until there are no more descriptors, an honest refusal, and a small create that must succeed
    _program(*(Create() for _ in range(8)), Create(twist="over-free"), Create()),
    # rights for the last two of three mappings
    _program(Reserve(3), *(Create() for _ in range(3)), *(Map(handle=n) for n in range(3)), SetAccess(1, 2)),
    # as many handles as there are descriptors for, and no more
    _program(Hoard(8)),
    # addresses that were mapped, freed, and reserved by two
    _program(Reserve(1), Create(), Map(), SetAccess(), Unmap(), AddressFree(), Reserve(1), Reserve(1)),
    # work of a peer in flight, and an unmap that is declared to wait
    _program(
        Reserve(1), Create(), Map(), SetAccess(devices=3), Write(stream=1), Unmap(),
        devices=2, unmap_waits=True,
    ),
    # free by another size than that of the reservation
    _program(Reserve(4), AddressFree(twist="short"), AddressFree(twist="long")),
)  # fmt: skip


def _programs(quirk: Quirk, explored: int) -> Iterator[Program]:
    """Those that are about what the quirk breaks first."""
    yield from PROGRAMS
    yield from (s.program for s in sorted(SCENARIOS, key=lambda s: not set(s.exercises) & set(quirk.breaks)))
    source = random.Random(0)
    yield from (decode(source.randbytes(400)) for _ in range(explored))


def _left(quirk: Quirk, name: str, explored: int = 0) -> set[str]:
    """The invariants that the quirk breaks and nothing has caught."""
    left, subject = set(quirk.breaks), DriverSubject(name)
    for program in _programs(quirk, explored):
        left -= {finding.invariant for finding in judge(run(program, subject, opener("host"))).findings}
        if not left:
            break
    return left


@pytest.mark.parametrize("quirk", CAUGHT, ids=lambda quirk: quirk.id)
def test_a_quirk_is_caught_by_what_it_breaks(quirk: Quirk) -> None:
    assert _left(quirk, f"host,quirk={quirk.id}", 300) == set()


@pytest.mark.parametrize("quirk", CAUGHT, ids=lambda quirk: quirk.id)
def test_a_quirk_is_caught_through_a_vendors_binding_too(quirk: Quirk) -> None:
    vendor = ("hip", "cuda")[int(quirk.id[-1]) % 2]
    missing = facts(f"emulated-{vendor}").missing
    if missing:
        pytest.skip(missing)
    assert _left(quirk, f"emulated-{vendor},quirk={quirk.id}") == UNSEEN.get(quirk.id, set())


def test_the_programs_of_these_tests_find_nothing_wrong_with_the_host_driver() -> None:
    for program in PROGRAMS:
        assert judge(run(program, host, opener("host"))).findings == []


def test_all_thirty_are_there_and_those_that_cannot_be_had_say_why() -> None:
    assert [quirk.id for quirk in QUIRKS] == [f"Q-{number:02}" for number in range(1, 31)]
    assert len(CAUGHT) >= 20
    known = {entry.id for entry in catalogue()}
    for quirk in QUIRKS:
        assert set(quirk.breaks) <= known
        assert quirk.note
        assert quirk.cite
        assert bool(quirk.reason) != bool(quirk.breaks)


def test_a_map_that_hangs_is_a_timeout_with_its_program() -> None:
    options = Options("smoke", isolation="process", timeout=1)
    items = plan({"host,quirk=Q-29": resolve_known("host,quirk=Q-29")}, options)
    result = run_item(next(item for item in items if "both-orders" in item.id), options)
    end_children()
    assert result.state == "timeout"
    assert result.endings[0].program["operations"]


def test_a_driver_with_quirks_says_so() -> None:
    driver: Any = opener("host,quirk=Q-05+Q-27")(DriverOptions())
    assert driver.name == "host,quirk=Q-05+Q-27"
    first = driver.reserve(G)
    with pytest.raises(DriverError, match="a quirk of this driver: the hint"):
        driver.reserve(G, hint=first)
    driver.close()


def test_a_subject_takes_a_quirk() -> None:
    subject: Any = resolve_known("host,quirk=Q-09")
    driver = subject.driver(DriverOptions(granularity=Granularity(G, 4 * G)))
    assert driver.granularity() == (G, G)
    driver.close()


def test_old_codes_are_other_codes() -> None:
    driver = quirky(("Q-08",))(DriverOptions())
    for call, status in (
        (lambda: driver.reserve(1), Status.OUT_OF_MEMORY),
        (lambda: driver.create(G, device=7), Status.INVALID_VALUE),
        (lambda: driver.mem_info(7), Status.INVALID_DEVICE),
    ):
        with pytest.raises(DriverError) as raised:
            call()
        assert raised.value.status == status
    driver.close()
