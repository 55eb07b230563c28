"""Status codes and the errors that carry them.

HIP and CUDA use equal numbers for every code named here, so one table serves both drivers.
"""

from __future__ import annotations

from enum import IntEnum, StrEnum
from typing import Final


class Status(IntEnum):
    """What a driver call answers. Numbers are those of ``hipError_t`` and ``CUresult``."""

    SUCCESS = 0
    INVALID_VALUE = 1
    OUT_OF_MEMORY = 2
    NOT_INITIALIZED = 3
    DEINITIALIZED = 4
    INVALID_DEVICE = 101
    INVALID_CONTEXT = 201
    MAP_FAILED = 205
    UNMAP_FAILED = 206
    ALREADY_MAPPED = 208
    NOT_MAPPED = 211
    INVALID_HANDLE = 400
    ILLEGAL_STATE = 401
    NOT_READY = 600
    ILLEGAL_ADDRESS = 700
    LAUNCH_FAILED = 719
    NOT_PERMITTED = 800
    NOT_SUPPORTED = 801
    STREAM_CAPTURE_UNSUPPORTED = 900
    STREAM_CAPTURE_INVALIDATED = 901
    UNKNOWN = 999


def status_name(code: int) -> str:
    """The name of ``code``, or the bare number where no vendor document names it."""
    try:
        return Status(code).name
    except ValueError:
        return f"status {code}"


class DriverError(Exception):
    """A driver call was refused. ``status`` is the vendor's number, known to `Status` or not."""

    def __init__(self, status: int, call: str, detail: str) -> None:
        super().__init__(f"{call}: {status_name(status)}: {detail}")
        self.status = status
        self.call = call
        self.detail = detail


FATAL: Final = frozenset({Status.ILLEGAL_ADDRESS, Status.LAUNCH_FAILED})
"""Statuses after which a real device answers nothing else any more, for as long as the process lives."""


class Code(StrEnum):
    """Canonical error codes of an allocator or executor (the names XLA and Abseil use)."""

    INVALID_ARGUMENT = "INVALID_ARGUMENT"
    NOT_FOUND = "NOT_FOUND"
    ALREADY_EXISTS = "ALREADY_EXISTS"
    RESOURCE_EXHAUSTED = "RESOURCE_EXHAUSTED"
    FAILED_PRECONDITION = "FAILED_PRECONDITION"
    ABORTED = "ABORTED"
    UNIMPLEMENTED = "UNIMPLEMENTED"
    INTERNAL = "INTERNAL"
    UNAVAILABLE = "UNAVAILABLE"


class SubjectError(Exception):
    """A subject refuses a request. Anything else a subject raises counts as a crash of it."""

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(f"{code.value}: {message}")
        self.code = code
        self.message = message


class ExecuteFailed(Exception):
    """Raised by the execute callback when a program says that the step's execution fails.

    A step executor must let it through unchanged.
    """
