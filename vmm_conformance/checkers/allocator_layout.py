"""Where blocks lie, and what stands behind them: ALLOCATOR-1, 2 and 3, and the rights of ALLOCATOR-6 and 11."""

from __future__ import annotations

from collections.abc import Iterable

from vmm_conformance.checkers.allocator_calls import Block, Call, Family
from vmm_conformance.contracts import Access
from vmm_conformance.history.events import Event
from vmm_conformance.history.state import OPEN, Part

DISJOINT, USABLE, PLACED = "ALLOCATOR-1", "ALLOCATOR-2", "ALLOCATOR-3"
UNDONE = "ALLOCATOR-7"
REPLACED = {"grow": "ALLOCATOR-6", "shrink": "ALLOCATOR-11"}
"""The call that replaces a block by another, to its invariant."""


class Layout(Family):
    """Judges each block when it is made, and again when something behind it was taken away."""

    _rights: dict[int, int] | None = None
    _committed = 0

    def called(self, call: Call) -> None:
        """Remember which devices could use a block before it is replaced."""
        if call.name in REPLACED and call.block:
            self._rights = common_rights(call.block.parts)
            self._committed = call.block.committed

    def returned(self, call: Call, event: Event) -> None:
        """Look at the block that was made, and at those whose memory the call touched."""
        if call.good and call.block and (call.name == "allocate" or call.name in REPLACED):
            self._placed(call.block, event)
            self._usable(call.block, call, event)
            self._disjoint(call.block, event)
            if call.name in REPLACED:
                self._replaced(call.block, call, event)
        for block in self.ledger.live.values():
            if block.device not in self.ledger.paused and (block is not call.block or not call.good):
                self._unharmed(block, call, event)

    def work(self, event: Event, block: Block | None) -> None:
        """The driver must take the caller's work on a live block."""
        if event.status and block and block.usable:
            self.judge.fail(
                USABLE, event, f"the driver refused the caller's work on {block}", range=block.range,
                expected="work on a live block is accepted", actual=f"status {event.status}",
            )  # fmt: skip

    def _placed(self, block: Block, event: Event) -> None:
        alignment = self.ledger.alignment[block.space]
        self.judge.expect(
            PLACED, event, block.address % alignment == 0, f"{block} is not aligned to its memory space",
            expected=f"a multiple of {alignment}, the alignment of space {block.space}",
            actual=f"{block.address:#x}", range=block.range,
        )  # fmt: skip
        wrong = [
            part for part in block.parts if (part.memory.space, part.memory.device) != (block.space, block.device)
        ]
        if wrong:
            memory = wrong[0].memory
            self.judge.fail(
                PLACED, event, f"{block} has memory of another kind behind it", range=block.range,
                expected=f"memory space {block.space} of device {block.device}",
                actual=f"memory space {memory.space} of device {memory.device}", cause=memory.made,
            )  # fmt: skip

    def _usable(self, block: Block, call: Call, event: Event) -> None:
        if block.size != call.arguments["size"] or block.committed < block.size:
            self.judge.fail(
                REPLACED.get(call.name, USABLE), event, f"{call} describes {block}",
                expected=f"size {call.arguments['size']}, and at least as many bytes committed",
                actual=f"size {block.size}, {block.committed} committed", range=block.range,
            )  # fmt: skip
        if self.ledger.traced:
            why = unusable(block)
            block.usable = not why
            self.judge.expect(
                USABLE, event, not why, f"{block} cannot be used by device {block.device}",
                expected="every committed byte mapped with read and write rights, or allocated",
                actual=why, range=block.range,
            )  # fmt: skip

    def _disjoint(self, block: Block, event: Event) -> None:
        others = [other for other in self.ledger.live.values() if other is not block]
        if others:
            self.judge.witness(DISJOINT)
        for other in others:
            if block.address < other.range.end and other.address < block.range.end:
                what = "the same addresses"
            elif _shares(block.parts, other.parts):
                what = "the same physical memory"
            else:
                continue
            self.judge.fail(
                DISJOINT, event, f"{block} and {other} are both live and have {what}",
                expected="no byte belongs to two live blocks", actual=what, range=block.range,
            )  # fmt: skip

    def _replaced(self, block: Block, call: Call, event: Event) -> None:
        """Every device that could use the block before can use all of it now; shrinking commits no more."""
        if call.name == "shrink" and block.committed > self._committed:
            self.judge.fail(
                REPLACED["shrink"], event, f"{call} has made {block} larger", range=block.range,
                expected=f"at most the {self._committed} bytes of before", actual=f"{block.committed} committed",
            )  # fmt: skip
        before, after = self._rights or {}, common_rights(block.parts)
        lost = {d: right for d, right in before.items() if after is not None and right & ~after.get(d, 0)}
        if before and after is not None:
            self.judge.expect(
                REPLACED[call.name], event, not lost, f"{call} lost rights of device(s) {sorted(lost)}",
                expected=f"rights {before}, by device, as before", actual=f"rights {after}", range=block.range,
            )  # fmt: skip

    def _unharmed(self, block: Block, call: Call, event: Event) -> None:
        """A call on one block leaves the others usable, and a call that failed all of them."""
        if block.usable and all(_stands(part, block.device) for part in block.parts):
            return
        if not block.usable and not block.spoiled:
            return
        mended = not block.usable  # what a pause could neither take nor put back, a later call may
        block.parts = self.state.parts(block.address, block.committed)
        why = unusable(block)
        block.usable = not why
        if mended:
            return
        if call.shaken and call.name in ("pause", "resume"):
            block.spoiled = block.spoiled or bool(why)
            return
        self.judge.expect(
            USABLE if call.good else UNDONE, event, not why, f"{call} has taken memory or rights from live {block}",
            expected="other blocks keep their memory and rights" if call.good else "a failed call changes nothing",
            actual=why, range=block.range,
        )  # fmt: skip


def _stands(part: Part, device: int) -> bool:
    """Whether a part is still there, with rights."""
    return (part.mapping or part.memory).ended == OPEN and grants(part, device)


def grants(part: Part, device: int) -> bool:
    """Whether a device may read and write a part."""
    return part.mapping is None or part.mapping.rights.get(device, 0) == Access.READ_WRITE


def unusable(block: Block) -> str:
    """Why the block's device cannot use all committed bytes; nothing if it can."""
    for part in block.parts:
        if not grants(part, block.device):
            return f"rights {part.mapping.rights.get(block.device, 0) if part.mapping else 0} at offset {part.low}"
    covered = sum(part.high - part.low for part in block.parts)
    return f"{covered} of {block.committed} bytes have memory behind them" if covered < block.committed else ""


def common_rights(parts: Iterable[Part]) -> dict[int, int] | None:
    """The rights that each device has on every mapped part; None if no part is mapped."""
    common: dict[int, int] | None = None
    for part in parts:
        if part.mapping is not None:
            rights = part.mapping.rights
            common = (
                dict(rights) if common is None else {d: common[d] & rights[d] for d in common.keys() & rights.keys()}
            )
    return common


def _shares(parts: Iterable[Part], others: Iterable[Part]) -> bool:
    return any(
        one.memory is two.memory and one.low < two.high and two.low < one.high for one in parts for two in others
    )
