"""What can be made to fail in the programs of each contract, and with which codes: data.

Codes are those that the vendors document for a call. Left out are codes after which nothing works any more in the
process (not initialized, deinitialized, illegal address, launch failed): a call that is repeated cannot succeed then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from vmm_conformance.contracts import Code, Status
from vmm_conformance.programs import allocator, reservation, skip_remap, va_remap, vmm_allocator
from vmm_conformance.programs.program import Program

_VALUE: Final = (Status.INVALID_VALUE,)
_PERMISSION: Final = (Status.NOT_PERMITTED, Status.NOT_SUPPORTED)
_CONTEXT: Final = (Status.INVALID_VALUE, Status.INVALID_CONTEXT)
_HANDLE: Final = (Status.INVALID_HANDLE, *_CONTEXT)

DRIVER_CODES: Final[Mapping[str, tuple[Status, ...]]] = {
    "reserve": (Status.OUT_OF_MEMORY, *_VALUE, *_PERMISSION),
    "address_free": (Status.UNKNOWN, *_VALUE, *_PERMISSION),
    "create": (Status.OUT_OF_MEMORY, Status.INVALID_DEVICE, *_VALUE, *_PERMISSION),
    "retain": (*_VALUE, *_PERMISSION),
    "release": (*_VALUE, *_PERMISSION),
    "map": (Status.OUT_OF_MEMORY, Status.INVALID_DEVICE, *_VALUE, *_PERMISSION),
    "unmap": (Status.UNKNOWN, *_VALUE, *_PERMISSION),
    "set_access": (Status.INVALID_DEVICE, *_VALUE, Status.NOT_SUPPORTED),
    "get_access": (Status.INVALID_DEVICE, *_VALUE, Status.NOT_SUPPORTED),
    "address_range": _CONTEXT,
    "mem_info": _CONTEXT,
    "alloc": (Status.OUT_OF_MEMORY, *_CONTEXT),
    "free": _CONTEXT,
    "stream_create": (Status.OUT_OF_MEMORY, *_CONTEXT),
    "stream_destroy": _HANDLE,
    "stream_synchronize": (Status.INVALID_HANDLE, Status.INVALID_CONTEXT),
    "stream_query": (Status.INVALID_HANDLE, Status.INVALID_CONTEXT),
    "stream_wait_event": (Status.INVALID_HANDLE, Status.INVALID_CONTEXT),
    "device_synchronize": (Status.INVALID_CONTEXT,),
    "event_create": (Status.OUT_OF_MEMORY, *_CONTEXT),
    "event_destroy": _HANDLE,
    "event_record": _HANDLE,
    "event_synchronize": _HANDLE,
    "event_query": (Status.INVALID_HANDLE, *_VALUE),
    "copy": _HANDLE,
    "fill": _HANDLE,
    "write": _HANDLE,
    "read": _HANDLE,
    "launch": (Status.OUT_OF_MEMORY, *_HANDLE),
    "graph_begin": _HANDLE,
    "graph_end": _HANDLE,
    "graph_instantiate": (Status.OUT_OF_MEMORY, *_VALUE),
    "graph_launch": _HANDLE,
    "graph_destroy": _VALUE,
    "graph_exec_destroy": _VALUE,
}
"""By kind of driver call the codes that CUDA's and HIP's documents give for it, the likeliest first."""

ALLOCATOR_CODES: Final[Mapping[str, tuple[Code, ...]]] = {
    "allocate": (Code.RESOURCE_EXHAUSTED, Code.INVALID_ARGUMENT, Code.INTERNAL),
    "allocate_mapped": (Code.RESOURCE_EXHAUSTED, Code.ALREADY_EXISTS, Code.INVALID_ARGUMENT, Code.INTERNAL),
    "map": (Code.NOT_FOUND, Code.ALREADY_EXISTS, Code.INVALID_ARGUMENT, Code.INTERNAL),
    "unmap": (Code.NOT_FOUND, Code.INVALID_ARGUMENT, Code.INTERNAL),
    "create_reservation": (Code.RESOURCE_EXHAUSTED, Code.INVALID_ARGUMENT, Code.INTERNAL),
    "deallocate": (Code.NOT_FOUND, Code.INTERNAL),
    "synchronize": (Code.INTERNAL, Code.UNAVAILABLE),
    "record": (Code.RESOURCE_EXHAUSTED, Code.INTERNAL),
}
"""By call on a VMM allocator, or ``record`` of a command buffer, the codes it may be refused with (va-remap)."""


@dataclass(frozen=True, slots=True)
class Failing:
    """How programs of one contract say that a call fails.

    ``fail(kind, k, code)`` is the operation; ``codes`` are by kind of call. ``returns`` are the harness's notes that
    end one call on the subject. ``again`` are the operations that a caller repeats after a failure; a runner repeats
    the others itself. ``noted``: what fails are calls that are in the history as notes, not the driver's own.
    """

    fail: Callable[[str, int, Any], Any]
    codes: Mapping[str, tuple[Any, ...]]
    returns: frozenset[str]
    again: tuple[type, ...] = ()
    closing: Callable[[Any], tuple[Any, ...]] = lambda configuration: ()
    """Operations that close everything: what fails behind the last operation cannot be said otherwise."""
    noted: bool = False
    at_end: bool = False
    """Calls that are made after the last operation can be made to fail."""

    def base(self, program: Program) -> Program:
        """``program`` without failures, run once, and closed by operations of its own."""
        kept = tuple(operation for operation in program.operations if type(operation) is not self.fail)
        configuration = program.configuration
        if getattr(configuration, "rounds", 1) > 1:
            configuration = replace(configuration, rounds=1)
        return Program(program.contract, configuration, (*kept, *self.closing(configuration)))


def _each(close: Callable[[int], Any], count: Callable[[Any], int]) -> Callable[[Any], tuple[Any, ...]]:
    return lambda configuration: tuple(close(number) for number in range(count(configuration)))


FAILING: Final[Mapping[str, Failing]] = {
    "allocator": Failing(
        allocator.Fail, DRIVER_CODES, frozenset({"return"}),
        closing=_each(allocator.Close, lambda configuration: configuration.devices),
    ),
    "vmm-allocator": Failing(vmm_allocator.Fail, DRIVER_CODES, frozenset({"return"}), at_end=True),
    "reservation": Failing(
        reservation.Fail, DRIVER_CODES, frozenset({"return"}),
        closing=lambda configuration: (
            *(reservation.Drop(0),) * 2, *(reservation.CloseReservation(0),) * 2, *(reservation.Free(0),) * 2,
        ),
    ),
    "skip-remap": Failing(
        skip_remap.Fail, DRIVER_CODES, frozenset({"stepped", "closed"}), again=(skip_remap.Step,),
        closing=_each(skip_remap.Close, lambda configuration: len(configuration.executables)),
    ),
    "va-remap": Failing(
        va_remap.Fail, ALLOCATOR_CODES, frozenset({"return"}), again=(va_remap.Run,), noted=True,
        closing=_each(va_remap.Close, lambda configuration: len(configuration.executables)),
    ),
}  # fmt: skip
"""The contracts whose subjects make calls that can be made to fail."""

NO_POINTS: Final[Mapping[str, str]] = {
    "driver": "the driver is the subject itself, and nothing lies beneath it that could be made to fail",
    "flags": "its subjects read text and make no calls",
    "auto-threshold": "its subjects are given figures and make no calls; the allocations that try a choice are the"
    " harness's, and the step that uses it has its failures in skip-remap",
}
"""The contracts that have no failure points, and why."""
