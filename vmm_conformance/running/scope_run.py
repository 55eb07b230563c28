"""One run of an executable: a scope from its creation to its drop, and what the caller does around it.

Notes: ``scope`` begins it (``scope`` is its number, ``arguments`` what it is handed, ``owned`` the parameters
whose last address the allocator knows); ``call`` and ``return`` stand around each call on the subject
(``name``: ``create``, ``generate``, ``execute``, ``teardown``, ``drop``), ``executing`` in the callback.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from vmm_conformance.contracts import BufferKind, ExecuteFailed, ExecutionScope, Range, RemapMode, SubjectError
from vmm_conformance.programs import va_remap as ops
from vmm_conformance.running.caller import TOKEN
from vmm_conformance.running.outcome import Outcome, attempt
from vmm_conformance.running.scope_work import Tokens, submit

if TYPE_CHECKING:
    from vmm_conformance.running.va_remap import Harness

OK: Outcome = {"status": "ok", "code": "", "message": ""}


def skipped(why: str) -> Outcome:
    """The operation could not be done, and nobody is to blame."""
    return {"status": "skipped", "code": "", "message": why}


class _Answer:
    """What a call has returned."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value: Any = None

    def take(self, value: object) -> None:
        """It has returned ``value``."""
        self.value = value


class ScopeRun:
    """One run, in the thread that calls `run`."""

    def __init__(self, harness: Harness, operation: ops.Run, executable: int, device: int) -> None:
        self.harness = harness
        self.operation = operation
        self.where = executable, device
        self.device = device
        self.opened = harness.opened[executable]
        self.bound = harness.bound[self.where]
        self.buffers = self.opened.executable.buffers
        self.watches = self.opened.executable.mode is RemapMode.SKIP_PROFILED
        self.number = harness.next_scope()
        self.stream = harness.streams[device][operation.stream % 2]
        self.allocator = harness.allocators[int(operation.other)]
        self.table: list[Range] = []
        self.copies: dict[int, Range] = {}
        self.written: Tokens = {}
        self.enabled = False
        self.executed = False
        self.torn_down = False

    def run(self) -> Outcome:
        """The whole run. Returns how it ended: its first failure, or ``ok``."""
        harness = self.harness
        if self.operation.stream % 2:
            harness.order(self.device, harness.streams[self.device][0], self.stream)
        harness.recorder.note(
            "scope", scope=self.number, executable=self.where[0], device=self.device, stream=self.stream,
            label=int(self.operation.other), arguments=tuple(self.bound.arguments()), owned=self._owned(),
        )  # fmt: skip
        outcome = self._in_scope()
        taken = self._taken()
        if self.executed:
            self._observe(taken)
        if self.operation.stream % 2:
            harness.order(self.device, self.stream, harness.streams[self.device][0])
        self._give_back(taken)
        return outcome

    def _in_scope(self) -> Outcome:
        outcome, scope = self._call("create", self._create)
        if outcome["status"] != "ok":
            return outcome
        self._probe(ops.Probe.CREATED)
        outcome = self._inside(scope)
        self._probe(ops.Probe.TORN_DOWN)
        dropped, _ = self._call("drop", lambda: scope.drop())
        return outcome if outcome["status"] != "ok" else dropped

    def _create(self) -> ExecutionScope:
        scope = self.opened.buffers.create_scope(self.device, self.stream, self.allocator)
        self.enabled = bool(scope.va_remap_enabled)
        return scope

    def _inside(self, scope: ExecutionScope) -> Outcome:
        """All between creation and drop."""
        outcome, table = self._call("generate", lambda: as_table(scope.generate(self.bound.arguments()), self.buffers))
        if outcome["status"] != "ok":
            return outcome
        self.table = table
        early = self.operation.ending in (ops.Ending.EARLY, ops.Ending.EARLY_TEARDOWN)
        if not self._protect():
            return skipped("the caller's copy protection has failed")
        if not early:
            outcome = self._execute(scope)
        if self.operation.ending in (ops.Ending.TEARDOWN, ops.Ending.EARLY_TEARDOWN):
            after, _ = self._call("teardown", lambda: scope.teardown(self._live()), live=tuple(sorted(self._live())))
            self.torn_down = after["status"] != "crashed"
            return outcome if outcome["status"] != "ok" else after
        return outcome

    def _execute(self, scope: ExecutionScope) -> Outcome:
        table, harness = self.table, self.harness
        before = tuple(table)
        harness.last[self.where] = before
        outcome, _ = self._call(
            "execute", lambda: scope.execute(table, self._callback), table=before, owned=self._owned()
        )
        self.executed = outcome["status"] == "ok"
        return outcome

    def _callback(self, table: Sequence[Range], persistent: tuple[int, ...] | None) -> None:
        entries = tuple(Range(int(address), int(size)) for address, size in table)
        kept = None if persistent is None else tuple(int(index) for index in persistent)
        self.harness.recorder.note("executing", scope=self.number, table=entries, persistent=kept)
        try:
            self._execution(entries, kept)
        except Exception as error:
            self.harness.recorder.note("raising", scope=self.number, **told(error))
            raise

    def _execution(self, entries: tuple[Range, ...], kept: tuple[int, ...] | None) -> None:
        """What the callback does. Raises what the program, or the subject's own consumer, lets it raise."""
        if len(entries) != len(self.buffers):
            raise ExecuteFailed(f"the table has {len(entries)} entries for {len(self.buffers)} buffers")
        if self.operation.result is ops.Result.RAISE_BEFORE:
            raise ExecuteFailed("the program lets this execution fail before it has begun")
        self._probe(ops.Probe.EXECUTING)
        self._submit(entries, kept)
        if self.operation.result is ops.Result.RAISE_AFTER:
            raise ExecuteFailed("the program lets this execution fail after it was submitted")

    def _submit(self, table: tuple[Range, ...], persistent: tuple[int, ...] | None) -> None:
        opened, harness = self.opened, self.harness
        if opened.consumer is not None:
            opened.consumer.execute(table, persistent, device=self.device, stream=self.stream)
            harness.recorder.note("submitted", scope=self.number)
            return
        addresses = opened.baked_on(self.device).addresses(table, persistent)
        self.written = submit(harness.driver, self.stream, opened.executable, addresses, harness.tokens)

    # -- the caller around it

    def _owned(self) -> tuple[int, ...]:
        """The parameters whose address of the last execution the scope's allocator knows."""
        last = self.harness.last.get(self.where)
        memory = self.harness.memory[int(self.operation.other)]
        if last is None or memory is None or not self.watches:
            return ()
        return tuple(n for n in self.bound.parameters if memory.raw_allocation(self.device, last[n]) is not None)

    def _protect(self) -> bool:
        """Put a copy in the place of each donatable parameter that is not given away."""
        if self.operation.donate:
            return True
        for index in self.bound.parameters:
            if not self.buffers[index].donatable or not self.table[index].address:
                continue
            try:
                copy = self.harness.allocate(self.allocator.label, self.device, self.buffers[index])
            except SubjectError:
                return False
            self.harness.driver.copy(copy.address, self.table[index].address, copy.size, stream=self.stream)
            self.copies[index] = self.table[index] = copy
        return True

    def _live(self) -> set[int]:
        """The addresses that are the caller's, or become so."""
        live = {entry.address for entry in (*self.bound.arguments(), *self.copies.values())}
        if self.executed:
            live |= {self.table[n].address for n, b in enumerate(self.buffers) if b.kind is BufferKind.OUTPUT}
        return live - {0}

    def _taken(self) -> dict[int, Range]:
        """What the caller owns now and did not before, by buffer."""
        taken = dict(self.copies)
        if self.executed and self.torn_down:
            taken |= {n: self.table[n] for n, b in enumerate(self.buffers) if b.kind is BufferKind.OUTPUT}
        return {index: entry for index, entry in taken.items() if entry.address}

    def _give_back(self, taken: dict[int, Range]) -> None:
        """Free what was taken over, or hold on to it."""
        for entry in taken.values():
            self.harness.hold(self.number, self.allocator.label, self.device, entry)
            if not self.operation.keep:
                self.harness.free(len(self.harness.held) - 1)
        self.harness.entitled.discard(self.number)

    def _observe(self, taken: dict[int, Range]) -> None:
        """Queue a read of what this execution wrote into buffers that the caller has now.

        Parameters are left out where a second run may have written into them since.
        """
        expected: dict[int, bytes] = {}
        for index, token in self.written.items():
            expected[self.table[index].address] = token
        seen = set(taken) if self.operation.probe else {*taken, *self.bound.parameters}
        wanted = {n: self.table[n] for n in self.written if n in seen}
        reads = [Range(entry.address, min(TOKEN, entry.size)) for entry in wanted.values()]
        if reads:
            work = self.harness.driver.launch(self.stream, reads=reads)
            tokens = tuple(expected[entry.address] for entry in wanted.values())
            self.harness.recorder.note(
                "observe", scope=self.number, work=work.id, buffers=tuple(wanted), tokens=tokens
            )

    # -- calls on the subject

    def _call(self, name: str, action: Callable[[], object], **details: Any) -> tuple[Outcome, Any]:
        """One call, noted. Returns how it ended and what it returned."""
        harness, answer = self.harness, _Answer()
        harness.recorder.note("call", scope=self.number, name=name, **details)
        before = harness.works_for(self.number)
        outcome = attempt(lambda: answer.take(action()))
        harness.works_for(before)
        made = answer.value
        extra: dict[str, Any] = {}
        if name == "create" and made is not None:
            extra = {"enabled": self.enabled, "owned": self._owned()}
        elif name == "generate" and made is not None:
            extra = {"table": tuple(made)}
        elif name == "execute":
            extra = {"table": tuple(self.table)}
        harness.recorder.note("return", scope=self.number, name=name, outcome=outcome, **extra)
        return outcome, made

    def _probe(self, at: ops.Probe) -> None:
        if self.operation.probe is at:
            self.harness.challenge(self)


def as_table(answer: object, buffers: Sequence[object]) -> list[Range]:
    """``answer`` as an owning table. Raises ``TypeError``, a crash of the subject, if it is none."""
    if isinstance(answer, list) and len(answer) == len(buffers) and all(type(entry) is Range for entry in answer):
        return answer
    raise TypeError(f"generate returned {answer!r} where a list of {len(buffers)} ranges was expected")


def told(error: Exception) -> Outcome:
    """How an execution failed, in the words of an outcome."""

    def again() -> None:
        raise error

    return attempt(again)
