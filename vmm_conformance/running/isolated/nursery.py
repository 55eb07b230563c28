"""A process that has the harness imported and starts children by forking, for a small part of what a fresh one takes.

It touches no subject and no driver, and loads no binding, since a device does not survive a fork. What a child gets of
its parent is of now and not of when the nursery began: the module path, the folder, the environment, both outputs.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from multiprocessing.connection import Connection
from typing import Final, NamedTuple

from vmm_conformance.running.dying import die_with

_OUTPUTS: Final = (1, 2)
_MOST_FILES: Final = 16
_BOOT: Final = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]);"
    " from vmm_conformance.running.isolated.nursery import main; main(sys.argv[2:])"
)


class World(NamedTuple):
    """What a child is born into."""

    path: list[str]
    folder: str
    environment: dict[str, str]


class Nursery:
    """The parent's side. It has one child at a time, and ends with this process."""

    def __init__(self) -> None:
        self._nest, theirs = socket.socketpair()
        self._answers = Connection(os.dup(self._nest.fileno()))
        command = [sys.executable, "-c", _BOOT, json.dumps(sys.path), str(theirs.fileno()), str(os.getpid())]
        files = (theirs.fileno(),)
        self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, pass_fds=files, start_new_session=True)
        theirs.close()

    def bear(self, files: Sequence[int]) -> int:
        """The id of a child, born with ``files`` in that order. Raises ``OSError`` or ``EOFError`` if there is none."""
        socket.send_fds(self._nest, [b"!"], [*_OUTPUTS, *files])
        self._answers.send(World(list(sys.path), os.getcwd(), dict(os.environ)))
        born: int = self._answers.recv()
        return born

    @property
    def alive(self) -> bool:
        """Whether it can have another child."""
        return self._process.poll() is None

    def code(self, seconds: float | None) -> int | None:
        """The child's return code if it ends within so many seconds (None: wait).

        Raises ``EOFError`` or ``OSError`` if the nursery is gone too.
        """
        if not self._answers.poll(seconds):
            return None
        code: int = self._answers.recv()
        return code

    def close(self) -> None:
        """End it, and its child with it."""
        self._nest.close()
        self._answers.close()
        self._process.kill()
        self._process.wait()


def main(arguments: Sequence[str]) -> None:
    """The nursery itself. ``arguments`` are the number of its socket and its parent's id."""
    number, parent = map(int, arguments)
    die_with(parent)
    _warm()
    nest = socket.socket(fileno=number)
    answers = Connection(os.dup(number))
    while files := socket.recv_fds(nest, 1, _MOST_FILES)[1]:
        world: World = answers.recv()
        pid = os.fork()
        if not pid:
            nest.close()
            answers.close()
            _grow_up(world, files)
            return
        for file in files:
            os.close(file)
        answers.send(pid)
        answers.send(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))


def _warm() -> None:
    """Import what every child needs, and let no collection copy its memory."""
    from vmm_conformance.contracts import CONTRACTS
    from vmm_conformance.running import benches, subjects  # noqa: F401
    from vmm_conformance.running.isolated import child  # noqa: F401
    from vmm_conformance.running.plugs import plug

    for contract in CONTRACTS:
        plug(contract)
    gc.freeze()


def _grow_up(world: World, files: Sequence[int]) -> None:
    from vmm_conformance.running.isolated import child

    parent = os.getppid()
    os.setsid()  # what it starts ends with it
    for target, file in zip(_OUTPUTS, files, strict=False):
        os.dup2(file, target)
        os.close(file)
    os.chdir(world.folder)
    sys.path[:] = world.path
    os.environ.clear()
    os.environ.update(world.environment)
    importlib.invalidate_caches()
    child.main([*map(str, files[len(_OUTPUTS) :]), str(parent)])
