"""What a subject in another process says of itself when it is started."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from vmm_conformance.contracts import Revision
from vmm_conformance.running.allocator_holds import HELD_OVER
from vmm_conformance.running.proc.spoken import SPOKEN, UNSPOKEN

ASKED, REPORTED, UNTOLD = "asked", "reported", "untold"
CALLS: Final = (ASKED, REPORTED, UNTOLD)
"""How its driver calls are known: it asks the harness to make them, it makes them and says so, or it says nothing."""
OWN: Final = ("allocator", "vmm-allocator")
"""The contracts whose subjects may have a driver of their own: those of others are handed memory of the harness's."""


WAY: Final = "^[a-z]+/.+$"
"""A path of a call: CALL/WAY."""


class CommandError(ValueError):
    """A command that cannot be a subject; the message says why."""


@dataclass(frozen=True)
class Device:
    """The driver that a subject has in its own process: ``count`` devices, sizes in bytes.

    ``granularity`` is the smallest that is mapped, ``capacity`` what one device has, ``alignment`` what every block
    keeps to; ``peers`` says whether devices reach each other's memory.
    """

    count: int = 1
    granularity: int = 4096
    capacity: int = 1 << 30
    alignment: int = 1
    peers: bool = False


@dataclass(frozen=True)
class Described:
    """The whole of it. ``device`` is there if its calls are not asked for."""

    name: str
    version: str
    contracts: tuple[str, ...]
    capabilities: Mapping[str, Any]
    calls: str = ASKED
    device: Device | None = None


def described(said: Any) -> Described:
    """What a subject said of itself, read. Raises `CommandError`."""
    said = said if isinstance(said, dict) else {}
    name, version, declared = said.get("name"), said.get("version", ""), said.get("capabilities", {})
    if not (isinstance(name, str) and name and isinstance(version, str) and isinstance(declared, dict)):
        raise CommandError(f"it said of itself {said!r:.80}; a name, a version and capabilities were expected")
    contracts, calls = _contracts(said.get("contracts")), said.get("calls", ASKED)
    for key, value in declared.items():
        _declares(key, value)
    if calls not in CALLS:
        raise CommandError(f"it says that its driver calls are {calls!r:.40}, accepted: {', '.join(CALLS)}")
    given = {key: tuple(value) if isinstance(value, list) else value for key, value in declared.items()}
    fixed = {"traced": False} if calls == UNTOLD else {}
    fixed |= {"scheduled": False} if "vmm-allocator" in contracts else {}
    device = None if calls == ASKED else _device(said.get("device"), contracts)
    return Described(name, version, contracts, given | fixed, calls, device)


def _contracts(said: Any) -> tuple[str, ...]:
    if not isinstance(said, list) or not said or not all(isinstance(name, str) for name in said):
        raise CommandError(f"it has the contracts {said!r:.60}, accepted: {list(SPOKEN)}")
    for name in said:
        if name not in SPOKEN:
            why = f"; {name} cannot be spoken: {UNSPOKEN[name]}" if name in UNSPOKEN else ""
            raise CommandError(f"it has the contracts {said!r:.60}, accepted: {list(SPOKEN)}{why}")
    return tuple(said)


def _device(said: Any, contracts: tuple[str, ...]) -> Device:
    strange = [name for name in contracts if name not in OWN]
    if strange:
        raise CommandError(
            f"with a driver of its own it can have the contracts {' and '.join(OWN)}, not {', '.join(strange)}:"
            " memory of the caller's would have to be mapped there"
        )
    if not isinstance(said, dict) or not all(_fits(key, value) for key, value in said.items()):
        raise CommandError(
            f"it makes its own driver calls, and says of its device {said!r:.80}; expected is an object with"
            f" {', '.join(Device.__dataclass_fields__)}, numbers from 1 up and true or false"
        )
    return Device(**said)


def _fits(key: Any, value: Any) -> bool:
    if key == "peers":
        return type(value) is bool
    return key in Device.__dataclass_fields__ and type(value) is int and value > 0


_FLAG: Final = ("true or false", lambda value: type(value) is bool)
_DECLARED: Final[Mapping[str, tuple[str, Callable[[Any], bool]]]] = {
    **dict.fromkeys(("grow", "shrink", "trim", "late_peers", "statistics", "captures", "host_allocator"), _FLAG),
    "pause": ("a list of backup and discard", lambda value: _listed(value, lambda way: way in ("backup", "discard"))),
    "address_space": ("a number of times", lambda value: type(value) is int and value >= 0),
    "paths": ("a list of CALL/WAY", lambda value: _listed(value, lambda path: bool(re.search(WAY, str(path))))),
    "waits": ("a list of calls", lambda value: _listed(value, lambda call: call in (*HELD_OVER,))),
    "deallocate": ("stream or immediate", lambda value: value in ("stream", "immediate")),
    "segment": ("a number of bytes", lambda value: type(value) is int and value >= 0),
    "spaces": ("a list of memory spaces", lambda value: _listed(value, lambda space: type(space) is int) and value),
    "second_alias": ("ALREADY_EXISTS or FAILED_PRECONDITION",
                     lambda value: value in ("ALREADY_EXISTS", "FAILED_PRECONDITION")),
    "markers": ("batched or per-operation", lambda value: value in ("batched", "per-operation")),
    "revisions": ("a list of env-auto, env-bytes and flags",
                  lambda value: _listed(value, lambda name: name in [*Revision]) and value),
    "batch_limits": ("two numbers, entries and bytes",
                     lambda value: _listed(value, lambda number: type(number) is int) and len(value) == 2),
}  # fmt: skip


def _listed(value: Any, fits: Callable[[Any], bool]) -> bool:
    return isinstance(value, list) and all(fits(item) for item in value)


def _declares(key: str, value: Any) -> None:
    says, fits = _DECLARED.get(key, ("", None))
    if fits is None:
        raise CommandError(f"it declares {key!r:.40}, accepted: {', '.join(_DECLARED)}")
    if not fits(value):
        raise CommandError(f"it declares {key} as {value!r:.60}, which must be {says}")
