"""The optional parts of the contract ``allocator``, as the runner carries them out on a subject that declares them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from vmm_conformance.contracts import Block, Driver, Range, Statistics, capability
from vmm_conformance.programs import allocator as ops
from vmm_conformance.running.caller import marks
from vmm_conformance.running.caller_order import CallerOrder, Moment
from vmm_conformance.running.outcome import Outcome
from vmm_conformance.running.recorder import Recorder

OK: Final[Outcome] = {"status": "ok", "code": "", "message": ""}


def outcome_of(status: str, code: str, message: str) -> Outcome:
    """What an operation came to."""
    return {"status": status, "code": code, "message": message}


def skipped(why: str) -> Outcome:
    """An operation that was not done."""
    return outcome_of("skipped", "", why)


class Held:
    """A live block: where its tokens are (offset and length), and the last the caller did with it.

    ``told`` is the stream that the allocator last heard of for it.
    """

    __slots__ = ("block", "device", "id", "last", "marks", "size", "told")

    def __init__(self, identity: int, device: int, block: Block, size: int, last: Moment) -> None:
        self.id = identity
        self.device = device
        self.block = block
        self.size = size
        self.last = last
        self.told = last.stream
        self.marks: list[Range] = []


class Parts:
    """What a run does for the operations of optional parts. The runner gives it calls and work."""

    subject: Any
    driver: Driver
    recorder: Recorder
    devices: int
    streams: list[int]
    order: CallerOrder
    allocators: dict[int, Any]
    live: list[Held]

    def __init__(self, subject: Any) -> None:
        self.subject = subject
        self.paused: set[int] = set()
        self.ways: tuple[str, ...] = tuple(capability(subject, "pause"))
        self.immediate = capability(subject, "deallocate") == "immediate"

    def _call(
        self, name: str, device: int, action: Callable[[], object], block: int = 0, **arguments: Any
    ) -> tuple[Outcome, Block | None]:
        raise NotImplementedError

    def _submit(self, held: Held, stream: int, written: tuple[Range, ...] = ()) -> None:
        raise NotImplementedError

    def _order(self, operation: ops.Order) -> Outcome:
        raise NotImplementedError

    def resized(self, held: Held) -> None:
        """A block was made or resized."""

    # -- the caller's duties

    def wait(self, *blocks: Held) -> None:
        """An allocator that frees at once is called when work on the blocks is over."""
        for held in blocks if self.immediate else ():
            self.driver.stream_synchronize(self.streams[held.last.stream])
            self.order.synchronize(held.last.stream)

    def on(self, device: int) -> list[Held]:
        """The live blocks of a device."""
        return [held for held in self.live if held.device == device]

    def awake(self, device: int) -> bool:
        """Whether blocks of the device may be used; a paused allocator is resumed for it."""
        return device not in self.paused or self._resume(ops.Resume(device))["status"] == "ok"

    # -- the operations

    def parts_table(self) -> dict[type, Callable[[Any], Outcome]]:
        """What to do for each kind of operation, those on a block aside."""
        return {
            ops.Trim: partial(self._plain, "trim", bool(capability(self.subject, "trim"))),
            ops.Statistics: partial(self._plain, "statistics", bool(capability(self.subject, "statistics"))),
            ops.Pause: self._pause,
            ops.Resume: self._resume,
            ops.EnablePeer: self._enable_peer,
        }

    def _plain(self, name: str, declared: bool, operation: Any) -> Outcome:
        """A call without arguments."""
        device = operation.device % self.devices
        if not declared or device not in self.allocators:
            return _not_done(declared, name)
        call = getattr(self.allocators[device], name)
        check = as_statistics if name == "statistics" else _anything
        return self._call(name, device, lambda: check(call()))[0]

    def _shrink(self, held: Held, stream: int, operation: ops.Shrink) -> Outcome:
        if not capability(self.subject, "shrink"):
            return _not_done(False, "shrink")
        size = max(1, operation.size % held.size) if held.size else 1
        self.wait(held)
        allocator, handle = self.allocators[held.device], self.streams[stream]
        outcome, block = self._call(
            "shrink",
            held.device,
            lambda: as_block("shrink", allocator.shrink(held.block, size, stream=handle)),
            held.id,
            size=size,
            stream=handle,
        )
        if block is not None:
            held.block, held.size, held.told = block, size, stream
            self.resized(held)
            held.marks = [mark for mark in held.marks if mark.end <= size]
            held.last = self.order.submit(stream)
            self._submit(held, stream)
            self._submit(held, stream, marks(size)[-1:])
        return outcome

    def _pause(self, operation: ops.Pause) -> Outcome:
        device = operation.device % self.devices
        if not self.ways or device not in self.allocators:
            return _not_done(bool(self.ways), "pause")
        wanted = "backup" if operation.backup else "discard"
        backup = (wanted if wanted in self.ways else self.ways[0]) == "backup"
        for held in self.on(device):
            if not self.order.ordered(held.last, held.told):
                # The allocator cannot know of work on a stream that it was never told of.
                self._order(ops.Order(held.last.stream, held.told))
        self.wait(*self.on(device))
        call = self.allocators[device].pause
        outcome, _ = self._call("pause", device, lambda: call(backup=backup), backup=backup)
        if outcome["status"] == "ok" and device not in self.paused:
            self.paused.add(device)
            for held in self.on(device) if not backup else ():
                held.marks = []
        return outcome

    def _resume(self, operation: ops.Resume) -> Outcome:
        device = operation.device % self.devices
        if not self.ways or device not in self.allocators:
            return _not_done(bool(self.ways), "resume")
        outcome, _ = self._call("resume", device, self.allocators[device].resume)
        if outcome["status"] == "ok" and device in self.paused:
            self.paused.discard(device)
            for held in self.on(device):
                self._submit(held, held.last.stream)
        return outcome

    def _enable_peer(self, operation: ops.EnablePeer) -> Outcome:
        device = operation.device % self.devices
        others = [other for other in range(self.driver.device_count) if other != device]
        declared = bool(capability(self.subject, "late_peers"))
        if not declared or not others or device not in self.allocators:
            return _not_done(declared, "enable_peer")
        call, peer = self.allocators[device].enable_peer, others[operation.peer % len(others)]
        return self._call("enable_peer", device, lambda: call(peer), peer=peer)[0]


def _not_done(declared: bool, name: str) -> Outcome:
    return skipped("nothing is open on this device" if declared else f"the subject does not declare {name}")


def _anything(answer: object) -> object:
    return answer


def as_block(call: str, answer: object) -> Block:
    """``answer`` as a block. Raises ``TypeError``, a crash of the subject, if it is none."""
    if isinstance(answer, Block) and all(type(number) is int for number in answer):
        return answer
    raise TypeError(f"{call} returned {answer!r} where a Block (address, size, committed) was expected")


def as_statistics(answer: object) -> Statistics:
    """``answer`` as statistics. Raises ``TypeError``, a crash of the subject, if it is none."""
    if isinstance(answer, Statistics) and all(type(number) is int for number in answer):
        return answer
    raise TypeError(f"statistics returned {answer!r} where Statistics (requested, committed, reserved) were expected")
