"""The contracts that can be spoken, as data: what is asked of a subject in another process, and what comes back.

The requests of a contract are the methods of its Protocol, with their arguments by name. `remote` has what stands
for an object of the subject's here.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Final

from vmm_conformance.contracts import (
    CONTRACTS,
    Block,
    FlagReader,
    Range,
    RawAllocation,
    Settings,
    StepExecutor,
    VmmAllocator,
)
from vmm_conformance.contracts.allocator import Statistics, WholeAllocator

Record = type[Block] | type[Statistics] | type[Range] | type[RawAllocation] | type[Settings]


@dataclass(frozen=True)
class Spoken:
    """One contract. ``opens``: the keys of the request that opens an object of ``protocol``.

    ``records``: the requests that return a record. ``beside``: those that are no method of the protocol.
    ``always``: keys of every request but the one that opens. ``calls``: what the subject may ask for beside driver
    calls; in the protocol an argument of that name, which the request leaves out.
    """

    protocol: type
    opens: tuple[str, ...]
    records: Mapping[str, Record] = field(default_factory=dict)
    beside: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    always: tuple[str, ...] = ()
    calls: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def requests(self) -> dict[str, tuple[str, ...]]:
        """What ``do`` may be, with the other keys of the request."""
        asked = {do: tuple(key for key in it.parameters if key not in self.calls)
                 for do, it in methods(self.protocol).items()}  # fmt: skip
        return {"open": self.opens} | {do: (*self.always, *keys) for do, keys in {**asked, **self.beside}.items()}


@cache
def methods(protocol: type) -> Mapping[str, inspect.Signature]:
    """The methods of a Protocol, with their arguments but ``self``."""
    found = {
        name: inspect.signature(method)
        for kind in reversed(protocol.__mro__)
        for name, method in vars(kind).items()
        if inspect.isfunction(method) and not name.startswith("_")
    }
    return {name: it.replace(parameters=list(it.parameters.values())[1:]) for name, it in found.items()}


SPOKEN: Final[Mapping[str, Spoken]] = {
    "allocator": Spoken(
        WholeAllocator, ("device", "devices"),
        {"allocate": Block, "grow": Block, "shrink": Block, "statistics": Statistics},
    ),
    "skip-remap": Spoken(StepExecutor, ("executable",), calls={"execute": ("table", "persistent")}),
    "flags": Spoken(FlagReader, ("revision",), {"read": Settings}),
    "vmm-allocator": Spoken(
        VmmAllocator, ("configs",),
        {"allocate": Range, "allocate_mapped": Range, "raw_allocation": RawAllocation, "reservation_of": Range},
        beside={"device_tag_end": (), "release": ("reservation",)},
        always=("thread",),
    ),
}  # fmt: skip
"""The contracts, by name."""

DRIVERLESS: Final = ("flags",)
"""Those whose factories take no driver."""

UNSPOKEN: Final[Mapping[str, str]] = {
    "driver": "its memory would lie in the subject's process, where the harness cannot read it",
    "reservation": "its objects move into each other and end with blocks of the program that holds them",
    "va-remap": "it is handed allocators and command buffers that are objects of the caller's, and calls them",
    "auto-threshold": "it is a function, and no object that is opened: let a few lines of Python ask your program",
}
"""Why the others cannot be."""

REQUESTS: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    contract: {do: (CONTRACTS[contract], *keys) for do, keys in spoken.requests.items()}
    for contract, spoken in SPOKEN.items()
}
"""The requests of each contract, with the other keys: first the object's number, under the name of its factory."""

CALLBACKS: Final[Mapping[str, tuple[str, ...]]] = {
    call: names for spoken in SPOKEN.values() for call, names in spoken.calls.items()
}
"""What subjects may ask for beside driver calls, with the arguments."""

CALLER: Final[Mapping[str, tuple[str, ...]]] = {"stream_create": ("device",), "stream_destroy": ("stream",)}
"""What a subject with a driver of its own is asked to do there for its caller."""
