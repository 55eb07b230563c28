"""What is written beside a call in a picture, and the numbers that physical memory goes by there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from vmm_conformance.contracts import Access, status_name
from vmm_conformance.history.events import Event, History
from vmm_conformance.history.state import Memory

_RIGHTS: Final[Mapping[int, str]] = {Access.NONE: "none", Access.READ: "r", Access.READ_WRITE: "rw"}
_PLAIN: Final = frozenset({"progress", "mem_info", "get_access", "address_range", "graph_begin", "graph_end"})


def memory_numbers(history: History) -> dict[int, int]:
    """Physical memory in the order in which it was created: the event that made it, and its number from 1."""
    made = [event.seq for event in history.events if event.kind == "create" and event.status == 0]
    return {seq: number for number, seq in enumerate(made, 1)}


def rights_text(rights: Mapping[int, int]) -> str:
    """``rw``, ``no rights``; with several devices ``0 rw, 1 r``."""
    named = {device: _RIGHTS.get(access, str(int(access))) for device, access in sorted(rights.items())}
    if set(named.values()) <= {"none"}:
        return "no rights"
    if list(named) == [0]:
        return named[0]
    return ", ".join(f"{device} {text}" for device, text in named.items())


class Names:
    """Numbers of memories, and the text of each call; ask before the state has taken the event in."""

    def __init__(self, history: History) -> None:
        self._numbers = memory_numbers(history)
        self._handles: dict[int, int] = {}

    def number(self, memory: Memory) -> int:
        """The number of a handle's memory; 0 for one whose creation is not in the history."""
        return self._numbers.get(memory.made, 0)

    def text(self, event: Event) -> str:
        """The call in words, addresses in hexadecimal; a refused one with its status."""
        if event.kind == "create" and event.status == 0:
            self._handles[event.result] = self._numbers[event.seq]
        write = _TEXTS.get(event.kind)
        text = write(event, self._memory) if write else _plain(event)
        if event.status:
            text += f" refused: {status_name(event.status)}"
            text += " (made to fail)" if event.result == "injected" else ""
        return text

    def _memory(self, handle: Any) -> str:
        number = self._handles.get(handle) if isinstance(handle, int) else None
        return f"memory {number}" if number else f"handle {handle}"


_Text = Callable[[Event, Callable[[Any], str]], str]


def _at(address: Any) -> str:
    return f"{address:#x}" if isinstance(address, int) else str(address)


def _range(event: Event, *_: Any) -> str:
    return f"{event.kind} {_at(event.args[0])}, {event.args[1]} bytes"


def _made(event: Event, size: Any, what: str = "") -> str:
    return f"{event.kind} {what}{size} bytes" + ("" if event.status else f" at {_at(event.result)}")


def _create(event: Event, memory: Callable[[Any], str]) -> str:
    name = "" if event.status else f"{memory(event.result)}, "
    return f"create {name}{event.args[0]} bytes on device {event.args[1]}"


def _map(event: Event, memory: Callable[[Any], str]) -> str:
    address, size, handle, offset = event.args
    return f"map {memory(handle)} at {_at(address)}, {size} bytes" + (f" from offset {offset}" if offset else "")


def _set_access(event: Event, _: Callable[[Any], str]) -> str:
    return f"{_range(event)}: {rights_text(dict(event.args[2]))}"


def _work(event: Event, _: Callable[[Any], str]) -> str:
    number = "" if event.status else f" (work {event.result})"
    return event.kind + number


def _plain(event: Event) -> str:
    if event.kind in _PLAIN:
        return event.kind
    return " ".join([event.kind, *(str(value) for value in event.args if isinstance(value, int | str))])


def _stream(event: Event, _: Callable[[Any], str]) -> str:
    number = event.result if event.kind == "stream_create" else event.args[0]
    return f"{event.kind} stream {number}"


def _event(event: Event, _: Callable[[Any], str]) -> str:
    number = event.result if event.kind == "event_create" else event.args[0]
    return f"{event.kind} event {number}"


_TEXTS: Final[Mapping[str, _Text]] = {
    "reserve": lambda event, _: _made(event, event.args[0]),
    "alloc": lambda event, _: _made(event, event.args[0]),
    "address_free": _range,
    "unmap": _range,
    "free": lambda event, _: f"free {_at(event.args[0])}",
    "create": _create,
    "retain": lambda event, memory: f"retain {memory(event.result)}",
    "release": lambda event, memory: f"release {memory(event.args[0])}",
    "map": _map,
    "set_access": _set_access,
    "event_record": lambda event, _: f"record event {event.args[0]} on stream {event.args[1]}",
    "stream_wait_event": lambda event, _: f"stream {event.args[0]} waits for event {event.args[1]}",
    "device_synchronize": lambda event, _: f"device_synchronize device {event.args[0]}",
    **dict.fromkeys(("stream_create", "stream_destroy", "stream_synchronize", "stream_query"), _stream),
    **dict.fromkeys(("event_create", "event_destroy", "event_synchronize", "event_query"), _event),
    **dict.fromkeys(("copy", "fill", "write", "read", "launch", "graph_launch"), _work),
}
