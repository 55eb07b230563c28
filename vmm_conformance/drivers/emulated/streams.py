"""Streams, events, capture, and what happens on the host in a stream's order."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterable
from time import perf_counter
from typing import Any, Final

from vmm_conformance.contracts import Driver, DriverError, Fault, Status, Work
from vmm_conformance.drivers.emulated.machine import SUCCESS
from vmm_conformance.drivers.emulated.memory import MemoryCalls

Action = Callable[[Work], None]
"""Something that the host side of the library does when queued work has run."""

LEGACY, PER_THREAD = 1, 2
"""The handles of the default streams; 0 is the legacy one too."""
OFFSET: Final = 0x1000
_NON_BLOCKING: Final = 1
_UNTIMED: Final = 2
_NOT_CAPTURING, _CAPTURING = 0, 1


class Capture:
    """What a stream captures beside the driver's own work.

    ``outputs`` are the places in host memory that captured reads fill, in order; ``after`` is what the host does
    when a launch is through.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self.outputs: list[tuple[int, int]] = []
        self.after: list[Action] = []


class Stream:
    """A stream of the driver's. ``turn`` counts what was submitted, ``waited`` how much of others it has waited for."""

    __slots__ = ("blocking", "capture", "device", "fault", "flags", "id", "priority", "synced", "turn", "waited")

    def __init__(self, identity: int, device: int, flags: int, priority: int) -> None:
        self.id = identity
        self.device = device
        self.flags = flags
        self.priority = priority
        self.blocking = not flags & _NON_BLOCKING
        self.turn = 0
        self.synced = 0
        self.waited: dict[int, int] = {}
        self.capture: Capture | None = None
        self.fault: Fault | None = None


class StreamCalls(MemoryCalls):
    """The legacy default stream waits for all blocking streams of its device, and they for it.

    Work that faults makes the next call that waits for its stream answer 700. On a GPU every call would answer so
    from then on; here it is said once, so that a program can be judged to its end. With ``tell_works`` a thread is
    told by `take_works` what work its calls have queued.
    """

    tell_works = False

    def _forget_all(self) -> None:
        super()._forget_all()
        self._streams: dict[int, Stream] = {}
        self._legacy: dict[int, Stream] = {}
        self._per_thread: dict[tuple[int, int], Stream] = {}
        self._recorded: dict[int, tuple[float, Stream]] = {}
        self._untimed: set[int] = set()
        self._pending: dict[int, tuple[Stream, Action | None]] = {}
        self._captures = 0
        self.tell_works = False

    # -- work

    def ran(self, work: Work) -> None:
        """Queued work of the driver has run: the driver's listener has to say so."""
        pending = self._pending.pop(work.id, None)
        if pending is not None:
            self._over(work, *pending)

    def _over(self, work: Work, stream: Stream, action: Action | None) -> None:
        if work.fault is not None:
            stream.fault = work.fault
        elif action is not None:
            action(work)

    def _submitted(self, stream: Stream, work: Work, action: Action | None = None) -> int:
        """``work`` is queued; when it has run ``action`` follows, before anything behind it runs."""
        stream.turn += 1
        if self.tell_works:
            self._caller.works.append(work)
        if work.done:
            self._over(work, stream, action)
        else:
            self._pending[work.id] = (stream, action)
        return SUCCESS

    def take_works(self) -> list[Work]:
        """The driver's work that the calling thread has queued since it asked last."""
        works, self._caller.works = self._caller.works, []
        return works

    def _then(self, stream: Stream, action: Action) -> int:
        """Do something on the host in the stream's order."""
        if stream.capture is not None:
            stream.capture.after.append(action)
            return SUCCESS
        return self._submitted(stream, self._driver.launch(stream.id), action)

    def _told(self, streams: Iterable[Stream]) -> int:
        """What a call answers that has waited for streams: whether work of theirs has faulted."""
        fault = None
        for stream in streams:
            fault, stream.fault = stream.fault or fault, None
        if fault is not None:
            where = f"{fault.address:#x}+{fault.size}"
            raise DriverError(Status.ILLEGAL_ADDRESS, "queued work", f"work on {where} met a fault: {fault.reason}")
        return SUCCESS

    # -- which stream

    def _stream(self, handle: int) -> Stream:
        return self._streams.get(handle) or self._default(handle)

    def _default(self, handle: int) -> Stream:
        if handle > PER_THREAD:
            self.refuse(Status.INVALID_HANDLE, "stream", f"{handle:#x} is no stream, or is destroyed")
        device = self._device()
        if handle == PER_THREAD:
            key = (device, threading.get_ident())
            return self._per_thread.get(key) or self._per_thread.setdefault(key, self._make(self._under, device))
        return self._legacy.get(device) or self._legacy.setdefault(device, self._make(self._under, device))

    def _make(self, driver: Driver, device: int, flags: int = 0, priority: int = 0) -> Stream:
        stream = Stream(driver.stream_create(device), device, flags, priority)
        self._streams[stream.id + OFFSET] = stream
        return stream

    def _order(self, stream: Stream) -> Stream:
        """The stream, once it waits for what the default stream's rules say."""
        legacy = self._legacy.get(stream.device)
        if legacy is None or not stream.blocking:
            return stream
        others = self._blocking(stream.device) if stream is legacy else [legacy]
        for other in others:
            if other.capture is None and stream.capture is None and stream.waited.get(other.id, 0) < other.turn:
                event = self._driver.event_create(other.device)
                self._driver.event_record(event, other.id)
                self._driver.stream_wait_event(stream.id, event)
                self._driver.event_destroy(event)
                stream.waited[other.id] = other.turn
                stream.turn += 1
        return stream

    def _blocking(self, device: int) -> list[Stream]:
        legacy = self._legacy.get(device)
        return [s for s in self._streams.values() if s.blocking and s.device == device and s is not legacy]

    def _host_turn(self) -> int:
        """A call without a stream waits for the default stream, and so for every blocking one."""
        if not self._streams:
            return SUCCESS
        device = self._device()
        waited = []
        for stream in list(self._streams.values()):
            if stream.blocking and stream.device == device and stream.synced < stream.turn and stream.capture is None:
                self._driver.stream_synchronize(stream.id)
                stream.synced = stream.turn
                waited.append(stream)
        return self._told(waited)

    def _settle(self) -> None:
        for stream in list(self._streams.values()):
            if stream.synced < stream.turn and stream.capture is None:
                self._driver.stream_synchronize(stream.id)
                stream.synced = stream.turn

    # -- streams

    def stream_create(self, out: Any, flags: int) -> int:
        return self.stream_create_ranked(out, flags, 0)

    def stream_create_plain(self, out: Any) -> int:
        return self.stream_create_ranked(out, 0, 0)

    def stream_create_ranked(self, out: Any, flags: int, priority: int) -> int:
        if not out or flags & ~_NON_BLOCKING:
            self.invalid("StreamCreate")
        out[0] = self._make(self._driver, self._device(), flags, priority).id + OFFSET
        return SUCCESS

    def stream_destroy(self, handle: int) -> int:
        if handle <= PER_THREAD:
            self.refuse(Status.INVALID_HANDLE, "StreamDestroy", "the default streams stay")
        self._driver.stream_destroy(self._stream(handle).id)
        del self._streams[handle]
        return SUCCESS

    def stream_synchronize(self, handle: int) -> int:
        stream = self._order(self._stream(handle))
        self._driver.stream_synchronize(stream.id)
        stream.synced = stream.turn
        return self._told((stream,))

    def stream_query(self, handle: int) -> int:
        stream = self._order(self._stream(handle))
        done = self._driver.stream_query(stream.id)
        self._told((stream,))
        return SUCCESS if done else Status.NOT_READY

    def stream_wait(self, handle: int, event: int, flags: int) -> int:
        stream = self._order(self._stream(handle))
        self._driver.stream_wait_event(stream.id, event - OFFSET)
        stream.turn += 1
        return SUCCESS

    def device_synchronize(self) -> int:
        device = self._device()
        self._driver.device_synchronize(device)
        streams = [stream for stream in self._streams.values() if stream.device == device]
        for stream in streams:
            stream.synced = stream.turn
        return self._told(streams)

    def context_synchronize(self, context: int) -> int:
        return self.device_synchronize()

    def stream_flags(self, handle: int, out: Any) -> int:
        out[0] = self._stream(handle).flags
        return SUCCESS

    def stream_priority(self, handle: int, out: Any) -> int:
        out[0] = self._stream(handle).priority
        return SUCCESS

    def stream_context(self, handle: int, out: Any) -> int:
        out[0] = self._context_of(self._stream(handle).device)
        return SUCCESS

    def stream_device(self, handle: int, out: Any) -> int:
        out[0] = self._stream(handle).device
        return SUCCESS

    def stream_id(self, handle: int, out: Any) -> int:
        out[0] = self._stream(handle).id
        return SUCCESS

    def stream_behind(self, handle: int) -> int:
        """The driver's number of a stream."""
        return self._stream(handle).id

    # -- the host in a stream's order

    def host_function(self, handle: int, function: int, data: int) -> int:
        if not function:
            self.invalid("LaunchHostFunc")
        call = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(function)
        return self._then(self._order(self._stream(handle)), lambda _: call(data))

    def stream_callback(self, handle: int, function: int, data: int, flags: int) -> int:
        if not function:
            self.invalid("StreamAddCallback")
        call = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)(function)
        return self._then(self._order(self._stream(handle)), lambda _: call(handle, SUCCESS, data))

    # -- capture

    def stream_begin(self, handle: int, mode: int) -> int:
        stream = self._stream(handle)
        self._driver.graph_begin(stream.id)
        self._captures += 1
        stream.capture = Capture(self._captures)
        return SUCCESS

    def stream_capturing(self, handle: int, out: Any) -> int:
        if not out:
            self.invalid("StreamIsCapturing")
        out[0] = _NOT_CAPTURING if self._stream(handle).capture is None else _CAPTURING
        return SUCCESS

    def capture_state(self, handle: int, state: Any, number: Any) -> int:
        capture = self._stream(handle).capture
        if state:
            state[0] = _NOT_CAPTURING if capture is None else _CAPTURING
        if number:
            number[0] = 0 if capture is None else capture.number
        return SUCCESS

    def capture_info(self, handle: int, state: Any, number: Any, graph: Any, needs: Any, count: Any) -> int:
        for out in (graph, needs, count):
            if out:
                out[0] = 0
        return self.capture_state(handle, state, number)

    def capture_edges(
        self, handle: int, state: Any, number: Any, graph: Any, needs: Any, edges: Any, count: Any
    ) -> int:
        if edges:
            edges[0] = 0
        return self.capture_info(handle, state, number, graph, needs, count)

    def capture_mode(self, mode: Any) -> int:
        """Every mode is treated as the same, so the one before may as well be the default."""
        if not mode:
            self.invalid("ThreadExchangeStreamCaptureMode")
        mode[0] = 0
        return SUCCESS

    # -- events

    def event_create(self, out: Any, flags: int) -> int:
        if not out:
            self.invalid("EventCreate")
        event = self._driver.event_create(self._device())
        if flags & _UNTIMED:
            self._untimed.add(event)
        out[0] = event + OFFSET
        return SUCCESS

    def event_create_plain(self, out: Any) -> int:
        return self.event_create(out, 0)

    def event_destroy(self, event: int) -> int:
        self._driver.event_destroy(event - OFFSET)
        self._recorded.pop(event, None)
        self._untimed.discard(event - OFFSET)
        return SUCCESS

    def event_record(self, event: int, handle: int) -> int:
        stream = self._order(self._stream(handle))
        self._driver.event_record(event - OFFSET, stream.id)
        self._recorded[event] = perf_counter(), stream
        stream.turn += 1
        return SUCCESS

    def event_record_with(self, event: int, handle: int, flags: int) -> int:
        return self.event_record(event, handle)

    def event_synchronize(self, event: int) -> int:
        self._driver.event_synchronize(event - OFFSET)
        return self._told_by(event)

    def _told_by(self, event: int) -> int:
        recorded = self._recorded.get(event)
        return self._told(recorded[1:]) if recorded else SUCCESS

    def event_query(self, event: int) -> int:
        done = self._driver.event_query(event - OFFSET)
        self._told_by(event)
        return SUCCESS if done else Status.NOT_READY

    def event_elapsed(self, out: Any, start: int, end: int) -> int:
        """Milliseconds between the calls that recorded the events: device time is not emulated."""
        first, last = self._recorded.get(start), self._recorded.get(end)
        if not out or not first or not last or {start - OFFSET, end - OFFSET} & self._untimed:
            self.refuse(Status.INVALID_HANDLE, "EventElapsedTime", "an event is not recorded, or has no time")
        if not self._driver.event_query(end - OFFSET):
            return Status.NOT_READY
        out[0] = 1000 * (last[0] - first[0])
        return SUCCESS
