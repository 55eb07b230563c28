"""Progress of long runs: programs done of planned, rate, time left, what is broken so far.

On a terminal one line that is rewritten, at most four times a second and never in the first two seconds;
elsewhere a whole line every thirty seconds, so that a log shows that something is going on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TextIO

from vmm_conformance.reporting.text import clip, count

QUIET: Final = 2.0
"""Seconds before anything is shown on a terminal."""
OFTEN: Final = 0.25
FORETELLS: Final = 20
"""Programs after which the time that is left is worth naming."""
SELDOM: Final = 30.0
"""Seconds between lines where there is no terminal."""
BROKEN: Final = "broken invariant"
_CLEAR: Final = "\r\x1b[K"


class Tally:
    """How far a run is. The current item adds its programs to those of earlier ones.

    An invariant that several items break counts once, as soon as `finished` was told which they are.
    """

    def __init__(
        self,
        planned: int = 0,
        clock: Callable[[], float] = time.monotonic,
        noun: str = "program",
        found: str = BROKEN,
    ) -> None:
        self.planned = planned
        self.noun = noun
        self.found = found
        self.label = ""
        self._clock = clock
        self._started = clock()
        self._before = 0
        self._found: set[str] = set()
        self._done = 0
        self._of = 0
        self._broken = 0

    def programs(self, done: int, planned: int, broken: int) -> None:
        """The current item is at ``done`` of ``planned`` programs, with ``broken`` invariants."""
        self._done, self._of, self._broken = done, planned, broken

    def finished(self, found: Iterable[str] = ()) -> None:
        """The current item is over, and has broken the invariants ``found``."""
        self._before += self._done
        self._found.update(found)
        self._done = self._of = self._broken = 0

    def as_data(self) -> dict[str, Any]:
        """Programs done and planned, what earlier items broke, and how many invariants the current one breaks."""
        return {
            "done": self._before + self._done,
            "planned": self.planned,
            "found": sorted(self._found),
            "broken": self._broken,
        }

    def add(self, told: Sequence[dict[str, Any]]) -> None:
        """Take what tallies of several processes told in place of one's own."""
        self.planned = max((each["planned"] for each in told), default=0)
        self._done = sum(each["done"] for each in told)
        self._of = self.planned
        self._found = {id for each in told for id in each["found"]}
        self._broken = max((each["broken"] for each in told), default=0)

    @property
    def seconds(self) -> float:
        """Since the run began."""
        return self._clock() - self._started

    def text(self) -> str:
        """``1,200 of 21,000 programs, 850/s, 23 s left, 2 broken invariants; skip-remap/explore/shadows``."""
        done, planned = self._before + self._done, max(self.planned, self._before + self._of)
        rate = done / self.seconds if self.seconds > 0 else 0.0
        parts = [f"{done:,} of {count(planned, self.noun)}", f"{rate:,.0f}/s"]
        if done >= FORETELLS and planned > done:
            parts.append(f"{duration((planned - done) / rate)} left")
        parts.append(count(max(len(self._found), self._broken), self.found))
        return ", ".join(parts) + (f"; {self.label}" if self.label else "")


def duration(seconds: float) -> str:
    """``12 s``, ``3 min 20 s``, ``2 h 5 min``."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


class Progress:
    """Shows a `Tally` on ``stream``; a context that leaves no half line behind."""

    def __init__(
        self,
        stream: TextIO,
        planned: int = 0,
        *,
        clock: Callable[[], float] = time.monotonic,
        width: int = 0,
        noun: str = "program",
        found: str = BROKEN,
    ) -> None:
        self.tally = Tally(planned, clock, noun, found)
        self._stream = stream
        self._terminal = stream.isatty()
        self._clock = clock
        self._width = width
        self._next = clock() + (QUIET if self._terminal else SELDOM)
        self._shown = False

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()

    def begin(self, label: str) -> None:
        """An item called ``label`` begins."""
        self.tally.label = label

    def programs(self, done: int, planned: int, broken: int) -> None:
        """What `run_item` calls after each program."""
        self.tally.programs(done, planned, broken)
        now = self._clock()
        if now >= self._next:
            self._next = now + (OFTEN if self._terminal else SELDOM)
            self._show()

    def line(self, text: str, stream: TextIO | None = None) -> None:
        """Print a whole line of something else, here or to ``stream``."""
        self.clear()
        print(text, file=stream or self._stream, flush=True)

    def clear(self) -> None:
        """Take the rewritten line away."""
        if self._shown:
            self._stream.write(_CLEAR)
            self._stream.flush()
            self._shown = False

    def _show(self) -> None:
        text = self.tally.text()
        if self._terminal:
            self._stream.write(_CLEAR + clip(text, (self._width or _columns()) - 1))
            self._shown = True
        else:
            self._stream.write(text + "\n")
        self._stream.flush()


def _columns() -> int:
    import shutil

    return shutil.get_terminal_size().columns
