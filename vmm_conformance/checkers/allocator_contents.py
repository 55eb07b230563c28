"""What blocks hold: ALLOCATOR-4 and 6. Read back by the caller's own queued work, judged when it ran."""

from __future__ import annotations

from typing import NamedTuple

from vmm_conformance.checkers.allocator_calls import Block, Call, Family, Ledger
from vmm_conformance.checkers.judge import Judge
from vmm_conformance.contracts import Range
from vmm_conformance.history.events import Event
from vmm_conformance.history.replay import Replay

KEPT, CARRIED = "ALLOCATOR-4", "ALLOCATOR-6"


class _Awaited(NamedTuple):
    """One read: the token it must find ``offset`` bytes into the block; ``place`` counts the reads."""

    place: int
    offset: int
    token: bytes
    carried: bool


class Contents(Family):
    """Models each block's tokens in the order in which its work was submitted.

    The caller keeps all uses of one block in order, so what was written last before a read is what the
    read must find, whenever it runs.
    """

    def __init__(self, replay: Replay, ledger: Ledger, judge: Judge) -> None:
        super().__init__(replay, ledger, judge)
        self._awaited: dict[int, tuple[Event, Block, list[_Awaited]]] = {}

    def returned(self, call: Call, event: Event) -> None:
        """Whatever a block holds when it has grown was carried by that growth."""
        if call.good and call.name == "grow" and call.block:
            held = call.block.contents
            call.block.contents = {offset: (token, True) for offset, (token, _) in held.items()}

    def work(self, event: Event, block: Block | None) -> None:
        """Note what the reads must find, then what the writes leave."""
        if block is None or event.status:
            return
        _, reads, _, writes = event.args
        awaited = []
        for place, (address, size) in enumerate(reads):
            token, carried = block.contents.get(address - block.address, (b"", False))
            if len(token) == size:
                awaited.append(_Awaited(place, address - block.address, token, carried))
                # the growth is answered for by the first read behind it
                block.contents[address - block.address] = (token, False)
        if awaited:
            self._awaited[event.result] = (event, block, awaited)
        for address, data in writes:
            _store(block.contents, address - block.address, data)

    def ran(self, event: Event) -> None:
        """Compare what was read."""
        work, data, fault = event.args
        submitted, block, awaited = self._awaited.pop(work, (event, None, []))
        if block is None or block.spoiled:
            return
        if fault:
            block.spoiled = True
            return
        for one in awaited:
            invariant = CARRIED if one.carried else KEPT
            self.judge.witness(invariant)
            if one.place >= len(data) or data[one.place] != one.token:
                self._wrong(invariant, submitted, block, one, data)

    def _wrong(self, invariant: str, submitted: Event, block: Block, one: _Awaited, data: tuple[bytes, ...]) -> None:
        block.spoiled = True  # one finding tells it
        found = data[one.place].hex() if one.place < len(data) else "nothing"
        since = "it grew" if one.carried else "it was written"
        self.judge.fail(
            invariant, submitted, f"{block} has lost what it held {one.offset} bytes from its start since {since}",
            expected=one.token.hex(), actual=found, range=Range(block.address + one.offset, len(one.token)),
        )  # fmt: skip


def _store(contents: dict[int, tuple[bytes, bool]], offset: int, data: bytes) -> None:
    """Enter a token, and forget those that it overwrites."""
    end = offset + len(data)
    for other in [at for at, (token, _) in contents.items() if at < end and offset < at + len(token)]:
        del contents[other]
    contents[offset] = (data, False)
