"""Graphs: what a stream has captured, launched again and again."""

from __future__ import annotations

from ctypes import memmove
from typing import Any

from vmm_conformance.contracts import Work
from vmm_conformance.drivers.emulated.copies import CopyCalls
from vmm_conformance.drivers.emulated.machine import SUCCESS
from vmm_conformance.drivers.emulated.streams import OFFSET, Capture


class GraphCalls(CopyCalls):
    """A graph is the driver's, with what the host side has to do when a launch of it is through."""

    def _forget_all(self) -> None:
        super()._forget_all()
        self._graphs: dict[int, Capture] = {}
        self._executables: dict[int, Capture] = {}

    def stream_end(self, handle: int, out: Any) -> int:
        if not out:
            self.invalid("StreamEndCapture")
        stream = self._stream(handle)
        capture, stream.capture = stream.capture, None
        graph = self._driver.graph_end(stream.id)
        self._graphs[graph] = capture or Capture(0)
        out[0] = graph + OFFSET
        return SUCCESS

    def graph_instantiate(self, out: Any, graph: int, flags: int) -> int:
        if not out:
            self.invalid("GraphInstantiate")
        executable = self._driver.graph_instantiate(graph - OFFSET)
        self._executables[executable] = self._graphs[graph - OFFSET]
        out[0] = executable + OFFSET
        return SUCCESS

    def graph_instantiate_telling(self, out: Any, graph: int, node: Any, text: int, size: int) -> int:
        if node:
            node[0] = 0
        return self.graph_instantiate(out, graph, 0)

    def graph_upload(self, executable: int, handle: int) -> int:
        return SUCCESS

    def graph_launch(self, executable: int, handle: int) -> int:
        stream = self._order(self._stream(handle))
        work = self._driver.graph_launch(executable - OFFSET, stream.id)
        host = self._executables[executable - OFFSET]
        return self._submitted(stream, work, lambda done: _finish(host, done))

    def graph_destroy(self, graph: int) -> int:
        self._driver.graph_destroy(graph - OFFSET)
        del self._graphs[graph - OFFSET]
        return SUCCESS

    def graph_forget(self, executable: int) -> int:
        self._driver.graph_exec_destroy(executable - OFFSET)
        del self._executables[executable - OFFSET]
        return SUCCESS


def _finish(host: Capture, done: Work) -> None:
    """Store what the graph has read, then do what else was captured."""
    for (target, size), data in zip(host.outputs, done.data, strict=True):
        memmove(target, data, size)
    for action in host.after:
        action(done)
