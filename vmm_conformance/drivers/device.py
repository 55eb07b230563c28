"""A driver over a vendor's device: the contract `Driver`, by a vendor's calls.

Work is copies and fills that the device does by itself, so no device code has to be compiled. A device tells only
that a stream or an event is through; `Work` is done when the driver has been told, and then its listener is called.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import count

from vmm_conformance.contracts import Copy, DriverError, DriverOptions, Fault, Range, Status, Work, WorkListener, Write
from vmm_conformance.drivers.calls import Calls
from vmm_conformance.drivers.device_sharing import DeviceSharing
from vmm_conformance.drivers.queues import Block, Captured, Gate, Point, Queue, Staging, Ticket, Wait


class DeviceDriver(DeviceSharing):
    """Streams are made so that the default stream does not order them. Copies by the host go to the memory's owner.

    Raises `DriverUnavailable` where there is no device to drive.
    """

    def __init__(self, calls: Calls, options: DriverOptions, memory: int = 0) -> None:
        super().__init__(calls, options, memory)
        self.refusals = []
        self._staging = Staging(calls.host_alloc, calls.host_free)
        self._queues: dict[int, Queue] = {}
        self._destroyed: list[Queue] = []
        self._events: dict[int, Point | None] = {}
        self._graphs: dict[int, Captured] = {}
        self._executables: dict[int, Captured] = {}
        self._gates: dict[int, list[Gate]] = {}
        self._listener: WorkListener | None = None
        self._ids = count(1)
        self._closed = False

    def listen(self, listener: WorkListener | None) -> None:
        self._listener = listener

    # -- streams

    def stream_create(self, device: int = 0) -> int:
        self._use("stream_create", device)
        stream = self._calls.stream_create()
        self._queues[stream] = Queue(stream, device)
        return stream

    def stream_destroy(self, stream: int) -> None:
        queue = self._queue("stream_destroy", stream)
        self._calls.stream_destroy(stream)
        del self._queues[stream]
        queue.capture = None
        if queue.items:
            self._destroyed.append(queue)

    def stream_synchronize(self, stream: int) -> None:
        queue = self._queue("stream_synchronize", stream)
        passed = len(self._gates.get(stream, ()))
        self._waiting(lambda: self._calls.stream_synchronize(stream), [queue])
        if passed:  # the device has left these, and they are no memory of its any more
            self._gates[stream] = self._gates[stream][passed:]

    def stream_query(self, stream: int) -> bool:
        queue = self._queue("stream_query", stream)
        return self._asking(lambda: self._calls.stream_query(stream), queue)

    def hold(self, stream: int) -> None:
        queue = self._queue("hold", stream)
        self._calls.use(queue.device)
        gate = Gate()
        self._calls.host_function(gate.function, gate.data, stream)
        self._gates.setdefault(stream, []).append(gate)

    def let_go(self, stream: int) -> None:
        for gate in self._gates.get(stream, ()):
            gate.open()

    def stream_wait_event(self, stream: int, event: int) -> None:
        queue = self._queue("stream_wait_event", stream)
        point = self._event("stream_wait_event", event)
        self._calls.use(queue.device)
        self._calls.stream_wait_event(stream, event)
        if point is not None:
            queue.items.append(Wait(point))

    def device_synchronize(self, device: int = 0) -> None:
        self._use("device_synchronize", device)
        queues = [q for q in (*self._queues.values(), *self._destroyed) if q.device == device]
        self._waiting(self._calls.synchronize, queues)
        self._destroyed = [queue for queue in self._destroyed if queue.items]

    def progress(self, stream: int, count: int = 1) -> int:
        """Devices run work when they please: nothing is done, and 0 returned."""
        return 0

    # -- events

    def event_create(self, device: int = 0) -> int:
        self._use("event_create", device)
        event = self._calls.event_create()
        self._events[event] = None
        return event

    def event_destroy(self, event: int) -> None:
        self._event("event_destroy", event)
        self._calls.event_destroy(event)
        del self._events[event]

    def event_record(self, event: int, stream: int) -> None:
        self._event("event_record", event)
        queue = self._queue("event_record", stream)
        self._calls.use(queue.device)
        self._calls.event_record(event, stream)
        point = Point(queue)
        queue.items.append(point)
        self._events[event] = point

    def event_synchronize(self, event: int) -> None:
        point = self._event("event_synchronize", event)
        self._waiting(lambda: self._calls.event_synchronize(event), [point.queue] if point else [], point)

    def event_query(self, event: int) -> bool:
        point = self._event("event_query", event)
        if point is None:
            return self._calls.event_query(event)
        return self._asking(lambda: self._calls.event_query(event), point.queue, point)

    # -- work

    def copy(self, target: int, source: int, size: int, *, stream: int | None = None) -> Work:
        if stream is None:
            return self._copy_now(target, source, size)
        return self._launch("copy", stream, copies=(Copy(target, source, size),))

    def fill(self, target: int, value: int, size: int, *, stream: int | None = None) -> Work:
        self._check_size("fill", size)
        if not 0 <= value <= 255:
            raise DriverError(Status.INVALID_VALUE, "fill", f"value {value} is no byte; use 0 to 255")
        if stream is None:
            self._calls.use(self._holdings.device_at(target))
            self._calls.fill(target, value, size)
            return self._work_now()
        queue = self._queue("fill", stream)
        self._calls.use(queue.device)
        self._calls.fill_queued(target, value, size, stream)
        return self._queued(queue, [], [])

    def write(self, target: int, data: bytes, *, stream: int | None = None) -> Work:
        if stream is None:
            self._write_now(target, bytes(data))
            return self._work_now()
        return self._launch("write", stream, writes=(Write(target, data),))

    def read(self, source: int, size: int, *, stream: int | None = None) -> Work:
        if stream is None:
            self._check_size("read", size)
            return self._work_now(self._read_now(source, size))
        return self._launch("read", stream, reads=(Range(source, size),))

    def launch(
        self,
        stream: int | None,
        *,
        reads: Sequence[Range] = (),
        copies: Sequence[Copy] = (),
        writes: Sequence[Write] = (),
    ) -> Work:
        if stream is not None:
            return self._launch("launch", stream, reads, copies, writes)
        data = [self._read_now(address, size) for address, size in reads]
        for copy in copies:
            self._copy_now(*copy)
        for address, bytes_ in writes:
            self._write_now(address, bytes(bytes_))
        return self._work_now(*data)

    def _launch(
        self,
        call: str,
        stream: int,
        reads: Sequence[Range] = (),
        copies: Sequence[Copy] = (),
        writes: Sequence[Write] = (),
    ) -> Work:
        """All of it behind each other on the stream: one ticket."""
        for size in (*(r.size for r in reads), *(c.size for c in copies)):
            self._check_size(call, size)
        queue = self._queue(call, stream)
        self._calls.use(queue.device)
        outputs: list[Block] = []
        inputs: list[Block] = []
        for address, size in reads:
            outputs.append(self._take(size))
            self._calls.copy_out_queued(outputs[-1].address, address, size, stream)
        for target, source, size in copies:
            self._calls.copy_over_queued(target, source, size, stream)
        for address, data in writes:
            inputs.append(self._take(len(data)))
            inputs[-1].fill(bytes(data))
            self._calls.copy_in_queued(address, inputs[-1].address, len(data), stream)
        return self._queued(queue, outputs, inputs)

    def _queued(self, queue: Queue, outputs: list[Block], inputs: list[Block]) -> Work:
        work = Work(next(self._ids))
        if queue.capture is not None:
            queue.capture.outputs += outputs
            queue.capture.inputs += inputs
            return work
        ticket = Ticket(work, outputs, inputs)
        self._submitted(ticket)
        queue.items.append(ticket)
        return work

    def _submitted(self, ticket: Ticket) -> None:
        """The device has the work. An emulated one can tell more of it later on."""

    def _check_size(self, call: str, size: int) -> None:
        if size < 0:
            raise DriverError(Status.INVALID_VALUE, call, f"size {size} must not be negative")

    # -- work of the host, now

    def _work_now(self, *data: bytes) -> Work:
        return Work(next(self._ids), True, data)

    def _read_now(self, source: int, size: int) -> bytes:
        block = self._take(size)
        try:
            self._calls.use(self._holdings.device_at(source))
            self._calls.copy_out(block.address, source, size)
            return block.data()
        finally:
            self._give([block])

    def _write_now(self, target: int, data: bytes) -> None:
        block = self._take(len(data))
        try:
            block.fill(data)
            self._calls.use(self._holdings.device_at(target))
            self._calls.copy_in(target, block.address, len(data))
        finally:
            self._give([block])

    def _copy_now(self, target: int, source: int, size: int) -> Work:
        """Through the host: each side then goes by the rights of the memory's own device."""
        self._check_size("copy", size)
        self._write_now(target, self._read_now(source, size))
        return self._work_now()

    def _take(self, size: int) -> Block:
        with self._lock:
            return self._staging.take(size)

    def _give(self, blocks: Iterable[Block]) -> None:
        with self._lock:
            for block in blocks:
                self._staging.give(block)

    # -- graphs

    def graph_begin(self, stream: int) -> None:
        queue = self._queue("graph_begin", stream)
        self._calls.use(queue.device)
        self._calls.capture_begin(stream)
        queue.capture = Captured()

    def graph_end(self, stream: int) -> int:
        queue = self._queue("graph_end", stream)
        captured, queue.capture = queue.capture, None
        graph = self._calls.capture_end(stream)
        self._graphs[graph] = captured or Captured()
        return graph

    def graph_instantiate(self, graph: int) -> int:
        executable = self._calls.graph_instantiate(graph)
        self._executables[executable] = self._graphs.get(graph) or Captured()
        return executable

    def graph_launch(self, executable: int, stream: int) -> Work:
        """What the graph reads is copied on, behind it, since the next launch overwrites it."""
        queue = self._queue("graph_launch", stream)
        self._calls.use(queue.device)
        self._calls.graph_launch(executable, stream)
        outputs: list[Block] = []
        for block in self._executables[executable].outputs:
            outputs.append(self._take(block.size))
            self._calls.copy_host_queued(outputs[-1].address, block.address, block.size, stream)
        return self._queued(queue, outputs, [])

    def graph_destroy(self, graph: int) -> None:
        self._calls.graph_destroy(graph)
        self._graphs.pop(graph, None)

    def graph_exec_destroy(self, executable: int) -> None:
        self._calls.graph_exec_destroy(executable)
        self._executables.pop(executable, None)

    # -- what is over

    def unmap(self, address: int, size: int) -> None:
        super().unmap(address, size)
        if self.capabilities.unmap_waits:
            for queue in list(self._queues.values()):
                if queue.items:
                    self._look(queue)

    def _look(self, queue: Queue) -> None:
        """Take note of a queue that may be through by now."""
        self._asking(partial(self._calls.stream_query, queue.stream), queue)

    def _waiting(self, wait: Callable[[], None], queues: Sequence[Queue], until: Point | None = None) -> None:
        """Wait, then take note of what is over. A fault of the device is told by whatever waits."""
        try:
            wait()
        except DriverError as error:
            if error.status != Status.ILLEGAL_ADDRESS:
                raise
            self._fault(error, queues, until)
            return
        for queue in queues:
            self._finished(queue, until)

    def _asking(self, ask: Callable[[], bool], queue: Queue, until: Point | None = None) -> bool:
        try:
            done = ask()
        except DriverError as error:
            if error.status != Status.ILLEGAL_ADDRESS:
                raise
            self._fault(error, [queue], until)
            return True
        if done:
            self._finished(queue, until)
        return done

    def _fault(self, error: DriverError, queues: Sequence[Queue], until: Point | None) -> None:
        """The device does not say which work met it, and answers nothing else from now on."""
        for queue in queues:
            for ticket in queue.finished(until):
                ticket.work.fault = Fault(0, 0, "unmapped")
                self._over(ticket)
        raise error

    def _finished(self, queue: Queue, until: Point | None = None) -> None:
        with self._lock:
            tickets = queue.finished(until)
        for ticket in tickets:
            self._over(ticket)

    def _over(self, ticket: Ticket) -> None:
        work = ticket.work
        self._judge(ticket)
        if work.fault is None:
            work.data = tuple(block.data() for block in ticket.outputs)
        work.done = True
        self._give((*ticket.outputs, *ticket.inputs))
        if self._listener is not None:
            self._listener(work)

    def _judge(self, ticket: Ticket) -> None:
        """Find out whether the work met a fault, where that can be found out."""

    # -- rules

    def _queue(self, call: str, stream: int) -> Queue:
        queue = self._queues.get(stream)
        if queue is None:
            raise DriverError(Status.INVALID_HANDLE, call, f"{stream} is no stream; pass what stream_create returned")
        return queue

    def _event(self, call: str, event: int) -> Point | None:
        if event not in self._events:
            raise DriverError(Status.INVALID_HANDLE, call, f"{event} is no event; pass what event_create returned")
        return self._events[event]

    # -- the end

    def close(self) -> None:
        """Wait for all work, and give everything back, whatever clients have left."""
        if self._closed:
            return
        self._closed = True
        for stream in self._gates:
            self.let_go(stream)
        for queue in self._queues.values():
            if queue.capture is not None:
                self._try(self.graph_end, queue.stream)
        for device in range(self.device_count):
            self._try(self.device_synchronize, device)
        for calls, held in (
            (self.stream_destroy, self._queues),
            (self.event_destroy, self._events),
            (self.graph_exec_destroy, self._executables),
            (self.graph_destroy, self._graphs),
        ):
            for number in list(held):
                self._try(calls, number)
        self._give_back()
        self._staging.close()
