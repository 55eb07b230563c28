"""What stands behind the addresses a run is given, and what its caller is given: SCOPE-123 to 125, 128 and 129."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from typing import Any

from vmm_conformance.checkers.judge import Judge
from vmm_conformance.checkers.scope_facts import Facts, Family, Request, Scope, Track
from vmm_conformance.contracts import BufferKind, Range
from vmm_conformance.history.events import Event
from vmm_conformance.history.state import OPEN, Mapping, Memory

FIXED, OWNED, FINAL, UNMOVED, ROUNDED = "SCOPE-123", "SCOPE-124", "SCOPE-125", "SCOPE-128", "SCOPE-129"

READ_WRITE = 3


Aliases = dict[Range, tuple[int | None, Range, Mapping]]
"""By source: the buffer (None where the source is several), the slice, and what was mapped there."""


class _Shown:
    """The aliases of a track's last two runs that had any."""

    def __init__(self, number: int = 0, before: Aliases | None = None) -> None:
        self.number = number
        self.before: Aliases = before or {}
        self.now: Aliases = {}


class Tables(Family):
    """Judges the owning table, the table to run with, and the mappings behind the latter."""

    def __init__(self, facts: Facts, judge: Judge) -> None:
        super().__init__(facts, judge)
        self._temps: dict[tuple[Track, int], tuple[int, Mapping]] = {}
        """Temporary buffers: the address of the last run, and what was mapped there."""
        self._shown: defaultdict[Track, _Shown] = defaultdict(_Shown)
        self._observed: dict[int, tuple[Event, Scope, tuple[int, ...], tuple[bytes, ...]]] = {}

    # -- the owning table

    def generated(self, scope: Scope) -> None:
        """Parameters as they were handed in, outputs where they can be freed, and sizes as they are (124, 129)."""
        if scope.status("generate") != "ok":
            return
        event = scope.calls["generate"].returned or scope.event
        for index, (entry, buffer) in enumerate(zip(scope.generated, scope.plan.buffers, strict=True)):
            if buffer.kind in (BufferKind.PARAMETER, BufferKind.CONSTANT):
                good = entry.address == scope.arguments[index].address
                wanted = f"{scope.arguments[index].address:#x}, as it was handed in"
            elif buffer.kind is BufferKind.OUTPUT and buffer.size:
                good = entry.address != 0 and not scope.track.reserved(entry.address)
                wanted = "an address that the caller can free: outside of the subject's reservations"
            else:
                continue
            self.judge.expect(
                OWNED, event, good, f"{scope.name} owns buffer {index} at {entry.address:#x}", expected=wanted,
                actual=f"{entry.address:#x}", range=entry,
            )  # fmt: skip
            self._size(scope, event, index, entry, f"shows its caller buffer {index} with", (buffer.size,))

    def executed(self, scope: Scope) -> None:
        """The owning table is as it was (124)."""
        changed = [n for n, (a, b) in enumerate(zip(scope.final, scope.after, strict=False)) if a != b]
        self.judge.expect(
            OWNED, scope.calls["execute"].event, not changed and len(scope.final) == len(scope.after),
            f"{scope.name} has changed the owning table", expected="the table as it was before execute",
            actual=f"buffers {changed} differ",
        )  # fmt: skip

    # -- the table to run with

    def executing(self, scope: Scope, event: Event) -> None:
        """Every address shows the memory that it must, whole and with rights (123, 125, 129)."""
        if len(scope.running) != len(scope.plan.buffers):
            self.judge.fail(
                FINAL, event, f"{scope.name} runs with a table of {len(scope.running)} entries",
                expected=f"one for each of {len(scope.plan.buffers)} buffers", actual=f"{len(scope.running)}",
            )  # fmt: skip
            return
        for index, entry in enumerate(scope.running):
            if index in scope.plan.named and scope.final[index].address:
                if scope.plan.kind(index) is BufferKind.TEMP:
                    self._temporary(scope, event, index, entry)
                else:
                    self._final(scope, event, index, entry)
        for index, entry in enumerate(scope.running):
            sizes = scope.plan.buffers[index].size, scope.plan.rounded(index, scope.granularity)
            self._size(scope, event, index, entry, f"runs with buffer {index} of", sizes)

    def _final(self, scope: Scope, event: Event, index: int, entry: Range) -> None:
        final = scope.final[index]
        mapping, memory = scope.behind[index]
        good = memory is self.facts.behind(final.address)[1] and _usable(entry, mapping, memory, scope)
        replaced = final.address != scope.generated[index].address
        self.judge.expect(
            FINAL, event, good,
            f"{scope.name} runs with buffer {index} at {entry.address:#x}, which does not show what lies "
            f"at {final.address:#x}",
            expected=f"the memory of the final {'(replaced) ' if replaced else ''}buffer, whole",
            actual="other memory, a part of it, or none", range=entry,
        )  # fmt: skip

    def _temporary(self, scope: Scope, event: Event, index: int, entry: Range) -> None:
        mapping, memory = scope.behind[index]
        usable = _usable(entry, mapping, memory, scope)
        if scope.path not in ("watched", "active") or index not in scope.plan.temps or not usable or mapping is None:
            if not usable:
                self.judge.fail(
                    FIXED, event, f"{scope.name} runs with temporary buffer {index} at {entry.address:#x}",
                    expected="memory behind all of it", actual="none, or not enough", range=entry,
                )  # fmt: skip
            return
        key = scope.track, index
        address, last = self._temps.get(key, (entry.address, mapping))
        if key in self._temps:
            self.judge.expect(
                FIXED, event, address == entry.address and not self._changed(scope, last, mapping),
                f"{scope.name} runs with temporary buffer {index} at {entry.address:#x}, other than the run before",
                expected=f"{address:#x}, with the same memory behind it", range=entry,
                actual="another address" if address != entry.address else "other memory",
            )  # fmt: skip
        self._temps[key] = entry.address, mapping

    def _changed(self, scope: Scope, last: Mapping, now: Mapping) -> bool:
        """Whether the memory is another one, and by the subject's doing."""
        return last.memory is not now.memory and self._blamed(last)

    def _blamed(self, mapping: Mapping) -> bool:
        """Whether the subject is to blame that a mapping is gone, or has left it behind."""
        if mapping.ended == OPEN:
            return True
        cause = self.facts.causes.get(mapping)
        if cause is None:
            return False
        return not (self.facts.budgeted and cause.name in ("allocate", "allocate_mapped"))

    def _size(
        self, scope: Scope, event: Event, index: int, entry: Range, what: str, sizes: tuple[int, ...]
    ) -> None:
        """An entry that is not null has one of ``sizes`` (129)."""
        if not entry.address:
            return
        if scope.plan.buffers[index].size % scope.granularity:
            self.judge.witness(ROUNDED)
        if entry.size not in sizes:
            self.judge.fail(
                ROUNDED, event, f"{scope.name} {what} {entry.size} bytes",
                expected=" or ".join(f"{size} bytes" for size in sizes), actual=f"{entry.size} bytes", range=entry,
            )  # fmt: skip

    # -- aliases

    def request(self, scope: Scope | None, request: Request) -> None:
        """Aliases and slices are whole granules (129); an unmoved buffer takes no driver call (128)."""
        source, place = request.address, request.place
        if scope is None or place is None:
            return
        if request.name == "allocate_mapped":
            self._whole(scope, request, place, scope.plan.temps)
        elif request.name == "map" and source is not None:
            self._alias(scope, request, source, place)

    def _alias(self, scope: Scope, request: Request, source: Range, place: Range) -> None:
        shown = [index for index, entry in enumerate(scope.final) if entry.address == source.address]
        self._whole(scope, request, place, shown)
        if not request.ok:
            return
        if self._shown[scope.track].number != scope.number:
            self._shown[scope.track] = _Shown(scope.number, self._shown[scope.track].now)
        aliases = self._shown[scope.track]
        mapping = self.facts.state.mapping_at(place.address)
        index = shown[0] if len(shown) == 1 else None
        last = aliases.before.get(source)
        if last is not None and last[0] == index is not None and self._same(last[2], source):
            blamed = request.calls > 0 and self._blamed(last[2]) and not self._lent(last[2], request, source)
            self.judge.expect(
                UNMOVED, request.event, not blamed, f"{scope.name} maps buffer {index} anew, which has not moved",
                expected=f"no driver call: the alias at {last[1].address:#x} is taken up again",
                actual=f"{request.calls} changes of mappings", range=place,
            )  # fmt: skip
        if mapping is not None:
            aliases.now[source] = index, place, mapping

    def _lent(self, alias: Mapping, request: Request, source: Range) -> bool:
        """Whether the memory has stood behind another buffer since, and was shown there."""
        cause = self.facts.causes.get(alias)
        if cause is None or cause is request or cause.address is None:
            return False
        return cause.name == "map" and cause.address.address == source.address

    def _same(self, alias: Mapping, source: Range) -> bool:
        """Whether the memory at ``source`` is what the alias showed."""
        now = self.facts.state.mapping_at(source.address)
        return now is not None and now.memory is alias.memory

    def _whole(self, scope: Scope, request: Request, place: Range, indices: Collection[int]) -> None:
        """The size that is mapped is that of one of ``indices``, rounded up."""
        sizes = {scope.plan.rounded(index, scope.granule) for index in indices}
        if any(scope.plan.buffers[index].size % scope.granule for index in indices):
            self.judge.witness(ROUNDED)
        if sizes and place.size not in sizes:
            self.judge.fail(
                ROUNDED, request.event, f"{scope.name}: {request}",
                expected=f"whole granules: one of {sorted(sizes)} bytes",
                actual=f"{place.size} bytes", range=place,
            )  # fmt: skip

    # -- what the caller sees

    def note(self, event: Event, what: str, details: dict[str, Any]) -> None:
        """Remember what the caller looks at; it must be able to free what it owns (124)."""
        if what == "observe" and not self.facts.consumes:
            scope = self.facts.scopes[details["scope"]]
            self._observed[details["work"]] = event, scope, details["buffers"], details["tokens"]
        elif what == "not freed" and details["scope"] and details["reason"] == "unknown":
            scope = self.facts.scopes[details["scope"]]
            self.judge.fail(
                OWNED, event, f"what {scope.name} handed to its caller had been freed before",
                expected="an output is the "
                "caller's once teardown has left it alone", actual="the allocator does not know it any more",
                range=details["range"],
            )  # fmt: skip

    def ran(self, event: Event) -> None:
        """Outputs hold what was written into them (124)."""
        work, data, fault = event.args
        seen = self._observed.pop(work, None)
        if seen is None or fault:
            return
        note, scope, buffers, tokens = seen
        for index, wanted, found in zip(buffers, tokens, data, strict=False):
            if not self.judge.expect(
                OWNED, note, wanted == found, f"buffer {index} of {scope.name} does not hold what was written into it",
                expected=wanted, actual=found, range=scope.final[index],
            ):  # fmt: skip
                return


def _usable(entry: Range, mapping: Mapping | None, memory: Memory | None, scope: Scope) -> bool:
    """Whether memory stands behind all of an entry, with rights for the device."""
    if mapping is not None:
        rights = mapping.rights.get(scope.track.device, 0)
        return rights == READ_WRITE and entry.end <= mapping.address + mapping.size
    return memory is not None and entry.end <= memory.address + memory.size
