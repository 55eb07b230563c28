"""Graphs: work captured once, with its addresses, and launched again and again."""

from __future__ import annotations

from vmm_conformance.contracts import DriverError, DriverOptions, Status, Work
from vmm_conformance.drivers.host.streams import Capture, Stream, Streams
from vmm_conformance.drivers.host.work import Operation


class Graphs(Streams):
    """Capture, instantiate, launch.

    While a stream captures, work submitted to it is noted and not run; calls on memory are not noted
    and work as ever (V80). A launch is one item of its stream's queue. It uses the addresses that were
    captured, and whatever is mapped there when it is submitted.
    """

    def __init__(self, options: DriverOptions) -> None:
        super().__init__(options)
        self._graphs: dict[int, tuple[Operation, ...]] = {}
        self._executables: dict[int, tuple[Operation, ...]] = {}

    def graph_begin(self, stream: int) -> None:
        with self._lock:
            queue = self._stream("graph_begin", stream)
            if queue.capture is not None:
                raise DriverError(
                    Status.ILLEGAL_STATE,
                    "graph_begin",
                    f"stream {stream} is capturing already; call graph_end first",
                )
            queue.capture = Capture()

    def graph_end(self, stream: int) -> int:
        with self._lock:
            queue = self._stream("graph_end", stream)
            capture = self._end_capture(queue)
            identity = next(self._ids)
            self._graphs[identity] = tuple(capture.operations)
            return identity

    def _end_capture(self, queue: Stream) -> Capture:
        capture, queue.capture = queue.capture, None
        if capture is None:
            raise DriverError(
                Status.ILLEGAL_STATE,
                "graph_end",
                f"stream {queue.id} is not capturing; call graph_begin first",
            )
        if capture.invalid:
            raise DriverError(
                Status.STREAM_CAPTURE_INVALIDATED,
                "graph_end",
                f"the capture of stream {queue.id} was spoiled by a wait or a query; capture again without",
            )
        return capture

    def graph_instantiate(self, graph: int) -> int:
        with self._lock:
            operations = self._graph("graph_instantiate", graph)
            identity = next(self._ids)
            self._executables[identity] = operations
            return identity

    def graph_launch(self, executable: int, stream: int) -> Work:
        with self._lock:
            operations = self._executable("graph_launch", executable)
            return self._submit("graph_launch", self._stream("graph_launch", stream).id, operations)

    def graph_destroy(self, graph: int) -> None:
        with self._lock:
            self._graph("graph_destroy", graph)
            del self._graphs[graph]

    def graph_exec_destroy(self, executable: int) -> None:
        """Forget the executable graph. Launches of it that are queued still run."""
        with self._lock:
            self._executable("graph_exec_destroy", executable)
            del self._executables[executable]

    def _graph(self, call: str, graph: int) -> tuple[Operation, ...]:
        operations = self._graphs.get(graph)
        if operations is None:
            raise DriverError(Status.INVALID_HANDLE, call, f"{graph} is no graph; pass what graph_end returned")
        return operations

    def _executable(self, call: str, executable: int) -> tuple[Operation, ...]:
        operations = self._executables.get(executable)
        if operations is None:
            raise DriverError(
                Status.INVALID_HANDLE,
                call,
                f"{executable} is no executable graph; pass what graph_instantiate returned",
            )
        return operations
