"""The system calls the host driver stands on, bound once.

`ctypes.PyDLL` keeps the interpreter lock during a call. These calls take a few microseconds, and giving
the lock up and taking it back costs as much as some of them.
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import sys
from collections.abc import Callable
from functools import cache

PAGE = mmap.PAGESIZE
"""The system's page size in bytes."""

PAGE_SHIFT = PAGE.bit_length() - 1

PROT_NONE = 0
PROT_READ = 1
PROT_READ_WRITE = 3

# Linux numbers; Python's mmap module does not name all of them. Equal on every architecture it runs on
# except alpha, mips, parisc and xtensa, which have no GPU drivers to stand in for.
_MAP_SHARED = 0x01
_MAP_PRIVATE = 0x02
_MAP_FIXED = 0x10
_MAP_ANONYMOUS = 0x20
_MAP_NORESERVE = 0x4000
RESERVE = _MAP_PRIVATE | _MAP_ANONYMOUS | _MAP_NORESERVE
# Without NORESERVE on purpose: it makes no difference to inaccessible memory, but areas that differ in it
# are not merged, and so the system does not join what was unmapped to the arena and split it off again.
WITHDRAW = _MAP_PRIVATE | _MAP_ANONYMOUS | _MAP_FIXED
ATTACH = _MAP_SHARED | _MAP_FIXED
PUNCH_HOLE = 0x01 | 0x02  # FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE

FAILED = ctypes.c_size_t(-1).value
"""What `SystemCalls.mmap` returns when it fails."""


class HostUnsupported(RuntimeError):
    """This system cannot run the host driver. The message says what is missing and what to do."""


class SystemCalls:
    """The four calls of libc, and the reason why the last one failed."""

    __slots__ = ("_errno_location", "fallocate", "mmap", "mprotect", "munmap")

    def __init__(self) -> None:
        libc = ctypes.PyDLL(None)
        size, integer, offset = ctypes.c_size_t, ctypes.c_int, ctypes.c_int64
        # Addresses are passed as plain size_t: c_void_p would answer None for 0.
        self.mmap: Callable[[int, int, int, int, int, int], int] = _bind(
            libc, ("mmap64", "mmap"), size, size, size, integer, integer, integer, offset
        )
        self.munmap: Callable[[int, int], int] = _bind(libc, ("munmap",), integer, size, size)
        self.mprotect: Callable[[int, int, int], int] = _bind(libc, ("mprotect",), integer, size, size, integer)
        self.fallocate: Callable[[int, int, int, int], int] = _bind(
            libc, ("fallocate64", "fallocate"), integer, integer, integer, offset, offset
        )
        self._errno_location = libc["__errno_location"]  # as an attribute the name would be mangled
        self._errno_location.restype = ctypes.POINTER(ctypes.c_int)

    def reason(self) -> str:
        """Why the system call just made failed, in words. Call it before anything else."""
        number: int = self._errno_location().contents.value
        hint = " (is vm.max_map_count reached?)" if number == errno.ENOMEM else ""
        return f"{os.strerror(number)}{hint}"


def _bind(libc: ctypes.PyDLL, names: tuple[str, ...], result: type, *arguments: type) -> Callable[..., int]:
    """The first function of ``names`` that libc has, with its types set."""
    for name in names:
        function = getattr(libc, name, None)
        if function is not None:
            function.restype = result
            function.argtypes = arguments
            return function  # type: ignore[no-any-return]
    raise HostUnsupported(f"the host driver needs {names[-1]}, which this libc lacks; use Linux with glibc or musl")


@cache
def system_calls() -> SystemCalls:
    """The process's system calls. Raises `HostUnsupported` where the host driver cannot run."""
    if sys.platform != "linux" or not hasattr(os, "memfd_create"):
        raise HostUnsupported(
            f"the host driver needs Linux with memfd_create and MAP_FIXED, and this is {sys.platform}; "
            "run it on Linux (a container will do), or choose a driver of a real GPU"
        )
    return SystemCalls()
