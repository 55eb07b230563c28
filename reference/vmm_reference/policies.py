"""Which buffers of an executable keep their address, and how that is found out. Makes no call on anything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from vmm_conformance.contracts import (
    PROFILED_RUNS,
    BufferKind,
    Code,
    Range,
    RemapMode,
    ScopedExecutable,
    SubjectError,
)

REMOVED: Final = ("DYNAMIC_ALLOCATE", "VMM_PERSISTENT_TEMP", "NEVER_UPDATE", "CAPTURE_CMD_NEVER_UPDATE")
"""Modes of earlier revisions, that nobody may ask for any more."""


def parse_update_mode(text: str | None) -> RemapMode:
    """The mode called ``text``; unset is ALWAYS_UPDATE (FLAG-153).

    Raises INVALID_ARGUMENT for any other name, and says of a removed one that it is.
    """
    if text is None:
        return RemapMode.ALWAYS_UPDATE
    try:
        return RemapMode(text)
    except ValueError:
        what = "has been removed" if text in REMOVED else "is unknown"
        accepted = ", ".join(RemapMode)
        raise SubjectError(
            Code.INVALID_ARGUMENT, f"update mode {text!r} {what}; choose one of {accepted}"
        ) from None


class Classes(NamedTuple):
    """The buffers that commands name, by index, ascending. Empty ones are in none of the classes.

    ``constants`` have a fixed address by nature. ``temps`` are given one from the first run on; ``candidates``
    are parameters and outputs, and get one if they do not move anyway.
    """

    constants: tuple[int, ...]
    temps: tuple[int, ...]
    candidates: tuple[int, ...]


def classify(executable: ScopedExecutable) -> Classes:
    """The buffers that the commands of ``executable`` name; others are left alone in every mode (POLICY-136)."""
    named = sorted({index for command in executable.commands for index in (*command.reads, *command.writes)})
    used = [index for index in named if executable.buffers[index].size]

    def of(*kinds: BufferKind) -> tuple[int, ...]:
        return tuple(index for index in used if executable.buffers[index].kind in kinds)

    return Classes(of(BufferKind.CONSTANT), of(BufferKind.TEMP), of(BufferKind.PARAMETER, BufferKind.OUTPUT))


class Profile:
    """What SKIP_PROFILED finds out on one device: which candidates may be remapped.

    It watches `PROFILED_RUNS` runs that go well, decides once, and never changes its mind (POLICY-138).
    """

    def __init__(self, executable: ScopedExecutable, classes: Classes) -> None:
        self.executable = executable
        self.classes = classes
        self.runs = 0
        self.observed: dict[int, Range] = {}
        """The last address of each candidate."""
        self.unstable: set[int] = set()
        """Candidates that have been null, or elsewhere, at any time (POLICY-139)."""
        self.selected: tuple[int, ...] | None = None
        """What is remapped, ascending; None while watching."""

    @property
    def watching(self) -> bool:
        """Whether nothing is decided yet."""
        return self.selected is None

    @property
    def disabled(self) -> bool:
        """Whether there is nothing to remap, for good (POLICY-141)."""
        return self.selected == ()

    def observe(self, table: Sequence[Range]) -> None:
        """A run has gone well with ``table``: the final addresses, copies in place of what is protected."""
        for index in self.classes.candidates:
            if self.moved(index, table[index]):
                self.unstable.add(index)
            self.observed[index] = table[index]
        self.runs += 1

    def moved(self, index: int, now: Range) -> bool:
        """Whether a candidate is null, or not where it was."""
        return not now.address or self.observed.get(index, now) != now

    def seen_enough(self) -> bool:
        """Whether the time to decide has come (POLICY-137)."""
        return self.watching and self.runs >= PROFILED_RUNS

    def decide(self, owned: Callable[[Range], bool]) -> None:
        """Select what is remapped from now on. ``owned``: the allocator can alias that address."""
        stable = [index for index in self.classes.candidates if index not in self.unstable]
        able = [index for index in stable if not self.is_parameter(index) or owned(self.observed[index])]
        self.selected = tuple(sorted({*self.classes.temps, *self.without_shared(able)}))

    def without_shared(self, able: list[int]) -> list[int]:
        """``able`` without the parameters that share a buffer: it can have one alias, so none gets it (POLICY-140)."""
        users = Counter(self.observed[index].address for index in able if self.is_parameter(index))
        return [index for index in able if not self.is_parameter(index) or users[self.observed[index].address] == 1]

    def is_parameter(self, index: int) -> bool:
        """Whether the buffer is handed in by the caller."""
        return self.executable.buffers[index].kind is BufferKind.PARAMETER
