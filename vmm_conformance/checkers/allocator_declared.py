"""What an allocator declares in numbers: its address space, and the paths of its calls. ALLOCATOR-22 and 23."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from vmm_conformance.checkers.allocator_calls import Call, Family, Ledger
from vmm_conformance.checkers.judge import Judge
from vmm_conformance.history.events import Event
from vmm_conformance.history.replay import Replay

ADDRESSES, PATHS = "ALLOCATOR-22", "ALLOCATOR-23"
STAYS: Final = {"in place": True, "moved": False}
"""The ways that show in a block's address."""


class Addresses(Family):
    """The address space that is reserved on a device stays within what was declared."""

    def driver_call(self, event: Event, call: Call | None) -> None:
        """Count what is reserved; judge each reservation."""
        if event.status:
            return
        if event.kind == "address_free":
            self.ledger.reserved.pop(event.args[0], None)
        elif event.kind == "reserve" and call and call.device in self.ledger.room:
            self.ledger.reserved[event.result] = call.device, event.args[0]
            held, most = self.ledger.addresses(call.device), self.ledger.room[call.device]
            times = self.replay.history.header["address_space"]
            self.judge.expect(
                ADDRESSES, event, held <= most, f"{call} takes more address space than is declared",
                expected=f"at most {most} bytes reserved, {times} times the device's memory", actual=f"{held} bytes",
            )  # fmt: skip


class Paths(Family):
    """Each call that goes well takes one of its paths, says so, and has the effect that the path has."""

    def __init__(self, replay: Replay, ledger: Ledger, judge: Judge) -> None:
        super().__init__(replay, ledger, judge)
        self._declared: tuple[str, ...] = replay.history.header.get("paths", ())
        self._counts: dict[int, Mapping[str, int]] = {}
        self._address = 0

    def called(self, call: Call) -> None:
        """Where the block is before it is resized; a fresh allocator has taken no path."""
        self._address = call.block.address if call.block else 0
        if call.name == "open":
            self._counts.pop(call.device, None)

    def returned(self, call: Call, event: Event) -> None:
        """Judge what the allocator says of a call that went well; of one that failed it may say anything."""
        told: Mapping[str, int] | None = call.answer.get("paths")
        if told is None:
            return
        before = self._counts.get(call.device, {})
        self._counts[call.device] = told
        if not call.good:
            return
        took = {path: n - before.get(path, 0) for path, n in told.items() if n != before.get(path, 0)}
        own = [path for path in self._declared if path.startswith(f"{call.name}/")]
        right = list(took.values()) == [1] and next(iter(took)) in own
        lie = right and self._lie(next(iter(took)), call)
        if right and not lie:
            self.judge.witness(f"{PATHS}:{next(iter(took))}")
            return
        self.judge.fail(
            PATHS, event, f"{call} does not tell which path it took", expected=f"one more of {' or '.join(own)}",
            actual=lie or ", ".join(f"{path} {n:+}" for path, n in took.items()) or "nothing is counted",
        )  # fmt: skip

    def _lie(self, path: str, call: Call) -> str:
        """In what the effect of the call is not that of the path."""
        stays = STAYS.get(path.partition("/")[2])
        if call.block is None or call.name == "allocate" or stays is None:
            return ""
        stayed = call.block.address == self._address
        where = f"the block is at {call.block.address:#x} and was at {self._address:#x}"
        return "" if stays == stayed else f"{path}, but {where}"
