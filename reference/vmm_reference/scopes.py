"""Execution scopes without remapping: ALWAYS_UPDATE, and the way out wherever remapping is not to be had.

Numbers in comments are ids of the catalogue's SCOPE area.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress

from vmm_conformance.contracts import (
    COLLECTIVE_SPACE,
    NULL,
    BufferKind,
    Code,
    Driver,
    DriverError,
    Execute,
    ExecutionScope,
    MemoryAllocator,
    Range,
    ScopedExecutable,
    SubjectError,
    is_vmm,
)
from vmm_reference.policies import Classes, classify

REFUSALS = (SubjectError, DriverError)


class First:
    """Remembers the first of several refusals, so that one does not keep the rest from being tried."""

    def __init__(self) -> None:
        self.error: Exception | None = None

    @contextmanager
    def also(self) -> Iterator[None]:
        """Try something; a refusal is kept for `reraise`."""
        try:
            yield
        except REFUSALS as error:
            self.error = self.error or error

    def reraise(self) -> None:
        """Raise what was first, if anything was."""
        if self.error is not None:
            raise self.error


class PlainScope:
    """One run whose buffers are wherever the allocator puts them. Constants alone are persistent (POLICY-135)."""

    va_remap_enabled = False

    def __init__(
        self, executable: ScopedExecutable, classes: Classes, device: int, allocator: MemoryAllocator
    ) -> None:
        self.executable = executable
        self.classes = classes
        self.device = device
        self.allocator = allocator
        self.allocated: dict[int, Range] = {}
        """What `generate` has allocated and nobody has freed or taken over: by index, as the allocator knows it."""

    # -- the contract

    def generate(self, arguments: Sequence[Range]) -> list[Range]:
        """The owning table. Raises what the allocator raises; then `drop` frees what was allocated (131)."""
        with self.device_tag():
            self.prepare()
            table = [self.resolve(index, arguments[index]) for index in range(len(self.executable.buffers))]
            for index in self.transients():
                buffer = self.executable.buffers[index]
                self.allocated[index] = self.allocate(index)
                table[index] = Range(self.allocated[index].address, buffer.size)
        return table

    def execute(self, table: Sequence[Range], execute: Execute) -> None:
        """Run with the owning table as it is."""
        execute(tuple(table), self.classes.constants)

    def teardown(self, live: Collection[int]) -> None:
        """Free all that was allocated, but for the addresses in ``live``, which the caller has taken over (124)."""
        self.allocated = {index: range_ for index, range_ in self.allocated.items() if range_.address not in live}
        self.free_all()

    def drop(self) -> None:
        """Free whatever has not been: the caller has forgotten the teardown, or it was refused (130)."""
        with suppress(*REFUSALS):
            self.free_all()

    # -- parts of it

    def device_tag(self) -> AbstractContextManager[None]:
        """Marks allocations as those of a program over several devices, if it is one."""
        return self.allocator.device_tag(self.executable.multi_device) if is_vmm(self.allocator) else nullcontext()

    def prepare(self) -> None:
        """Called before anything is allocated."""

    def resolve(self, index: int, argument: Range) -> Range:
        """What the caller hands in. Raises FAILED_PRECONDITION where null will not do."""
        buffer = self.executable.buffers[index]
        if buffer.kind not in (BufferKind.PARAMETER, BufferKind.CONSTANT):
            return NULL
        if buffer.size and not argument.address and not buffer.nullable:
            raise SubjectError(
                Code.FAILED_PRECONDITION,
                f"buffer {index}: a {buffer.kind.value} of {buffer.size} bytes is null; only parameters that are "
                "declared nullable may be",
            )
        return argument

    def transients(self) -> list[int]:
        """The buffers to allocate: those of collectives first, since these need them at like places (132)."""
        buffers = self.executable.buffers
        ours = [n for n, b in enumerate(buffers) if b.size and b.kind in (BufferKind.OUTPUT, BufferKind.TEMP)]
        return sorted(ours, key=lambda index: buffers[index].space != COLLECTIVE_SPACE)

    def allocate(self, index: int) -> Range:
        """Memory for one buffer, of its own memory space (133)."""
        buffer = self.executable.buffers[index]
        return self.allocator.allocate(self.device, buffer.size, space=buffer.space)

    def free_all(self) -> None:
        """Free what is left; each buffer once. What is refused stays for another try."""
        first = First()
        for index in list(self.allocated):
            with first.also():
                self.allocator.deallocate(self.device, self.allocated[index])
                del self.allocated[index]
        first.reraise()


class BufferAllocator:
    """Makes scopes without remapping."""

    def __init__(self, driver: Driver, executable: ScopedExecutable) -> None:
        self.executable = executable
        self.classes = classify(executable)
        self.closed = False

    def create_scope(self, device: int, stream: int, allocator: MemoryAllocator) -> ExecutionScope:
        """A scope on ``device``. Raises FAILED_PRECONDITION after close."""
        self.check_open()
        return self.plain_scope(device, allocator)

    def close(self) -> None:
        """Nothing is held between scopes."""
        self.closed = True

    def plain_scope(self, device: int, allocator: MemoryAllocator) -> PlainScope:
        """A scope that remaps nothing."""
        return PlainScope(self.executable, self.classes, device, allocator)

    def check_open(self) -> None:
        """Refuse scopes after close."""
        if self.closed:
            raise SubjectError(
                Code.FAILED_PRECONDITION, f"create_scope: {self.executable.name!r} is closed; make a new allocator"
            )
