"""Known-bad allocators."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from vmm_conformance.contracts import Allocator, Driver, Mutant
from vmm_reference.allocator import VmmAllocator
from vmm_reference.allocator_captures import CapturingAllocator
from vmm_reference.allocator_parts import PausingAllocator
from vmm_reference.expandable import ExpandableAllocator
from vmm_reference.mutants import allocators as wrong
from vmm_reference.mutants import allocators_captures as captures
from vmm_reference.mutants import allocators_declaring as declaring
from vmm_reference.mutants import allocators_ending as ending
from vmm_reference.mutants import allocators_parts as parts
from vmm_reference.mutants import allocators_waiting as waiting
from vmm_reference.mutants import expandables
from vmm_reference.subject import CAPTURING, EXPANDABLE, PAUSING

Kind = type[VmmAllocator] | type[ExpandableAllocator]


class AllocatorMutant:
    """A subject with one wrong allocator."""

    def __init__(self, name: str, kind: Kind) -> None:
        self.name = name
        self._kind = kind
        whole: Mapping[str, Any] = PAUSING if issubclass(kind, PausingAllocator) else {}
        whole = CAPTURING if issubclass(kind, CapturingAllocator) else whole
        declared = EXPANDABLE if issubclass(kind, ExpandableAllocator) else whole
        own = getattr(kind, "DECLARES", {})
        self.capabilities: Mapping[str, Any] = {"grow": True, "spaces": (0, 1, 5), **declared, **own}

    def allocator(self, driver: Driver, device: int) -> Allocator:
        """A fresh wrong allocator."""
        return self._kind(driver, device)


def _mutant(name: str, kind: Kind, *breaks: int, source: str = "", repeatable: bool = True) -> Mutant:
    """The mutant ``allocator-name``, made to break the invariants with these numbers."""
    identity = f"allocator-{name}"
    note = " ".join((kind.__doc__ or "").split())
    broken = tuple(f"ALLOCATOR-{number}" for number in breaks)
    return Mutant(identity, "allocator", broken, AllocatorMutant(identity, kind), note, source, repeatable)


MUTANTS: Final[tuple[Mutant, ...]] = (
    _mutant("handed-out-twice", wrong.HandedOutTwice, 1, 5),
    _mutant("shared-memory", wrong.SharedMemory, 1, 5),
    _mutant("read-only", wrong.ReadOnly, 2),
    _mutant("rights-for-first-piece", wrong.RightsForFirstPiece, 2),
    _mutant("lying-committed", wrong.LyingCommitted, 2),
    _mutant("minimum-behind", wrong.MinimumBehind, 2),
    _mutant("space-dropped", wrong.SpaceDropped, 3),
    _mutant("alignment-ignored", wrong.AlignmentIgnored, 3),
    _mutant("first-device", wrong.FirstDevice, 3),
    _mutant("scrubs-late", wrong.ScrubsLate, 4),
    _mutant("scrubs-another", wrong.ScrubsAnother, 4),
    _mutant("unmaps-at-once", ending.UnmapsAtOnce, 5),
    _mutant("any-stream", ending.AnyStream, 5),
    _mutant("first-stream", ending.FirstStream, 5),
    _mutant("one-event", ending.OneEvent, 5),
    _mutant("reclaims-unseen", ending.ReclaimsUnseen, 5),
    _mutant("closes-unseen", ending.ClosesUnseen, 5),
    _mutant("grows-unseen", ending.GrowsUnseen, 5),
    _mutant("grows-empty", wrong.GrowsEmpty, 6),
    _mutant("copies-short", wrong.CopiesShort, 6),
    _mutant("peers-at-first", wrong.PeersAtFirst, 6),
    _mutant("old-committed", wrong.OldCommitted, 6),
    _mutant("no-undo", ending.NoUndo, 7, 8),
    _mutant("undoes-maps-only", ending.UndoesMapsOnly, 7, 8),
    _mutant("undoes-too-much", ending.UndoesTooMuch, 7, 5),
    _mutant("remaps-without-rights", ending.RemapsWithoutRights, 7, source="NVIDIA/cuda-python#2388"),
    _mutant("last-error-wins", ending.LastErrorWins, 7),
    _mutant("undo-gives-up", ending.UndoGivesUp, 7, 8),
    _mutant("poisoned", ending.Poisoned, 7, 9),
    _mutant("forgets-first", ending.ForgetsFirst, 7, 9, 8),
    _mutant("keeps-live", ending.KeepsLive, 8),
    _mutant("keeps-events", ending.KeepsEvents, 8),
    _mutant("keeps-reference", ending.KeepsReference, 8),
    _mutant("frees-twice", ending.FreesTwice, 8),
    _mutant("unmaps-requested", ending.UnmapsRequested, 8),
    _mutant("unmaps-together", ending.UnmapsTogether, 8),
    _mutant("closes-once", ending.ClosesOnce, 8),
    _mutant("null", wrong.Null, 9),
    _mutant("always-fails", wrong.AlwaysFails, 9),
    _mutant("crashes", wrong.Crashes, 9),
    _mutant("never-waits", wrong.NeverWaits, 9),
    _mutant("every-device", wrong.EveryDevice, 9),
    _mutant("access-together", wrong.AccessTogether, 9),
    _mutant("access-before-map", wrong.AccessBeforeMap, 9),
    _mutant("maps-parts", wrong.MapsParts, 9),
    _mutant("moody", wrong.Moody, 9, repeatable=False),
    _mutant("zero-is-one", wrong.ZeroIsOne, 10),
    _mutant("zero-is-null", wrong.ZeroIsNull, 10),
    _mutant("zero-is-short", wrong.ZeroIsShort, 10),
    _mutant("shrinks-empty", parts.ShrinksEmpty, 11),
    _mutant("shrinks-in-name", parts.ShrinksInName, 11),
    _mutant("shrinks-unseen", parts.ShrinksUnseen, 5),
    _mutant("trims-nothing", parts.TrimsNothing, 12),
    _mutant("trims-oldest", parts.TrimsOldest, 12),
    _mutant("trims-unseen", parts.TrimsUnseen, 5),
    _mutant("pauses-in-name", parts.PausesInName, 13),
    _mutant("pauses-mapped-only", parts.PausesMappedOnly, 13),
    _mutant("pauses-unseen", parts.PausesUnseen, 5),
    _mutant("backup-skipped", parts.BackupSkipped, 14),
    _mutant("backup-short", parts.BackupShort, 14),
    _mutant("resumes-for-itself", parts.ResumesForItself, 14, 16),
    _mutant("refuses-again", parts.RefusesAgain, 15, 9),
    _mutant("resumes-again", parts.ResumesAgain, 15),
    _mutant("late-peer-ignored", parts.LatePeerIgnored, 16),
    _mutant("late-peer-forgotten", parts.LatePeerForgotten, 16),
    _mutant("impossible-peer", parts.ImpossiblePeer, 16),
    _mutant("counts-requested", parts.CountsRequested, 17),
    _mutant("counts-live", parts.CountsLive, 17),
    _mutant("hoards-events", ending.HoardsEvents, 18),
    _mutant("hoards-addresses", ending.HoardsAddresses, 18),
    _mutant("segment-hoards-spent", expandables.HoardsSpent, 18),
    _mutant("frees-under-capture", captures.FreesUnderCapture, 19),
    _mutant("trims-under-capture", captures.TrimsUnderCapture, 19),
    _mutant("waits-under-capture", captures.WaitsUnderCapture, 19),
    _mutant("marks-captured-stream", captures.MarksCapturedStream, 19),
    _mutant("retires-planned", captures.RetiresPlanned, 20),
    _mutant("reuses-planned", captures.ReusesPlanned, 20),
    _mutant("drops-at-end", captures.DropsAtEnd, 20),
    _mutant("waits-to-free", waiting.WaitsToFree, 21),
    _mutant("waits-to-trim", waiting.WaitsToTrim, 21),
    _mutant("waits-to-reuse", waiting.WaitsToReuse, 21),
    _mutant("reserves-ahead", declaring.ReservesAhead, 22),
    _mutant("segments-for-each", declaring.SegmentForEach, 22),
    _mutant("never-in-place", declaring.NeverInPlace, 23),
    _mutant("counts-nothing", declaring.CountsNothing, 23),
    _mutant("segment-grows-over-neighbour", expandables.GrowsOverNeighbour, 1, 5),
    _mutant("segment-moves-without-copy", expandables.MovesWithoutCopy, 6),
    _mutant("segment-frees-moved-at-once", expandables.FreesMovedAtOnce, 5),
    _mutant("segment-any-stream", expandables.ReusesAny, 5),
    _mutant("segment-trimmed-unseen", expandables.TrimsUnseen, 5),
    _mutant("segment-gap-too-small", expandables.GapTooSmall, 1, 5),
)
