"""Shadows: device memory at a fixed address that stands in for a small slot."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress

from vmm_conformance.contracts import Access, Buffer, Code, Driver, DriverError, Slot, SubjectError
from vmm_reference.layout import SmallSlot


class Shadows:
    """The shadows of one executable on one device.

    Mapping costs the driver milliseconds however small the slot is; copying a small one costs less. A
    shadow is allocated once and never moves (SHADOW-106). Its contents are the slot's from copy-in to
    copy-back of each step, and mean nothing in between.
    """

    def __init__(self, driver: Driver, device: int, slots: Sequence[Slot]) -> None:
        self.driver = driver
        self.device = device
        self.slots = slots
        self.addresses: dict[int, int] = {}
        """Slot to the address of its shadow, ascending by slot."""
        self.writers = [i for i, slot in enumerate(slots) if slot.use.writes and not slot.constant]

    def allocate(self, small: Iterable[SmallSlot]) -> None:
        """One shadow per small slot, in the slot's own memory space (SHADOW-107).

        Raises INTERNAL that names the slot and the size (SHADOW-115); the caller frees those made so far.
        """
        for index, capacity in small:
            self.addresses[index] = self.allocate_one(index, capacity)

    def allocate_one(self, index: int, size: int) -> int:
        """The address of a new shadow of ``size`` bytes for slot ``index``."""
        space = self.slots[index].space
        try:
            return self.driver.alloc(size, device=self.device, space=space)
        except DriverError as error:
            raise SubjectError(
                Code.INTERNAL,
                f"slot {index}: no shadow of {size} bytes in memory space {space} of device {self.device} "
                f"({error}); free memory of that device, or lower the copy threshold",
            ) from error

    def copy_in(self, buffers: Sequence[Buffer], stream: int) -> None:
        """Queue the copies from every slot's real buffer to its shadow (SHADOW-109, SHADOW-110).

        Write-only slots are copied too: a use is an upper bound, and what execution leaves unwritten is
        copied back with the rest (SHADOW-117).
        """
        for index, shadow in self.addresses.items():
            self.copy(shadow, buffers[index].address, buffers[index].size, stream)

    def copy_back(self, written: Iterable[int], buffers: Sequence[Buffer], stream: int) -> None:
        """Queue the copies from the shadows of ``written`` slots to their real buffers (SHADOW-111)."""
        for index in written:
            self.copy(buffers[index].address, self.addresses[index], buffers[index].size, stream)

    def copy(self, target: int, source: int, size: int, stream: int) -> None:
        """Queue one copy of exactly the logical size (SHADOW-112), if there is anything to copy."""
        if size:
            self.driver.copy(target, source, size, stream=stream)

    def written(self, buffers: Sequence[Buffer]) -> list[int]:
        """The slots whose shadows are copied back after this step, ascending.

        Copied back is what execution may write (SHADOW-160). Of several slots that are bound to one real
        buffer, the last one written has the final say, as it would in the buffer itself (SHADOW-161): if
        that one has no shadow, execution has written the buffer directly and no copy may follow. A slot that
        no command names may come without an address: nobody writes through that.
        """
        if not self.addresses:
            return []
        last_writer = {buffers[i].allocation: i for i in self.writers if buffers[i].size and buffers[i].address}
        return [
            index
            for index in self.addresses
            if last_writer.get(buffers[index].allocation) == index and self.writable(buffers[index])
        ]

    def writable(self, buffer: Buffer) -> bool:
        """Whether the caller's own rights let the device write ``buffer`` (SHADOW-160).

        Where the driver refuses to say what the rights are, its error ends the step; a guess could write what
        must not be written.
        """
        return self.driver.get_access(buffer.address, self.device) == Access.READ_WRITE

    def free(self) -> None:
        """Free every shadow once; nothing may be using them. One that the driver refuses is kept."""
        for index, shadow in tuple(self.addresses.items()):
            with suppress(DriverError):
                self.driver.free(shadow)
                del self.addresses[index]
