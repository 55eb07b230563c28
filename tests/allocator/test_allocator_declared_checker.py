"""What an allocator declares in numbers, address space and paths: histories written by hand."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from stories import FIRST, A, B, C, G, Story, broken

from vmm_reference.allocator import PATHS

ADDRESSES, TAKEN = "ALLOCATOR-22", "ALLOCATOR-23"
Tell = Callable[[Story], None]


def told(tell: Tell, **header: object) -> Story:
    story = Story(memory={0: 2 * G, 1: 2 * G}, **header)
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
    s.open(device=1)
    for device, address in ((0, A), (1, B)):
        s.call("trim", device=device)
        s.subject("reserve", 2 * G, 0, 0, result=address)
        s.gave()
    for device, address in ((0, A), (1, B)):
        s.call("trim", device=device)
        s.subject("reserve", G, 0, 0, status=2)
        s.subject("address_free", address, 2 * G)
        s.subject("reserve", 2 * G, 0, 0, result=C + address)
        s.gave()


@pytest.mark.parametrize(("tell", "declared", "witnesses"), [
    (given_back, {"address_space": 1}, 3), (kept, {"address_space": 2}, 3), (kept_elsewhere, {"address_space": 1}, 4),
    (kept, {"address_space": 0}, 0), (kept, {}, 0),
])  # fmt: skip
def test_address_space_within_what_was_declared(tell: Tell, declared: dict[str, int], witnesses: int) -> None:
    story = told(tell, **declared)
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
    (True, {"grow/in place": -1}, "grow/in place -1"),
    (True, {"grow/by magic": 1}, ""),
]


@pytest.mark.parametrize(("stays", "after", "actual"), GROWN)
def test_a_call_takes_one_of_its_paths_and_says_which(stays: bool, after: dict[str, int], actual: str) -> None:
    story = told(lambda s: grown(s, stays=stays, after=after), paths=(*PATHS, "grow/by magic", "shrink/in place"))
    findings = [finding for finding in story.judged().findings if finding.invariant == TAKEN]
    assert [finding.actual for finding in findings] == ([actual] if actual else [])
    assert sum(n for id, n in story.judged().witnesses.items() if id.startswith(TAKEN)) == (not actual)


@pytest.mark.parametrize("way", ["in place", "moved"])
def test_only_what_a_block_is_resized_by_shows_in_its_address(way: str) -> None:
    def tell(s: Story) -> None:
        s.call("allocate", block=1, size=100, stream=FIRST, space=0)
        s.back(A, handle=1)
        s.gave(block=1, address=A, size=100, committed=G, paths={f"allocate/{way}": 1})
        s.call("trim")
        s.gave(paths={f"allocate/{way}": 1, f"trim/{way}": 1})

    story = told(tell, paths=(f"allocate/{way}", f"trim/{way}"))
    assert broken(story) == []
    assert story.judged().witnesses[f"{TAKEN}:trim/{way}"] == 1


def test_a_call_that_failed_may_have_counted_anything() -> None:
    def tell(s: Story) -> None:
        grown(s, stays=True, after={"grow/in place": 1}, status="refused")
        s.call("grow", block=1, size=200, stream=FIRST)
        s.gave(block=1, address=A, size=200, committed=G, paths={"grow/in place": 2})

    assert TAKEN not in broken(told(tell, paths=PATHS))
