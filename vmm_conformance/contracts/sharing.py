"""What some drivers offer besides `Driver`: facts about a handle, and handles shared between processes.

A driver that has these calls has all of them; one whose capability ``sharing`` is False refuses those on
file descriptors. Sizes are in bytes. A refused call raises `DriverError` and changes nothing.
"""

from __future__ import annotations

from typing import Final, NamedTuple, Protocol, runtime_checkable

POSIX_FD: Final = 1
"""The vendors' number for handles that are shared as file descriptors."""


class HandleProperties(NamedTuple):
    """What a handle was created with, in the vendors' numbers: type of memory, of location, of shareable handle."""

    type: int
    location: int
    device: int
    handle_types: int


@runtime_checkable
class SharingDriver(Protocol):
    """Facts about handles, and export and import as file descriptors."""

    def granularity_option(self, option: int, *, device: int = 0) -> int:
        """The granularity by the vendors' number of the option: 0 minimum, 1 recommended, nothing else."""

    def properties(self, handle: int) -> HandleProperties: ...
    def create_shareable(self, size: int, *, device: int = 0) -> int:
        """As ``create``, of memory that may be exported as a file descriptor."""

    def export_handle(self, handle: int, *, kind: int = POSIX_FD, flags: int = 0) -> int:
        """A new file descriptor of the caller's, who closes it. The memory lives while it is open."""

    def import_handle(self, descriptor: int) -> int:
        """A handle with one reference. The caller keeps the descriptor, and may close it at once."""

    def legacy_ipc_handle(self, address: int) -> bytes:
        """A legacy IPC handle, which only plain memory has."""
