"""What an allocator declares in numbers: paths, as a run asks for them and sums them up."""

from __future__ import annotations

from typing import ClassVar

from vmm_conformance.drivers.host import HostDriver
from vmm_conformance.programs.allocator import Allocate, Configuration, Grow
from vmm_conformance.programs.program import Program
from vmm_conformance.running.allocator import run
from vmm_conformance.running.explore import whole
from vmm_conformance.running.session import Options, know, plan, run_item
from vmm_reference.allocator import PATHS, VmmAllocator
from vmm_reference.mutants.allocator import AllocatorMutant

TAKEN = "ALLOCATOR-23"


def test_the_rarest_part_counts_for_the_whole() -> None:
    witnesses = {"X-1": 3, "X-2:a": 5, "X-2:b": 2, "X-3:a": 1}
    each_of = {"X-2": ("a", "b"), "X-3": ("a", "b", "c")}
    assert whole(witnesses, each_of) == ({"X-1": 3, "X-2": 2}, {"X-3": "never taken: b, c"})


class Silent(VmmAllocator):
    """Cannot say which path it took."""

    DECLARES: ClassVar = {"paths": PATHS}

    def taken(self) -> dict[str, int]:
        raise RuntimeError("no idea")


class OneWay(VmmAllocator):
    """The second of its paths is dead."""

    DECLARES: ClassVar = {"paths": (*PATHS, "grow/by magic")}


def test_who_cannot_say_which_path_it_took_is_found() -> None:
    program = Program("allocator", Configuration(), (Allocate(1), Grow(0, 2)))
    history = run(program, AllocatorMutant("silent", Silent), HostDriver)
    assert [e.args[1]["paths"] for e in history.events if e.kind == "note" and "paths" in e.args[1]] == [{}]


def test_a_path_that_no_program_takes_is_no_pass() -> None:
    know("one-way", AllocatorMutant("one-way", OneWay))
    know("both", AllocatorMutant("both", type("Both", (VmmAllocator,), {"DECLARES": {"paths": PATHS}})))
    for spec, missing in (("one-way", "never taken: grow/by magic"), ("both", "")):
        items = plan({spec: AllocatorMutant(spec, VmmAllocator)}, Options("smoke"))
        result = run_item(next(item for item in items if "/explore/anything" in item.id), Options("smoke"))
        assert result.untested.get(TAKEN, "") == missing
        assert bool(result.witnesses.get(TAKEN)) == (not missing)
        assert not any(":" in id for id in result.witnesses)
