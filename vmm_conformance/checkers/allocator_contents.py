"""What blocks hold: ALLOCATOR-4, and what is carried: 6, 11 and 14.

Read back by the caller's own queued work, judged when it ran.
"""

from __future__ import annotations

from typing import NamedTuple

from vmm_conformance.checkers.allocator_calls import Block, Call, Family, Ledger
from vmm_conformance.checkers.judge import Judge
from vmm_conformance.contracts import Range
from vmm_conformance.history.events import Event
from vmm_conformance.history.replay import Replay

KEPT = "ALLOCATOR-4"
CARRIED = {"grow": "ALLOCATOR-6", "shrink": "ALLOCATOR-11", "pause": "ALLOCATOR-14"}
"""The call that carries contents from one place or time to another, to the invariant that answers for it."""
SINCE = {"": "it was written", **{id: f"the last {name}" for name, id in CARRIED.items()}}


class _Awaited(NamedTuple):
    """One read: the token it must find ``offset`` bytes into the block; ``place`` counts the reads.

    ``carrier`` is the invariant that answers for it, if a call has carried it and nothing has read it since.
    """

    place: int
    offset: int
    token: bytes
    carrier: str


class Contents(Family):
    """Models each block's tokens in the order in which its work was submitted.

    The caller keeps all uses of one block in order, so what was written last before a read is what the
    read must find, whenever it runs.
    """

    def __init__(self, replay: Replay, ledger: Ledger, judge: Judge) -> None:
        super().__init__(replay, ledger, judge)
        self._awaited: dict[int, tuple[Event, Block, list[_Awaited]]] = {}

    def returned(self, call: Call, event: Event) -> None:
        """Whatever a block holds when it was replaced, or its allocator paused, was carried by that."""
        if not call.good or call.name not in CARRIED or (call.name == "pause" and call.asleep):
            return
        for block in [call.block] if call.block else self.ledger.on(call.device):
            kept = call.name != "pause" or call.arguments["backup"]
            block.contents = {
                offset: (token, CARRIED[call.name]) for offset, (token, _) in block.contents.items()
                if kept and offset + len(token) <= block.size
            }  # fmt: skip

    def work(self, event: Event, block: Block | None) -> None:
        """Note what the reads must find, then what the writes leave."""
        if block is None or event.status:
            return
        _, reads, _, writes = event.args
        awaited = []
        for place, (address, size) in enumerate(reads):
            token, carrier = block.contents.get(address - block.address, (b"", ""))
            if len(token) == size:
                awaited.append(_Awaited(place, address - block.address, token, carrier))
                # what carried it is answered for by the first read behind it
                block.contents[address - block.address] = (token, "")
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
            invariant = one.carrier or KEPT
            self.judge.witness(invariant)
            if one.place >= len(data) or data[one.place] != one.token:
                self._wrong(invariant, submitted, block, one, data)

    def _wrong(self, invariant: str, submitted: Event, block: Block, one: _Awaited, data: tuple[bytes, ...]) -> None:
        block.spoiled = True  # one finding tells it
        found = data[one.place] if one.place < len(data) else "nothing"
        since = SINCE[one.carrier]
        self.judge.fail(
            invariant, submitted, f"{block} has lost what it held {one.offset} bytes from its start since {since}",
            expected=one.token, actual=found, range=Range(block.address + one.offset, len(one.token)),
        )  # fmt: skip


def _store(contents: dict[int, tuple[bytes, str]], offset: int, data: bytes) -> None:
    """Enter a token, and forget those that it overwrites."""
    end = offset + len(data)
    for other in [at for at, (token, _) in contents.items() if at < end and offset < at + len(token)]:
        del contents[other]
    contents[offset] = (data, "")
