"""Policies that select wrongly, promise wrongly, or change their mind; and readers of update modes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from vmm_conformance.contracts import (
    PROFILED_RUNS,
    BufferKind,
    Driver,
    Execute,
    MemoryAllocator,
    Range,
    RemapMode,
    ScopedExecutable,
    SubjectError,
    VmmAllocator,
)
from vmm_reference.mutants.scope_registry import ScopeRegistry
from vmm_reference.policies import REMOVED, Profile, parse_update_mode
from vmm_reference.remapping import Remapping, RemappingAllocator, RemapScope
from vmm_reference.scopes import PlainScope

mutant = ScopeRegistry()


# -- without remapping


@mutant("POLICY-135")
class PlainPromisesNothing(PlainScope):
    """Without remapping, passes no set of persistent buffers instead of the constants."""

    def execute(self, table: Sequence[Range], execute: Execute) -> None:
        execute(tuple(table), None)


@mutant("POLICY-135")
class EmptyIsAbsent(PlainScope):
    """Where there is no constant passes no set instead of an empty one."""

    def execute(self, table: Sequence[Range], execute: Execute) -> None:
        execute(tuple(table), self.classes.constants or None)


@mutant("POLICY-135")
class PlainPromisesTemps(PlainScope):
    """Without remapping, promises temporary buffers too."""

    def execute(self, table: Sequence[Range], execute: Execute) -> None:
        execute(tuple(table), tuple(sorted({*self.classes.constants, *self.classes.temps})))


@mutant("POLICY-135")
class PlainPromisesAllConstants(PlainScope):
    """Without remapping, promises constants that no command names as well."""

    def execute(self, table: Sequence[Range], execute: Execute) -> None:
        buffers = self.executable.buffers
        execute(tuple(table), tuple(n for n, b in enumerate(buffers) if b.kind is BufferKind.CONSTANT and b.size))


@mutant("POLICY-135", source="openxla/xla#45567 (fallback of a client without a VMM allocator)")
class NoWayOut(RemappingAllocator):
    """Takes every allocator for one that can map."""

    def create_scope(self, device: int, stream: int, allocator: MemoryAllocator) -> RemapScope:
        self.check_open()
        if not self.selects():
            return self.plain_scope(device, allocator)  # type: ignore[return-value] # a scope all the same
        vmm: VmmAllocator = allocator  # type: ignore[assignment] # the fault
        self.check_stream(device, stream, vmm)
        remapping = self.remapping_on(device)
        remapping.lock.acquire()
        remapping.bind(vmm)
        return RemapScope(remapping, vmm)


# -- SKIP_TEMP


@mutant("POLICY-136", "POLICY-137")
class Unsorted(RemapScope):
    """Passes the constants first and the others behind them."""

    def persistent(self) -> tuple[int, ...]:
        return (*self.classes.constants, *self.selected())


@mutant("POLICY-136")
class PromisesParameters(RemapScope):
    """Under SKIP_TEMP promises parameters too, though their address is the caller's."""

    def persistent(self) -> tuple[int, ...]:
        more = self.classes.candidates if self.executable.mode is RemapMode.SKIP_TEMP else ()
        return tuple(sorted({*super().persistent(), *more}))


def _unnamed(executable: ScopedExecutable) -> tuple[int, ...]:
    """All temporary buffers, whether commands name them or not."""
    return tuple(n for n, b in enumerate(executable.buffers) if b.kind is BufferKind.TEMP and b.size)


@mutant("POLICY-136", "POLICY-137", "POLICY-142")
class TakesUnnamedTemps(RemappingAllocator):
    """Selects temporary buffers that no command names."""

    def __init__(self, driver: Driver, executable: ScopedExecutable) -> None:
        super().__init__(driver, executable)
        self.classes = self.classes._replace(temps=_unnamed(executable))


@mutant("POLICY-136", "POLICY-137")
class ForgetsConstants(RemapScope):
    """Promises what is remapped, and forgets the constants."""

    def persistent(self) -> tuple[int, ...]:
        return self.selected()


# -- SKIP_PROFILED


@mutant("POLICY-137")
class DecidesEarly(Profile):
    """Watches two runs."""

    def seen_enough(self) -> bool:
        return self.watching and self.runs >= PROFILED_RUNS - 1


@mutant("POLICY-137")
class DecidesLate(Profile):
    """Watches four runs."""

    def seen_enough(self) -> bool:
        return self.watching and self.runs > PROFILED_RUNS


@mutant("POLICY-137")
class CountsFailures(RemapScope):
    """Counts runs that fail as well."""

    def execute(self, table: Sequence[Range], execute: Execute) -> None:
        if not self.watched:
            super().execute(table, execute)
            return
        try:
            execute(tuple(table), None)
        finally:
            self.remapping.profile.observe(table)


@mutant("POLICY-137", "POLICY-138")
class PromisesWhileWatching(RemapScope):
    """Promises the constants while addresses are still watched."""

    def execute(self, table: Sequence[Range], execute: Execute) -> None:
        if not self.watched:
            super().execute(table, execute)
            return
        execute(tuple(table), self.classes.constants)
        self.remapping.profile.observe(table)


@mutant("POLICY-137")
class ParametersNever(Profile):
    """Selects outputs and temporary buffers, and never a parameter."""

    def without_shared(self, able: list[int]) -> list[int]:
        return [index for index in able if not self.is_parameter(index)]


@mutant("POLICY-138", "POLICY-137")
class Toggles(RemapScope):
    """Withdraws its promise in every fourth run."""

    def execute(self, table: Sequence[Range], execute: Execute) -> None:
        kept = self.remapping.__dict__
        kept["runs"] = kept.get("runs", 0) + 1
        if self.watched or kept["runs"] % 4:
            super().execute(table, execute)
        else:
            super().execute(table, lambda running, persistent: execute(running, None))


@mutant("POLICY-138")
class GrowsLater(Profile):
    """Goes on watching, and selects more when it has seen more."""

    def seen_enough(self) -> bool:
        return self.runs >= PROFILED_RUNS

    def decide(self, owned: Callable[[Range], bool]) -> None:
        first = self.selected is None
        super().decide(owned)
        later = [index for index in self.selected or () if index not in self.classes.temps]
        if first and len(later) > 1:
            self.selected = tuple(index for index in self.selected or () if index != later[-1])


@mutant("POLICY-138", "POLICY-137")
class StartsOver(RemapScope):
    """Watches anew when a run has failed after all was decided."""

    def execute(self, table: Sequence[Range], execute: Execute) -> None:
        try:
            super().execute(table, execute)
        except BaseException:
            if not self.watched and self.executable.mode is RemapMode.SKIP_PROFILED:
                self.remapping.profile.selected = None
                self.remapping.profile.runs = 0
            raise


@mutant("POLICY-139")
class LastAddressOnly(Profile):
    """Looks whether the last two addresses were equal, and forgives what was before."""

    def observe(self, table: Sequence[Range]) -> None:
        self.unstable.clear()
        super().observe(table)


@mutant("POLICY-139")
class FirstAndLast(Profile):
    """Compares the last address with the first, and does not see what was between."""

    def moved(self, index: int, now: Range) -> bool:
        first = self.__dict__.setdefault("first", {}).setdefault(index, now)
        self.unstable.discard(index)
        return not now.address or first != now


@mutant("POLICY-139")
class ForgivesNull(Profile):
    """Takes a buffer that was null once for one that was not there yet."""

    def observe(self, table: Sequence[Range]) -> None:
        there = [entry if entry.address else self.observed.get(n, entry) for n, entry in enumerate(table)]
        super().observe(there)

    def moved(self, index: int, now: Range) -> bool:
        before = self.observed.get(index, now)
        return before.address != 0 and before != now


@mutant("POLICY-140", source="openxla/xla va_remap_allocator_test SkipProfiledDropsParametersSharingABuffer")
class KeepsFirstSharer(Profile):
    """Of parameters that share a buffer leaves out all but the first."""

    def without_shared(self, able: list[int]) -> list[int]:
        kept: dict[int, int] = {}
        for index in able:
            if self.is_parameter(index):
                kept.setdefault(self.observed[index].address, index)
        return [index for index in able if not self.is_parameter(index) or index in kept.values()]


@mutant("POLICY-140")
class SharersStay(Profile):
    """Selects parameters that share a buffer."""

    def without_shared(self, able: list[int]) -> list[int]:
        return able


@mutant("POLICY-140", source="openxla/xla va_remap_allocator_test SkipProfiledSkipsParameterNotBackedByVmmAllocator")
class AnybodysParameters(Profile):
    """Selects parameters that the allocator does not know."""

    def decide(self, owned: Callable[[Range], bool]) -> None:
        super().decide(lambda address: True)


@mutant("POLICY-141", "POLICY-135")
class ActiveWithNothing(Profile):
    """Goes on as if it remapped something when it has selected nothing."""

    @property
    def disabled(self) -> bool:
        return False


@mutant("POLICY-141")
class TempsNeedProfile(Profile):
    """Selects temporary buffers only beside a parameter or output."""

    def decide(self, owned: Callable[[Range], bool]) -> None:
        super().decide(owned)
        if self.classes.candidates and set(self.selected or ()) <= set(self.classes.temps):
            self.selected = ()


# -- the layout


@mutant("POLICY-142")
class NoRoomForCandidates(Remapping):
    """While watching reserves room for temporary buffers alone."""

    def to_place(self) -> tuple[int, ...]:
        return self.classes.temps if self.profile.watching else super().to_place()


@mutant("POLICY-142")
class RoomForAllAlways(Remapping):
    """When all is decided still reserves room for every candidate."""

    def to_place(self) -> tuple[int, ...]:
        whole = super().to_place()
        if self.executable.mode is RemapMode.SKIP_PROFILED and self.profile.selected:
            return tuple(sorted({*whole, *self.classes.candidates}))
        return whole


@mutant("POLICY-143", "SCOPE-123", source="openxla/xla@3402c94a (SKIP_PROFILED held two physical temps)")
class ProfilesInPlainMemory(RemapScope):
    """While watching allocates temporary buffers like any other."""

    def prepare(self) -> None:
        if not self.watched:
            super().prepare()

    def allocate(self, index: int) -> Range:
        return PlainScope.allocate(self, index) if self.watched else super().allocate(index)


# -- names


@mutant.parser("FLAG-153")
def unknown_is_default(text: str | None) -> RemapMode:
    """Reads a name that it does not know as ALWAYS_UPDATE."""
    try:
        return parse_update_mode(text)
    except SubjectError:
        return RemapMode.ALWAYS_UPDATE


@mutant.parser("FLAG-153")
def removed_names_live_on(text: str | None) -> RemapMode:
    """Reads the names of earlier revisions as what they meant."""
    return RemapMode.SKIP_TEMP if text in REMOVED else parse_update_mode(text)


@mutant.parser("FLAG-153")
def unset_is_skip_temp(text: str | None) -> RemapMode:
    """Takes SKIP_TEMP for the default."""
    return RemapMode.SKIP_TEMP if text is None else parse_update_mode(text)


@mutant.parser("FLAG-153")
def prefixes_will_do(text: str | None) -> RemapMode:
    """Reads a name by how it begins."""
    known = [mode for mode in RemapMode if text and mode.startswith(text[:5]) and mode.value != text]
    return known[0] if known and text not in list(RemapMode) else parse_update_mode(text)


@mutant.parser("FLAG-153")
def does_not_say_which(text: str | None) -> RemapMode:
    """Refuses a name without quoting it."""
    try:
        return parse_update_mode(text)
    except SubjectError as error:
        raise SubjectError(error.code, "no such update mode") from None


MUTANTS = mutant.mutants

