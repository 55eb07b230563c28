"""The contract ``allocator``, spoken to another process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from vmm_conformance.contracts import Block, Statistics
from vmm_conformance.running.proc.messages import whole


class ProcAllocator:
    """One allocator in the subject's process: ``ask(do, **arguments)`` gives what it returns there.

    See `contracts.allocator.WholeAllocator`.
    """

    def __init__(self, ask: Callable[..., Any]) -> None:
        self._ask = ask

    def allocate(self, size: int, *, stream: int, space: int = 0) -> Any:
        return _record(Block, self._ask("allocate", size=size, stream=stream, space=space))

    def deallocate(self, block: Block, *, stream: int) -> None:
        self._ask("deallocate", block=block._asdict(), stream=stream)

    def grow(self, block: Block, size: int, *, stream: int) -> Any:
        return _record(Block, self._ask("grow", block=block._asdict(), size=size, stream=stream))

    def shrink(self, block: Block, size: int, *, stream: int) -> Any:
        return _record(Block, self._ask("shrink", block=block._asdict(), size=size, stream=stream))

    def trim(self) -> None:
        self._ask("trim")

    def pause(self, *, backup: bool) -> None:
        self._ask("pause", backup=backup)

    def resume(self) -> None:
        self._ask("resume")

    def enable_peer(self, peer: int) -> None:
        self._ask("enable_peer", peer=peer)

    def statistics(self) -> Any:
        return _record(Statistics, self._ask("statistics"))

    def begin_capture(self, *, stream: int) -> None:
        self._ask("begin_capture", stream=stream)

    def end_capture(self, *, stream: int) -> None:
        self._ask("end_capture", stream=stream)

    def drop_capture(self, *, stream: int) -> None:
        self._ask("drop_capture", stream=stream)

    def close(self) -> None:
        self._ask("close")


def _record(kind: type[Block] | type[Statistics], value: Any) -> Any:
    """``value`` as ``kind``, a record of whole numbers, or as it is, which whoever asked for one takes for a crash."""
    if not isinstance(value, dict) or value.keys() != set(kind._fields):
        return value
    try:
        return kind(*(whole(value[name]) for name in kind._fields))
    except ValueError:
        return value
