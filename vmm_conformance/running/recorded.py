"""The driver as one party sees it: every call is recorded."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from vmm_conformance.contracts import (
    Access,
    Copy,
    Driver,
    DriverCapabilities,
    DriverError,
    Granularity,
    Live,
    MemoryInfo,
    Range,
    Work,
    WorkListener,
    Write,
)
from vmm_conformance.history.events import CALLS, SUBJECT
from vmm_conformance.running.faults import Faults

if TYPE_CHECKING:
    from vmm_conformance.running.recorder import Recorder


def _positional(driver: Driver) -> dict[str, Callable[..., Any]]:
    """The driver's calls by name, all arguments positional, in the order of ``FIELDS``."""
    d = driver
    calls: dict[str, Callable[..., Any]] = {name: getattr(d, name) for name in CALLS}
    calls["reserve"] = lambda size, alignment, hint: d.reserve(size, alignment=alignment, hint=hint)
    calls["create"] = lambda size, device, space: d.create(size, device=device, space=space)
    calls["map"] = lambda address, size, handle, offset: d.map(address, size, handle, offset=offset)
    calls["set_access"] = lambda address, size, rights: d.set_access(address, size, dict(rights))
    calls["alloc"] = lambda size, device, space: d.alloc(size, device=device, space=space)
    calls["copy"] = lambda target, source, size, stream: d.copy(target, source, size, stream=stream)
    calls["fill"] = lambda target, value, size, stream: d.fill(target, value, size, stream=stream)
    calls["write"] = lambda target, data, stream: d.write(target, data, stream=stream)
    calls["read"] = lambda source, size, stream: d.read(source, size, stream=stream)
    calls["launch"] = lambda stream, reads, copies, writes: d.launch(
        stream, reads=reads, copies=copies, writes=writes
    )
    return calls


class RecordedDriver:
    """The driver as one party sees it: every call is recorded, queries of fixed facts are not."""

    def __init__(self, recorder: Recorder, who: str) -> None:
        self._recorder = recorder
        self._who = who
        self._calls = _positional(recorder.driver)
        self._faults = recorder.faults if who == SUBJECT else Faults()
        self._has_serial = hasattr(recorder.driver, "serial")

    def _call(self, kind: str, *args: Any) -> Any:
        recorder = self._recorder
        try:
            if self._faults:
                self._faults.strike(kind)
            result = self._calls[kind](*args)
        except DriverError as error:
            recorder.event(self._who, kind, args, error.status, "injected" if error.detail == "injected" else None)
            raise
        event = recorder.event(self._who, kind, args, 0, result.id if type(result) is Work else result)
        if self._has_serial:
            serial = getattr(recorder.driver, "serial")  # noqa: B009 - not in the Protocol
            recorder.causes.setdefault(serial, event.seq)
        return result

    # -- fixed facts, not recorded

    @property
    def name(self) -> str:
        return self._recorder.driver.name

    @property
    def real(self) -> bool:
        return self._recorder.driver.real

    @property
    def capabilities(self) -> DriverCapabilities:
        return self._recorder.driver.capabilities

    @property
    def device_count(self) -> int:
        return self._recorder.driver.device_count

    def granularity(self, device: int = 0, space: int = 0) -> Granularity:
        return self._recorder.driver.granularity(device, space)

    def space_alignment(self, device: int = 0, space: int = 0) -> int:
        return self._recorder.driver.space_alignment(device, space)

    def can_access_peer(self, device: int, peer: int) -> bool:
        return self._recorder.driver.can_access_peer(device, peer)

    def listen(self, listener: WorkListener | None) -> None:
        raise TypeError("a recorded driver has its listener already: the recorder")

    def live(self) -> Live:
        return self._recorder.driver.live()

    def close(self) -> None:
        raise TypeError("a recorded driver is closed by whoever opened it")

    # -- recorded calls

    def mem_info(self, device: int = 0) -> MemoryInfo:
        return self._call("mem_info", device)

    def reserve(self, size: int, *, alignment: int = 0, hint: int = 0) -> int:
        return self._call("reserve", size, alignment, hint)

    def address_free(self, address: int, size: int) -> None:
        self._call("address_free", address, size)

    def create(self, size: int, *, device: int = 0, space: int = 0) -> int:
        return self._call("create", size, device, space)

    def retain(self, address: int) -> int:
        return self._call("retain", address)

    def release(self, handle: int) -> None:
        self._call("release", handle)

    def map(self, address: int, size: int, handle: int, *, offset: int = 0) -> None:
        self._call("map", address, size, handle, offset)

    def unmap(self, address: int, size: int) -> None:
        self._call("unmap", address, size)

    def set_access(self, address: int, size: int, rights: Mapping[int, Access]) -> None:
        self._call("set_access", address, size, tuple(sorted(rights.items())))

    def get_access(self, address: int, device: int) -> Access:
        return self._call("get_access", address, device)

    def address_range(self, address: int) -> Range:
        return self._call("address_range", address)

    def alloc(self, size: int, *, device: int = 0, space: int = 0) -> int:
        return self._call("alloc", size, device, space)

    def free(self, address: int) -> None:
        self._call("free", address)

    def stream_create(self, device: int = 0) -> int:
        return self._call("stream_create", device)

    def stream_destroy(self, stream: int) -> None:
        self._call("stream_destroy", stream)

    def stream_synchronize(self, stream: int) -> None:
        self._call("stream_synchronize", stream)

    def stream_query(self, stream: int) -> bool:
        return self._call("stream_query", stream)

    def stream_wait_event(self, stream: int, event: int) -> None:
        self._call("stream_wait_event", stream, event)

    def device_synchronize(self, device: int = 0) -> None:
        self._call("device_synchronize", device)

    def progress(self, stream: int, count: int = 1) -> int:
        return self._call("progress", stream, count)

    def event_create(self, device: int = 0) -> int:
        return self._call("event_create", device)

    def event_destroy(self, event: int) -> None:
        self._call("event_destroy", event)

    def event_record(self, event: int, stream: int) -> None:
        self._call("event_record", event, stream)

    def event_synchronize(self, event: int) -> None:
        self._call("event_synchronize", event)

    def event_query(self, event: int) -> bool:
        return self._call("event_query", event)

    def copy(self, target: int, source: int, size: int, *, stream: int | None = None) -> Work:
        return self._call("copy", target, source, size, stream)

    def fill(self, target: int, value: int, size: int, *, stream: int | None = None) -> Work:
        return self._call("fill", target, value, size, stream)

    def write(self, target: int, data: bytes, *, stream: int | None = None) -> Work:
        return self._call("write", target, bytes(data), stream)

    def read(self, source: int, size: int, *, stream: int | None = None) -> Work:
        return self._call("read", source, size, stream)

    def launch(
        self,
        stream: int | None,
        *,
        reads: Sequence[Range] = (),
        copies: Sequence[Copy] = (),
        writes: Sequence[Write] = (),
    ) -> Work:
        return self._call("launch", stream, tuple(reads), tuple(copies), tuple(writes))

    def graph_begin(self, stream: int) -> None:
        self._call("graph_begin", stream)

    def graph_end(self, stream: int) -> int:
        return self._call("graph_end", stream)

    def graph_instantiate(self, graph: int) -> int:
        return self._call("graph_instantiate", graph)

    def graph_launch(self, executable: int, stream: int) -> Work:
        return self._call("graph_launch", executable, stream)

    def graph_destroy(self, graph: int) -> None:
        self._call("graph_destroy", graph)

    def graph_exec_destroy(self, executable: int) -> None:
        self._call("graph_exec_destroy", executable)
