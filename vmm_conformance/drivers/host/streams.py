"""Streams and events: in-order queues whose work runs only when something makes it run."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final, TypeAlias

from vmm_conformance.contracts import DriverError, DriverOptions, Fault, Status, Work, WorkListener
from vmm_conformance.drivers.host.objects import Mapping
from vmm_conformance.drivers.host.work import HostWork, Job, Operation


class Point:
    """One moment of a stream: what an event's record marks and a wait waits for."""

    __slots__ = ("done", "stream")

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.done = False


class Task:
    """Queued work: all its jobs run as one item, or none does. ``serial`` is the driver's at submission."""

    __slots__ = ("jobs", "serial", "work")

    def __init__(self, work: Work, jobs: Sequence[Job], serial: int) -> None:
        self.work = work
        self.jobs = jobs
        self.serial = serial


class Record:
    """The stream reaches ``point``."""

    __slots__ = ("point",)

    def __init__(self, point: Point) -> None:
        self.point = point


class Wait:
    """The stream goes no further before ``point`` is reached."""

    __slots__ = ("point",)

    def __init__(self, point: Point) -> None:
        self.point = point


Item: TypeAlias = Task | Record | Wait


class Capture:
    """What a stream has captured so far. ``invalid`` once something unsafe was asked of the stream."""

    __slots__ = ("invalid", "operations")

    def __init__(self) -> None:
        self.operations: list[Operation] = []
        self.invalid = False


ASKED: Final = 1000
"""So often in turn, with nothing queued in between, somebody may ask whether held work is over."""


class Stream:
    """An in-order queue of one device."""

    __slots__ = ("capture", "device", "id", "queue")

    def __init__(self, identity: int, device: int) -> None:
        self.id = identity
        self.device = device
        self.queue: deque[Item] = deque()
        self.capture: Capture | None = None


class Event:
    """An event: the moment it was last recorded at, None before the first time."""

    __slots__ = ("device", "point")

    def __init__(self, device: int) -> None:
        self.device = device
        self.point: Point | None = None


class Streams(HostWork):
    """Queues, events and what runs them.

    A destroyed stream keeps its queue: its work runs when the device is synchronized, when something
    waits for it, or when the driver closes.
    """

    def __init__(self, options: DriverOptions) -> None:
        super().__init__(options)
        self._streams: dict[int, Stream] = {}
        self._destroyed: list[Stream] = []
        self._events: dict[int, Event] = {}
        self._listener: WorkListener | None = None
        self._eager = options.schedule == "eager"
        self._holds: dict[int, Point] = {}
        self._asked = 0

    def listen(self, listener: WorkListener | None) -> None:
        """Call ``listener`` with each queued work when it has run or faulted."""
        self._listener = listener

    # -- streams

    def stream_create(self, device: int = 0) -> int:
        with self._lock:
            self._check_location("stream_create", device)
            identity = next(self._ids)
            self._streams[identity] = Stream(identity, device)
            return identity

    def stream_destroy(self, stream: int) -> None:
        with self._lock:
            queue = self._stream("stream_destroy", stream)
            del self._streams[stream]
            queue.capture = None
            if queue.queue:
                self._destroyed.append(queue)

    def stream_synchronize(self, stream: int) -> None:
        with self._lock:
            queue = self._stream("stream_synchronize", stream)
            self._check_not_capturing("stream_synchronize", queue)
            self._drain(queue)

    def stream_query(self, stream: int) -> bool:
        with self._lock:
            queue = self._stream("stream_query", stream)
            self._check_not_capturing("stream_query", queue)
            if queue.queue:
                self._look(queue)
            return not queue.queue

    def hold(self, stream: int) -> None:
        """Let the stream wait for itself: whoever else waits for it is refused, since that would be for ever."""
        with self._lock:
            queue = self._stream("hold", stream)
            self._check_not_capturing("hold", queue, invalidates=False)
            if stream not in self._holds:
                self._holds[stream] = point = Point(queue)
                queue.queue.append(Wait(point))

    def let_go(self, stream: int) -> None:
        with self._lock:
            point = self._holds.pop(stream, None)
            if point is not None:
                point.done = True
                if self._eager:
                    self._run_all(point.stream)

    def stream_wait_event(self, stream: int, event: int) -> None:
        with self._lock:
            queue = self._stream("stream_wait_event", stream)
            point = self._event("stream_wait_event", event).point
            self._check_not_capturing("stream_wait_event", queue, invalidates=False)
            if point is not None:
                self._enqueue(queue, Wait(point))

    def device_synchronize(self, device: int = 0) -> None:
        with self._lock:
            self._check_location("device_synchronize", device)
            queues = [queue for queue in (*self._streams.values(), *self._destroyed) if queue.device == device]
            for queue in queues:
                self._check_not_capturing("device_synchronize", queue)
            for queue in queues:
                self._drain(queue)
            self._destroyed = [queue for queue in self._destroyed if queue.queue]

    def progress(self, stream: int, count: int = 1) -> int:
        """Run up to ``count`` items of ``stream``, and what they wait for. Returns how many ran."""
        with self._lock:
            queue = self._stream("progress", stream)
            ran = 0
            while ran < count and queue.queue and self._run_head(queue) is None:
                ran += 1
            return ran

    # -- events

    def event_create(self, device: int = 0) -> int:
        with self._lock:
            self._check_location("event_create", device)
            identity = next(self._ids)
            self._events[identity] = Event(device)
            return identity

    def event_destroy(self, event: int) -> None:
        """Forget the event. Waits for it that are queued already still wait for its last record."""
        with self._lock:
            self._event("event_destroy", event)
            del self._events[event]

    def event_record(self, event: int, stream: int) -> None:
        with self._lock:
            record = self._event("event_record", event)
            queue = self._stream("event_record", stream)
            self._check_not_capturing("event_record", queue, invalidates=False)
            record.point = Point(queue)
            self._enqueue(queue, Record(record.point))

    def event_synchronize(self, event: int) -> None:
        with self._lock:
            point = self._event("event_synchronize", event).point
            while point is not None and not point.done:
                self._must_run_head(point.stream)

    def event_query(self, event: int) -> bool:
        with self._lock:
            point = self._event("event_query", event).point
            if point is None:
                return True
            if not point.done:
                self._look(point.stream)
            return point.done

    # -- the queue

    def _submit(self, call: str, stream: int | None, operations: Sequence[Operation]) -> Work:
        """Queue the operations as one item, or capture them; the host does them at once."""
        if stream is None:
            return self._run_now(operations, call)
        queue = self._stream(call, stream)
        capture = queue.capture
        if capture is not None:
            self._check_capture_valid(call, queue, capture)
            capture.operations.extend(operations)
            return Work(next(self._ids))
        work = Work(next(self._ids))
        jobs = [self._bind(operation, queue.device) for operation in operations]
        self._enqueue(queue, Task(work, jobs, self.serial))
        return work

    def _look(self, queue: Stream) -> None:
        """Get on for somebody who asks. Who does nothing but ask for what is held waits for it, and is refused so."""
        held = self._run_head(queue)
        self._asked = self._asked + 1 if held else 0
        if held and self._asked > ASKED:
            raise self._in_vain(held)

    def _enqueue(self, queue: Stream, item: Item) -> None:
        self._asked = 0
        queue.queue.append(item)
        if self._eager:
            self._run_all(queue)

    def _drain(self, queue: Stream) -> None:
        while queue.queue:
            self._must_run_head(queue)

    def _run_all(self, queue: Stream) -> None:
        """What a queue has, up to a hold."""
        while queue.queue and self._run_head(queue) is None:
            pass

    def _must_run_head(self, queue: Stream) -> None:
        held = self._run_head(queue)
        if held is not None:
            raise self._in_vain(held)

    def _run_head(self, queue: Stream) -> Stream | None:
        """Run the first item of ``queue``; before that, in other queues, what it waits for.

        Returns the stream that is held and stands in the way, if one does; then the item has not run. A wait names
        a moment that was recorded before it, so this ends. A stack instead of recursion: chains of waits may be long.
        """
        chain = [queue]
        while chain:
            current = chain[-1]
            item = current.queue[0]
            if isinstance(item, Wait) and not item.point.done:
                if item.point.stream is current:
                    return current
                chain.append(item.point.stream)
                continue
            current.queue.popleft()
            self._run_item(item, current.device)
            while len(chain) > 1 and _may_go_on(chain[-2]):
                chain.pop()
            if len(chain) == 1 and current is queue:
                break
        return None

    def _in_vain(self, queue: Stream) -> DriverError:
        return DriverError(
            Status.NOT_READY, "wait", f"stream {queue.id} is held; who waits for it waits for ever, so let_go first"
        )

    def _run_item(self, item: Item, device: int) -> None:
        if isinstance(item, Record):
            item.point.done = True
        elif isinstance(item, Task):
            self._run_task(item, device)

    def _run_task(self, task: Task, device: int) -> None:
        """Check everything the task touches, then do all of it, or nothing if it faults."""
        work = task.work
        work.fault = self._fault_in(task, device)
        if work.fault is None:
            results = [self._perform(job) for job in task.jobs]
            work.data = tuple(data for data in results if data is not None)
        work.done = True
        if self._listener is not None:
            self._listener(work)

    def _fault_in(self, task: Task, device: int) -> Fault | None:
        """The first fault that the task meets: at its submission, or now if any memory call came between."""
        unchanged = task.serial == self.serial
        for _, uses in task.jobs:
            for use in uses:
                fault = use.fault
                if fault is None and not unchanged:
                    fault = self._fault_of(use, device)
                if fault is not None:
                    return fault
        return None

    def _before_unmap(self, mappings: list[Mapping]) -> None:
        self._run_everything()

    def _let_everything_go(self) -> None:
        for stream in list(self._holds):
            self.let_go(stream)

    def _run_everything(self) -> None:
        for queue in (*self._streams.values(), *self._destroyed):
            self._drain(queue)
        self._destroyed.clear()

    # -- rules

    def _stream(self, call: str, stream: int) -> Stream:
        queue = self._streams.get(stream)
        if queue is None:
            raise DriverError(
                Status.INVALID_HANDLE,
                call,
                f"{stream} is no stream; pass what stream_create returned, before stream_destroy",
            )
        return queue

    def _event(self, call: str, event: int) -> Event:
        found = self._events.get(event)
        if found is None:
            raise DriverError(
                Status.INVALID_HANDLE,
                call,
                f"{event} is no event; pass what event_create returned, before event_destroy",
            )
        return found

    def _check_not_capturing(self, call: str, queue: Stream, *, invalidates: bool = True) -> None:
        """A capturing stream cannot be waited for; asking spoils the capture, as on CUDA."""
        capture = queue.capture
        if capture is not None:
            self._check_capture_valid(call, queue, capture)
            capture.invalid = invalidates
            raise DriverError(
                Status.STREAM_CAPTURE_UNSUPPORTED,
                call,
                f"stream {queue.id} is capturing; call graph_end first",
            )

    def _check_capture_valid(self, call: str, queue: Stream, capture: Capture) -> None:
        if capture.invalid:
            raise DriverError(
                Status.STREAM_CAPTURE_INVALIDATED,
                call,
                f"the capture of stream {queue.id} was spoiled; call graph_end",
            )


def _may_go_on(queue: Stream) -> bool:
    """Whether the wait at the head of ``queue`` is over."""
    item = queue.queue[0]
    return not isinstance(item, Wait) or item.point.done
