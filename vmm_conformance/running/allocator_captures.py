"""Captures of the contract ``allocator``: what the runner captures and launches, and what it tells the subject."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from vmm_conformance.contracts import DriverError, Range, capability
from vmm_conformance.programs import allocator as ops
from vmm_conformance.running.allocator_parts import OK, Held, Parts, skipped
from vmm_conformance.running.outcome import Outcome


class Captured:
    """One capture. ``kept`` are the blocks of before that its work reads, which the caller keeps; ``graph`` and
    ``launchable`` are the driver's, 0 before the capture has ended."""

    __slots__ = ("graph", "kept", "launchable", "new", "stream", "under_way")

    def __init__(self, stream: int) -> None:
        self.stream = stream
        self.under_way = True
        self.graph = self.launchable = 0
        self.kept: set[int] = set()
        self.new: set[int] = set()
        """Blocks that were allocated or resized while it was under way."""


class Captures(Parts):
    """What a run does for captures. There is one at a time on a device."""

    streams_each: int

    def __init__(self, subject: Any) -> None:
        super().__init__(subject)
        self.told_of_captures = bool(capability(subject, "captures"))
        self.captures: dict[int, Captured] = {}

    def capturing(self, stream: int) -> Captured | None:
        """The capture that is under way on a stream."""
        capture = self.captures.get(stream // self.streams_each)
        return capture if capture and capture.under_way and capture.stream == stream else None

    def capture_reads(self, held: Held, stream: int) -> None:
        """Submit, to a stream that is captured, work that reads the block's start and end."""
        capture, base = self.captures[held.device], held.block.address
        if held.id not in capture.new:
            capture.kept.add(held.id)
        word = min(8, held.size)
        reads = [Range(base, word), Range(base + held.size - word, word)]
        self.driver.launch(self.streams[stream], reads=reads)

    def resized(self, held: Held) -> None:
        """A block was made or resized: while a capture is under way it is the allocator's to keep."""
        capture = self.captures.get(held.device)
        if capture and capture.under_way:
            capture.new.add(held.id)
            capture.kept.discard(held.id)

    def is_kept(self, held: Held) -> bool:
        """Whether the caller keeps the block as it is, for work that was captured."""
        capture = self.captures.get(held.device)
        return capture is not None and not capture.under_way and held.id in capture.kept

    def wait(self, *blocks: Held) -> None:
        """A stream that is captured cannot be waited for."""
        for held in blocks if self.immediate else ():
            if self.capturing(held.last.stream):
                self.end_capture(held.device)
        super().wait(*blocks)

    def _open(self, device: int) -> Outcome:
        raise NotImplementedError

    # -- the operations

    def captures_table(self) -> dict[type, Callable[[Any], Outcome]]:
        """What to do for each kind of operation that is about captures."""
        return {
            ops.Capture: self._capture,
            ops.EndCapture: lambda operation: self.end_capture(operation.device % self.devices),
            ops.Replay: self._replay,
            ops.DropCapture: lambda operation: self.drop_capture(operation.device % self.devices),
        }

    def _pause(self, operation: ops.Pause) -> Outcome:
        """Captured work needs its memory: what was captured is dropped before a pause, or there is none."""
        dropped = self.drop_capture(operation.device % self.devices) if self.ways else OK
        return super()._pause(operation) if dropped["status"] == "ok" else dropped

    def _capture(self, operation: ops.Capture) -> Outcome:
        stream = operation.stream % len(self.streams)
        device = stream // self.streams_each
        if not self.told_of_captures or not self.awake(device):
            return skipped("the subject does not declare captures, or stays paused")
        opened = self._open(device)
        if opened["status"] != "ok":
            return opened
        dropped = self.drop_capture(device)
        if dropped["status"] != "ok":
            return dropped
        handle, allocator = self.streams[stream], self.allocators[device]
        outcome, _ = self._call(
            "begin_capture", device, lambda: allocator.begin_capture(stream=handle), stream=handle
        )
        if outcome["status"] == "ok":
            self.driver.graph_begin(handle)
            self.captures[device] = Captured(stream)
        return outcome

    def end_capture(self, device: int) -> Outcome:
        """End the capture on a device, if one is under way. A subject may have spoiled it."""
        capture = self.captures.get(device)
        if capture is None or not capture.under_way:
            return skipped("nothing is captured on this device")
        handle, allocator = self.streams[capture.stream], self.allocators[device]
        capture.under_way = False
        try:
            capture.graph = self.driver.graph_end(handle)
            capture.launchable = self.driver.graph_instantiate(capture.graph)
        except DriverError as error:
            self.recorder.note("spoiled", device=device, stream=handle, error=str(error))
        return self._call("end_capture", device, lambda: allocator.end_capture(stream=handle), stream=handle)[0]

    def _replay(self, operation: ops.Replay) -> Outcome:
        device = operation.device % self.devices
        capture = self.captures.get(device)
        if capture is None or not capture.launchable:
            return skipped("nothing was captured on this device")
        first = device * self.streams_each
        for stream in range(first, first + self.streams_each):
            self._order(ops.Order(stream, capture.stream))
        self.driver.graph_launch(capture.launchable, self.streams[capture.stream])
        for held in self.on(device):
            held.last = self.order.submit(capture.stream)
        return OK

    def drop_capture(self, device: int) -> Outcome:
        """Give up what was captured on a device, if anything was."""
        self.end_capture(device)
        capture = self.captures.get(device)
        if capture is None:
            return OK
        if capture.launchable:
            self.driver.graph_exec_destroy(capture.launchable)
            self.driver.graph_destroy(capture.graph)
            capture.launchable = 0
        handle, allocator = self.streams[capture.stream], self.allocators[device]
        outcome, _ = self._call("drop_capture", device, lambda: allocator.drop_capture(stream=handle), stream=handle)
        if outcome["status"] == "ok":
            del self.captures[device]
        return outcome
