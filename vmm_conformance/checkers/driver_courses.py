"""What courses of many calls came to, by the notes that the harness made of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from vmm_conformance.checkers.driver_sharing import left, shared
from vmm_conformance.checkers.judge import Judge
from vmm_conformance.contracts import Status
from vmm_conformance.history.events import Event

ADDRESSES_LAST: Final = "DRIVER-18"
ALIKE: Final = "DRIVER-47"
DESCRIPTORS: Final = "DRIVER-73"
UNRELATED: Final = "DRIVER-76"
THREADS: Final = "DRIVER-77"

SLOWER: Final = 2
"""How often slower a turnover may become."""


class Courses:
    """Judges notes. ``held`` says that a stream is held at this moment.

    ``tolerance`` is how far free memory may be off, in bytes; ``lost`` is set once nobody can know any more what
    the driver holds.
    """

    def __init__(self, judge: Judge, tolerance: int) -> None:
        self._judge = judge
        self.held = False
        self.lost = False
        self._notes: dict[str, Callable[[Event, dict[str, Any]], None]] = {
            "turnover": self._turnover,
            "pieces": self._pieces,
            "descriptors": self._descriptors,
            "threads": self._threads,
            "held": self._hold,
            "let_go": self._let_go,
            "share": self._shared,
            "left": lambda event, details: left(judge, event, details, tolerance),
        }

    def note(self, event: Event) -> None:
        """Judge one note, if it is of a course."""
        what, details = event.args
        judge = self._notes.get(what)
        if judge is not None:
            judge(event, details)

    def waited(self, event: Event) -> bool:
        """Whether a call was refused because it would have waited for the held stream."""
        return self.held and event.status == Status.NOT_READY

    def _turnover(self, event: Event, details: dict[str, Any]) -> None:
        times, done, slower = details["times"], details["done"], details["slower"]
        self.lost |= details["failed"] == "address_free"
        self._judge.expect(
            ADDRESSES_LAST, event, not details["failed"] and slower < SLOWER,
            f"reserving and freeing {details['size']} bytes {times} times",
            expected=f"every call succeeds, and the last ones take less than {SLOWER} times as long as the first",
            actual=f"{details['failed']} was refused after {done} times" if details["failed"]
            else f"the last ones took {slower} times as long",
        )  # fmt: skip

    def _pieces(self, event: Event, details: dict[str, Any]) -> None:
        self._judge.expect(
            ALIKE, event, details["differ"] < 0,
            f"{details['size']} bytes behind {details['handles']} handles, and a copy of them behind one",
            expected="the same bytes", actual=f"they differ at byte {details['differ']}",
        )  # fmt: skip

    def _descriptors(self, event: Event, details: dict[str, Any]) -> None:
        handles, more, left = details["handles"], details["more"], details["left"]
        self._judge.expect(
            DESCRIPTORS, event, max(more, left) < handles // 2,
            f"descriptors of this process, for {handles} handles that were created and mapped",
            expected="hardly more than before",
            actual=f"{more} more while they were there, {left} more when all was given back",
        )  # fmt: skip

    def _shared(self, event: Event, details: dict[str, Any]) -> None:
        self.lost |= not shared(self._judge, event, details)

    def _threads(self, event: Event, details: dict[str, Any]) -> None:
        wrong = details["wrong"]
        self.lost |= bool(wrong)
        place = "in one reservation" if details["shared"] else "in reservations of their own"
        self._judge.expect(
            THREADS, event, not wrong, f"{details['threads']} threads, each with a mapping of its own {place}",
            expected="every call succeeds, as it does for one thread alone", actual="; ".join(wrong),
        )  # fmt: skip

    def _hold(self, event: Event, details: dict[str, Any]) -> None:
        self.held = True

    def _let_go(self, event: Event, details: dict[str, Any]) -> None:
        self.held = False
        self._judge.expect(
            UNRELATED, event, details["in_time"], "calls on memory while a stream was held that they are nothing to",
            expected="they return", actual="they returned after the stream was let go, and not before",
        )  # fmt: skip
