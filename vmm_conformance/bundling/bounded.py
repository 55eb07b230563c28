"""Does work that somebody else's data drives in a process of its own, which can neither run on nor eat memory.

A history or a program may be anything: a size of a million gigabytes is only a number until somebody makes
a list of its pages, and a count only a number until somebody counts.
"""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterator, Sequence
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

from vmm_conformance.bundling.result import Piece, differs


class Task(NamedTuple):
    """``work(*arguments)`` gives the piece on ``what``. ``work`` is a function of a module."""

    what: str
    work: Callable[..., Piece]
    arguments: tuple[Any, ...]


def bounded(tasks: Sequence[Task], seconds: float, memory: int = 0) -> Iterator[Piece]:
    """The piece of each task, in order. One that breaks, or takes too much, is a difference.

    ``seconds`` are for one task; ``memory`` is the address space of the process in bytes, 0 for any.
    """
    left = list(tasks)
    while left:
        done = 0
        for piece in _in_a_process(left, seconds, memory):
            done += 1
            yield piece
        left = left[done:]


def _in_a_process(tasks: Sequence[Task], seconds: float, memory: int) -> Iterator[Piece]:
    context = get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_do_all, args=(sender, list(tasks), memory), daemon=True)
    process.start()
    sender.close()
    try:
        for task in tasks:
            if not receiver.poll(seconds):
                yield differs(task.what, f"took more than {seconds:g} s")
                return
            try:
                yield receiver.recv()
            except EOFError:
                yield differs(task.what, "broke the process that computed it")
                return
    finally:
        process.kill()
        process.join()
        receiver.close()


def _do_all(sender: Connection, tasks: Sequence[Task], memory: int) -> None:
    """What the process does: one answer per task."""
    if memory:
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    for task in tasks:
        try:
            piece = task.work(*task.arguments)
        except MemoryError:
            piece = differs(task.what, f"takes more than {memory >> 20} MiB")
        except Exception as error:  # nothing here is made for data that no run can have left
            piece = differs(task.what, f"cannot be computed: {type(error).__name__}: {error}")
        sender.send(piece)
