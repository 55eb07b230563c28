"""What executing comes to for the harness: queued work at the addresses of a table, or out of a command buffer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from vmm_conformance.contracts import Driver, Range, ScopedExecutable, Table, Write
from vmm_conformance.running.caller import TOKEN, TokenSource
from vmm_conformance.running.watched_allocator import Witness

Tokens = dict[int, bytes]
"""What execution has written into each buffer last."""


def submit(
    driver: Driver,
    stream: int,
    executable: ScopedExecutable,
    addresses: Sequence[Mapping[int, int]],
    tokens: TokenSource,
) -> Tokens:
    """Queue all commands as one piece of work, each at its own ``addresses`` by buffer."""
    reads: list[Range] = []
    writes: list[Write] = []
    written: Tokens = {}
    for command, places in zip(executable.commands, addresses, strict=True):
        read = (index for index in command.reads if places.get(index))
        reads += [Range(places[index], min(TOKEN, executable.buffers[index].size)) for index in read]
        for index in command.writes:
            if places.get(index):
                written.pop(index, None)  # the order is that of the last writes
                written[index] = tokens.take(min(TOKEN, executable.buffers[index].size))
                writes.append(Write(places[index], written[index]))
    if reads or writes:
        driver.launch(stream, reads=reads, writes=writes)
    return written


def places_of(executable: ScopedExecutable, command: int, table: Table) -> dict[int, int]:
    """The addresses in ``table`` of the buffers that a command names and that are not empty."""
    named = executable.commands[command]
    return {
        index: table[index].address
        for index in sorted({*named.reads, *named.writes})
        if executable.buffers[index].size
    }


class Baked:
    """The harness's own execution. What is persistent keeps the address that it had when it became so."""

    def __init__(self, executable: ScopedExecutable) -> None:
        self._executable = executable
        self._baked: dict[int, int] = {}

    def addresses(self, table: Table, persistent: tuple[int, ...] | None) -> list[dict[int, int]]:
        """The addresses that each command uses."""
        kept = set(persistent or ())
        for index in kept:
            if 0 <= index < len(table):
                self._baked.setdefault(index, table[index].address)
        addresses = [places_of(self._executable, n, table) for n in range(len(self._executable.commands))]
        for places in addresses:
            places.update({index: self._baked[index] for index in places if index in kept})
        return addresses


class RecordedCommands:
    """A command buffer; see `contracts.CommandBuffer`. Notes ``record`` and ``submit`` say what becomes of it."""

    def __init__(
        self, witness: Witness, driver: Driver, executable: ScopedExecutable, tokens: TokenSource, number: int
    ) -> None:
        self.number = number
        self._witness = witness
        self._driver = driver
        self._executable = executable
        self._tokens = tokens
        self._recorded: dict[int, dict[int, int]] = {}

    def record(self, command: int, table: Table) -> None:
        """Record or update one command. Raises `SubjectError` where a program lets it fail."""
        places = places_of(self._executable, command, table)
        self._witness.call(
            "record", lambda: None, buffer=self.number, command=command, places=tuple(places.items())
        )
        self._recorded[command] = places

    def submit(self, stream: int) -> None:
        """Queue what is recorded, with the addresses that it was recorded with."""
        self._witness.recorder.note("submit", scope=self._witness.scope(), buffer=self.number, stream=stream)
        addresses = [self._recorded.get(n, {}) for n in range(len(self._executable.commands))]
        submit(self._driver, stream, self._executable, addresses, self._tokens)
