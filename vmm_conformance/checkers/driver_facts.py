"""What a history of the contract ``driver`` says of its driver: what it declares, and its granules."""

from __future__ import annotations

from dataclasses import dataclass

from vmm_conformance.contracts import DriverCapabilities, Granularity
from vmm_conformance.history.events import History

_REAL_TOLERANCE = 4 << 20


@dataclass(frozen=True, slots=True)
class Facts:
    """``granularity`` is by device and space; ``tolerance`` is how far free memory may be off, in bytes.

    On a real device others allocate too, and page tables cost memory; elsewhere counts are exact.
    """

    capabilities: DriverCapabilities
    devices: int
    real: bool
    peers: frozenset[tuple[int, int]]
    granularity: dict[tuple[int, int], Granularity]
    tolerance: int
    asked: Granularity | None = None
    """What the driver was asked to have, where a history says so."""

    @property
    def minimum(self) -> int:
        """The granule of addresses, in bytes; 0 if the driver gave none that can be used."""
        found = self.granularity.get((0, 0))
        minimum = found.minimum if found else 0
        return minimum if minimum > 0 and minimum & (minimum - 1) == 0 else 0

    def can_reach(self, device: int, owner: int) -> bool:
        """Whether ``device`` can use memory of ``owner``."""
        return device == owner or (device, owner) in self.peers


def facts_of(history: History) -> Facts:
    """The facts in the header, and in the notes at the beginning."""
    header = history.header
    granularity: dict[tuple[int, int], Granularity] = {}
    for event in history:
        if event.kind != "note" or event.args[0] != "granularity":
            break
        details = event.args[1]
        if "minimum" in details:
            found = Granularity(details["minimum"], details["recommended"])
            granularity.setdefault((details["device"], details["space"]), found)
    real = bool(header.get("real"))
    least = granularity[0, 0].recommended if (0, 0) in granularity else 0
    return Facts(
        header.get("capabilities") or DriverCapabilities(),
        header.get("devices", 1),
        real,
        frozenset(header.get("peers", ())),
        granularity,
        max(least, _REAL_TOLERANCE) if real else 0,
        options.granularity if (options := header.get("options")) else None,
    )
