"""The caller's side of a run: which buffers it hands in for parameters and constants, and what it holds on to."""

from __future__ import annotations

from vmm_conformance.contracts import NULL, BufferKind, BufferSpec, Driver, Range
from vmm_conformance.running.strict_allocator import StrictAllocator


class BoundBuffers:
    """The parameters and constants of one executable on one device.

    Each parameter has buffers of its own, made when they are first bound and never freed, so that a program
    can come back to one. ``memory`` is where they come from; None is plain memory. Making one may raise
    RESOURCE_EXHAUSTED.
    """

    def __init__(
        self, driver: Driver, memory: StrictAllocator | None, device: int, buffers: tuple[BufferSpec, ...]
    ) -> None:
        self._driver = driver
        self._memory = memory
        self._device = device
        self._buffers = buffers
        self._made: dict[int, list[Range]] = {}
        self._foreign: dict[int, Range] = {}
        self.parameters = [n for n, buffer in enumerate(buffers) if buffer.kind is BufferKind.PARAMETER]
        self.bound: dict[int, Range] = {}
        for index, buffer in enumerate(buffers):
            if buffer.kind is BufferKind.PARAMETER:
                self.bind(index, 0)
            elif buffer.kind is BufferKind.CONSTANT:
                self.bound[index] = self._plain(buffer)

    def arguments(self) -> list[Range]:
        """One entry per buffer, null where the scope has to allocate."""
        return [self.bound.get(index, NULL) for index in range(len(self._buffers))]

    def parameter(self, number: int) -> int | None:
        """The index of the ``number``-th parameter, modulo what there is."""
        return self.parameters[number % len(self.parameters)] if self.parameters else None

    def bind(self, index: int, to: int) -> None:
        """Bind a parameter to the ``to``-th of its buffers, or to a new one behind the last."""
        made, buffer = self._made.setdefault(index, []), self._buffers[index]
        if to >= len(made):
            made.append(self._own(buffer))
        self.bound[index] = made[min(to, len(made) - 1)]

    def share(self, index: int, other: int) -> bool:
        """Bind a parameter to what another one is bound to. False where the two are not alike."""
        a, b = self._buffers[index], self._buffers[other]
        alike = index != other and (a.size, a.space) == (b.size, b.space) and self.bound[other].address != 0
        if alike:
            self.bound[index] = self.bound[other]
        return alike

    def foreign(self, index: int) -> None:
        """Bind a parameter to memory that the allocator does not know."""
        if index not in self._foreign:
            self._foreign[index] = self._plain(self._buffers[index])
        self.bound[index] = self._foreign[index]

    def nullify(self, index: int) -> bool:
        """Hand in null for a parameter; False where it may not be null."""
        if self._buffers[index].nullable:
            self.bound[index] = NULL
        return self._buffers[index].nullable

    def _own(self, buffer: BufferSpec) -> Range:
        if self._memory is None:
            return self._plain(buffer)
        return self._memory.allocate(self._device, buffer.size, space=buffer.space)

    def _plain(self, buffer: BufferSpec) -> Range:
        if not buffer.size:
            return NULL
        return Range(self._driver.alloc(buffer.size, device=self._device, space=buffer.space), buffer.size)
