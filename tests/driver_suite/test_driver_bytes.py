"""What is known of memories, byte by byte."""

from __future__ import annotations

from typing import Any

import pytest

from vmm_conformance.checkers.driver_bytes import Chunk, Contents

ONE: Any = "one memory"
OTHER: Any = "another"


def written(*pieces: tuple[int, bytes], memory: Any = ONE) -> Contents:
    contents = Contents()
    for low, data in pieces:
        contents.put(memory, Chunk(low, data, None, 7))
    return contents


def told(contents: Contents, low: int = 0, high: int = 100, memory: Any = ONE) -> list[tuple[int, int, bytes]]:
    return [(chunk.low, chunk.high, chunk.data) for chunk in contents.known(memory, low, high)]


@pytest.mark.parametrize(
    ("low", "high", "known"),
    [
        (10, 18, [(10, 18, b"abcdefgh")]),
        (0, 100, [(10, 18, b"abcdefgh")]),
        (10, 15, [(10, 15, b"abcde")]),
        (13, 18, [(13, 18, b"defgh")]),
        (13, 15, [(13, 15, b"de")]),
        (0, 11, [(10, 11, b"a")]),
        (17, 100, [(17, 18, b"h")]),
        (0, 10, []),
        (18, 100, []),
        (20, 30, []),
        (0, 5, []),
    ],
)
def test_what_lies_between_two_places(low: int, high: int, known: list[tuple[int, int, bytes]]) -> None:
    assert told(written((10, b"abcdefgh")), low, high) == known


@pytest.mark.parametrize(
    ("over", "left"),
    [
        ((10, b"XXXXXXXX"), [(10, 18, b"XXXXXXXX")]),
        ((5, b"XXXXX"), [(5, 10, b"XXXXX"), (10, 18, b"abcdefgh")]),
        ((18, b"XX"), [(10, 18, b"abcdefgh"), (18, 20, b"XX")]),
        ((12, b"XX"), [(10, 12, b"ab"), (12, 14, b"XX"), (14, 18, b"efgh")]),
        ((8, b"XXX"), [(8, 11, b"XXX"), (11, 18, b"bcdefgh")]),
        ((16, b"XXX"), [(10, 16, b"abcdef"), (16, 19, b"XXX")]),
        ((0, b"X" * 30), [(0, 30, b"X" * 30)]),
    ],
)
def test_what_is_written_takes_the_place_of_what_was(over: tuple[int, bytes], left: list[Any]) -> None:
    assert told(written((10, b"abcdefgh"), over)) == left


def test_a_part_has_been_seen_through_what_the_whole_was() -> None:
    contents = written((10, b"abcdefgh"))
    (whole,) = contents.known(ONE, 0, 100)
    (part,) = contents.known(ONE, 12, 14)
    assert (part.seen is whole.seen, part.seq, part.via) == (True, 7, None)


def test_each_memory_is_its_own() -> None:
    contents = written((0, b"abcd"))
    contents.put(OTHER, Chunk(0, b"wxyz", None, 8))
    contents.forget(OTHER, 1, 3)
    assert (told(contents), told(contents, memory=OTHER)) == ([(0, 4, b"abcd")], [(0, 1, b"w"), (3, 4, b"z")])
    assert contents.memories == 2
    contents.end(ONE)
    assert (told(contents), contents.memories) == ([], 1)


@pytest.mark.parametrize(("data", "owners"), [(b"--abcdefgh--", [ONE]), (b"abcdefgh", [ONE]), (b"abcdefg", [])])
def test_bytes_tell_whose_they_are(data: bytes, owners: list[Any]) -> None:
    contents = written((0, b"abcdefgh"))
    assert list(contents.owners(data, OTHER)) == owners
    assert list(contents.owners(data, ONE)) == []


def test_few_bytes_tell_nothing_and_what_was_copied_neither() -> None:
    assert list(written((0, b"abcdefg")).owners(b"abcdefg", OTHER)) == []
    assert list(written((10, b"abcdefg")).owners(b"abcdefg", OTHER)) == []
    assert list(written((0, b"abcdefg")).owners(b"abcdefg", OTHER, 7)) == [ONE]
    assert list(written((0, b"abcdefghi")).owners(b"abcdefghi", OTHER)) == [ONE]
    for low, high, owners in (
        (0, 10, [ONE]),
        (18, 20, [ONE]),
        (9, 11, []),
        (17, 30, []),
        (12, 13, []),
        (20, 30, [ONE]),
        (0, 5, [ONE]),
    ):
        contents = written((10, b"abcdefgh"))
        contents.mark_spread(ONE, low, high)
        assert list(contents.owners(b"abcdefgh", OTHER)) == owners, (low, high)
