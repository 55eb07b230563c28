"""Makes the calls that the operations of the contract ``driver`` stand for. See `running.driver`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from vmm_conformance.contracts import Driver, Range
from vmm_conformance.history.events import HARNESS, SUBJECT
from vmm_conformance.history.state import Mapping
from vmm_conformance.programs import driver_operations as ops
from vmm_conformance.running.driver_calls import Calls
from vmm_conformance.running.driver_probes import Probes
from vmm_conformance.running.driver_ranges import Party
from vmm_conformance.running.recorder import Recorder

_KEPT = 8
"""How many ranges and handles of the past are remembered."""

_TAKES_AWAY: Final = frozenset({"unmap", "set_access", "free", "address_free"})
"""Calls before which the harness waits for work in flight."""

class Actions(Calls):
    """One method for each kind of operation. It returns the status, None if nothing was there to do."""

    def __init__(
        self, recorder: Recorder, granule: int, spaces: tuple[int, ...], reopen: Callable[[], Driver]
    ) -> None:
        super().__init__(recorder, granule)
        self.reopen = reopen
        self.probes = Probes(self)
        capabilities = recorder.history.header["capabilities"]
        self._waits = capabilities.unmap_waits
        self._across = capabilities.copy_spans_reservations
        self._spaces = spaces
        self._streams: dict[int, int] = {}
        self._capture: int | None = None
        self._capturing = False

    def begin(self) -> None:
        """Note how much memory is free before the program."""
        self.probes.memory()

    def perform(self, operation: Any) -> int | None:
        """Make the call that ``operation`` stands for, then look around."""
        return _PERFORM[type(operation)](self, operation)

    # -- calls on memory

    def _memory_call(self, kind: str, args: tuple[Any, ...] | None, *, settle: bool = True) -> int | None:
        """Make a call of the program, with a look before and after at what it may touch."""
        if args is None:
            return None
        waits = kind == "unmap" and self._waits
        if kind in _TAKES_AWAY and self.pending and not waits:
            self.settle()
        watched = self.probes.watched(kind, args)
        status = self.call(SUBJECT, kind, *args)
        result, error = self.result, self.error
        if status == 0:
            self._remember(kind, args)
        self.probes.after(kind, args, status, watched, result)
        self.result, self.error = result, error
        return status

    def _remember(self, kind: str, args: tuple[Any, ...]) -> None:
        past: list[Any]
        if kind == "address_free":
            past = self.ranges.freed
            past.append(Range(*args))
        elif kind == "unmap":
            past = self.ranges.unmapped
            past.append(Range(*args))
        elif kind == "release":
            past = self.ranges.dead
            past.append(args[0])
        else:
            return
        del past[:-_KEPT]

    def _reserve(self, op: ops.Reserve) -> int | None:
        return self._memory_call("reserve", self.ranges.reserve(op))

    def _address_free(self, op: ops.AddressFree) -> int | None:
        return self._memory_call("address_free", self.ranges.address_free(op))

    def _create(self, op: ops.Create) -> int | None:
        if op.twist == "bad-space" and self.real:
            return None  # memory spaces are a convention of clients there
        return self._memory_call("create", self.ranges.create(op))

    def _retain(self, op: ops.Retain) -> int | None:
        return self._memory_call("retain", self.ranges.retain(op))

    def _release(self, op: ops.Release) -> int | None:
        if op.twist == "stale" and self.real:
            return None
        return self._memory_call("release", self.ranges.release(op))

    def _map(self, op: ops.Map) -> int | None:
        return self._memory_call("map", self.ranges.map(op))

    def _unmap(self, op: ops.Unmap) -> int | None:
        return self._memory_call("unmap", self.ranges.unmap(op))

    def _set_access(self, op: ops.SetAccess) -> int | None:
        return self._memory_call("set_access", self.ranges.set_access(op))

    def _alloc(self, op: ops.Alloc) -> int | None:
        device = op.device % self.ranges.devices
        return self._memory_call("alloc", (op.size, device, self._spaces[op.space % len(self._spaces)]))

    def _free(self, op: ops.Free) -> int | None:
        allocations = self.state.allocations
        chosen = allocations[op.allocation % len(allocations)] if allocations else None
        return self._memory_call("free", (chosen.address,) if chosen else None)

    def _get_access(self, op: ops.GetAccess) -> int | None:
        return self._memory_call("get_access", self.ranges.get_access(op))

    def _address_range(self, op: ops.AddressRange) -> int | None:
        return self._memory_call("address_range", self.ranges.address_range(op))

    def _cycle(self, op: ops.Cycle) -> int | None:
        """Unmap and map again, which keeps the memory only while the program holds a reference."""
        chosen = [m for m in self.state.mappings if m.memory.references > 0]
        if not chosen:
            return None
        mapping = chosen[op.mapping % len(chosen)]
        status: int | None = None
        for _ in range(op.times):
            status = self._again(mapping)
            found = self.state.mapping_at(mapping.address)
            if status != 0 or found is None:
                break
            mapping = found
        self.probes.mapping(mapping)
        return status

    def _again(self, mapping: Mapping) -> int | None:
        place = (mapping.address, mapping.size)
        rights = tuple(sorted(mapping.rights.items()))
        status = self._memory_call("unmap", place)
        if status == 0:
            status = self._memory_call("map", (*place, mapping.memory.handle, mapping.offset))
        if status == 0 and rights:
            status = self._memory_call("set_access", (*place, rights))
        return status

    # -- calls that move bytes

    def _party(self, stream: int | None) -> Party:
        return Party(None if stream is None else self._stream_number(stream) % self.ranges.devices)

    def _stream_number(self, stream: int) -> int:
        """Two streams a device; stream n belongs to device n modulo their count."""
        return stream % (2 * self.ranges.devices)

    def _stream(self, stream: int | None) -> int | None:
        if stream is None:
            return None
        number = self._stream_number(stream)
        if number not in self._streams:
            self.call(HARNESS, "stream_create", number % self.ranges.devices)
            self._streams[number] = self.result or 0
        return self._streams[number]

    def _undefined(self, twist: str, stream: int | None) -> bool:
        undefined = ("denied", "read-only", "reserved", *(() if self._across else ("across",)))
        return self.real and stream is not None and twist in undefined

    def _write(self, op: ops.Write) -> int | None:
        found = self.ranges.data(op, self._party(op.stream), write=True)
        if found is None or self._undefined(op.twist, op.stream):
            return None
        data = b"".join(self.tokens.take() for _ in range(found.size // 8 + 1))
        return self._memory_call("write", (found.address, data[: found.size], self._stream(op.stream)))

    def _read(self, op: ops.Read) -> int | None:
        found = self.ranges.data(op, self._party(op.stream), write=False)
        if found is None or self._undefined(op.twist, op.stream):
            return None
        return self._memory_call("read", (*found, self._stream(op.stream)))

    def _copy(self, op: ops.Copy) -> int | None:
        found = self.ranges.copy(op, self._party(op.stream))
        return self._memory_call("copy", (*found, self._stream(op.stream))) if found else None

    def _synchronize(self, op: ops.Synchronize) -> int | None:
        stream = self._streams.get(self._stream_number(op.stream))
        return None if stream is None else self.call(SUBJECT, "stream_synchronize", stream)

    # -- capture

    def _toggle_capture(self, op: ops.Capture) -> int | None:
        if self._capturing:
            return self._end_capture(SUBJECT)
        if self._capture is None:
            self.call(HARNESS, "stream_create", 0)
            self._capture = self.result or 0
        status = self.call(SUBJECT, "graph_begin", self._capture)
        self._capturing = status == 0
        return status

    def _end_capture(self, who: str) -> int:
        """End the capture, launch what it holds (nothing), and see that memory is as before."""
        self._capturing = False
        status = self.call(who, "graph_end", self._capture)
        if status != 0:
            return status
        graph = self.result
        status = self.call(who, "graph_instantiate", graph)
        if status == 0:
            executable = self.result
            status = self.call(who, "graph_launch", executable, self._capture)
            self.call(HARNESS, "stream_synchronize", self._capture)
            self.call(HARNESS, "graph_exec_destroy", executable)
        self.call(HARNESS, "graph_destroy", graph)
        self.probes.memory()
        return status

    # -- the end

    def finish(self) -> None:
        """Look at everything once more, then give everything back."""
        if self._capturing:
            self._end_capture(HARNESS)
        self.settle()
        for mapping in self.state.mappings:
            self.probes.mapping(mapping, thorough=True)
        complete = self._give_back()
        self.probes.memory()
        self.recorder.note("teardown", complete=complete, live=self._live())

    def _live(self) -> tuple[int, ...] | None:
        try:
            return tuple(self.recorder.driver.live())
        except Exception:  # a driver need not keep count for us; what it gave back shows in free memory
            return None

    def _give_back(self) -> bool:
        """Whether the driver took everything back."""
        state, calls = self.state, list[int]()
        for stream in (*self._streams.values(), *([] if self._capture is None else [self._capture])):
            self.call(HARNESS, "stream_destroy", stream)
        for mapping in state.mappings:
            calls.append(self._memory_call_by_harness("unmap", mapping.address, mapping.size))
        for memory in list(state.handles.values()):
            for _ in range(memory.references):
                calls.append(self._memory_call_by_harness("release", memory.handle))
        calls += [self._memory_call_by_harness("free", memory.address) for memory in state.allocations]
        for reservation in list(state.reservations.values()):
            calls.append(self._memory_call_by_harness("address_free", reservation.address, reservation.size))
        return not any(calls)

    def _memory_call_by_harness(self, kind: str, *args: Any) -> int:
        return self.call(HARNESS, kind, *args)


def free_granules(actions: Actions, device: int) -> int:
    """How many granules are free, by what the driver said last."""
    return actions.ranges.free[device] // actions.ranges.granule


_PERFORM: Final[dict[type, Callable[[Actions, Any], int | None]]] = {
    ops.Reserve: Actions._reserve,
    ops.AddressFree: Actions._address_free,
    ops.Create: Actions._create,
    ops.Retain: Actions._retain,
    ops.Release: Actions._release,
    ops.Map: Actions._map,
    ops.Unmap: Actions._unmap,
    ops.SetAccess: Actions._set_access,
    ops.GetAccess: Actions._get_access,
    ops.AddressRange: Actions._address_range,
    ops.Write: Actions._write,
    ops.Read: Actions._read,
    ops.Copy: Actions._copy,
    ops.Synchronize: Actions._synchronize,
    ops.Capture: Actions._toggle_capture,
    ops.Alloc: Actions._alloc,
    ops.Free: Actions._free,
    ops.Cycle: Actions._cycle,
}
