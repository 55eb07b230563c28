"""What an allocator declares in numbers: address space and paths, as the checker judges them and a run sums them up."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import pytest
from stories import FIRST, A, B, C, G, Story, broken

from vmm_conformance.drivers.host import HostDriver
from vmm_conformance.programs.allocator import Allocate, Configuration, Grow
from vmm_conformance.programs.program import Program
from vmm_conformance.running.allocator import run
from vmm_conformance.running.explore import whole
from vmm_conformance.running.session import Options, know, plan, run_item
from vmm_reference.allocator import PATHS, VmmAllocator
from vmm_reference.mutants.allocator import AllocatorMutant

ADDRESSES, TAKEN = "ALLOCATOR-22", "ALLOCATOR-23"
Tell = Callable[[Story], None]


def told(tell: Tell, **header: object) -> Story:
    story = Story(memory={0: 2 * G}, **header)
    story.open()
    tell(story)
    return story


# -- address space


def given_back(s: Story) -> None:
    for number, address in ((1, A), (2, B), (3, C)):
        s.allocate(number, address)
        s.deallocate(number)
        s.unback(address, handle=number)


def kept(s: Story) -> None:
    for number, address in ((1, A), (2, B), (3, C)):
        s.allocate(number, address)


def kept_elsewhere(s: Story) -> None:
    """What another device's allocator has reserved is no part of it; nor is what was refused."""
    s.allocate(1, A, size=2 * G, committed=2 * G)
    s.call("open", device=1)
    s.subject("reserve", 8 * G, 0, 0, result=C)
    s.gave()
    s.call("allocate", block=2, size=G, stream=FIRST, space=0)
    s.subject("reserve", G, 0, 0, status=2)
    s.refused()


@pytest.mark.parametrize(("tell", "times", "witnesses"), [
    (given_back, 1, 3), (kept, 2, 3), (kept_elsewhere, 1, 1), (kept, 0, 0),
])  # fmt: skip
def test_address_space_within_what_was_declared(tell: Tell, times: int, witnesses: int) -> None:
    story = told(tell, address_space=times)
    assert broken(story) == []
    assert story.judged().witnesses[ADDRESSES] == witnesses


def test_more_address_space_than_declared() -> None:
    finding = told(kept, address_space=1).judged().findings[0]
    assert finding.invariant == ADDRESSES
    assert (finding.expected, finding.actual) == (
        f"at most {2 * G} bytes reserved, 1 times the device's memory", f"{3 * G} bytes",
    )  # fmt: skip


# -- paths


def grown(s: Story, *, stays: bool, after: dict[str, int], status: str = "ok") -> None:
    s.allocate(1, A)
    s.call("grow", block=1, size=200, stream=FIRST)
    if status != "ok":
        s.gave(status, "OUT_OF_MEMORY", paths=after)
        return
    if not stays:
        s.show(B, handle=1) if s.subject("reserve", G, 0, 0, result=B) else None
    s.gave(block=1, address=A if stays else B, size=200, committed=G, paths=after)


GROWN: list[tuple[bool, dict[str, int], str]] = [
    (True, {"grow/in place": 1, "grow/moved": 0}, ""),
    (False, {"grow/in place": 0, "grow/moved": 1}, ""),
    (False, {"grow/in place": 1, "grow/moved": 0}, "grow/in place, but the block is at 0x200000 and was at 0x100000"),
    (True, {"grow/moved": 1}, "grow/moved, but the block is at 0x100000 and was at 0x100000"),
    (True, {"grow/in place": 0, "grow/moved": 0}, "nothing is counted"),
    (True, {}, "nothing is counted"),
    (True, {"grow/in place": 2}, "grow/in place +2"),
    (True, {"grow/in place": 1, "grow/moved": 1}, "grow/in place +1, grow/moved +1"),
    (True, {"shrink/in place": 1}, "shrink/in place +1"),
    (True, {"grow/some way": 1}, "grow/some way +1"),
]


@pytest.mark.parametrize(("stays", "after", "actual"), GROWN)
def test_a_call_takes_one_of_its_paths_and_says_which(stays: bool, after: dict[str, int], actual: str) -> None:
    story = told(lambda s: grown(s, stays=stays, after=after), paths=(*PATHS, "shrink/in place"))
    findings = [finding for finding in story.judged().findings if finding.invariant == TAKEN]
    assert [finding.actual for finding in findings] == ([actual] if actual else [])
    assert sum(n for id, n in story.judged().witnesses.items() if id.startswith(TAKEN)) == (not actual)


def test_a_call_that_failed_may_have_counted_anything() -> None:
    def tell(s: Story) -> None:
        grown(s, stays=True, after={"grow/in place": 1}, status="refused")
        s.call("grow", block=1, size=200, stream=FIRST)
        s.gave(block=1, address=A, size=200, committed=G, paths={"grow/in place": 2})

    assert TAKEN not in broken(told(tell, paths=PATHS))


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
