"""What is queued on a device, and when it is known to be over.

A device tells only that a stream or an event is through. Work is reported in an order in which it may have run:
what a stream has waited for comes before what waited.
"""

from __future__ import annotations

import ctypes
from collections import deque
from collections.abc import Callable
from typing import Final, TypeAlias

from vmm_conformance.contracts import Work

_SMALLEST: Final = 64
_SLAB: Final = 4 << 10
_SEMAPHORE: Final = 64
"""Bytes that a semaphore of the system has at most."""


class Block:
    """``room`` bytes of host memory that the device can copy to and from, of which ``size`` are in use."""

    __slots__ = ("address", "room", "size")

    def __init__(self, address: int, room: int) -> None:
        self.address = address
        self.room = room
        self.size = 0

    def fill(self, data: bytes) -> None:
        """Put ``data`` there."""
        ctypes.memmove(self.address, data, len(data))

    def data(self) -> bytes:
        """The bytes in use."""
        return ctypes.string_at(self.address, self.size)


class Staging:
    """Host memory for copies, in blocks whose room is a power of two; given back blocks are used again."""

    def __init__(self, allocate: Callable[[int], int], free: Callable[[int], None]) -> None:
        self._allocate = allocate
        self._free = free
        self._idle: dict[int, list[Block]] = {}
        self._slabs: list[int] = []

    def take(self, size: int) -> Block:
        """A block for ``size`` bytes."""
        room = max(_SMALLEST, 1 << (size - 1).bit_length()) if size else _SMALLEST
        idle = self._idle.setdefault(room, [])
        if not idle:
            slab = self._allocate(max(room, _SLAB))
            self._slabs.append(slab)
            idle += [Block(slab + at, room) for at in range(0, max(room, _SLAB), room)]
        block = idle.pop()
        block.size = size
        return block

    def give(self, block: Block) -> None:
        """Nobody needs the block any more."""
        self._idle[block.room].append(block)

    def close(self) -> None:
        """Give all memory back; nothing may be in flight."""
        for slab in self._slabs:
            self._free(slab)
        self._slabs.clear()
        self._idle.clear()


class Gate:
    """Lets a stream get no further until it is opened: a function of the system's library that the stream calls.

    It waits without the interpreter's lock. ``function`` and ``data`` are addresses; whoever has queued the call
    keeps the gate until the stream is through it.
    """

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None)
        self._semaphore = ctypes.create_string_buffer(_SEMAPHORE)
        self.data = ctypes.addressof(self._semaphore)
        self.function = ctypes.cast(self._libc.sem_wait, ctypes.c_void_p).value or 0
        self._libc.sem_init(self._semaphore, 0, 0)

    def open(self) -> None:
        """Let the stream go on."""
        self._libc.sem_post(self._semaphore)


class Ticket:
    """Queued work: the blocks that hold what it reads, in order, and those that hold what it writes."""

    __slots__ = ("inputs", "outputs", "parts", "work")

    def __init__(self, work: Work, outputs: list[Block], inputs: list[Block]) -> None:
        self.work = work
        self.outputs = outputs
        self.inputs = inputs
        self.parts: list[Work] = []


class Point:
    """One moment of a queue, which an event marks."""

    __slots__ = ("done", "queue")

    def __init__(self, queue: Queue) -> None:
        self.queue = queue
        self.done = False


class Wait:
    """The queue went no further before ``point``."""

    __slots__ = ("point",)

    def __init__(self, point: Point) -> None:
        self.point = point


Item: TypeAlias = Ticket | Point | Wait


class Captured:
    """What a graph holds beside the device's own: its reads' blocks, in order, and its writes'."""

    __slots__ = ("inputs", "outputs")

    def __init__(self) -> None:
        self.outputs: list[Block] = []
        self.inputs: list[Block] = []


class Queue:
    """A stream of a device, and what is not known to be over of what was submitted to it."""

    __slots__ = ("capture", "device", "items", "stream")

    def __init__(self, stream: int, device: int) -> None:
        self.stream = stream
        self.device = device
        self.items: deque[Item] = deque()
        self.capture: Captured | None = None

    def finished(self, until: Point | None = None) -> list[Ticket]:
        """The queue is through, or has reached ``until``: its tickets, in order, with those it waited for.

        A wait names a moment that was recorded before it, so this ends; a stack instead of recursion, since chains
        of waits may be long.
        """
        done: list[Ticket] = []
        goals: list[tuple[Queue, Point | None]] = [(self, until)]
        while goals:
            queue, goal = goals[-1]
            if not queue.items or (goal is not None and goal.done):
                goals.pop()
                continue
            item = queue.items[0]
            if isinstance(item, Wait) and not item.point.done:
                goals.append((item.point.queue, item.point))
                continue
            queue.items.popleft()
            if isinstance(item, Ticket):
                done.append(item)
            elif isinstance(item, Point):
                item.done = True
        return done
