"""Fault injection: let the k-th driver call of a kind fail."""

from __future__ import annotations

from vmm_conformance.contracts import DriverError


class Faults:
    """Pending faults: ``pending`` holds by kind the calls that are left and the status. One that strikes is used up."""

    __slots__ = ("pending",)

    def __init__(self) -> None:
        self.pending: dict[str, list[tuple[int, int]]] = {}

    def inject(self, kind: str, k: int, status: int) -> None:
        """The ``k``-th call of ``kind`` from now on (1 is the next) fails with ``status``."""
        self.pending.setdefault(kind, []).append((k, status))

    def clear(self) -> None:
        """Forget every fault that has not struck."""
        self.pending.clear()

    def __bool__(self) -> bool:
        return bool(self.pending)

    def strike(self, kind: str) -> None:
        """Count one call of ``kind``. Raises `DriverError` if a fault strikes it."""
        pending = self.pending.get(kind)
        if not pending:
            return
        due = [status for k, status in pending if k <= 1]
        left = [(k - 1, status) for k, status in pending if k > 1]
        if left:
            self.pending[kind] = left
        else:
            del self.pending[kind]
        if due:
            raise DriverError(due[0], kind, "injected")
